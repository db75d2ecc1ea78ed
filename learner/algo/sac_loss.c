#include "learner/algo/sac_loss.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

static bool any_legal(const uint8_t *mask, uint32_t actions)
{
    bool any = false;
    for (uint32_t a = 0; a < actions; a++)
        any |= mask[a] != 0;
    return any;
}

void rm_sac_policy(const float *logits, const uint8_t *mask, uint32_t batch, uint32_t actions,
                   float *p, float *logp)
{
    for (uint32_t b = 0; b < batch; b++, logits += actions, p += actions, logp += actions) {
        const uint8_t *legal = mask ? mask + (size_t)b * actions : NULL;
        if (legal && !any_legal(legal, actions))
            legal = NULL;
        double most = -INFINITY, sum = 0;
        for (uint32_t a = 0; a < actions; a++)
            if (!legal || legal[a])
                most = fmax(most, (double)logits[a]);
        for (uint32_t a = 0; a < actions; a++)
            if (!legal || legal[a])
                sum += exp((double)logits[a] - most);
        const double whole = most + log(sum);
        for (uint32_t a = 0; a < actions; a++) {
            const bool in = !legal || legal[a];
            const double own = (double)logits[a] - whole;
            logp[a] = in ? (float)own : 0.0f;
            p[a] = in ? (float)exp(own) : 0.0f;
        }
    }
}

static double least_value(const struct rm_sac_view *v, size_t at)
{
    return fmin((double)v->q1[at], (double)v->q2[at]);
}

void rm_sac_targets(const struct rm_sac_view *next, const float *ret, const float *discount,
                    float *y)
{
    for (uint32_t b = 0; b < next->batch; b++) {
        double value = 0;
        if (discount[b] == 0) { /* terminated: whatever the networks say */
            y[b] = ret[b];
            continue;
        }
        for (uint32_t a = 0; a < next->actions; a++) {
            const size_t at = (size_t)b * next->actions + a;
            if (next->p[at] > 0)
                value += (double)next->p[at] *
                         (least_value(next, at) - next->alpha * (double)next->logp[at]);
        }
        y[b] = (float)((double)ret[b] + (double)discount[b] * value);
    }
}

double rm_sac_critic_loss(const float *q, uint32_t batch, uint32_t actions, const int32_t *action,
                          const float *y, const float *weight, float *d_q, float *error)
{
    double loss = 0;
    for (uint32_t b = 0; b < batch; b++) {
        const size_t at = (size_t)b * actions + (uint32_t)action[b];
        const double off = (double)q[at] - (double)y[b], w = weight ? (double)weight[b] : 1;
        loss += w * 0.5 * off * off;
        d_q[at] = (float)(w * off / batch);
        if (error)
            error[b] += (float)(0.5 * fabs(off));
    }
    return loss / batch;
}

/* With F_a = alpha log p_a - Q_a the loss is sum p F; d/dlogit_a = p_a (F_a - sum p F): what alpha
 * log p contributes by its own change cancels, because probabilities add up to 1. */
struct rm_sac_policy_loss rm_sac_policy_loss(const struct rm_sac_view *v, float *d_logits)
{
    struct rm_sac_policy_loss sum = {0};
    for (uint32_t b = 0; b < v->batch; b++) {
        const size_t row = (size_t)b * v->actions;
        const double w = v->weight ? (double)v->weight[b] : 1;
        double expected = 0, entropy = 0, value = 0;
        uint32_t legal = 0;
        for (uint32_t a = 0; a < v->actions; a++) {
            const double p = (double)v->p[row + a], logp = (double)v->logp[row + a];
            legal += v->mask ? v->mask[row + a] != 0 : 1;
            if (p == 0)
                continue;
            expected += p * (v->alpha * logp - least_value(v, row + a));
            value += p * least_value(v, row + a);
            entropy -= p * logp;
        }
        for (uint32_t a = 0; a < v->actions; a++) {
            const double p = (double)v->p[row + a];
            const double force =
                p == 0 ? 0 : v->alpha * (double)v->logp[row + a] - least_value(v, row + a);
            d_logits[row + a] = p == 0 ? 0.0f : (float)(w * p * (force - expected) / v->batch);
        }
        sum.loss += w * expected;
        sum.entropy += entropy;
        sum.value += value;
        sum.gap += v->target_ratio * log(legal ? legal : v->actions) - entropy;
    }
    sum.loss /= v->batch;
    sum.entropy /= v->batch;
    sum.value /= v->batch;
    sum.gap /= v->batch;
    return sum;
}
