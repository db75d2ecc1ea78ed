/* Learning from rollouts, once from each: ppo, appo, vtrace.
 *
 * Synchronous (ppo): the learner trains on rollout r when every actor has made it, then publishes
 * version r + 2, for which the actors wait (actor/actor.c). Then it returns the rows'
 * credit: if the learner dies before, its successor finds the rows and trains on them again.
 *
 * Asynchronous (appo, vtrace): actors act with the newest weights until their rings are full, so
 * the learner returns the credit of rows as soon as it has copied them. In lockstep and sequential
 * mode a round is a rollout: in round k actors make rollout k - 1 and the learner trains on rollout
 * k - 2. */
#include "config/traits.h"
#include "learner/counting.h"
#include "learner/on_policy.h"
#include "learner/rollout_rows.h"
#include "learner/rounds.h"
#include "shm/atomic.h"
#include "shm/base/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct rollout {
    struct rm_on_policy on; /* first */
    bool synchronous;
    struct rm_rounds rounds;
    struct rm_rollout rows;
    uint64_t blocked_since_ns; /* since when it waits for rows; 0 = it does not */
};

static struct rollout *rollout_of(struct rm_method *method)
{
    return (struct rollout *)method;
}

/* --- making ---------------------------------------------------------------------------------- */

/* A restarted learner continues with the rollout after the one that its predecessor published last;
 * if rows were returned before, with the first rollout that is still there. */
static void resume(struct rollout *r)
{
    const struct rm_weights_stamp stamp = rm_weights_latest(&r->on.session->weights[r->on.policy]);
    r->on.env_steps = stamp.env_steps;
    r->on.publisher->env_steps = stamp.env_steps;
    if (r->synchronous)
        r->on.number = stamp.version > 0 ? stamp.version - 1 : 0;
    else
        r->on.number = rm_rollout_first_held(&r->rows);
    rm_rollout_consume(&r->rows, r->on.number);
}

static void rollout_destroy(struct rm_method *method)
{
    struct rollout *r = rollout_of(method);
    if (!r)
        return;
    rm_on_policy_end(&r->on);
    rm_rollout_destroy(&r->rows);
    free(r);
}

static int rollout_create(struct rm_method **method, const struct rm_method_spec *spec,
                          struct rm_error *error)
{
    struct rollout *r = calloc(1, sizeof *r);
    if (!r)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    const struct rm_experiment *e = &spec->session->experiment;
    rm_on_policy_begin(&r->on, spec, &rm_rollout_method);
    r->synchronous = rm_algorithm_traits(e->algorithm.name)->synchronous;
    rm_rounds_start(&r->rounds, spec->session, spec->policy,
                    !r->synchronous && e->mode != RM_MODE_FREE);
    r->on.late = spec->backend->staged && !r->synchronous && !r->rounds.on;
    const struct rm_rollout_spec rows = {
        .session = spec->session,
        .policy = spec->policy,
        .agent = spec->agent,
        .backend = spec->backend,
    };
    int rc = rm_rollout_create(&r->rows, &rows, error);
    if (rc) {
        free(r);
        return rc;
    }
    struct rm_trainer_spec learner = {.backend = spec->backend, .rollout = &r->rows};
    rc = rm_on_policy_learner(&r->on, &learner, error);
    if (!rc)
        rc = rm_on_policy_guard(&r->on, spec->backend, error);
    if (rc) {
        rollout_destroy(&r->on.method);
        return rc;
    }
    resume(r);
    *method = &r->on.method;
    return 0;
}

/* --- waiting --------------------------------------------------------------------------------- */

enum next { WAIT, TRAIN, ROUND_END, OVER };

/* Actors end at the end of a rollout. */
static enum next next_free(struct rollout *r)
{
    const bool done = rm_actors_done(r->on.session); /* read before the number of rollouts */
    if (rm_rollout_ready(&r->rows, r->on.number))
        return TRAIN;
    return done ? OVER : WAIT;
}

static enum next next_in_rounds(struct rollout *r)
{
    const enum rm_rounds_turn turn = rm_rounds_next(&r->rounds);
    if (turn != RM_ROUNDS_WORK)
        return turn == RM_ROUNDS_OVER ? OVER : WAIT;
    /* Rounds count from 1, rollouts from 0: the rollouts that were complete before this round. */
    if (r->on.number + 2 <= r->rounds.current && rm_rollout_ready(&r->rows, r->on.number))
        return TRAIN;
    return r->rounds.last ? OVER : ROUND_END;
}

/* --- a rollout ------------------------------------------------------------------------------- */

static bool too_stale(const struct rollout *r)
{
    const uint64_t most = r->on.experiment->rollout.staleness_max;
    return !r->synchronous && most > 0 && r->rows.lag_max > most;
}

