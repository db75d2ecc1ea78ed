#include "learner/algo/sac_loss.h"

#include "learner/algo/learning.h"
#include "learner/algo/temperature.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

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
        const size_t at = (size_t)b * actions + (action ? (uint32_t)action[b] : 0);
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

struct rm_sac_policy_loss rm_sac_drawn_loss(const struct rm_sac_view *v, float *d_q)
{
    struct rm_sac_policy_loss sum = {0};
    for (uint32_t b = 0; b < v->batch; b++) {
        const double w = v->weight ? (double)v->weight[b] : 1, logp = (double)v->logp[b];
        const bool second = v->q2[b] < v->q1[b];
        d_q[b] = second ? 0.0f : (float)(-w / v->batch);
        d_q[v->batch + b] = second ? (float)(-w / v->batch) : 0.0f;
        sum.loss += w * (v->alpha * logp - least_value(v, b)) / v->batch;
        sum.entropy -= logp / v->batch;
        sum.value += least_value(v, b) / v->batch;
    }
    return sum;
}

/* --- operations of the backend --------------------------------------------------------------- */

static struct rm_sac_view view_of(const struct rm_soft_states *s)
{
    if (s->logits)
        rm_sac_policy(s->logits, s->mask, s->batch, s->actions, s->p, s->logp);
    return (struct rm_sac_view){
        .batch = s->batch,
        .actions = s->actions,
        .p = s->p,
        .logp = s->logp,
        .q1 = s->q1,
        .q2 = s->q2,
        .alpha = rm_temperature_alpha(s->temperature),
        .mask = s->mask,
    };
}

static void targets(struct rm_backend *b, const struct rm_soft_states *next, const float *ret,
                    const float *discount, float *y)
{
    const struct rm_sac_view view = view_of(next);
    (void)b;
    rm_sac_targets(&view, ret, discount, y);
}

static void critic_loss(struct rm_backend *b, const struct rm_soft_critic_loss *in)
{
    (void)b;
    if (in->critic == 0 && !in->after_policy)
        in->figures->last_loss = 0;
    if (in->critic == 0 && in->error)
        memset(in->error, 0, in->batch * sizeof *in->error);
    memset(in->d_q, 0, (size_t)in->batch * in->actions * sizeof *in->d_q);
    in->figures->last_loss += rm_sac_critic_loss(in->q, in->batch, in->actions, in->action, in->y,
                                                 in->weight, in->d_q, in->error);
}

static void policy_loss(struct rm_backend *b, const struct rm_soft_policy_loss *in)
{
    struct rm_update_figures *f = in->figures;
    struct rm_sac_view view = view_of(&in->states);
    (void)b;
    view.weight = in->weight;
    view.target_ratio = in->target_ratio;
    struct rm_sac_policy_loss loss;
    if (in->states.logits) {
        loss = rm_sac_policy_loss(&view, in->d_logits);
    } else {
        loss = rm_sac_drawn_loss(&view, in->d_logits);
        loss.gap = in->target_entropy - loss.entropy;
        f->last_loss = 0;
    }
    f->last_loss += loss.loss;
    f->now_sums[RM_SUM_OF_Q] = loss.value;
    f->now_sums[RM_SUM_OF_ENTROPY] = loss.entropy;
    f->now_sums[RM_SUM_OF_TEMPERATURE] = view.alpha;
    f->now_sums[RM_SUM_OF_GAP] = loss.gap;
    f->now_samples = 1.0;
}

static void temperature(struct rm_backend *b, const struct rm_soft_step *step)
{
    (void)b;
    if (!step->figures->skip)
        rm_temperature_move(step->temperature, step, step->knobs->learning_rate,
                            step->figures->now_sums[RM_SUM_OF_GAP]);
}

static void draw(struct rm_backend *b, const struct rm_soft_draw *d)
{
    (void)b;
    for (uint32_t row = 0; row < d->batch; row++)
        rm_soft_draw_row(d, row);
}

static void draw_back(struct rm_backend *b, const struct rm_soft_draw_back *k)
{
    const double alpha = rm_temperature_alpha(k->temperature);
    (void)b;
    for (uint32_t row = 0; row < k->draw.batch; row++)
        rm_soft_draw_back_row(
            k, row, (float)(alpha * (k->weight ? (double)k->weight[row] : 1) / k->draw.batch));
}

static void bound(struct rm_backend *b, const int32_t *word, size_t n, float *action)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        action[i] = rm_gaussian_bounded(rm_real_of_word(word[i]), 1);
}

static const struct rm_soft_ops cpu_soft = {.targets = targets,
                                            .critic_loss = critic_loss,
                                            .policy_loss = policy_loss,
                                            .temperature = temperature,
                                            .draw = draw,
                                            .draw_back = draw_back,
                                            .bound = bound};

const struct rm_soft_ops *rm_soft_ops_of(const struct rm_backend *b)
{
    return b->device ? b->device->soft : &cpu_soft;
}
