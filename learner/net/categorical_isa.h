/* categorical_isa: softmax over sixteen rows side by side, written so that it vectorises across
 * them whatever the number of actions. For *.isa.c files only. */
#ifndef RM_LEARNER_NET_CATEGORICAL_ISA_H
#define RM_LEARNER_NET_CATEGORICAL_ISA_H

#include "learner/backend/isa.h"
#include "learner/backend/isa_math.h"

#include <stddef.h>
#include <stdint.h>

#define BLOCK_ROWS    16u
#define ILLEGAL_LOGIT (-1e30f)

/* One choice of a block of rows. A block with fewer rows repeats its last. */
struct block {
    const float *logits[BLOCK_ROWS]; /* of each row, this choice's first */
    const uint8_t *mask[BLOCK_ROWS]; /* likewise; mask[0] NULL: all are legal */
    uint32_t actions;
};

struct softmax {
    float max[BLOCK_ROWS];
    float sum[BLOCK_ROWS];     /* of exp(logit - max) */
    float log_sum[BLOCK_ROWS]; /* its logarithm */
};

static inline void logit_of(const struct block *b, uint32_t action, float out[BLOCK_ROWS])
{
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        out[k] = b->logits[k][action];
    if (b->mask[0])
        for (uint32_t k = 0; k < BLOCK_ROWS; k++)
            out[k] = b->mask[k][action] ? out[k] : ILLEGAL_LOGIT;
}

static inline void softmax_of(const struct block *b, struct softmax *s)
{
    float l[BLOCK_ROWS];
    logit_of(b, 0, s->max);
    for (uint32_t a = 1; a < b->actions; a++) {
        logit_of(b, a, l);
        for (uint32_t k = 0; k < BLOCK_ROWS; k++)
            s->max[k] = l[k] > s->max[k] ? l[k] : s->max[k];
    }
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        s->sum[k] = 0;
    for (uint32_t a = 0; a < b->actions; a++) {
        logit_of(b, a, l);
        for (uint32_t k = 0; k < BLOCK_ROWS; k++)
            s->sum[k] += exp_of(l[k] - s->max[k]);
    }
    for (uint32_t k = 0; k < BLOCK_ROWS; k++)
        s->log_sum[k] = log_of(s->sum[k]);
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
