/* r2d2_loss: targets and loss over sequences (Kapturowski 2019, "Recurrent experience replay in
 * distributed reinforcement learning", 2.3 and appendix). Pure functions over host memory, callable
 * from any thread. */
#ifndef RM_LEARNER_ALGO_R2D2_LOSS_H
#define RM_LEARNER_ALGO_R2D2_LOSS_H

#include "learner/backend/sequence_ops.h"

#include <stdbool.h>

/* y(trace, B) = h(R + g h^-1(q_target(row t + m, a*))), where a* is the best legal action of
 * `choose`; choose and q_target are (trace + tail, B, actions), of the batch's rows from burn_in
 * on. Without `rescale`, h is the identity. If no transition starts at a place, y = 0. */
void rm_r2d2_targets(const struct rm_batch *batch, const float *choose, const float *q_target,
                     bool rescale, float *y);

struct rm_r2d2_loss {
    const float *q; /* (trace + tail, B, actions) online */
    const float *y; /* (trace, B) */
    float kappa;
    double
        max_share; /* weight of the largest |delta| in a sequence's error; the mean has the rest */
};

struct rm_r2d2_sums {
    double
        loss; /* Huber loss of y - q(action), weighted by sequence, mean over valid transitions */
    double q_mean;
};

/* Overwrites d_q (trace + tail, B, actions), and batch->error unless it is NULL. */
struct rm_r2d2_sums rm_r2d2_loss(const struct rm_batch *batch, const struct rm_r2d2_loss *in,
                                 float *d_q);

#endif
