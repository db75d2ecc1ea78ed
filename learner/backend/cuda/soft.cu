/* Policy, targets, losses and temperature of soft actor-critic (soft_ops.h), in double wherever the
 * CPU's are. A thread has a row with all its actions, of which there are few; one block computes
 * losses, so that their sums have one order. */
#include "learner/backend/cuda/tables.h"

#include "learner/backend/cuda/block.h"

extern "C" {
#include "learner/backend/value_ops.h"
}

#define THREADS 256u

static __device__ double alpha_of(const struct rm_temperature *temperature)
{
    return exp(temperature->log);
}

/* The row's legal actions; NULL: all, also if none is legal. */
static __device__ const uint8_t *legal_of(const struct rm_soft_states &s, uint32_t row)
{
    const uint8_t *mask = s.mask ? s.mask + (size_t)row * s.actions : NULL;
    bool any = false;
    for (uint32_t a = 0; mask && a < s.actions; a++)
        any |= mask[a] != 0;
    return any ? mask : NULL;
}

/* p and logp of a row, unless they are there. */
static __device__ void make_policy(const struct rm_soft_states &s, uint32_t row)
{
    if (!s.logits)
        return;
    const size_t at = (size_t)row * s.actions;
    const uint8_t *legal = legal_of(s, row);
    const float *logits = s.logits + at;
    double most = -INFINITY, sum = 0.0;
    for (uint32_t a = 0; a < s.actions; a++)
        if (!legal || legal[a])
            most = fmax(most, (double)logits[a]);
    for (uint32_t a = 0; a < s.actions; a++)
        if (!legal || legal[a])
            sum += exp((double)logits[a] - most);
    const double whole = most + log(sum);
    for (uint32_t a = 0; a < s.actions; a++) {
        const bool in = !legal || legal[a];
        const double own = (double)logits[a] - whole;
        s.logp[at + a] = in ? (float)own : 0.0f;
        s.p[at + a] = in ? (float)exp(own) : 0.0f;
    }
}

static __device__ double least_value(const struct rm_soft_states &s, size_t at)
{
    return fmin((double)s.q1[at], (double)s.q2[at]);
}

/* --- targets --------------------------------------------------------------------------------- */

static __global__ void targets_rows(struct rm_soft_states s, const float *ret,
                                    const float *discount, float *y)
{
    const uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= s.batch)
        return;
    if (discount[row] == 0.0f) { /* terminated: the networks' values do not count */
        y[row] = ret[row];
        return;
    }
    make_policy(s, row);
    const double alpha = alpha_of(s.temperature);
    double value = 0.0;
    for (uint32_t a = 0; a < s.actions; a++) {
        const size_t at = (size_t)row * s.actions + a;
        if (s.p[at] > 0.0f)
            value += (double)s.p[at] * (least_value(s, at) - alpha * (double)s.logp[at]);
    }
    y[row] = (float)((double)ret[row] + (double)discount[row] * value);
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
    const double scale = rm_loss_scale(in.figures);
    double loss = 0.0;
    for (uint32_t row = threadIdx.x; row < in.batch; row += blockDim.x) {
        const size_t first = (size_t)row * in.actions;
        const size_t at = first + (in.action ? (uint32_t)in.action[row] : 0);
        const double weight = in.weight ? (double)in.weight[row] : 1.0;
        const double off = (double)in.q[at] - (double)in.y[row];
        for (uint32_t a = 0; a < in.actions; a++)
            in.d_q[first + a] = 0.0f;
        in.d_q[at] = (float)(scale * weight * off / in.batch);
        loss += weight * 0.5 * off * off;
        if (in.error)
            in.error[row] = (in.critic ? in.error[row] : 0.0f) + (float)(0.5 * fabs(off));
    }
    loss = rm_block_sum(loss, scratch);
    if (threadIdx.x == 0)
        in.figures->last_loss =
            (in.critic || in.after_policy ? in.figures->last_loss : 0.0) + loss / in.batch;
}

static void critic_loss(struct rm_backend *b, const struct rm_soft_critic_loss *loss)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN_SHARED(c, critic_rows, 1, THREADS, RM_BLOCK_SUM_BYTES, *loss);
}

/* A row's part of the loss and of the figures. */
struct soft_sums {
    double loss, entropy, value, gap;
};

