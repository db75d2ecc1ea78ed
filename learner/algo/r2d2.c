/* r2d2: the trainer over stored sequences (Kapturowski 2019): double Q-learning with n-step returns
 * and rescaled values on a recurrent network. Online and target network each go through the burn-in
 * rows from the stored state, without gradients, then through the trace and its tail; the online
 * network's own values there choose the actions that the target network values. */
#include "learner/algo/finite.h"
#include "learner/algo/guard.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/parts_state.h"
#include "learner/algo/r2d2_loss.h"
#include "learner/algo/target.h"
#include "learner/algo/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum pass { PASS_TARGET, PASS_ONLINE, PASS_COUNT };

struct r2d2 {
    struct rm_trainer trainer; /* first */
    const struct rm_experiment *experiment;
    struct rm_backend *backend;
    uint32_t policy, batch, inputs, actions;
    uint32_t burn_in, rows; /* rows: of the trace and its tail */
    struct rm_trainer_settings settings;
    double progress;

    struct rm_net *net;
    struct rm_net_workspace *online_space, *target_space;
    struct rm_optimizer *optimizer;
    struct rm_normaliser normaliser;
    double rows_before; /* that predecessors' moments stand for */
    struct rm_finite finite;
    size_t count;

    /* The backend's memory. */
    float *params, *target, *grads;
    float *obs;   /* (burn_in + rows, batch, inputs) */
    float *state; /* (batch, state_count): stored, then after burn-in */
    float *noise; /* (noise_count), NULL without noisy layers */
    float *d_q;   /* (rows, batch, actions) */

    /* Host memory. */
    float *host_q, *host_target; /* (rows, batch, actions) */
    float *host_d_q;             /* the same */
    float *host_params;          /* (count) */
    float *host_obs;             /* (batch, inputs): rows that count, for the normaliser */
    float *y;                    /* (trace, batch) */
};

static struct r2d2 *of(struct rm_trainer *trainer)
{
    return (struct r2d2 *)trainer;
}

static const struct r2d2 *of_const(const struct rm_trainer *trainer)
{
    return (const struct r2d2 *)trainer;
}

static void enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_network(struct r2d2 *t, const struct rm_net_shape *shape, struct rm_error *error)
{
    const uint32_t most = (t->burn_in > t->rows ? t->burn_in : t->rows) * t->batch;
    int rc = rm_net_compile(&t->net, &t->experiment->network, shape, error);
    if (rc)
        return rc;
    rc =
        rm_net_workspace_create(&t->online_space, t->net, t->backend, most, 0, RM_NET_TRAIN, error);
    if (!rc)
        rc = rm_net_workspace_create(&t->target_space, t->net, t->backend, most, 0, RM_NET_INFER,
                                     error);
    if (!rc)
        rc = rm_optimizer_create(&t->optimizer, t->backend, t->experiment, t->net, error);
    if (!rc)
        rc = rm_normaliser_create(&t->normaliser, t->backend, t->inputs,
                                  rm_net_input_mean_at(t->net), rm_net_input_scale_at(t->net),
                                  error);
    t->count = rm_net_param_count(t->net);
    return rc;
}

static int make_buffers(struct r2d2 *t, struct rm_error *error)
{
    struct rm_backend *b = t->backend;
    const size_t outputs = (size_t)t->rows * t->batch * t->actions;
    struct {
        float **at;
        size_t floats;
    } device[] = {
        {&t->params, t->count},
        {&t->target, t->count},
        {&t->grads, t->count},
        {&t->obs, (size_t)(t->burn_in + t->rows) * t->batch * t->inputs},
        {&t->state, (size_t)t->batch * rm_net_state_count(t->net)},
        {&t->noise, rm_net_noise_count(t->net)},
        {&t->d_q, outputs},
    };
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i].floats && !(*device[i].at = b->ops->alloc(b, device[i].floats)))
            return rm_fail(error, -ENOMEM, "backend %s: no memory for %zu floats", b->name,
                           device[i].floats);
    t->host_q = calloc(outputs, sizeof *t->host_q);
    t->host_target = calloc(outputs, sizeof *t->host_target);
    t->host_d_q = calloc(outputs, sizeof *t->host_d_q);
    t->host_params = calloc(t->count, sizeof *t->host_params);
    t->host_obs = calloc((size_t)t->batch * t->inputs, sizeof *t->host_obs);
    t->y = calloc((size_t)t->rows * t->batch, sizeof *t->y);
    if (!t->host_q || !t->host_target || !t->host_d_q || !t->host_params || !t->host_obs || !t->y)
        return rm_fail(error, -ENOMEM, "no memory for %u sequences of %u rows", t->batch, t->rows);
    return 0;
}

static void r2d2_destroy(struct rm_trainer *trainer)
{
    struct r2d2 *t = of(trainer);
    float *device[] = {t->params, t->target, t->grads, t->obs, t->state, t->noise, t->d_q};
    float *host[] = {t->host_q, t->host_target, t->host_d_q, t->host_params, t->host_obs, t->y};
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
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
    free(t);
}

