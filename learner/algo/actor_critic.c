#include "learner/algo/actor_critic.h"

#include "learner/algo/finite.h"
#include "learner/algo/gae.h"
#include "learner/algo/guard.h"
#include "learner/algo/minibatch.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/policy_loss.h"
#include "learner/algo/reward_scale.h"
#include "learner/algo/sequences.h"
#include "learner/algo/value_head.h"
#include "learner/algo/vtrace.h"
#include "shm/base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one forward pass over a rollout: activations of small networks stay in the second-level
 * cache. */
#define FORWARD_ROWS 512u

struct rm_actor_critic {
    const struct rm_experiment *experiment;
    const struct rm_rollout *rollout;
    struct rm_backend *backend;
    uint32_t policy;
    struct rm_actor_critic_settings settings;
    bool off_policy; /* V-trace */
    float clip;      /* of the ratio; 0: plain policy gradient */
    uint32_t epochs;

    struct rm_net *net;
    struct rm_net_workspace *value_space, *learn_space;
    struct rm_optimizer *optimizer;
    struct rm_value_head value_head;
    struct rm_reward_scale reward_scale;
    struct rm_normaliser normaliser;
    struct rm_finite finite;
    size_t count;          /* parameters */
    float *params, *grads; /* the backend's */

    /* Of the rollout in hand, (steps, lanes). */
    float *value;  /* (steps + 1, lanes) */
    float *reward; /* (steps + 1, lanes) scaled */
    uint8_t *lane; /* (lanes): enum rm_reward_lane */
    float *advantage;
    float *target;
    float *logp;  /* V-trace: of the policy at the rollout's start; else NULL */
    float *ratio; /* V-trace: that to the behaviour's; else NULL */
    struct rm_minibatches minibatches; /* of samples; recurrent: of lanes */
    struct rm_sequences sequences;
    uint32_t *order; /* recurrent: 0, 1, 2 ...; else NULL */
    struct rm_moments_of_batch {
        float mean, scale;
    } whole; /* of all advantages */

    uint64_t number;
    uint32_t pass, part, batch;
    bool stopped; /* by kl */
    double pass_kl, pass_samples;
    struct rm_actor_critic_figures figures; /* sums over updates until they are asked for */
    double samples;                         /* that these sums are over */
};

static void enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

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

/* Steps of all lanes in one forward pass of a recurrent network. */
static uint32_t rows_of_pass(const struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t steps = FORWARD_ROWS / r->lanes;
    return steps == 0 ? 1 : steps < r->steps ? steps : r->steps;
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
        forward = rows_of_pass(ac) * r->lanes;
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
}

/* --- a rollout ------------------------------------------------------------------------------- */

/* Rewards came with the rows after the samples that they are for. In worlds of several phases the
 * last row's successor is not there yet. */
static void scale_rewards(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t steps = r->successors ? r->steps : r->steps - 1;
    uint8_t *lane = ac->lane;
    memcpy(ac->reward, r->reward, (size_t)(r->steps + 1) * r->lanes * sizeof *ac->reward);
    if (!ac->reward_scale.on)
        return;
    for (uint32_t t = 0; t < steps; t++) {
        const size_t at = (size_t)t * r->lanes;
        for (uint32_t i = 0; i < r->lanes; i++)
            lane[i] = r->valid[at + i] > 0 ? RM_REWARD_GOES_ON : RM_REWARD_ABSENT;
        rm_reward_scale_add(&ac->reward_scale, r->reward + at + r->lanes, lane);
    }
    rm_reward_scale_apply(&ac->reward_scale, ac->reward, (size_t)(r->steps + 1) * r->lanes);
}

/* Values of all rows and of the successors; with V-trace, too, what the policy of now would have
 * said of the actions. */
