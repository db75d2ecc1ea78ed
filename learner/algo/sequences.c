#include "learner/algo/sequences.h"

#include "shm/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rm_sequences_create(struct rm_sequences *s, const struct rm_rollout *rollout,
                        struct rm_backend *backend, const struct rm_net *net,
                        struct rm_error *error)
{
    *s = (struct rm_sequences){.rollout = rollout,
                               .backend = backend,
                               .steps = rollout->steps,
                               .lanes = rollout->lanes,
                               .floats = rm_net_state_count(net),
                               .own = rm_net_value_state_count(net)};
    const size_t floats = (size_t)s->lanes * s->floats, rows = (size_t)s->steps * s->lanes;
    s->first = backend->ops->alloc(backend, floats);
    s->now = backend->ops->alloc(backend, floats);
    s->state = backend->ops->alloc(backend, floats);
    s->value = calloc((size_t)s->lanes * s->own + 1, sizeof *s->value);
    s->row = calloc(rows, sizeof *s->row);
    s->sample = calloc(rows, sizeof *s->sample);
    s->restart = calloc(rows + s->lanes, 1);
    if (!s->first || !s->now || !s->state || !s->value || !s->row || !s->sample || !s->restart) {
        rm_sequences_destroy(s);
        return rm_fail(error, -ENOMEM, "no memory for %u states of %u floats", s->lanes, s->floats);
    }
    return 0;
}

void rm_sequences_destroy(struct rm_sequences *s)
{
    float *owned[] = {s->first, s->now, s->state};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        if (owned[i])
            s->backend->ops->release(s->backend, owned[i]);
    free(s->value);
    free(s->row);
    free(s->sample);
    free(s->restart);
    *s = (struct rm_sequences){0};
}

void rm_sequences_begin(struct rm_sequences *s)
{
    const uint32_t acts = s->floats - s->own;
    for (uint32_t lane = 0; lane < s->lanes; lane++) {
        float *to = s->first + (size_t)lane * s->floats;
        if (acts)
            memcpy(to, s->rollout->state + (size_t)lane * acts, acts * sizeof *to);
        if (s->own)
            memcpy(to + acts, s->value + (size_t)lane * s->own, s->own * sizeof *to);
    }
    memcpy(s->now, s->first, (size_t)s->lanes * s->floats * sizeof *s->now);
}

struct rm_net_input rm_sequences_pass(struct rm_sequences *s, uint32_t step, uint32_t steps)
{
    const struct rm_rollout *r = s->rollout;
    const size_t at = (size_t)step * s->lanes;
    const uint32_t rows = steps * s->lanes;
    for (uint32_t i = 0; i < rows; i++)
        s->restart[i] = r->flags[at + i] & RM_FLAG_FIRST;
    return (struct rm_net_input){.x = r->x + at * r->inputs,
                                 .batch = rows,
                                 .steps = steps,
                                 .state = s->now,
                                 .next_state = s->now,
                                 .restart = s->restart};
}

struct rm_net_input rm_sequences_after(struct rm_sequences *s)
{
    memcpy(s->now, s->rollout->after, (size_t)s->lanes * s->floats * sizeof *s->now);
    return rm_sequences_pass(s, s->steps, 1);
}

void rm_sequences_passed(struct rm_sequences *s, uint32_t steps)
{
    if (steps != s->steps || !s->own)
        return;
    for (uint32_t lane = 0; lane < s->lanes; lane++)
        memcpy(s->value + (size_t)lane * s->own, s->now + (size_t)(lane + 1) * s->floats - s->own,
               s->own * sizeof *s->value);
}

struct rm_sequence_batch rm_sequences_gather(struct rm_sequences *s, const uint32_t *lane,
                                             uint32_t lanes)
{
    const struct rm_rollout *r = s->rollout;
    uint32_t n = 0, samples = 0;
    for (uint32_t i = 0; i < lanes; i++)
        memcpy(s->state + (size_t)i * s->floats, s->first + (size_t)lane[i] * s->floats,
               s->floats * sizeof *s->state);
    for (uint32_t t = 0; t < s->steps; t++)
        for (uint32_t i = 0; i < lanes; i++, n++) {
            const uint32_t row = t * s->lanes + lane[i];
            s->row[n] = row;
            s->restart[n] = r->flags[row] & RM_FLAG_FIRST;
            s->sample[samples] = row;
            samples += r->valid[row] > 0;
        }
    return (struct rm_sequence_batch){.input = {.x = r->x,
                                                .index = s->row,
                                                .batch = n,
                                                .steps = s->steps,
                                                .state = s->state,
                                                .restart = s->restart},
                                      .sample = s->sample,
                                      .samples = samples};
}
