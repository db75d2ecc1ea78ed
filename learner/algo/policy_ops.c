/* The CPU's operations of actor-critic learners (learner/backend/policy_ops.h). */
#include "learner/algo/learning.h"
#include "learner/algo/value_head.h"

#include <math.h>
#include <string.h>

/* --- a rollout ------------------------------------------------------------------------------- */

static void values(struct rm_backend *b, const struct rm_policy_values *v)
{
    (void)b;
    for (size_t i = 0; i < v->rows; i++)
        v->value[i] = rm_value_of(v->head, v->out[(i + 1) * v->outputs - 1]);
    if (!v->answered)
        return;
    rm_categorical_logp(&v->distribution, v->out, v->outputs, v->mask, v->answered, v->action,
                        v->logp);
    for (size_t i = 0; v->gaussian.reals && i < v->answered; i++)
        v->logp[i] +=
            rm_gaussian_logp(&v->gaussian, v->out + i * v->outputs + v->distribution.actions,
                             v->action + i * v->distribution.words + v->distribution.choices);
}

static void gae(struct rm_backend *b, const struct rm_rollout_rows *rows, float lambda,
                float *advantage, float *target)
{
    (void)b;
    rm_gae(rows, lambda, advantage, target);
}

/* Writes the ratios to `advantage`: a row's ratio is read before its advantage is written. */
static void vtrace(struct rm_backend *b, const struct rm_rollout_rows *rows,
                   const struct rm_vtrace *vtrace, const float *logp_now, const float *logp_then,
                   float *advantage, float *target)
{
    struct rm_vtrace with = *vtrace;
    (void)b;
    for (size_t i = 0; i < (size_t)rows->steps * rows->lanes; i++)
        advantage[i] = expf(logp_now[i] - logp_then[i]);
    with.ratio = advantage;
    rm_vtrace(rows, &with, advantage, target);
}

static void restarts(struct rm_backend *b, const uint8_t *flags, uint32_t first_flag, size_t n,
                     uint8_t *out)
{
    (void)b;
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(flags[i] & first_flag);
}

/* 1 - Var(return - value) / Var(return); 0 if returns do not vary. */
static double explained_variance(const struct rm_policy_returns *r)
{
    const uint32_t samples = r->passes->samples;
    double mean = 0, mean_off = 0, var = 0, var_off = 0;
    for (uint32_t i = 0; i < samples; i++) {
        const uint32_t row = r->sample[i];
        mean += (double)r->target[row];
        mean_off += (double)r->target[row] - (double)r->value[row];
    }
    mean /= samples ? samples : 1;
    mean_off /= samples ? samples : 1;
    for (uint32_t i = 0; i < samples; i++) {
        const uint32_t row = r->sample[i];
        const double target = (double)r->target[row], off = target - (double)r->value[row];
        var += (target - mean) * (target - mean);
        var_off += (off - mean_off) * (off - mean_off);
    }
    return var > 0 ? 1 - var_off / var : 0;
}

struct normal {
    float mean, scale;
};

/* Normalises the advantages of the n samples among these rows to mean 0 and deviation 1 (with n -
 * 1); fewer than two samples stay unchanged. */
static struct normal normal_of(const float *advantage, const float *valid, const uint32_t *row,
                               uint32_t rows, uint32_t n)
{
    double mean = 0, square = 0;
    if (n < 2)
        return (struct normal){0, 1};
    for (uint32_t i = 0; i < rows; i++)
        if (valid[row[i]] > 0)
            mean += (double)advantage[row[i]];
    mean /= n;
    for (uint32_t i = 0; i < rows; i++) {
        const double off = (double)advantage[row[i]] - mean;
        if (valid[row[i]] > 0)
            square += off * off;
    }
    return (struct normal){(float)mean, (float)(1 / (sqrt(square / (n - 1)) + 1e-8))};
}

