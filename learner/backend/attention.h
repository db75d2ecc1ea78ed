/* attention: what a row of attention sees, and which of its weights are dropped in training, for
 * both backends.
 *
 * Of a packed history (learner/net/history.h) the last `queries` rows of a sample are queries. A
 * query sees a part of the rows before the queries and itself; no other row sees it. */
#ifndef RM_LEARNER_BACKEND_ATTENTION_H
#define RM_LEARNER_BACKEND_ATTENTION_H

#include "learner/backend/dropout.h"
#include "shm/base/both.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Attention over the rows of each sample: sample i has rows spans[i] to spans[i + 1]. A row of qkv
 * is a query, a key and a value of `units` each, heads side by side in each. */
struct rm_attention {
    const uint32_t *spans; /* (batch + 1) */
    uint32_t batch, heads, units;
    bool causal;               /* a row sees itself and the earlier rows of its sample */
    uint32_t rows;             /* as in rm_spans: of o and d_qkv */
    uint32_t queries;          /* last rows of every sample, which is causal then; 0: no history */
    uint32_t first;            /* forward, on the CPU: rows of every sample before this one get no
                                * result, and need no query */
    struct rm_dropout dropout; /* of weights */
    uint32_t before;           /* for dropout: samples of the batch before these */
};

/* Rows of a sample of `rows` that are no queries. */
RM_BOTH uint32_t rm_attention_context(uint32_t rows, uint32_t queries)
{
    return rows > queries ? rows - queries : 0;
}

/* Number of the first rows that row `row` sees, without itself if it is a query. */
RM_BOTH uint32_t rm_attention_seen(uint32_t rows, uint32_t queries, uint32_t row)
{
    if (row < rm_attention_context(rows, queries))
        return row + 1;
    return row + 1 > queries ? row + 1 - queries : 0;
}

/* The key of the weights of a row. `sample` counts from the first of the batch. */
RM_BOTH uint32_t rm_attention_row_key(const struct rm_dropout *d, uint32_t sample, uint32_t head,
                                      uint32_t row)
{
    return rm_dropout_part(d, ((uint64_t)sample << 32) + ((uint64_t)head << 24) + row);
}

#endif
