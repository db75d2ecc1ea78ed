/* dqn: the trainer of the value-based algorithms of the table in algo.h. An update is three forward
 * passes, each with its own noise and fractions (online on s' to choose a*, target on s' for its
 * value, online on s), the loss, one backward pass, the gradient's norm, the optimizer and the
 * target network. */
#include "learner/algo/algo.h"
#include "learner/algo/finite.h"
#include "learner/algo/guard.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/parts_state.h"
#include "learner/algo/target.h"
#include "learner/algo/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The passes of an update, which key noise and fractions. */
enum pass { PASS_CHOOSE, PASS_TARGET, PASS_ONLINE, PASS_COUNT };

struct dqn {
    struct rm_trainer trainer; /* first */
    const struct rm_experiment *experiment;
    const struct rm_algo *algo;
    struct rm_backend *backend;
    uint32_t policy, batch, inputs, actions;
    uint32_t quantiles, target_quantiles; /* of the outputs; DQN: 1 */
    struct rm_trainer_settings settings;
    double progress; /* of the run */

    struct rm_net *net;
    struct rm_net_workspace *online_space, *target_space;
    struct rm_optimizer *optimizer;
    struct rm_normaliser normaliser;
    double rows_before; /* that predecessors' moments stand for */
    struct rm_finite finite;
    size_t count; /* parameters */

    /* The backend's memory. */
    float *params, *target, *grads;
    float *obs, *next_obs; /* (batch, inputs) */
    float *noise;          /* (noise_count), NULL when the network has no noisy layer */
    float *tau;            /* (batch, max quantiles), NULL unless fractions are drawn */

