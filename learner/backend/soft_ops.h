/* soft_ops: policy, targets and losses of soft actor-critic, operations that every backend has
 * (learner/algo/learning.h), after Christodoulou (2019, "Soft actor-critic for discrete action
 * settings"). Pointers are to the backend's memory; arrays without a stated shape are (batch,
 * actions), row-major.
 *
 *   y       = ret + discount * sum_a p (min(q1, q2) - alpha log p)   (eq. 3, 4), of the next states
 *   critic  half of (q(b, action[b]) - y)^2, mean over the batch     (eq. 5)
 *   policy  sum_a p (alpha log p - min(q1, q2)), mean over the batch (eq. 12)
 *   alpha   Adam (Kingma 2015) learns its logarithm down the gradient of alpha (H - target)
 *           (eq. 11), H the policy's entropy in the states of the batch: alpha falls while the
 *           entropy is above its target
 *
 * n-step returns omit the entropies of the steps between. Gradients of the policy's loss do not
 * pass through the values.
 *
 * REAL ACTIONS. An expectation over discrete actions is a sum over all of them; over real actions
 * it is one draw (Haarnoja 2018, eq. 7): one action of probability 1, whose logp is the draw's. So
 * targets and losses are the same. The draw, which is an input of the critics, and the gradient
 * through critics and draw are different. */
#ifndef RM_LEARNER_BACKEND_SOFT_OPS_H
#define RM_LEARNER_BACKEND_SOFT_OPS_H

#include "learner/backend/device.h"
#include "learner/backend/gaussian.h"
#include "learner/backend/value_ops.h"

#include <math.h>

/* The temperature alpha. */
struct rm_temperature {
    double log, m, v; /* with Adam's moments */
    uint64_t steps;
};

/* A policy in some states and two estimates of its values there. */
struct rm_soft_states {
    uint32_t batch, actions;
    const float *logits;                      /* NULL: p and logp are there */
    const float *q1, *q2;                     /* the minimum is used (eq. 8; Fujimoto 2018) */
    const uint8_t *mask;                      /* legal actions, NULL: all */
    const struct rm_temperature *temperature; /* (1) */
    float *p, *logp;                          /* scratch: the policy's probabilities */
};

struct rm_soft_critic_loss {
    uint32_t batch, actions;
    uint32_t critic;       /* 0: the first, which resets errors, and the loss */
    uint32_t after_policy; /* 1: not the loss, which has the policy's part */
    const float *q;
    const int32_t *action; /* (batch); NULL: there is one */
    const float *y;        /* (batch) */
    const float *weight;   /* (batch), NULL: all 1 */
    float *error;          /* (batch): the mean over critics of |y - q|; NULL: not needed */
    float *d_q;            /* written all over */
    struct rm_update_figures *figures; /* last_loss */
};

struct rm_soft_policy_loss {
    struct rm_soft_states states;
    const float *weight;               /* (batch), NULL: all 1 */
    double target_ratio;               /* target entropy, as a fraction of ln(legal actions) */
    double target_entropy;             /* itself, where logits are NULL */
    float *d_logits;                   /* written all over; where logits are NULL those of the two
                                          values, (2, batch) */
    struct rm_update_figures *figures; /* added to last_loss, or set where logits are NULL;
                                          now_sums, enum rm_value_sum, of one sample */
};

/* Of real actions: (batch, reals) but where said. */
struct rm_soft_draw {
    struct rm_gaussian gaussian; /* through tanh */
    uint32_t batch, unused;
    const float *out;    /* (batch, 2 reals) of the policy */
    const float *normal; /* standard normals */
    float *drawn;        /* before tanh */
    float *action;       /* after it */
    float *p, *logp;     /* (batch) 1, and that of the action */
};

/* The gradient of the policy's loss by its outputs, where critics have given theirs by the action.
 */
struct rm_soft_draw_back {
    struct rm_soft_draw draw;
    const float *d_action[2]; /* (batch, reals) */
    const float *weight;      /* (batch), NULL: all 1 */
    const struct rm_temperature *temperature;
    const struct rm_update_figures *figures;
    float *d_out; /* (batch, 2 reals) */
};

struct rm_soft_step {
    double beta1, beta2, epsilon;
    const struct rm_update_knobs *knobs; /* the learning rate */
    const struct rm_update_figures
        *figures; /* the gap; if the update is skipped, alpha does not move */
    struct rm_temperature *temperature;
};

struct rm_soft_ops {
    /* y(batch): the states are the next ones, with target networks. */
    void (*targets)(struct rm_backend *b, const struct rm_soft_states *next, const float *ret,
                    const float *discount, float *y);
    void (*critic_loss)(struct rm_backend *b, const struct rm_soft_critic_loss *loss);
    void (*policy_loss)(struct rm_backend *b, const struct rm_soft_policy_loss *loss);
    void (*temperature)(struct rm_backend *b, const struct rm_soft_step *step);
    void (*draw)(struct rm_backend *b, const struct rm_soft_draw *draw);
    void (*draw_back)(struct rm_backend *b, const struct rm_soft_draw_back *back);
    /* n actions of rows, as critics are given them: tanh of what was drawn. */
    void (*bound)(struct rm_backend *b, const int32_t *word, size_t n, float *action);
};

