/* child: a program that the event loop starts, with a callback for its end. The loop never waits
 * for the program, not even for its exec, which can take tens of milliseconds on a busy host. */
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
    bool holds_stop;   /* SIGTERM is blocked until the program unblocks it (rm_duty_signals()),
                          because it may be sent before there is a handler */
    const char *group; /* file of a control group's members; the process enters the group first;
                          NULL: none */
    void (*on_exit)(struct rm_child *child, int64_t status, int signal, int exec_errno);
    void (*on_closed)(struct rm_child *child);
};

/* Starts `program`, a path, with `arguments` (ends with NULL) and the descriptors fds[0..count)
 * under the numbers 0 .. count - 1; -1 stands for /dev/null. No other descriptor is passed on. All
 * signals have their default action, except that the daemon's own signals are ignored, and no
 * signal is blocked, except SIGTERM with holds_stop.
 *
 * The loop calls on_exit once: with an exit code and signal 0, or with the signal that ended the
 * program; exec_errno is not 0 if the program could not be executed. Then the handle is closed,
 * on_closed (may be NULL) is called, and *child may be freed.
 *
 * Negative errno: no process could be created, and neither function is called. */
int rm_child_start(struct rm_child *child, uv_loop_t *loop, const char *program, char **arguments,
                   int *fds, int count, struct rm_error *error);

#endif
