/* cache: keys and values of what lanes have seen, for a network over histories (history.h) that is
 * asked one query at a time: a pass computes the rows that are new, and not the whole history
 * again. The result has the same bits.
 *
 * A row of such a pass is the context rows that follow those in the cache, zeros, and one query.
 * The context rows are added, and the query is not, so the next pass may follow. Together, a lane's
 * rows have to fit into the network's places.
 *
 * What is in the cache belongs to the parameters that made it: forget it when they change, and when
 * rows go or move. For networks of one query (rm_history_alone()), on the CPU. Belongs to the
 * thread of the workspace; nothing is allocated after create. */
#ifndef RM_LEARNER_NET_CACHE_H
#define RM_LEARNER_NET_CACHE_H

#include "learner/net/net.h"

/* The network outlives the cache. */
int rm_net_cache_create(struct rm_net_cache **cache, const struct rm_net *net, uint32_t lanes,
                        struct rm_error *error);
void rm_net_cache_destroy(struct rm_net_cache *cache); /* NULL: nothing */

/* The lane has no rows. */
void rm_net_cache_forget(struct rm_net_cache *cache, uint32_t lane);

/* Context rows of a lane. */
uint32_t rm_net_cache_rows(const struct rm_net_cache *cache, uint32_t lane);

#endif
