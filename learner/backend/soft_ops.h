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
 * n-step returns omit the entropies of the steps in between. Gradients of the policy's loss do not
 * pass through the values q1 and q2.
 *
 * REAL ACTIONS. For discrete actions an expectation is a sum over all actions. For real actions it
 * is estimated by one draw (Haarnoja 2018, eq. 7): one action with p = 1 and the draw's logp. So
 * the targets and losses above hold unchanged, with actions = 1. Two things differ: the critics
 * read the drawn action as an input, and the policy's gradient passes through critics and draw. */
#ifndef RM_LEARNER_BACKEND_SOFT_OPS_H
#define RM_LEARNER_BACKEND_SOFT_OPS_H

#include "learner/backend/device.h"
#include "learner/backend/gaussian.h"
#include "learner/backend/value_ops.h"

#include <math.h>

/* The temperature alpha, as its logarithm, with the state of its Adam optimizer. */
struct rm_temperature {
    double log, m, v; /* m, v: Adam's moments */
    uint64_t steps;   /* of Adam */
};

/* Some states, with the policy in them and two critics' values of its actions. */
struct rm_soft_states {
    uint32_t batch, actions;
    const float *logits;                      /* NULL: real actions; p and logp are inputs */
    const float *q1, *q2;                     /* the minimum is used (eq. 8; Fujimoto 2018) */
    const uint8_t *mask;                      /* legal actions; NULL: all */
    const struct rm_temperature *temperature; /* (1) */
    float *p, *logp;                          /* probabilities; computed from logits, if given */
};

struct rm_soft_critic_loss {
    uint32_t batch, actions;
    uint32_t critic;       /* 0: the first critic, whose call resets error and last_loss */
    uint32_t after_policy; /* 1: the first critic adds to last_loss, which has the policy's loss */
    const float *q;
    const int32_t *action; /* (batch); NULL: real actions, q has one value a row */
    const float *y;        /* (batch) */
    const float *weight;   /* (batch) of each sample's loss; NULL: all 1 */
    float *error;          /* (batch): the mean over critics of |y - q|; NULL: not needed */
    float *d_q;            /* all entries are written */
    struct rm_update_figures *figures; /* last_loss is written */
};

struct rm_soft_policy_loss {
    struct rm_soft_states states;
    const float *weight;   /* (batch) of each sample's loss; NULL: all 1 */
    double target_ratio;   /* discrete: target entropy, as a fraction of ln(legal actions) */
    double target_entropy; /* real: the target entropy */
    float *d_logits;       /* all entries are written; real: instead the gradient by the two
                              critics' values, (2, batch) */
    /* last_loss: discrete actions add to it, real actions set it. now_sums (enum rm_value_sum) are
     * means over the batch, so now_samples is 1. */
    struct rm_update_figures *figures;
};

/* A draw of real actions. Arrays are (batch, reals), unless a comment gives another shape. */
struct rm_soft_draw {
    struct rm_gaussian gaussian; /* bounded by tanh */
    uint32_t batch, unused;
    const float *out;    /* (batch, 2 reals): the policy network's output */
    const float *normal; /* standard normals */
    float *drawn;        /* the draw before tanh */
    float *action;       /* the draw after tanh */
    float *p, *logp;     /* (batch): 1; ln of the action's density */
};

/* The gradient of the policy's loss by the policy network's output. Its input is the gradient of
 * that loss by the drawn action, through each critic. */
struct rm_soft_draw_back {
    struct rm_soft_draw draw;
    const float *d_action[2]; /* (batch, reals), one for each critic */
    const float *weight;      /* (batch) of each sample's loss; NULL: all 1 */
    const struct rm_temperature *temperature;
    const struct rm_update_figures *figures; /* loss scale */
    float *d_out;                            /* (batch, 2 reals) */
};

struct rm_soft_step {
    double beta1, beta2, epsilon;            /* of Adam */
    const struct rm_update_knobs *knobs;     /* learning rate */
    const struct rm_update_figures *figures; /* RM_SUM_OF_GAP; if `skip`, alpha does not move */
    struct rm_temperature *temperature;
};

struct rm_soft_ops {
    /* y(batch) from the next states; q1 and q2 are those of the target networks. */
    void (*targets)(struct rm_backend *b, const struct rm_soft_states *next, const float *ret,
                    const float *discount, float *y);
    void (*critic_loss)(struct rm_backend *b, const struct rm_soft_critic_loss *loss);
    void (*policy_loss)(struct rm_backend *b, const struct rm_soft_policy_loss *loss);
    void (*temperature)(struct rm_backend *b, const struct rm_soft_step *step);
    void (*draw)(struct rm_backend *b, const struct rm_soft_draw *draw);
    void (*draw_back)(struct rm_backend *b, const struct rm_soft_draw_back *back);
    /* Converts n stored draws to the actions that critics read: tanh of each. */
    void (*bound)(struct rm_backend *b, const int32_t *word, size_t n, float *action);
};

/* --- of both sides --------------------------------------------------------------------------- */

RM_BOTH double rm_temperature_alpha(const struct rm_temperature *temperature)
{
    return exp(temperature->log);
}

/* One Adam step of ln(alpha). */
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

/* Computes p and logp of a row from its logits; does nothing if logits are NULL. Both are 0 for
 * illegal actions. If a row has no legal action, all actions count as legal; only rows at the end
 * of an episode have none, and their values are not used. logp may be the memory of logits. */
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

/* `loss` is the sum over rows. */
RM_BOTH void rm_soft_critic_end(const struct rm_soft_critic_loss *in, double loss)
{
    const double before = in->critic || in->after_policy ? in->figures->last_loss : 0;
    in->figures->last_loss = before + loss / in->batch;
}

struct rm_soft_sums {
    double loss, entropy, value, gap;
};

/* Discrete actions: writes a row of d_logits and adds to the sums. With F_a = alpha log p_a - Q_a
 * the loss is sum p F, and d/dlogit_a = p_a (F_a - sum p F). The derivative of alpha log p itself
 * cancels, because probabilities add up to 1. */
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

/* Real actions, one draw a row: d_logits is the gradient of the loss by the two critics' values of
 * the drawn action: -1 / batch for the smaller value, 0 for the other (Haarnoja 2018, eq. 7). The
 * added terms are divided by the batch, so the sums become means. */
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

/* Sets the figures from the sums over all rows. */
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

/* Writes one row of drawn, action, p and logp. */
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

/* Writes one row of d_out. With u = mean + deviation * normal: d ln pi / du = 2 tanh(u), to which
 * d ln pi / d ln deviation adds -1. */
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