    /* Host memory. */
    float *host_q;      /* (batch, target_quantiles * actions): a copy of a network's output */
    float *host_tau;    /* (batch, quantiles): drawn or fixed fractions */
    float *host_params; /* (count): for whole copies */
    float *y;           /* (batch, target_quantiles) */
    int32_t *best;      /* (batch): a* */
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

static int make_network(struct dqn *t, const struct rm_net_shape *shape, struct rm_error *error)
{
    int rc = rm_net_compile(&t->net, &t->experiment->network, shape, error);
    if (rc)
        return rc;
    if (rm_net_uses_quantiles(t->net) != t->algo->drawn_fractions)
        return rm_fail(error, -EINVAL,
                       t->algo->drawn_fractions
                           ? "network.layers: algorithm.name %s needs a cosine_embedding layer"
                           : "network.layers: algorithm.name %s takes no cosine_embedding layer",
                       t->algo->name);
    const uint32_t tau = t->algo->drawn_fractions ? t->quantiles : 0;
    const uint32_t target_tau = t->algo->drawn_fractions ? t->target_quantiles : 0;
    rc = rm_net_workspace_create(&t->online_space, t->net, t->backend, t->batch,
                                 most(tau, target_tau), true, error);
    if (!rc)
        rc = rm_net_workspace_create(&t->target_space, t->net, t->backend, t->batch, target_tau,
                                     false, error);
    if (!rc)
        rc = rm_optimizer_create(&t->optimizer, t->backend, t->experiment, t->net, error);
    if (!rc)
        rc = rm_normaliser_create(&t->normaliser, t->backend, t->inputs,
                                  rm_net_input_mean_at(t->net), rm_net_input_scale_at(t->net),
                                  error);
    t->count = rm_net_param_count(t->net);
    return rc;
}

static int make_buffers(struct dqn *t, struct rm_error *error)
{
    struct rm_backend *b = t->backend;
    const size_t most_quantiles = most(t->quantiles, t->target_quantiles);
    const size_t rows = t->batch, noise = rm_net_noise_count(t->net);
    struct {
        float **at;
        size_t floats;
    } device[] = {
        {&t->params, t->count},
        {&t->target, t->count},
        {&t->grads, t->count},
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
    t->host_params = calloc(t->count, sizeof *t->host_params);
    t->y = calloc(rows * t->target_quantiles, sizeof *t->y);
    t->best = calloc(rows, sizeof *t->best);
    if (!t->host_q || !t->host_tau || !t->host_params || !t->y || !t->best)
        return rm_fail(error, -ENOMEM, "no memory for a batch of %u", t->batch);
    return 0;
}

static void dqn_destroy(struct rm_trainer *trainer)
{
    struct dqn *t = of(trainer);
    float *device[] = {t->params, t->target, t->grads, t->obs, t->next_obs, t->noise, t->tau};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            t->backend->ops->release(t->backend, device[i]);
    if (t->online_space)
        rm_net_workspace_destroy(t->online_space);
    if (t->target_space)
        rm_net_workspace_destroy(t->target_space);
    rm_optimizer_destroy(t->optimizer);
    rm_normaliser_destroy(&t->normaliser);
    if (t->net)
        rm_net_destroy(t->net);
    free(t->host_q);
    free(t->host_tau);
    free(t->host_params);
    free(t->y);
    free(t->best);
    free(t);
}

static void dqn_set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings)
{
    struct dqn *t = of(trainer);
    t->settings = *settings;
    rm_optimizer_set(t->optimizer, settings->learning_rate, settings->grad_clip);
}

static void dqn_progress(struct rm_trainer *trainer, double progress)
{
    of(trainer)->progress = progress;
}

static void dqn_load(struct rm_trainer *trainer, const float *params)
{
    struct dqn *t = of(trainer);
    struct rm_backend *b = t->backend;
    b->ops->upload(b, t->params, params, t->count);
    b->ops->upload(b, t->target, params, t->count);
    rm_optimizer_reset(t->optimizer);
    rm_normaliser_resume(&t->normaliser, params, t->rows_before);
    rm_net_prepare(t->online_space, t->params);
    rm_net_prepare(t->target_space, t->target);
}

static void dqn_guarded(struct rm_trainer *trainer, struct rm_guard *guard)
{
    struct dqn *t = of(trainer);
    rm_guard_floats(guard, t->params, t->count);
    rm_guard_floats(guard, t->target, t->count);
    rm_guard_optimizer(guard, t->optimizer);
}

static void dqn_restored(struct rm_trainer *trainer)
{
    struct dqn *t = of(trainer);
    rm_net_prepare(t->online_space, t->params);
    rm_net_prepare(t->target_space, t->target);
}

/* Rows, noise and fractions of one pass. */
static struct rm_net_input input_of(struct dqn *t, enum pass pass, uint64_t number, const float *x)
{
    struct rm_backend *b = t->backend;
    const uint64_t seed = t->experiment->seed, key = number * PASS_COUNT + pass;
    const uint32_t quantiles = pass == PASS_ONLINE ? t->quantiles : t->target_quantiles;
    struct rm_net_input in = {.x = x, .batch = t->batch};
    if (t->tau) {
        const size_t n = (size_t)t->batch * quantiles;
        b->ops->uniforms(b, seed, RM_STREAM_TAU, t->policy, key, n, t->tau);
        in.tau = t->tau;
        in.quantiles = quantiles;
    }
    /* Compat: the original's parallel form trains against a noiseless target network. */
    if (t->noise && !(pass == PASS_TARGET && t->experiment->algorithm.form == RM_FORM_SORREL_MP)) {
        b->ops->normals(b, seed, RM_STREAM_NOISE, t->policy, key, rm_net_noise_count(t->net),
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
    const float *q = rm_net_infer(target ? t->target_space : t->online_space,
                                  target ? t->target : t->params, &in);
    t->backend->ops->download(t->backend, t->host_q, q,
                              (size_t)t->batch * t->target_quantiles * t->actions);
}

/* y: the target network's value of the action that the online network (double Q) or the target
 * network itself prefers in s'. */
static void make_targets(struct dqn *t, const struct rm_batch *batch, uint64_t number)
{
    const struct rm_algo_layout layout = t->algo->layout(t->actions, t->target_quantiles);
    if (t->experiment->algorithm.double_q) {
        judge(t, PASS_CHOOSE, number);
        rm_algo_greedy(t->host_q, &layout, t->batch, batch->next_mask, t->best);
    }
    judge(t, PASS_TARGET, number);
    if (!t->experiment->algorithm.double_q)
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
        .kappa = (float)t->experiment->algorithm.kappa,
        .mean_over_quantiles = t->experiment->algorithm.form != RM_FORM_PAPER,
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
    struct rm_backend *b = t->backend;
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
    rm_net_learn(t->online_space, t->params, &in, &rows, t->grads, sums);
    result.loss = sums[SUM_LOSS];
    result.q_mean = sums[SUM_Q] / t->batch;
    result.grad_norm = rm_optimizer_norm(t->optimizer, t->grads);
    result.skipped = !isfinite(result.loss) || !isfinite(result.grad_norm);
    if (rm_finite_due(&t->finite, number, result.skipped)) {
        rm_net_forward(t->online_space, t->params, &in); /* learning need not keep rows */
        rm_finite_look(&t->finite, number, t->online_space, t->params, &in, t->grads);
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
    const struct rm_optimizer_input step = {
        .params = t->params,
        .grads = t->grads,
        .loss = result.loss,
        .update = number,
        .progress = t->progress,
    };
    result.learning_rate = rm_optimizer_apply(t->optimizer, &step, result.grad_norm).learning_rate;
    rm_normaliser_add(&t->normaliser, batch->obs, t->batch);
    rm_normaliser_write(&t->normaliser, t->params);
    rm_net_prepare(t->online_space, t->params);
    if (rm_target_follow(t->experiment, t->backend, t->settings.target_tau, number, t->params,
                         t->count, t->target, t->host_params))
        rm_net_prepare(t->target_space, t->target);
    return result;
}

static void dqn_state(struct rm_trainer *trainer, struct rm_state *s)
{
    struct dqn *t = of(trainer);
    rm_device_state(s, t->backend, "params", t->params, t->count);
    rm_device_state(s, t->backend, "target", t->target, t->count);
    rm_optimizer_state(t->optimizer, t->backend, "optimizer", s);
    rm_normaliser_state(&t->normaliser, s);
}

static const float *dqn_params(const struct rm_trainer *trainer)
{
    return of_const(trainer)->params;
}

static const float *dqn_target(const struct rm_trainer *trainer)
{
    return of_const(trainer)->target;
}

static const float *dqn_grads(const struct rm_trainer *trainer)
{
    return of_const(trainer)->grads;
}

static const struct rm_net *dqn_net(const struct rm_trainer *trainer)
{
    return of_const(trainer)->net;
}

static double dqn_update_flops(const struct rm_trainer *trainer)
{
    const struct dqn *t = of_const(trainer);
    const uint32_t tau = t->algo->drawn_fractions ? t->quantiles : 0;
    const uint32_t target_tau = t->algo->drawn_fractions ? t->target_quantiles : 0;
    const double online =
        rm_net_forward_flops(t->net, t->batch, tau) + rm_net_backward_flops(t->net, t->batch, tau);
    const double next = rm_net_forward_flops(t->net, t->batch, target_tau);
    return (t->experiment->algorithm.double_q ? 2 : 1) * next + online;
}

static int dqn_create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                      struct rm_error *error)
{
    struct dqn *t = calloc(1, sizeof *t);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    const struct rm_experiment *e = spec->experiment;
    t->trainer.ops = &rm_dqn_trainer;
    t->experiment = e;
    t->algo = rm_algo_of(e->algorithm.name);
    t->backend = spec->backend;
    t->policy = spec->policy;
    t->batch = e->sample.batch;
    t->inputs = spec->shape.inputs;
    t->actions = spec->shape.actions;
    t->finite = rm_finite_of(e, spec->name);
    t->rows_before = (double)spec->updates * e->sample.batch;
    t->quantiles = rm_algo_quantiles(e);
    t->target_quantiles = rm_algo_target_quantiles(e);
    t->settings = (struct rm_trainer_settings){e->optimizer.learning_rate, e->optimizer.grad_clip,
                                               e->algorithm.target.tau};
    int rc = make_network(t, &spec->shape, error);
    if (!rc)
        rc = make_buffers(t, error);
    if (rc) {
        dqn_destroy(&t->trainer);
        return rc;
    }
    if (t->algo->fixed_fractions)
        rm_algo_midpoints(t->batch, t->quantiles, t->host_tau);
    rm_net_init(t->net, t->host_params, rm_rng_at(e->seed, RM_STREAM_INIT, t->policy, 0));
    dqn_load(&t->trainer, t->host_params);
    *trainer = &t->trainer;
    return 0;
}

const struct rm_trainer_ops rm_dqn_trainer = {
    .create = dqn_create,
    .destroy = dqn_destroy,
    .update = dqn_update,
    .gradient = dqn_gradient,
    .set = dqn_set,
    .progress = dqn_progress,
    .load = dqn_load,
    .guarded = dqn_guarded,
    .restored = dqn_restored,
    .state = dqn_state,
    .params = dqn_params,
    .target = dqn_target,
    .grads = dqn_grads,
    .net = dqn_net,
    .update_flops = dqn_update_flops,
};
