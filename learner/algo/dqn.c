/* dqn: the trainer of the value-based algorithms of the table in algo.h. An update is three forward
 * passes, each with its own noise and fractions (online on s' to choose a*, target on s' for its
 * value, online on s), the loss, one backward pass, the gradient's norm, the optimizer and the
 * target network. */
#include "learner/algo/dqn_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dqn {
    struct rm_dqn d; /* first */

    /* The backend's memory. */
    float *obs, *next_obs; /* (batch, inputs) */
    float *noise;          /* (noise_count), NULL when the network has no noisy layer */
    float *tau;            /* (batch, max quantiles), NULL unless fractions are drawn */

    /* Host memory. */
    float *host_q;   /* (batch, target_quantiles * actions): a copy of a network's output */
    float *host_tau; /* (batch, quantiles): drawn or fixed fractions */
    float *y;        /* (batch, target_quantiles) */
    int32_t *best;   /* (batch): a* */
};

static struct dqn *of(struct rm_trainer *trainer)
{
    return (struct dqn *)trainer;
}

static void enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

static int make_buffers(struct dqn *t, struct rm_error *error)
{
    struct rm_backend *b = t->d.f.backend;
    const size_t most_quantiles = rm_dqn_most_quantiles(&t->d);
    const size_t rows = t->d.batch, noise = rm_net_noise_count(t->d.f.net);
    struct {
        float **at;
        size_t floats;
    } device[] = {
        {&t->obs, rows * t->d.inputs},
        {&t->next_obs, rows * t->d.inputs},
        {&t->noise, noise},
        {&t->tau, t->d.algo->drawn_fractions ? rows * most_quantiles : 0},
    };
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i].floats && !(*device[i].at = b->ops->alloc(b, device[i].floats)))
            return rm_fail(error, -ENOMEM, "backend %s: no memory for %zu floats", b->name,
                           device[i].floats);
    t->host_q = calloc(rows * t->d.target_quantiles * t->d.actions, sizeof *t->host_q);
    t->host_tau = calloc(rows * t->d.quantiles, sizeof *t->host_tau);
    t->y = calloc(rows * t->d.target_quantiles, sizeof *t->y);
    t->best = calloc(rows, sizeof *t->best);
    if (!t->host_q || !t->host_tau || !t->y || !t->best)
        return rm_fail(error, -ENOMEM, "no memory for a batch of %u", t->d.batch);
    return 0;
}

static void dqn_destroy(struct rm_trainer *trainer)
{
    struct dqn *t = of(trainer);
    float *device[] = {t->obs, t->next_obs, t->noise, t->tau};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            t->d.f.backend->ops->release(t->d.f.backend, device[i]);
    rm_followed_close(&t->d.f);
    free(t->host_q);
    free(t->host_tau);
    free(t->y);
    free(t->best);
    free(t);
}

/* Rows, noise and fractions of one pass. */
static struct rm_net_input input_of(struct dqn *t, enum rm_dqn_pass pass, uint64_t number,
                                    const float *x)
{
    struct rm_backend *b = t->d.f.backend;
    const uint64_t seed = t->d.f.experiment->seed, key = number * RM_DQN_COUNT + pass;
    const uint32_t quantiles = pass == RM_DQN_ONLINE ? t->d.quantiles : t->d.target_quantiles;
    struct rm_net_input in = {.x = x, .batch = t->d.batch};
    if (t->tau) {
        const size_t n = (size_t)t->d.batch * quantiles;
        b->ops->uniforms(b, seed, RM_STREAM_TAU, t->d.f.policy, key, n, t->tau);
        in.tau = t->tau;
        in.quantiles = quantiles;
    }
    /* Compat: the original's parallel form trains against a noiseless target network. */
    if (t->noise &&
        !(pass == RM_DQN_TARGET && t->d.f.experiment->algorithm.form == RM_FORM_SORREL_MP)) {
        b->ops->normals(b, seed, RM_STREAM_NOISE, t->d.f.policy, key,
                        rm_net_noise_count(t->d.f.net), t->noise);
        in.noise = t->noise;
    }
    if (pass == RM_DQN_ONLINE) { /* what is trained drops; what it is compared with is whole */
        in.dropout_seed = seed;
        in.dropout_update = number;
    }
    return in;
}

/* What a network says of s', into host_q. */
static void judge(struct dqn *t, enum rm_dqn_pass pass, uint64_t number)
{
    const bool target = pass == RM_DQN_TARGET;
    const struct rm_net_input in = input_of(t, pass, number, t->next_obs);
    const float *q = rm_net_infer(target ? t->d.f.target_space : t->d.f.online_space,
                                  target ? t->d.f.target : t->d.f.params, &in);
    t->d.f.backend->ops->download(t->d.f.backend, t->host_q, q,
                                  (size_t)t->d.batch * t->d.target_quantiles * t->d.actions);
}

/* y: the target network's value of the action that the online network (double Q) or the target
 * network itself prefers in s'. */
static void make_targets(struct dqn *t, const struct rm_batch *batch, uint64_t number)
{
    const struct rm_algo_layout layout = t->d.algo->layout(t->d.actions, t->d.target_quantiles);
    if (t->d.f.experiment->algorithm.double_q) {
        judge(t, RM_DQN_CHOOSE, number);
        rm_algo_greedy(t->host_q, &layout, t->d.batch, batch->next_mask, t->best);
    }
    judge(t, RM_DQN_TARGET, number);
    if (!t->d.f.experiment->algorithm.double_q)
        rm_algo_greedy(t->host_q, &layout, t->d.batch, batch->next_mask, t->best);
    rm_algo_targets(t->host_q, &layout, t->d.batch, t->best, batch->ret, batch->discount, t->y);
}

