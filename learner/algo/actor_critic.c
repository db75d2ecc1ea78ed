/* The updates of a rollout: values, advantages and returns of the rollout, and the update of a
 * minibatch. */
#include "learner/algo/actor_critic_private.h"
#include "learner/algo/parts_state.h"
#include "learner/algo/record.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

static const struct rm_policy_ops *policies(const struct rm_actor_critic *ac)
{
    return rm_policy_ops_of(ac->u.backend);
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_minibatches(struct rm_actor_critic *ac, struct rm_error *error)
{
    const struct rm_experiment *e = ac->u.experiment;
    const struct rm_rollout *r = ac->rollout;
    const struct rm_minibatches_spec minibatches = {
        .rows = ac->recurrent ? r->lanes : r->steps * r->lanes,
        .parts = e->algorithm.minibatches,
        .seed = e->seed,
        .policy = ac->u.policy,
        .shuffled = ac->epochs > 1 || e->algorithm.minibatches > 1,
    };
    ac->lane = calloc(r->lanes, sizeof *ac->lane);
    ac->lanes = calloc(r->lanes, sizeof *ac->lanes);
    if (!ac->lane || !ac->lanes)
        return rm_fail(error, -ENOMEM, "no memory for %u lanes", r->lanes);
    for (uint32_t i = 0; i < r->lanes; i++)
        ac->lanes[i] = i;
    return rm_minibatches_create(&ac->minibatches, &minibatches, error);
}

/* This device's copy of the first device's rollout. */
static int copy_rollout(struct rm_actor_critic *ac, struct rm_error *error)
{
    ac->copy = *ac->rollout;
    ac->copy.backend = ac->u.backend;
    ac->rollout = &ac->copy;
    return rm_updates_alloc(&ac->u, &ac->copy.there, ac->copy.bytes, error);
}

static void lay_out(struct rm_rollout_input *s, char *block)
{
    s->passes = (void *)block;
    s->knobs = (void *)(block + s->knobs_at);
    s->order = (void *)(block + s->order_at);
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* The host writes its input once for all devices: to the backend's memory if it can. */
static int make_input(struct rm_actor_critic *ac, struct rm_error *error)
{
    struct rm_backend *b = ac->u.backend;
    struct rm_rollout_input *s = &ac->there;
    char *there, *here;
    s->knobs_at = aligned(sizeof *s->passes);
    s->order_at =
        s->knobs_at + aligned((size_t)ac->epochs * ac->minibatches.spec.parts * sizeof *s->knobs);
    s->bytes = s->order_at + (size_t)ac->epochs * ac->entries * sizeof *s->order;
    const int rc = rm_updates_alloc(&ac->u, &there, s->bytes, error);
    if (rc)
        return rc;
    lay_out(s, there);
    ac->here = *s;
    if (!b->staged || ac->u.replica)
        return 0;
    here = b->ops->alloc_host(b, s->bytes, error);
    if (!here)
        return -ENOMEM;
    lay_out(&ac->here, here);
    return 0;
}

static int make_buffers(struct rm_actor_critic *ac, struct rm_error *error)
{
    const struct rm_rollout *r = ac->rollout;
    const bool recurrent = ac->recurrent, several = ac->u.replicas > 1;
    const bool fills_up = policies(ac)->fills_up;
    const size_t rows = (size_t)r->steps * r->lanes, more = rows + r->lanes, f = sizeof(float);
    const size_t states = recurrent ? ac->floats * f : 0, batch = ac->batch;
    const struct {
        void *at;
        size_t bytes; /* 0: not there */
    } wants[] = {
        {&ac->value, more * f},
        {&ac->advantage, rows * f},
        {&ac->target, rows * f},
        {&ac->logp, ac->off_policy ? rows * f : 0},
        {&ac->head, sizeof *ac->head},
        {&ac->first, ac->own_floats ? r->lanes * states : 0},
        {&ac->now, r->lanes * states},
        {&ac->value_now, (size_t)r->lanes * ac->own_floats * f},
        {&ac->restart, recurrent ? more : 0},
        {&ac->index, batch * sizeof *ac->index},
        {&ac->entry, recurrent ? ac->most * sizeof *ac->entry : 0},
        {&ac->state, ac->most * states},
        {&ac->restarts, recurrent ? batch : 0},
        {&ac->knobs, sizeof *ac->knobs},
        {&ac->weight, fills_up ? batch * f : 0},
        {&ac->part, fills_up ? RM_SUM_COUNT * batch * f : 0},
        {&ac->sums, several ? RM_SUM_COUNT * sizeof *ac->sums : 0},
        {&ac->slots, ac->apart ? ac->u.replicas * RM_DEVICE_SLOT * sizeof *ac->slots : 0},
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof wants / sizeof *wants && !rc; i++)
        rc = rm_updates_alloc(&ac->u, wants[i].at, wants[i].bytes, error);
    return rc;
}

/* Steps of all lanes in one forward pass of a recurrent network over a rollout. */
static uint32_t forward_steps(const struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t steps = policies(ac)->sequence_rows / r->lanes;
    return steps == 0 ? 1 : MIN(steps, r->steps);
}

static uint32_t forward_rows(const struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    if (ac->recurrent)
        return (r->value ? 1 : forward_steps(ac)) * r->lanes;
    return MIN((r->value ? 1 : r->steps) * r->lanes, policies(ac)->forward_rows);
}

static int actor_critic_open(struct rm_updates *u, const struct rm_trainer_spec *spec,
                             struct rm_error *error)
{
    struct rm_actor_critic *ac = rm_actor_critic_of(u);
    const struct rm_experiment *e = spec->experiment;
    const bool vtrace = e->algorithm.name == RM_ALGORITHM_VTRACE;
    struct rm_net *net = u->nets[0].net;
    ac->apart = spec->others;
    ac->rollout = ac->apart && u->replica ? spec->others[u->replica - 1] : spec->rollout;
    ac->off_policy = e->algorithm.name != RM_ALGORITHM_PPO;
    ac->recurrent = rm_net_is_recurrent(net);
    ac->clip = vtrace ? 0 : (float)e->algorithm.clip;
    ac->epochs = vtrace ? 1 : e->algorithm.epochs;
    rm_value_head_create(&ac->value_head, e, rm_net_value_output(net));
    int rc = rm_reward_scale_create(&ac->reward_scale, e, ac->rollout->lanes, error);
    if (!rc)
        rc = make_minibatches(ac, error);
    if (rc)
        return rc;
    const uint32_t shares = ac->apart ? 1 : u->replicas;
    ac->whole = rm_minibatches_most(&ac->minibatches);
    ac->most = (ac->whole + shares - 1) / shares;
    ac->batch = u->rows = ac->most * (ac->recurrent ? ac->rollout->steps : 1);
    ac->entries = ac->minibatches.spec.rows;
    ac->floats = rm_net_state_count(net);
    ac->own_floats = rm_net_value_state_count(net);
    if (u->replica && !ac->apart)
        rc = copy_rollout(ac, error);
    if (!rc)
        rc = rm_net_workspace_create(&ac->value_space, net, u->backend, forward_rows(ac), 0,
                                     ac->off_policy ? RM_NET_INFER : RM_NET_VALUE, error);
    if (!rc)
        rc = make_input(ac, error);
    return rc ? rc : make_buffers(ac, error);
}

void rm_actor_critic_free(struct rm_actor_critic *ac)
{
    rm_net_workspace_destroy(ac->value_space);
    rm_minibatches_destroy(&ac->minibatches);
    rm_reward_scale_destroy(&ac->reward_scale);
    free(ac->lane);
    free(ac->lanes);
}

/* State for checkpoints, beside that of all updates. */
void rm_actor_critic_parts(struct rm_actor_critic *ac, struct rm_state *s)
{
    rm_reward_scale_state(&ac->reward_scale, s);
    rm_value_head_state(&ac->value_head, s);
    if (ac->own_floats)
        rm_device_state(s, ac->u.backend, "value_state", ac->value_now,
                        (size_t)ac->rollout->lanes * ac->own_floats);
}

/* --- values ---------------------------------------------------------------------------------- */

/* Rows [at, at + rows) of the rollout, from the network's output for them. */
static void keep_values(struct rm_actor_critic *ac, uint32_t at, uint32_t rows, const float *out,
                        uint32_t outputs)
{
    const struct rm_rollout *r = ac->rollout;
    const bool answered = ac->logp && at < r->steps * r->lanes;
    const uint8_t *mask = RM_ROLLOUT_THERE(mask);
    const int32_t *action = RM_ROLLOUT_THERE(action);
    const struct rm_policy_values values = {
        .out = out,
        .rows = rows,
        .outputs = outputs,
        .head = ac->head,
        .value = ac->value + at,
        .answered = answered ? rows : 0,
        .distribution = r->distribution,
        .gaussian = r->gaussian,
        .mask = mask ? mask + (size_t)at * r->mask_bytes : NULL,
        .action = action + (size_t)at * r->words,
        .logp = answered ? ac->logp + at : NULL,
    };
    policies(ac)->values(ac->u.backend, &values);
}

static void evaluate(struct rm_actor_critic *ac, uint32_t at, uint32_t rows,
                     struct rm_net_input *in)
{
    const struct rm_rollout *r = ac->rollout;
    const float *x = RM_ROLLOUT_THERE(x);
    in->x = x + (size_t)at * r->inputs;
    in->batch = rows;
    keep_values(ac, at, rows, rm_net_forward(ac->value_space, ac->u.params, in),
                rm_net_workspace_outputs(ac->value_space));
}

/* Whether each of several devices computes its share of the values; the shares are then added up.
 */
static bool shares_values(const struct rm_actor_critic *ac)
{
    return ac->u.replicas > 1 && !ac->apart && !ac->recurrent && !ac->rollout->value;
}

/* Rows [from, to), or this device's share of them, as many at a time as the buffers hold. */
static void evaluate_rows(struct rm_actor_critic *ac, uint32_t from, uint32_t to)
{
    const uint64_t rows = to - from;
    if (shares_values(ac)) {
        to = from + (uint32_t)(rows * (ac->u.replica + 1) / ac->u.replicas);
        from += (uint32_t)(rows * ac->u.replica / ac->u.replicas);
    }
    for (uint32_t at = from, n; at < to; at += n) {
        struct rm_net_input in = {0};
        n = MIN(to - at, forward_rows(ac));
        evaluate(ac, at, n, &in);
    }
}

/* The other devices' values are added to zeros. */
static void clear_values(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    struct rm_backend *b = ac->u.backend;
    const size_t rows = (size_t)r->steps * r->lanes;
    b->ops->clear(b, ac->value, (rows + r->lanes) * sizeof *ac->value);
    if (ac->logp)
        b->ops->clear(b, ac->logp, rows * sizeof *ac->logp);
}

/* Either all rows of a pass have actions or none: the successors' have none. */
static void evaluate_all(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t answered = r->steps * r->lanes;
    if (shares_values(ac))
        clear_values(ac);
    evaluate_rows(ac, 0, answered);
    evaluate_rows(ac, answered, answered + r->lanes);
}

static size_t value_state_bytes(const struct rm_actor_critic *ac)
{
    return (size_t)ac->rollout->lanes * ac->own_floats * sizeof *ac->value_now;
}

/* The states before the rollout: those of the policy's layers come from the actor, those of the
 * value's own layers from the previous rollout. */
static const float *first_states(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    struct rm_backend *b = ac->u.backend;
    const uint32_t acts = ac->floats - ac->own_floats;
    if (!ac->own_floats)
        return RM_ROLLOUT_THERE(state);
    if (acts)
        b->ops->join(b, RM_ROLLOUT_THERE(state), ac->value_now, r->lanes, acts, ac->own_floats,
                     ac->first);
    else
        b->ops->copy(b, ac->first, ac->value_now, value_state_bytes(ac));
    return ac->first;
}

static void keep_value_states(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    struct rm_backend *b = ac->u.backend;
    const uint32_t acts = ac->floats - ac->own_floats;
    if (ac->own_floats && acts)
        b->ops->split(b, ac->now, r->lanes, acts, ac->own_floats, NULL, ac->value_now);
    else if (ac->own_floats)
        b->ops->copy(b, ac->value_now, ac->now, value_state_bytes(ac));
}

/* One step of all lanes, from these states. */
static void evaluate_successors(struct rm_actor_critic *ac, const float *state)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t rows = r->steps * r->lanes;
    struct rm_net_input in = {
        .steps = 1, .state = state, .next_state = ac->now, .restart = ac->restart + rows};
    evaluate(ac, rows, r->lanes, &in);
}

static void evaluate_sequences(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const float *state = first_states(ac);
    for (uint32_t step = 0, n; step < r->steps; step += n, state = ac->now) {
        n = MIN(forward_steps(ac), r->steps - step);
        struct rm_net_input in = {.steps = n,
                                  .state = state,
                                  .next_state = ac->now,
                                  .restart = ac->restart + (size_t)step * r->lanes};
        evaluate(ac, step * r->lanes, n * r->lanes, &in);
    }
    keep_value_states(ac);
    evaluate_successors(ac, ac->now);
}

/* Actors stored the values of all rows but the successors', computed with the current weights. */
static void copy_values(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t rows = r->steps * r->lanes;
    keep_values(ac, 0, rows, RM_ROLLOUT_THERE(value), 1);
    if (!r->successors)
        return;
    if (ac->recurrent)
        evaluate_successors(ac, RM_ROLLOUT_THERE(after));
    else
        evaluate_rows(ac, rows, rows + r->lanes);
}

static void put_values(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    rm_net_prepare(ac->value_space, ac->u.params);
    if (ac->recurrent)
        policies(ac)->restarts(ac->u.backend, RM_ROLLOUT_THERE(flags), RM_FLAG_FIRST,
                               (size_t)(r->steps + 1) * r->lanes, ac->restart);
    if (r->value)
        copy_values(ac);
    else if (ac->recurrent)
        evaluate_sequences(ac);
    else
        evaluate_all(ac);
}

static void sum_values(struct rm_updates *u)
{
    const struct rm_actor_critic *ac = rm_actor_critic_of(u);
    const struct rm_rollout *r = ac->rollout;
    const size_t rows = (size_t)r->steps * r->lanes;
    if (!shares_values(ac))
        return;
    rm_record_sum(u, ac->value, rows + r->lanes, RM_DEVICE_FLOAT);
    if (ac->logp)
        rm_record_sum(u, ac->logp, rows, RM_DEVICE_FLOAT);
}

/* --- returns --------------------------------------------------------------------------------- */

static void put_scan(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const struct rm_experiment *e = ac->u.experiment;
    const struct rm_rollout_rows rows = {
        .steps = r->steps,
        .lanes = r->lanes,
        .reward = RM_ROLLOUT_THERE(reward),
        .value = ac->value,
        .discount = RM_ROLLOUT_THERE(discount),
        .valid = RM_ROLLOUT_THERE(valid),
    };
    const struct rm_vtrace vtrace = {
        .lambda = (float)e->algorithm.gae_lambda,
        .rho_max = (float)e->algorithm.rho_max,
        .c_max = (float)e->algorithm.c_max,
    };
    if (ac->off_policy)
        policies(ac)->vtrace(ac->u.backend, &rows, &vtrace, ac->logp, RM_ROLLOUT_THERE(logp),
                             ac->advantage, ac->target);
    else
        policies(ac)->gae(ac->u.backend, &rows, vtrace.lambda, ac->advantage, ac->target);
}

/* This device's numbers of its own rows; empty if it has all rows. */
static struct rm_device_slots slots_of(const struct rm_actor_critic *ac)
{
    return (struct rm_device_slots){ac->slots, ac->u.replica, ac->u.replicas};
}

static void sum_slots(struct rm_updates *u)
{
    const struct rm_actor_critic *ac = rm_actor_critic_of(u);
    if (ac->slots)
        rm_record_sum(u, ac->slots, (size_t)u->replicas * RM_DEVICE_SLOT, RM_DEVICE_DOUBLE);
}

static struct rm_policy_returns returns_of(const struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    return (struct rm_policy_returns){
        .rows = r->steps * r->lanes,
        .normalise = ac->u.experiment->algorithm.normalize_advantages == RM_NORMALISE_BATCH,
        .sample = RM_ROLLOUT_THERE(sample),
        .valid = RM_ROLLOUT_THERE(valid),
        .advantage = ac->advantage,
        .value = ac->value,
        .target = ac->target,
        .room = RM_ROLLOUT_THERE(reward), /* rewards are no longer needed */
        .head = rm_value_head_step(&ac->value_head, ac->head, ac->u.params),
        .passes = ac->there.passes,
        .figures = ac->u.figures,
        .slots = slots_of(ac),
    };
}

static void put_returns(struct rm_actor_critic *ac)
{
    const struct rm_policy_returns returns = returns_of(ac);
    put_scan(ac);
    policies(ac)->returns(ac->u.backend, &returns);
}

static void put_returns_end(struct rm_actor_critic *ac)
{
    const struct rm_policy_returns returns = returns_of(ac);
    if (ac->slots)
        policies(ac)->returns_end(ac->u.backend, &returns);
}

/* --- a minibatch ----------------------------------------------------------------------------- */

static struct rm_next_minibatch next_minibatch_of(const struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const struct rm_experiment *e = ac->u.experiment;
    return (struct rm_next_minibatch){
        .order = ac->there.order,
        .stride = ac->entries,
        .share = ac->apart ? 0 : ac->u.replica,
        .shares = ac->apart ? 1 : ac->u.replicas,
        .most = ac->most,
        .whole = ac->whole,
        .steps = ac->recurrent ? r->steps : 1,
        .lanes = ac->recurrent ? r->lanes : 1,
        .first_flag = RM_FLAG_FIRST,
        .normalise = e->algorithm.normalize_advantages == RM_NORMALISE_MINIBATCH,
        .knobs_stride = ac->minibatches.spec.parts,
        .valid = RM_ROLLOUT_THERE(valid),
        .flags = RM_ROLLOUT_THERE(flags),
        .advantage = ac->advantage,
        .knobs_of = ac->there.knobs,
        .index = ac->index,
        .weight = ac->weight,
        .entry = ac->entry,
        .restart = ac->restarts,
        .knobs = ac->knobs,
        .passes = ac->there.passes,
        .slots = slots_of(ac),
    };
}

static struct rm_update update_of(const struct rm_actor_critic *ac)
{
    return (struct rm_update){.knobs = ac->knobs, .clock = ac->clock};
}

static void put_minibatch(struct rm_actor_critic *ac)
{
    const struct rm_next_minibatch next = next_minibatch_of(ac);
    const struct rm_update update = update_of(ac);
    rm_update_phase(update.clock, RM_PHASE_SAMPLING);
    ac->rows = policies(ac)->minibatch(ac->u.backend, &next);
}

static struct rm_minibatch_loss loss_of(const struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const struct rm_experiment *e = ac->u.experiment;
    return (struct rm_minibatch_loss){
        .loss = {.distribution = r->distribution,
                 .gaussian = r->gaussian,
                 .outputs = rm_net_outputs(ac->u.nets[0].net),
                 .index = ac->index,
                 .action = RM_ROLLOUT_THERE(action),
                 .mask = RM_ROLLOUT_THERE(mask),
                 .logp = ac->off_policy ? ac->logp : RM_ROLLOUT_THERE(logp),
                 .advantage = ac->advantage,
                 .target = ac->target,
                 .value = ac->value,
                 .valid = RM_ROLLOUT_THERE(valid),
                 .clip = ac->clip,
                 .value_clip = (float)e->algorithm.value_clip,
                 .value_coefficient = (float)e->algorithm.value_coefficient},
        .rows = ac->rows,
        .of_means = e->algorithm.value_clip_maximum == RM_MAXIMUM_OF_MEANS,
        .value_coefficient = e->algorithm.value_coefficient,
        .weight = ac->weight,
        .part = ac->part,
        .own = ac->sums,
        .knobs = ac->knobs,
        .passes = ac->there.passes,
        .figures = ac->u.figures,
    };
}

static struct rm_minibatch_loss part_of_loss(const struct rm_actor_critic *ac, uint32_t first,
                                             uint32_t rows, const float *out, float *d_out)
{
    struct rm_minibatch_loss loss = loss_of(ac);
    loss.first = first;
    loss.rows = rows;
    loss.out = out;
    loss.d_out = d_out;
    return loss;
}

/* For rm_net_learn(). */
static void put_loss(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                     double sums[RM_NET_SUMS])
{
    const struct rm_actor_critic *ac = self;
    const struct rm_minibatch_loss loss = part_of_loss(ac, first, rows, out, d_out);
    policies(ac)->loss(ac->u.backend, &loss, sums);
}

/* For rm_net_learn(). */
static void put_errors(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                       double sums[RM_NET_SUMS])
{
    const struct rm_actor_critic *ac = self;
    const struct rm_minibatch_loss loss = part_of_loss(ac, first, rows, out, d_out);
    policies(ac)->errors(ac->u.backend, &loss, sums);
}

/* With value_clip_maximum "means" only the whole minibatch says which error counts. A backend that
 * may have it in parts when it computes the loss goes over the minibatch once more. */
static void find_error(struct rm_actor_critic *ac, const struct rm_net_input *in)
{
    const bool of_means = ac->u.experiment->algorithm.value_clip_maximum == RM_MAXIMUM_OF_MEANS;
    const struct rm_net_loss errors = {put_errors, ac};
    double sums[RM_NET_SUMS];
    if (!of_means || !policies(ac)->errors)
        return;
    rm_net_learn(ac->u.nets[0].online, ac->u.params, in, &errors, ac->u.grads, sums);
    ac->there.passes->value_error = rm_larger_error(sums[0], sums[1]);
}

static void put_gradient(struct rm_updates *u, const struct rm_update *update)
{
    struct rm_actor_critic *ac = rm_actor_critic_of(u);
    const struct rm_rollout *r = ac->rollout;
    struct rm_backend *b = u->backend;
    const struct rm_net_loss loss = {put_loss, ac};
    struct rm_net_input in = {.x = RM_ROLLOUT_THERE(x),
                              .index = ac->index,
                              .batch = ac->rows,
                              .steps = ac->recurrent ? r->steps : 0,
                              .state = ac->state,
                              .restart = ac->restarts};
    if (ac->recurrent)
        b->ops->gather(b, ac->own_floats ? ac->first : RM_ROLLOUT_THERE(state), ac->entry,
                       ac->rows / r->steps, ac->floats, ac->state);
    rm_updates_draw_dropout(u, update, &in);
    rm_update_phase(update->clock, RM_PHASE_BACKWARD);
    rm_updates_prepare(u, true, false);
    find_error(ac, &in);
    rm_updates_learn(u, &in, &loss, 0);
}

static void put_step(struct rm_updates *u, const struct rm_update *update)
{
    struct rm_actor_critic *ac = rm_actor_critic_of(u);
    (void)update;
    policies(ac)->book(u->backend, u->experiment->algorithm.target_kl, ac->there.passes,
                       u->figures);
}

/* Up to the gradient, which several devices add up. */
static void gradient_piece(struct rm_actor_critic *ac)
{
    struct rm_backend *b = ac->u.backend;
    const struct rm_next_minibatch next = next_minibatch_of(ac);
    const struct rm_update update = update_of(ac);
    if (ac->slots)
        policies(ac)->minibatch_end(b, &next);
    put_gradient(&ac->u, &update);
    b->ops->draws(b, NULL, 0);
}

static void sum_gradient(struct rm_updates *u)
{
    const struct rm_actor_critic *ac = rm_actor_critic_of(u);
    rm_record_sum(u, u->grads, u->count, RM_DEVICE_FLOAT);
    rm_record_sum(u, ac->sums, RM_SUM_COUNT, RM_DEVICE_DOUBLE);
}

static void put_loss_end(struct rm_actor_critic *ac)
{
    const struct rm_minibatch_loss loss = loss_of(ac);
    policies(ac)->loss_end(ac->u.backend, &loss);
}

static void step_piece(struct rm_actor_critic *ac)
{
    const struct rm_update update = update_of(ac);
    rm_update_phase(update.clock, RM_PHASE_OPTIMIZER);
    rm_updates_put_step(&ac->u, &update, NULL);
}

/* --- all of it ------------------------------------------------------------------------------- */

const struct rm_rollout_piece rm_rollout_pieces[RM_ROLLOUT_PARTS][RM_ROLLOUT_PIECES] = {
    [RM_ROLLOUT_VALUES] = {{put_values, sum_values}},
    [RM_ROLLOUT_RETURNS] = {{put_returns, sum_slots}, {put_returns_end, NULL}},
    [RM_ROLLOUT_MINIBATCH] = {[RM_PIECE_ROWS] = {put_minibatch, sum_slots},
                              [RM_PIECE_GRADIENT] = {gradient_piece, sum_gradient},
                              [RM_PIECE_LOSS] = {put_loss_end, NULL},
                              [RM_PIECE_STEP] = {step_piece, NULL}},
};

const struct rm_update_ops rm_actor_critic_updates = {
    .bytes = sizeof(struct rm_actor_critic),
    .from_rollouts = true,
    .open = actor_critic_open,
    .put_gradient = put_gradient,
    .put_step = put_step,
};
