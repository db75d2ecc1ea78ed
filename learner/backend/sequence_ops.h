/* sequence_ops: targets and loss of R2D2 over stored sequences, operations that every backend has
 * (learner/algo/learning.h). The equations are in learner/algo/r2d2_loss.c. Pointers, including the
 * batch's, are to the backend's memory. */
#ifndef RM_LEARNER_BACKEND_SEQUENCE_OPS_H
#define RM_LEARNER_BACKEND_SEQUENCE_OPS_H

#include "learner/backend/device.h"
#include "learner/backend/batch.h"

#include <math.h>

struct rm_sequence_targets {
    struct rm_batch batch;
    const float *choose; /* (trace + tail, B, actions): values whose argmax is a* */
    const float *value;  /* (trace + tail, B, actions): values that are bootstrapped from, at a* */
    bool rescale;        /* both are rescaled by rm_value_rescale() */
    float *y;            /* (trace, B) */
};

struct rm_sequence_loss {
    struct rm_batch batch; /* its error is written unless NULL */
    const float *q;        /* (trace + tail, B, actions) online */
    const float *y;        /* (trace, B) */
    float kappa;
    bool rescale;
    double
        max_share; /* a sequence's error is max_share * largest |delta| + (1 - max_share) * mean */
    float *d_q;    /* (trace + tail, B, actions): all entries are written */
    double *partials; /* (3 * B) scratch of a device */
    /* last_loss; now_sums[RM_SUM_OF_Q] is the mean of q(s, action) over valid transitions, not
     * rescaled; now_samples is 1. */
    struct rm_update_figures *figures;
};

struct rm_sequence_ops {
    void (*targets)(struct rm_backend *b, const struct rm_sequence_targets *targets);
    void (*loss)(struct rm_backend *b, const struct rm_sequence_loss *loss);
};

/* --- of both sides --------------------------------------------------------------------------- */

#define RM_RESCALE_EPSILON 1e-3

/* Value rescaling (Pohlen 2018, proposition A.2): h(x) = sgn(x)(sqrt(|x| + 1) - 1) + eps x with
 * eps = 0.001. */
RM_BOTH double rm_value_rescale(double x)
{
    return copysign(sqrt(fabs(x) + 1) - 1, x) + RM_RESCALE_EPSILON * x;
}

/* The inverse of h. With s = sqrt(1 + 4 eps (|x| + 1 + eps)): ((s - 1) / (2 eps))^2 - 1, where s -
 * 1 is computed as a quotient, without the difference of two nearly equal numbers. */
RM_BOTH double rm_value_unscale(double x)
{
    const double inside = 4 * RM_RESCALE_EPSILON * (fabs(x) + 1 + RM_RESCALE_EPSILON);
    const double part = 2 * (fabs(x) + 1 + RM_RESCALE_EPSILON) / (sqrt(1 + inside) + 1);
    return copysign(part * part - 1, x);
}

/* The best legal action, the first of equals; if none is legal, the best of all. */
RM_BOTH uint32_t rm_best_action(const float *q, const uint8_t *mask, uint32_t actions)
{
    uint32_t best = 0;
    bool any = false;
    for (uint32_t a = 0; mask && a < actions; a++)
        any |= mask[a] != 0;
    const uint8_t *legal = any ? mask : NULL;
    any = false;
    for (uint32_t a = 0; a < actions; a++)
        if ((!legal || legal[a]) && (!any || q[a] > q[best])) {
            best = a;
            any = true;
        }
    return best;
}

#endif
