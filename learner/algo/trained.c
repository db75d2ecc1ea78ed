#include "learner/algo/trained.h"

#include <errno.h>

int rm_trained_create(struct rm_trained *t, struct rm_backend *b,
                      const struct rm_experiment *experiment, const struct rm_net_shape *shape,
                      uint32_t batch, struct rm_error *error)
{
    *t = (struct rm_trained){.backend = b};
    int rc = rm_net_compile(&t->net, &experiment->network, shape, error);
    if (!rc)
        rc = rm_net_workspace_create(&t->space, t->net, b, batch, 0, RM_NET_TRAIN, error);
    if (!rc)
        rc = rm_optimizer_create(&t->optimizer, b, experiment, t->net, error);
    if (rc)
        return rc;
    t->count = rm_net_param_count(t->net);
    t->params = b->ops->alloc(b, t->count);
    t->grads = b->ops->alloc(b, t->count);
    if (!t->params || !t->grads)
        return rm_fail(error, -ENOMEM, "backend %s: no memory for %zu parameters", b->name,
                       t->count);
    return 0;
}

void rm_trained_destroy(struct rm_trained *t)
{
    if (t->params)
        t->backend->ops->release(t->backend, t->params);
    if (t->grads)
        t->backend->ops->release(t->backend, t->grads);
    rm_optimizer_destroy(t->optimizer);
    if (t->space)
        rm_net_workspace_destroy(t->space);
    if (t->net)
        rm_net_destroy(t->net);
    *t = (struct rm_trained){0};
}

void rm_trained_load(struct rm_trained *t, const float *params)
{
    t->backend->ops->upload(t->backend, t->params, params, t->count);
    rm_optimizer_reset(t->optimizer);
    rm_net_prepare(t->space, t->params);
}

void rm_trained_guard(struct rm_trained *t, struct rm_guard *guard)
{
    rm_guard_floats(guard, t->params, t->count);
    rm_guard_optimizer(guard, t->optimizer);
}

void rm_trained_backward(struct rm_trained *t, const struct rm_net_input *input, const float *d_out)
{
    rm_net_backward(t->space, t->params, input, d_out, t->grads);
    t->norm = rm_optimizer_norm(t->optimizer, t->grads);
}

double rm_trained_move(struct rm_trained *t, double loss, uint64_t update, double progress)
{
    const struct rm_optimizer_input step = {
        .params = t->params,
        .grads = t->grads,
        .loss = loss,
        .update = update,
        .progress = progress,
    };
    return rm_optimizer_apply(t->optimizer, &step, t->norm).learning_rate;
}
