/* softmax: one choice of a policy's row of logits, for the thread that has the row; illegal actions
 * are as in learner/net/categorical.h. */
#ifndef RM_LEARNER_BACKEND_CUDA_SOFTMAX_H
#define RM_LEARNER_BACKEND_CUDA_SOFTMAX_H

#include "learner/backend/cuda/cuda.h"

#define ILLEGAL_LOGIT (-1e30f)

/* One choice of a row. */
struct choice {
    const float *logits;
    const uint8_t *mask; /* NULL: all are legal */
    uint32_t actions;
};

struct softmax {
    float max, sum, log_sum;
};

__device__ static inline float logit_of(const struct choice *c, uint32_t action)
{
    return c->mask && !c->mask[action] ? ILLEGAL_LOGIT : c->logits[action];
}

__device__ static inline struct softmax softmax_of(const struct choice *c)
{
    struct softmax s = {-INFINITY, 0, 0};
    for (uint32_t a = 0; a < c->actions; a++) {
        const float l = logit_of(c, a);
        s.max = l > s.max ? l : s.max;
    }
    for (uint32_t a = 0; a < c->actions; a++)
        s.sum += expf(logit_of(c, a) - s.max);
    s.log_sum = logf(s.sum);
    return s;
}

__device__ static inline float logp_of(const struct choice *c, const struct softmax *s,
                                       int32_t action)
{
    return logit_of(c, (uint32_t)action) - s->max - s->log_sum;
}

#endif
