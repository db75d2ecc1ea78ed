/* Counter-based random numbers: Philox4x32-10 (Salmon et al., 2011, "Parallel random numbers: as
 * easy as 1, 2, 3"). A draw is a pure function of (seed, stream, a, b, c), so sequential, lockstep
 * and free-running runs can draw the same numbers under any scheduling and with any number of
 * processes.
 *
 * Callable from any thread; nothing is shared.  */
#ifndef RM_SHM_BASE_RNG_H
#define RM_SHM_BASE_RNG_H

#include <stdint.h>

/* What a stream is for. Two streams never share numbers, even with equal coordinates.
 * Append only: the values are part of what makes a run reproducible. */
enum rm_rng_stream {
    RM_STREAM_WORLD = 1, /* world dynamics: a = world id, b = episode, c = draw */
    RM_STREAM_EXPLORE,   /* exploring: a = lane, b = step */
    RM_STREAM_ACT,       /* acting quantiles: a = lane, b = step */
    RM_STREAM_INIT,      /* initial parameters: a = policy */
    RM_STREAM_SAMPLE,    /* replay sampling: a = policy, b = update */
    RM_STREAM_NOISE,     /* noisy layers: a = policy, b = update */
    RM_STREAM_TAU,       /* training quantiles: a = policy, b = update */
    RM_STREAM_EVALUATE,  /* evaluation worlds */
    RM_STREAM_TEST,      /* tests and benchmarks only */
    RM_STREAM_SHUFFLE,   /* minibatches of a rollout: a = policy, b = pass */
    RM_STREAM_DROPOUT,   /* dropout: a = layer, b = update */
    RM_STREAM_FROZEN,    /* which snapshot an opponent plays: a = policy, b = snapshots taken */
    RM_STREAM_ACT_NOISE, /* noisy layers while acting: a = policy, b = step */
    RM_STREAM_ACT_REAL,  /* real actions: a = lane, b = step */
    RM_STREAM_REALS,     /* real actions while training: a = policy, b = update */
    RM_STREAM_RESAMPLE,  /* bootstrap over seeds, in reports */
};

/* One block: 128 random bits for (key, counter). */
void rm_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4]);

/* `n` blocks at once: out[4 * i ..] is the block at `counter` with i added to its first word
 * (modulo 2^32). The same numbers as n calls of rm_philox(), several times faster from about 16
 * blocks on, with the widest vectors that the processor has. */
void rm_philox_blocks(uint64_t key, const uint32_t counter[4], uint32_t *out, uint32_t n);

/* A sequential reader of one stream. Copyable; 40-odd bytes; no allocation. */
struct rm_rng {
    uint64_t key;
    uint32_t counter[4]; /* counter[0] runs; 1..3 are the coordinates */
    uint32_t block[4];
    uint32_t used; /* words of `block` consumed, 4 = empty */
};

/* A stream at coordinates (a, b) of `seed`. 2^34 words before it repeats. `b` uses 64 bits.
 * Key = mix(seed + stream * odd constant), mix the finaliser of SplitMix64 (Steele et al., 2014), a
 * bijection: so two streams of a seed never share a key. Counter = (running, a, b low, b high). */
struct rm_rng rm_rng_at(uint64_t seed, enum rm_rng_stream stream, uint32_t a, uint64_t b);

uint32_t rm_rng_u32(struct rm_rng *rng);

/* Uniform in [0, 1): 24 bits of a word, every value exactly representable. */
float rm_rng_float(struct rm_rng *rng);

/* The next n words: the same as n calls of rm_rng_u32(), but faster. */
void rm_rng_fill_u32(struct rm_rng *rng, uint32_t *out, uint32_t n);

/* Uniform in [0, 1): 53 bits. */
double rm_rng_double(struct rm_rng *rng);

/* Uniform in [0, n), n > 0, without bias (Lemire 2019, with rejection). */
uint32_t rm_rng_below(struct rm_rng *rng, uint32_t n);

static inline float rm_float_from_u32(uint32_t word)
{
    return (float)(word >> 8) * 0x1p-24f;
}

#endif
