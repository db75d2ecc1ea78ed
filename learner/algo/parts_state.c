#include "learner/algo/parts_state.h"

void rm_device_state(struct rm_state *s, struct rm_backend *backend, const char *name, float *data,
                     size_t count)
{
    float *part = rm_state_part(s, name, RM_STATE_FLOATS, count * sizeof *part);
    if (!part)
        return;
    if (rm_state_loading(s))
        backend->ops->upload(backend, data, part, count);
    else
        backend->ops->download(backend, part, data, count);
}

static void loss_scale_state(struct rm_optimizer *optimizer, struct rm_state *s)
{
    struct rm_loss_scale scale = rm_optimizer_loss_scale(optimizer);
    RM_STATE(s, "loss_scale", scale.scale);
    RM_STATE(s, "loss_scale_good", scale.good);
    if (rm_state_loading(s))
        rm_optimizer_set_loss_scale(optimizer, scale);
}

void rm_optimizer_state(struct rm_optimizer *optimizer, struct rm_backend *backend,
                        const char *name, struct rm_state *s)
{
    struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS];
    const size_t n = rm_optimizer_arenas(optimizer, arenas);
    uint64_t steps = rm_optimizer_steps(optimizer);
    rm_state_enter(s, name);
    for (size_t i = 0; i < n; i++)
        rm_device_state(s, backend, arenas[i].name, arenas[i].data, arenas[i].count);
    RM_STATE(s, "steps", steps);
    if (rm_optimizer_scales(optimizer))
        loss_scale_state(optimizer, s);
    rm_state_leave(s);
    if (rm_state_loading(s))
        rm_optimizer_resume(optimizer, steps);
}

void rm_normaliser_state(struct rm_normaliser *n, struct rm_state *s)
{
    if (n->mean_at == SIZE_MAX)
        return;
    rm_state_enter(s, "input");
    RM_STATE(s, "count", n->count);
    rm_state_bytes(s, "mean", n->mean, n->inputs * sizeof *n->mean);
    rm_state_bytes(s, "m2", n->m2, n->inputs * sizeof *n->m2);
    rm_state_leave(s);
}

void rm_reward_scale_state(struct rm_reward_scale *scale, struct rm_state *s)
{
    if (!scale->on)
        return;
    rm_state_enter(s, "reward_scale");
    rm_state_bytes(s, "returns", scale->returns, scale->lanes * sizeof *scale->returns);
    RM_STATE(s, "moments", scale->moments);
    rm_state_leave(s);
}

void rm_value_head_state(struct rm_value_head *head, struct rm_state *s)
{
    RM_STATE(s, "value_head", head->state);
}
