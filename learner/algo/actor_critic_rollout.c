/* Before a rollout is learned from: values, scaled rewards, advantages and targets. */
#include "learner/algo/actor_critic_private.h"
#include "learner/backend/gae.h"
#include "learner/backend/vtrace.h"

#include <math.h>
#include <string.h>

/* Actors kept the values of the rows, made by the weights of now; the successors' are left. */
static void take_values(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t outputs = rm_net_workspace_outputs(ac->value_space);
    const size_t rows = (size_t)r->steps * r->lanes;
    memcpy(ac->value, r->value, rows * sizeof *ac->value);
    if (ac->order)
        rm_sequences_begin(&ac->sequences);
    if (!r->successors)
        return;
    rm_net_prepare(ac->value_space, ac->params);
    for (uint32_t at = 0, n; at < r->lanes; at += n) {
        const uint32_t most = ac->order ? r->lanes : FORWARD_ROWS;
        n = r->lanes - at < most ? r->lanes - at : most;
        const struct rm_net_input in =
            ac->order ? rm_sequences_after(&ac->sequences)
                      : (struct rm_net_input){.x = r->x + (rows + at) * r->inputs, .batch = n};
        const float *out = rm_net_forward(ac->value_space, ac->params, &in);
        for (uint32_t i = 0; i < n; i++)
            ac->value[rows + at + i] = out[(size_t)i * outputs + outputs - 1];
    }
}

/* Values of all rows and of the successors; with V-trace, too, what the policy of now would have
 * said of the actions. */
static void evaluate(struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t steps_rows = r->steps * r->lanes, rows = steps_rows + r->lanes;
    const uint32_t outputs = rm_net_workspace_outputs(ac->value_space);
    const uint32_t most = ac->order ? rm_actor_critic_pass_rows(ac) * r->lanes : FORWARD_ROWS;
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

void rm_host_actor_critic_pass_by(struct rm_actor_critic *ac)
{
    if (ac->order && ac->sequences.own)
        evaluate(ac);
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
struct rm_moments_of_batch rm_actor_critic_normal(const struct rm_actor_critic *ac,
                                                  const uint32_t *row, uint32_t n)
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

void rm_host_actor_critic_begin(struct rm_actor_critic *ac, uint64_t number,
                                struct rm_phase_clock *clock)
{
    const struct rm_rollout *r = ac->rollout;
    rm_actor_critic_enter(clock, RM_PHASE_FORWARD);
    if (r->value)
        take_values(ac);
    else
        evaluate(ac);
    rm_values_of(&ac->value_head, ac->value, (size_t)(r->steps + 1) * r->lanes, ac->value);
    rm_actor_critic_enter(clock, RM_PHASE_SAMPLING);
    memcpy(ac->reward, r->reward, (size_t)(r->steps + 1) * r->lanes * sizeof *ac->reward);
    rm_actor_critic_scale(ac, ac->reward);
    advantages(ac);
    ac->number = number;
    ac->pass = ac->part = 0;
    ac->stopped = r->samples == 0;
    ac->pass_kl = ac->pass_samples = ac->samples = 0;
    ac->figures = (struct rm_actor_critic_figures){0};
    ac->figures.explained_variance = r->samples ? explained_variance(ac) : 0;
    follow_returns(ac);
    if (ac->experiment->algorithm.normalize_advantages == RM_NORMALISE_BATCH)
        ac->whole = rm_actor_critic_normal(ac, r->sample, r->samples);
    else /* in the value's units, as the value's error is (Hessel 2019, eq. 10) */
        ac->whole = (struct rm_moments_of_batch){0, (float)(1 / ac->value_head.state.deviation)};
    if (ac->order)
        rm_minibatches_begin(&ac->minibatches, ac->order, r->lanes);
    else
        rm_minibatches_begin(&ac->minibatches, r->sample, r->samples);
}
