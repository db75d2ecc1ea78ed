/* dropout: decides which numbers dropout drops (Srivastava et al., 2014), for both backends. A hash
 * of a number's place and of a key decides whether it is kept. The hash is cheap, because every
 * layer computes it for each of its numbers, in both passes. */
#ifndef RM_LEARNER_BACKEND_DROPOUT_H
#define RM_LEARNER_BACKEND_DROPOUT_H

#include "shm/base/both.h"

#include <stddef.h>
#include <stdint.h>

struct rm_dropout {
    uint64_t key;    /* of seed, stream and layer */
    uint64_t update; /* on a device, draws() adds to it */
    uint32_t below;  /* rate * 2^32; 0: no dropout */
    float scale;     /* 1 / (1 - rate) */
};

/* Mixing of SplitMix64 (Steele et al., 2014). */
RM_BOTH uint64_t rm_dropout_mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The dropout of layer number `layer`; 0 <= rate < 1. */
RM_BOTH struct rm_dropout rm_dropout_of(uint64_t seed, uint32_t stream, uint32_t layer,
                                        uint64_t update, double rate)
{
    struct rm_dropout d;
    d.key = rm_dropout_mixed(rm_dropout_mixed(seed + 0x9e3779b97f4a7c15u * (stream + 1u)) + layer);
    d.update = update;
    d.below = (uint32_t)(rate * 4294967296.0);
    d.scale = (float)(1.0 / (1.0 - rate));
    return d;
}

/* Multiplies and shifts until every bit depends on all bits of x (Wellons, hash-prospector:
 * "lowbias32"). */
RM_BOTH uint32_t rm_dropout_hash(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    x ^= x >> 16;
    return x;
}

/* The key of part `part` of the numbers: 2^32 numbers of a layer, or a row of attention. */
RM_BOTH uint32_t rm_dropout_part(const struct rm_dropout *d, uint64_t part)
{
    const uint64_t key = rm_dropout_mixed(rm_dropout_mixed(d->key + d->update) + part);
    return (uint32_t)(key ^ (key >> 32));
}

/* The factor of the number at place `at` of a part: 0, or the scale. */
RM_BOTH float rm_dropout_kept(uint32_t part_key, uint32_t at, uint32_t below, float scale)
{
    return rm_dropout_hash(part_key + at * 0x9e3779b9u) < below ? 0.0f : scale;
}

#endif
