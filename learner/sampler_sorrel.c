/* Sampling as Sorrel's treasure hunt does it: a batch is `batch` distinct start slots i from [0,
 * size - S - 1), S the frame stack; s is slots i .. i+S-1, s' is slots i+1 .. i+S, action and
 * one-step reward are those of slot i+S-1. The value of s' is discounted by gamma^n, and no
 * transition is terminal. Slots never written are zero frames with action 0 and reward 0. Stacks
 * run over ends of episodes and over the write index. */
#include "learner/sampler_private.h"

#include "learner/net/features.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int rm_sampler_sorrel_create(struct rm_sampler *s, struct rm_error *error)
{
    const uint32_t jump = s->spec.form == RM_FORM_SORREL_SEQ ? RM_SORREL_JUMP : 0;
    if (s->lanes != 1)
        return rm_fail(error, -EINVAL,
                       "algorithm.form sorrel-*: %u lanes for one policy; the original has one "
                       "world and a policy per agent",
                       s->lanes);
    if (s->spec.capacity < s->spec.batch + s->spec.frame_stack + 1)
        return rm_fail(error, -EINVAL, "ring.capacity: %llu slots are too few for a batch of %u",
                       (unsigned long long)s->spec.capacity, s->spec.batch);
    const struct rm_ring *ring = s->windows[0].source.ring;
    const uint64_t laps = jump ? 3 : 1;
    if (ring->spec.rows < laps * s->spec.capacity)
        return rm_fail(error, -EINVAL,
                       "ring of %u rows: algorithm.form sorrel-* refers to rows up to %" PRIu64
                       " old",
                       ring->spec.rows, laps * s->spec.capacity);
    s->scanned = ring->spec.first_index;
    s->order = calloc(s->spec.capacity, sizeof *s->order);
    if (!s->order)
        return rm_fail(error, -ENOMEM, "no memory for %llu slots",
                       (unsigned long long)s->spec.capacity);
    return rm_sorrel_slots_create(&s->slots, (uint32_t)s->spec.capacity, jump, error);
}

/* Pushes complete rows: those whose reward, which is in the next row, is there. */
void rm_sampler_sorrel_scan(struct rm_sampler *s)
{
    const struct rm_window *window = &s->windows[0];
    if (window->end - s->scanned > window->held) /* the writer is a whole ring ahead */
        s->scanned = window->end - window->held;
    while (window->end - s->scanned > 1) {
        rm_sorrel_slots_push(&s->slots, s->scanned - window->source.ring->spec.first_index,
                             rm_ring_row(window->source.ring, s->scanned).flags[0]);
        s->scanned++;
    }
}

/* Slots have indices counted from the ring's first, which never reach RM_SORREL_NEVER. */
static bool row_of(const struct rm_sampler *s, uint32_t slot, uint64_t *row)
{
    if (s->slots.row[slot] == RM_SORREL_NEVER)
        return false;
    *row = s->slots.row[slot] + s->windows[0].source.ring->spec.first_index;
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

int rm_sampler_sorrel_draw(struct rm_sampler *s, struct rm_rng *rng, struct rm_batch *batch)
{
    const uint32_t size = rm_sorrel_slots_size(&s->slots), reach = s->spec.frame_stack + 1;
    if (size < reach + s->spec.batch)
        return 0;
    const uint32_t starts = size - reach;
    for (uint32_t i = 0; i < starts; i++)
        s->order[i] = i;
    uint32_t drawn = 0;
    for (uint32_t i = 0; i < starts && drawn < s->spec.batch; i++) {
        const uint32_t j = i + rm_rng_below(rng, starts - i), start = s->order[j];
        s->order[j] = s->order[i];
        if (copy_item(s, start, drawn, batch))
            drawn++;
        else
            s->counts.torn++;
    }
    return drawn == s->spec.batch;
}
