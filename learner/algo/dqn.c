/* dqn: the trainer of the value-based algorithms of the table in algo.h. An update is three forward
 * passes, each with its own noise and fractions (online on s' to choose a*, target on s' for its
 * value, online on s), the loss, one backward pass, the gradient's norm, the optimizer and the
 * target network. */
#include "learner/algo/algo.h"
#include "learner/algo/followed.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The passes of an update, which key noise and fractions. */
enum pass { PASS_CHOOSE, PASS_TARGET, PASS_ONLINE, PASS_COUNT };

struct dqn {
    struct rm_followed f; /* first */
    const struct rm_algo *algo;
    uint32_t batch, inputs, actions;
    uint32_t quantiles, target_quantiles; /* of the outputs; DQN: 1 */

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

static const struct dqn *of_const(const struct rm_trainer *trainer)
{
    return (const struct dqn *)trainer;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

static int make_network(struct dqn *t, struct rm_error *error)
{
    if (rm_net_uses_quantiles(t->f.net) != t->algo->drawn_fractions)
        return rm_fail(error, -EINVAL,
                       t->algo->drawn_fractions
                           ? "network.layers: algorithm.name %s needs a cosine_embedding layer"
                           : "network.layers: algorithm.name %s takes no cosine_embedding layer",
                       t->algo->name);
    const uint32_t tau = t->algo->drawn_fractions ? t->quantiles : 0;
    const uint32_t target_tau = t->algo->drawn_fractions ? t->target_quantiles : 0;
    int rc = rm_net_workspace_create(&t->f.online_space, t->f.net, t->f.backend, t->batch,
                                     most(tau, target_tau), true, error);
    if (!rc)
        rc = rm_net_workspace_create(&t->f.target_space, t->f.net, t->f.backend, t->batch,
                                     target_tau, false, error);
    return rc ? rc : rm_followed_make(&t->f, t->inputs, error);
}

static int make_buffers(struct dqn *t, struct rm_error *error)
{
    struct rm_backend *b = t->f.backend;
    const size_t most_quantiles = most(t->quantiles, t->target_quantiles);
    const size_t rows = t->batch, noise = rm_net_noise_count(t->f.net);
    struct {
        float **at;
        size_t floats;
    } device[] = {
        {&t->obs, rows * t->inputs},
        {&t->next_obs, rows * t->inputs},
        {&t->noise, noise},
        {&t->tau, t->algo->drawn_fractions ? rows * most_quantiles : 0},
    };
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i].floats && !(*device[i].at = b->ops->alloc(b, device[i].floats)))
            return rm_fail(error, -ENOMEM, "backend %s: no memory for %zu floats", b->name,
                           device[i].floats);
    t->host_q = calloc(rows * t->target_quantiles * t->actions, sizeof *t->host_q);
    t->host_tau = calloc(rows * t->quantiles, sizeof *t->host_tau);
    t->y = calloc(rows * t->target_quantiles, sizeof *t->y);
    t->best = calloc(rows, sizeof *t->best);
    if (!t->host_q || !t->host_tau || !t->y || !t->best)
        return rm_fail(error, -ENOMEM, "no memory for a batch of %u", t->batch);
    return 0;
}

static void dqn_destroy(struct rm_trainer *trainer)
{
    struct dqn *t = of(trainer);
    float *device[] = {t->obs, t->next_obs, t->noise, t->tau};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            t->f.backend->ops->release(t->f.backend, device[i]);
    rm_followed_close(&t->f);
    free(t->host_q);
    free(t->host_tau);
    free(t->y);
    free(t->best);
    free(t);
}

/* Rows, noise and fractions of one pass. */
static struct rm_net_input input_of(struct dqn *t, enum pass pass, uint64_t number, const float *x)
{
    struct rm_backend *b = t->f.backend;
    const uint64_t seed = t->f.experiment->seed, key = number * PASS_COUNT + pass;
    const uint32_t quantiles = pass == PASS_ONLINE ? t->quantiles : t->target_quantiles;
    struct rm_net_input in = {.x = x, .batch = t->batch};
    if (t->tau) {
        const size_t n = (size_t)t->batch * quantiles;
        b->ops->uniforms(b, seed, RM_STREAM_TAU, t->f.policy, key, n, t->tau);
        in.tau = t->tau;
        in.quantiles = quantiles;
    }
    /* Compat: the original's parallel form trains against a noiseless target network. */
    if (t->noise &&
        !(pass == PASS_TARGET && t->f.experiment->algorithm.form == RM_FORM_SORREL_MP)) {
        b->ops->normals(b, seed, RM_STREAM_NOISE, t->f.policy, key, rm_net_noise_count(t->f.net),
                        t->noise);
        in.noise = t->noise;
    }
    if (pass == PASS_ONLINE) { /* what is trained drops; what it is compared with is whole */
        in.dropout_seed = seed;
        in.dropout_update = number;
    }
    return in;
}

/* What a network says of s', into host_q. */
static void judge(struct dqn *t, enum pass pass, uint64_t number)
{
    const bool target = pass == PASS_TARGET;
    const struct rm_net_input in = input_of(t, pass, number, t->next_obs);
    const float *q = rm_net_infer(target ? t->f.target_space : t->f.online_space,
                                  target ? t->f.target : t->f.params, &in);
    t->f.backend->ops->download(t->f.backend, t->host_q, q,
                                (size_t)t->batch * t->target_quantiles * t->actions);
}

/* y: the target network's value of the action that the online network (double Q) or the target
 * network itself prefers in s'. */
