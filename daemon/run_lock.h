/* run_lock: the lock of a run directory. A daemon owns a run directory while it holds the lock of
 * the file `lock` there, so a run has one daemon, even if several daemons have different sockets.
 * It is a record lock of fcntl() (of the open file, if the kernel has such locks), which works
 * between hosts over NFS. The kernel releases it when the daemon ends in any way. The file names
 * the holder: process, host, boot of the host. If the file system has no locks, only the file
 * decides: a process of this boot that is gone and a process of an earlier boot of this host hold
 * nothing; a process of another host holds the lock.
 *
 * Owned by the daemon; one thread at a time. */
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

/* Takes the lock of `directory`, and releases the one held before. -EEXIST: a running daemon holds
 * it; -EAGAIN: a daemon that is ending holds it. The message has its process and host. */
int rm_run_lock_take(struct rm_run_lock *lock, const char *directory, struct rm_error *error);

/* The same, and waits up to ten seconds for a daemon that is ending. */
int rm_run_lock_await(struct rm_run_lock *lock, const char *directory, struct rm_error *error);

/* Call while it is held, again and again: a file that was removed is made and locked again. Errors
 * as rm_run_lock_take(): another daemon was faster, and has the run now. The old lock stays held
 * then. */
int rm_run_lock_keep(struct rm_run_lock *lock, struct rm_error *error);

/* Removes the file and releases the lock. Does nothing if no lock is held. */
void rm_run_lock_leave(struct rm_run_lock *lock);

/* The holder that the file names, and where it runs. For tests too. */
struct rm_run_holder {
    int pid;
    char host[64], boot[40];
};
enum rm_run_holding {
    RM_HELD_BY_NONE,       /* the file says nothing */
    RM_HELD_HERE,          /* by a process of this boot */
    RM_HELD_BEFORE,        /* in an earlier boot of this host */
    RM_HELD_ON_OTHER_HOST, /* on another host */
};
void rm_run_holder_self(struct rm_run_holder *self);
enum rm_run_holding rm_run_holding_of(const char *text, const struct rm_run_holder *self,
                                      struct rm_run_holder *holder);

#endif