static void evaluate(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t steps_rows = r->steps * r->lanes, rows = steps_rows + r->lanes;
    const uint32_t outputs = rm_net_workspace_outputs(ac->value_space);
    const uint32_t most = ac->order ? rows_of_pass(ac) * r->lanes : FORWARD_ROWS;
    const struct rm_categorical shape = r->distribution;
    rm_net_prepare(ac->value_space, ac->params);
    if (ac->order)
        rm_sequences_begin(&ac->sequences);
    for (uint32_t at = 0, n; at < rows; at += n) {
        n = rows - at < most ? rows - at : most;
        /* A pass has answers to all of its rows or to none. */
        if ((ac->off_policy || ac->order) && at < steps_rows && at + n > steps_rows)
            n = steps_rows - at;
        const struct rm_net_input in =
            ac->order ? rm_sequences_pass(&ac->sequences, at / r->lanes, n / r->lanes)
                      : (struct rm_net_input){.x = r->x + (size_t)at * r->inputs, .batch = n};
        const float *out = rm_net_forward(ac->value_space, ac->params, &in);
        if (ac->order)
            rm_sequences_passed(&ac->sequences, (at + n) / r->lanes);
        for (uint32_t i = 0; i < n; i++)
            ac->value[at + i] = out[(size_t)i * outputs + outputs - 1];
        if (ac->off_policy && at < steps_rows)
            rm_categorical_logp(&shape, out, outputs,
                                r->mask ? r->mask + (size_t)at * r->mask_bytes : NULL, n,
                                r->action + (size_t)at * r->words, ac->logp + at);
    }
}

static void advantages(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const struct rm_rollout_rows rows = {
        .steps = r->steps,
        .lanes = r->lanes,
        .reward = ac->reward,
        .value = ac->value,
        .discount = r->discount,
        .valid = r->valid,
    };
    const float lambda = (float)ac->experiment->algorithm.gae_lambda;
    if (!ac->off_policy) {
        rm_gae(&rows, lambda, ac->advantage, ac->target);
        return;
    }
    for (uint32_t i = 0; i < r->steps * r->lanes; i++)
        ac->ratio[i] = expf(ac->logp[i] - r->logp[i]);
    const struct rm_vtrace vtrace = {
        .lambda = lambda,
        .rho_max = (float)ac->experiment->algorithm.rho_max,
        .c_max = (float)ac->experiment->algorithm.c_max,
        .ratio = ac->ratio,
    };
    rm_vtrace(&rows, &vtrace, ac->advantage, ac->target);
}

/* 1 - Var(return - value) / Var(return); 0 where returns do not vary. */
static double explained_variance(const struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    double mean = 0, mean_off = 0, var = 0, var_off = 0;
    for (uint32_t i = 0; i < r->samples; i++) {
        const uint32_t row = r->sample[i];
        mean += (double)ac->target[row];
        mean_off += (double)ac->target[row] - (double)ac->value[row];
    }
    mean /= r->samples;
    mean_off /= r->samples;
    for (uint32_t i = 0; i < r->samples; i++) {
        const uint32_t row = r->sample[i];
        const double target = (double)ac->target[row], off = target - (double)ac->value[row];
        var += (target - mean) * (target - mean);
        var_off += (off - mean_off) * (off - mean_off);
    }
    return var > 0 ? 1 - var_off / var : 0;
}

/* Mean 0 and deviation 1 (of a sample: n - 1); one sample or none is left as it is. */
static struct rm_moments_of_batch normal(const struct rm_actor_critic *ac, const uint32_t *row,
                                         uint32_t n)
{
    double mean = 0, square = 0;
    if (n < 2)
        return (struct rm_moments_of_batch){0, 1};
    for (uint32_t i = 0; i < n; i++)
        mean += (double)ac->advantage[row[i]];
    mean /= n;
    for (uint32_t i = 0; i < n; i++) {
        const double off = (double)ac->advantage[row[i]] - mean;
        square += off * off;
    }
    return (struct rm_moments_of_batch){(float)mean, (float)(1 / (sqrt(square / (n - 1)) + 1e-8))};
}