/* --- settings and parameters ----------------------------------------------------------------- */

static void r2d2_set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings)
{
    struct r2d2 *t = of(trainer);
    t->settings = *settings;
    rm_optimizer_set(t->optimizer, settings->learning_rate, settings->grad_clip);
}

static void r2d2_progress(struct rm_trainer *trainer, double progress)
{
    of(trainer)->progress = progress;
}

static void r2d2_restored(struct rm_trainer *trainer)
{
    struct r2d2 *t = of(trainer);
    rm_net_prepare(t->online_space, t->params);
    rm_net_prepare(t->target_space, t->target);
}

static void r2d2_load(struct rm_trainer *trainer, const float *params)
{
    struct r2d2 *t = of(trainer);
    t->backend->ops->upload(t->backend, t->params, params, t->count);
    t->backend->ops->upload(t->backend, t->target, params, t->count);
    rm_optimizer_reset(t->optimizer);
    rm_normaliser_resume(&t->normaliser, params, t->rows_before);
    r2d2_restored(trainer);
}

static void r2d2_guarded(struct rm_trainer *trainer, struct rm_guard *guard)
{
    struct r2d2 *t = of(trainer);
    rm_guard_floats(guard, t->params, t->count);
    rm_guard_floats(guard, t->target, t->count);
    rm_guard_optimizer(guard, t->optimizer);
}

static void r2d2_state(struct rm_trainer *trainer, struct rm_state *s)
{
    struct r2d2 *t = of(trainer);
    rm_device_state(s, t->backend, "params", t->params, t->count);
    rm_device_state(s, t->backend, "target", t->target, t->count);
    rm_optimizer_state(t->optimizer, t->backend, "optimizer", s);
    rm_normaliser_state(&t->normaliser, s);
}

static const float *r2d2_params(const struct rm_trainer *trainer)
{
    return of_const(trainer)->params;
}

static const float *r2d2_target(const struct rm_trainer *trainer)
{
    return of_const(trainer)->target;
}

static const float *r2d2_grads(const struct rm_trainer *trainer)
{
    return of_const(trainer)->grads;
}

static const struct rm_net *r2d2_net(const struct rm_trainer *trainer)
{
    return of_const(trainer)->net;
}

/* --- an update ------------------------------------------------------------------------------- */

/* One network over whole sequences, burn-in first. Leaves its values of trace and tail in `out`;
 * the input is that of the second part, valid for a backward pass until the next call. */
static struct rm_net_input unroll(struct r2d2 *t, enum pass pass, const struct rm_batch *batch,
                                  uint64_t number, float *out)
{
    struct rm_backend *b = t->backend;
    const bool target = pass == PASS_TARGET;
    struct rm_net_workspace *space = target ? t->target_space : t->online_space;
    const float *params = target ? t->target : t->params;
    const size_t states = (size_t)t->batch * rm_net_state_count(t->net);
    struct rm_net_input in = {
        .x = t->obs,
        .batch = t->burn_in * t->batch,
        .steps = t->burn_in,
        .state = t->state,
        .next_state = t->state,
        .restart = batch->restart,
    };
    if (t->noise) {
        b->ops->normals(b, t->experiment->seed, RM_STREAM_NOISE, t->policy,
                        number * PASS_COUNT + pass, rm_net_noise_count(t->net), t->noise);
        in.noise = t->noise;
    }
    if (!target) { /* what is trained drops; what it is compared with is whole */
        in.dropout_seed = t->experiment->seed;
        in.dropout_update = number;
    }
    if (states)
        b->ops->upload(b, t->state, batch->state, states);
    if (t->burn_in && states)
        rm_net_forward(space, params, &in);
    in.x = t->obs + (size_t)t->burn_in * t->batch * t->inputs;
    in.batch = t->rows * t->batch;
    in.steps = t->rows;
    in.next_state = NULL;
    in.restart = batch->restart + (size_t)t->burn_in * t->batch;
    const float *q = rm_net_forward(space, params, &in);
    b->ops->download(b, out, q, (size_t)in.batch * t->actions);
    return in;
}

