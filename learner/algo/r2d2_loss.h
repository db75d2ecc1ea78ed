/* r2d2_loss: targets and loss over sequences (Kapturowski 2019, "Recurrent experience replay in
 * distributed reinforcement learning", 2.3 and appendix). Pure functions over host memory, callable
 * from any thread. */
#ifndef RM_LEARNER_ALGO_R2D2_LOSS_H
#define RM_LEARNER_ALGO_R2D2_LOSS_H

#include "learner/backend/batch.h"

#include <stdbool.h>

/* Value rescaling (Pohlen 2018, proposition A.2): h(x) = sgn(x)(sqrt(|x| + 1) - 1) + eps x with
 * eps = 0.001, and its inverse. */
double rm_value_rescale(double x);
double rm_value_unscale(double x);

/* y(trace, B) = h(R + g h^-1(q_target(row t + m, a*))), where a* is the best legal action of
 * `choose`; both (trace + tail, B, actions), of the batch's rows from burn_in on; h only with
 * `rescale`. 0 where nothing starts. */
void rm_r2d2_targets(const struct rm_batch *batch, const float *choose, const float *q_target,
                     bool rescale, float *y);

struct rm_r2d2_loss {
    const float *q; /* (trace + tail, B, actions) online */
    const float *y; /* (trace, B) */
    float kappa;
    double
        max_share; /* a sequence's error: share of its largest |delta| plus the rest of its mean */
};

struct rm_r2d2_sums {
    double loss; /* Huber loss of y - q(action), weighted by sequence, over the transitions that
                    count */
    double q_mean;
};

/* d_q (trace + tail, B, actions) is overwritten; batch->error too where it is not NULL. */
struct rm_r2d2_sums rm_r2d2_loss(const struct rm_batch *batch, const struct rm_r2d2_loss *in,
                                 float *d_q);

#endif
