/* What an actor-critic learner has its devices do: each of its graphs in pieces, between which
 * several devices add up what they have. Nothing here waits, sends or asks, but to look for numbers
 * that are not finite. */
#include "learner/algo/actor_critic_device.h"
#include "learner/algo/gae.h"
#include "learner/algo/vtrace.h"
#include "shm/layout.h"

#include <math.h>

static const struct rm_device_policy_ops *policies(const struct rm_device_actor_critic *d)
{
    return d->ac.backend->device->policies;
}

#define THERE(member) rm_rollout_there(r, r->member)

/* --- values ---------------------------------------------------------------------------------- */

/* Rows [at, at + rows) of the rollout, from what the network says of them. */
static void keep_values(struct rm_device_actor_critic *d, uint32_t at, uint32_t rows,
                        const float *out, uint32_t outputs)
{
    const struct rm_rollout *r = d->ac.rollout;
    const bool answered = d->logp && at < r->steps * r->lanes;
    const uint8_t *mask = THERE(mask);
    const int32_t *action = THERE(action);
    const struct rm_device_values values = {
        .out = out,
        .rows = rows,
        .outputs = outputs,
        .head = d->head,
        .value = d->value + at,
        .answered = answered ? rows : 0,
        .distribution = r->distribution,
        .mask = mask ? mask + (size_t)at * r->mask_bytes : NULL,
        .action = action + (size_t)at * r->words,
        .logp = answered ? d->logp + at : NULL,
    };
    policies(d)->values(d->ac.backend, &values);
}

static void evaluate(struct rm_device_actor_critic *d, uint32_t at, uint32_t rows,
                     struct rm_net_input *in)
{
    const struct rm_rollout *r = d->ac.rollout;
    const float *x = THERE(x);
    in->x = x + (size_t)at * r->inputs;
    in->batch = rows;
    const float *out = rm_net_forward(d->ac.value_space, d->ac.params, in);
    keep_values(d, at, rows, out, rm_net_workspace_outputs(d->ac.value_space));
}

/* Whether each device makes its share of the values, and they are added up. */
static bool shares_values(const struct rm_device_actor_critic *d)
{
    return d->of > 1 && !d->apart && !d->ac.order && !d->ac.rollout->value;
}

/* Rows [from, to), or this device's share of them, as many at a time as there are buffers for. */
static void evaluate_rows(struct rm_device_actor_critic *d, uint32_t from, uint32_t to)
{
    const uint64_t rows = to - from;
    if (shares_values(d)) {
        to = from + (uint32_t)(rows * (d->number + 1) / d->of);
        from += (uint32_t)(rows * d->number / d->of);
    }
    for (uint32_t at = from, n; at < to; at += n) {
        struct rm_net_input in = {0};
        n = to - at < RM_DEVICE_FORWARD_ROWS ? to - at : RM_DEVICE_FORWARD_ROWS;
        evaluate(d, at, n, &in);
    }
}

static void clear_values(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    struct rm_backend *b = d->ac.backend;
    const size_t rows = (size_t)r->steps * r->lanes;
    b->device->clear(b, RM_STREAM_COMPUTE, d->value, (rows + r->lanes) * sizeof *d->value);
    if (d->logp)
        b->device->clear(b, RM_STREAM_COMPUTE, d->logp, rows * sizeof *d->logp);
}

/* A pass has answers to all of its rows or none. */
static void evaluate_all(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    const uint32_t answered = r->steps * r->lanes;
    if (shares_values(d))
        clear_values(d);
    evaluate_rows(d, 0, answered);
    evaluate_rows(d, answered, answered + r->lanes);
}

/* The states before the rollout: the policy's layers as the actor kept them, the value's own as the
 * rollout before left them. */
static const float *first_states(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    struct rm_backend *b = d->ac.backend;
    const uint32_t acts = d->floats - d->own_floats;
    if (!d->own_floats)
        return THERE(state);
    if (acts)
        b->ops->join(b, THERE(state), d->value_now, r->lanes, acts, d->own_floats, d->first);
    else
        b->device->copy(b, RM_STREAM_COMPUTE, d->first, d->value_now,
                        (size_t)r->lanes * d->own_floats * sizeof *d->first);
    return d->first;
}

static void evaluate_sequences(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    struct rm_backend *b = d->ac.backend;
    const uint32_t rows = r->steps * r->lanes;
    struct rm_net_input in = {
        .steps = r->steps, .state = first_states(d), .next_state = d->now, .restart = d->restart};
    evaluate(d, 0, rows, &in);
    if (d->own_floats && d->floats > d->own_floats)
        b->ops->split(b, d->now, r->lanes, d->floats - d->own_floats, d->own_floats, NULL,
                      d->value_now);
    else if (d->own_floats)
        b->device->copy(b, RM_STREAM_COMPUTE, d->value_now, d->now,
                        (size_t)r->lanes * d->own_floats * sizeof *d->now);
    in = (struct rm_net_input){
        .steps = 1, .state = d->now, .next_state = d->now, .restart = d->restart + rows};
    evaluate(d, rows, r->lanes, &in);
}