static struct rm_trainer_result r2d2_gradient(struct rm_trainer *trainer,
                                              const struct rm_batch *batch, uint64_t number,
                                              struct rm_phase_clock *clock)
{
    struct r2d2 *t = of(trainer);
    struct rm_backend *b = t->backend;
    const struct rm_experiment *e = t->experiment;
    enter(clock, RM_PHASE_UPLOAD);
    b->ops->upload(b, t->obs, batch->obs, (size_t)(t->burn_in + t->rows) * t->batch * t->inputs);
    enter(clock, RM_PHASE_FORWARD);
    unroll(t, PASS_TARGET, batch, number, t->host_target);
    const struct rm_net_input in = unroll(t, PASS_ONLINE, batch, number, t->host_q);
    rm_r2d2_targets(batch, e->algorithm.double_q ? t->host_q : t->host_target, t->host_target,
                    e->algorithm.value_rescale, t->y);
    enter(clock, RM_PHASE_BACKWARD);
    const struct rm_r2d2_loss loss = {.q = t->host_q,
                                      .y = t->y,
                                      .kappa = (float)e->algorithm.kappa,
                                      .max_share = e->priority.max_share};
    const struct rm_r2d2_sums sums = rm_r2d2_loss(batch, &loss, t->host_d_q);
    b->ops->upload(b, t->d_q, t->host_d_q, (size_t)in.batch * t->actions);
    rm_net_backward(t->online_space, t->params, &in, t->d_q, t->grads);
    struct rm_trainer_result result = {
        .loss = sums.loss,
        .q_mean = e->algorithm.value_rescale ? rm_value_unscale(sums.q_mean) : sums.q_mean,
        .grad_norm = rm_optimizer_norm(t->optimizer, t->grads),
    };
    result.skipped = !isfinite(result.loss) || !isfinite(result.grad_norm);
    if (rm_finite_due(&t->finite, number, result.skipped))
        rm_finite_look(&t->finite, number, t->online_space, t->params, &in, t->grads);
    return result;
}

/* Rows of the trace at which a transition starts: padding was never seen. */
static void normalise(struct r2d2 *t, const struct rm_batch *batch)
{
    if (t->normaliser.mean_at == SIZE_MAX)
        return;
    for (uint32_t step = 0; step < batch->trace; step++) {
        size_t kept = 0;
        for (uint32_t i = 0; i < t->batch; i++) {
            const size_t at = (size_t)step * t->batch + i;
            const size_t from = at + (size_t)t->burn_in * t->batch;
            if (batch->valid[at])
                memcpy(t->host_obs + kept++ * t->inputs, batch->obs + from * t->inputs,
                       t->inputs * sizeof(float));
        }
        if (kept)
            rm_normaliser_add(&t->normaliser, t->host_obs, kept);
    }
    rm_normaliser_write(&t->normaliser, t->params);
}

static struct rm_trainer_result r2d2_update(struct rm_trainer *trainer,
                                            const struct rm_batch *batch, uint64_t number,
                                            struct rm_phase_clock *clock)
{
    struct r2d2 *t = of(trainer);
    struct rm_trainer_result result = r2d2_gradient(trainer, batch, number, clock);
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
    normalise(t, batch);
    rm_net_prepare(t->online_space, t->params);
    if (rm_target_follow(t->experiment, t->backend, t->settings.target_tau, number, t->params,
                         t->count, t->target, t->host_params))
        rm_net_prepare(t->target_space, t->target);
    return result;
}

/* Both networks over all rows, and a backward pass over trace and tail. */
static double r2d2_update_flops(const struct rm_trainer *trainer)
{
    const struct r2d2 *t = of_const(trainer);
    const double burn_in = rm_net_forward_flops(t->net, t->burn_in * t->batch, 0);
    const double rows = rm_net_forward_flops(t->net, t->rows * t->batch, 0);
    return 2 * burn_in + 2 * rows + rm_net_backward_flops(t->net, t->rows * t->batch, 0);
}

static int r2d2_create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                       struct rm_error *error)
{
    struct r2d2 *t = calloc(1, sizeof *t);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    const struct rm_experiment *e = spec->experiment;
    t->trainer.ops = &rm_r2d2_trainer;
    t->experiment = e;
    t->backend = spec->backend;
    t->policy = spec->policy;
    t->finite = rm_finite_of(e, spec->name);
    t->batch = e->sample.batch;
    t->rows_before = (double)spec->updates * e->sample.batch * e->sample.sequence;
    t->burn_in = e->sample.burn_in;
    t->rows = e->sample.sequence + e->sample.n_step;
    t->inputs = spec->shape.inputs;
    t->actions = spec->shape.actions;
    t->settings = (struct rm_trainer_settings){e->optimizer.learning_rate, e->optimizer.grad_clip,
                                               e->algorithm.target.tau};
    int rc = make_network(t, &spec->shape, error);
    if (!rc)
        rc = make_buffers(t, error);
    if (rc) {
        r2d2_destroy(&t->trainer);
        return rc;
    }
    rm_net_init(t->net, t->host_params, rm_rng_at(e->seed, RM_STREAM_INIT, t->policy, 0));
    r2d2_load(&t->trainer, t->host_params);
    *trainer = &t->trainer;
    return 0;
}

const struct rm_trainer_ops rm_r2d2_trainer = {
    .create = r2d2_create,
    .destroy = r2d2_destroy,
    .update = r2d2_update,
    .gradient = r2d2_gradient,
    .set = r2d2_set,
    .progress = r2d2_progress,
    .load = r2d2_load,
    .guarded = r2d2_guarded,
    .restored = r2d2_restored,
    .state = r2d2_state,
    .params = r2d2_params,
    .target = r2d2_target,
    .grads = r2d2_grads,
    .net = r2d2_net,
    .update_flops = r2d2_update_flops,
};
