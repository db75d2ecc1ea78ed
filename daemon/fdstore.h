/* fdstore: the service manager keeps the descriptors of replay, weights and board, so that they
 * outlive a daemon that is killed: the next one takes them over and training goes on with the
 * replay it had. Without a service manager, or one that keeps nothing, all of this does nothing.
 *
 * The event loop's thread only. */
#ifndef RM_DAEMON_FDSTORE_H
#define RM_DAEMON_FDSTORE_H

#include "shm/session/session.h"

#include <stdbool.h>
#include <stdint.h>

#define RM_FDSTORE_MAX 4096

/* Does the service manager give anything back? It stays untouched. */
bool rm_fdstore_has_some(void);

/* What the service manager gives back at start, in the order in which it was kept. Returns how many
 * descriptors there are, 0 for none; they are the caller's, close-on-exec. */
uint32_t rm_fdstore_take(int *fds, uint32_t max);

/* Has it keep the session's objects, in place of what it kept before. */
void rm_fdstore_keep(const struct rm_session *session);

/* Has it keep nothing any more: the run is over, or what was kept is of no use. */
void rm_fdstore_forget(uint32_t count);

#endif
