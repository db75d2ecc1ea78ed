#include "shm/base/fault.h"

typedef int rm_fault_not_empty; /* ISO C wants one declaration in a file */

#ifdef RM_FAULT_SITES

#include "shm/atomic.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void rm_fault_pass(const char *site)
{
    static _Atomic unsigned long passed;

    /* Read the variable every time: a test sets it after fork(), when static state is already
     * initialised. */
    const char *wanted = getenv("RM_FAULT");
    if (!wanted)
        return;
    size_t length = strlen(site);
    if (strncmp(wanted, site, length) != 0 || (wanted[length] != '\0' && wanted[length] != ':'))
        return;
    unsigned long nth = wanted[length] == ':' ? strtoul(wanted + length + 1, NULL, 10) : 1;
    if (RM_ADD(&passed, 1) + 1 != nth)
        return;
    const char *log = getenv("RM_FAULT_LOG");
    const int fd = log ? open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        dprintf(fd, "%s\n", site);
    raise(SIGKILL);
}

#endif
