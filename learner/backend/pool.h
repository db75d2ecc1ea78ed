/* pool: the threads of one backend. A job is a number of tiles; one thread runs each tile, once.
 * Each thread runs the same tiles in every job, unless another thread is idle and takes them over.
 * A tile's result must not depend on the thread.
 *
 * Helpers spin for some microseconds after a job and then sleep, so an idle owner costs nothing.
 * Only the owner's thread may call run; it runs tiles too, and returns when all are done. */
#ifndef RM_LEARNER_BACKEND_POOL_H
#define RM_LEARNER_BACKEND_POOL_H

#include "shm/base/error.h"

#include <stdint.h>

struct rm_pool;

typedef void (*rm_pool_fn)(void *work, uint32_t tile);

/* threads: number of threads, the caller's included; 1 starts none. */
int rm_pool_create(struct rm_pool **pool, uint32_t threads, struct rm_error *error);
void rm_pool_destroy(struct rm_pool *pool);
void rm_pool_run(struct rm_pool *pool, rm_pool_fn fn, void *work, uint32_t tiles);
uint32_t rm_pool_threads(const struct rm_pool *pool);

#endif
