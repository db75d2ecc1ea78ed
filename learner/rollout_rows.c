#include "learner/rollout_rows.h"

#include "config/config.h"
#include "config/traits.h"
#include "learner/net/features.h"
#include "learner/net/reals.h"
#include "learner/backend/transition.h"
#include "shm/atomic.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ENDED (RM_FLAG_LAST | RM_FLAG_DEAD)
#define UNJOINED                                                                                   \
    (RM_FLAG_FIRST | RM_FLAG_VOID | RM_FLAG_DEAD) /* flags of a row that is no                     \
                                                   * successor of the row before it */

static struct rm_ring *ring_of(const struct rm_rollout *r, uint32_t actor)
{
    return rm_session_ring(r->session, actor, r->policy);
}

/* --- making ---------------------------------------------------------------------------------- */

#define PIECES    12u
#define ALIGNMENT 256u

struct piece {
    void **at;
    size_t bytes; /* 0: there is none */
};

/* Lists the arrays of a rollout, observations first. */
static void list_pieces(struct rm_rollout *r, struct piece out[PIECES])
{
    const struct rm_policy_plan *plan = r->plan;
    const size_t rows = (size_t)r->steps * r->lanes, more = rows + r->lanes;
    const size_t state = (size_t)r->lanes * plan->state_floats * sizeof *r->state;
    const struct piece pieces[PIECES] = {
        {(void **)&r->x, more * r->inputs * sizeof *r->x},
        {(void **)&r->state, state},
        {(void **)&r->after, plan->values && r->successors ? state : 0},
        {(void **)&r->value, plan->values ? rows * sizeof *r->value : 0},
        {(void **)&r->mask, rows * r->mask_bytes},
        {(void **)&r->action, rows * r->words * sizeof *r->action},
        {(void **)&r->logp, rows * sizeof *r->logp},
        {(void **)&r->reward, more * sizeof *r->reward},
        {(void **)&r->flags, more},
        {(void **)&r->discount, rows * sizeof *r->discount},
        {(void **)&r->valid, rows * sizeof *r->valid},
        {(void **)&r->sample, rows * sizeof *r->sample},
    };
    memcpy(out, pieces, sizeof pieces);
}

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static bool make_block(struct rm_rollout *r, const struct piece pieces[PIECES],
                       struct rm_error *error)
{
    const struct rm_backend_ops *ops = r->backend->ops;
    for (uint32_t i = 0; i < PIECES; i++)
        r->bytes += aligned(pieces[i].bytes);
    r->pinned = ops->alloc_host(r->backend, r->bytes, error);
    r->there = r->pinned ? ops->alloc_bytes(r->backend, r->bytes, error) : NULL;
    char *at = r->pinned;
    for (uint32_t i = 0; r->there && i < PIECES; at += aligned(pieces[i++].bytes))
        *pieces[i].at = pieces[i].bytes ? at : NULL;
    return r->there;
}

static bool make_pieces(struct rm_rollout *r, const struct piece pieces[PIECES])
{
    r->x = r->backend->ops->alloc(r->backend, pieces[0].bytes / sizeof *r->x);
    bool made = r->x;
    for (uint32_t i = 1; i < PIECES; i++)
        if (pieces[i].bytes && !(*pieces[i].at = calloc(1, pieces[i].bytes)))
            made = false;
    return made;
}

int rm_rollout_create(struct rm_rollout *r, const struct rm_rollout_spec *spec,
                      struct rm_error *error)
{
    const struct rm_experiment *e = &spec->session->experiment;
    const struct rm_policy_plan *plan = &spec->session->plan.policy[spec->policy];
    *r = (struct rm_rollout){
        .session = spec->session,
        .backend = spec->backend,
        .agent = spec->agent,
        .codes = rm_network_codes(&e->network, spec->agent),
        .plan = plan,
        .policy = spec->policy,
        .actors = spec->session->objects.actors,
        .steps = e->rollout.steps,
        .lanes = plan->agents * e->actor.worlds,
        .inputs = plan->inputs,
        .words = plan->action_words,
        .mask_bytes = plan->mask_bytes,
        .stack = e->sample.frame_stack,
        .successors = spec->session->plan.phases == 1,
        .gamma = (float)e->sample.gamma,
        .distribution = rm_categorical_of(&plan->shape),
        .gaussian = {plan->reals, rm_bounds_by_tanh(e)},
    };
    struct piece pieces[PIECES];
    list_pieces(r, pieces);
    const bool made = r->backend->staged ? make_block(r, pieces, error) : make_pieces(r, pieces);
    r->writer = calloc((size_t)(r->steps + 1) * r->actors, sizeof *r->writer);
    if (made && r->writer)
        return 0;
    const uint32_t steps = r->steps, lanes = r->lanes;
    const bool in_words = r->backend->staged && !made;
    rm_rollout_destroy(r);
    return in_words
               ? rm_fail_within(error, -ENOMEM, "a rollout of %u rows of %u lanes", steps, lanes)
               : rm_fail(error, -ENOMEM, "no memory for a rollout of %u rows of %u lanes", steps,
                         lanes);
}

