#include "daemon/holder.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What of a file of /proc/PID fits into `text`, and a NUL. Returns its length, 0: none. */
static size_t read_proc(int pid, const char *name, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    const size_t n = fread(text, 1, size - 1, file);
    fclose(file);
    text[n] = '\0';
    return n;
}

/* SIGKILL waits for it: it cannot be caught, so this is its end, however long that takes. */
static bool killed(int pid)
{
    char text[4096];
    const char *pending =
        read_proc(pid, "status", text, sizeof text) ? strstr(text, "\nShdPnd:") : NULL;
    return pending && strtoull(pending + strlen("\nShdPnd:"), NULL, 16) >> (SIGKILL - 1) & 1;
}

enum rm_holder rm_holder_of(int pid)
{
    char line[512];
    const size_t n = read_proc(pid, "cmdline", line, sizeof line);
    if (n == 0 || killed(pid)) /* the dead have no command line */
        return RM_HOLDER_ENDS;
    const char *second = memchr(line, '\0', n);
    return second && strcmp(second + 1, "--sweep") == 0 ? RM_HOLDER_SWEEPS : RM_HOLDER_STAYS;
}
