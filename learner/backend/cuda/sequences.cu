/* Targets and loss of R2D2 over sequences (sequence_ops.h), in double wherever the CPU's are. */
#include "learner/backend/cuda/tables.h"

#include "learner/backend/cuda/block.h"

#define THREADS 128u
#define WARPS   (THREADS / RM_WARP)

/* The members of a batch that kernels need; no padding. */
struct sequence_rows {
    const int32_t *action;
    const float *ret, *discount, *weight, *valid;
    const uint8_t *mask;
    const uint32_t *ahead;
    float *error;
    uint32_t size, actions, burn_in, trace, tail, rescale;
};

static struct sequence_rows rows_of(const struct rm_batch *b, bool rescale)
{
    struct sequence_rows rows = {b->action,  b->ret,   b->discount, b->weight, b->valid,
                                 b->mask,    b->ahead, b->error,    b->size,   b->actions,
                                 b->burn_in, b->trace, b->tail,     rescale};
    return rows;
}

/* --- targets --------------------------------------------------------------------------------- */

/* A thread per place of the trace. */
static __global__ void targets_places(struct sequence_rows r, const float *choose,
                                      const float *value, float *y)
{
    const uint32_t at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= r.trace * r.size)
        return;
    y[at] = 0.0f;
    if (!r.valid[at])
        return;
    const size_t row = (size_t)(at / r.size + r.ahead[at]) * r.size + at % r.size;
    double sum = (double)r.ret[at];
    if (r.discount[at] != 0.0f) {
        const uint8_t *mask =
            r.mask ? r.mask + (row + (size_t)r.burn_in * r.size) * r.actions : NULL;
        const uint32_t best = rm_best_action(choose + row * r.actions, mask, r.actions);
        const double next = (double)value[row * r.actions + best];
        sum += (double)r.discount[at] * (r.rescale ? rm_value_unscale(next) : next);
    }
    y[at] = (float)(r.rescale ? rm_value_rescale(sum) : sum);
}

static void targets(struct rm_backend *b, const struct rm_sequence_targets *t)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const uint32_t places = t->batch.trace * t->batch.size;
    RM_RUN(c, targets_places, (places + THREADS - 1) / THREADS, THREADS,
           rows_of(&t->batch, t->rescale), t->choose, t->value, t->y);
}

/* --- loss ------------------------------------------------------------------------------------ */

struct sequence_loss {
    const float *q, *y;
    float *d_q;
    double *partials; /* (size) losses, (size) values of actions, then the number of valid places */
    struct rm_update_figures *figures;
    double max_share, kappa;
};

/* One block: counts valid places. */
static __global__ void places_valid(struct sequence_rows r, double *count)
{
    RM_SHARED(double, scratch);
    double valid = 0.0;
    for (uint32_t i = threadIdx.x; i < r.trace * r.size; i += blockDim.x)
        valid += r.valid[i] != 0 ? 1.0 : 0.0;
    valid = rm_block_sum(valid, scratch);
    if (threadIdx.x == 0)
        *count = valid;
}

/* NaN passes through. */
static __device__ double clamped(double u, double kappa)
{
    return u < -kappa ? -kappa : u > kappa ? kappa : u;
}

/* A block per sequence: its gradient, its part of the loss, its error. */
static __global__ void sequence_rows_loss(struct sequence_rows r, struct sequence_loss l)
{
    RM_SHARED(double, scratch);
    double *largest = scratch + RM_WARP; /* (threads) */
    const uint32_t i = blockIdx.x;
    const double weight = r.weight ? (double)r.weight[i] : 1.0;
    const double scale = weight / l.partials[2 * (size_t)r.size] * rm_figures_scale(l.figures);
    double loss = 0.0, value = 0.0, total = 0.0, valid = 0.0, most = 0.0;
    for (uint32_t t = threadIdx.x; t < r.trace + r.tail; t += blockDim.x) {
        const size_t at = (size_t)t * r.size + i;
        float *d_q = l.d_q + at * r.actions;
        for (uint32_t a = 0; a < r.actions; a++)
            d_q[a] = 0.0f;
        if (t >= r.trace || !r.valid[at])
            continue;
        const uint32_t action = (uint32_t)r.action[at];
        const double q = (double)l.q[at * r.actions + action];
        const double off = (double)l.y[at] - q, c = clamped(off, l.kappa);
        d_q[action] = (float)(-c * scale);
        loss += weight * c * (off - 0.5 * c);
        value += q;
        total += fabs(off);
        valid += 1.0;
        most = fabs(off) > most ? fabs(off) : most;
    }
    loss = rm_block_sum(loss, scratch);
    value = rm_block_sum(value, scratch);
    total = rm_block_sum(total, scratch);
    valid = rm_block_sum(valid, scratch);
    largest[threadIdx.x] = most;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    for (uint32_t t = 1; t < blockDim.x; t++)
        most = largest[t] > most ? largest[t] : most;
    l.partials[i] = loss;
    l.partials[r.size + i] = value;
    if (r.error)
        r.error[i] =
            (float)(l.max_share * most + (1.0 - l.max_share) * (valid > 0.0 ? total / valid : 0.0));
}

/* One block: adds up the loss over sequences. */
static __global__ void sequences_total(struct sequence_rows r, struct sequence_loss l)
{
    RM_SHARED(double, scratch);
    const struct rm_block_pair sums = rm_block_sum_pair(l.partials, r.size, scratch);
    if (threadIdx.x != 0)
        return;
    const double count = l.partials[2 * (size_t)r.size];
    const double value = sums.y / count;
    rm_figures_begin(l.figures, sums.x / count, 1.0);
    l.figures->now_sums[RM_SUM_OF_Q] = r.rescale ? rm_value_unscale(value) : value;
}

static void loss(struct rm_backend *b, const struct rm_sequence_loss *in)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const struct sequence_rows rows = rows_of(&in->batch, in->rescale);
    const struct sequence_loss l = {in->q,       in->y,         in->d_q,          in->partials,
                                    in->figures, in->max_share, (double)in->kappa};
    RM_RUN_SHARED(c, places_valid, 1, 256, RM_BLOCK_SUM_BYTES, rows,
                  in->partials + 2 * (size_t)in->batch.size);
    RM_RUN_SHARED(c, sequence_rows_loss, in->batch.size, 64,
                  RM_BLOCK_SUM_BYTES + 64 * sizeof(double), rows, l);
    RM_RUN_SHARED(c, sequences_total, 1, 256, RM_BLOCK_SUM_BYTES, rows, l);
}

const struct rm_sequence_ops rm_cuda_sequences = {.targets = targets, .loss = loss};
