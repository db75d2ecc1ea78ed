/* categorical_isa: softmax over sixteen rows side by side. The compiler vectorises the loops across
 * the rows, for any number of actions. For *.isa.c files only. */
#ifndef RM_LEARNER_NET_CATEGORICAL_ISA_H
#define RM_LEARNER_NET_CATEGORICAL_ISA_H

#include "learner/backend/isa.h"
#include "learner/backend/isa_math.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK_ROWS    16u
#define ILLEGAL_LOGIT (-1e30f)

/* Up to this number of actions a block stores the logits and weights of one choice side by side.
 * For choices with more actions they are computed again at each use. */
#define BLOCK_ACTIONS 16u

/* One choice of a block of rows. A block with fewer rows repeats its last row. */
struct block {
    const float *logits[BLOCK_ROWS]; /* of each row, this choice's first */
    const uint8_t *mask[BLOCK_ROWS]; /* likewise; mask[0] NULL: all are legal */
    uint32_t actions;
    float logit[BLOCK_ACTIONS][BLOCK_ROWS];  /* illegal ones replaced */
    float weight[BLOCK_ACTIONS][BLOCK_ROWS]; /* exp(logit - max) */
};

struct softmax {
    float max[BLOCK_ROWS];
    float sum[BLOCK_ROWS];     /* of the weights */
    float log_sum[BLOCK_ROWS]; /* its logarithm */
};

static inline void fetch_logit(const struct block *b, uint32_t action, float *restrict out)
{
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        out[k] = b->logits[k][action];
    if (b->mask[0])
        for (uint32_t k = 0; k < BLOCK_ROWS; k++)
            out[k] = b->mask[k][action] ? out[k] : ILLEGAL_LOGIT;
}

static inline void weigh_logit(const float *restrict logit, const float *restrict max,
                               float *restrict weight)
{
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        weight[k] = exp_of(logit[k] - max[k]);
}

/* The logits of one action; `room` is used if they are not stored. */
static inline const float *logit_of(const struct block *b, uint32_t action, float *restrict room)
{
    if (b->actions <= BLOCK_ACTIONS)
        return b->logit[action];
    fetch_logit(b, action, room);
    return room;
}

/* exp(logit - max) of one action. */
static inline const float *weight_of(const struct block *b, const struct softmax *s,
                                     uint32_t action, float *restrict room)
{
    if (b->actions <= BLOCK_ACTIONS)
        return b->weight[action];
    float l[BLOCK_ROWS];
    fetch_logit(b, action, l);
    weigh_logit(l, s->max, room);
    return room;
}

static inline void softmax_of(struct block *b, struct softmax *s)
{
    const bool kept = b->actions <= BLOCK_ACTIONS;
    float room[BLOCK_ROWS];
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        s->max[k] = -INFINITY;
        s->sum[k] = 0;
    }
    for (uint32_t a = 0; a < b->actions; a++) {
        float *l = room;
        if (kept)
            l = b->logit[a];
        fetch_logit(b, a, l);
        for (uint32_t k = 0; k < BLOCK_ROWS; k++)
            s->max[k] = l[k] > s->max[k] ? l[k] : s->max[k];
    }
    for (uint32_t a = 0; a < b->actions; a++) {
        float *weight = kept ? b->weight[a] : room;
        float other[BLOCK_ROWS];
        weigh_logit(logit_of(b, a, other), s->max, weight);
        for (uint32_t k = 0; k < BLOCK_ROWS; k++)
            s->sum[k] += weight[k];
    }
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        s->log_sum[k] = rm_log_of(s->sum[k]);
}

/* ln of the probability of one action of each row. */
static inline void logp_of(const struct block *b, const struct softmax *s,
                           const int32_t action[BLOCK_ROWS], float out[BLOCK_ROWS])
{
    for (uint32_t k = 0; k < BLOCK_ROWS; k++) {
        const float l =
            b->mask[0] && !b->mask[k][action[k]] ? ILLEGAL_LOGIT : b->logits[k][action[k]];
        out[k] = l - s->max[k] - s->log_sum[k];
    }
}

#endif
