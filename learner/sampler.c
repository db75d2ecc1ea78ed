#include "learner/sampler_private.h"

#include "learner/backend/device_feed.h"
#include "learner/net/features.h"
#include "learner/priority_tree.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *aligned(size_t bytes)
{
    const size_t rounded = (bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, rounded ? rounded : 64);
    if (p)
        memset(p, 0, rounded);
    return p;
}

static int make_buffers(struct rm_sampler *s, struct rm_error *error)
{
    const struct rm_sampler_spec *spec = &s->spec;
    struct rm_batch *batch = &s->batch;
    batch->size = spec->batch;
    batch->inputs = s->features * spec->frame_stack;
    batch->actions = spec->agent->actions;
    batch->reals = spec->reals;
    batch->codes = spec->codes != 0;
    if (spec->sequence.trace) { /* rows of the sequence, and rows before and after it */
        batch->burn_in = spec->sequence.burn_in;
        batch->trace = spec->sequence.trace;
        batch->tail = spec->n_step;
        batch->state_floats = spec->sequence.state_floats;
    }
    const struct rm_batch_extras extras = {.next_masks = spec->agent->has_mask,
                                           .masks = spec->agent->has_mask,
                                           .priorities = spec->priorities || spec->own_priorities};
    s->scratch.frames = aligned((spec->frame_stack + spec->n_step + 1) * s->obs_bytes);
    s->scratch.reals = aligned(batch->reals * sizeof *s->scratch.reals);
    const size_t mask_bytes = spec->agent->has_mask ? batch->actions : 0;
    s->scratch.mask = aligned(mask_bytes);
    s->scratch.first_mask = aligned(mask_bytes);
    s->frames = calloc((size_t)spec->frame_stack + spec->n_step + 1, sizeof *s->frames);
    s->source_of_world = calloc(s->worlds, sizeof *s->source_of_world);
    if (!s->scratch.frames || !s->scratch.reals || !s->scratch.mask || !s->scratch.first_mask ||
        !s->frames || !s->source_of_world)
        return rm_fail(error, -ENOMEM, "no memory for transitions of %u inputs", batch->inputs);
    return rm_batch_alloc(batch, &extras, error);
}

static int open_windows(struct rm_sampler *s, struct rm_error *error)
{
    const struct rm_sampler_spec *spec = &s->spec;
    for (uint32_t i = 0; i < spec->source_count; i++) {
        const struct rm_sampler_source *source = &spec->sources[i];
        const struct rm_ring_spec *ring = &source->ring->spec;
        if (ring->obs_bytes != s->obs_bytes)
            return rm_fail(error, -EPROTO,
                           "ring %u has observations of %u bytes, the world's have %zu", i,
                           ring->obs_bytes, s->obs_bytes);
        if (ring->lanes != spec->agents * source->worlds)
            return rm_fail(error, -EPROTO, "ring %u has %u lanes, %u agents in %u worlds need %u",
                           i, ring->lanes, spec->agents, source->worlds,
                           spec->agents * source->worlds);
        rm_window_open(&s->windows[i], source, spec->agent->actions);
        for (uint32_t w = 0; w < source->worlds; w++)
            s->source_of_world[source->first_world + w] = i;
    }
    return 0;
}

uint64_t rm_sampler_capacity_rows(const struct rm_sampler_spec *spec)
{
    uint64_t lanes = 0;
    for (uint32_t i = 0; i < spec->source_count; i++)
        lanes += (uint64_t)spec->sources[i].worlds * spec->agents;
    const uint64_t rows = lanes ? spec->capacity / lanes : 0;
    return rows < 2 ? 2 : rows; /* a transition and its successor */
}

static int set_up(struct rm_sampler *s, struct rm_error *error)
{
    struct rm_sampler_spec *spec = &s->spec;
    s->windows = calloc(spec->source_count ? spec->source_count : 1, sizeof *s->windows);
    if (!s->windows)
        return rm_fail(error, -ENOMEM, "no memory for %u rings", spec->source_count);
    for (uint32_t i = 0; i < spec->source_count; i++)
        s->worlds += spec->sources[i].worlds;
    s->lanes = s->worlds * spec->agents;
    s->obs_bytes = rm_features_bytes(spec->agent);
    s->features = rm_features_words(spec->agent, spec->codes);
    s->rule = (struct rm_transition_rule){spec->n_step, spec->frame_stack, spec->gamma};
    s->reach = spec->n_step;
    if (spec->sequence.trace)
        s->reach += spec->sequence.trace - 1;
    if (!s->lanes || !spec->batch || !spec->n_step || !spec->frame_stack || !s->features)
        return rm_fail(error, -EINVAL,
                       "sampler: %u lanes, %u of a batch, %u steps, %u frames, %u features; each "
                       "must be at least 1",
                       s->lanes, spec->batch, spec->n_step, spec->frame_stack, s->features);
    s->capacity_rows = rm_sampler_capacity_rows(spec);
    int rc = make_buffers(s, error);
    if (!rc)
        rc = open_windows(s, error);
    if (!rc && s->way)
        rc = s->way->create(s, error);
    if (!rc && spec->sequence.trace)
        rc = rm_sampler_sequence_create(s, error);
    if (!rc && (spec->priorities || spec->own_priorities || spec->sequence.trace))
        rc = rm_sampler_priority_create(s, error);
    return rc;
}

