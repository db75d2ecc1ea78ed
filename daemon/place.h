/* place: the one place in the file system that a running experiment occupies: its control socket
 * and the lock beside it. Holding the lock (flock) is what being the daemon of that name means: it
 * vanishes with the process however that ends, so a socket found while holding it is a leftover.
 *
 * Owned by the daemon; one thread. */
#ifndef RM_DAEMON_PLACE_H
#define RM_DAEMON_PLACE_H

#include "daemon/socket_path.h"
#include "shm/base/error.h"

#include <stdbool.h>

struct rm_place {
    char socket[RM_SOCKET_PATH_MAX];
    char lock[RM_SOCKET_PATH_MAX + 8]; /* socket + ".lock" */
    int lock_fd;                       /* -1 = not held */
    bool bound;                        /* the socket is ours to remove */
    int listen_fd;                     /* -1 = none, or handed on */
};

/* Makes the directories (mode 0755, below /tmp 0700 and checked to be ours), takes the lock.
 * -EEXIST: another daemon holds it; the message has its pid. -EAGAIN: its owner is about to let go:
 * it was killed, or sweeps up behind one that was. */
int rm_place_take(struct rm_place *place, const char *socket, struct rm_error *error);

/* How long -EAGAIN is waited out: so many pauses. */
struct rm_place_patience {
    unsigned turns;
    void (*pause)(void *user);
    void *user;
};

/* The same, waiting for who is about to let go. -EAGAIN: it did not, and the message says who. */
int rm_place_await(struct rm_place *place, const char *socket,
                   const struct rm_place_patience *patience, struct rm_error *error);

/* Removes a stale socket and listens on a new one of mode 0660. The descriptor is in listen_fd. */
int rm_place_listen(struct rm_place *place, struct rm_error *error);

/* Removes socket, lock and the directory if that leaves it empty. Harmless when nothing is held. */
void rm_place_leave(struct rm_place *place);

#endif
