/* start_run: starts this program again as a child, with the command `run`, for commands that make
 * several runs. */
#ifndef RM_DAEMON_CTL_START_RUN_H
#define RM_DAEMON_CTL_START_RUN_H

#include "daemon/ctl/command.h"

#include <sys/types.h>

#define RM_START_SETTINGS 32

struct rm_run_start {
    const struct rm_ctl_arguments *given; /* the command line with FILE and --set */
    char *const *setting;                 /* [settings], "KEY=VALUE": override those of --set */
    size_t settings;                      /* at most RM_START_SETTINGS */
    const char *name, *directory;         /* --name, --run-directory */
    const char *log;                      /* file that output is appended to */
    bool fresh;                           /* --fresh */
};

/* Starts the run. If this process is killed, the run makes a checkpoint and stops. Returns the
 * child's process id or a negative errno. */
pid_t rm_start_run(const struct rm_run_start *start);

/* Number of processors that this process and the runs that it starts may use; at least 1. */
size_t rm_usable_cores(void);

#endif
