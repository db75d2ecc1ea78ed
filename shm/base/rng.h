/* Counter-based random numbers: Philox4x32-10 (Salmon et al., 2011, "Parallel random numbers: as easy
 * as 1, 2, 3"). A draw is a pure function of (seed, stream, a, b, c), so sequential, lockstep and
 * free-running runs can draw the same numbers whatever the scheduling or the number of processes.
 *
 * Callable from any thread; nothing is shared. */
#ifndef RM_SHM_BASE_RNG_H
#define RM_SHM_BASE_RNG_H

#include <stdint.h>

/* What a stream is for. Two streams never share numbers, even with equal coordinates.
 * Append only: the values are part of what makes a run reproducible. */
enum rm_rng_stream {
    RM_STREAM_WORLD = 1,  /* world dynamics: a = world id, b = episode, c = draw */
    RM_STREAM_EXPLORE,    /* exploring: a = lane, b = step */
    RM_STREAM_ACT,        /* acting quantiles: a = lane, b = step */
    RM_STREAM_INIT,       /* initial parameters: a = policy */
    RM_STREAM_SAMPLE,     /* replay sampling: a = policy, b = update */
    RM_STREAM_NOISE,      /* noisy layers: a = policy, b = update */
    RM_STREAM_TAU,        /* training quantiles: a = policy, b = update */
    RM_STREAM_EVALUATE,   /* evaluation worlds */
    RM_STREAM_TEST,       /* tests and benchmarks only */
};

/* One block: 128 random bits for (key, counter). */
void rm_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4]);

/* A sequential reader of one stream. Copyable; 40-odd bytes; no allocation. */
struct rm_rng {
    uint64_t key;
    uint32_t counter[4]; /* counter[0] runs; 1..3 are the coordinates */
    uint32_t block[4];
    uint32_t used; /* words of `block` consumed, 4 = empty */
};

/* A stream at coordinates (a, b) of `seed`. 2^34 words before it repeats. `b` uses 64 bits. */
struct rm_rng rm_rng_at(uint64_t seed, enum rm_rng_stream stream, uint32_t a, uint64_t b);

uint32_t rm_rng_u32(struct rm_rng *rng);

/* Uniform in [0, 1): 24 bits of a word, every value exactly representable. */
float rm_rng_float(struct rm_rng *rng);

/* Uniform in [0, 1): 53 bits. */
double rm_rng_double(struct rm_rng *rng);

/* Uniform in [0, n), n > 0, without bias (Lemire 2019, with rejection). */
uint32_t rm_rng_below(struct rm_rng *rng, uint32_t n);

static inline float rm_float_from_u32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

#endif
