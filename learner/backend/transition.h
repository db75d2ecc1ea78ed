/* transition: which rows of a ring make a transition, and what it returns. Written once for both
 * sides (shm/base/both.h): the sampler asks it of the rings, a device's draws of its copies of
 * them, so both find the same transitions, to the bit of their returns. The rules stand in
 * sampler.h. */
#ifndef RM_LEARNER_BACKEND_TRANSITION_H
#define RM_LEARNER_BACKEND_TRANSITION_H

#include "shm/base/both.h"
#include "shm/ring.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows as they stand in a ring or a copy of one: row r at rows + (r & row_mask) * stride, columns
 * at their offsets in it. */
struct rm_row_view {
    const uint8_t *rows;
    uint64_t stride, row_mask;
    uint32_t generation_at; /* uint64 */
    uint32_t reward_at;     /* float per lane */
    uint32_t flags_at;      /* byte per lane */
    uint32_t action_at, action_words;
    uint32_t actions; /* that there are */
};

/* Rows that may be looked at: those at distances 1 .. held before `end`; items start at 1 ..
 * starts.
 */
struct rm_row_span {
    uint64_t end, held, starts;
};

/* How rows make a transition. */
struct rm_transition_rule {
    uint32_t n_step, frame_stack;
    double gamma;
};

/* What the rows say of one. */
struct rm_transition_found {
    uint32_t steps;      /* m */
    uint32_t before;     /* frames of the episode before the first row that a stack needs */
    float ret, discount; /* R, g */
    uint64_t oldest;     /* the greatest distance that was looked at */
};

RM_BOTH const uint8_t *rm_view_row(const struct rm_row_view *v, uint64_t row)
{
    return v->rows + (row & v->row_mask) * v->stride;
}

RM_BOTH uint8_t rm_view_flags(const struct rm_row_view *v, uint64_t row, uint32_t lane)
{
    return rm_view_row(v, row)[v->flags_at + lane];
}

RM_BOTH uint64_t rm_view_generation(const struct rm_row_view *v, uint64_t row)
{
    return *(const uint64_t *)(const void *)(rm_view_row(v, row) + v->generation_at);
}

RM_BOTH float rm_view_reward(const struct rm_row_view *v, uint64_t row, uint32_t lane)
{
    return ((const float *)(const void *)(rm_view_row(v, row) + v->reward_at))[lane];
}

/* Of `actions`, the one that a row says. A world may have written over it, and it is an index to
 * whoever learns from it: one that there is not counts as the first. */
RM_BOTH int32_t rm_row_action(int32_t word, uint32_t actions)
{
    return (uint32_t)word < actions ? word : 0;
}

/* The first word of its action. */
RM_BOTH int32_t rm_view_action(const struct rm_row_view *v, uint64_t row, uint32_t lane)
{
    return rm_row_action(
        ((const int32_t *)(const void *)(rm_view_row(v, row) +
                                         v->action_at))[(uint64_t)lane * v->action_words],
        v->actions);
}

/* How many rows before `distance` belong to the same episode and writer, `most` at most. Negative
 * when a row that would be needed to tell is not held any more. *oldest is raised to the greatest
 * distance that was looked at. */
RM_BOTH int rm_view_before(const struct rm_row_view *v, const struct rm_row_span *span,
                           uint64_t distance, uint32_t lane, uint32_t most, uint64_t generation,
                           uint64_t *oldest)
{
    uint8_t flags = rm_view_flags(v, span->end - distance, lane);
    for (uint32_t n = 0; n < most; n++) {
        if (flags & RM_FLAG_FIRST)
            return (int)n;
        if (distance + n + 1 > span->held)
            return -1;
        *oldest = distance + n + 1;
        flags = rm_view_flags(v, span->end - *oldest, lane);
        if (rm_view_generation(v, span->end - *oldest) != generation ||
            (flags & (RM_FLAG_LAST | RM_FLAG_DEAD)))
            return (int)n;
    }
    return (int)most;
}

/* Walks up to n rows on from `distance`, to steps, ret and discount; false when they have not all
 * been written, or when nothing follows. */
RM_BOTH bool rm_view_walk(const struct rm_row_view *v, uint64_t end, uint64_t distance,
                          uint32_t lane, uint32_t n, double gamma, uint64_t generation,
                          struct rm_transition_found *found)
{
    double ret = 0, discount = 1;
    found->steps = 0;
    for (uint32_t k = 1; k <= n; k++) {
        if (distance <= k)
            return false;
        const uint64_t row = end - distance + k;
        const uint8_t flags = rm_view_flags(v, row, lane);
        if (rm_view_generation(v, row) != generation ||
            (flags & (RM_FLAG_FIRST | RM_FLAG_DEAD | RM_FLAG_VOID)))
            break;
        ret += discount * (double)rm_view_reward(v, row, lane);
        discount *= gamma;
        found->steps = k;
        if (flags & RM_FLAG_TERMINATED)
            discount = 0;
        if (flags & RM_FLAG_LAST)
            break;
    }
    found->ret = (float)ret;
    found->discount = (float)discount;
    return found->steps > 0;
}

/* Is there a transition of `lane` that starts in row end - distance? */
RM_BOTH bool rm_view_look(const struct rm_row_view *v, const struct rm_row_span *span,
                          uint64_t distance, uint32_t lane, const struct rm_transition_rule *rule,
                          struct rm_transition_found *found)
{
    const uint64_t start = span->end - distance;
    if (distance < 2 || distance > span->starts)
        return false;
    found->oldest = distance;
    const uint64_t generation = rm_view_generation(v, start);
    if (rm_view_flags(v, start, lane) & (RM_FLAG_LAST | RM_FLAG_DEAD))
        return false;
    if (!rm_view_walk(v, span->end, distance, lane, rule->n_step, rule->gamma, generation, found))
        return false;
    const int before =
        rm_view_before(v, span, distance, lane, rule->frame_stack - 1, generation, &found->oldest);
    found->before = (uint32_t)before;
    return before >= 0;
}

#endif