static void make_targets(struct dqn *t, const struct rm_batch *batch, uint64_t number)
{
    const struct rm_algo_layout layout = t->algo->layout(t->actions, t->target_quantiles);
    if (t->f.experiment->algorithm.double_q) {
        judge(t, PASS_CHOOSE, number);
        rm_algo_greedy(t->host_q, &layout, t->batch, batch->next_mask, t->best);
    }
    judge(t, PASS_TARGET, number);
    if (!t->f.experiment->algorithm.double_q)
        rm_algo_greedy(t->host_q, &layout, t->batch, batch->next_mask, t->best);
    rm_algo_targets(t->host_q, &layout, t->batch, t->best, batch->ret, batch->discount, t->y);
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
        .of = t->batch,
        .q = out,
        .layout = of->layout,
        .action = batch->action + first,
        .target = t->y + (size_t)first * t->target_quantiles,
        .targets = t->target_quantiles,
        .tau = t->host_tau + (size_t)first * t->quantiles,
        .kappa = (float)t->f.experiment->algorithm.kappa,
        .mean_over_quantiles = t->f.experiment->algorithm.form != RM_FORM_PAPER,
        .weight = batch->weight ? batch->weight + first : NULL,
        .error = batch->error ? batch->error + first : NULL,
    };
    memset(d_out, 0, rows * of->layout.sample * sizeof *d_out);
    sums[SUM_LOSS] += t->algo->loss(&loss, d_out);
    sums[SUM_Q] += rows * rm_algo_mean_q(out, &of->layout, rows, loss.action);
}

static struct rm_trainer_result dqn_gradient(struct rm_trainer *trainer,
                                             const struct rm_batch *batch, uint64_t number,
                                             struct rm_phase_clock *clock)
{
    struct dqn *t = of(trainer);
    struct rm_backend *b = t->f.backend;
    const size_t inputs = (size_t)t->batch * t->inputs;
    struct row_loss loss = {t, batch, t->algo->layout(t->actions, t->quantiles)};
    const struct rm_net_loss rows = {loss_rows, &loss};
    struct rm_trainer_result result = {0};
    double sums[RM_NET_SUMS];

    enter(clock, RM_PHASE_UPLOAD);
    b->ops->upload(b, t->obs, batch->obs, inputs);
    b->ops->upload(b, t->next_obs, batch->next_obs, inputs);

    enter(clock, RM_PHASE_FORWARD);
    make_targets(t, batch, number);

    enter(clock, RM_PHASE_BACKWARD);
    const struct rm_net_input in = input_of(t, PASS_ONLINE, number, t->obs);
    if (t->tau)
        b->ops->download(b, t->host_tau, t->tau, (size_t)t->batch * t->quantiles);
    rm_net_learn(t->f.online_space, t->f.params, &in, &rows, t->f.grads, sums);
    result.loss = sums[SUM_LOSS];
    result.q_mean = sums[SUM_Q] / t->batch;
    result.grad_norm = rm_optimizer_norm(t->f.optimizer, t->f.grads);
    result.skipped = !isfinite(result.loss) || !isfinite(result.grad_norm);
    if (rm_finite_due(&t->f.finite, number, result.skipped)) {
        rm_net_forward(t->f.online_space, t->f.params, &in); /* learning need not keep rows */
        rm_finite_look(&t->f.finite, number, t->f.online_space, t->f.params, &in, t->f.grads);
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
    rm_followed_move(&t->f, &result, number);
    rm_normaliser_add(&t->f.normaliser, batch->obs, t->batch);
    rm_normaliser_write(&t->f.normaliser, t->f.params);
    rm_followed_follow(&t->f, number);
    return result;
}

static double dqn_update_flops(const struct rm_trainer *trainer)
{
    const struct dqn *t = of_const(trainer);
    const uint32_t tau = t->algo->drawn_fractions ? t->quantiles : 0;
    const uint32_t target_tau = t->algo->drawn_fractions ? t->target_quantiles : 0;
    const double online = rm_net_forward_flops(t->f.net, t->batch, tau) +
                          rm_net_backward_flops(t->f.net, t->batch, tau);
    const double next = rm_net_forward_flops(t->f.net, t->batch, target_tau);
    return (t->f.experiment->algorithm.double_q ? 2 : 1) * next + online;
}

static int dqn_create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                      struct rm_error *error)
{
    struct dqn *t = calloc(1, sizeof *t);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    const struct rm_experiment *e = spec->experiment;
    t->f.trainer.ops = &rm_dqn_trainer;
    t->algo = rm_algo_of(e->algorithm.name);
    t->batch = e->sample.batch;
    t->inputs = spec->shape.inputs;
    t->actions = spec->shape.actions;
    t->quantiles = rm_algo_quantiles(e);
    t->target_quantiles = rm_algo_target_quantiles(e);
    int rc = rm_followed_open(&t->f, spec, (double)e->sample.batch, error);
    if (!rc)
        rc = make_network(t, error);
    if (!rc)
        rc = make_buffers(t, error);
    if (rc) {
        dqn_destroy(&t->f.trainer);
        return rc;
    }
    if (t->algo->fixed_fractions)
        rm_algo_midpoints(t->batch, t->quantiles, t->host_tau);
    rm_followed_init(&t->f);
    *trainer = &t->f.trainer;
    return 0;
}

const struct rm_trainer_ops rm_dqn_trainer = {
    .create = dqn_create,
    .destroy = dqn_destroy,
    .update = dqn_update,
    .gradient = dqn_gradient,
    RM_FOLLOWED_OPS,
    .update_flops = dqn_update_flops,
};
