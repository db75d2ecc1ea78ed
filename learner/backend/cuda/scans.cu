/* Scans over a rollout, and statistics of its returns. A thread goes through the steps of one lane
 * from the last to the first, with the operations of gae.c and vtrace.c in their order. This file
 * is compiled without fused multiply-adds, so the numbers are the CPU's, except for the ratios of
 * V-trace, because expf() differs. */
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

/* The sum of number(row) over the rollout's samples. */
template <typename F>
__device__ static double sum_over_samples(const struct rm_policy_returns *r, double *room, F number)
{
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < r->passes->samples; i += RM_SUM_THREADS)
        sum += number(r->sample[i]);
    return rm_block_sum(sum, room);
}

/* Changes the value's last product so that values stay the same. */
__device__ static void rescale(const struct rm_policy_returns *r, struct rm_value_head_state now,
                               struct rm_value_head_state next)
{
    const float factor = (float)(now.deviation / next.deviation);
    for (uint32_t i = threadIdx.x; i < r->head.weights; i += RM_SUM_THREADS)
        r->head.weight[i] *= factor;
    if (threadIdx.x == 0)
        *r->head.bias =
            (float)((now.deviation * *r->head.bias + now.mean - next.mean) / next.deviation);
}

/* Moments of the samples' returns, of the errors of their values, and of their advantages. */
struct statistics {
    struct rm_slot_moments returns, off, advantages;
};

/* By one block. */
__device__ static struct statistics statistics_of(const struct rm_policy_returns *r, double *room)
{
    const double samples = r->passes->samples, n = samples > 0 ? samples : 1;
    const float *target = r->target, *value = r->value, *advantage = r->advantage;
    struct statistics k = {{samples, 0, 0}, {samples, 0, 0}, {samples, 0, 0}};
    const double mean = k.returns.mean =
        sum_over_samples(r, room, [=](uint32_t row) { return (double)target[row]; }) / n;
    const double mean_off = k.off.mean =
        sum_over_samples(r, room,
                         [=](uint32_t row) { return (double)target[row] - (double)value[row]; }) /
        n;
    k.returns.square = sum_over_samples(r, room, [=](uint32_t row) {
        return ((double)target[row] - mean) * ((double)target[row] - mean);
    });
    k.off.square = sum_over_samples(r, room, [=](uint32_t row) {
        const double off = (double)target[row] - (double)value[row] - mean_off;
        return off * off;
    });
    const double advantages = k.advantages.mean =
        sum_over_samples(r, room, [=](uint32_t row) { return (double)advantage[row]; }) / n;
    k.advantages.square = sum_over_samples(r, room, [=](uint32_t row) {
        return ((double)advantage[row] - advantages) * ((double)advantage[row] - advantages);
    });
    return k;
}

/* By one thread: writes the numbers for the rest of the rollout. */
__device__ static void write_passes(const struct rm_policy_returns *r, const struct statistics *k,
                                    const struct rm_value_head_state *head, uint32_t parts)
{
    struct rm_rollout_passes *p = r->passes;
    const double samples = k->returns.n;
    *r->head.state = *head;
    p->parts = parts;
    p->explained_variance = k->returns.square > 0 ? 1 - k->off.square / k->returns.square : 0;
    p->whole_mean = r->normalise && samples > 1 ? (float)k->advantages.mean : 0;
    p->whole_scale = !r->normalise ? (float)(1 / head->deviation)
                     : samples > 1
                         ? (float)(1 / (sqrt(k->advantages.square / (samples - 1)) + 1e-8))
                         : 1;
    rm_figures_clear(r->figures);
    r->figures->stop = !(samples > 0) || (r->slots.at && parts == 0);
}

/* By one block. */
__device__ static void finish_returns(const struct rm_policy_returns *r, const struct statistics *k,
                                      uint32_t parts)
{
    const double samples = k->returns.n, square = k->returns.square;
    const struct rm_value_head_state now = *r->head.state;
    struct rm_value_head_state next = now;
    if (r->head.follow != RM_FOLLOW_NOTHING && samples > 0 && isfinite(square)) {
        next = rm_value_head_next(&r->head, now, k->returns.mean, square, samples);
        rescale(r, now, next);
    }
    __syncthreads(); /* all have read *r->head.state */
    if (threadIdx.x == 0)
        write_passes(r, k, &next, parts);
}

__global__ static void returns_own(struct rm_policy_returns r)
{
    __shared__ double room[RM_WARP];
    const struct statistics k = statistics_of(&r, room);
    if (!r.slots.at) {
        finish_returns(&r, &k, r.passes->parts);
        return;
    }
    const double line[RM_DEVICE_SLOT] = {k.returns.n,        k.returns.mean, k.returns.square,
                                         k.off.mean,         k.off.square,   k.advantages.mean,
                                         k.advantages.square};
    rm_fill_slots(&r.slots, line);
}

/* So few minibatches that each has a sample on every device. */
__device__ static uint32_t common_parts(const struct rm_policy_returns *r)
{
    double parts = r->passes->parts;
    for (uint32_t d = 0; d < r->slots.count; d++) {
        const double samples = r->slots.at[d * RM_DEVICE_SLOT];
        parts = samples < parts ? samples : parts;
    }
    return (uint32_t)parts;
}

__global__ static void returns_all(struct rm_policy_returns r)
{
    const struct statistics k = {rm_merge_slots(&r.slots, 1, 2), rm_merge_slots(&r.slots, 3, 4),
                                 rm_merge_slots(&r.slots, 5, 6)};
    finish_returns(&r, &k, common_parts(&r));
}

__global__ static void to_units(const struct rm_value_head_state *head, uint32_t rows, float *value,
                                float *target)
{
    RM_EACH(i, rows)
    {
        value[i] = rm_value_target(head, value[i]);
        target[i] = rm_value_target(head, target[i]);
    }
}

static void units(struct rm_cuda *c, const struct rm_policy_returns *r)
{
    RM_RUN(c, to_units, rm_cuda_blocks(c, r->rows, ROW_THREADS), ROW_THREADS, r->head.state,
           r->rows, r->value, r->target);
}

void rm_cuda_returns(struct rm_backend *b, const struct rm_policy_returns *r)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, returns_own, 1, RM_SUM_THREADS, *r);
    if (!r->slots.at)
        units(c, r);
}

void rm_cuda_returns_end(struct rm_backend *b, const struct rm_policy_returns *r)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!r->slots.at)
        return;
    RM_RUN(c, returns_all, 1, RM_SUM_THREADS, *r);
    units(c, r);
}
