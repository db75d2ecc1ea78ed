/* Minibatches of a rollout: finds the rows of the next one, computes how its advantages are
 * normalised, and counts it after the optimizer's step. */
#include "learner/backend/cuda/policy.h"

#define ROW_THREADS 256u

/* --- the next minibatch ---------------------------------------------------------------------- */

/* This device's share of the minibatch. */
__device__ static struct rm_pass_part share_of(const struct rm_next_minibatch *k,
                                               struct rm_pass_part whole)
{
    const uint64_t n = whole.entries, shares = k->shares > 1 ? k->shares : 1;
    const uint64_t from = n * k->share / shares, to = n * (k->share + 1) / shares;
    const struct rm_pass_part own = {whole.from + (uint32_t)from, (uint32_t)(to - from)};
    return own;
}

__global__ static void pick_rows(struct rm_next_minibatch k)
{
    const struct rm_pass_part at = share_of(&k, rm_passes_part(k.passes));
    const uint32_t *order = k.order + (size_t)k.passes->pass * k.stride + at.from;
    RM_EACH(i, (size_t)k.steps * k.most)
    {
        const uint32_t t = (uint32_t)(i / k.most), j = (uint32_t)(i % k.most);
        const uint32_t last = at.entries ? at.entries - 1 : 0;
        const uint32_t entry = at.entries ? order[j < last ? j : last] : 0;
        const uint32_t row = t * k.lanes + entry;
        k.index[i] = row;
        k.weight[i] = j < at.entries ? k.valid[row] : 0;
        if (k.entry && t == 0)
            k.entry[j] = entry;
        if (k.restart)
            k.restart[i] = (uint8_t)(k.flags[row] & k.first_flag);
    }
}

/* Returns the sum of number(row) over the samples of the whole minibatch, in an order that does not
 * depend on the devices' shares. */
template <typename F>
__device__ static double sum_over_minibatch(const struct rm_next_minibatch *k, double *room,
                                            F number)
{
    const struct rm_pass_part at = rm_passes_part(k->passes);
    const uint32_t *order = k->order + (size_t)k->passes->pass * k->stride + at.from;
    double sum = 0;
    for (uint32_t i = threadIdx.x; i < k->steps * k->whole; i += RM_SUM_THREADS) {
        const uint32_t t = i / k->whole, j = i % k->whole;
        const uint32_t row = j < at.entries ? t * k->lanes + order[j] : 0;
        sum += j < at.entries && k->valid[row] > 0 ? number(row) : 0;
    }
    return rm_block_sum(sum, room);
}

/* Sets the minibatch's number of samples, normalisation and knobs. Called by one thread. */
__device__ static void set_moments(const struct rm_next_minibatch *k, struct rm_slot_moments m)
{
    struct rm_rollout_passes *p = k->passes;
    p->batch = (uint32_t)m.n;
    p->mean = k->normalise ? (m.n > 1 ? (float)m.mean : 0) : p->whole_mean;
    p->scale = !k->normalise ? p->whole_scale
               : m.n > 1     ? (float)(1 / (sqrt(m.square / (m.n - 1)) + 1e-8))
                             : 1;
    if (!rm_passes_over(p))
        *k->knobs = k->knobs_of[(size_t)p->pass * k->knobs_stride + p->part];
}

/* One block: computes the number of samples and the moments of their advantages. */
__global__ static void weigh_rows(struct rm_next_minibatch k)
{
    __shared__ double room[RM_WARP];
    const float *advantage = k.advantage;
    struct rm_slot_moments m = {sum_over_minibatch(&k, room, [](uint32_t) { return 1.0; }), 0, 0};
    if (k.normalise) {
        const double mean =
            sum_over_minibatch(&k, room, [=](uint32_t row) { return (double)advantage[row]; }) /
            (m.n > 0 ? m.n : 1);
        m.mean = mean;
        m.square = sum_over_minibatch(&k, room, [=](uint32_t row) {
            return ((double)advantage[row] - mean) * ((double)advantage[row] - mean);
        });
    }
    const double line[RM_DEVICE_SLOT] = {m.n, m.mean, m.square};
    if (k.slots.at)
        rm_fill_slots(&k.slots, line);
    else if (threadIdx.x == 0)
        set_moments(&k, m);
}

__global__ static void weigh_all(struct rm_next_minibatch k)
{
    set_moments(&k, rm_merge_slots(&k.slots, 1, 2));
}

static uint32_t minibatch(struct rm_backend *b, const struct rm_next_minibatch *k)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t rows = (size_t)k->steps * k->most;
    RM_RUN(c, pick_rows, rm_cuda_blocks(c, rows, ROW_THREADS), ROW_THREADS, *k);
    RM_RUN(c, weigh_rows, 1, RM_SUM_THREADS, *k);
    return k->steps * k->most;
}

static void minibatch_end(struct rm_backend *b, const struct rm_next_minibatch *k)
{
    if (k->slots.at)
        RM_RUN(rm_cuda_of(b), weigh_all, 1, 1, *k);
}

/* --- after a minibatch ----------------------------------------------------------------------- */

__global__ static void book_minibatch(double target_kl, struct rm_rollout_passes *p,
                                      struct rm_update_figures *figures)
{
    rm_passes_book(target_kl, p, figures);
}

static void book(struct rm_backend *b, double target_kl, struct rm_rollout_passes *passes,
                 struct rm_update_figures *figures)
{
    RM_RUN(rm_cuda_of(b), book_minibatch, 1, 1, target_kl, passes, figures);
}

__global__ static void see_restarts(const uint8_t *flags, uint32_t first_flag, size_t n,
                                    uint8_t *out)
{
    RM_EACH(i, n)
    {
        out[i] = (uint8_t)(flags[i] & first_flag);
    }
}

static void restarts(struct rm_backend *b, const uint8_t *flags, uint32_t first_flag, size_t n,
                     uint8_t *out)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, see_restarts, rm_cuda_blocks(c, n, ROW_THREADS), ROW_THREADS, flags, first_flag, n,
           out);
}

const struct rm_policy_ops rm_cuda_policies = {.forward_rows = 8192,
                                               .sequence_rows = UINT32_MAX,
                                               .fills_up = true,
                                               .values = rm_cuda_policy_values,
                                               .gae = rm_cuda_gae,
                                               .vtrace = rm_cuda_vtrace,
                                               .restarts = restarts,
                                               .returns = rm_cuda_returns,
                                               .minibatch = minibatch,
                                               .loss = rm_cuda_policy_loss,
                                               .loss_end = rm_cuda_policy_loss_end,
                                               .returns_end = rm_cuda_returns_end,
                                               .minibatch_end = minibatch_end,
                                               .book = book};