/* A loss of rows of the batch, for rm_net_learn(). */
struct row_loss {
    const struct dqn *trainer;
    const struct rm_batch *batch;
    struct rm_algo_layout layout;
};

enum { SUM_LOSS, SUM_Q }; /* what it adds up */

static void loss_rows(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                      double sums[RM_NET_SUMS])
{
    const struct row_loss *of = self;
    const struct dqn *t = of->trainer;
    const struct rm_batch *batch = of->batch;
    const struct rm_algo_loss_input loss = {
        .batch = rows,
        .of = t->d.batch,
        .q = out,
        .layout = of->layout,
        .action = batch->action + first,
        .target = t->y + (size_t)first * t->d.target_quantiles,
        .targets = t->d.target_quantiles,
        .tau = t->host_tau + (size_t)first * t->d.quantiles,
        .kappa = (float)t->d.f.experiment->algorithm.kappa,
        .mean_over_quantiles = t->d.f.experiment->algorithm.form != RM_FORM_PAPER,
        .weight = batch->weight ? batch->weight + first : NULL,
        .error = batch->error ? batch->error + first : NULL,
    };
    memset(d_out, 0, rows * of->layout.sample * sizeof *d_out);
    sums[SUM_LOSS] += t->d.algo->loss(&loss, d_out);
    sums[SUM_Q] += rows * rm_algo_mean_q(out, &of->layout, rows, loss.action);
}

static struct rm_trainer_result dqn_gradient(struct rm_trainer *trainer,
                                             const struct rm_batch *batch, uint64_t number,
                                             struct rm_phase_clock *clock)
{
    struct dqn *t = of(trainer);
    struct rm_backend *b = t->d.f.backend;
    const size_t inputs = (size_t)t->d.batch * t->d.inputs;
    struct row_loss loss = {t, batch, t->d.algo->layout(t->d.actions, t->d.quantiles)};
    const struct rm_net_loss rows = {loss_rows, &loss};
    struct rm_trainer_result result = {0};
    double sums[RM_NET_SUMS];

    enter(clock, RM_PHASE_UPLOAD);
    b->ops->upload(b, t->obs, batch->obs, inputs);
    b->ops->upload(b, t->next_obs, batch->next_obs, inputs);

    enter(clock, RM_PHASE_FORWARD);
    make_targets(t, batch, number);

    enter(clock, RM_PHASE_BACKWARD);
    const struct rm_net_input in = input_of(t, RM_DQN_ONLINE, number, t->obs);
    if (t->tau)
        b->ops->download(b, t->host_tau, t->tau, (size_t)t->d.batch * t->d.quantiles);
    rm_net_learn(t->d.f.online_space, t->d.f.params, &in, &rows, t->d.f.grads, sums);
    result.loss = sums[SUM_LOSS];
    result.q_mean = sums[SUM_Q] / t->d.batch;
    result.grad_norm = rm_optimizer_norm(t->d.f.optimizer, t->d.f.grads);
    result.skipped = !isfinite(result.loss) || !isfinite(result.grad_norm);
    if (rm_finite_due(&t->d.f.finite, number, result.skipped)) {
        rm_net_forward(t->d.f.online_space, t->d.f.params, &in); /* learning need not keep rows */
        rm_finite_look(&t->d.f.finite, number, t->d.f.online_space, t->d.f.params, &in,
                       t->d.f.grads);
    }
    return result;
}

static struct rm_trainer_result dqn_update(struct rm_trainer *trainer, const struct rm_batch *batch,
                                           uint64_t number, struct rm_phase_clock *clock)
{
    struct dqn *t = of(trainer);
    struct rm_trainer_result result = dqn_gradient(trainer, batch, number, clock);
    if (result.skipped)
        return result;
    enter(clock, RM_PHASE_OPTIMIZER);
    rm_followed_move(&t->d.f, &result, number);
    rm_normaliser_add(&t->d.f.normaliser, batch->obs, t->d.batch);
    rm_normaliser_write(&t->d.f.normaliser, t->d.f.params);
    rm_followed_follow(&t->d.f, number);
    return result;
}

static int dqn_create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                      struct rm_error *error)
{
    struct dqn *t = calloc(1, sizeof *t);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    t->d.f.trainer.ops = &rm_dqn_trainer;
    int rc = rm_dqn_open(&t->d, spec, error);
    if (!rc)
        rc = make_buffers(t, error);
    if (rc) {
        dqn_destroy(&t->d.f.trainer);
        return rc;
    }
    if (t->d.algo->fixed_fractions)
        rm_algo_midpoints(t->d.batch, t->d.quantiles, t->host_tau);
    rm_followed_init(&t->d.f);
    *trainer = &t->d.f.trainer;
    return 0;
}

const struct rm_trainer_ops rm_dqn_trainer = {
    .create = dqn_create,
    .destroy = dqn_destroy,
    .update = dqn_update,
    .gradient = dqn_gradient,
    RM_FOLLOWED_OPS,
    .update_flops = rm_dqn_update_flops,
};
