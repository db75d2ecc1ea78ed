/* cache: keys and values of lanes' context rows, for a network over histories (history.h) that
 * computes one query at a time. A pass computes only the new rows, not the whole history again. The
 * result has the same bits.
 *
 * The input of such a pass has, for each lane, the context rows that follow those in the cache,
 * then zeros, then one query. The pass adds the context rows to the cache, but not the query. All
 * rows of a lane together must fit into the network's places.
 *
 * The cache depends on the parameters: forget it when they change, and when rows are removed or
 * moved. For networks of one query (rm_history_alone()), on the CPU. Belongs to the thread of the
 * workspace; nothing is allocated after create. */
#ifndef RM_LEARNER_NET_CACHE_H
#define RM_LEARNER_NET_CACHE_H

#include "learner/net/net.h"

/* The network outlives the cache. */
int rm_net_cache_create(struct rm_net_cache **cache, const struct rm_net *net, uint32_t lanes,
                        struct rm_error *error);
void rm_net_cache_destroy(struct rm_net_cache *cache); /* NULL: nothing */

/* Removes all rows of a lane. */
void rm_net_cache_forget(struct rm_net_cache *cache, uint32_t lane);

/* Number of a lane's context rows. */
uint32_t rm_net_cache_rows(const struct rm_net_cache *cache, uint32_t lane);

#endif