int rm_sampler_create(struct rm_sampler **sampler, const struct rm_sampler_spec *spec,
                      struct rm_error *error)
{
    struct rm_sampler *s = calloc(1, sizeof *s);
    if (!s)
        return rm_fail(error, -ENOMEM, "no memory for a sampler");
    s->spec = *spec;
    s->way = rm_sampler_way_of(spec->form);
    const int rc = set_up(s, error);
    s->spec.sources = NULL; /* the windows have copies */
    if (rc) {
        rm_sampler_destroy(s);
        return rm_fail_within(error, rc, "sampler of policy %u", spec->policy);
    }
    *sampler = s;
    return 0;
}

void rm_sampler_destroy(struct rm_sampler *s)
{
    if (!s)
        return;
    if (s->way)
        s->way->destroy(s);
    rm_sampler_priority_destroy(s);
    free(s->age);
    rm_batch_free(&s->batch);
    free(s->scratch.frames);
    free(s->scratch.reals);
    free(s->scratch.mask);
    free(s->scratch.first_mask);
    free(s->frames);
    free(s->source_of_world);
    free(s->windows);
    free(s);
}

static void windows_changed(struct rm_sampler *s)
{
    s->longest = 0;
    for (uint32_t i = 0; i < s->spec.source_count; i++)
        if (s->windows[i].starts > s->longest)
            s->longest = s->windows[i].starts;
    if (s->way)
        s->way->scan(s);
    if (s->tree && !s->device_draws)
        rm_sampler_priority_scan(s);
}

void rm_sampler_window_free(struct rm_sampler *s)
{
    for (uint32_t i = 0; i < s->spec.source_count; i++)
        rm_window_free(&s->windows[i], s->capacity_rows);
    windows_changed(s);
}

void rm_sampler_window_round(struct rm_sampler *s, uint64_t round, uint32_t round_steps)
{
    for (uint32_t i = 0; i < s->spec.source_count; i++)
        rm_window_round(&s->windows[i], round, round_steps, s->capacity_rows);
    windows_changed(s);
}

uint64_t rm_sampler_count_new(struct rm_sampler *s)
{
    uint64_t steps = 0;
    for (uint32_t i = 0; i < s->spec.source_count; i++)
        steps += rm_window_count_new(&s->windows[i]);
    return steps;
}

/* The frame `offset` rows from the transition's start, or NULL before the episode's first row. */
static const uint8_t *frame_at(const struct rm_sampler *s, int offset)
{
    const int at = offset + (int)s->scratch.found.before;
    return at < 0 ? NULL : s->scratch.frames + (size_t)at * s->obs_bytes;
}

static void decode(struct rm_sampler *s, int newest, float *out)
{
    const int stack = (int)s->spec.frame_stack;
    for (int i = 0; i < stack; i++)
        s->frames[i] = frame_at(s, newest - (stack - 1) + i);
    rm_features_take_stack(s->spec.agent, s->spec.codes, s->frames, s->spec.frame_stack, out);
}

static void put_copy(struct rm_sampler *s, uint32_t i, struct rm_batch *batch)
{
    const struct rm_transition *t = &s->scratch;
    decode(s, 0, batch->obs + (size_t)i * batch->inputs);
    decode(s, (int)t->found.steps, batch->next_obs + (size_t)i * batch->inputs);
    if (batch->reals)
        memcpy(batch->action + (size_t)i * batch->reals, t->reals,
               batch->reals * sizeof *batch->action);
    else
        batch->action[i] = t->action;
    batch->ret[i] = t->found.ret;
    batch->discount[i] = t->found.discount;
    if (batch->mask)
        memcpy(batch->mask + (size_t)i * batch->actions, t->first_mask, batch->actions);
    if (batch->next_mask)
        memcpy(batch->next_mask + (size_t)i * batch->actions, t->mask, batch->actions);
}

static enum rm_item_copy copy_item(struct rm_sampler *s, const struct rm_window *window,
                                   uint64_t distance, uint32_t lane, uint32_t i,
                                   struct rm_batch *batch)
{
    if (s->spec.sequence.trace)
        return rm_sampler_sequence_copy(s, window, distance, lane, i, batch);
    const enum rm_item_copy copied =
        rm_transition_copy(window, distance, lane, &s->rule, &s->scratch);
    if (copied == RM_ITEM_COPIED)
        put_copy(s, i, batch);
    return copied;
}

const struct rm_window *rm_sampler_lane(const struct rm_sampler *s, uint32_t global, uint32_t *lane)
{
    const uint32_t slot = global / s->worlds, world = global % s->worlds;
    const struct rm_window *window = &s->windows[s->source_of_world[world]];
    *lane = slot * window->source.worlds + (world - (uint32_t)window->source.first_world);
    return window;
}

