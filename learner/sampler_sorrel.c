/* Sampling as Sorrel's treasure hunt does it: a batch is `batch` distinct start slots i from [0,
 * size - S - 1), S the frame stack; s is slots i .. i+S-1, s' is slots i+1 .. i+S, action and
 * one-step reward are those of slot i+S-1. The value of s' is discounted by gamma^n, and no
 * transition is terminal. A slot that was never written counts as a frame of zeros with action 0
 * and reward 0. Stacks cross ends of episodes and the write index. */
#include "actor/worlds/sorrel_slots.h"
#include "config/forms.h"
#include "learner/net/features.h"
#include "learner/sampler_private.h"
#include "shm/base/state.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The original's buffer over the single ring of a single world. */
struct sorrel {
    struct rm_sorrel_slots slots;
    uint64_t scanned; /* index of the next row to push */
    uint32_t order[]; /* [capacity]: a permutation of start slots */
};

static struct sorrel *own(const struct rm_sampler *s)
{
    return s->way_own;
}

static int create(struct rm_sampler *s, struct rm_error *error)
{
    const struct rm_form_traits *form = rm_form_traits(s->spec.form);
    if (s->lanes != 1)
        return rm_fail(error, -EINVAL,
                       "algorithm.form sorrel-*: %u lanes for one policy; the original has one "
                       "world and a policy per agent",
                       s->lanes);
    if (s->spec.capacity < s->spec.batch + s->spec.frame_stack + 1)
        return rm_fail(error, -EINVAL, "ring.capacity: %llu slots are too few for a batch of %u",
                       (unsigned long long)s->spec.capacity, s->spec.batch);
    const struct rm_ring *ring = s->windows[0].source.ring;
    const uint64_t laps = form->laps;
    if (ring->spec.rows < laps * s->spec.capacity)
        return rm_fail(error, -EINVAL,
                       "ring of %u rows: algorithm.form sorrel-* refers to rows up to %" PRIu64
                       " old",
                       ring->spec.rows, laps * s->spec.capacity);
    struct sorrel *o = s->way_own = calloc(1, sizeof *o + s->spec.capacity * sizeof o->order[0]);
    if (!o)
        return rm_fail(error, -ENOMEM, "no memory for %llu slots",
                       (unsigned long long)s->spec.capacity);
    o->scanned = ring->spec.first_index;
    return rm_sorrel_slots_create(&o->slots, (uint32_t)s->spec.capacity, form->jump, error);
}

static void destroy(struct rm_sampler *s)
{
    if (s->way_own)
        rm_sorrel_slots_destroy(&own(s)->slots);
    free(s->way_own);
}

/* Pushes complete rows: those whose reward, which is in the next row, is there. */
static void scan(struct rm_sampler *s)
{
    struct sorrel *o = own(s);
    const struct rm_window *window = &s->windows[0];
    if (window->end - o->scanned > window->held) /* the writer is a whole ring ahead */
        o->scanned = window->end - window->held;
    while (window->end - o->scanned > 1) {
        rm_sorrel_slots_push(&o->slots, o->scanned - window->source.ring->spec.first_index,
                             rm_ring_row(window->source.ring, o->scanned).flags[0]);
        o->scanned++;
    }
}

/* Slots have indices counted from the ring's first, which never reach RM_SORREL_NEVER. */
static bool row_of(const struct rm_sampler *s, uint32_t slot, uint64_t *row)
{
    if (own(s)->slots.row[slot] == RM_SORREL_NEVER)
        return false;
    *row = own(s)->slots.row[slot] + s->windows[0].source.ring->spec.first_index;
    return true;
}

/* Copies slots i .. i+S to the scratch frames; NULL in s->frames for a zero frame. *oldest: the
 * greatest distance from the window's end. */
static void copy_frames(struct rm_sampler *s, uint32_t i, uint64_t *oldest)
{
    const struct rm_window *window = &s->windows[0];
    for (uint32_t k = 0; k <= s->spec.frame_stack; k++) {
        uint64_t row;
        s->frames[k] = NULL;
        if (!row_of(s, i + k, &row))
            continue;
        uint8_t *to = s->scratch.frames + k * s->obs_bytes;
        rm_ring_copy_out(to, rm_ring_row(window->source.ring, row).obs, s->obs_bytes);
        s->frames[k] = to;
        if (window->end - row > *oldest)
            *oldest = window->end - row;
    }
}

static bool copy_item(struct rm_sampler *s, uint32_t i, uint32_t b, struct rm_batch *batch)
{
    const struct rm_window *window = &s->windows[0];
    const struct rm_ring *ring = window->source.ring;
    uint64_t row = 0, oldest = 1;
    const bool written = row_of(s, i + s->spec.frame_stack - 1, &row);
    batch->action[b] = 0;
    batch->ret[b] = 0;
    if (written) {
        const struct rm_row answered = rm_ring_row(ring, row), arrived = rm_ring_row(ring, row + 1);
        batch->action[b] = rm_row_action(answered.action[0], s->spec.agent->actions);
        if (*answered.generation == *arrived.generation && !(arrived.flags[0] & RM_FLAG_FIRST))
            batch->ret[b] = arrived.reward[0];
    }
    batch->discount[b] = (float)pow(s->spec.gamma, s->spec.n_step);
    copy_frames(s, i, &oldest);
    if (!rm_ring_intact(ring, window->end - oldest))
        return false;
    const size_t at = (size_t)b * batch->inputs;
    rm_features_take_stack(s->spec.agent, s->spec.codes, s->frames, s->spec.frame_stack,
                           batch->obs + at);
    rm_features_take_stack(s->spec.agent, s->spec.codes, s->frames + 1, s->spec.frame_stack,
                           batch->next_obs + at);
    s->counts.age_sum += written ? window->end - row : 0;
    s->counts.age_count++;
    return true;
}

static int draw(struct rm_sampler *s, struct rm_rng *rng, struct rm_batch *batch)
{
    struct sorrel *o = own(s);
    const uint32_t size = rm_sorrel_slots_size(&o->slots), reach = s->spec.frame_stack + 1;
    if (size < reach + s->spec.batch)
        return 0;
    const uint32_t starts = size - reach;
    for (uint32_t i = 0; i < starts; i++)
        o->order[i] = i;
    uint32_t drawn = 0;
    for (uint32_t i = 0; i < starts && drawn < s->spec.batch; i++) {
        const uint32_t j = i + rm_rng_below(rng, starts - i), start = o->order[j];
        o->order[j] = o->order[i];
        if (copy_item(s, start, drawn, batch))
            drawn++;
        else
            s->counts.torn++;
    }
    return drawn == s->spec.batch;
}

static uint64_t held(const struct rm_sampler *s)
{
    return rm_sorrel_slots_size(&own(s)->slots);
}

static void slots_state(struct rm_sampler *s, struct rm_state *state)
{
    struct sorrel *o = own(s);
    RM_STATE(state, "scanned", o->scanned);
    RM_STATE(state, "slots.head", o->slots.head);
    RM_STATE(state, "slots.written", o->slots.written);
    rm_state_bytes(state, "slots.row", o->slots.row, o->slots.capacity * sizeof *o->slots.row);
}

static const struct rm_sampler_way way = {create, destroy, scan, draw, held, slots_state};

const struct rm_sampler_way *rm_sampler_way_of(enum rm_form form)
{
    return rm_form_traits(form)->slots ? &way : NULL;
}
