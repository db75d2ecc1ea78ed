/* sac: the trainer of discrete soft actor-critic (Christodoulou 2019). Three networks: the policy,
 * which alone is published, and two critics, each with a target network. All gradients of an update
 * are taken at the same parameters; then everything moves at once. */
#include "learner/algo/finite.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/parts_state.h"
#include "learner/algo/sac_loss.h"
#include "learner/algo/target.h"
#include "learner/algo/temperature.h"
#include "learner/algo/trained.h"
#include "learner/algo/trainer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CRITICS = 2 };

struct sac {
    struct rm_trainer trainer; /* first */
    const struct rm_experiment *experiment;
    struct rm_backend *backend;
    uint32_t policy, batch, inputs, actions;
    struct rm_trainer_settings settings;
    double progress;

    struct rm_trained actor, critic[CRITICS];
    struct rm_normaliser normaliser; /* of all networks: written into each */
    double rows_before;              /* that predecessors' moments stand for */
    struct rm_finite finite;
    struct rm_net_workspace *target_space[CRITICS];
    float *target[CRITICS];

    struct rm_temperature temperature;
    double gap; /* of the last gradient: target entropy - entropy */

    /* The backend's memory: (batch, inputs), (batch, actions). */
    float *obs, *next_obs, *d_out;

    /* Host memory. */
    float *p, *logp;    /* (batch, actions) */
    float *q[CRITICS];  /* (batch, actions) */
    float *host_d_out;  /* (batch, actions) */
    float *host_params; /* (most parameters) */
    float *y;           /* (batch) */
};

static struct sac *of(struct rm_trainer *trainer)
{
    return (struct sac *)trainer;
}

static const struct sac *of_const(const struct rm_trainer *trainer)
{
    return (const struct sac *)trainer;
}

static void enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_networks(struct sac *t, const struct rm_net_shape *shape, struct rm_error *error)
{
    struct rm_backend *b = t->backend;
    struct rm_net_shape values = *shape;
    values.head = RM_HEAD_VALUES;
    int rc = rm_trained_create(&t->actor, b, t->experiment, shape, t->batch, error);
    if (!rc)
        rc = rm_normaliser_create(&t->normaliser, b, t->inputs, rm_net_input_mean_at(t->actor.net),
                                  rm_net_input_scale_at(t->actor.net), error);
    for (uint32_t i = 0; !rc && i < CRITICS; i++) {
        struct rm_trained *c = &t->critic[i];
        rc = rm_trained_create(c, b, t->experiment, &values, t->batch, error);
        if (!rc)
            rc = rm_net_workspace_create(&t->target_space[i], c->net, b, t->batch, 0, false, error);
        if (!rc && !(t->target[i] = b->ops->alloc(b, c->count)))
            rc = rm_fail(error, -ENOMEM, "backend %s: no memory for %zu parameters", b->name,
                         c->count);
    }
    return rc;
}

static int make_buffers(struct sac *t, struct rm_error *error)
{
    struct rm_backend *b = t->backend;
    const size_t rows = t->batch, outputs = rows * t->actions;
    const size_t most = t->actor.count > t->critic[0].count ? t->actor.count : t->critic[0].count;
    t->obs = b->ops->alloc(b, rows * t->inputs);
    t->next_obs = b->ops->alloc(b, rows * t->inputs);
    t->d_out = b->ops->alloc(b, outputs);
    float **host[] = {&t->p, &t->logp, &t->q[0], &t->q[1], &t->host_d_out};
    bool all = t->obs && t->next_obs && t->d_out;
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        all &= (*host[i] = calloc(outputs, sizeof(float))) != NULL;
    t->host_params = calloc(most, sizeof(float));
    t->y = calloc(rows, sizeof(float));
    return all && t->host_params && t->y
               ? 0
               : rm_fail(error, -ENOMEM, "no memory for a batch of %u", t->batch);
}

static void sac_destroy(struct rm_trainer *trainer)
{
    struct sac *t = of(trainer);
    float *device[] = {t->obs, t->next_obs, t->d_out, t->target[0], t->target[1]};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            t->backend->ops->release(t->backend, device[i]);
    for (uint32_t i = 0; i < CRITICS; i++) {
        if (t->target_space[i])
            rm_net_workspace_destroy(t->target_space[i]);
        rm_trained_destroy(&t->critic[i]);
        free(t->q[i]);
    }
    rm_trained_destroy(&t->actor);
    rm_normaliser_destroy(&t->normaliser);
    free(t->p);
    free(t->logp);
    free(t->host_d_out);
    free(t->host_params);
    free(t->y);
    free(t);
}

