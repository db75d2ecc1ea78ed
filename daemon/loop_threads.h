/* loop_threads: the threads of libuv's pool, for work that may wait for the disk. libuv creates
 * them at the first piece of work, and aborts the process if it cannot. So the daemon creates them
 * before it starts anything else, and tries first whether the process may have so many. */
#ifndef RM_DAEMON_LOOP_THREADS_H
#define RM_DAEMON_LOOP_THREADS_H

#include "shm/base/error.h"

#include <uv.h>

/* Starts the pool of this process. `more`: number of further threads that the daemon will create;
 * they are tried too. -EAGAIN, -ENOMEM: the process may not have so many threads, and none is left.
 */
int rm_loop_threads_start(uv_loop_t *loop, unsigned more, struct rm_error *error);

#endif
