/* sequence_ops: targets and loss of R2D2 over stored sequences, operations that every backend has
 * (learner/algo/learning.h). Equations are those of learner/algo/r2d2_loss.h. Pointers, the batch's
 * too, are the backend's memory. */
#ifndef RM_LEARNER_BACKEND_SEQUENCE_OPS_H
#define RM_LEARNER_BACKEND_SEQUENCE_OPS_H

#include "learner/backend/device.h"
#include "learner/backend/batch.h"

struct rm_sequence_targets {
    struct rm_batch batch;
    const float *choose, *value; /* (trace + tail, B, actions): who chooses a*, who values it */
    bool rescale;                /* values are rescaled */
    float *y;                    /* (trace, B) */
};

struct rm_sequence_loss {
    struct rm_batch batch; /* its error is written where it is not NULL */
    const float *q;        /* (trace + tail, B, actions) online */
    const float *y;        /* (trace, B) */
    float kappa;
    bool rescale;
    double
        max_share; /* a sequence's error: share of its largest |delta| plus the rest of its mean */
    float *d_q;    /* (trace + tail, B, actions): written all over */
    double *partials; /* a device's: (3 * B) scratch */
    /* last_loss; now_sums[RM_SUM_OF_Q] is the mean of q(s, action) over what counts, not rescaled,
     * and now_samples is 1. */
    struct rm_update_figures *figures;
};

struct rm_sequence_ops {
    void (*targets)(struct rm_backend *b, const struct rm_sequence_targets *targets);
    void (*loss)(struct rm_backend *b, const struct rm_sequence_loss *loss);
};

#endif
