/* Scans over a rollout, and what is known of its returns after them. A thread goes through the
 * steps of one lane from the last to the first, with the operations of gae.c and vtrace.c in their
 * order; this file is compiled without fused multiply-adds, so the numbers are the same. */
#include "learner/backend/cuda/policy.h"

#define SCAN_THREADS 64u
#define ROW_THREADS  256u

/* --- scans ----------------------------------------------------------------------------------- */

__global__ static void gae(struct rm_rollout_rows rows, float lambda, float *advantage,
                           float *target)
{
    const size_t lanes = rows.lanes;
    RM_EACH(l, lanes)
    {
        float beyond = 0;
        for (size_t t = rows.steps; t-- > 0;) {
            const size_t i = t * lanes + l;
            const float value = rows.value[i], discount = rows.discount[i];
            const float delta = rows.reward[i + lanes] + discount * rows.value[i + lanes] - value;
            const float carried = t + 1 < rows.steps ? discount * lambda * beyond : 0;
            beyond = rows.valid[i] > 0 ? delta + carried : 0;
            advantage[i] = beyond;
            target[i] = beyond + value;
        }
    }
}

void rm_cuda_gae(struct rm_backend *b, const struct rm_rollout_rows *rows, float lambda,
                 float *advantage, float *target)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, gae, rm_cuda_blocks(c, rows->lanes, SCAN_THREADS), SCAN_THREADS, *rows, lambda,
           advantage, target);
}

struct traces {
    float lambda, rho_max, c_max;
};

__global__ static void vtrace(struct rm_rollout_rows rows, struct traces bounds,
                              const float *logp_now, const float *logp_then, float *advantage,
                              float *target)
{
    const size_t lanes = rows.lanes;
    RM_EACH(l, lanes)
    {
        float v_next = rows.value[(size_t)rows.steps * lanes + l];
        for (size_t t = rows.steps; t-- > 0;) {
            const size_t i = t * lanes + l;
            const float value = rows.value[i], next = rows.value[i + lanes];
            const float reward = rows.reward[i + lanes], discount = rows.discount[i];
            const float ratio = expf(logp_now[i] - logp_then[i]);
            const float rho = fminf(bounds.rho_max, ratio);
            const float trace = bounds.lambda * fminf(bounds.c_max, ratio);
            const float delta = rho * (reward + discount * next - value);
            const float beyond = discount * trace * (v_next - next);
            const bool sample = rows.valid[i] > 0;
            advantage[i] = sample ? rho * (reward + discount * v_next - value) : 0;
            v_next = value + (sample ? delta + beyond : 0);
            target[i] = v_next;
        }
    }
}

void rm_cuda_vtrace(struct rm_backend *b, const struct rm_rollout_rows *rows,
                    const struct rm_vtrace *bounds, const float *logp_now, const float *logp_then,
                    float *advantage, float *target)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const struct traces traces = {bounds->lambda, bounds->rho_max, bounds->c_max};
    RM_RUN(c, vtrace, rm_cuda_blocks(c, rows->lanes, SCAN_THREADS), SCAN_THREADS, *rows, traces,
           logp_now, logp_then, advantage, target);
}

/* --- returns --------------------------------------------------------------------------------- */

/* A sum over the rollout's samples of what `of` makes of a row. */
template <typename F>
__device__ static double over_samples(const struct rm_device_returns *r, double *room, F of)
{
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < r->passes->samples; i += RM_SUM_THREADS)
        sum += of(r->sample[i]);
    return rm_block_sum(sum, room);
}

