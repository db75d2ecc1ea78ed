/* attention: which rows a row of attention sees, and which of its weights are dropped in training,
 * for both backends.
 *
 * In a packed history (learner/net/history.h) the last `queries` rows of a sample are queries. A
 * query sees itself and some of the rows before the queries; no other row sees a query. */
#ifndef RM_LEARNER_BACKEND_ATTENTION_H
#define RM_LEARNER_BACKEND_ATTENTION_H

#include "learner/backend/dropout.h"
#include "shm/base/both.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys of a block on the CPU. */
#define RM_ATTENTION_KEYS 64u

/* On the CPU, forward: keys and values of rows that come before the rows of each sample, a context
 * that grows. The operation adds the sample's own context rows. Sample i has its own at
 * i * stride, in blocks of RM_ATTENTION_KEYS rows: keys transposed, so (blocks, units, rows of a
 * block), values (blocks, heads, rows of a block, units / heads). */
struct rm_attention_kept {
    const uint32_t *rows; /* (batch) that are there; NULL: nothing is kept */
    float *keys, *values;
    size_t stride;
};

/* Attention over the rows of each sample: sample i has rows spans[i] to spans[i + 1]. A row of qkv
 * is a query, a key and a value of `units` each, heads side by side in each. */
struct rm_attention {
    const uint32_t *spans; /* (batch + 1) */
    uint32_t batch, heads, units;
    bool causal;      /* a row sees itself and the earlier rows of its sample */
    uint32_t rows;    /* as in rm_spans: of o and d_qkv */
    uint32_t queries; /* number of queries at the end of every sample, with `causal`; 0: no
                       * packed history */
    struct rm_attention_kept kept;
    bool queries_alone;        /* on the CPU: only queries get a result, and have a gradient of o */
    struct rm_dropout dropout; /* of weights */
    uint32_t before;           /* for dropout: samples of the batch before these */
};

/* Number of context rows in a sample of `rows` rows. */
RM_BOTH uint32_t rm_attention_context(uint32_t rows, uint32_t queries)
{
    return rows > queries ? rows - queries : 0;
}

/* Row `row` sees that many of the first rows; a query also sees itself, which does not count. */
RM_BOTH uint32_t rm_attention_seen(uint32_t rows, uint32_t queries, uint32_t row)
{
    if (row < rm_attention_context(rows, queries))
        return row + 1;
    return row + 1 > queries ? row + 1 - queries : 0;
}

/* The dropout key of a row's weights. `sample` is the sample's index in the batch. */
RM_BOTH uint32_t rm_attention_row_key(const struct rm_dropout *d, uint32_t sample, uint32_t head,
                                      uint32_t row)
{
    return rm_dropout_part(d, ((uint64_t)sample << 32) + ((uint64_t)head << 24) + row);
}

#endif
