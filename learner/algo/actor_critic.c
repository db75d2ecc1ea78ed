/* What actor-critic learners have in common wherever they compute, and which of the two it is: the
 * CPU's (actor_critic_host.c) or a device's (actor_critic_device.c). */
#include "learner/algo/actor_critic_private.h"
#include "learner/algo/guard.h"
#include "learner/algo/parts_state.h"
#include "learner/backend/device.h"
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
    struct rm_backend *b = ac->backend;
    int rc = rm_net_compile(&ac->net, &ac->experiment->network, shape, error);
    if (!rc)
        rc = make_minibatches(ac, error);
    if (!rc)
        rc = rm_optimizer_create(&ac->optimizer, b, ac->experiment, ac->net, error);
    if (!rc)
        rc = rm_normaliser_create(&ac->normaliser, b, r->inputs, rm_net_input_mean_at(ac->net),
                                  rm_net_input_scale_at(ac->net), error);
    if (!rc)
        rc = rm_reward_scale_create(&ac->reward_scale, ac->experiment, r->lanes, error);
    if (rc)
        return rc;
    rm_value_head_create(&ac->value_head, ac->experiment, b, rm_net_value_output(ac->net));
    ac->count = rm_net_param_count(ac->net);
    ac->params = b->ops->alloc(b, ac->count);
    ac->grads = b->ops->alloc(b, ac->count);
    ac->lane = calloc(r->lanes, 1);
    if (!ac->params || !ac->grads || !ac->lane)
        return rm_fail(error, -ENOMEM, "no memory for %zu parameters", ac->count);
    return 0;
}

static int init(struct rm_actor_critic *ac, struct rm_error *error)
{
    float *initial = calloc(ac->count, sizeof *initial);
    if (!initial)
        return rm_fail(error, -ENOMEM, "no memory for %zu parameters", ac->count);
    rm_net_init(ac->net, initial, rm_rng_at(ac->experiment->seed, RM_STREAM_INIT, ac->policy, 0));
    ac->backend->ops->upload(ac->backend, ac->params, initial, ac->count);
    free(initial);
    return 0;
}

int rm_actor_critic_create_by(struct rm_actor_critic **out, const struct rm_actor_critic_ops *ops,
                              const struct rm_actor_critic_spec *spec, struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    struct rm_actor_critic *ac = calloc(1, ops->bytes);
    if (!ac)
        return rm_fail(error, -ENOMEM, "no memory for an actor-critic learner");
    ac->ops = ops;
    ac->experiment = e;
    ac->rollout = spec->rollout;
    ac->others = spec->others;
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
        rc = init(ac, error);
    if (!rc)
        rc = ops->make(ac, error);
    if (rc) {
        rm_actor_critic_destroy(ac);
        return rc;
    }
    *out = ac;
    return 0;
}

int rm_actor_critic_create(struct rm_actor_critic **out, const struct rm_actor_critic_spec *spec,
                           struct rm_error *error)
{
    return rm_actor_critic_create_by(
        out, spec->backend->device ? &rm_device_actor_critic : &rm_host_actor_critic, spec, error);
}

void rm_actor_critic_destroy(struct rm_actor_critic *ac)
{
    if (!ac)
        return;
    ac->ops->unmake(ac);
    if (ac->params)
        ac->backend->ops->release(ac->backend, ac->params);
    if (ac->grads)
        ac->backend->ops->release(ac->backend, ac->grads);
    rm_optimizer_destroy(ac->optimizer);
    if (ac->net)
        rm_net_destroy(ac->net);
    rm_minibatches_destroy(&ac->minibatches);
    rm_normaliser_destroy(&ac->normaliser);
    rm_reward_scale_destroy(&ac->reward_scale);
    free(ac->order);
    free(ac->lane);
    free(ac);
}

/* --- a rollout ------------------------------------------------------------------------------- */

void rm_actor_critic_begin(struct rm_actor_critic *ac, uint64_t number,
                           struct rm_phase_clock *clock)
{
    ac->ops->begin(ac, number, clock);
}

void rm_actor_critic_pass_by(struct rm_actor_critic *ac)
{
    ac->ops->pass_by(ac);
}

bool rm_actor_critic_due(const struct rm_actor_critic *ac)
{
    return !ac->stopped && ac->pass < ac->epochs;
}

struct rm_actor_critic_update rm_actor_critic_step(struct rm_actor_critic *ac, uint64_t update,
                                                   double progress, struct rm_phase_clock *clock)
{
    return ac->ops->step(ac, update, progress, clock);
}

