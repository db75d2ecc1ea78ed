/* Policy, targets, losses and temperature of soft actor-critic (soft_ops.h), in double wherever the
 * CPU's are. A thread has a row with all its actions, of which there are few; one block computes
 * losses, so that their sums have one order. */
#include "learner/backend/cuda/tables.h"

#include "learner/backend/cuda/block.h"

#define THREADS 256u

/* --- targets --------------------------------------------------------------------------------- */

static __global__ void targets_rows(struct rm_soft_states s, const float *ret,
                                    const float *discount, float *y)
{
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < s.batch)
        y[row] = rm_soft_target_row(&s, row, ret[row], discount[row]);
}

static void targets(struct rm_backend *b, const struct rm_soft_states *next, const float *ret,
                    const float *discount, float *y)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, targets_rows, (next->batch + THREADS - 1) / THREADS, THREADS, *next, ret, discount,
           y);
}

/* --- losses ---------------------------------------------------------------------------------- */

static __global__ void critic_rows(struct rm_soft_critic_loss in)
{
    RM_SHARED(double, scratch);
    double loss = 0.0;
    for (uint32_t row = threadIdx.x; row < in.batch; row += blockDim.x)
        loss += rm_soft_critic_row(&in, row);
    loss = rm_block_sum(loss, scratch);
    if (threadIdx.x == 0)
        rm_soft_critic_end(&in, loss);
}

static void critic_loss(struct rm_backend *b, const struct rm_soft_critic_loss *loss)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN_SHARED(c, critic_rows, 1, THREADS, RM_BLOCK_SUM_BYTES, *loss);
}

static __global__ void policy_rows(struct rm_soft_policy_loss in)
{
    RM_SHARED(double, scratch);
    struct rm_soft_sums sums = {0.0, 0.0, 0.0, 0.0};
    const double alpha = rm_temperature_alpha(in.states.temperature);
    for (uint32_t row = threadIdx.x; row < in.states.batch; row += blockDim.x)
        if (in.states.logits)
            rm_soft_policy_loss_row(&in, alpha, row, &sums);
        else
            rm_soft_drawn_loss_row(&in, alpha, row, &sums);
    sums.loss = rm_block_sum(sums.loss, scratch);
    sums.entropy = rm_block_sum(sums.entropy, scratch);
    sums.value = rm_block_sum(sums.value, scratch);
    sums.gap = rm_block_sum(sums.gap, scratch);
    if (threadIdx.x == 0)
        rm_soft_policy_loss_end(&in, alpha, &sums);
}

static void policy_loss(struct rm_backend *b, const struct rm_soft_policy_loss *loss)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN_SHARED(c, policy_rows, 1, THREADS, RM_BLOCK_SUM_BYTES, *loss);
}

/* --- temperature ----------------------------------------------------------------------------- */

static __global__ void move_temperature(struct rm_soft_step s)
{
    rm_temperature_step(&s);
}

static void temperature(struct rm_backend *b, const struct rm_soft_step *step)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, move_temperature, 1, 1, *step);
}

/* --- real actions ---------------------------------------------------------------------------- */

static __global__ void draw_rows(struct rm_soft_draw d)
{
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < d.batch)
        rm_soft_draw_row(&d, row);
}

static void draw(struct rm_backend *b, const struct rm_soft_draw *d)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, draw_rows, (d->batch + THREADS - 1) / THREADS, THREADS, *d);
}

static __global__ void draw_back_rows(struct rm_soft_draw_back k)
{
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < k.draw.batch)
        rm_soft_draw_back_row(&k, row);
}

static void draw_back(struct rm_backend *b, const struct rm_soft_draw_back *k)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, draw_back_rows, (k->draw.batch + THREADS - 1) / THREADS, THREADS, *k);
}

static __global__ void bound_words(const int32_t *word, size_t n, float *action)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        action[i] = rm_gaussian_bounded(rm_float_of_word(word[i]), 1);
}

static void bound(struct rm_backend *b, const int32_t *word, size_t n, float *action)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, bound_words, (uint32_t)((n + THREADS - 1) / THREADS), THREADS, word, n, action);
}

const struct rm_soft_ops rm_cuda_soft = {.targets = targets,
                                         .critic_loss = critic_loss,
                                         .policy_loss = policy_loss,
                                         .temperature = temperature,
                                         .draw = draw,
                                         .draw_back = draw_back,
                                         .bound = bound};