enum rm_item_copy rm_sampler_copy(struct rm_sampler *s, const struct rm_window *window,
                                  uint64_t distance, uint32_t lane, uint32_t i,
                                  struct rm_batch *batch)
{
    const enum rm_item_copy copied = copy_item(s, window, distance, lane, i, batch);
    if (copied == RM_ITEM_OVERWRITTEN)
        s->counts.torn++;
    else if (copied == RM_ITEM_INVALID)
        s->counts.rejected++;
    if (copied != RM_ITEM_COPIED)
        return copied;
    s->counts.age_sum += distance * s->lanes;
    s->counts.age_count++;
    return copied;
}

/* Draws until it finds a valid transition. */
static bool draw_one(struct rm_sampler *s, struct rm_rng *rng, uint32_t i, struct rm_batch *batch)
{
    for (uint32_t tries = 0; tries < RM_SAMPLER_TRIES; tries++) {
        uint32_t lane;
        const uint64_t distance = 1 + (uint64_t)rm_rng_below(rng, (uint32_t)s->longest);
        const struct rm_window *window = rm_sampler_lane(s, rm_rng_below(rng, s->lanes), &lane);
        if (rm_sampler_copy(s, window, distance, lane, i, batch) == RM_ITEM_COPIED)
            return true;
    }
    return false;
}

int rm_sampler_draw(struct rm_sampler *s, uint64_t update, struct rm_batch *batch)
{
    struct rm_rng rng = rm_rng_at(s->spec.seed, RM_STREAM_SAMPLE, s->spec.policy, update);
    if (s->way)
        return s->way->draw(s, &rng, batch);
    if (s->longest < 2)
        return 0;
    if (s->tree)
        return rm_sampler_priority_draw(s, &rng, batch);
    for (uint32_t i = 0; i < s->spec.batch; i++)
        if (!draw_one(s, &rng, i, batch))
            return 0;
    return 1;
}

struct rm_batch *rm_sampler_batch(struct rm_sampler *s)
{
    return &s->batch;
}

void rm_sampler_device_draws(struct rm_sampler *s, bool device_draws)
{
    s->device_draws = device_draws;
}

void rm_sampler_drawn(struct rm_sampler *s, const struct rm_sampler_counts *counts)
{
    s->counts.torn += counts->torn;
    s->counts.rejected += counts->rejected;
    s->counts.age_sum += counts->age_sum;
    s->counts.age_count += counts->age_count;
}

struct rm_row_span rm_sampler_span(const struct rm_sampler *s, uint32_t source)
{
    const struct rm_window *w = &s->windows[source];
    return (struct rm_row_span){w->end, w->held, w->starts};
}

uint64_t rm_sampler_held(const struct rm_sampler *s)
{
    if (s->way)
        return s->way->held(s);
    uint64_t held = 0;
    for (uint32_t i = 0; i < s->spec.source_count; i++)
        held += s->windows[i].starts * s->spec.agents * s->windows[i].source.worlds;
    return held;
}

uint64_t rm_sampler_capacity(const struct rm_sampler *s)
{
    return s->way ? s->spec.capacity : s->capacity_rows * s->lanes;
}

struct rm_sampler_counts rm_sampler_counts(const struct rm_sampler *s)
{
    return s->counts;
}

/* --- the state of a sampler, without rows and shared priorities ------------------------------ */

static void windows_state(struct rm_sampler *s, struct rm_state *state)
{
    /* In rounds the windows do not change during a round. */
    for (uint32_t i = 0; i < s->spec.source_count; i++) {
        char name[32];
        snprintf(name, sizeof name, "window%u", i);
        rm_state_enter(state, name);
        RM_STATE(state, "end", s->windows[i].end);
        RM_STATE(state, "held", s->windows[i].held);
        RM_STATE(state, "starts", s->windows[i].starts);
        RM_STATE(state, "counted", s->windows[i].counted);
        rm_state_leave(state);
    }
    RM_STATE(state, "longest", s->longest);
}

/* The sampler's own tree. */
static void tree_state(struct rm_sampler *s, struct rm_state *state)
{
    rm_state_bytes(state, "leaves", s->own.level[0], s->own.nodes[0] * sizeof(double));
    rm_state_bytes(state, "entered", s->own.entered, s->own.spec.sources * sizeof(uint64_t));
    RM_STATE(state, "largest", s->own.shared->largest);
    if (!rm_state_loading(state))
        return;
    rm_priority_rebuild(&s->own);
    s->items = rm_priority_count(&s->own);
}

void rm_sampler_state(struct rm_sampler *s, struct rm_state *state)
{
    rm_state_enter(state, "sampler");
    windows_state(s, state);
    if (s->way)
        s->way->state(s, state);
    if (s->age)
        rm_state_bytes(state, "age", s->age, s->lanes * sizeof *s->age);
    if (s->tree == &s->own)
        tree_state(s, state);
    rm_state_leave(state);
}
