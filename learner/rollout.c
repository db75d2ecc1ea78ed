/* Learning from rollouts, each once: ppo, appo, vtrace.
 *
 * Synchronous (ppo): rollout r is trained on when every actor has made it, then version r + 2 is
 * published, which they wait for or will (actor/actor_rollouts.c). Its rows are given back after
 * that: a learner that dies in between has a successor that finds them and trains on them again.
 *
 * Asynchronous (appo, vtrace): actors go on with what weights there are until their rings are full,
 * so rows are given back as soon as they are copied. In lockstep and sequential mode a round is a
 * rollout: in round k actors make rollout k - 1 and the learner trains on rollout k - 2. */
#include "config/traits.h"
#include "learner/algo/actor_critic.h"
#include "learner/counting.h"
#include "learner/method.h"
#include "learner/rollout_rows.h"
#include "shm/atomic.h"
#include "shm/base/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

struct rollout {
    struct rm_method method; /* first */
    struct rm_session *session;
    uint32_t policy, who;
    const struct rm_experiment *experiment;
    const struct rm_policy_plan *plan;
    struct rm_board_policy *counters;
    struct rm_publisher *publisher;
    struct rm_phase_clock *clock;
    bool synchronous, rounds;

    struct rm_rollout rows;
    struct rm_actor_critic *learner;
    struct rm_guard *guard;

    uint64_t number;    /* of the rollout in hand, or the next */
    bool in_hand;       /* it is copied, and updates are due */
    uint64_t env_steps; /* learned from, predecessors' included */
    uint64_t updates;   /* made, predecessors' included */
    uint64_t attempts;  /* and skipped */
    uint64_t round;     /* the one in hand, 0 before the first */
    bool arrived, last_round;
    bool late;                 /* weights are published without waiting for the device */
    uint64_t blocked_since_ns; /* when it began to wait for rows; 0 = it does not */
};

static struct rollout *of(struct rm_method *method)
{
    return (struct rollout *)method;
}

static const struct rollout *of_const(const struct rm_method *method)
{
    return (const struct rollout *)method;
}

/* --- making ---------------------------------------------------------------------------------- */

/* A successor goes on with the rollout after the one that its predecessor published last; where
 * rows were given back before, with the first that is still there. */
static void resume(struct rollout *r)
{
    const struct rm_weights_stamp stamp = rm_weights_latest(&r->session->weights[r->policy]);
    r->env_steps = stamp.env_steps;
    r->publisher->env_steps = stamp.env_steps;
    if (r->synchronous)
        r->number = stamp.version > 0 ? stamp.version - 1 : 0;
    else
        r->number = rm_rollout_first_held(&r->rows);
    rm_rollout_consume(&r->rows, r->number);
}

static void rollout_destroy(struct rm_method *method)
{
    struct rollout *r = of(method);
    if (!r)
        return;
    rm_guard_destroy(r->guard);
    rm_actor_critic_destroy(r->learner);
    rm_rollout_destroy(&r->rows);
    free(r);
}

static int open_guard(struct rollout *r, struct rm_backend *backend, struct rm_error *error)
{
    int rc = rm_guard_create(&r->guard, r->experiment, backend, r->counters, r->plan->name, error);
    if (rc)
        return rc;
    rm_actor_critic_guarded(r->learner, r->guard);
    return rm_guard_ready(r->guard, error);
}

static int rollout_create(struct rm_method **method, const struct rm_method_spec *spec,
                          struct rm_error *error)
{
    struct rollout *r = calloc(1, sizeof *r);
    if (!r)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    const struct rm_experiment *e = &spec->session->experiment;
    r->method.ops = &rm_rollout_method;
    r->session = spec->session;
    r->policy = spec->policy;
    r->who = rm_worker_learner(&spec->session->objects, spec->policy);
    r->experiment = e;
    r->plan = &spec->session->plan.policy[spec->policy];
    r->counters = &spec->session->board.policies[spec->policy];
    r->publisher = spec->publisher;
    r->clock = spec->clock;
    r->synchronous = rm_algorithm_traits(e->algorithm.name)->synchronous;
    r->rounds = !r->synchronous && e->mode != RM_MODE_FREE;
    r->updates = spec->updates;
    r->attempts = spec->updates + spec->attempts;
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
    const struct rm_actor_critic_spec learner = {
        .experiment = e,
        .backend = spec->backend,
        .rollout = &r->rows,
        .policy = spec->policy,
        .shape = r->plan->shape,
        .name = r->plan->name,
    };
    rc = rm_actor_critic_create(&r->learner, &learner, error);
    if (!rc)
        rc = open_guard(r, spec->backend, error);
    r->late = spec->backend->device && !r->synchronous && !r->rounds;
    if (!rc && r->late)
        rc = rm_publisher_go_late(r->publisher, rm_actor_critic_params(r->learner),
                                  rm_actor_critic_made(r->learner), r->updates, error);
    if (rc) {
        rollout_destroy(&r->method);
        return rc;
    }
    resume(r);
    *method = &r->method;
    return 0;
}