/* --- of both sides --------------------------------------------------------------------------- */

RM_BOTH double rm_temperature_alpha(const struct rm_temperature *temperature)
{
    return exp(temperature->log);
}

/* One step of Adam's. */
RM_BOTH void rm_temperature_step(const struct rm_soft_step *s)
{
    struct rm_temperature *t = s->temperature;
    if (s->figures->skip)
        return;
    const double gradient = -rm_temperature_alpha(t) * s->figures->now_sums[RM_SUM_OF_GAP];
    const double k = (double)++t->steps;
    t->m = s->beta1 * t->m + (1 - s->beta1) * gradient;
    t->v = s->beta2 * t->v + (1 - s->beta2) * gradient * gradient;
    const double m = t->m / (1 - pow(s->beta1, k)), v = t->v / (1 - pow(s->beta2, k));
    t->log -= s->knobs->learning_rate * m / (sqrt(v) + s->epsilon);
}

RM_BOTH double rm_soft_weight(const float *weight, size_t row)
{
    return weight ? (double)weight[row] : 1;
}

RM_BOTH double rm_soft_value(const struct rm_soft_states *s, size_t at)
{
    return fmin((double)s->q1[at], (double)s->q2[at]);
}

/* p and logp of a row from its logits, unless they are there. Illegal actions have 0 and 0. If a
 * row has no legal action, all its actions count as legal: only the end of an episode has such
 * rows, and its value is not used. logp may be the memory of logits. */
RM_BOTH void rm_soft_policy_row(const struct rm_soft_states *s, size_t row)
{
    if (!s->logits)
        return;
    const size_t at = row * s->actions;
    const uint8_t *mask = s->mask ? s->mask + at : NULL;
    const float *logits = s->logits + at;
    bool any = false;
    for (uint32_t a = 0; mask && a < s->actions; a++)
        any |= mask[a] != 0;
    const uint8_t *legal = any ? mask : NULL;
    double most = -INFINITY, sum = 0;
    for (uint32_t a = 0; a < s->actions; a++)
        if (!legal || legal[a])
            most = fmax(most, (double)logits[a]);
    for (uint32_t a = 0; a < s->actions; a++)
        if (!legal || legal[a])
            sum += exp((double)logits[a] - most);
    const double whole = most + log(sum);
    for (uint32_t a = 0; a < s->actions; a++) {
        const bool in = !legal || legal[a];
        const double own = (double)logits[a] - whole;
        s->logp[at + a] = in ? (float)own : 0.0f;
        s->p[at + a] = in ? (float)exp(own) : 0.0f;
    }
}

RM_BOTH float rm_soft_target_row(const struct rm_soft_states *s, size_t row, float ret,
                                 float discount)
{
    const double alpha = rm_temperature_alpha(s->temperature);
    double value = 0;
    if (discount == 0) /* terminated: the networks' values do not count */
        return ret;
    rm_soft_policy_row(s, row);
    for (size_t at = row * s->actions; at < (row + 1) * s->actions; at++)
        if (s->p[at] > 0)
            value += (double)s->p[at] * (rm_soft_value(s, at) - alpha * (double)s->logp[at]);
    return (float)((double)ret + (double)discount * value);
}

/* Writes d_q and error; returns the loss. */
RM_BOTH double rm_soft_critic_row(const struct rm_soft_critic_loss *in, size_t row)
{
    const size_t first = row * in->actions;
    const size_t at = first + (in->action ? (uint32_t)in->action[row] : 0);
    const double weight = rm_soft_weight(in->weight, row);
    const double off = (double)in->q[at] - (double)in->y[row];
    const double scale = (double)rm_figures_scale(in->figures);
    for (uint32_t a = 0; a < in->actions; a++)
        in->d_q[first + a] = 0;
    in->d_q[at] = (float)(scale * weight * off / in->batch);
    if (in->error)
        in->error[row] = (in->critic ? in->error[row] : 0.0f) + (float)(0.5 * fabs(off));
    return weight * 0.5 * off * off;
}

/* `loss`: the sum over rows. */
RM_BOTH void rm_soft_critic_end(const struct rm_soft_critic_loss *in, double loss)
{
    const double before = in->critic || in->after_policy ? in->figures->last_loss : 0;
    in->figures->last_loss = before + loss / in->batch;
}

struct rm_soft_sums {
    double loss, entropy, value, gap;
};

/* Of discrete actions; writes d_logits. With F_a = alpha log p_a - Q_a the loss is sum p F, and
 * d/dlogit_a = p_a (F_a - sum p F): what alpha log p contributes by its own change cancels, because
 * probabilities add up to 1. */
