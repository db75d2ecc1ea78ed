/* device_values: the losses of the value-based algorithms on a device, with what comes before them:
 * the choice of the next action and its targets. Equations and layouts are those of
 * learner/algo/algo.h and loss.h. Pointers are device memory. */
#ifndef RM_LEARNER_BACKEND_DEVICE_VALUES_H
#define RM_LEARNER_BACKEND_DEVICE_VALUES_H

#include "learner/backend/device.h"

/* Where q(b, a, j) stands: base[b * sample + a * action + j * quantile]. */
struct rm_device_layout {
    uint32_t actions, quantiles;
    size_t sample, action, quantile;
};

/* y(batch, quantiles) = ret + discount * value(b, a*, j), a* the argmax over legal actions of the
 * mean over quantiles of `choose`, the first of equals. Where discount is 0, y = ret whatever the
 * values are. A row with nothing legal is treated as if all were. */
struct rm_device_targets {
    uint32_t batch;
    struct rm_device_layout layout; /* of both */
    const float *choose;            /* network output on s' that chooses */
    const float *value;             /* network output on s' whose values count; may be the same */
    const uint8_t *mask;            /* (batch, actions) or NULL */
    const float *ret, *discount;    /* (batch) */
    float *y;                       /* (batch, quantiles) */
    int32_t *best;                  /* (batch): a*; NULL: nobody asks */
};

enum rm_device_loss_kind { RM_DEVICE_HUBER = 0, RM_DEVICE_QUANTILE_HUBER };

struct rm_device_value_loss {
    enum rm_device_loss_kind kind;
    uint32_t batch;
    struct rm_device_layout layout;
    const float *q;           /* network output on s */
    const int32_t *action;    /* (batch) */
    const float *target;      /* (batch, targets) */
    uint32_t targets;         /* Huber: 1 */
    const float *tau;         /* (batch, quantiles): fractions of q; Huber: NULL */
    float kappa;              /* Huber's threshold */
    bool mean_over_quantiles; /* the form of the originals: mean over i too, where papers sum */
    const float *weight;      /* (batch), NULL: all 1 */
    float *error;             /* (batch) out: the size of each sample's error, or NULL */
    float *d_q;               /* as q: written all over */
    double *partials;         /* (2 * batch) scratch */
    struct rm_device_figures *figures;
};

/* figures->sums of these losses, over figures->samples of transitions. */
enum { RM_DEVICE_SUM_Q = 0 }; /* mean over quantiles of q(s, action) */

struct rm_device_value_ops {
    void (*targets)(struct rm_backend *b, const struct rm_device_targets *targets);
    /* Two launches. Sets last_loss, now_sums and now_samples. */
    void (*loss)(struct rm_backend *b, const struct rm_device_value_loss *loss);
};

#endif
