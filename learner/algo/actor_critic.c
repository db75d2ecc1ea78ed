#include "learner/algo/actor_critic_private.h"
#include "learner/algo/guard.h"
#include "learner/algo/parts_state.h"
#include "shm/base/rng.h"

#include <errno.h>
#include <stdlib.h>

/* --- making ---------------------------------------------------------------------------------- */

static int make_minibatches(struct rm_actor_critic *ac, struct rm_error *error)
{
    const struct rm_experiment *e = ac->experiment;
    const struct rm_rollout *r = ac->rollout;
    const bool recurrent = rm_net_is_recurrent(ac->net);
    const struct rm_minibatches_spec minibatches = {
        .rows = recurrent ? r->lanes : r->steps * r->lanes,
        .parts = e->algorithm.minibatches,
        .seed = e->seed,
        .policy = ac->policy,
        .shuffled = ac->epochs > 1 || e->algorithm.minibatches > 1,
    };
    if (recurrent) {
        ac->order = calloc(r->lanes, sizeof *ac->order);
        if (!ac->order)
            return rm_fail(error, -ENOMEM, "no memory for %u lanes", r->lanes);
        for (uint32_t i = 0; i < r->lanes; i++)
            ac->order[i] = i;
    }
    return rm_minibatches_create(&ac->minibatches, &minibatches, error);
}

static int make_network(struct rm_actor_critic *ac, const struct rm_net_shape *shape,
                        struct rm_error *error)
{
    const struct rm_rollout *r = ac->rollout;
    const size_t rows = (size_t)(r->steps + 1) * r->lanes;
    uint32_t forward = rows < FORWARD_ROWS ? (uint32_t)rows : FORWARD_ROWS;
    int rc = rm_net_compile(&ac->net, &ac->experiment->network, shape, error);
    if (!rc)
        rc = make_minibatches(ac, error);
    if (!rc && ac->order) {
        forward = rm_actor_critic_pass_rows(ac) * r->lanes;
        rc = rm_sequences_create(&ac->sequences, r, ac->backend, ac->net, error);
    }
    if (!rc)
        rc = rm_net_workspace_create(&ac->value_space, ac->net, ac->backend, forward, 0,
                                     ac->off_policy ? RM_NET_INFER : RM_NET_VALUE, error);
    if (!rc)
        rc = rm_net_workspace_create(&ac->learn_space, ac->net, ac->backend,
                                     rm_minibatches_most(&ac->minibatches) *
                                         (ac->order ? r->steps : 1),
                                     0, RM_NET_LEARN, error);
    if (!rc)
        rc = rm_optimizer_create(&ac->optimizer, ac->backend, ac->experiment, ac->net, error);
    if (!rc)
        rc = rm_normaliser_create(&ac->normaliser, ac->backend, r->inputs,
                                  rm_net_input_mean_at(ac->net), rm_net_input_scale_at(ac->net),
                                  error);
    if (!rc)
        rc = rm_reward_scale_create(&ac->reward_scale, ac->experiment, r->lanes, error);
    if (!rc)
        rm_value_head_create(&ac->value_head, ac->experiment, ac->backend,
                             rm_net_value_output(ac->net));
    return rc;
}

static int make_buffers(struct rm_actor_critic *ac, struct rm_error *error)
{
    const struct rm_rollout *r = ac->rollout;
    struct rm_backend *b = ac->backend;
    const size_t rows = (size_t)r->steps * r->lanes;
    ac->count = rm_net_param_count(ac->net);
    ac->params = b->ops->alloc(b, ac->count);
    ac->grads = b->ops->alloc(b, ac->count);
    ac->value = calloc(rows + r->lanes, sizeof *ac->value);
    ac->reward = calloc(rows + r->lanes, sizeof *ac->reward);
    ac->lane = calloc(r->lanes, 1);
    ac->advantage = calloc(rows, sizeof *ac->advantage);
    ac->target = calloc(rows, sizeof *ac->target);
    if (ac->off_policy) {
        ac->logp = calloc(rows, sizeof *ac->logp);
        ac->ratio = calloc(rows, sizeof *ac->ratio);
    }
    if (!ac->params || !ac->grads || !ac->value || !ac->reward || !ac->lane || !ac->advantage ||
        !ac->target || (ac->off_policy && (!ac->logp || !ac->ratio)))
        return rm_fail(error, -ENOMEM, "no memory for %zu parameters and %zu rows", ac->count,
                       rows);
    return 0;
}

