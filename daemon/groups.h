/* groups: control groups of the processes that step worlds of a shared object: with which limits,
 * and what these have to do with a death. The event loop's thread. */
#ifndef RM_DAEMON_GROUPS_H
#define RM_DAEMON_GROUPS_H

#include "config/experiment.h"
#include "daemon/cgroup.h"
#include "daemon/log.h"
#include "shm/board.h"

#include <limits.h>

struct rm_groups {
    struct rm_cgroup cgroup; /* where they are made */
    char none[512];          /* or why there are none, "" = none are wanted */
};

struct rm_worker_group {
    char name[RM_NAME_MAX]; /* "" = it has none */
    char procs[PATH_MAX];   /* the file to write "0" to, to be a member; "" = none */
    struct rm_cgroup_events before;
};

/* Before there are processes beside this one. */
void rm_groups_open(struct rm_groups *groups, const struct rm_experiment *e);

/* Whether there are groups, or why not. */
void rm_groups_tell(const struct rm_groups *groups, const struct rm_experiment *e,
                    struct rm_log *log);

/* For a process that is about to be started. 0 with an empty name: there are no groups. */
int rm_groups_make(const struct rm_groups *groups, const struct rm_experiment *e, const char *name,
                   struct rm_worker_group *group, struct rm_error *error);

/* After its end by `signal`, 0 = by itself: adds to `words` what the group had to do with it, and
 * kills all other processes that it left there. */
void rm_groups_leave(const struct rm_groups *groups, const struct rm_experiment *e,
                     const struct rm_worker_group *group, int signal, char *words, size_t size);

#endif