/* From here on values and targets are in the units of the network's output. */
static void follow_returns(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const size_t rows = (size_t)r->steps * r->lanes;
    for (uint32_t i = 0; i < r->samples; i++)
        ac->reward[i] = ac->target[r->sample[i]]; /* rewards have done their part */
    if (rm_value_head_update(&ac->value_head, rm_moments_of(ac->reward, r->samples), ac->params))
        rm_net_prepare(ac->learn_space, ac->params);
    rm_value_targets(&ac->value_head, ac->value, rows, ac->value);
    rm_value_targets(&ac->value_head, ac->target, rows, ac->target);
}

void rm_actor_critic_begin(struct rm_actor_critic *ac, uint64_t number,
                           struct rm_phase_clock *clock)
{
    const struct rm_rollout *r = ac->rollout;
    enter(clock, RM_PHASE_FORWARD);
    evaluate(ac);
    rm_values_of(&ac->value_head, ac->value, (size_t)(r->steps + 1) * r->lanes, ac->value);
    enter(clock, RM_PHASE_SAMPLING);
    scale_rewards(ac);
    advantages(ac);
    ac->number = number;
    ac->pass = ac->part = 0;
    ac->stopped = r->samples == 0;
    ac->pass_kl = ac->pass_samples = ac->samples = 0;
    ac->figures = (struct rm_actor_critic_figures){0};
    ac->figures.explained_variance = r->samples ? explained_variance(ac) : 0;
    follow_returns(ac);
    if (ac->experiment->algorithm.normalize_advantages == RM_NORMALISE_BATCH)
        ac->whole = normal(ac, r->sample, r->samples);
    else /* in the value's units, as the value's error is (Hessel 2019, eq. 10) */
        ac->whole = (struct rm_moments_of_batch){0, (float)(1 / ac->value_head.state.deviation)};
    if (ac->order)
        rm_minibatches_begin(&ac->minibatches, ac->order, r->lanes);
    else
        rm_minibatches_begin(&ac->minibatches, r->sample, r->samples);
}

bool rm_actor_critic_due(const struct rm_actor_critic *ac)
{
    return !ac->stopped && ac->pass < ac->epochs;
}

static void sum_up(struct rm_actor_critic *ac, const double sums[RM_NET_SUMS], uint32_t n)
{
    ac->figures.policy_loss += sums[RM_SUM_POLICY];
    ac->figures.value_loss += sums[RM_SUM_VALUE];
    ac->figures.entropy += sums[RM_SUM_ENTROPY];
    ac->figures.clip_fraction += sums[RM_SUM_CLIPPED];
    ac->samples += n;
    ac->pass_kl += sums[RM_SUM_KL];
    ac->pass_samples += n;
}

/* After a pass: was it the last? */
static void end_pass(struct rm_actor_critic *ac)
{
    const double most = ac->experiment->algorithm.target_kl;
    ac->figures.kl = ac->pass_samples > 0 ? ac->pass_kl / ac->pass_samples : 0;
    ac->pass_kl = ac->pass_samples = 0;
    ac->part = 0;
    ac->figures.passes = ++ac->pass;
    ac->stopped = most > 0 && ac->figures.kl > most;
}

