/* pool: the threads of one backend. Work is a number of tiles; each is run once, by whichever
 * thread takes it, tiles of like numbers by the same one if it can. What a tile computes must not
 * depend on which one that is.
 *
 * Helpers spin for some microseconds after a job and then sleep, so an idle owner costs nothing.
 * Only the owner's thread may call run; it takes tiles too and returns when all are done. */
#ifndef RM_LEARNER_BACKEND_POOL_H
#define RM_LEARNER_BACKEND_POOL_H

#include "shm/base/error.h"

#include <stdint.h>

struct rm_pool;

typedef void (*rm_pool_fn)(void *work, uint32_t tile);

/* threads: in all, the caller's included; 1 starts none. */
int rm_pool_create(struct rm_pool **pool, uint32_t threads, struct rm_error *error);
void rm_pool_destroy(struct rm_pool *pool);
void rm_pool_run(struct rm_pool *pool, rm_pool_fn fn, void *work, uint32_t tiles);
uint32_t rm_pool_threads(const struct rm_pool *pool);

#endif
