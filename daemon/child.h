/* child: a program that the event loop starts and sees end, without ever waiting for it: not for
 * its exec either, which on a busy host can take tens of milliseconds. */
#ifndef RM_DAEMON_CHILD_H
#define RM_DAEMON_CHILD_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct rm_child {
    uv_poll_t ended; /* polls the process's descriptor */
    pid_t pid;
    int process_fd, failure_fd;
    void *user;        /* the caller's */
    bool holds_stop;   /* SIGTERM waits until the program lets it through (rm_duty_signals()): who
                          ends   a run at once may send it before there is a handler */
    const char *group; /* a control group's file of members, to be entered first; NULL: none */
    void (*on_exit)(struct rm_child *child, int64_t status, int signal, int exec_errno);
    void (*on_closed)(struct rm_child *child);
};

/* Starts `program`, a path, with `arguments` (NULL at the end) and descriptors fds[0..count) under
 * the numbers 0..count, -1: /dev/null; no other is passed on. Signals are as at a program's start,
 * but for those that are the daemon's own, and SIGTERM with holds_stop.
 *
 * on_exit is called once, from the loop: with an exit code and signal 0, or with the signal that
 * ended it; exec_errno is not 0 where the program could not be executed. When it returns the handle
 * is closed; then on_closed is called (it may be NULL), and *child may be freed.
 *
 * Negative errno when no process could be made: neither is called. */
int rm_child_start(struct rm_child *child, uv_loop_t *loop, const char *program, char **arguments,
                   int *fds, int count, struct rm_error *error);

#endif
