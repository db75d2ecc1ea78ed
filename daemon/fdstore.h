/* fdstore: gives the descriptors of replay, weights and board to the service manager, which keeps
 * them if the daemon is killed. The next daemon takes them over, and training continues with the
 * same replay. Without a service manager, or if it keeps no descriptors, these functions do
 * nothing.
 *
 * The event loop's thread only. */
#ifndef RM_DAEMON_FDSTORE_H
#define RM_DAEMON_FDSTORE_H

#include "shm/session/session.h"

#include <stdbool.h>
#include <stdint.h>

#define RM_FDSTORE_MAX 4096

/* Has the service manager returned descriptors to this process? Takes none of them. */
bool rm_fdstore_has_some(void);

/* Takes the descriptors that the service manager returned at start, in the order in which they were
 * given. Returns their number. The caller owns them; they are close-on-exec. */
uint32_t rm_fdstore_take(int *fds, uint32_t max);

/* Gives the session's objects to the service manager, in place of earlier ones. */
void rm_fdstore_keep(const struct rm_session *session);

/* Removes the `count` kept descriptors: the run is over, or the kept objects do not match. */
void rm_fdstore_forget(uint32_t count);

#endif
