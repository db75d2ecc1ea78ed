/* transition: finds a transition in the rows of a ring, and computes its return. Written once for
 * host and device (shm/base/both.h): the sampler applies it to the rings, a device's draws to its
 * copies, so both find the same transitions with the same bits. sampler.h has the rules. */
#ifndef RM_LEARNER_BACKEND_TRANSITION_H
#define RM_LEARNER_BACKEND_TRANSITION_H

#include "shm/base/both.h"
#include "shm/ring.h"

#include <stdbool.h>
#include <stdint.h>

/* Rows in a ring or in a copy of one: row r at rows + (r & row_mask) * stride, columns at their
 * offsets in it. */
struct rm_row_view {
    const uint8_t *rows;
    uint64_t stride, row_mask;
    uint32_t generation_at; /* uint64 */
    uint32_t reward_at;     /* float per lane */
    uint32_t flags_at;      /* byte per lane */
    uint32_t action_at, action_words;
    uint32_t actions; /* number of actions */
};

/* Rows that may be read: those at distances 1 .. held before `end`; items start at 1 .. starts. */
struct rm_row_span {
    uint64_t end, held, starts;
};

/* Parameters of a transition. */
struct rm_transition_rule {
    uint32_t n_step, frame_stack;
    double gamma;
};

/* A transition that was found. */
struct rm_transition_found {
    uint32_t steps;      /* m */
    uint32_t before;     /* frames of the episode before the first row that a stack needs */
    float ret, discount; /* R, g */
    uint64_t oldest;     /* the greatest distance that was read */
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

/* The action in a row, bounded by `actions`. It is used as an index, and a foreign world may have
 * overwritten it: an impossible action counts as the first. */
RM_BOTH int32_t rm_row_action(int32_t word, uint32_t actions)
{
    return (uint32_t)word < actions ? word : 0;
}

/* The same of a real number: one that is not finite counts as 0. */
RM_BOTH int32_t rm_row_real(int32_t word)
{
    return (word & 0x7f800000) == 0x7f800000 ? 0 : word;
}

/* The first word of a row's action. */
RM_BOTH int32_t rm_view_action(const struct rm_row_view *v, uint64_t row, uint32_t lane)
{
    return rm_row_action(
        ((const int32_t *)(const void *)(rm_view_row(v, row) +
                                         v->action_at))[(uint64_t)lane * v->action_words],
        v->actions);
}

/* Number of rows before `distance` of the same episode and writer, at most `most`. Negative when a
 * needed row is overwritten. Raises *oldest to the greatest distance that was read. */
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

/* Walks up to n rows forward from `distance` and sets steps, ret and discount; false when a needed
 * row is not written yet, or when no row follows. */
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
