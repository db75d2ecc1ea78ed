#include "shm/base/rng.h"

#include "shm/base/draw.h"
#include "shm/base/philox.h"

#define BLOCK_WORDS 4u

void rm_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4])
{
    rm_draw_block(key, counter, out);
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

struct rm_rng rm_rng_at(uint64_t seed, enum rm_rng_stream stream, uint32_t a, uint64_t b)
{
    struct rm_rng rng;
    rm_draw_at(&rng, seed, stream, a, b);
    return rng;
}

uint32_t rm_rng_u32(struct rm_rng *rng)
{
    return rm_draw_u32(rng);
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

float rm_rng_float(struct rm_rng *rng)
{
    return rm_float_from_u32(rm_rng_u32(rng));
}

double rm_rng_double(struct rm_rng *rng)
{
    return rm_draw_double(rng);
}

uint32_t rm_rng_below(struct rm_rng *rng, uint32_t n)
{
    return rm_draw_below(rng, n);
}
