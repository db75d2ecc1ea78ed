#include "learner/algo/loss.h"

#include "learner/algo/learning.h"

#include <math.h>
#include <string.h>

static uint32_t mean_over(const struct rm_value_loss *in)
{
    return in->of ? in->of : in->batch;
}

static double huber_loss(const struct rm_value_loss *in, float *d_q)
{
    const float scale = 1.0f / (float)mean_over(in);
    double loss = 0;
    for (uint32_t b = 0; b < in->batch; b++) {
        const size_t at = b * in->layout.sample + (size_t)in->action[b] * in->layout.action;
        const float u = in->target[(size_t)b * in->targets] - in->q[at];
        const float c = rm_huber_slope(u, in->kappa), weight = in->weight ? in->weight[b] : 1.0f;
        loss += (double)(weight * rm_huber(u, c));
        d_q[at] = -c * (weight * scale);
        if (in->error)
            in->error[b] = fabsf(u);
    }
    return loss / mean_over(in);
}

/* One online quantile against all targets of its sample: the sum over j of the weighted losses
 * (into *loss) and of their derivatives, returned. Four partial sums in a fixed order. */
static float against_targets(const float *y, uint32_t n, float q, float tau, float kappa,
                             float *loss)
{
    float gradient[4] = {0}, value[4] = {0};
    for (uint32_t j = 0; j < n; j++) {
        const float u = y[j] - q;
        const float c = rm_huber_slope(u, kappa);
        const float weight = u < 0 ? 1.0f - tau : tau;
        gradient[j & 3] += weight * c;
        value[j & 3] += weight * rm_huber(u, c);
    }
    *loss = (value[0] + value[1]) + (value[2] + value[3]);
    return (gradient[0] + gradient[1]) + (gradient[2] + gradient[3]);
}

static double quantile_huber_loss(const struct rm_value_loss *in, float *d_q)
{
    const struct rm_value_layout *layout = &in->layout;
    const double terms = (double)mean_over(in) * in->targets * (double)in->kappa *
                         (in->mean_over_quantiles ? layout->quantiles : 1);
    const float scale = (float)(1.0 / terms);
    double loss = 0;
    for (uint32_t b = 0; b < in->batch; b++) {
        const float *y = in->target + (size_t)b * in->targets;
        const float *tau = in->tau + (size_t)b * layout->quantiles;
        const size_t row = b * layout->sample + (size_t)in->action[b] * layout->action;
        const float weight = in->weight ? in->weight[b] : 1.0f;
        double own = 0;
        for (uint32_t i = 0; i < layout->quantiles; i++) {
            const size_t at = row + i * layout->quantile;
            float sum;
            const float pull = against_targets(y, in->targets, in->q[at], tau[i], in->kappa, &sum);
            d_q[at] = -scale * weight * pull;
            own += (double)sum;
        }
        loss += (double)weight * own;
        if (in->error)
            in->error[b] =
                (float)(own / ((double)in->targets * layout->quantiles * (double)in->kappa));
    }
    return loss / terms;
}

static double cql_penalty(const struct rm_value_loss *in, float *d_q)
{
    const struct rm_value_layout *layout = &in->layout;
    double sum = 0;
    for (uint32_t b = 0; b < in->batch; b++) {
        const float weight = in->weight ? in->weight[b] : 1.0f;
        const uint8_t *legal = in->mask ? in->mask + (size_t)b * layout->actions : NULL;
        sum += (double)weight *
               rm_cql(layout, in->q + b * layout->sample, legal, (uint32_t)in->action[b],
                      in->cql * weight / (float)mean_over(in), d_q + b * layout->sample);
    }
    return (double)in->cql * sum / mean_over(in);
}

double rm_loss_rows(const struct rm_value_loss *in, float *d_q)
{
    static double (*const losses[])(const struct rm_value_loss *in, float *d_q) = {
        [RM_LOSS_HUBER] = huber_loss,
        [RM_LOSS_QUANTILE_HUBER] = quantile_huber_loss,
    };
    const double loss = losses[in->kind](in, d_q);
    return in->cql > 0 ? loss + cql_penalty(in, d_q) : loss;
}

/* --- operations of the backend --------------------------------------------------------------- */

static void targets(struct rm_backend *b, const struct rm_value_targets *t)
{
    (void)b;
    rm_algo_greedy(t->choose, &t->layout, t->batch, t->mask, t->best);
    rm_algo_targets(t->value, &t->layout, t->batch, t->best, t->ret, t->discount, t->y);
}

static void loss(struct rm_backend *b, const struct rm_value_loss *in, double *sums)
{
    (void)b;
    memset(in->d_q, 0, in->batch * in->layout.sample * sizeof *in->d_q);
    sums[0] += rm_loss_rows(in, in->d_q);
    sums[1 + RM_SUM_OF_Q] += in->batch * rm_algo_mean_q(in->q, &in->layout, in->batch, in->action);
}

static void class_loss(struct rm_backend *b, const struct rm_class_loss *in, double *sums)
{
    struct rm_class_sums own = {0};
    (void)b;
    for (size_t i = 0; i < (size_t)in->samples * in->queries; i++)
        rm_class_loss_query(in, i, &own);
    sums[0] += own.loss;
    sums[1 + RM_SUM_OF_ENTROPY] += own.entropy;
    sums[1 + RM_SUM_OF_ACTIONS] += own.actions;
    sums[1 + RM_SUM_OF_TYPES] += own.types;
}

static const struct rm_value_ops cpu_values = {
    .targets = targets, .loss = loss, .class_loss = class_loss};

const struct rm_value_ops *rm_value_ops_of(const struct rm_backend *b)
{
    return b->device ? b->device->values : &cpu_values;
}