void rm_rollout_destroy(struct rm_rollout *r)
{
    struct piece pieces[PIECES];
    if (r->pinned) {
        r->backend->ops->release_host(r->backend, r->pinned);
        r->backend->ops->release(r->backend, r->there);
    } else if (r->plan) {
        r->backend->ops->release(r->backend, r->x);
        list_pieces(r, pieces);
        for (uint32_t i = 1; i < PIECES; i++)
            free(*pieces[i].at);
    }
    free(r->writer);
    *r = (struct rm_rollout){0};
}

/* --- rings ----------------------------------------------------------------------------------- */

bool rm_rollout_ready(const struct rm_rollout *r, uint64_t number)
{
    const uint64_t end = (number + 1) * r->steps;
    for (uint32_t a = 0; a < r->actors; a++) {
        const struct rm_ring *ring = ring_of(r, a);
        const uint64_t committed = rm_ring_committed(ring) - ring->spec.first_index;
        if (committed < end)
            return false;
        if (r->successors && committed == end &&
            rm_ring_offered(ring) - ring->spec.first_index <= end)
            return false;
    }
    return true;
}

/* Number of earlier rows that stacks of frames need. */
static uint64_t kept(const struct rm_rollout *r)
{
    return r->stack - 1;
}

void rm_rollout_consume(struct rm_rollout *r, uint64_t number)
{
    const uint64_t rows = number * r->steps;
    const uint64_t given = rows > kept(r) ? rows - kept(r) : 0;
    for (uint32_t a = 0; a < r->actors; a++) {
        struct rm_ring *ring = ring_of(r, a);
        if (given > rm_ring_consumed(ring) - ring->spec.first_index)
            rm_ring_consume(ring, ring->spec.first_index + given);
    }
}

uint64_t rm_rollout_first_held(const struct rm_rollout *r)
{
    uint64_t most = 0;
    for (uint32_t a = 0; a < r->actors; a++) {
        const struct rm_ring *ring = ring_of(r, a);
        const uint64_t given = rm_ring_consumed(ring) - ring->spec.first_index;
        const uint64_t number = given ? (given + kept(r)) / r->steps : 0;
        most = number > most ? number : most;
    }
    return most;
}

/* --- copying --------------------------------------------------------------------------------- */

/* Frames of one lane, oldest first; NULL before the episode's first row and for rows of another
 * writer. */
static void stack_lane(const struct rm_rollout *r, const struct rm_ring *ring, uint64_t index,
                       uint32_t lane, float *x)
{
    const uint8_t *frames[64];
    const uint64_t origin = ring->spec.first_index;
    const struct rm_row now = rm_ring_row(ring, index);
    bool more = true;
    for (uint32_t back = 0; back < r->stack; back++) {
        const struct rm_row row = rm_ring_row(ring, index - back);
        more = more && *row.generation == *now.generation;
        frames[r->stack - 1 - back] = more ? row.obs + (size_t)lane * ring->spec.obs_bytes : NULL;
        more = more && index - back != origin && !(row.flags[lane] & RM_FLAG_FIRST);
    }
    rm_features_take_stack(r->agent, r->codes, frames, r->stack, x);
}

/* Observations of `worlds` lanes from `lane` of a ring's row, to x. */
static void copy_obs(const struct rm_rollout *r, const struct rm_ring *ring,
                     const struct rm_row *row, uint32_t lane, uint32_t worlds, float *x)
{
    const uint32_t bytes = ring->spec.obs_bytes;
    if (r->stack == 1 && rm_features_in_place(r->agent, r->codes)) {
        memcpy(x, row->obs + (size_t)lane * bytes, (size_t)worlds * bytes);
        return;
    }
    for (uint32_t w = 0; w < worlds; w++, x += r->inputs) {
        if (r->stack == 1)
            rm_features_take(r->agent, r->codes, row->obs + (size_t)(lane + w) * bytes, x);
        else
            stack_lane(r, ring, row->index, lane + w, x);
    }
}

/* Bounds the actions: choices are used as indices, and a foreign world may have overwritten them.
 */
static void copy_actions(const struct rm_rollout *r, const int32_t *from, uint32_t worlds,
                         int32_t *to)
{
    const struct rm_categorical *d = &r->distribution;
    for (uint32_t i = 0; i < worlds * r->words; i++) {
        const uint32_t c = i % r->words;
        to[i] =
            c < d->choices ? rm_row_action(from[i], d->choice_actions[c]) : rm_row_real(from[i]);
    }
}

/* Copies observation, mask, reward and flags of row t of one ring; also the action, except of the
 * successor. */
