/* groups: the control groups (cgroup.h) of processes that step worlds of a shared object: their
 * limits, and whether a limit caused a death. For the event loop's thread. */
#ifndef RM_DAEMON_GROUPS_H
#define RM_DAEMON_GROUPS_H

#include "config/experiment.h"
#include "daemon/cgroup.h"
#include "daemon/log.h"
#include "shm/board.h"

#include <limits.h>

struct rm_groups {
    struct rm_cgroup cgroup; /* the daemon's, below which groups are made */
    char none[512];          /* why there are none; "": none are needed */
};

struct rm_worker_group {
    char name[RM_NAME_MAX]; /* "" = it has none */
    char procs[PATH_MAX];   /* the file to write "0" to, to be a member; "" = none */
    struct rm_cgroup_events before;
};

/* Call it before the daemon starts other processes. */
void rm_groups_open(struct rm_groups *groups, const struct rm_experiment *e);

/* Logs whether there are groups, or why not. */
void rm_groups_log(const struct rm_groups *groups, const struct rm_experiment *e,
                   struct rm_log *log);

/* Creates the group of a process that is about to be started. 0 with an empty name: there are no
 * groups. */
int rm_groups_make(const struct rm_groups *groups, const struct rm_experiment *e, const char *name,
                   struct rm_worker_group *group, struct rm_error *error);

/* Call it after the process has ended, by `signal` or (0) by itself. Adds to `words` whether a
 * limit of the group caused the end, and kills all processes that are left in the group. */
void rm_groups_leave(const struct rm_groups *groups, const struct rm_experiment *e,
                     const struct rm_worker_group *group, int signal, char *words, size_t size);

#endif