static __device__ void policy_row(const struct rm_soft_policy_loss &in, double alpha, uint32_t row,
                                  struct soft_sums *sums)
{
    const struct rm_soft_states &s = in.states;
    const size_t first = (size_t)row * s.actions;
    const double weight = in.weight ? (double)in.weight[row] : 1.0;
    double expected = 0.0, entropy = 0.0, value = 0.0;
    uint32_t legal = 0;
    make_policy(s, row);
    for (uint32_t a = 0; a < s.actions; a++) {
        const size_t at = first + a;
        const double p = (double)s.p[at], logp = (double)s.logp[at];
        legal += s.mask ? s.mask[at] != 0 : 1;
        if (p == 0.0)
            continue;
        expected += p * (alpha * logp - least_value(s, at));
        value += p * least_value(s, at);
        entropy -= p * logp;
    }
    for (uint32_t a = 0; a < s.actions; a++) {
        const size_t at = first + a;
        const double p = (double)s.p[at];
        const double force = p == 0.0 ? 0.0 : alpha * (double)s.logp[at] - least_value(s, at);
        in.d_logits[at] =
            p == 0.0
                ? 0.0f
                : (float)(rm_loss_scale(in.figures) * weight * p * (force - expected) / s.batch);
    }
    sums->loss += weight * expected;
    sums->entropy += entropy;
    sums->value += value;
    sums->gap += in.target_ratio * log((double)(legal ? legal : s.actions)) - entropy;
}

/* The same of a draw. */
static __device__ void drawn_row(const struct rm_soft_policy_loss &in, double alpha, uint32_t row,
                                 struct soft_sums *sums)
{
    const struct rm_soft_states &s = in.states;
    const double weight = in.weight ? (double)in.weight[row] : 1.0, logp = (double)s.logp[row];
    const bool second = s.q2[row] < s.q1[row];
    const float d = (float)(rm_loss_scale(in.figures) * -weight / s.batch);
    in.d_logits[row] = second ? 0.0f : d;
    in.d_logits[s.batch + row] = second ? d : 0.0f;
    sums->loss += weight * (alpha * logp - least_value(s, row));
    sums->entropy -= logp;
    sums->value += least_value(s, row);
    sums->gap += in.target_entropy + logp;
}

static __global__ void policy_rows(struct rm_soft_policy_loss in)
{
    RM_SHARED(double, scratch);
    struct soft_sums sums = {0.0, 0.0, 0.0, 0.0};
    const double alpha = alpha_of(in.states.temperature);
    for (uint32_t row = threadIdx.x; row < in.states.batch; row += blockDim.x)
        if (in.states.logits)
            policy_row(in, alpha, row, &sums);
        else
            drawn_row(in, alpha, row, &sums);
    const double loss = rm_block_sum(sums.loss, scratch);
    const double entropy = rm_block_sum(sums.entropy, scratch);
    const double value = rm_block_sum(sums.value, scratch);
    const double gap = rm_block_sum(sums.gap, scratch);
    struct rm_update_figures *f = in.figures;
    if (threadIdx.x != 0)
        return;
    f->last_loss = (in.states.logits ? f->last_loss : 0.0) + loss / in.states.batch;
    for (int i = 0; i < 8; i++)
        f->now_sums[i] = 0.0;
    f->now_sums[RM_SUM_OF_Q] = value / in.states.batch;
    f->now_sums[RM_SUM_OF_ENTROPY] = entropy / in.states.batch;
    f->now_sums[RM_SUM_OF_TEMPERATURE] = alpha;
    f->now_sums[RM_SUM_OF_GAP] = gap / in.states.batch;
    f->now_samples = 1.0;
}

static void policy_loss(struct rm_backend *b, const struct rm_soft_policy_loss *loss)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN_SHARED(c, policy_rows, 1, THREADS, RM_BLOCK_SUM_BYTES, *loss);
}

/* --- temperature ----------------------------------------------------------------------------- */

static __global__ void move_temperature(struct rm_soft_step s)
{
    struct rm_temperature *t = s.temperature;
    if (s.figures->skip)
        return;
    const double gradient = -alpha_of(t) * s.figures->now_sums[RM_SUM_OF_GAP];
    const double k = (double)++t->steps;
    t->m = s.beta1 * t->m + (1.0 - s.beta1) * gradient;
    t->v = s.beta2 * t->v + (1.0 - s.beta2) * gradient * gradient;
    const double m = t->m / (1.0 - pow(s.beta1, k)), v = t->v / (1.0 - pow(s.beta2, k));
    t->log -= s.knobs->learning_rate * m / (sqrt(v) + s.epsilon);
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
    if (row >= k.draw.batch)
        return;
    const double weight = k.weight ? (double)k.weight[row] : 1.0;
    const double share = alpha_of(k.temperature) * weight / k.draw.batch;
    rm_soft_draw_back_row(&k, row, (float)(rm_loss_scale(k.figures) * share));
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
        action[i] = rm_gaussian_bounded(rm_real_of_word(word[i]), 1);
}

static void bound(struct rm_backend *b, const int32_t *word, size_t n, float *action)
{
    struct rm_cuda *c = rm_cuda_of(b);
    RM_RUN(c, bound_words, (uint32_t)((n + THREADS - 1) / THREADS), THREADS, word, n, action);
}

static struct rm_soft_ops table()
{
    struct rm_soft_ops t = {};
    t.targets = targets;
    t.critic_loss = critic_loss;
    t.policy_loss = policy_loss;
    t.temperature = temperature;
    t.draw = draw;
    t.draw_back = draw_back;
    t.bound = bound;
    return t;
}

const struct rm_soft_ops rm_cuda_soft = table();