int rm_actor_critic_create(struct rm_actor_critic **out, const struct rm_actor_critic_spec *spec,
                           struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    struct rm_actor_critic *ac = calloc(1, sizeof *ac);
    if (!ac)
        return rm_fail(error, -ENOMEM, "no memory for an actor-critic learner");
    ac->experiment = e;
    ac->rollout = spec->rollout;
    ac->backend = spec->backend;
    ac->policy = spec->policy;
    ac->finite = rm_finite_of(e, spec->name);
    ac->off_policy = e->algorithm.name != RM_ALGORITHM_PPO;
    ac->clip = e->algorithm.name == RM_ALGORITHM_VTRACE ? 0 : (float)e->algorithm.clip;
    ac->epochs = e->algorithm.name == RM_ALGORITHM_VTRACE ? 1 : e->algorithm.epochs;
    ac->settings = (struct rm_actor_critic_settings){
        e->optimizer.learning_rate, e->optimizer.grad_clip, e->algorithm.entropy_coefficient};
    int rc = make_network(ac, &spec->shape, error);
    if (!rc)
        rc = make_buffers(ac, error);
    float *initial = rc ? NULL : calloc(ac->count, sizeof *initial);
    if (!rc && !initial)
        rc = rm_fail(error, -ENOMEM, "no memory for %zu parameters", ac->count);
    if (rc) {
        rm_actor_critic_destroy(ac);
        return rc;
    }
    rm_net_init(ac->net, initial, rm_rng_at(e->seed, RM_STREAM_INIT, ac->policy, 0));
    rm_actor_critic_load(ac, initial);
    free(initial);
    *out = ac;
    return 0;
}

void rm_actor_critic_destroy(struct rm_actor_critic *ac)
{
    if (!ac)
        return;
    if (ac->params)
        ac->backend->ops->release(ac->backend, ac->params);
    if (ac->grads)
        ac->backend->ops->release(ac->backend, ac->grads);
    rm_optimizer_destroy(ac->optimizer);
    if (ac->value_space)
        rm_net_workspace_destroy(ac->value_space);
    if (ac->learn_space)
        rm_net_workspace_destroy(ac->learn_space);
    if (ac->net)
        rm_net_destroy(ac->net);
    rm_minibatches_destroy(&ac->minibatches);
    rm_normaliser_destroy(&ac->normaliser);
    rm_reward_scale_destroy(&ac->reward_scale);
    rm_sequences_destroy(&ac->sequences);
    free(ac->order);
    free(ac->value);
    free(ac->reward);
    free(ac->lane);
    free(ac->advantage);
    free(ac->target);
    free(ac->logp);
    free(ac->ratio);
    free(ac);
}

void rm_actor_critic_set(struct rm_actor_critic *ac,
                         const struct rm_actor_critic_settings *settings)
{
    ac->settings = *settings;
    rm_optimizer_set(ac->optimizer, settings->learning_rate, settings->grad_clip);
}

void rm_actor_critic_load(struct rm_actor_critic *ac, const float *params)
{
    ac->backend->ops->upload(ac->backend, ac->params, params, ac->count);
    rm_optimizer_reset(ac->optimizer);
    rm_net_prepare(ac->learn_space, ac->params);
}

void rm_actor_critic_resume(struct rm_actor_critic *ac, const struct rm_actor_critic_figures *left,
                            const float *params, uint64_t rows, uint64_t rollouts)
{
    rm_value_head_resume(&ac->value_head,
                         rm_value_head_left(left->value_mean, left->value_deviation, rollouts));
    rm_reward_scale_resume(&ac->reward_scale, left->reward_scale, (double)rows);
    rm_normaliser_resume(&ac->normaliser, params, (double)rows);
}

void rm_actor_critic_guarded(struct rm_actor_critic *ac, struct rm_guard *guard)
{
    rm_guard_floats(guard, ac->params, ac->count);
    rm_guard_bytes(guard, &ac->value_head.state, sizeof ac->value_head.state);
    rm_guard_optimizer(guard, ac->optimizer);
}

void rm_actor_critic_restored(struct rm_actor_critic *ac)
{
    rm_net_prepare(ac->learn_space, ac->params);
    ac->stopped = true; /* its targets are in units of a value head that is no more */
}

void rm_actor_critic_state(struct rm_actor_critic *ac, struct rm_state *s)
{
    rm_device_state(s, ac->backend, "params", ac->params, ac->count);
    rm_optimizer_state(ac->optimizer, ac->backend, "optimizer", s);
    rm_normaliser_state(&ac->normaliser, s);
    rm_reward_scale_state(&ac->reward_scale, s);
    rm_value_head_state(&ac->value_head, s);
    if (ac->sequences.own)
        rm_state_floats(s, "value_state", ac->sequences.value,
                        (size_t)ac->sequences.lanes * ac->sequences.own);
    if (rm_state_loading(s))
        rm_actor_critic_restored(ac);
}

const float *rm_actor_critic_params(const struct rm_actor_critic *ac)
{
    return ac->params;
}

const struct rm_net *rm_actor_critic_net(const struct rm_actor_critic *ac)
{
    return ac->net;
}