/* --- settings and parameters ----------------------------------------------------------------- */

static void sac_set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings)
{
    struct sac *t = of(trainer);
    t->settings = *settings;
    rm_optimizer_set(t->actor.optimizer, settings->learning_rate, settings->grad_clip);
    for (uint32_t i = 0; i < CRITICS; i++)
        rm_optimizer_set(t->critic[i].optimizer, settings->learning_rate, settings->grad_clip);
}

static void sac_progress(struct rm_trainer *trainer, double progress)
{
    of(trainer)->progress = progress;
}

/* All networks see inputs alike, but a critic's arena may have other offsets than the policy's. */
static void write_moments(struct sac *t, const struct rm_net *net, float *params)
{
    struct rm_normaliser view = t->normaliser;
    view.mean_at = rm_net_input_mean_at(net);
    view.scale_at = rm_net_input_scale_at(net);
    rm_normaliser_write(&view, params);
}

/* The policy from `params`. Critics are not published: they begin anew, as does the temperature. */
static void sac_load(struct rm_trainer *trainer, const float *params)
{
    struct sac *t = of(trainer);
    struct rm_backend *b = t->backend;
    rm_trained_load(&t->actor, params);
    rm_normaliser_resume(&t->normaliser, params, t->rows_before);
    for (uint32_t i = 0; i < CRITICS; i++) {
        struct rm_trained *c = &t->critic[i];
        rm_net_init(c->net, t->host_params,
                    rm_rng_at(t->experiment->seed, RM_STREAM_INIT, t->policy, 1 + i));
        rm_trained_load(c, t->host_params);
        b->ops->upload(b, t->target[i], t->host_params, c->count);
        write_moments(t, c->net, c->params);
        write_moments(t, c->net, t->target[i]);
        rm_net_prepare(c->space, c->params);
        rm_net_prepare(t->target_space[i], t->target[i]);
    }
    t->temperature = rm_temperature_of(t->experiment->algorithm.temperature);
}

static void sac_guarded(struct rm_trainer *trainer, struct rm_guard *guard)
{
    struct sac *t = of(trainer);
    rm_trained_guard(&t->actor, guard);
    for (uint32_t i = 0; i < CRITICS; i++) {
        rm_trained_guard(&t->critic[i], guard);
        rm_guard_floats(guard, t->target[i], t->critic[i].count);
    }
    rm_guard_bytes(guard, &t->temperature, sizeof t->temperature);
}

static void sac_restored(struct rm_trainer *trainer)
{
    struct sac *t = of(trainer);
    rm_net_prepare(t->actor.space, t->actor.params);
    for (uint32_t i = 0; i < CRITICS; i++) {
        rm_net_prepare(t->critic[i].space, t->critic[i].params);
        rm_net_prepare(t->target_space[i], t->target[i]);
    }
}

static void state_of_part(struct sac *t, struct rm_trained *part, struct rm_state *s)
{
    rm_device_state(s, t->backend, "params", part->params, part->count);
    rm_optimizer_state(part->optimizer, t->backend, "optimizer", s);
}

static void sac_state(struct rm_trainer *trainer, struct rm_state *s)
{
    static const char *const names[CRITICS] = {"critic0", "critic1"};
    struct sac *t = of(trainer);
    state_of_part(t, &t->actor, s);
    for (uint32_t i = 0; i < CRITICS; i++) {
        rm_state_enter(s, names[i]);
        state_of_part(t, &t->critic[i], s);
        rm_device_state(s, t->backend, "target", t->target[i], t->critic[i].count);
        rm_state_leave(s);
    }
    rm_normaliser_state(&t->normaliser, s);
    RM_STATE(s, "temperature", t->temperature);
}

static const float *sac_params(const struct rm_trainer *trainer)
{
    return of_const(trainer)->actor.params;
}

static const float *sac_target(const struct rm_trainer *trainer)
{
    (void)trainer; /* the policy has none */
    return NULL;
}

static const float *sac_grads(const struct rm_trainer *trainer)
{
    return of_const(trainer)->actor.grads;
}

static const struct rm_net *sac_net(const struct rm_trainer *trainer)
{
    return of_const(trainer)->actor.net;
}

