/* launch: `ringctl run` of itself as a child, for commands that make several runs. */
#ifndef RM_DAEMON_CTL_LAUNCH_H
#define RM_DAEMON_CTL_LAUNCH_H

#include "daemon/ctl/command.h"

#include <sys/types.h>

#define RM_LAUNCH_SETTINGS 32

struct rm_launch {
    const struct rm_ctl_arguments *given; /* its FILE and what it gives by --set */
    char *const *setting;                 /* [settings], "KEY=VALUE": they count more */
    size_t settings;                      /* at most RM_LAUNCH_SETTINGS */
    const char *name, *directory;         /* --name, --run-directory */
    const char *log;                      /* file that output is appended to */
    bool fresh;                           /* --fresh */
};

/* Starts it. If this process is killed, the run stops in good order, with a checkpoint. Returns its
 * process or negative errno. */
pid_t rm_launch(const struct rm_launch *launch);

/* Processors that this process, and so its runs, may use; at least 1. */
size_t rm_launch_cores(void);

#endif
