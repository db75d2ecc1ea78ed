/* run_lock: a run directory belongs to the daemon that holds the lock of the file `lock` in it, for
 * as long as that lives: one run, one daemon, whatever their sockets are. It is a record lock
 * (fcntl, of the open file where the kernel has such), which reaches other hosts over NFS, and the
 * kernel gives it back however the daemon ends. In the file stands who holds it: process, host,
 * boot of the host. Where the file system knows no locks, that alone decides: a process of this
 * boot that is gone, or an earlier boot of this host, holds nothing; another host's is believed.
 *
 * Owned by the daemon; one thread. */
#ifndef RM_DAEMON_RUN_LOCK_H
#define RM_DAEMON_RUN_LOCK_H

#include "config/experiment.h"
#include "shm/base/error.h"

#define RM_RUN_LOCK_FILE "lock"

struct rm_run_lock {
    int fd; /* -1 = not held */
    char path[RM_PATH_TEXT_MAX + 160];
    char left[256]; /* former holder of a lock that was taken over, "" = none */
};

/* Holds the lock of `directory`, and lets go of another one. -EEXIST: a daemon that runs holds it;
 * -EAGAIN: one that is ending. The message has its process and host. */
int rm_run_lock_take(struct rm_run_lock *lock, const char *directory, struct rm_error *error);

/* The same, and waits up to ten seconds for a daemon that is ending. */
int rm_run_lock_await(struct rm_run_lock *lock, const char *directory, struct rm_error *error);

/* Removes the file and lets go. Harmless when nothing is held. */
void rm_run_lock_leave(struct rm_run_lock *lock);

/* What is written of a holder, and how far it can be trusted to be there: for tests as well. */
struct rm_run_holder {
    int pid;
    char host[64], boot[40];
};
enum rm_run_holding {
    RM_HELD_BY_NOBODY, /* the file says nothing */
    RM_HELD_HERE,      /* by a process of this boot */
    RM_HELD_BEFORE,    /* in an earlier boot of this host */
    RM_HELD_ELSEWHERE, /* on another host */
};
void rm_run_holder_self(struct rm_run_holder *self);
enum rm_run_holding rm_run_holding_of(const char *text, const struct rm_run_holder *self,
                                      struct rm_run_holder *holder);

#endif
