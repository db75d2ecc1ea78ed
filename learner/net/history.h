/* history: the layout of packed histories, the input of networks that begin with the layer
 * `history`. One sample has all queries of a region, which share one context (exact, because the
 * context never sees a query).
 *
 * A sample is a matrix (places, RM_HISTORY_FEATURES + features) of floats, row-major: places for
 * context rows, then `queries` places, each with a query. So places = context places + queries. A
 * row has:
 *
 *   [0] kind     enum rm_history_kind (learner/backend/history_codes.h)
 *   [1] query    of a query: its code, a whole number below the network's query codes; else 0
 *   [2...]       of a transition: its features; of a query, if the network has no query codes: the
 *                observation, then zeros; else 0
 *
 * Unused context places are zeros, and have no row in the network. With C context rows before the
 * queries, query q of Q sees the first C - Q + 1 + q context rows and itself; context row i sees
 * rows 0 to i. The position of a row is the number of rows that it sees besides itself. If a sample
 * has one query, the query sees the whole context.
 *
 * The network's result for a sample is (queries, actions + types): logits of the action, then
 * logits of the type. Actions are shape.actions, queries and types shape.history. Plain data. */
#ifndef RM_LEARNER_NET_HISTORY_H
#define RM_LEARNER_NET_HISTORY_H

#include "config/net_shape.h"
#include "learner/backend/history_codes.h"

#include <string.h>

/* Floats of a row before its features. */
#define RM_HISTORY_FEATURES 2u

static inline uint32_t rm_history_width(uint32_t features)
{
    return RM_HISTORY_FEATURES + features;
}

/* Context rows that query `query` of `queries` sees, with `context` of them. */
static inline uint32_t rm_history_seen(uint32_t context, uint32_t queries, uint32_t query)
{
    return rm_attention_seen(context + queries, queries, context + query);
}

/* Writes a row of (RM_HISTORY_FEATURES + features) floats; features NULL: zeros. */
static inline void rm_history_put(float *row, enum rm_history_kind kind, uint32_t query,
                                  const float *features, uint32_t count)
{
    row[0] = (float)kind;
    row[1] = (float)query;
    if (features)
        memcpy(row + RM_HISTORY_FEATURES, features, count * sizeof *row);
    else
        memset(row + RM_HISTORY_FEATURES, 0, count * sizeof *row);
}

/* The shape of a network over packed histories. */
static inline struct rm_net_shape rm_history_shape(uint32_t context, uint32_t queries,
                                                   uint32_t features, uint32_t query_codes,
                                                   uint32_t actions, uint32_t types)
{
    const uint32_t places = context + queries, width = rm_history_width(features);
    return (struct rm_net_shape){
        .inputs = places * width,
        .actions = actions,
        .outputs_per_action = 1,
        .head = RM_HEAD_LOGITS,
        .dims = 2,
        .dim = {places, width},
        .history = {.queries = queries, .query_codes = query_codes, .types = types}};
}

/* The same network for one query at a time, with the same layout of parameters. */
static inline struct rm_net_shape rm_history_alone(struct rm_net_shape shape)
{
    shape.dim[0] -= shape.history.queries - 1;
    shape.inputs = shape.dim[0] * shape.dim[1];
    shape.history.queries = 1;
    return shape;
}

#endif