/* Copies the current rollout. False when it is too stale to train on. */
static bool copy_current(struct rollout *r)
{
    struct rm_board_policy *c = r->on.counters;
    rm_phase_enter(r->on.clock, RM_PHASE_SAMPLING);
    rm_rollout_copy(&r->rows, r->on.number, r->on.method.updates);
    RM_POKE(&c->lag_min_rollout, r->rows.lag_min);
    RM_POKE(&c->lag_max_rollout, r->rows.lag_max);
    RM_POKE(&c->lag_mean_rollout, r->rows.lag_mean);
    r->on.env_steps += r->rows.env_steps;
    r->on.publisher->env_steps = r->on.env_steps;
    if (!r->synchronous) {
        rm_rollout_consume(&r->rows, r->on.number + 1);
        rm_session_wake_actors(r->on.session);
    }
    if (too_stale(r)) {
        RM_ADD_OWN(&c->rollouts_dropped, 1);
        rm_actor_critic_pass_by(r->on.learner);
        r->on.number++;
        return false;
    }
    rm_actor_critic_begin(r->on.learner, r->on.number, r->on.clock);
    r->on.in_hand = true;
    return true;
}

static int count_update(struct rollout *r, const struct rm_actor_critic_update *u,
                        struct rm_error *error)
{
    rm_limiter_sampled(&r->on.counters->limiter, (uint32_t)u->samples);
    return rm_on_policy_count(&r->on, u, error);
}

/* Share of the run at the beginning of the current rollout: the same in all modes. */
static double progress(const struct rollout *r)
{
    const uint64_t all = r->on.experiment->run.steps, had = r->on.env_steps - r->rows.env_steps;
    return rm_share_of_run(had, all);
}

static void finish_rollout(struct rollout *r)
{
    rm_on_policy_publish(&r->on, r->rounds.current);
    if (r->synchronous)
        rm_rollout_consume(&r->rows, r->on.number);
    if (!r->rounds.on)
        rm_session_wake_actors(r->on.session);
}

/* Makes one update of the current rollout; after the last one publishes the new weights. */
static int train(struct rollout *r, struct rm_error *error)
{
    struct rm_actor_critic_update u;
    int rc = 0;
    if (rm_actor_critic_due(r->on.learner)) {
        u = rm_actor_critic_step(r->on.learner, r->on.attempts + 1, progress(r), r->on.clock);
        rc = count_update(r, &u, error);
    }
    if (rc || rm_actor_critic_due(r->on.learner))
        return rc;
    u = rm_actor_critic_collect(r->on.learner, r->on.clock);
    rc = count_update(r, &u, error);
    if (!rc)
        finish_rollout(r);
    return rc;
}

static int rollout_turn(struct rm_method *method, enum rm_method_turn *did, struct rm_error *error)
{
    struct rollout *r = rollout_of(method);
    *did = RM_METHOD_WORKED;
    rm_publisher_poll(r->on.publisher);
    if (r->on.in_hand)
        return train(r, error);
    const enum next next = r->rounds.on ? next_in_rounds(r) : next_free(r);
    rm_count_waiting(r->on.counters, &r->blocked_since_ns, next == WAIT && !r->rounds.on);
    switch (next) {
    case WAIT:
        *did = RM_METHOD_WAIT;
        rm_publisher_end(r->on.publisher); /* rm_publisher_poll() is not called while the learner
                                            * sleeps */
        break;
    case TRAIN:
        return copy_current(r) ? train(r, error) : 0;
    case ROUND_END:
        rm_rounds_arrive(&r->rounds, false);
        break;
    case OVER:
        *did = RM_METHOD_FINISHED;
        rm_on_policy_finish(&r->on);
        break;
    }
    return 0;
}

/* --- the rest -------------------------------------------------------------------------------- */

static void rollout_load(struct rm_method *method, const float *params)
{
    struct rollout *r = rollout_of(method);
    rm_take_over(r->on.learner, r->on.counters, params,
                 r->on.env_steps * r->on.plan->agents + r->on.rows);
    rm_guard_renew(r->on.guard);
}

static void rollout_state(struct rm_method *method, struct rm_state *s)
{
    struct rollout *r = rollout_of(method);
    rm_on_policy_state_counts(&r->on, s);
    rm_rounds_state(&r->rounds, s);
    rm_on_policy_state_learner(&r->on, s);
}

static void rollout_leave(struct rm_method *method)
{
    rm_rounds_arrive(&rollout_of(method)->rounds, true);
}

const struct rm_method_ops rm_rollout_method = {
    .name = "rollout",
    .create = rollout_create,
    .destroy = rollout_destroy,
    .turn = rollout_turn,
    .settings = rm_on_policy_settings,
    .load = rollout_load,
    .takes_rest = true,
    .settled = rm_on_policy_settled,
    .state = rollout_state,
    .leave = rollout_leave,
};
