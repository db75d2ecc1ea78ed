/* What an actor-critic learner has its devices do: each of its graphs in pieces, between which
 * several devices add up what they have. Here are those that value a rollout; minibatches are in
 * actor_critic_minibatch.c. Nothing here waits, sends or asks. */
#include "learner/algo/actor_critic_device.h"
#include "learner/backend/gae.h"
#include "learner/backend/vtrace.h"
#include "shm/layout.h"

/* --- values ---------------------------------------------------------------------------------- */

/* Rows [at, at + rows) of the rollout, from what the network says of them. */
static void keep_values(struct rm_device_actor_critic *d, uint32_t at, uint32_t rows,
                        const float *out, uint32_t outputs)
{
    const struct rm_rollout *r = d->ac.rollout;
    const bool answered = d->logp && at < r->steps * r->lanes;
    const uint8_t *mask = RM_ROLLOUT_THERE(mask);
    const int32_t *action = RM_ROLLOUT_THERE(action);
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
    rm_device_policies(d)->values(d->ac.backend, &values);
}

static void evaluate(struct rm_device_actor_critic *d, uint32_t at, uint32_t rows,
                     struct rm_net_input *in)
{
    const struct rm_rollout *r = d->ac.rollout;
    const float *x = RM_ROLLOUT_THERE(x);
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
        return RM_ROLLOUT_THERE(state);
    if (acts)
        b->ops->join(b, RM_ROLLOUT_THERE(state), d->value_now, r->lanes, acts, d->own_floats,
                     d->first);
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
    keep_values(d, 0, rows, RM_ROLLOUT_THERE(value), 1);
    if (!r->successors)
        return;
    if (!d->ac.order) {
        evaluate_rows(d, rows, rows + r->lanes);
        return;
    }
    struct rm_net_input in = {.steps = 1,
                              .state = RM_ROLLOUT_THERE(after),
                              .next_state = d->now,
                              .restart = d->restart + rows};
    evaluate(d, rows, r->lanes, &in);
}

static void put_values(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    rm_net_prepare(d->ac.value_space, d->ac.params);
    if (d->ac.order)
        rm_device_policies(d)->restarts(d->ac.backend, RM_ROLLOUT_THERE(flags), RM_FLAG_FIRST,
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
        .reward = RM_ROLLOUT_THERE(reward),
        .value = d->value,
        .discount = RM_ROLLOUT_THERE(discount),
        .valid = RM_ROLLOUT_THERE(valid),
    };
    const float lambda = (float)e->algorithm.gae_lambda;
    if (!d->ac.off_policy) {
        rm_device_policies(d)->gae(d->ac.backend, &rows, lambda, d->advantage, d->target);
        return;
    }
    const struct rm_vtrace vtrace = {
        .lambda = lambda,
        .rho_max = (float)e->algorithm.rho_max,
        .c_max = (float)e->algorithm.c_max,
    };
    rm_device_policies(d)->vtrace(d->ac.backend, &rows, &vtrace, d->logp, RM_ROLLOUT_THERE(logp),
                                  d->advantage, d->target);
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
        .sample = RM_ROLLOUT_THERE(sample),
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
        .slots = rm_device_slots_of(d),
    };
}

static void put_returns(struct rm_device_actor_critic *d)
{
    const struct rm_device_returns returns = returns_of(d);
    put_scan(d);
    rm_device_policies(d)->returns(d->ac.backend, &returns);
}

static void put_returned(struct rm_device_actor_critic *d)
{
    const struct rm_device_returns returns = returns_of(d);
    rm_device_policies(d)->returned(d->ac.backend, &returns);
}

/* --- all of it ------------------------------------------------------------------------------- */

struct piece {
    void (*put)(struct rm_device_actor_critic *d);
    void (*sum)(struct rm_device_actor_critic *d); /* what of it is all devices'; may be nothing */
};

#define PIECES 3
static const struct piece pieces[RM_DEVICE_RECORDINGS][PIECES] = {
    [RM_DEVICE_VALUES] = {{put_values, sum_values}},
    [RM_DEVICE_RETURNS] = {{put_returns, sum_slots}, {put_returned, NULL}},
    [RM_DEVICE_MINIBATCH] = {{rm_device_put_take, sum_slots},
                             {rm_device_put_gradient, rm_device_sum_gradient},
                             {rm_device_put_move, NULL}},
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