bool rm_actor_critic_collect(struct rm_actor_critic *ac, struct rm_actor_critic_update *update,
                             struct rm_phase_clock *clock)
{
    return ac->ops->collect && ac->ops->collect(ac, update, clock);
}

/* Runs of samples, in their order, which does not depend on how worlds are split. */
void rm_actor_critic_end(struct rm_actor_critic *ac, struct rm_phase_clock *clock)
{
    const struct rm_rollout *r = ac->rollout;
    if (ac->normaliser.mean_at == SIZE_MAX)
        return;
    rm_actor_critic_enter(clock, RM_PHASE_SAMPLING);
    for (uint32_t from = 0, to; from < r->samples; from = to) {
        for (to = from + 1; to < r->samples && r->sample[to] == r->sample[to - 1] + 1;)
            to++;
        rm_normaliser_add(&ac->normaliser, r->x + (size_t)r->sample[from] * r->inputs, to - from);
    }
    rm_normaliser_write(&ac->normaliser, ac->params);
    ac->ops->normalised(ac);
}

struct rm_actor_critic_figures rm_actor_critic_figures(const struct rm_actor_critic *ac)
{
    struct rm_actor_critic_figures f = ac->figures;
    const double n = ac->samples > 0 ? ac->samples : 1;
    f.policy_loss /= n;
    f.value_loss /= n;
    f.entropy /= n;
    f.clip_fraction /= n;
    f.value_mean = ac->value_head.state.mean;
    f.value_deviation = ac->value_head.state.deviation;
    f.reward_scale = rm_reward_scale_divisor(&ac->reward_scale);
    return f;
}

/* Rewards came with the rows after the samples that they are for. In worlds of several phases the
 * last row's successor is not there yet. */
void rm_actor_critic_scale(struct rm_actor_critic *ac, float *reward)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t steps = r->successors ? r->steps : r->steps - 1;
    uint8_t *lane = ac->lane;
    if (!ac->reward_scale.on)
        return;
    for (uint32_t t = 0; t < steps; t++) {
        const size_t at = (size_t)t * r->lanes;
        for (uint32_t i = 0; i < r->lanes; i++)
            lane[i] = r->valid[at + i] > 0 ? RM_REWARD_GOES_ON : RM_REWARD_ABSENT;
        rm_reward_scale_add(&ac->reward_scale, reward + at + r->lanes, lane);
    }
    rm_reward_scale_apply(&ac->reward_scale, reward, (size_t)(r->steps + 1) * r->lanes);
}

/* --- from outside ---------------------------------------------------------------------------- */

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
    ac->ops->renewed(ac);
}

void rm_actor_critic_resume(struct rm_actor_critic *ac, const struct rm_actor_critic_figures *left,
                            const float *params, uint64_t rows, uint64_t rollouts)
{
    rm_value_head_resume(&ac->value_head,
                         rm_value_head_left(left->value_mean, left->value_deviation, rollouts));
    rm_reward_scale_resume(&ac->reward_scale, left->reward_scale, (double)rows);
    rm_normaliser_resume(&ac->normaliser, params, (double)rows);
    ac->ops->renewed(ac);
}

void rm_actor_critic_guarded(struct rm_actor_critic *ac, struct rm_guard *guard)
{
    rm_guard_floats(guard, ac->params, ac->count);
    rm_guard_bytes(guard, &ac->value_head.state, sizeof ac->value_head.state);
    rm_guard_optimizer(guard, ac->optimizer);
}

void rm_actor_critic_restored(struct rm_actor_critic *ac)
{
    ac->ops->renewed(ac);
    ac->stopped = true; /* its targets are in units of a value head that is no more */
}

void rm_actor_critic_state(struct rm_actor_critic *ac, struct rm_state *s)
{
    rm_device_state(s, ac->backend, "params", ac->params, ac->count);
    rm_optimizer_state(ac->optimizer, ac->backend, "optimizer", s);
    rm_normaliser_state(&ac->normaliser, s);
    rm_reward_scale_state(&ac->reward_scale, s);
    rm_value_head_state(&ac->value_head, s);
    ac->ops->value_state(ac, s);
    if (rm_state_loading(s))
        rm_actor_critic_restored(ac);
}

const uint64_t *rm_actor_critic_made(const struct rm_actor_critic *ac)
{
    return ac->backend->device ? &rm_optimizer_figures(ac->optimizer)->made : NULL;
}

const float *rm_actor_critic_params(const struct rm_actor_critic *ac)
{
    return ac->params;
}

const struct rm_net *rm_actor_critic_net(const struct rm_actor_critic *ac)
{
    return ac->net;
}