RM_BOTH void rm_soft_policy_loss_row(const struct rm_soft_policy_loss *in, double alpha, size_t row,
                                     struct rm_soft_sums *sums)
{
    const struct rm_soft_states *s = &in->states;
    const size_t first = row * s->actions, end = first + s->actions;
    const double weight = rm_soft_weight(in->weight, row);
    const double scale = (double)rm_figures_scale(in->figures);
    double expected = 0, entropy = 0, value = 0;
    uint32_t legal = 0;
    rm_soft_policy_row(s, row);
    for (size_t at = first; at < end; at++) {
        const double p = (double)s->p[at], logp = (double)s->logp[at];
        legal += s->mask ? s->mask[at] != 0 : 1;
        if (p == 0)
            continue;
        expected += p * (alpha * logp - rm_soft_value(s, at));
        value += p * rm_soft_value(s, at);
        entropy -= p * logp;
    }
    for (size_t at = first; at < end; at++) {
        const double p = (double)s->p[at];
        const double force = p == 0 ? 0 : alpha * (double)s->logp[at] - rm_soft_value(s, at);
        in->d_logits[at] =
            p == 0 ? 0.0f : (float)(scale * weight * p * (force - expected) / s->batch);
    }
    sums->loss += weight * expected;
    sums->entropy += entropy;
    sums->value += value;
    sums->gap += in->target_ratio * log((double)(legal ? legal : s->actions)) - entropy;
}

/* Of one draw a row, whose values are of that action: d_logits is the loss's gradient by them, -1
 * by the smaller one (Haarnoja 2018, eq. 7). The sums are means over the batch already. */
RM_BOTH void rm_soft_drawn_loss_row(const struct rm_soft_policy_loss *in, double alpha, size_t row,
                                    struct rm_soft_sums *sums)
{
    const struct rm_soft_states *s = &in->states;
    const double weight = rm_soft_weight(in->weight, row), logp = (double)s->logp[row];
    const bool second = s->q2[row] < s->q1[row];
    const float d = (float)((double)rm_figures_scale(in->figures) * -weight / s->batch);
    in->d_logits[row] = second ? 0.0f : d;
    in->d_logits[s->batch + row] = second ? d : 0.0f;
    sums->loss += weight * (alpha * logp - rm_soft_value(s, row)) / s->batch;
    sums->entropy -= logp / s->batch;
    sums->value += rm_soft_value(s, row) / s->batch;
}

/* From the sums over rows. */
RM_BOTH void rm_soft_policy_loss_end(const struct rm_soft_policy_loss *in, double alpha,
                                     const struct rm_soft_sums *sums)
{
    const bool drawn = !in->states.logits;
    const double n = drawn ? 1 : in->states.batch, entropy = sums->entropy / n;
    struct rm_update_figures *f = in->figures;
    rm_figures_begin(f, (drawn ? 0 : f->last_loss) + sums->loss / n, 1);
    f->now_sums[RM_SUM_OF_Q] = sums->value / n;
    f->now_sums[RM_SUM_OF_ENTROPY] = entropy;
    f->now_sums[RM_SUM_OF_TEMPERATURE] = alpha;
    f->now_sums[RM_SUM_OF_GAP] = drawn ? in->target_entropy - entropy : sums->gap / n;
}

/* One row: drawn, action and logp. */
RM_BOTH void rm_soft_draw_row(const struct rm_soft_draw *d, size_t row)
{
    const uint32_t reals = d->gaussian.reals;
    const float *mean = d->out + row * 2 * reals;
    float logp = 0.0f;
    for (uint32_t i = 0; i < reals; i++) {
        const size_t at = row * reals + i;
        const float log_deviation = rm_log_deviation(mean[reals + i]);
        const float u = mean[i] + expf(log_deviation) * d->normal[at];
        d->drawn[at] = u;
        d->action[at] = rm_gaussian_bounded(u, 1);
        logp +=
            -0.5f * d->normal[at] * d->normal[at] - log_deviation - 0.91893853f - rm_log_squash(u);
    }
    d->logp[row] = logp;
    d->p[row] = 1.0f;
}

/* One row of d_out. With u = mean + deviation normal, ln pi has d/du = 2 tanh(u) and d/d ln
 * deviation = -1 besides. */
RM_BOTH void rm_soft_draw_back_row(const struct rm_soft_draw_back *k, size_t row)
{
    const struct rm_soft_draw *d = &k->draw;
    const double share =
        rm_temperature_alpha(k->temperature) * rm_soft_weight(k->weight, row) / d->batch;
    const float alpha_share = (float)((double)rm_figures_scale(k->figures) * share);
    const uint32_t reals = d->gaussian.reals;
    const float *given = d->out + row * 2 * reals + reals;
    float *d_mean = k->d_out + row * 2 * reals;
    for (uint32_t i = 0; i < reals; i++) {
        const size_t at = row * reals + i;
        const float a = d->action[at], log_deviation = rm_log_deviation(given[i]);
        const float d_action = k->d_action[0][at] + k->d_action[1][at];
        const float d_u = d_action * (1.0f - a * a) + alpha_share * 2.0f * a;
        d_mean[i] = d_u;
        d_mean[reals + i] = given[i] == log_deviation
                                ? d_u * expf(log_deviation) * d->normal[at] - alpha_share
                                : 0.0f;
    }
}

#endif
