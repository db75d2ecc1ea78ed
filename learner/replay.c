/* Learning from replay: draws batches from the policy's rings, makes an update of each, publishes
 * by interval. */
#include "config/config.h"
#include "learner/counting.h"
#include "learner/replay_private.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "shm/base/said.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Updates between late reports; fewer if weights are published more often. */
#define REPORT 16u

static struct rm_replay *replay_of(struct rm_method *method)
{
    return (struct rm_replay *)method;
}

static const struct rm_replay *of_const(const struct rm_method *method)
{
    return (const struct rm_replay *)method;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void rm_replay_count_draws(struct rm_replay *r)
{
    const struct rm_sampler_counts now = rm_sampler_counts(r->sampler);
    struct rm_board_policy *c = r->counters;
    RM_ADD_OWN(&c->samples_torn, now.torn - r->torn_before);
    RM_ADD_OWN(&c->age_sum, now.age_sum - r->age_sum_before);
    RM_ADD_OWN(&c->age_count, now.age_count - r->age_count_before);
    r->torn_before = now.torn;
    r->age_sum_before = now.age_sum;
    r->age_count_before = now.age_count;
}

static void count_samples(struct rm_replay *r)
{
    RM_ADD_OWN(&r->counters->samples, r->experiment->sample.batch);
    RM_POKE(&r->counters->replay_rows, rm_sampler_held(r->sampler));
    rm_replay_count_draws(r);
}

static int count_update(struct rm_replay *r, const struct rm_trainer_result *result,
                        struct rm_error *error)
{
    struct rm_board_policy *c = r->counters;
    const struct rm_counted_update u = {.skipped = result->skipped,
                                        .loss = result->loss,
                                        .grad_norm = result->grad_norm,
                                        .learning_rate = result->learning_rate};
    const int verdict = rm_count_update(c, r->guard, &r->updates, &u, error);
    if (verdict == RM_GUARD_BACK)
        rm_trainer_restored(r->trainer);
    if (verdict != RM_GUARD_GOOD)
        return verdict < 0 ? verdict : 0;
    RM_POKE(&c->q_mean, result->q_mean);
    RM_POKE(&c->temperature, result->temperature);
    RM_POKE(&c->entropy, result->entropy);
    return 0;
}

/* Share of the run's steps taken when the batch was drawn; in rounds by the end of the round
 * before. */
static double progress(const struct rm_replay *r)
{
    const uint64_t all = r->experiment->run.steps * r->plan->agents;
    const uint64_t taken = r->pace.rounds ? r->pace.inserted : RM_PEEK(&r->counters->env_steps);
    return rm_share_of_run(taken, all);
}

/* Exponent of the importance weights: linear over priority.beta_span updates, or over the run. */
static double beta(const struct rm_replay *r)
{
    const struct rm_experiment *e = r->experiment;
    const uint64_t span = e->priority.beta_span;
    double part = progress(r);
    if (span)
        part = r->pace.attempts < span ? (double)r->pace.attempts / (double)span : 1;
    return e->priority.beta_start + part * (e->priority.beta_end - e->priority.beta_start);
}

void rm_replay_learned(struct rm_replay *r, const struct rm_batch *batch)
{
    rm_phase_enter(r->clock, RM_PHASE_SAMPLING);
    rm_sampler_learned(r->sampler, batch);
    RM_POKE(&r->counters->priority_max, rm_sampler_largest(r->sampler));
}

/* --- updates --------------------------------------------------------------------------------- */

static struct rm_batch *next_batch(struct rm_replay *r, int *rc, struct rm_error *error)
{
    if (!r->late)
        return rm_sampler_batch(r->sampler);
    rm_phase_enter(r->clock, RM_PHASE_FORWARD);
    struct rm_batch *batch = rm_trainer_batch(r->trainer);
    *rc = rm_replay_poll(r, false, error);
    return batch;
}

/* Draws on the host, or prepares the device's draw. */
static bool draw(struct rm_replay *r, struct rm_batch *batch)
{
    if (r->feed)
        rm_feed_copy(r->feed, r->sampler);
    if (batch->turn)
        return rm_feed_turn(r->feed, r->sampler, beta(r), batch->turn);
    rm_sampler_set_beta(r->sampler, beta(r));
    return rm_sampler_draw(r->sampler, r->pace.attempts + 1, batch);
}

/* One update. Returns false when no batch could be drawn. */
static bool update(struct rm_replay *r, int *rc, struct rm_error *error)
{
    r->dry = false;
    struct rm_batch *batch = next_batch(r, rc, error);
    if (*rc)
        return true;
    rm_phase_enter(r->clock, RM_PHASE_SAMPLING);
    if (r->dry || !draw(r, batch))
        return false;
    rm_pace_drawn(&r->pace);
    count_samples(r);
    if (!r->pace.rounds)
        rm_session_wake_actors(r->session); /* the samples may let actors insert */
    rm_trainer_progress(r->trainer, progress(r));
    const struct rm_trainer_result result =
        rm_trainer_update(r->trainer, batch, r->pace.attempts, r->clock);
    if (result.late)
        return true;
    if (!result.skipped)
        rm_replay_learned(r, batch);
    *rc = count_update(r, &result, error);
    return true;
}

static int open_guard(struct rm_replay *r, struct rm_backend *backend, struct rm_error *error)
{
    int rc = rm_guard_create(&r->guard, r->experiment, backend, r->counters, r->plan->name, error);
    if (rc)
        return rc;
    rm_trainer_guarded(r->trainer, r->guard);
    return rm_guard_ready(r->guard, error);
}

static void replay_destroy(struct rm_method *method)
{
    struct rm_replay *r = replay_of(method);
    if (!r)
        return;
    rm_guard_destroy(r->guard);
    rm_trainer_destroy(r->trainer);
    rm_feed_destroy(r->feed);
    rm_sampler_destroy(r->sampler);
    free(r);
}

static int replay_create(struct rm_method **method, const struct rm_method_spec *spec,
                         struct rm_error *error)
{
    struct rm_replay *r = calloc(1, sizeof *r);
    if (!r)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    r->method.ops = &rm_replay_method;
    r->session = spec->session;
    r->policy = spec->policy;
    r->experiment = &spec->session->experiment;
    r->plan = &spec->session->plan.policy[spec->policy];
    r->counters = &spec->session->board.policies[spec->policy];
    r->agent = spec->agent;
    r->publisher = spec->publisher;
    r->clock = spec->clock;
    r->updates = spec->updates;
    struct rm_trainer_spec trainer = {
        .experiment = r->experiment,
        .backend = spec->backend,
        .policy = r->policy,
        .shape = r->plan->shape,
        .name = r->plan->name,
        .updates = spec->updates,
        .masks = r->agent->has_mask,
    };
    int rc = 0;
    if (r->plan->action_words > 1)
        rc = rm_fail(error, -EINVAL,
                     "policy %s: %u choices a step; algorithms that learn from replay support only "
                     "one choice; use ppo, appo or vtrace",
                     r->plan->name, r->plan->action_words);
    if (!rc)
        rc = rm_replay_open_sampler(r, spec->backend, error);
    if (!rc)
        rc = rm_replay_open_trainer(r, &trainer, error);
    if (!rc)
        rc = open_guard(r, spec->backend, error);
    if (!rc && (r->late = rm_trainer_is_late(r->trainer)))
        rc = rm_publisher_go_late(r->publisher, rm_trainer_params(r->trainer),
                                  rm_trainer_made(r->trainer), spec->updates, error);
    if (rc) {
        replay_destroy(&r->method);
        return rc;
    }
    rm_pace_start(&r->pace, r->session, r->sampler, r->policy, spec->updates + spec->attempts);
    RM_POKE(&r->counters->replay_capacity, rm_sampler_capacity(r->sampler));
    *method = &r->method;
    return 0;
}

static int replay_turn(struct rm_method *method, enum rm_method_turn *did, struct rm_error *error)
{
    struct rm_replay *r = replay_of(method);
    const float *params = rm_trainer_params(r->trainer);
    int rc = 0;
    enum rm_turn turn = rm_pace_next(&r->pace);
    if (turn == RM_TURN_UPDATE && !update(r, &rc, error))
        turn = rm_pace_too_few(&r->pace);
    if (!rc && turn != RM_TURN_UPDATE && turn != RM_TURN_AGAIN)
        rc = rm_replay_settle(r, error);
    rm_count_waiting(r->counters, &r->blocked_since_ns, turn == RM_TURN_WAIT && !r->pace.rounds);
    *did = RM_METHOD_WORKED;
    switch (turn) {
    case RM_TURN_WAIT:
        *did = RM_METHOD_WAIT;
        break;
    case RM_TURN_AGAIN:
        break;
    case RM_TURN_UPDATE:
        if (rc || r->pace.rounds)
            break;
        rm_phase_enter(r->clock, RM_PHASE_PUBLISH);
        rm_publisher_poll(r->publisher);
        rm_publisher_offer(r->publisher, params, r->updates, 0);
        break;
    case RM_TURN_ROUND_END:
        rm_phase_enter(r->clock, RM_PHASE_PUBLISH);
        rm_publisher_offer(r->publisher, params, r->updates, r->pace.round);
        rm_pace_arrive(&r->pace, false);
        break;
    case RM_TURN_FINISHED:
        rm_phase_enter(r->clock, RM_PHASE_PUBLISH);
        if (r->updates > r->publisher->stamped)
            rm_publisher_publish(r->publisher, params, r->updates, r->pace.round);
        *did = RM_METHOD_FINISHED;
        break;
    }
    return rc;
}

static void replay_settings(struct rm_method *method, const struct rm_board_run *run)
{
    struct rm_replay *r = replay_of(method);
    const struct rm_trainer_settings settings = {
        .learning_rate = RM_PEEK(&run->settings[RM_HOT_LEARNING_RATE]),
        .grad_clip = RM_PEEK(&run->settings[RM_HOT_GRAD_CLIP]),
        .target_tau = RM_PEEK(&run->settings[RM_HOT_TARGET_TAU]),
        .report = least(REPORT, (uint32_t)RM_PEEK(&run->settings[RM_HOT_PUBLISH_INTERVAL])),
    };
    rm_trainer_set(r->trainer, &settings);
    rm_pace_set_rate(&r->pace, RM_PEEK(&run->settings[RM_HOT_UPDATES_PER_STEP]));
    RM_POKE(&r->counters->learning_rate, settings.learning_rate); /* until the next update */
}

static const float *replay_params(const struct rm_method *method)
{
    return rm_trainer_params(of_const(method)->trainer);
}

static const struct rm_net *replay_net(const struct rm_method *method)
{
    return rm_trainer_net(of_const(method)->trainer);
}

static uint64_t replay_updates(const struct rm_method *method)
{
    return of_const(method)->updates;
}

static void replay_load(struct rm_method *method, const float *params)
{
    rm_trainer_load(replay_of(method)->trainer, params);
    rm_guard_renew(replay_of(method)->guard);
}

static void replay_state(struct rm_method *method, struct rm_state *s)
{
    struct rm_replay *r = replay_of(method);
    struct rm_error error = {""};
    if (!rm_state_loading(s) && rm_replay_settle(r, &error))
        fprintf(stderr, RM_SAID_WARNING "learner of %s: %s\n", r->plan->name, error.text);
    RM_STATE(s, "updates", r->updates);
    if (rm_state_loading(s)) { /* the board may have been saved before these results arrived */
        RM_POKE(&r->counters->updates, r->updates);
        r->publisher->late.before = r->updates;
    }
    rm_pace_state(&r->pace, s);
    rm_sampler_state(r->sampler, s);
    rm_trainer_state(r->trainer, s);
    rm_guard_state(r->guard, s);
}

static void replay_leave(struct rm_method *method)
{
    rm_pace_arrive(&replay_of(method)->pace, true);
}

const struct rm_method_ops rm_replay_method = {
    .name = "replay",
    .create = replay_create,
    .destroy = replay_destroy,
    .turn = replay_turn,
    .settings = replay_settings,
    .params = replay_params,
    .net = replay_net,
    .updates = replay_updates,
    .load = replay_load,
    .takes_rest = true,
    .state = replay_state,
    .leave = replay_leave,
};