/* Actors kept the values of all rows but the successors'. */
static void take_values(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    const uint32_t rows = r->steps * r->lanes;
    keep_values(d, 0, rows, THERE(value), 1);
    if (!r->successors)
        return;
    if (!d->ac.order) {
        evaluate_rows(d, rows, rows + r->lanes);
        return;
    }
    struct rm_net_input in = {
        .steps = 1, .state = THERE(after), .next_state = d->now, .restart = d->restart + rows};
    evaluate(d, rows, r->lanes, &in);
}

static void put_values(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    rm_net_prepare(d->ac.value_space, d->ac.params);
    if (d->ac.order)
        policies(d)->restarts(d->ac.backend, THERE(flags), RM_FLAG_FIRST,
                              (size_t)(r->steps + 1) * r->lanes, d->restart);
    if (r->value)
        take_values(d);
    else if (d->ac.order)
        evaluate_sequences(d);
    else
        evaluate_all(d);
}

static void sum_values(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    struct rm_backend *b = d->ac.backend;
    const size_t rows = (size_t)r->steps * r->lanes;
    if (!shares_values(d))
        return;
    b->device->collective->sum(b, d->value, rows + r->lanes, RM_DEVICE_FLOAT);
    if (d->logp)
        b->device->collective->sum(b, d->logp, rows, RM_DEVICE_FLOAT);
}

/* --- returns --------------------------------------------------------------------------------- */

static void put_scan(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    const struct rm_experiment *e = d->ac.experiment;
    const struct rm_rollout_rows rows = {
        .steps = r->steps,
        .lanes = r->lanes,
        .reward = THERE(reward),
        .value = d->value,
        .discount = THERE(discount),
        .valid = THERE(valid),
    };
    const float lambda = (float)e->algorithm.gae_lambda;
    if (!d->ac.off_policy) {
        policies(d)->gae(d->ac.backend, &rows, lambda, d->advantage, d->target);
        return;
    }
    const struct rm_vtrace vtrace = {
        .lambda = lambda,
        .rho_max = (float)e->algorithm.rho_max,
        .c_max = (float)e->algorithm.c_max,
    };
    policies(d)->vtrace(d->ac.backend, &rows, &vtrace, d->logp, THERE(logp), d->advantage,
                        d->target);
}

static struct rm_device_slots slots_of(const struct rm_device_actor_critic *d)
{
    return (struct rm_device_slots){d->slots, d->number, d->of};
}

static void sum_slots(struct rm_device_actor_critic *d)
{
    struct rm_backend *b = d->ac.backend;
    if (d->slots)
        b->device->collective->sum(b, d->slots, (size_t)d->of * RM_DEVICE_SLOT, RM_DEVICE_DOUBLE);
}

static struct rm_device_returns returns_of(const struct rm_device_actor_critic *d)
{
    static const enum rm_device_follow follow[] = {
        [RM_POPART_MOMENTS] = RM_FOLLOW_MOMENTS,
        [RM_POPART_AVERAGED] = RM_FOLLOW_AVERAGED,
    };
    const struct rm_rollout *r = d->ac.rollout;
    const struct rm_experiment *e = d->ac.experiment;
    const struct rm_net_value_output output = rm_net_value_output(d->ac.net);
    return (struct rm_device_returns){
        .rows = r->steps * r->lanes,
        .sample = THERE(sample),
        .advantage = d->advantage,
        .value = d->value,
        .target = d->target,
        .follow = e->algorithm.value_head == RM_VALUE_POPART ? follow[e->algorithm.popart_deviation]
                                                             : RM_FOLLOW_NOTHING,
        .beta_least = e->algorithm.popart_beta,
        .weight = d->ac.params + output.weight,
        .bias = d->ac.params + output.bias,
        .weights = output.weights,
        .normalise = e->algorithm.normalize_advantages == RM_NORMALISE_BATCH,
        .head = d->head,
        .passes = d->there.passes,
        .figures = d->figures,
        .slots = slots_of(d),
    };
}

static void put_returns(struct rm_device_actor_critic *d)
{
    const struct rm_device_returns returns = returns_of(d);
    put_scan(d);
    policies(d)->returns(d->ac.backend, &returns);
}

static void put_returned(struct rm_device_actor_critic *d)
{
    const struct rm_device_returns returns = returns_of(d);
    policies(d)->returned(d->ac.backend, &returns);
}

/* --- a minibatch ----------------------------------------------------------------------------- */

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
        .valid = THERE(valid),
        .flags = THERE(flags),
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
        .slots = slots_of(d),
    };
}

