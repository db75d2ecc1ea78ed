/* Rollouts made on the device: draws of actions, links between rows, orders of passes. */
#include "learner/backend/cuda/policy.h"
#include "learner/backend/cuda/softmax.h"

extern "C" {
#include "actor/env.h"
#include "shm/base/draw.h"
}

#define ROW_THREADS 256u
#define ENDED       (RM_ENV_TERMINATED | RM_ENV_TRUNCATED | RM_ENV_DEAD)
#define UNJOINED    (RM_ENV_FIRST | RM_ENV_VOID | RM_ENV_DEAD)

/* --- the beginning of a rollout -------------------------------------------------------------- */

__global__ static void first_row(struct rm_device_worlds d)
{
    const size_t all = (size_t)d.worlds * d.inputs;
    RM_EACH(i, all)
    {
        d.to_x[i] = d.x[i];
        if (i < d.worlds) {
            d.to_reward[i] = d.reward[i];
            d.to_flags[i] = d.flags[i];
        }
        if (i == 0)
            d.stage->row = 0;
    }
}

void rm_cuda_worlds_begin(struct rm_backend *b, const struct rm_device_worlds *d)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t all = (size_t)d->worlds * d->inputs;
    RM_RUN(c, first_row, rm_cuda_blocks(c, all, ROW_THREADS), ROW_THREADS, *d);
}

/* --- actions --------------------------------------------------------------------------------- */

/* Word `lane` of the stream of this choice and step, as rm_categorical_words() has it. */
__device__ static uint32_t word_of(const struct rm_device_worlds *d, uint32_t choice, size_t lane)
{
    struct rm_rng rng;
    uint32_t block[4];
    rm_draw_at(&rng, d->seed, RM_STREAM_ACT, choice, d->stage->step);
    rng.counter[0] = (uint32_t)(lane / 4);
    rm_draw_block(rng.key, rng.counter, block);
    return block[lane % 4];
}

/* The first action with cumulative weight above u * sum; never an action without weight. */
__device__ static int32_t pick(const struct choice *c, const struct softmax *s, uint32_t word)
{
    const float threshold = (float)(word >> 8) * 0x1p-24f * s->sum;
    float below = 0;
    int32_t count = 0, most = 0;
    for (uint32_t a = 0; a < c->actions; a++) {
        const float weight = expf(logit_of(c, a) - s->max);
        below += weight;
        count += below <= threshold;
        most = weight > 0 ? (int32_t)a : most;
    }
    return count < most ? count : most;
}

__global__ static void draw_actions(struct rm_device_worlds d, struct rm_device_draw k)
{
    const size_t row = d.stage->row;
    const uint32_t choices = k.distribution.choices;
    RM_EACH(lane, d.worlds)
    {
        const size_t at = row * d.worlds + lane;
        const float *logits = k.out + lane * k.outputs;
        float logp = 0;
        for (uint32_t i = 0; i < choices; logits += k.distribution.choice_actions[i++]) {
            const struct choice c = {logits, NULL, k.distribution.choice_actions[i]};
            const struct softmax s = softmax_of(&c);
            const int32_t action = pick(&c, &s, word_of(&d, i, d.first_world + lane));
            logp += logp_of(&c, &s, action);
            d.to_action[at * choices + i] = action;
        }
        d.to_logp[at] = logp;
        d.to_value[at] = k.out[(lane + 1) * k.outputs - 1];
    }
}

void rm_cuda_worlds_draw(struct rm_backend *b, const struct rm_device_worlds *d,
                         const struct rm_device_draw *k)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, draw_actions, rm_cuda_blocks(c, d->worlds, ROW_THREADS), ROW_THREADS, *d, *k);
}

/* --- the end of a rollout -------------------------------------------------------------------- */

/* Number of the block's earlier threads that say yes, and of all. */
__device__ static uint32_t before(bool yes, uint32_t *room, uint32_t *all)
{
    const unsigned t = threadIdx.x;
    room[t] = yes;
    __syncthreads();
    for (unsigned reach = 1; reach < RM_SUM_THREADS; reach *= 2) {
        const uint32_t more = t >= reach ? room[t - reach] : 0;
        __syncthreads();
        room[t] += more;
        __syncthreads();
    }
    const uint32_t own = room[t] - yes;
    *all = room[RM_SUM_THREADS - 1];
    __syncthreads();
    return own;
}

