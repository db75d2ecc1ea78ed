/* place: the control socket of a running experiment, and the lock beside it. The process that holds
 * the lock (flock) is the daemon of that name. The kernel releases the lock when the process ends
 * in any way, so the holder of the lock treats a socket that it finds as a leftover.
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
    bool bound;                        /* this daemon has made the socket, and removes it */
    int listen_fd;                     /* -1 = none, or passed on */
};

/* Creates the directories (mode 0755; below /tmp 0700, and they must belong to this user) and takes
 * the lock. -EEXIST: another daemon holds it; the message has its pid. -EAGAIN: the holder will
 * release it soon: it was killed, or is the sweeper of a killed daemon. */
int rm_place_take(struct rm_place *place, const char *socket, struct rm_error *error);

/* How long to try again after -EAGAIN: `turns` pauses. */
struct rm_place_patience {
    unsigned turns;
    void (*pause)(void *user);
    void *user;
};

/* The same, but waits for a holder that will release the lock soon. -EAGAIN: it did not; the
 * message names the holder. */
int rm_place_await(struct rm_place *place, const char *socket,
                   const struct rm_place_patience *patience, struct rm_error *error);

/* Removes a stale socket and listens on a new one of mode 0660. The descriptor is in listen_fd. */
int rm_place_listen(struct rm_place *place, struct rm_error *error);

/* Removes the socket, the lock, and the directory if it is then empty. Does nothing if the lock is
 * not held. */
void rm_place_leave(struct rm_place *place);

#endif
