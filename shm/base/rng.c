#include "shm/base/rng.h"

#include "shm/base/philox.h"

#define BLOCK_WORDS 4u

void rm_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4])
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

void rm_philox_blocks(uint64_t key, const uint32_t counter[4], uint32_t *out, uint32_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        rm_philox_blocks_v4(key, counter, out, n);
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2"))
        rm_philox_blocks_v3(key, counter, out, n);
    else
        rm_philox_blocks_v2(key, counter, out, n);
#else
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at[4] = {counter[0] + i, counter[1], counter[2], counter[3]};
        rm_philox(key, at, out + BLOCK_WORDS * (size_t)i);
    }
#endif
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

struct rm_rng rm_rng_at(uint64_t seed, enum rm_rng_stream stream, uint32_t a, uint64_t b)
{
    return (struct rm_rng){
        .key = mix(seed + (uint64_t)stream * 0x9e3779b97f4a7c15ull),
        .counter = {0, a, (uint32_t)b, (uint32_t)(b >> 32)},
        .used = BLOCK_WORDS,
    };
}

uint32_t rm_rng_u32(struct rm_rng *rng)
{
    if (rng->used >= BLOCK_WORDS) {
        rm_philox(rng->key, rng->counter, rng->block);
        rng->counter[0]++;
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

void rm_rng_fill_u32(struct rm_rng *rng, uint32_t *out, uint32_t n)
{
    for (; n > 0 && rng->used < BLOCK_WORDS; n--)
        *out++ = rng->block[rng->used++];
    uint32_t blocks = n / BLOCK_WORDS;
    rm_philox_blocks(rng->key, rng->counter, out, blocks);
    rng->counter[0] += blocks;
    out += BLOCK_WORDS * (size_t)blocks;
    for (n -= BLOCK_WORDS * blocks; n > 0; n--)
        *out++ = rm_rng_u32(rng);
}

void rm_rng_fill_float(struct rm_rng *rng, float *out, uint32_t n)
{
    uint32_t words[256];
    while (n > 0) {
        uint32_t part = n < 256 ? n : 256;
        rm_rng_fill_u32(rng, words, part);
        for (uint32_t i = 0; i < part; i++)
            out[i] = rm_float_from_u32(words[i]);
        out += part;
        n -= part;
    }
}

float rm_rng_float(struct rm_rng *rng)
{
    return rm_float_from_u32(rm_rng_u32(rng));
}

double rm_rng_double(struct rm_rng *rng)
{
    uint64_t high = rm_rng_u32(rng), low = rm_rng_u32(rng);
    return (double)((high << 32 | low) >> 11) * 0x1p-53;
}

uint32_t rm_rng_below(struct rm_rng *rng, uint32_t n)
{
    /* The high half of word * n; words whose low half falls under 2^32 mod n are over-represented
     * and drawn again. The modulo is only computed when it may matter. */
    uint64_t product = (uint64_t)rm_rng_u32(rng) * n;
    if ((uint32_t)product < n) {
        uint32_t threshold = (0u - n) % n;
        while ((uint32_t)product < threshold)
            product = (uint64_t)rm_rng_u32(rng) * n;
    }
    return (uint32_t)(product >> 32);
}
