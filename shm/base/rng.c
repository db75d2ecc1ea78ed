#include "shm/base/rng.h"

#include "shm/base/draw.h"
#include "shm/base/isa.h"
#include "shm/base/philox.h"

#define BLOCK_WORDS 4u

static rm_philox_blocks_fn *const blocks_of_level[RM_LEVEL_COUNT] = {
    rm_isa_v2_philox_blocks, rm_isa_v3_philox_blocks, rm_isa_v4_philox_blocks};

void rm_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4])
{
    rm_draw_block(key, counter, out);
}

void rm_philox_blocks(uint64_t key, const uint32_t counter[4], uint32_t *out, uint32_t n)
{
    blocks_of_level[rm_isa_level()](key, counter, out, n);
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