/* Afterwards values and targets are in the units of the network's output. */
static void returns(struct rm_backend *b, const struct rm_policy_returns *r)
{
    struct rm_rollout_passes *p = r->passes;
    const struct rm_value_head_state *head = r->head.state;
    p->explained_variance = explained_variance(r);
    for (uint32_t i = 0; i < p->samples; i++)
        r->room[i] = r->target[r->sample[i]];
    rm_value_head_follow(b, &r->head, rm_moments_of(r->room, p->samples));
    for (uint32_t i = 0; i < r->rows; i++) {
        r->value[i] = rm_value_target(head, r->value[i]);
        r->target[i] = rm_value_target(head, r->target[i]);
    }
    /* In the value's units, as the value's error is (Hessel 2019, eq. 10). */
    struct normal whole = {0, (float)(1 / head->deviation)};
    if (r->normalise)
        whole = normal_of(r->advantage, r->valid, r->sample, p->samples, p->samples);
    p->whole_mean = whole.mean;
    p->whole_scale = whole.scale;
    rm_figures_clear(r->figures);
    r->figures->stop = p->samples == 0;
}

/* --- a minibatch ----------------------------------------------------------------------------- */

static uint32_t minibatch_rows(struct rm_backend *b, const struct rm_next_minibatch *k)
{
    struct rm_rollout_passes *p = k->passes;
    const struct rm_pass_part part = rm_passes_part(p);
    const uint32_t *order = k->order + (size_t)p->pass * k->stride + part.from;
    uint32_t rows = 0;
    (void)b;
    p->batch = 0;
    for (uint32_t t = 0; t < k->steps; t++)
        for (uint32_t i = 0; i < part.entries; i++, rows++) {
            const uint32_t row = k->index[rows] = t * k->lanes + order[i];
            p->batch += k->valid[row] > 0;
            if (k->restart)
                k->restart[rows] = (uint8_t)(k->flags[row] & k->first_flag);
        }
    for (uint32_t i = 0; k->entry && i < part.entries; i++)
        k->entry[i] = order[i];
    struct normal own = {p->whole_mean, p->whole_scale};
    if (k->normalise)
        own = normal_of(k->advantage, k->valid, k->index, rows, p->batch);
    p->mean = own.mean;
    p->scale = own.scale;
    *k->knobs = k->knobs_of[(size_t)p->pass * k->knobs_stride + p->part];
    return rows;
}

static void loss(struct rm_backend *b, const struct rm_minibatch_loss *l, double *sums)
{
    const struct rm_rollout_passes *p = l->passes;
    struct rm_policy_loss rows = l->loss;
    (void)b;
    rows.advantage_mean = p->mean;
    rows.advantage_scale = p->scale;
    rows.scale = 1.0f / (float)(p->batch ? p->batch : 1);
    rows.entropy_coefficient = (float)l->knobs->entropy_coefficient;
    rows.value_error = l->of_means ? p->value_error : (uint32_t)RM_ERROR_LARGER;
    rm_policy_loss_rows(&rows, l->first, l->rows, l->out, l->d_out, sums + 1);
}

static void errors(struct rm_backend *b, const struct rm_minibatch_loss *l, double *sums)
{
    (void)b;
    rm_policy_loss_add_errors(&l->loss, l->first, l->rows, l->out, sums);
    memset(l->d_out, 0, (size_t)l->rows * l->loss.outputs * sizeof *l->d_out);
}

static void loss_end(struct rm_backend *b, const struct rm_minibatch_loss *l)
{
    struct rm_update_figures *f = l->figures;
    const uint32_t batch = l->passes->batch;
    const double total = f->now_sums[RM_SUM_POLICY] +
                         l->value_coefficient * f->now_sums[RM_SUM_VALUE] -
                         l->knobs->entropy_coefficient * f->now_sums[RM_SUM_ENTROPY];
    (void)b;
    f->last_loss = total / (batch ? batch : 1);
    f->now_samples = batch;
}

static void book(struct rm_backend *b, double target_kl, struct rm_rollout_passes *p,
                 struct rm_update_figures *figures)
{
    (void)b;
    rm_passes_book(target_kl, p, figures);
}

/* So few rows that the activations of small networks stay in the second-level cache. */
static const struct rm_policy_ops cpu_policies = {
    .forward_rows = 512,
    .sequence_rows = 512,
    .values = values,
    .gae = gae,
    .vtrace = vtrace,
    .restarts = restarts,
    .returns = returns,
    .minibatch = minibatch_rows,
    .loss = loss,
    .errors = errors,
    .loss_end = loss_end,
    .book = book,
};

const struct rm_policy_ops *rm_policy_ops_of(const struct rm_backend *b)
{
    return b->device ? b->device->policies : &cpu_policies;
}