/* --- waiting --------------------------------------------------------------------------------- */

static bool actors_done(const struct rollout *r)
{
    for (uint32_t a = 0; a < r->session->objects.actors; a++)
        if (RM_SEE(&r->session->board.workers[a].state) != RM_WORKER_DONE)
            return false;
    return true;
}

enum next { WAIT, TRAIN, ROUND_END, OVER };

/* Actors come to an end at the end of a rollout, after which there is none. */
static enum next next_free(struct rollout *r)
{
    const bool done = actors_done(r); /* before looking at what they made */
    if (rm_rollout_ready(&r->rows, r->number))
        return TRAIN;
    return done ? OVER : WAIT;
}

static enum next next_in_rounds(struct rollout *r)
{
    const struct rm_round *board = r->session->board.round;
    const uint64_t round = rm_round_current(board);
    if (rm_round_left(board, r->who))
        return OVER; /* before the checkpoint that this goes on from, or its death */
    if (r->round == 0 && RM_PEEK(&board->arrived[r->who]) >= round)
        return WAIT; /* a predecessor arrived before it died */
    if (round != r->round) {
        r->round = round;
        r->arrived = false;
        r->last_round = rm_session_budget_spent(r->session, round);
    }
    if (r->arrived)
        return WAIT;
    /* Rounds count from 1, rollouts from 0: what was complete before this round. */
    if (r->number + 2 <= round && rm_rollout_ready(&r->rows, r->number))
        return TRAIN;
    return r->last_round ? OVER : ROUND_END;
}

static void arrive(struct rollout *r, bool leave)
{
    struct rm_round *round = r->session->board.round;
    if (!r->rounds)
        return;
    r->arrived = true;
    if (leave ? rm_round_leave(round, r->who) : rm_round_arrive(round, r->who))
        rm_session_wake_all(r->session);
}

/* --- a rollout ------------------------------------------------------------------------------- */

static bool too_stale(const struct rollout *r)
{
    const uint64_t most = r->experiment->rollout.staleness_max;
    return !r->synchronous && most > 0 && r->rows.lag_max > most;
}

/* Takes the rollout in hand. False when it is too old to be learned from. */
static bool take(struct rollout *r)
{
    struct rm_board_policy *c = r->counters;
    rm_phase_enter(r->clock, RM_PHASE_SAMPLING);
    rm_rollout_copy(&r->rows, r->number, r->updates);
    RM_POKE(&c->lag_min_rollout, r->rows.lag_min);
    RM_POKE(&c->lag_max_rollout, r->rows.lag_max);
    RM_POKE(&c->lag_mean_rollout, r->rows.lag_mean);
    r->env_steps += r->rows.env_steps;
    r->publisher->env_steps = r->env_steps;
    if (!r->synchronous) {
        rm_rollout_consume(&r->rows, r->number + 1);
        rm_session_wake_actors(r->session);
    }
    if (too_stale(r)) {
        RM_ADD_OWN(&c->rollouts_dropped, 1);
        rm_actor_critic_pass_by(r->learner);
        r->number++;
        return false;
    }
    rm_actor_critic_begin(r->learner, r->number, r->clock);
    r->in_hand = true;
    return true;
}

/* What came of the latest update; on a device of those of the whole rollout. */
static int count_update(struct rollout *r, const struct rm_actor_critic_update *u,
                        struct rm_error *error)
{
    struct rm_board_policy *c = r->counters;
    RM_ADD_OWN(&c->samples, u->samples);
    rm_limiter_sampled(&c->limiter, (uint32_t)u->samples);
    r->attempts += u->made + u->skipped;
    const struct rm_counted_updates counted = {.made = u->made,
                                               .skipped = u->skipped,
                                               .skipped_last = u->skipped_last,
                                               .loss = u->loss,
                                               .grad_norm = u->grad_norm,
                                               .learning_rate = u->learning_rate};
    const int verdict = rm_count_updates(c, r->guard, &r->updates, &counted, error);
    if (verdict == RM_GUARD_BACK)
        rm_actor_critic_restored(r->learner);
    return verdict < 0 ? verdict : 0;
}

/* Of the run, when the rollout in hand was begun: the same in all modes. */
static double progress(const struct rollout *r)
{
    const uint64_t all = r->experiment->run.steps, had = r->env_steps - r->rows.env_steps;
    return rm_share_of_run(had, all);
}