struct rm_actor_critic_update rm_actor_critic_step(struct rm_actor_critic *ac, uint64_t update,
                                                   double progress, struct rm_phase_clock *clock)
{
    const struct rm_rollout *r = ac->rollout;
    enter(clock, RM_PHASE_SAMPLING);
    if (ac->part == 0)
        rm_minibatches_shuffle(&ac->minibatches, ac->number * ac->epochs + ac->pass);
    const struct rm_minibatch m = rm_minibatches_part(&ac->minibatches, ac->part);
    struct rm_sequence_batch b = {
        .input = {.x = r->x, .index = m.row, .batch = m.rows}, .sample = m.row, .samples = m.rows};
    if (ac->order)
        b = rm_sequences_gather(&ac->sequences, m.row, m.rows);
    b.input.dropout_seed = ac->experiment->seed;
    b.input.dropout_update = update;
    const struct rm_moments_of_batch normalised =
        ac->experiment->algorithm.normalize_advantages == RM_NORMALISE_MINIBATCH
            ? normal(ac, b.sample, b.samples)
            : ac->whole;
    struct rm_policy_loss loss = {
        .distribution = r->distribution,
        .outputs = rm_net_outputs(ac->net),
        .index = b.input.index,
        .action = r->action,
        .mask = r->mask,
        .logp = ac->off_policy ? ac->logp : r->logp,
        .advantage = ac->advantage,
        .target = ac->target,
        .value = ac->value,
        .valid = r->valid,
        .advantage_mean = normalised.mean,
        .advantage_scale = normalised.scale,
        .scale = 1.0f / (float)(b.samples ? b.samples : 1),
        .clip = ac->clip,
        .value_clip = (float)ac->experiment->algorithm.value_clip,
        .value_coefficient = (float)ac->experiment->algorithm.value_coefficient,
        .entropy_coefficient = (float)ac->settings.entropy_coefficient,
    };
    const struct rm_net_loss rows = {rm_policy_loss_rows, &loss};
    double sums[RM_NET_SUMS];
    enter(clock, RM_PHASE_BACKWARD);
    rm_net_learn(ac->learn_space, ac->params, &b.input, &rows, ac->grads, sums);
    enter(clock, RM_PHASE_OPTIMIZER);
    const double total = sums[RM_SUM_POLICY] +
                         ac->experiment->algorithm.value_coefficient * sums[RM_SUM_VALUE] -
                         ac->settings.entropy_coefficient * sums[RM_SUM_ENTROPY];
    const struct rm_optimizer_input step = {.params = ac->params,
                                            .grads = ac->grads,
                                            .loss = total / (b.samples ? b.samples : 1),
                                            .update = update,
                                            .progress = progress};
    const double norm = rm_optimizer_norm(ac->optimizer, ac->grads);
    if (rm_finite_due(&ac->finite, update, !isfinite(step.loss) || !isfinite(norm))) {
        rm_net_forward(ac->learn_space, ac->params, &b.input); /* learning keeps no rows */
        rm_finite_look(&ac->finite, update, ac->learn_space, ac->params, &b.input, ac->grads);
    }
    const struct rm_optimizer_result moved = rm_optimizer_apply(ac->optimizer, &step, norm);
    if (!moved.skipped) {
        rm_net_prepare(ac->learn_space, ac->params);
        sum_up(ac, sums, b.samples);
    }
    ac->batch = b.samples;
    if (++ac->part == m.parts)
        end_pass(ac);
    return (struct rm_actor_critic_update){step.loss, moved.grad_norm, moved.learning_rate,
                                           moved.skipped};
}

/* Runs of samples, in their order, which does not depend on how worlds are split. */
void rm_actor_critic_end(struct rm_actor_critic *ac, struct rm_phase_clock *clock)
{
    const struct rm_rollout *r = ac->rollout;
    if (ac->normaliser.mean_at == SIZE_MAX)
        return;
    enter(clock, RM_PHASE_SAMPLING);
    for (uint32_t from = 0, to; from < r->samples; from = to) {
        for (to = from + 1; to < r->samples && r->sample[to] == r->sample[to - 1] + 1;)
            to++;
        rm_normaliser_add(&ac->normaliser, r->x + (size_t)r->sample[from] * r->inputs, to - from);
    }
    rm_normaliser_write(&ac->normaliser, ac->params);
    rm_net_prepare(ac->learn_space, ac->params);
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

uint32_t rm_actor_critic_batch(const struct rm_actor_critic *ac)
{
    return ac->batch;
}

const float *rm_actor_critic_params(const struct rm_actor_critic *ac)
{
    return ac->params;
}

const struct rm_net *rm_actor_critic_net(const struct rm_actor_critic *ac)
{
    return ac->net;
}

const float *rm_actor_critic_advantages(const struct rm_actor_critic *ac)
{
    return ac->advantage;
}

const float *rm_actor_critic_targets(const struct rm_actor_critic *ac)
{
    return ac->target;
}

const float *rm_actor_critic_values(const struct rm_actor_critic *ac)
{
    return ac->value;
}
