/* class_loss: the loss of algorithm distillation (Laskin et al. 2022), for both backends. A query
 * has two classes: the action of its step, and the step's type (history_codes.h). Its loss is
 *
 *   cross-entropy of the action + type_weight * cross-entropy of the type */
#ifndef RM_LEARNER_BACKEND_CLASS_LOSS_H
#define RM_LEARNER_BACKEND_CLASS_LOSS_H

#include "learner/backend/device.h"
#include "learner/backend/history_codes.h"
#include "shm/base/both.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct rm_class_loss {
    const float *out;      /* (samples, queries, actions + types): logits */
    float *d_out;          /* the same: the gradient; NULL: not needed */
    const int32_t *action; /* (samples, queries) */
    uint32_t samples, queries, actions, types;
    double part; /* of one query in the batch's loss: 1 / their number */
    double type_weight;
    struct rm_update_figures *figures; /* gives the gradient's scale; a device writes to them
                                          last_loss, now_sums (enum rm_value_sum), now_samples */
};

struct rm_class_sums {
    double loss;                    /* times part */
    double entropy, actions, types; /* over queries: of the action's softmax; cross-entropies */
};

/* Cross-entropy of n logits and class `target`. d_logits, if any: the gradient, times `scale`.
 * *entropy: that of the softmax. */
RM_BOTH double rm_cross_entropy(const float *logits, uint32_t n, uint32_t target, double scale,
                                float *d_logits, double *entropy)
{
    double most = logits[0], sum = 0, mean = 0;
    for (uint32_t i = 1; i < n; i++)
        most = logits[i] > most ? logits[i] : most;
    for (uint32_t i = 0; i < n; i++) {
        const double e = exp(logits[i] - most);
        sum += e;
        mean += e * (logits[i] - most);
    }
    for (uint32_t i = 0; d_logits && i < n; i++)
        d_logits[i] = (float)(scale * (exp(logits[i] - most) / sum - (i == target)));
    *entropy = log(sum) - mean / sum;
    return log(sum) + most - logits[target];
}

/* Query i of all samples. */
RM_BOTH void rm_class_loss_query(const struct rm_class_loss *l, size_t i,
                                 struct rm_class_sums *sums)
{
    const size_t at = i * (l->actions + l->types);
    const double scale = l->part * (double)rm_figures_scale(l->figures);
    const uint32_t type = rm_history_type(l->queries, (uint32_t)(i % l->queries));
    float *d = l->d_out ? l->d_out + at : NULL;
    double entropy, unused;
    const double actions =
        rm_cross_entropy(l->out + at, l->actions, (uint32_t)l->action[i], scale, d, &entropy);
    const double types =
        rm_cross_entropy(l->out + at + l->actions, l->types, type, scale * l->type_weight,
                         d ? d + l->actions : NULL, &unused);
    sums->loss += l->part * (actions + l->type_weight * types);
    sums->entropy += entropy;
    sums->actions += actions;
    sums->types += types;
}

#endif