__device__ static double within(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

/* value_head.c: its bounds, and its two ways to follow. */
#define DEVIATION_LEAST 1e-4
#define DEVIATION_MOST  1e6

__device__ static struct rm_device_value_head followed(const struct rm_device_returns *r,
                                                       struct rm_device_value_head now, double mean,
                                                       double m2, double count)
{
    struct rm_device_value_head next = now;
    const double k = (double)now.updates + 1.0;
    const double beta = 1.0 / k > r->beta_least ? 1.0 / k : r->beta_least;
    next.mean += beta * (mean - next.mean);
    if (r->follow == RM_FOLLOW_MOMENTS) {
        next.second += beta * (m2 / count + mean * mean - next.second);
        const double variance = next.second - next.mean * next.mean;
        next.deviation = variance > 0 ? within(sqrt(variance), DEVIATION_LEAST, DEVIATION_MOST)
                                      : DEVIATION_LEAST;
    } else {
        const double unbiased = count > 1 ? m2 / (count - 1) : 0.0;
        const double s = within(sqrt(unbiased), DEVIATION_LEAST, DEVIATION_MOST);
        next.deviation = sqrt((1.0 - beta) * now.deviation * now.deviation + beta * s * s);
        next.second = next.deviation * next.deviation + next.mean * next.mean;
    }
    next.updates = now.updates + 1;
    return next;
}

/* Moves the value's last product so that values stay what they were. */
__device__ static void rescale(const struct rm_device_returns *r, struct rm_device_value_head now,
                               struct rm_device_value_head next)
{
    const float factor = (float)(now.deviation / next.deviation);
    for (uint32_t i = threadIdx.x; i < r->weights; i += RM_SUM_THREADS)
        r->weight[i] *= factor;
    if (threadIdx.x == 0)
        *r->bias = (float)((now.deviation * *r->bias + now.mean - next.mean) / next.deviation);
}

/* One block. */
__global__ static void know_returns(struct rm_device_returns r)
{
    __shared__ double room[RM_WARP];
    const uint32_t samples = r.passes->samples;
    const double n = samples ? samples : 1;
    const float *target = r.target, *value = r.value, *advantage = r.advantage;
    const double mean =
        over_samples(&r, room, [=](uint32_t row) { return (double)target[row]; }) / n;
    const double mean_off =
        over_samples(&r, room,
                     [=](uint32_t row) { return (double)target[row] - (double)value[row]; }) /
        n;
    const double m2 = over_samples(&r, room, [=](uint32_t row) {
        return ((double)target[row] - mean) * ((double)target[row] - mean);
    });
    const double m2_off = over_samples(&r, room, [=](uint32_t row) {
        const double off = (double)target[row] - (double)value[row] - mean_off;
        return off * off;
    });
    const double advantages =
        over_samples(&r, room, [=](uint32_t row) { return (double)advantage[row]; }) / n;
    const double spread = over_samples(&r, room, [=](uint32_t row) {
        return ((double)advantage[row] - advantages) * ((double)advantage[row] - advantages);
    });
    struct rm_device_value_head now = *r.head, next = now;
    if (r.follow != RM_FOLLOW_NOTHING && samples && isfinite(m2)) {
        next = followed(&r, now, mean, m2, n);
        rescale(&r, now, next);
    }
    __syncthreads(); /* all have read *r.head */
    if (threadIdx.x != 0)
        return;
    struct rm_device_passes *p = r.passes;
    *r.head = next;
    p->explained_variance = m2 > 0 ? 1 - m2_off / m2 : 0;
    p->whole_mean = r.normalise && samples > 1 ? (float)advantages : 0;
    p->whole_scale = !r.normalise  ? (float)(1 / next.deviation)
                     : samples > 1 ? (float)(1 / (sqrt(spread / (n - 1)) + 1e-8))
                                   : 1;
    struct rm_device_figures *f = r.figures;
    f->reports = 0;
    f->loss = f->grad_norm = f->samples = 0;
    for (uint32_t k = 0; k < sizeof f->sums / sizeof *f->sums; k++)
        f->sums[k] = 0;
    f->stop = samples == 0;
}

__global__ static void to_units(const struct rm_device_value_head *head, uint32_t rows,
                                float *value, float *target)
{
    RM_EACH(i, rows)
    {
        value[i] = (float)(((double)value[i] - head->mean) / head->deviation);
        target[i] = (float)(((double)target[i] - head->mean) / head->deviation);
    }
}

void rm_cuda_returns(struct rm_backend *b, const struct rm_device_returns *r)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, know_returns, 1, RM_SUM_THREADS, *r);
    RM_RUN(c, to_units, rm_cuda_blocks(c, r->rows, ROW_THREADS), ROW_THREADS, r->head, r->rows,
           r->value, r->target);
}