static void finish_rollout(struct rollout *r)
{
    rm_actor_critic_end(r->learner, r->clock);
    const struct rm_actor_critic_figures f = rm_actor_critic_figures(r->learner);
    rm_count_rollout(r->counters, &f);
    rm_phase_enter(r->clock, RM_PHASE_PUBLISH);
    if (r->late)
        rm_publisher_send(r->publisher, r->updates);
    else
        rm_publisher_publish(r->publisher, rm_actor_critic_params(r->learner), r->updates,
                             r->round);
    r->in_hand = false;
    r->number++;
    if (r->synchronous)
        rm_rollout_consume(&r->rows, r->number);
    if (!r->rounds)
        rm_session_wake_actors(r->session);
}

/* One update of the rollout in hand; after the last, the new weights. */
static int train(struct rollout *r, struct rm_error *error)
{
    struct rm_actor_critic_update u;
    int rc = 0;
    if (rm_actor_critic_due(r->learner)) {
        u = rm_actor_critic_step(r->learner, r->attempts + 1, progress(r), r->clock);
        rc = count_update(r, &u, error);
    }
    if (rc || rm_actor_critic_due(r->learner))
        return rc;
    if (rm_actor_critic_collect(r->learner, &u, r->clock))
        rc = count_update(r, &u, error);
    if (!rc)
        finish_rollout(r);
    return rc;
}

/* The last weights are published whatever else was. */
static void finish_run(struct rollout *r)
{
    rm_publisher_end(r->publisher);
    if (r->late && r->publisher->stamped != r->updates)
        rm_publisher_publish(r->publisher, rm_actor_critic_params(r->learner), r->updates, 0);
}

static int rollout_turn(struct rm_method *method, enum rm_method_turn *did, struct rm_error *error)
{
    struct rollout *r = of(method);
    *did = RM_METHOD_WORKED;
    rm_publisher_poll(r->publisher);
    if (r->in_hand)
        return train(r, error);
    const enum next next = r->rounds ? next_in_rounds(r) : next_free(r);
    rm_count_waiting(r->counters, &r->blocked_since_ns, next == WAIT && !r->rounds);
    switch (next) {
    case WAIT:
        *did = RM_METHOD_WAIT;
        rm_publisher_end(r->publisher); /* nobody looks at it while this sleeps */
        break;
    case TRAIN:
        return take(r) ? train(r, error) : 0;
    case ROUND_END:
        arrive(r, false);
        break;
    case OVER:
        *did = RM_METHOD_FINISHED;
        finish_run(r);
        break;
    }
    return 0;
}

/* --- the rest -------------------------------------------------------------------------------- */

static void rollout_settings(struct rm_method *method, const struct rm_board_run *run)
{
    rm_take_settings(of(method)->learner, of(method)->counters, run);
}

static const float *rollout_params(const struct rm_method *method)
{
    return rm_actor_critic_params(of_const(method)->learner);
}

static const struct rm_net *rollout_net(const struct rm_method *method)
{
    return rm_actor_critic_net(of_const(method)->learner);
}

static uint64_t rollout_updates(const struct rm_method *method)
{
    return of_const(method)->updates;
}

static void rollout_load(struct rm_method *method, const float *params)
{
    struct rollout *r = of(method);
    rm_take_over(r->learner, r->counters, params, r->env_steps * r->plan->agents);
    rm_guard_renew(r->guard);
}

/* A rollout in hand is learned from to its end first: what was copied out of the rings is not
 * state. */
static bool rollout_settled(const struct rm_method *method)
{
    return !of_const(method)->in_hand;
}

static void rollout_state(struct rm_method *method, struct rm_state *s)
{
    struct rollout *r = of(method);
    RM_STATE(s, "number", r->number);
    RM_STATE(s, "env_steps", r->env_steps);
    RM_STATE(s, "updates", r->updates);
    RM_STATE(s, "attempts", r->attempts);
    RM_STATE(s, "round", r->round);
    RM_STATE(s, "arrived", r->arrived);
    RM_STATE(s, "last_round", r->last_round);
    rm_actor_critic_state(r->learner, s);
    rm_guard_state(r->guard, s);
}

static void rollout_leave(struct rm_method *method)
{
    arrive(of(method), true);
}

const struct rm_method_ops rm_rollout_method = {
    .name = "rollout",
    .create = rollout_create,
    .destroy = rollout_destroy,
    .turn = rollout_turn,
    .settings = rollout_settings,
    .params = rollout_params,
    .net = rollout_net,
    .updates = rollout_updates,
    .load = rollout_load,
    .takes_optimizers = true,
    .settled = rollout_settled,
    .state = rollout_state,
    .leave = rollout_leave,
};
