/* The policy's distribution: ln pi(a) of given actions, and the loss of policy_loss.h with its
 * gradient. A thread has a row, and processes its actions in the order of policy_loss.isa.c. */
#include "learner/backend/cuda/policy.h"
#include "learner/backend/cuda/softmax.h"

#define ROW_THREADS 128u

/* --- values ---------------------------------------------------------------------------------- */

__device__ static float logp_of_row(const struct rm_policy_values *v, size_t row)
{
    const struct rm_categorical *d = &v->distribution;
    float logp = 0;
    for (uint32_t i = 0, offset = 0; i < d->choices; offset += d->choice_actions[i++]) {
        const struct choice c = {v->out + row * v->outputs + offset,
                                 v->mask ? v->mask + row * d->actions + offset : NULL,
                                 d->choice_actions[i]};
        const struct softmax s = softmax_of(&c);
        logp += logp_of(&c, &s, v->action[row * d->words + i]);
    }
    if (v->gaussian.reals)
        logp += rm_gaussian_logp(&v->gaussian, v->out + row * v->outputs + d->actions,
                                 v->action + row * d->words + d->choices);
    return logp;
}

__global__ static void take_values(struct rm_policy_values v)
{
    RM_EACH(row, v.rows)
    {
        const double z = v.out[(row + 1) * v.outputs - 1];
        v.value[row] = (float)(v.head->mean + v.head->deviation * z);
        if (v.logp && row < v.answered)
            v.logp[row] = logp_of_row(&v, row);
    }
}

void rm_cuda_policy_values(struct rm_backend *b, const struct rm_policy_values *values)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, take_values, rm_cuda_blocks(c, values->rows, ROW_THREADS), ROW_THREADS, *values);
}

/* --- loss ------------------------------------------------------------------------------------ */

struct sample {
    size_t row; /* of the rollout */
    float weight, advantage, scale;
    float logp, entropy, d_logp;
};

__device__ static struct choice open_choice(const struct rm_minibatch_loss *l, size_t i, size_t row,
                                            uint32_t choice, uint32_t offset)
{
    const struct rm_policy_loss *p = &l->loss;
    const struct choice c = {l->out + i * p->outputs + offset,
                             p->mask ? p->mask + row * p->distribution.actions + offset : NULL,
                             p->distribution.choice_actions[choice]};
    return c;
}

__device__ static float entropy_of(const struct choice *c, const struct softmax *s)
{
    float mean = 0;
    for (uint32_t a = 0; a < c->actions; a++) {
        const float off = logit_of(c, a) - s->max;
        mean += expf(off) * off;
    }
    return s->log_sum - mean / s->sum;
}

__device__ static void weigh(const struct rm_minibatch_loss *l, size_t i, struct sample *s)
{
    const struct rm_categorical *d = &l->loss.distribution;
    for (uint32_t k = 0, offset = 0; k < d->choices; offset += d->choice_actions[k++]) {
        const struct choice c = open_choice(l, i, s->row, k, offset);
        const struct softmax soft = softmax_of(&c);
        s->entropy += entropy_of(&c, &soft);
        s->logp += logp_of(&c, &soft, l->loss.action[s->row * d->words + k]);
    }
    const struct rm_gaussian *g = &l->loss.gaussian;
    const float *means = l->out + i * l->loss.outputs + d->actions;
    if (!g->reals)
        return;
    s->logp += rm_gaussian_logp(g, means, l->loss.action + s->row * d->words + d->choices);
    s->entropy += rm_gaussian_entropy(g, means);
}

__device__ static void keep(const struct rm_minibatch_loss *l, size_t i, enum rm_policy_sum sum,
                            float x, float weight)
{
    l->part[(size_t)sum * l->rows + i] = x * weight;
}

__device__ static void surrogate(const struct rm_minibatch_loss *l, size_t i, struct sample *s)
{
    const struct rm_policy_loss *p = &l->loss;
    const float log_ratio = s->logp - p->logp[s->row];
    const float low = 1 - p->clip, high = 1 + p->clip;
    const float ratio = expf(log_ratio < 80 ? log_ratio : 80);
    const float above = ratio < low ? low : ratio;
    const float bounded = above > high ? high : above;
    const float free = ratio * s->advantage, held = bounded * s->advantage;
    const bool plain = p->clip <= 0;
    const float policy = plain ? -s->advantage * s->logp : free < held ? -free : -held;
    const float d = plain ? -s->advantage : free <= held ? -free : 0;
    s->d_logp = d * s->scale * s->weight;
    keep(l, i, RM_SUM_POLICY, policy, s->weight);
    keep(l, i, RM_SUM_KL, (ratio - 1) - log_ratio, s->weight);
    keep(l, i, RM_SUM_CLIPPED, !plain && bounded != ratio ? 1.0f : 0.0f, s->weight);
    keep(l, i, RM_SUM_ENTROPY, s->entropy, s->weight);
}

__device__ static void value_part(const struct rm_minibatch_loss *l, size_t i,
                                  const struct sample *s)
{
    const struct rm_policy_loss *p = &l->loss;
    const size_t at = (i + 1) * p->outputs - 1;
    const struct rm_value_errors e =
        rm_value_errors(l->out[at], p->target[s->row], p->value[s->row], p->value_clip,
                        l->of_means ? l->passes->value_error : (uint32_t)RM_ERROR_LARGER);
    keep(l, i, RM_SUM_VALUE, e.loss, s->weight);
    l->d_out[at] = e.slope * (s->scale * p->value_coefficient) * s->weight;
}