/* --- an update ------------------------------------------------------------------------------- */

/* Of the passes that are trained, which draw each for itself; 0 is off. */
static uint64_t dropout_of(uint64_t number, uint32_t part)
{
    return number * (1 + CRITICS) + part;
}

/* A forward pass; its outputs to host memory. */
static struct rm_net_input forward(struct sac *t, struct rm_net_workspace *space,
                                   const float *params, const float *x, uint64_t dropout,
                                   float *out)
{
    struct rm_backend *b = t->backend;
    const struct rm_net_input in = {
        .x = x, .batch = t->batch, .dropout_seed = t->experiment->seed, .dropout_update = dropout};
    const float *y = rm_net_forward(space, params, &in);
    b->ops->download(b, out, y, (size_t)t->batch * t->actions);
    return in;
}

static void backward(struct sac *t, struct rm_trained *part, const struct rm_net_input *in,
                     uint64_t number)
{
    struct rm_backend *b = t->backend;
    b->ops->upload(b, t->d_out, t->host_d_out, (size_t)t->batch * t->actions);
    rm_trained_backward(part, in, t->d_out);
    if (rm_finite_due(&t->finite, number, !isfinite(part->norm)))
        rm_finite_look(&t->finite, number, part->space, part->params, in, part->grads);
}

static struct rm_sac_view view_of(const struct sac *t, const struct rm_batch *batch,
                                  const uint8_t *mask)
{
    return (struct rm_sac_view){
        .batch = t->batch,
        .actions = t->actions,
        .p = t->p,
        .logp = t->logp,
        .q1 = t->q[0],
        .q2 = t->q[1],
        .weight = batch->weight,
        .alpha = rm_temperature_alpha(&t->temperature),
        .target_ratio = t->experiment->algorithm.target_entropy_ratio,
        .mask = mask,
    };
}

static void make_targets(struct sac *t, const struct rm_batch *batch)
{
    forward(t, t->actor.space, t->actor.params, t->next_obs, 0, t->logp);
    rm_sac_policy(t->logp, batch->next_mask, t->batch, t->actions, t->p, t->logp);
    for (uint32_t i = 0; i < CRITICS; i++)
        forward(t, t->target_space[i], t->target[i], t->next_obs, 0, t->q[i]);
    const struct rm_sac_view next = view_of(t, batch, batch->next_mask);
    rm_sac_targets(&next, batch->ret, batch->discount, t->y);
}

static double critic_gradients(struct sac *t, const struct rm_batch *batch, uint64_t number)
{
    const size_t outputs = (size_t)t->batch * t->actions;
    double loss = 0;
    if (batch->error)
        memset(batch->error, 0, t->batch * sizeof *batch->error);
    for (uint32_t i = 0; i < CRITICS; i++) {
        struct rm_trained *c = &t->critic[i];
        const struct rm_net_input in =
            forward(t, c->space, c->params, t->obs, dropout_of(number, 1 + i), t->q[i]);
        memset(t->host_d_out, 0, outputs * sizeof *t->host_d_out);
        loss += rm_sac_critic_loss(t->q[i], t->batch, t->actions, batch->action, t->y,
                                   batch->weight, t->host_d_out, batch->error);
        backward(t, c, &in, number);
    }
    return loss;
}

static struct rm_sac_policy_loss policy_gradient(struct sac *t, const struct rm_batch *batch,
                                                 uint64_t number)
{
    const struct rm_net_input in =
        forward(t, t->actor.space, t->actor.params, t->obs, dropout_of(number, 0), t->logp);
    rm_sac_policy(t->logp, batch->mask, t->batch, t->actions, t->p, t->logp);
    const struct rm_sac_view view = view_of(t, batch, batch->mask);
    const struct rm_sac_policy_loss loss = rm_sac_policy_loss(&view, t->host_d_out);
    backward(t, &t->actor, &in, number);
    return loss;
}