static void put_take(struct rm_device_actor_critic *d)
{
    const struct rm_device_take take = take_of(d);
    policies(d)->take(d->ac.backend, &take);
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
                 .action = THERE(action),
                 .mask = THERE(mask),
                 .logp = d->ac.off_policy ? d->logp : THERE(logp),
                 .advantage = d->advantage,
                 .target = d->target,
                 .value = d->value,
                 .valid = THERE(valid),
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

/* Its rows are gathered by what put_take() has picked. */
static struct rm_net_input input_of(const struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    const bool recurrent = d->ac.order;
    return (struct rm_net_input){.x = THERE(x),
                                 .index = d->index,
                                 .batch = d->batch,
                                 .dropout_seed = d->ac.experiment->seed,
                                 .dropout_update = 1, /* draws() adds those before */
                                 .rows_before = d->number * d->batch,
                                 .steps = recurrent ? r->steps : 0,
                                 .state = d->state,
                                 .restart = d->restarts};
}

static void put_gradient(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    struct rm_backend *b = d->ac.backend;
    const struct rm_net_input in = input_of(d);
    const struct rm_device_take take = take_of(d);
    policies(d)->taken(b, &take);
    if (d->ac.order)
        b->ops->gather(b, d->own_floats ? d->first : THERE(state), d->entry, d->most, d->floats,
                       d->state);
    b->device->draws(b, &d->knobs->before, 1);
    rm_net_prepare(d->ac.learn_space, d->ac.params);
    const struct rm_device_policy_loss loss =
        loss_of(d, rm_net_forward(d->ac.learn_space, d->ac.params, &in));
    policies(d)->loss(b, &loss);
    rm_net_backward(d->ac.learn_space, d->ac.params, &in, d->d_out, d->ac.grads);
    b->device->draws(b, NULL, 0);
}

static void sum_gradient(struct rm_device_actor_critic *d)
{
    struct rm_backend *b = d->ac.backend;
    b->device->collective->sum(b, d->ac.grads, d->ac.count, RM_DEVICE_FLOAT);
    b->device->collective->sum(b, d->sums, RM_SUM_COUNT, RM_DEVICE_DOUBLE);
}

static void put_move(struct rm_device_actor_critic *d)
{
    const struct rm_device_policy_loss loss = loss_of(d, NULL);
    const struct rm_optimizer_put put = {
        .params = d->ac.params, .grads = d->ac.grads, .knobs = d->knobs};
    policies(d)->lost(d->ac.backend, &loss);
    rm_optimizer_put(d->ac.optimizer, &put);
    policies(d)->passed(d->ac.backend, d->ac.experiment->algorithm.target_kl, d->there.passes,
                        d->figures);
}

struct piece {
    void (*put)(struct rm_device_actor_critic *d);
    void (*sum)(struct rm_device_actor_critic *d); /* what of it is all devices'; may be nothing */
};

#define PIECES 3
static const struct piece pieces[RM_DEVICE_RECORDINGS][PIECES] = {
    [RM_DEVICE_VALUES] = {{put_values, sum_values}},
    [RM_DEVICE_RETURNS] = {{put_returns, sum_slots}, {put_returned, NULL}},
    [RM_DEVICE_MINIBATCH] = {{put_take, sum_slots}, {put_gradient, sum_gradient}, {put_move, NULL}},
};

static void sum_over_devices(struct rm_device_actor_critic *d, const struct piece *p)
{
    struct rm_backend *b = d->ac.backend;
    if (d->count < 2 || !p->sum)
        return;
    b->device->collective->begin(b);
    for (uint32_t i = 0; i < d->count; i++)
        p->sum(d->all[i]);
    b->device->collective->end(b);
}

void rm_device_put(struct rm_device_actor_critic *d, enum rm_device_recording which)
{
    for (const struct piece *p = pieces[which]; p < pieces[which] + PIECES && p->put; p++) {
        for (uint32_t i = 0; i < d->count; i++)
            p->put(d->all[i]);
        sum_over_devices(d, p);
    }
}

void rm_device_watch_minibatch(struct rm_device_actor_critic *d, uint64_t update)
{
    struct rm_backend *b = d->ac.backend;
    const struct rm_net_input in = input_of(d);
    put_take(d);
    put_gradient(d);
    b->device->copy_out(b, RM_STREAM_COMPUTE, &d->told->figures, d->figures,
                        sizeof d->told->figures);
    const double norm = rm_optimizer_norm(d->ac.optimizer, d->ac.grads); /* waits */
    const bool bad = !isfinite(d->told->figures.last_loss) || !isfinite(norm);
    if (!d->told->figures.stop && rm_finite_due(&d->ac.finite, update, bad))
        rm_finite_look(&d->ac.finite, update, d->ac.learn_space, d->ac.params, &in, d->ac.grads);
    put_move(d);
}
