#include "learner/algo/followed.h"

#include "learner/algo/guard.h"
#include "learner/algo/parts_state.h"
#include "learner/algo/target.h"
#include "learner/backend/device.h"

#include <errno.h>
#include <stdlib.h>

static struct rm_followed *of(struct rm_trainer *trainer)
{
    return (struct rm_followed *)trainer;
}

static const struct rm_followed *of_const(const struct rm_trainer *trainer)
{
    return (const struct rm_followed *)trainer;
}

int rm_followed_open(struct rm_followed *t, const struct rm_trainer_spec *spec, double rows,
                     struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    t->experiment = e;
    t->backend = spec->backend;
    t->policy = spec->policy;
    t->finite = rm_finite_of(e, spec->name);
    t->rows_before = (double)spec->updates * rows;
    t->settings = (struct rm_trainer_settings){e->optimizer.learning_rate, e->optimizer.grad_clip,
                                               e->algorithm.target.tau, 1};
    const int rc = rm_net_compile(&t->net, &e->network, &spec->shape, error);
    if (!rc)
        t->count = rm_net_param_count(t->net);
    return rc;
}

int rm_followed_make(struct rm_followed *t, uint32_t inputs, struct rm_error *error)
{
    struct rm_backend *b = t->backend;
    int rc = rm_optimizer_create(&t->optimizer, b, t->experiment, t->net, error);
    if (!rc)
        rc = rm_normaliser_create(&t->normaliser, b, inputs, rm_net_input_mean_at(t->net),
                                  rm_net_input_scale_at(t->net), error);
    if (rc)
        return rc;
    t->params = b->ops->alloc(b, t->count);
    t->target = b->ops->alloc(b, t->count);
    t->grads = b->ops->alloc(b, t->count);
    t->host_params = calloc(t->count, sizeof *t->host_params);
    if (!t->params || !t->target || !t->grads || !t->host_params)
        return rm_fail(error, -ENOMEM, "backend %s: no memory for %zu parameters", b->name,
                       t->count);
    return 0;
}

void rm_followed_init(struct rm_followed *t)
{
    rm_net_init(t->net, t->host_params,
                rm_rng_at(t->experiment->seed, RM_STREAM_INIT, t->policy, 0));
    rm_followed_load(&t->trainer, t->host_params);
}

void rm_followed_close(struct rm_followed *t)
{
    float *device[] = {t->params, t->target, t->grads};
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
    free(t->host_params);
}

void rm_followed_move(struct rm_followed *t, struct rm_trainer_result *result, uint64_t number)
{
    const struct rm_optimizer_input step = {
        .params = t->params,
        .grads = t->grads,
        .loss = result->loss,
        .update = number,
        .progress = t->progress,
    };
    result->learning_rate =
        rm_optimizer_apply(t->optimizer, &step, result->grad_norm).learning_rate;
}

void rm_followed_follow(struct rm_followed *t, uint64_t number)
{
    rm_net_prepare(t->online_space, t->params);
    if (rm_target_follow(t->experiment, t->backend, t->settings.target_tau, number, t->params,
                         t->count, t->target, t->host_params))
        rm_net_prepare(t->target_space, t->target);
}

void rm_followed_set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings)
{
    struct rm_followed *t = of(trainer);
    t->settings = *settings;
    rm_optimizer_set(t->optimizer, settings->learning_rate, settings->grad_clip);
}

void rm_followed_progress(struct rm_trainer *trainer, double progress)
{
    of(trainer)->progress = progress;
}

void rm_followed_load(struct rm_trainer *trainer, const float *params)
{
    struct rm_followed *t = of(trainer);
    struct rm_backend *b = t->backend;
    b->ops->upload(b, t->params, params, t->count);
    b->ops->upload(b, t->target, params, t->count);
    rm_optimizer_reset(t->optimizer);
    rm_normaliser_resume(&t->normaliser, params, t->rows_before);
    rm_net_prepare(t->online_space, t->params);
    rm_net_prepare(t->target_space, t->target);
}

void rm_followed_guarded(struct rm_trainer *trainer, struct rm_guard *guard)
{
    struct rm_followed *t = of(trainer);
    rm_guard_floats(guard, t->params, t->count);
    rm_guard_floats(guard, t->target, t->count);
    rm_guard_optimizer(guard, t->optimizer);
}

void rm_followed_restored(struct rm_trainer *trainer)
{
    struct rm_followed *t = of(trainer);
    rm_net_prepare(t->online_space, t->params);
    rm_net_prepare(t->target_space, t->target);
    if (t->backend->device) {
        struct rm_device_figures *f = rm_optimizer_figures(t->optimizer);
        t->backend->device->clear(t->backend, RM_STREAM_COMPUTE, &f->skipped_in_row,
                                  sizeof f->skipped_in_row);
    }
}

void rm_followed_state(struct rm_trainer *trainer, struct rm_state *s)
{
    struct rm_followed *t = of(trainer);
    rm_device_state(s, t->backend, "params", t->params, t->count);
    rm_device_state(s, t->backend, "target", t->target, t->count);
    rm_optimizer_state(t->optimizer, t->backend, "optimizer", s);
    rm_normaliser_state(&t->normaliser, s);
}

const float *rm_followed_params(const struct rm_trainer *trainer)
{
    return of_const(trainer)->params;
}

const float *rm_followed_target(const struct rm_trainer *trainer)
{
    return of_const(trainer)->target;
}

const float *rm_followed_grads(const struct rm_trainer *trainer)
{
    return of_const(trainer)->grads;
}

const struct rm_net *rm_followed_net(const struct rm_trainer *trainer)
{
    return of_const(trainer)->net;
}
