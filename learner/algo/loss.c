#include "learner/algo/loss.h"

#include <math.h>

/* Huber_kappa(u) = c (u - c / 2) with c = clamp(u, -kappa, kappa), and its derivative is c: no
 * branch, so loops over it vectorise. NaN fails every comparison, so it passes through and shows in
 * both loss and gradient. */
static inline float clamped(float u, float kappa)
{
    const float low = u < -kappa ? -kappa : u;
    return low > kappa ? kappa : low;
}

static inline float huber(float u, float c)
{
    return c * (u - 0.5f * c);
}

static uint32_t mean_over(const struct rm_algo_loss_input *in)
{
    return in->of ? in->of : in->batch;
}

double rm_loss_huber(const struct rm_algo_loss_input *in, float *d_q)
{
    const float scale = 1.0f / (float)mean_over(in);
    double loss = 0;
    for (uint32_t b = 0; b < in->batch; b++) {
        const size_t at = b * in->layout.sample + (size_t)in->action[b] * in->layout.action;
        const float u = in->target[(size_t)b * in->targets] - in->q[at];
        const float c = clamped(u, in->kappa), weight = in->weight ? in->weight[b] : 1.0f;
        loss += (double)(weight * huber(u, c));
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
        const float c = clamped(u, kappa);
        const float weight = u < 0 ? 1.0f - tau : tau;
        gradient[j & 3] += weight * c;
        value[j & 3] += weight * huber(u, c);
    }
    *loss = (value[0] + value[1]) + (value[2] + value[3]);
    return (gradient[0] + gradient[1]) + (gradient[2] + gradient[3]);
}

double rm_loss_quantile_huber(const struct rm_algo_loss_input *in, float *d_q)
{
    const struct rm_algo_layout *layout = &in->layout;
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
