/* draw: the random numbers of rng.h, written once for processes and kernels (both.h). rng.c wraps
 * these functions; kernels, and worlds that also run in kernels, call them directly. */
#ifndef RM_SHM_BASE_DRAW_H
#define RM_SHM_BASE_DRAW_H

#include "shm/base/both.h"
#include "shm/base/philox.h"
#include "shm/base/rng.h"

/* See rm_philox(). */
RM_BOTH void rm_draw_block(uint64_t key, const uint32_t counter[4], uint32_t out[4])
{
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < RM_PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)RM_PHILOX_M0 * x0;
        uint64_t p1 = (uint64_t)RM_PHILOX_M1 * x2;
        x0 = (uint32_t)(p1 >> 32) ^ x1 ^ k0;
        x1 = (uint32_t)p1;
        x2 = (uint32_t)(p0 >> 32) ^ x3 ^ k1;
        x3 = (uint32_t)p0;
        k0 += RM_PHILOX_W0;
        k1 += RM_PHILOX_W1;
    }
    out[0] = x0;
    out[1] = x1;
    out[2] = x2;
    out[3] = x3;
}

/* See rm_rng_at(). */
RM_BOTH void rm_draw_at(struct rm_rng *rng, uint64_t seed, enum rm_rng_stream stream, uint32_t a,
                        uint64_t b)
{
    uint64_t x = seed + (uint64_t)stream * 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    rng->key = x ^ (x >> 31);
    rng->counter[0] = 0;
    rng->counter[1] = a;
    rng->counter[2] = (uint32_t)b;
    rng->counter[3] = (uint32_t)(b >> 32);
    for (int i = 0; i < 4; i++)
        rng->block[i] = 0;
    rng->used = 4;
}

/* The stream of an episode of a world. The high word of a world id goes into the high bits of the
 * second coordinate, which no episode number reaches. */
RM_BOTH void rm_draw_world(struct rm_rng *rng, uint64_t seed, uint64_t world, uint64_t episode)
{
    rm_draw_at(rng, seed, RM_STREAM_WORLD, (uint32_t)world, episode + ((world >> 32) << 40));
}

/* See rm_rng_u32(). */
RM_BOTH uint32_t rm_draw_u32(struct rm_rng *rng)
{
    if (rng->used >= 4) {
        rm_draw_block(rng->key, rng->counter, rng->block);
        rng->counter[0]++;
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

/* See rm_rng_double(). */
RM_BOTH double rm_draw_double(struct rm_rng *rng)
{
    const uint64_t high = rm_draw_u32(rng), low = rm_draw_u32(rng);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

/* See rm_rng_below(). */
RM_BOTH uint32_t rm_draw_below(struct rm_rng *rng, uint32_t n)
{
    /* The high half of word * n; words whose low half falls under 2^32 mod n are over-represented
     * and drawn again. The modulo is only computed when it may matter. */
    uint64_t product = (uint64_t)rm_draw_u32(rng) * n;
    if ((uint32_t)product < n) {
        const uint32_t threshold = (0u - n) % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)rm_draw_u32(rng) * n;
    }
    return (uint32_t)(product >> 32);
}

#endif
