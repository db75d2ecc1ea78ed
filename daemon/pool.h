/* pool: the threads of libuv's pool, which do what may wait for the disk. libuv makes them at the
 * first piece of work and ends the process by abort() when it cannot; here they are made before
 * anything else is started, and what they need is tried first. */
#ifndef RM_DAEMON_POOL_H
#define RM_DAEMON_POOL_H

#include "shm/base/error.h"

#include <uv.h>

/* Starts the pool of this process. `more`: threads that are made besides, which are tried as well.
 * -EAGAIN, -ENOMEM: the process may not have so many; none is left. */
int rm_pool_start(uv_loop_t *loop, unsigned more, struct rm_error *error);

#endif