/* One block: lists the rows that are samples, in order, and counts actions and episodes that
 * ended. */
__global__ static void link_rows(struct rm_device_worlds d, struct rm_device_orders k)
{
    __shared__ uint32_t room[RM_SUM_THREADS];
    const size_t rows = (size_t)d.steps * d.worlds;
    uint32_t samples = 0, answers = 0, episodes = 0, all;
    for (size_t from = 0; from < rows; from += RM_SUM_THREADS) {
        const size_t i = from + threadIdx.x;
        const bool there = i < rows;
        const uint8_t now = there ? d.to_flags[i] : 0;
        const uint8_t next = there ? d.to_flags[i + d.worlds] : 0;
        const bool sample = there && !(now & ENDED) && !(next & UNJOINED);
        const double ended = there ? d.ended[i] : NAN;
        if (there) {
            d.valid[i] = sample;
            d.discount[i] = sample && !(next & RM_ENV_TERMINATED) ? d.gamma : 0;
        }
        const uint32_t place = samples + before(sample, room, &all);
        samples += all;
        if (sample)
            d.sample[place] = (uint32_t)i;
        before(there && !(now & ENDED), room, &all);
        answers += all;
        const uint32_t score = episodes + before(!isnan(ended), room, &all);
        episodes += all;
        if (!isnan(ended))
            d.stage->scores[score % RM_DEVICE_SCORES] = ended;
    }
    if (threadIdx.x != 0)
        return;
    struct rm_rollout_passes passes = {};
    passes.samples = passes.entries = samples;
    passes.parts = samples < k.parts ? samples : k.parts;
    passes.epochs = k.epochs;
    *k.passes = passes;
    d.stage->samples = samples;
    d.stage->answers = answers;
    d.stage->episodes = episodes;
    d.stage->rollout++;
}

#define FEISTEL_ROUNDS 6

/* A permutation of [0, 2^(2 half)). */
__device__ static uint32_t feistel(uint32_t x, uint32_t half, const uint32_t key[4])
{
    const uint32_t mask = (1u << half) - 1;
    uint32_t left = x >> half, right = x & mask;
    for (uint32_t round = 0; round < FEISTEL_ROUNDS; round++) {
        uint32_t h = (right ^ key[round % 4]) * 0x85ebca6bu + round * 0x9e3779b9u;
        h = (h ^ (h >> 13)) * 0xc2b2ae35u;
        h ^= h >> 16;
        const uint32_t old = right;
        right = (left ^ h) & mask;
        left = old;
    }
    return left << half | right;
}

/* The position of i in a permutation of [0, n): positions outside are permuted again until they are
 * inside. */
__device__ static uint32_t permuted(uint32_t i, uint32_t n, const uint32_t key[4])
{
    uint32_t half = 1;
    while (half < 16 && (1u << 2 * half) < n)
        half++;
    do {
        i = feistel(i, half, key);
    } while (i >= n);
    return i;
}

__global__ static void make_orders(struct rm_device_worlds d, struct rm_device_orders k)
{
    const size_t stride = (size_t)d.steps * d.worlds;
    const uint32_t samples = d.stage->samples;
    RM_EACH(i, stride * k.epochs)
    {
        const uint32_t pass = (uint32_t)(i / stride), at = (uint32_t)(i % stride);
        struct rm_rng rng;
        uint32_t key[4];
        if (at >= samples)
            continue;
        rm_draw_at(&rng, k.seed, RM_STREAM_SHUFFLE, k.policy | k.device << 16,
                   (d.stage->rollout - 1) * k.epochs + pass);
        rm_draw_block(rng.key, rng.counter, key);
        k.order[i] = d.sample[k.shuffled ? permuted(at, samples, key) : at];
    }
}

void rm_cuda_worlds_end(struct rm_backend *b, const struct rm_device_worlds *d,
                        const struct rm_device_orders *k)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t all = (size_t)d->steps * d->worlds * k->epochs;
    RM_RUN(c, link_rows, 1, RM_SUM_THREADS, *d, *k);
    RM_RUN(c, make_orders, rm_cuda_blocks(c, all, ROW_THREADS), ROW_THREADS, *d, *k);
}
