/* Worlds stepped on the device, by the same rules as the actors'. A thread has a world. Compiled
 * without fused multiply-adds: transitions are the CPU's to the bit. */
#include "learner/backend/cuda/tables.h"

extern "C" {
#include "actor/worlds/builtin/cartpole_rules.h"
#include "actor/worlds/builtin/classic_state.h"
#include "actor/worlds/builtin/goodhart_rules.h"
}

#include <string.h>

#define WORLD_THREADS 64u
#define ROW_THREADS   256u

/* --- the rules of each ----------------------------------------------------------------------- */

struct goodhart {
    typedef struct rm_goodhart_rules rules;
    typedef struct rm_goodhart_world world;

    __device__ static uint8_t advance(const rules *r, world *w, uint64_t seed, uint64_t id,
                                      int32_t action, float *reward)
    {
        if (w->head.last) {
            rm_head_begin(&w->head, seed, id, w->head.episode + 1);
            rm_goodhart_begin(r, w);
            return RM_ENV_FIRST;
        }
        const int flags = rm_goodhart_play(r, w, action, reward);
        return rm_head_count(&w->head, r->max_steps, flags);
    }

    __device__ static void observe(const rules *r, const world *w, uint8_t *obs)
    {
        (void)r;
        rm_goodhart_observe(w, obs);
    }
};

struct cartpole {
    typedef struct rm_cartpole_rules rules;
    typedef struct rm_classic_state world;

    __device__ static uint8_t advance(const rules *r, world *w, uint64_t seed, uint64_t id,
                                      int32_t action, float *reward)
    {
        if (w->ended) {
            struct rm_rng rng;
            w->episode++;
            w->step = w->ended = 0;
            rm_draw_world(&rng, seed, id, w->episode);
            rm_cartpole_begin(&rng, w->state);
            return RM_ENV_FIRST;
        }
        struct rm_cartpole_state s = {w->state[0], w->state[1], w->state[2], w->state[3]};
        const double out = rm_cartpole_move(&s, action);
        w->state[0] = s.x;
        w->state[1] = s.dx;
        w->state[2] = s.angle;
        w->state[3] = s.dangle;
        w->ended = rm_classic_flag(++w->step, r->max_steps, out != 0);
        *reward = 1.0f;
        return (uint8_t)w->ended;
    }

    /* Observations without velocities: elements 0 and 2. */
    __device__ static void observe(const rules *r, const world *w, uint8_t *obs)
    {
        const uint32_t apart = r->elements == 4 ? 1 : 2;
        for (uint32_t i = 0; i < r->elements; i++) {
            const float x = (float)w->state[i * apart];
            memcpy(obs + i * sizeof x, &x, sizeof x);
        }
    }
};

/* --- kernels --------------------------------------------------------------------------------- */

template <typename W>
__device__ static typename W::world *world_of(const struct rm_device_worlds *d)
{
    return static_cast<typename W::world *>(d->state);
}

template <typename W>
__device__ static typename W::rules rules_of(const struct rm_device_worlds *d)
{
    typename W::rules rules;
    memcpy(&rules, d->rules, sizeof rules);
    return rules;
}

template <typename W>
__global__ static void advance(struct rm_device_worlds d)
{
    const typename W::rules rules = rules_of<W>(&d);
    const size_t row = d.stage->row;
    RM_EACH(i, d.worlds)
    {
        typename W::world *w = world_of<W>(&d) + i;
        const size_t at = row * d.worlds + i;
        float reward = 0;
        const uint8_t flags =
            W::advance(&rules, w, d.seed, d.first_world + i, d.to_action[at], &reward);
        const bool last = flags & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED);
        const double score = (flags & RM_ENV_FIRST ? 0 : d.score[i]) + reward;
        W::observe(&rules, w, d.obs + i * d.obs_bytes);
        d.reward[i] = d.to_reward[at + d.worlds] = reward;
        d.flags[i] = d.to_flags[at + d.worlds] = flags;
        d.score[i] = score;
        d.ended[at] = last ? score : NAN;
    }
}

template <typename W>
__global__ static void see(struct rm_device_worlds d)
{
    const typename W::rules rules = rules_of<W>(&d);
    RM_EACH(i, d.worlds)
    {
        W::observe(&rules, world_of<W>(&d) + i, d.obs + i * d.obs_bytes);
    }
}

__device__ static float feature(const struct rm_device_worlds *d, size_t world, size_t i)
{
    const uint8_t *obs = d->obs + world * d->obs_bytes;
    float x;
    if (d->channels)
        return d->codebook[obs[i % d->elements] * (size_t)d->channels + i / d->elements];
    memcpy(&x, obs + i * sizeof x, sizeof x);
    return x;
}

/* Decodes the current observation for the network, and if requested into the next row of the
 * rollout too. */
__global__ static void decode(struct rm_device_worlds d, bool keep)
{
    const size_t all = (size_t)d.worlds * d.inputs, next = keep ? (d.stage->row + 1) * all : 0;
    RM_EACH(i, all)
    {
        const float x = feature(&d, i / d.inputs, i % d.inputs);
        d.x[i] = x;
        if (keep)
            d.to_x[next + i] = x;
    }
}

__global__ static void next_row(struct rm_device_stage *stage)
{
    stage->row++;
    stage->step++;
}

/* --- the table ------------------------------------------------------------------------------- */

template <typename W>
static void run_advance(struct rm_cuda *c, const struct rm_device_worlds *d)
{
    RM_RUN(c, advance<W>, rm_cuda_blocks(c, d->worlds, WORLD_THREADS), WORLD_THREADS, *d);
}

template <typename W>
static void run_see(struct rm_cuda *c, const struct rm_device_worlds *d)
{
    RM_RUN(c, see<W>, rm_cuda_blocks(c, d->worlds, WORLD_THREADS), WORLD_THREADS, *d);
}

static const struct {
    void (*advance)(struct rm_cuda *c, const struct rm_device_worlds *d);
    void (*see)(struct rm_cuda *c, const struct rm_device_worlds *d);
} kinds[] = {
    {run_advance<goodhart>, run_see<goodhart>},
    {run_advance<cartpole>, run_see<cartpole>},
};
static_assert(sizeof kinds / sizeof *kinds == RM_DEVICE_WORLD_KINDS, "a row per world");
static_assert(sizeof(struct rm_goodhart_rules) <= RM_DEVICE_RULES_BYTES &&
                  sizeof(struct rm_cartpole_rules) <= RM_DEVICE_RULES_BYTES,
              "rules fit");

static void run_decode(struct rm_cuda *c, const struct rm_device_worlds *d, bool keep)
{
    const size_t all = (size_t)d->worlds * d->inputs;
    RM_RUN(c, decode, rm_cuda_blocks(c, all, ROW_THREADS), ROW_THREADS, *d, keep);
}

static void look(struct rm_backend *b, const struct rm_device_worlds *d)
{
    kinds[d->kind].see(rm_cuda_of(b), d);
    run_decode(rm_cuda_of(b), d, false);
}

static void step(struct rm_backend *b, const struct rm_device_worlds *d)
{
    struct rm_cuda *c = rm_cuda_of(b);
    kinds[d->kind].advance(c, d);
    run_decode(c, d, true);
    RM_RUN(c, next_row, 1, 1, d->stage);
}

const struct rm_device_world_ops rm_cuda_worlds = {.look = look,
                                                   .begin = rm_cuda_worlds_begin,
                                                   .draw = rm_cuda_worlds_draw,
                                                   .step = step,
                                                   .end = rm_cuda_worlds_end};
