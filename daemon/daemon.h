/* daemon: runs or checks one experiment, for main.c. The daemon uses no CUDA and does not compute:
 * it starts and supervises workers and answers clients. */
#ifndef RM_DAEMON_DAEMON_H
#define RM_DAEMON_DAEMON_H

#include "daemon/resume.h"
#include "daemon/settings.h"

/* Exit codes of ringmasterd. */
enum rm_daemon_exit {
    RM_DAEMON_OK = 0,        /* finished, or stopped on request */
    RM_DAEMON_FAILED = 1,    /* the run failed; the log says why */
    RM_DAEMON_USAGE = 2,     /* command line or configuration */
    RM_DAEMON_RUNNING = 3,   /* an experiment of that name runs already */
    RM_DAEMON_RESOURCES = 4, /* no memory, no directory, no socket: nothing was started */
    RM_DAEMON_UNSHOWN = 5,   /* the run succeeded, but standard output could not be written */
    RM_DAEMON_KILLED = 130,  /* interrupted twice: workers were killed */
};

struct rm_daemon_options {
    const char *file;
    const char *name;          /* NULL = the configuration's */
    const char *run_directory; /* NULL = the configuration's */
    const char *socket;        /* NULL = the configuration's, or the default place */
    struct rm_override overrides[RM_OVERRIDES_MAX];
    size_t override_count;
    bool foreground; /* a console on standard output */
    enum rm_resume resume;
};

/* Blocks or unblocks the signals that the daemon handles. The event loop handles blocked ones once
 * it runs. Call first in main. */
void rm_daemon_hold_signals(bool hold);

/* Runs an experiment to its end. Returns an enum rm_daemon_exit; `error` says what went wrong. */
int rm_daemon_run(const struct rm_daemon_options *options, struct rm_error *error);

/* Loads, checks and plans without starting anything. */
int rm_daemon_check(const struct rm_daemon_options *options, struct rm_error *error);

#endif
