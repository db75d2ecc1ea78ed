/* cgroup: groups of their own for processes that step worlds, with limits of memory and of
 * processes, where the host lets the daemon make them: control groups of version 2, this daemon's
 * delegated to it with both controllers (Delegate= of its unit), and no other process in it. The
 * daemon moves into a group below its own, for a group with members cannot have limited ones beside
 * them. */
#ifndef RM_DAEMON_CGROUP_H
#define RM_DAEMON_CGROUP_H

#include "shm/base/error.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct rm_cgroup {
    char path[PATH_MAX]; /* the daemon's own; "" = there can be none below it */
};

#define RM_CGROUP_ROOT "/sys/fs/cgroup"

/* `membership` is the text of /proc/self/cgroup, `root` where version 2 is mounted. Error: why
 * there can be no groups; nothing was changed, or no more than a group that is empty. */
int rm_cgroup_open(struct rm_cgroup *cgroup, const char *root, const char *membership,
                   struct rm_error *error);

/* This process's. */
int rm_cgroup_open_own(struct rm_cgroup *cgroup, struct rm_error *error);

/* Makes or changes the group `name`; 0: no such limit. `procs`: the file that a process writes "0"
 * to, to be a member. Memory is not limited by what can be swapped out, and where there is none
 * left all members die together. */
int rm_cgroup_make(const struct rm_cgroup *cgroup, const char *name, uint64_t memory_bytes,
                   uint64_t processes, char *procs, size_t size, struct rm_error *error);

/* What limits have done to a group since it was made. */
struct rm_cgroup_events {
    uint64_t oom;      /* its own limit of memory was in the way, and nothing could be given back */
    uint64_t oom_kill; /* of its processes, killed for want of memory, whosever limit it was */
    uint64_t refused;  /* processes and threads beyond its limit of them */
};

/* All zero where the kernel does not say. */
void rm_cgroup_read_events(const struct rm_cgroup *cgroup, const char *name,
                           struct rm_cgroup_events *events);

/* Kills all processes in the group; kernels before 5.14 cannot. */
void rm_cgroup_clear(const struct rm_cgroup *cgroup, const char *name);

#endif