static void copy_row(struct rm_rollout *r, uint32_t actor, uint32_t t, const struct rm_row *row)
{
    const struct rm_ring *ring = ring_of(r, actor);
    uint64_t first;
    uint32_t worlds;
    rm_session_worlds(&r->session->experiment, actor, &first, &worlds);
    for (uint32_t slot = 0; slot < r->plan->agents; slot++) {
        const uint32_t lane = slot * worlds;
        const size_t to =
            (size_t)t * r->lanes + (size_t)slot * r->session->experiment.actor.worlds + first;
        copy_obs(r, ring, row, lane, worlds, r->x + to * r->inputs);
        memcpy(r->reward + to, row->reward + lane, worlds * sizeof *r->reward);
        memcpy(r->flags + to, row->flags + lane, worlds);
        const size_t floats = r->plan->state_floats;
        float *state = t == 0 ? r->state : t == r->steps ? r->after : NULL;
        if (state)
            memcpy(state + (to - (size_t)t * r->lanes) * floats, row->state + lane * floats,
                   worlds * floats * sizeof *state);
        if (t == r->steps)
            continue;
        if (r->value)
            memcpy(r->value + to, row->value + lane, worlds * sizeof *r->value);
        if (r->mask)
            memcpy(r->mask + to * r->mask_bytes, row->mask + (size_t)lane * r->mask_bytes,
                   (size_t)worlds * r->mask_bytes);
        copy_actions(r, row->action + (size_t)lane * r->words, worlds, r->action + to * r->words);
        memcpy(r->logp + to, row->logp + lane, worlds * sizeof *r->logp);
    }
    r->writer[(size_t)t * r->actors + actor] = *row->generation;
}

/* An offered row belongs to its writer until it is committed. If the writer dies, its own successor
 * may fill the row again, before or during the copy. Then the row is not the successor of the
 * rollout's last row, even if its generation matches: compare the ring's generation, read after the
 * copy, with that of the last row. */
static void copy_successor(struct rm_rollout *r, uint32_t actor, uint64_t index)
{
    struct rm_ring *ring = ring_of(r, actor);
    const struct rm_row row = rm_ring_row(ring, index);
    const bool committed = rm_ring_committed(ring) != index;
    const uint64_t *own = r->writer + (size_t)(r->steps - 1) * r->actors + actor;
    copy_row(r, actor, r->steps, &row);
    if (!committed && (!rm_ring_intact(ring, index) || RM_PEEK(&ring->shared->generation) != *own))
        r->writer[(size_t)r->steps * r->actors + actor] = 0;
}

/* Decides which rows are samples, and the discounts of their successors' values. */
static void link_rows(struct rm_rollout *r)
{
    const uint32_t agents = r->plan->agents, total = r->session->experiment.actor.worlds;
    r->samples = 0;
    r->env_steps = 0;
    for (uint32_t t = 0; t < r->steps; t++) {
        const bool last = t + 1 == r->steps && !r->successors;
        for (uint32_t slot = 0; slot < agents; slot++) {
            for (uint32_t a = 0; a < r->actors; a++) {
                const uint64_t *writer = r->writer + (size_t)t * r->actors + a;
                const bool joined = !last && writer[0] == writer[r->actors];
                uint64_t first;
                uint32_t worlds;
                rm_session_worlds(&r->session->experiment, a, &first, &worlds);
                const size_t at = (size_t)t * r->lanes + (size_t)slot * total + first;
                for (size_t i = at; i < at + worlds; i++) {
                    const uint8_t now = r->flags[i], next = r->flags[i + r->lanes];
                    const bool sample = joined && !(now & ENDED) && !(next & UNJOINED);
                    r->valid[i] = sample;
                    r->discount[i] = sample && !(next & RM_FLAG_TERMINATED) ? r->gamma : 0;
                    r->env_steps += slot == 0 && !(now & ENDED);
                    r->sample[r->samples] = (uint32_t)i;
                    r->samples += sample;
                }
            }
        }
    }
}

void rm_rollout_copy(struct rm_rollout *r, uint64_t number, uint64_t updates)
{
    const uint64_t begin = number * r->steps;
    double lag_sum = 0;
    r->lag_min = UINT64_MAX;
    r->lag_max = 0;
    for (uint32_t a = 0; a < r->actors; a++) {
        const struct rm_ring *ring = ring_of(r, a);
        const uint64_t index = ring->spec.first_index + begin;
        for (uint32_t t = 0; t < r->steps; t++) {
            const struct rm_row row = rm_ring_row(ring, index + t);
            copy_row(r, a, t, &row);
            const uint64_t lag = updates > *row.policy_version ? updates - *row.policy_version : 0;
            r->lag_min = lag < r->lag_min ? lag : r->lag_min;
            r->lag_max = lag > r->lag_max ? lag : r->lag_max;
            lag_sum += (double)lag;
        }
        if (r->successors)
            copy_successor(r, a, index + r->steps);
    }
    r->lag_mean = lag_sum / ((double)r->steps * r->actors);
    link_rows(r);
}