static struct rm_trainer_result sac_gradient(struct rm_trainer *trainer,
                                             const struct rm_batch *batch, uint64_t number,
                                             struct rm_phase_clock *clock)
{
    struct sac *t = of(trainer);
    struct rm_backend *b = t->backend;
    const size_t inputs = (size_t)t->batch * t->inputs;
    enter(clock, RM_PHASE_UPLOAD);
    b->ops->upload(b, t->obs, batch->obs, inputs);
    b->ops->upload(b, t->next_obs, batch->next_obs, inputs);
    enter(clock, RM_PHASE_FORWARD);
    make_targets(t, batch);
    enter(clock, RM_PHASE_BACKWARD);
    const double critics = critic_gradients(t, batch, number);
    const struct rm_sac_policy_loss policy = policy_gradient(t, batch, number);
    t->gap = policy.gap;
    struct rm_trainer_result result = {
        .loss = critics + policy.loss,
        .q_mean = policy.value,
        .entropy = policy.entropy,
        .temperature = rm_temperature_alpha(&t->temperature),
        .grad_norm = sqrt(t->actor.norm * t->actor.norm + t->critic[0].norm * t->critic[0].norm +
                          t->critic[1].norm * t->critic[1].norm),
    };
    result.skipped = !isfinite(result.loss) || !isfinite(result.grad_norm);
    return result;
}

static double move_part(struct sac *t, struct rm_trained *part, double loss, uint64_t number)
{
    const double rate = rm_trained_move(part, loss, number, t->progress);
    write_moments(t, part->net, part->params);
    rm_net_prepare(part->space, part->params);
    return rate;
}

static struct rm_trainer_result sac_update(struct rm_trainer *trainer, const struct rm_batch *batch,
                                           uint64_t number, struct rm_phase_clock *clock)
{
    struct sac *t = of(trainer);
    struct rm_trainer_result result = sac_gradient(trainer, batch, number, clock);
    if (result.skipped)
        return result;
    enter(clock, RM_PHASE_OPTIMIZER);
    rm_normaliser_add(&t->normaliser, batch->obs, t->batch);
    result.learning_rate = move_part(t, &t->actor, result.loss, number);
    for (uint32_t i = 0; i < CRITICS; i++) {
        struct rm_trained *c = &t->critic[i];
        move_part(t, c, result.loss, number);
        rm_target_move(t->backend, rm_target_part(t->experiment, t->settings.target_tau, number),
                       c->params, c->count, t->target[i]);
        rm_net_prepare(t->target_space[i], t->target[i]);
    }
    rm_temperature_move(&t->temperature, t->experiment, result.learning_rate, t->gap);
    return result;
}

/* Forward of the policy twice and of each critic and its target once; backward of the three. */
static double sac_update_flops(const struct rm_trainer *trainer)
{
    const struct sac *t = of_const(trainer);
    const struct rm_net *actor = t->actor.net, *critic = t->critic[0].net;
    return 2 * rm_net_forward_flops(actor, t->batch, 0) +
           rm_net_backward_flops(actor, t->batch, 0) +
           CRITICS * (2 * rm_net_forward_flops(critic, t->batch, 0) +
                      rm_net_backward_flops(critic, t->batch, 0));
}

static const struct rm_trainer_ops sac_ops = {
    .destroy = sac_destroy,
    .update = sac_update,
    .gradient = sac_gradient,
    .set = sac_set,
    .progress = sac_progress,
    .load = sac_load,
    .guarded = sac_guarded,
    .restored = sac_restored,
    .state = sac_state,
    .params = sac_params,
    .target = sac_target,
    .grads = sac_grads,
    .net = sac_net,
    .update_flops = sac_update_flops,
};

int rm_sac_create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                  struct rm_error *error)
{
    struct sac *t = calloc(1, sizeof *t);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    const struct rm_experiment *e = spec->experiment;
    t->trainer.ops = &sac_ops;
    t->experiment = e;
    t->backend = spec->backend;
    t->policy = spec->policy;
    t->finite = rm_finite_of(e, spec->name);
    t->rows_before = (double)spec->updates * e->sample.batch;
    t->batch = e->sample.batch;
    t->inputs = spec->shape.inputs;
    t->actions = spec->shape.actions;
    t->settings = (struct rm_trainer_settings){e->optimizer.learning_rate, e->optimizer.grad_clip,
                                               e->algorithm.target.tau, 1};
    int rc = make_networks(t, &spec->shape, error);
    if (!rc)
        rc = make_buffers(t, error);
    if (rc) {
        sac_destroy(&t->trainer);
        return rc;
    }
    rm_net_init(t->actor.net, t->host_params, rm_rng_at(e->seed, RM_STREAM_INIT, t->policy, 0));
    sac_load(&t->trainer, t->host_params); /* which takes the policy first */
    *trainer = &t->trainer;
    return 0;
}
