/* Targets and losses of DQN, QR-DQN and IQN, and the loss of distillation (value_ops.h); sums by
 * one thread have the CPU's order. */
#include "learner/backend/cuda/tables.h"

#include "learner/backend/cuda/block.h"

#define THREADS 128u
#define WARPS   (THREADS / RM_WARP)
#define ALL     0xffffffffu

/* --- targets --------------------------------------------------------------------------------- */

/* One warp searches the actions of a row; every lane gets the best. */
static __device__ int best_of(const struct rm_value_targets &t, uint32_t row)
{
    const uint32_t warp_lane = threadIdx.x % RM_WARP, actions = t.layout.actions;
    const float *q = t.choose + row * t.layout.sample;
    const uint8_t *legal = t.mask ? t.mask + (size_t)row * actions : NULL;
    bool any = false;
    for (uint32_t a = warp_lane; legal && a < actions; a += RM_WARP)
        any |= legal[a] != 0;
    any = __any_sync(ALL, any) != 0;
    int best = -1;
    double most = 0.0;
    for (uint32_t a = warp_lane; a < actions; a += RM_WARP) {
        if (any && !legal[a])
            continue;
        const double value = rm_value_mean(q, &t.layout, a);
        if (best < 0 || value > most) {
            best = (int)a;
            most = value;
        }
    }
    for (unsigned apart = RM_WARP / 2; apart; apart /= 2) {
        const int other = __shfl_down_sync(ALL, best, apart);
        const double value = __shfl_down_sync(ALL, most, apart);
        if (other >= 0 && (best < 0 || value > most || (value == most && other < best))) {
            best = other;
            most = value;
        }
    }
    return __shfl_sync(ALL, best, 0);
}

/* A warp per row. */
static __global__ void targets_rows(struct rm_value_targets t)
{
    const uint32_t row = blockIdx.x * WARPS + threadIdx.x / RM_WARP;
    const uint32_t warp_lane = threadIdx.x % RM_WARP;
    if (row >= t.batch)
        return;
    const int best = best_of(t, row);
    const float *value = t.value + row * t.layout.sample + (size_t)best * t.layout.action;
    const float ret = t.ret[row], discount = t.discount[row];
    for (uint32_t j = warp_lane; j < t.layout.quantiles; j += RM_WARP)
        t.y[(size_t)row * t.layout.quantiles + j] =
            discount == 0.0f ? ret : ret + discount * value[j * t.layout.quantile];
    if (t.best && warp_lane == 0)
        t.best[row] = best;
}

static void targets(struct rm_backend *b, const struct rm_value_targets *t)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, targets_rows, (t->batch + WARPS - 1) / WARPS, THREADS, *t);
}

/* --- losses ---------------------------------------------------------------------------------- */

/* Gradients of actions that were not taken. */
static __device__ void clear_others(const struct rm_value_loss &in, float *d_q, uint32_t action,
                                    uint32_t first, uint32_t stride)
{
    for (uint32_t e = first; e < in.layout.sample; e += stride)
        if (e / (uint32_t)in.layout.action % in.layout.actions != action)
            d_q[e] = 0.0f;
}

/* A warp per row. */
static __global__ void huber_rows(struct rm_value_loss in)
{
    const uint32_t row = blockIdx.x * WARPS + threadIdx.x / RM_WARP;
    const uint32_t warp_lane = threadIdx.x % RM_WARP;
    if (row >= in.batch)
        return;
    const uint32_t action = (uint32_t)in.action[row];
    const size_t at = row * in.layout.sample, taken = at + action * in.layout.action;
    clear_others(in, in.d_q + at, action, warp_lane, RM_WARP);
    if (warp_lane != 0)
        return;
    const float u = in.target[(size_t)row * in.targets] - in.q[taken];
    const float c = rm_huber_slope(u, in.kappa), weight = in.weight ? in.weight[row] : 1.0f;
    in.d_q[taken] = -c * (weight * (rm_figures_scale(in.figures) / (float)in.batch));
    in.partials[row] = (double)(weight * rm_huber(u, c));
    in.partials[in.batch + row] = (double)in.q[taken];
    if (in.error)
        in.error[row] = fabsf(u);
}

/* One online quantile against all targets of its row: the sum of the weighted losses, and of their
 * derivatives, each in four parts. */
