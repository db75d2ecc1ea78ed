/* cgroup: control groups of processes that step worlds, with limits of memory and of processes. The
 * host must have control groups of version 2. The daemon's own group must be delegated to it with
 * both controllers (Delegate= of its unit), and no other process may be in it. The daemon moves
 * into a group below its own, because a group that has processes cannot have groups with limits
 * below it. */
#ifndef RM_DAEMON_CGROUP_H
#define RM_DAEMON_CGROUP_H

#include "shm/base/error.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct rm_cgroup {
    char path[PATH_MAX]; /* the daemon's own group; "": no groups can be made */
};

#define RM_CGROUP_ROOT "/sys/fs/cgroup"

/* The folder of the group that `membership`, the text of /proc/self/cgroup, names, to
 * path[PATH_MAX]. `root`: the folder where version 2 is mounted. -ENOTSUP: there is none. */
int rm_cgroup_find(char *path, const char *root, const char *membership, struct rm_error *error);

/* The same arguments. After an error no groups can be made; the message says why, and at most one
 * empty group is left. */
int rm_cgroup_open(struct rm_cgroup *cgroup, const char *root, const char *membership,
                   struct rm_error *error);

/* The same for the group of this process. */
int rm_cgroup_open_own(struct rm_cgroup *cgroup, struct rm_error *error);

/* Creates or changes the group `name`. A limit of 0 is no limit. `procs`: the path of a file; a
 * process joins the group by writing "0" to it. A group with a limit of memory gets no swap, and
 * when memory runs out, all its members die together. */
int rm_cgroup_make(const struct rm_cgroup *cgroup, const char *name, uint64_t memory_bytes,
                   uint64_t processes, char *procs, size_t size, struct rm_error *error);

/* Effects of limits on a group since it was created. */
struct rm_cgroup_events {
    uint64_t oom;      /* times the group reached its own limit, and no memory could be reclaimed */
    uint64_t oom_kill; /* processes killed because memory ran out, by any group's limit */
    uint64_t refused;  /* processes and threads that its limit refused */
};

/* Reads the effects; all zero if the kernel does not report them. */
void rm_cgroup_read_events(const struct rm_cgroup *cgroup, const char *name,
                           struct rm_cgroup_events *events);

/* Kills all processes in the group. Does nothing on kernels before 5.14. */
void rm_cgroup_clear(const struct rm_cgroup *cgroup, const char *name);

#endif
