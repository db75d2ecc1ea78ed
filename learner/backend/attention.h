/* attention: what a row of attention sees, and which of its weights are dropped in training, for
 * both backends.
 *
 * Of a packed history (learner/net/history.h) the last `queries` rows of a sample are queries. A
 * query sees a part of the rows before the queries and itself; no other row sees it. */
#ifndef RM_LEARNER_BACKEND_ATTENTION_H
#define RM_LEARNER_BACKEND_ATTENTION_H

#include "shm/base/both.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Dropout of weights. A weight is kept or dropped by a hash of its place and of `key`. */
struct rm_attention_dropout {
    uint64_t key;    /* of seed, update and layer */
    uint32_t below;  /* rate * 2^32; 0: no dropout */
    float scale;     /* 1 / (1 - rate) */
    uint32_t before; /* samples of the batch before the first of these */
};

/* Attention over the rows of each sample: sample i has rows spans[i] to spans[i + 1]. A row of qkv
 * is a query, a key and a value of `units` each, heads side by side in each. */
struct rm_attention {
    const uint32_t *spans; /* (batch + 1) */
    uint32_t batch, heads, units;
    bool causal;      /* a row sees itself and the earlier rows of its sample */
    uint32_t rows;    /* as in rm_spans: of o and d_qkv */
    uint32_t queries; /* last rows of every sample, which is causal then; 0: no history */
    struct rm_attention_dropout dropout;
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

/* Multiplies and shifts until every bit depends on all (Wellons, hash-prospector: "lowbias32"). */
RM_BOTH uint32_t rm_attention_hash(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

/* The key of all weights of a row. `sample` counts from the first of the batch. */
RM_BOTH uint32_t rm_attention_row_key(const struct rm_attention_dropout *d, uint32_t sample,
                                      uint32_t head, uint32_t row)
{
    uint32_t key = rm_attention_hash((uint32_t)d->key ^ (sample + d->before));
    key = rm_attention_hash(key ^ (uint32_t)(d->key >> 32) ^ (head << 24));
    return rm_attention_hash(key + row);
}

/* Mixing of SplitMix64 (Steele et al., 2014). */
RM_BOTH uint64_t rm_attention_mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Of a layer by its number; `rate` from 0 to below 1. */
RM_BOTH struct rm_attention_dropout rm_attention_dropout_of(uint64_t seed, uint32_t layer,
                                                            uint64_t update, double rate)
{
    struct rm_attention_dropout d;
    d.key = rm_attention_mixed(rm_attention_mixed(seed + layer) + update);
    d.below = (uint32_t)(rate * 4294967296.0);
    d.scale = (float)(1.0 / (1.0 - rate));
    d.before = 0;
    return d;
}

/* What becomes of the weight for row `at`: 0, or the scale. */
RM_BOTH float rm_attention_kept(uint32_t row_key, uint32_t at, uint32_t below, float scale)
{
    return rm_attention_hash(row_key + at * 0x9e3779b9u) < below ? 0.0f : scale;
}

#endif
