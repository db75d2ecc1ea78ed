/* victim: a forked process that is to be killed, at a named site or at some moment. */
#ifndef RM_TESTS_CRASH_VICTIM_H
#define RM_TESTS_CRASH_VICTIM_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs role(arg) in a process of its own; with a site, RM_FAULT is "site:nth" there. */
static inline pid_t victim_start(int (*role)(void *), void *arg, const char *site, unsigned nth)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0) {
        alarm(600);
        unsetenv("RM_FAULT");
        if (site) {
            char text[96];
            snprintf(text, sizeof text, "%s:%u", site, nth);
            setenv("RM_FAULT", text, 1);
        }
        _exit(role(arg));
    }
    return pid;
}

/* How it ended: an exit code, or 1000 + the signal. */
static inline int victim_wait(pid_t pid)
{
    int status = 99 << 8; /* if there is nobody to wait for */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFSIGNALED(status) ? 1000 + WTERMSIG(status) : WEXITSTATUS(status);
}
#define VICTIM_KILLED (1000 + SIGKILL)

#endif
