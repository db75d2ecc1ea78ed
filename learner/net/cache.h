/* cache: acting on histories row by row. For each lane (a world, or an agent in it) the cache holds
 * the keys and values of the context's rows in every attention, so that a row costs a pass of that
 * row alone; the results are those of a whole forward pass (history.h).
 *
 * A lane's context begins empty. Its rows are transitions, begins and ends, in order; they stay
 * until rm_net_cache_clear(), because a row's position is part of its keys: when a region closes,
 * clear the lane and give it the rows of its new context. Queries see all rows of their lane so
 * far, and are not kept.
 *
 * On the CPU, without dropout; belongs to one thread. No allocation after rm_net_cache_create(). */
#ifndef RM_LEARNER_NET_CACHE_H
#define RM_LEARNER_NET_CACHE_H

#include "learner/net/net.h"

struct rm_net_cache;

/* `net` begins with a history and is compiled for one query; its places say nothing about the
 * number of rows in a lane, which is at most `rows`. `net` and `backend` outlive the cache.
 * -EINVAL, -ENOTSUP or -ENOMEM. */
int rm_net_cache_create(struct rm_net_cache **cache, const struct rm_net *net,
                        struct rm_backend *backend, uint32_t lanes, uint32_t rows,
                        struct rm_error *error);
void rm_net_cache_destroy(struct rm_net_cache *cache); /* NULL: nothing */

/* After every change of parameters, and before the first run. Clears all lanes. */
void rm_net_cache_prepare(struct rm_net_cache *cache, const float *params);

void rm_net_cache_clear(struct rm_net_cache *cache, uint32_t lane);
uint32_t rm_net_cache_rows(const struct rm_net_cache *cache, uint32_t lane);

/* Takes `count` rows, (count, width of a row) as in history.h; row i belongs to lane[i], and rows
 * of one lane follow each other in time. Writes (queries, actions + types) logits to `out`, in the
 * order of the queries among the rows. Returns the number of queries; -ENOSPC, and does nothing, if
 * a lane has no room for its rows. */
int rm_net_cache_run(struct rm_net_cache *cache, const float *params, const uint32_t *lane,
                     const float *rows, uint32_t count, float *out);

#endif
