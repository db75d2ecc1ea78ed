/* Finds and copies sequences for a recurrent policy in the rows of a ring. */
#include "learner/net/features.h"
#include "learner/sampler_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rm_sampler_sequence_create(struct rm_sampler *s, struct rm_error *error)
{
    const struct rm_sampler_spec *spec = &s->spec;
    if (!spec->sequence.period || spec->frame_stack != 1)
        return rm_fail(error, -EINVAL,
                       "sequences: a period of %u rows and stacks of %u frames; the period must be "
                       "at least 1, and frames 1",
                       spec->sequence.period, spec->frame_stack);
    for (uint32_t i = 0; i < spec->source_count; i++)
        if (s->windows[i].source.ring->spec.state_floats != spec->sequence.state_floats)
            return rm_fail(error, -EPROTO, "ring %u has states of %u floats, the network's have %u",
                           i, s->windows[i].source.ring->spec.state_floats,
                           spec->sequence.state_floats);
    s->age = malloc(s->lanes * sizeof *s->age);
    if (!s->age)
        return rm_fail(error, -ENOMEM, "no memory for the ages of %u lanes", s->lanes);
    for (uint32_t l = 0; l < s->lanes; l++)
        s->age[l] = UINT32_MAX;
    return 0;
}

/* Rows since the episode's first, as far back as the ring has rows. */
static uint32_t age_by_walking(const struct rm_window *window, uint64_t distance, uint32_t lane)
{
    const struct rm_row row = rm_ring_row(window->source.ring, window->end - distance);
    const uint64_t held = window->held - distance;
    const struct rm_row_span span = rm_window_span(window);
    uint64_t oldest = distance;
    const int before =
        rm_view_before(&window->view, &span, distance, lane,
                       held < INT32_MAX ? (uint32_t)held : INT32_MAX, *row.generation, &oldest);
    return before > 0 ? (uint32_t)before : 0;
}

bool rm_sampler_sequence_starts(struct rm_sampler *s, const struct rm_window *window,
                                uint64_t distance, uint32_t lane, uint32_t global)
{
    const struct rm_row row = rm_ring_row(window->source.ring, window->end - distance);
    uint32_t *age = &s->age[global];
    if (row.flags[lane] & RM_FLAG_FIRST)
        *age = 0;
    else
        *age = *age == UINT32_MAX ? age_by_walking(window, distance, lane) : *age + 1;
    return *age % s->spec.sequence.period == 0 &&
           rm_transition_there(window, distance, lane, &s->rule);
}

/* Row `at` of the sequence, of place i: observation and mask of the ring's row. */
static void put_row(struct rm_sampler *s, const struct rm_row *row, uint32_t lane, uint32_t at,
                    uint32_t i, struct rm_batch *b)
{
    const size_t place = (size_t)at * b->size + i;
    rm_ring_copy_out(s->scratch.frames, row->obs + lane * s->obs_bytes, s->obs_bytes);
    rm_features_take(s->spec.agent, s->spec.codes, s->scratch.frames, b->obs + place * b->inputs);
    if (b->mask)
        rm_ring_copy_out(b->mask + place * b->actions, row->mask + (size_t)lane * b->actions,
                         b->actions);
}

static void clear_row(uint32_t at, uint32_t i, struct rm_batch *b)
{
    const size_t place = (size_t)at * b->size + i;
    memset(b->obs + place * b->inputs, 0, b->inputs * sizeof(float));
    if (b->mask)
        memset(b->mask + place * b->actions, 0, b->actions);
}

/* Fills the transitions of the trace. Returns the number of rows that they use, from the trace's
 * first on. */
static uint32_t put_transitions(struct rm_sampler *s, const struct rm_window *window,
                                uint64_t distance, uint32_t lane, uint64_t generation, uint32_t i,
                                struct rm_batch *b)
{
    uint32_t rows = 0;
    bool within = true;
    for (uint32_t t = 0; t < b->trace; t++) {
        const size_t place = (size_t)t * b->size + i;
        const struct rm_row row = rm_ring_row(window->source.ring, window->end - distance + t);
        struct rm_transition_found step = {0};
        within = within && *row.generation == generation &&
                 !(row.flags[lane] & (RM_FLAG_LAST | RM_FLAG_DEAD)) &&
                 !(t > 0 && row.flags[lane] & RM_FLAG_FIRST) &&
                 rm_view_walk(&window->view, window->end, distance - t, lane, s->spec.n_step,
                              s->spec.gamma, generation, &step);
        b->valid[place] = within;
        b->action[place] =
            within ? rm_view_action(&window->view, window->end - distance + t, lane) : 0;
        b->ret[place] = within ? step.ret : 0;
        b->discount[place] = within ? step.discount : 0;
        b->ahead[place] = within ? step.steps : 0;
        if (within)
            rows = t + step.steps + 1;
    }
    return rows;
}

enum rm_item_copy rm_sampler_sequence_copy(struct rm_sampler *s, const struct rm_window *window,
                                           uint64_t distance, uint32_t lane, uint32_t i,
                                           struct rm_batch *b)
{
    const struct rm_ring *ring = window->source.ring;
    const size_t floats = b->state_floats;
    if (distance <= s->reach || distance > window->starts)
        return RM_ITEM_INVALID;
    uint64_t oldest = distance;
    const uint64_t generation = *rm_ring_row(ring, window->end - distance).generation;
    const struct rm_row_span span = rm_window_span(window);
    const int before =
        rm_view_before(&window->view, &span, distance, lane, b->burn_in, generation, &oldest);
    const uint32_t rows = put_transitions(s, window, distance, lane, generation, i, b);
    if (before < 0 || rows == 0)
        return RM_ITEM_INVALID;
    const uint32_t first = b->burn_in - (uint32_t)before, end = b->burn_in + rows;
    for (uint32_t at = 0; at < rm_batch_rows(b); at++) {
        b->restart[(size_t)at * b->size + i] = 0;
        if (at < first || at >= end) {
            clear_row(at, i, b);
            continue;
        }
        const struct rm_row row = rm_ring_row(ring, window->end - distance - b->burn_in + at);
        put_row(s, &row, lane, at, i, b);
    }
    /* With fewer than burn_in rows before the trace, the rows begin with the episode's first, whose
     * state is zeros; otherwise take the stored state. */
    const struct rm_row warm = rm_ring_row(ring, window->end - distance - (uint32_t)before);
    if (floats)
        memset(b->state + i * floats, 0, floats * sizeof(float));
    if (first > 0)
        b->restart[(size_t)first * b->size + i] = 1;
    else if (floats)
        rm_ring_copy_out(b->state + i * floats, warm.state + lane * floats, floats * sizeof(float));
    return rm_ring_intact(ring, window->end - oldest) ? RM_ITEM_COPIED : RM_ITEM_OVERWRITTEN;
}