__device__ static void logits_part(const struct rm_minibatch_loss *l, size_t i,
                                   const struct sample *s)
{
    const struct rm_policy_loss *p = &l->loss;
    const struct rm_categorical *d = &p->distribution;
    const float bonus = s->scale * (float)l->knobs->entropy_coefficient * s->weight;
    for (uint32_t k = 0, offset = 0; k < d->choices; offset += d->choice_actions[k++]) {
        const struct choice c = open_choice(l, i, s->row, k, offset);
        const struct softmax soft = softmax_of(&c);
        const float entropy = entropy_of(&c, &soft), inverse = 1 / soft.sum;
        const int32_t action = p->action[s->row * d->words + k];
        for (uint32_t a = 0; a < c.actions; a++) {
            const float off = logit_of(&c, a) - soft.max;
            const float prob = expf(off) * inverse, ln = off - soft.log_sum;
            const float chosen = action == (int32_t)a ? 1.0f : 0.0f;
            l->d_out[i * p->outputs + offset + a] =
                s->d_logp * (chosen - prob) + bonus * prob * (ln + entropy);
        }
    }
    const size_t means = i * p->outputs + d->actions;
    if (p->gaussian.reals)
        rm_gaussian_back(&p->gaussian, l->out + means, p->action + s->row * d->words + d->choices,
                         s->d_logp, -bonus, l->d_out + means);
}

__global__ static void rows_of_loss(struct rm_minibatch_loss l)
{
    const uint32_t batch = l.passes->batch;
    RM_EACH(i, l.rows)
    {
        struct sample s = {};
        s.row = l.loss.index ? l.loss.index[i] : i;
        s.weight = l.weight[i];
        s.scale = rm_figures_scale(l.figures) / (float)(batch ? batch : 1);
        s.advantage = (l.loss.advantage[s.row] - l.passes->mean) * l.passes->scale;
        weigh(&l, i, &s);
        surrogate(&l, i, &s);
        value_part(&l, i, &s);
        logits_part(&l, i, &s);
    }
}

/* One thread. */
__device__ static void end_loss(const struct rm_minibatch_loss *l, const double *sums)
{
    const uint32_t batch = l->passes->batch;
    if (l->figures->stop) /* keeps the loss of the last minibatch that counted */
        return;
    for (uint32_t k = 0; k < RM_SUM_COUNT; k++)
        l->figures->now_sums[k] = sums[k];
    l->figures->now_samples = batch;
    l->figures->last_loss = (sums[RM_SUM_POLICY] + l->value_coefficient * sums[RM_SUM_VALUE] -
                             l->knobs->entropy_coefficient * sums[RM_SUM_ENTROPY]) /
                            (batch ? batch : 1);
}

__global__ static void end_all_loss(struct rm_minibatch_loss l)
{
    end_loss(&l, l.own);
}

/* One block: computes the sums in one order, and the loss. */
__global__ static void sum_loss(struct rm_minibatch_loss l)
{
    __shared__ double room[RM_WARP];
    double sums[RM_SUM_COUNT];
    if (!l.own && l.figures->stop)
        return;
    for (uint32_t k = 0; k < RM_SUM_COUNT; k++) {
        double sum = 0;
        for (uint32_t i = threadIdx.x; i < l.rows; i += RM_SUM_THREADS)
            sum += (double)l.part[(size_t)k * l.rows + i];
        sums[k] = rm_block_sum(sum, room);
    }
    if (threadIdx.x != 0)
        return;
    for (uint32_t k = 0; l.own && k < RM_SUM_COUNT; k++)
        l.own[k] = sums[k];
    if (!l.own)
        end_loss(&l, sums);
}

/* One block: the larger of the two means of all samples' errors. */
__global__ static void choose_error(struct rm_minibatch_loss l)
{
    __shared__ double room[RM_WARP];
    const struct rm_policy_loss *p = &l.loss;
    double free = 0, held = 0;
    for (size_t i = threadIdx.x; i < l.rows; i += RM_SUM_THREADS) {
        const size_t row = p->index ? p->index[i] : i;
        const struct rm_value_errors e =
            rm_value_errors(l.out[(i + 1) * p->outputs - 1], p->target[row], p->value[row],
                            p->value_clip, RM_ERROR_LARGER);
        free += (double)(e.free * l.weight[i]);
        held += (double)(e.held * l.weight[i]);
    }
    free = rm_block_sum(free, room);
    held = rm_block_sum(held, room);
    if (threadIdx.x == 0)
        l.passes->value_error = rm_larger_error(free, held);
}

void rm_cuda_policy_loss(struct rm_backend *b, const struct rm_minibatch_loss *loss, double *sums)
{
    struct rm_cuda *c = rm_cuda_of(b);
    (void)sums;
    if (loss->of_means)
        RM_RUN(c, choose_error, 1, RM_SUM_THREADS, *loss);
    RM_RUN(c, rows_of_loss, rm_cuda_blocks(c, loss->rows, ROW_THREADS), ROW_THREADS, *loss);
    RM_RUN(c, sum_loss, 1, RM_SUM_THREADS, *loss);
}

void rm_cuda_policy_loss_end(struct rm_backend *b, const struct rm_minibatch_loss *loss)
{
    if (loss->own)
        RM_RUN(rm_cuda_of(b), end_all_loss, 1, 1, *loss);
}
