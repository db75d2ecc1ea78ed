/* What an actor-critic learner has its devices do with a minibatch. Nothing here waits, sends or
 * asks, but to look for numbers that are not finite. */
#include "learner/algo/actor_critic_device.h"
#include "shm/layout.h"

#include <math.h>

static struct rm_device_take take_of(const struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    const struct rm_experiment *e = d->ac.experiment;
    const bool recurrent = d->ac.order;
    return (struct rm_device_take){
        .order = d->there.order,
        .stride = d->entries,
        .share = d->apart ? 0 : d->number,
        .shares = d->apart ? 1 : d->of,
        .most = d->most,
        .whole = d->whole,
        .steps = recurrent ? r->steps : 1,
        .lanes = recurrent ? r->lanes : 1,
        .valid = RM_ROLLOUT_THERE(valid),
        .flags = RM_ROLLOUT_THERE(flags),
        .first_flag = RM_FLAG_FIRST,
        .advantage = d->advantage,
        .normalise = e->algorithm.normalize_advantages == RM_NORMALISE_MINIBATCH,
        .knobs_of = d->there.knobs,
        .knobs_stride = d->ac.minibatches.spec.parts,
        .index = d->index,
        .weight = d->weight,
        .entry = d->entry,
        .restart = d->restarts,
        .knobs = d->knobs,
        .passes = d->there.passes,
        .slots = rm_device_slots_of(d),
    };
}

void rm_device_put_take(struct rm_device_actor_critic *d)
{
    const struct rm_device_take take = take_of(d);
    rm_device_policies(d)->take(d->ac.backend, &take);
}

static struct rm_device_policy_loss loss_of(const struct rm_device_actor_critic *d,
                                            const float *out)
{
    const struct rm_rollout *r = d->ac.rollout;
    const struct rm_experiment *e = d->ac.experiment;
    return (struct rm_device_policy_loss){
        .loss = {.distribution = r->distribution,
                 .outputs = rm_net_outputs(d->ac.net),
                 .index = d->index,
                 .action = RM_ROLLOUT_THERE(action),
                 .mask = RM_ROLLOUT_THERE(mask),
                 .logp = d->ac.off_policy ? d->logp : RM_ROLLOUT_THERE(logp),
                 .advantage = d->advantage,
                 .target = d->target,
                 .value = d->value,
                 .valid = RM_ROLLOUT_THERE(valid),
                 .clip = d->ac.clip,
                 .value_clip = (float)e->algorithm.value_clip,
                 .value_coefficient = (float)e->algorithm.value_coefficient},
        .rows = d->batch,
        .weight = d->weight,
        .out = out,
        .d_out = d->d_out,
        .part = d->part,
        .own = d->sums,
        .knobs = d->knobs,
        .passes = d->there.passes,
        .figures = d->figures,
    };
}

/* Its rows are gathered by what rm_device_put_take() has picked. */
static struct rm_net_input input_of(const struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    const bool recurrent = d->ac.order;
    return (struct rm_net_input){.x = RM_ROLLOUT_THERE(x),
                                 .index = d->index,
                                 .batch = d->batch,
                                 .dropout_seed = d->ac.experiment->seed,
                                 .dropout_update = 1, /* draws() adds those before */
                                 .rows_before = d->number * d->batch,
                                 .steps = recurrent ? r->steps : 0,
                                 .state = d->state,
                                 .restart = d->restarts};
}

void rm_device_put_gradient(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    struct rm_backend *b = d->ac.backend;
    const struct rm_net_input in = input_of(d);
    const struct rm_device_take take = take_of(d);
    rm_device_policies(d)->taken(b, &take);
    if (d->ac.order)
        b->ops->gather(b, d->own_floats ? d->first : RM_ROLLOUT_THERE(state), d->entry, d->most,
                       d->floats, d->state);
    b->device->draws(b, &d->knobs->before, 1);
    rm_net_prepare(d->ac.learn_space, d->ac.params);
    const struct rm_device_policy_loss loss =
        loss_of(d, rm_net_forward(d->ac.learn_space, d->ac.params, &in));
    rm_device_policies(d)->loss(b, &loss);
    rm_net_backward(d->ac.learn_space, d->ac.params, &in, d->d_out, d->ac.grads);
    b->device->draws(b, NULL, 0);
}

void rm_device_sum_gradient(struct rm_device_actor_critic *d)
{
    struct rm_backend *b = d->ac.backend;
    b->device->collective->sum(b, d->ac.grads, d->ac.count, RM_DEVICE_FLOAT);
    b->device->collective->sum(b, d->sums, RM_SUM_COUNT, RM_DEVICE_DOUBLE);
}

void rm_device_put_move(struct rm_device_actor_critic *d)
{
    const struct rm_device_policy_loss loss = loss_of(d, NULL);
    const struct rm_optimizer_put put = {
        .params = d->ac.params, .grads = d->ac.grads, .knobs = d->knobs};
    rm_device_policies(d)->lost(d->ac.backend, &loss);
    rm_optimizer_put(d->ac.optimizer, &put);
    rm_device_policies(d)->passed(d->ac.backend, d->ac.experiment->algorithm.target_kl,
                                  d->there.passes, d->figures);
}

void rm_device_watch_minibatch(struct rm_device_actor_critic *d, uint64_t update)
{
    struct rm_backend *b = d->ac.backend;
    const struct rm_net_input in = input_of(d);
    rm_device_put_take(d);
    rm_device_put_gradient(d);
    b->device->copy_out(b, RM_STREAM_COMPUTE, &d->told->figures, d->figures,
                        sizeof d->told->figures);
    const double norm = rm_optimizer_norm(d->ac.optimizer, d->ac.grads); /* waits */
    const bool bad = !isfinite(d->told->figures.last_loss) || !isfinite(norm);
    if (!d->told->figures.stop && rm_finite_due(&d->ac.finite, update, bad))
        rm_finite_look(&d->ac.finite, update, d->ac.learn_space, d->ac.params, &in, d->ac.grads);
    rm_device_put_move(d);
}