static __device__ float against_targets(const float *y, uint32_t n, float q, float tau, float kappa,
                                        float *loss)
{
    float gradient[4] = {0.0f, 0.0f, 0.0f, 0.0f}, value[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (uint32_t first = 0; first < n; first += 4)
#pragma unroll
        for (uint32_t k = 0; k < 4; k++)
            if (first + k < n) {
                const float u = y[first + k] - q, c = rm_huber_slope(u, kappa);
                const float weight = u < 0.0f ? 1.0f - tau : tau;
                gradient[k] += weight * c;
                value[k] += weight * rm_huber(u, c);
            }
    *loss = (value[0] + value[1]) + (value[2] + value[3]);
    return (gradient[0] + gradient[1]) + (gradient[2] + gradient[3]);
}

/* A block per row. */
static __global__ void quantile_rows(struct rm_value_loss in, float scale)
{
    RM_SHARED(double, scratch);
    float *y = reinterpret_cast<float *>(scratch + RM_WARP); /* (targets) */
    const uint32_t row = blockIdx.x, action = (uint32_t)in.action[row];
    const size_t at = row * in.layout.sample, taken = at + action * in.layout.action;
    const float weight = in.weight ? in.weight[row] : 1.0f;
    for (uint32_t j = threadIdx.x; j < in.targets; j += blockDim.x)
        y[j] = in.target[(size_t)row * in.targets + j];
    __syncthreads();
    clear_others(in, in.d_q + at, action, threadIdx.x, blockDim.x);
    double own = 0.0, q_sum = 0.0;
    for (uint32_t i = threadIdx.x; i < in.layout.quantiles; i += blockDim.x) {
        const float q = in.q[taken + i * in.layout.quantile];
        const float tau = in.tau[(size_t)row * in.layout.quantiles + i];
        float loss;
        const float pull = against_targets(y, in.targets, q, tau, in.kappa, &loss);
        in.d_q[taken + i * in.layout.quantile] =
            -(scale * rm_figures_scale(in.figures)) * weight * pull;
        own += (double)loss;
        q_sum += (double)q;
    }
    own = rm_block_sum(own, scratch);
    q_sum = rm_block_sum(q_sum, scratch);
    if (threadIdx.x != 0)
        return;
    in.partials[row] = (double)weight * own;
    in.partials[in.batch + row] = q_sum / in.layout.quantiles;
    if (in.error)
        in.error[row] =
            (float)(own / ((double)in.targets * in.layout.quantiles * (double)in.kappa));
}

/* A thread per row: adds the penalty, and its gradient, to what is there. `terms`: a row's share of
 * the total is its loss over so many. */
static __global__ void cql_rows(struct rm_value_loss in, double terms)
{
    const uint32_t row = blockIdx.x * THREADS + threadIdx.x;
    if (row >= in.batch)
        return;
    const float weight = in.weight ? in.weight[row] : 1.0f;
    const uint8_t *legal = in.mask ? in.mask + (size_t)row * in.layout.actions : NULL;
    const size_t at = row * in.layout.sample;
    const double penalty =
        rm_cql(&in.layout, in.q + at, legal, (uint32_t)in.action[row],
               in.cql * weight * (rm_figures_scale(in.figures) / (float)in.batch), in.d_q + at);
    in.partials[row] += (double)(in.cql * weight) * penalty * (terms / in.batch);
}

/* One block: adds up the loss over rows. */
static __global__ void loss_total(struct rm_value_loss in, double terms)
{
    RM_SHARED(double, scratch);
    const struct rm_block_pair sums = rm_block_sum_pair(in.partials, in.batch, scratch);
    if (threadIdx.x != 0)
        return;
    rm_figures_begin(in.figures, sums.x / terms, in.batch);
    in.figures->now_sums[RM_SUM_OF_Q] = sums.y;
}

static unsigned threads_for(uint32_t quantiles)
{
    const unsigned threads = (quantiles + RM_WARP - 1) / RM_WARP * RM_WARP;
    return threads < 256 ? threads : 256;
}

static void loss(struct rm_backend *b, const struct rm_value_loss *in, double *)
{
    struct rm_cuda *c = rm_cuda_of(b);
    double terms = in->batch;
    if (in->kind == RM_LOSS_HUBER) {
        RM_RUN(c, huber_rows, (in->batch + WARPS - 1) / WARPS, THREADS, *in);
    } else {
        terms *= (double)in->targets * (double)in->kappa;
        terms *= in->mean_over_quantiles ? in->layout.quantiles : 1;
        RM_RUN_SHARED(c, quantile_rows, in->batch, threads_for(in->layout.quantiles),
                      RM_BLOCK_SUM_BYTES + in->targets * sizeof(float), *in, (float)(1.0 / terms));
    }
    if (in->cql > 0.0f)
        RM_RUN(c, cql_rows, (in->batch + THREADS - 1) / THREADS, THREADS, *in, terms);
    RM_RUN_SHARED(c, loss_total, 1, 256, RM_BLOCK_SUM_BYTES, *in, terms);
}

/* --- classes --------------------------------------------------------------------------------- */

#define CLASS_THREADS 256u

/* One block, so that the sums have one order. */
static __global__ void __launch_bounds__(CLASS_THREADS) class_rows(struct rm_class_loss in)
{
    RM_SHARED(double, scratch);
    struct rm_class_sums sums = {0.0, 0.0, 0.0, 0.0};
    const size_t queries = (size_t)in.samples * in.queries;
    for (size_t i = threadIdx.x; i < queries; i += blockDim.x)
        rm_class_loss_query(&in, i, &sums);
    sums.loss = rm_block_sum(sums.loss, scratch);
    sums.entropy = rm_block_sum(sums.entropy, scratch);
    sums.actions = rm_block_sum(sums.actions, scratch);
    sums.types = rm_block_sum(sums.types, scratch);
    if (threadIdx.x != 0)
        return;
    rm_figures_begin(in.figures, sums.loss, (double)queries);
    in.figures->now_sums[RM_SUM_OF_ENTROPY] = sums.entropy;
    in.figures->now_sums[RM_SUM_OF_ACTIONS] = sums.actions;
    in.figures->now_sums[RM_SUM_OF_TYPES] = sums.types;
}

static void class_loss(struct rm_backend *b, const struct rm_class_loss *in, double *)
{
    RM_RUN_SHARED(rm_cuda_of(b), class_rows, 1, CLASS_THREADS, RM_BLOCK_SUM_BYTES, *in);
}

const struct rm_value_ops rm_cuda_values = {
    .targets = targets, .loss = loss, .class_loss = class_loss};
