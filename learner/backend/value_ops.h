/* value_ops: targets and losses of the algorithms that learn from replay by values, and the loss of
 * distill, operations that every backend has
 * (learner/algo/learning.h). The equations are in learner/algo/algo.h and loss.h. Pointers are to
 * the backend's memory, except where a comment names another. */
#ifndef RM_LEARNER_BACKEND_VALUE_OPS_H
#define RM_LEARNER_BACKEND_VALUE_OPS_H

#include "learner/backend/class_loss.h"
#include "learner/backend/device.h"

#include <math.h>

/* q(b, a, j) is base[b * sample + a * action + j * quantile]. */
struct rm_value_layout {
    uint32_t actions, quantiles;
    size_t sample, action, quantile;
};

/* y(batch, quantiles) = ret + discount * value(b, a*, j). a* is the legal action with the largest
 * mean over quantiles of `choose`, the first of equals. If discount is 0, y = ret, even if values
 * are not finite. If no action of a row is legal, all count as legal. */
struct rm_value_targets {
    uint32_t batch;
    struct rm_value_layout layout; /* of choose and value */
    const float *choose;           /* output on s' of the network that chooses a* */
    const float *value;            /* output on s' of the network that values a*; may be the same */
    const uint8_t *mask;           /* (batch, actions) or NULL */
    const float *ret, *discount;   /* (batch) */
    float *y;                      /* (batch, quantiles) */
    int32_t *best;                 /* (batch): a* */
};

enum rm_value_loss_kind { RM_LOSS_HUBER = 0, RM_LOSS_QUANTILE_HUBER };

/* The loss of some rows of a batch, for rm_net_learn(). */
struct rm_value_loss {
    enum rm_value_loss_kind kind;
    uint32_t batch; /* rows of this call; on a device all */
    uint32_t of;    /* rows of the whole mean, of which this call has some; 0: this call has all */
    struct rm_value_layout layout;
    const float *q;           /* (batch) network output on s, by `layout` */
    const int32_t *action;    /* (batch) */
    const float *target;      /* (batch, targets): y_j */
    uint32_t targets;         /* Huber: 1 */
    const float *tau;         /* (batch, quantiles): fractions of q; Huber: NULL */
    float kappa;              /* Huber's threshold */
    float cql;                /* weight of CQL(H)'s penalty; 0: none */
    bool mean_over_quantiles; /* mean over i too, where the papers sum (algorithm.form) */
    const uint8_t *mask;      /* (batch, actions): legal in s, for the penalty; NULL: all */
    const float *weight;      /* (batch) of each sample's loss; NULL: all 1 */
    float *error;             /* (batch) out, may be NULL: |y - q| of a sample; with quantiles the
                                 mean over i and j of rho, unweighted */
    float *d_q;               /* layout of q; all entries are written */
    /* A device's: */
    double *partials; /* (2 * batch) scratch */
    struct rm_update_figures *figures;
};

/* figures->sums of updates that learn from replay, over figures->samples. */
enum rm_value_sum {
    RM_SUM_OF_Q = 0,       /* mean over quantiles of q(s, action); SAC: expected value */
    RM_SUM_OF_ENTROPY,     /* only SAC, clone and distill */
    RM_SUM_OF_TEMPERATURE, /* only SAC */
    RM_SUM_OF_GAP,         /* only SAC: target entropy - entropy */
    RM_SUM_OF_ACTIONS,     /* only distill: cross-entropy of actions */
    RM_SUM_OF_TYPES,       /* only distill: cross-entropy of the types of steps */
};

struct rm_value_ops {
    void (*targets)(struct rm_backend *b, const struct rm_value_targets *targets);
    /* The CPU adds the loss to sums[0] (rm_net_learn), and from [1] on the numbers of now_sums. A
     * device sets last_loss, now_sums and now_samples, in two launches. */
    void (*loss)(struct rm_backend *b, const struct rm_value_loss *loss, double *sums);
    /* The same for class_loss.h, in one launch. */
    void (*class_loss)(struct rm_backend *b, const struct rm_class_loss *loss, double *sums);
};

/* --- of both sides --------------------------------------------------------------------------- */

/* The mean over quantiles of an action's values; `row` is a sample's output. */
RM_BOTH double rm_value_mean(const float *row, const struct rm_value_layout *layout,
                             uint32_t action)
{
    const float *q = row + action * layout->action;
    double sum = 0;
    for (uint32_t j = 0; j < layout->quantiles; j++)
        sum += (double)q[j * layout->quantile];
    return sum / layout->quantiles;
}

/* CQL(H)'s penalty of a sample (Kumar 2020, "Conservative Q-Learning for Offline Reinforcement
 * Learning", eq. 4, first term): ln sum_a exp Q(s, a) - Q(s, action), over legal actions, all if
 * none is, and with Q the mean over quantiles. Adds `scale` times its gradient to d_q, the sample's
 * in the layout of q. */
RM_BOTH double rm_cql(const struct rm_value_layout *layout, const float *q, const uint8_t *legal,
                      uint32_t action, float scale, float *d_q)
{
    const double taken = rm_value_mean(q, layout, action);
    double most = taken, sum = 0;
    bool any = false;
    for (uint32_t a = 0; legal && a < layout->actions; a++)
        any |= legal[a] != 0;
    for (uint32_t a = 0; a < layout->actions; a++) {
        const double value = rm_value_mean(q, layout, a);
        if ((!any || legal[a]) && value > most)
            most = value;
    }
    for (uint32_t a = 0; a < layout->actions; a++)
        if (!any || legal[a])
            sum += exp(rm_value_mean(q, layout, a) - most);
    for (uint32_t a = 0; a < layout->actions; a++) {
        double share = a == action ? -1.0 : 0.0;
        if (!any || legal[a])
            share += exp(rm_value_mean(q, layout, a) - most) / sum;
        for (uint32_t j = 0; j < layout->quantiles; j++)
            d_q[a * layout->action + j * layout->quantile] +=
                scale * (float)(share / layout->quantiles);
    }
    return most + log(sum) - taken;
}

/* Huber_kappa(u) = c (u - c / 2) with c = clamp(u, -kappa, kappa), and its derivative is c. Without
 * a branch, so that loops vectorise. NaN fails every comparison, so it passes through to both loss
 * and gradient. */
RM_BOTH float rm_huber_slope(float u, float kappa)
{
    const float low = u < -kappa ? -kappa : u;
    return low > kappa ? kappa : low;
}

RM_BOTH float rm_huber(float u, float slope)
{
    return slope * (u - 0.5f * slope);
}

#endif
