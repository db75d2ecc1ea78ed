#include "actor/actor.h"

#include "actor/stages.h"
#include "actor/stepping.h"
#include "config/config.h"
#include "config/traits.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/rng.h"
#include "shm/base/state.h"
#include "shm/layout.h"
#include "shm/limiter.h"
#include "shm/base/severity.h"
#include "shm/session/saver.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct rm_actor {
    struct rm_session *session;
    uint32_t index, worker;
    struct rm_board_worker *slot;
    struct rm_phase_clock clock;
    struct rm_stepping stepping;
    struct rm_stages stages;
    struct rm_world_config world; /* of the stage */
    struct rm_ring *rings[RM_BOARD_POLICIES];
    struct rm_wake learner[RM_BOARD_POLICIES];
    struct rm_wake evaluator, recorder;        /* of the latter only if there is one */
    uint64_t version[RM_BOARD_POLICIES];       /* of the weights in use, 0 = none */
    uint32_t ask[RM_BOARD_POLICIES];           /* lanes that the limiter is asked for */
    uint64_t blocked_since[RM_BOARD_POLICIES]; /* by the limiter since then; 0 = not blocked */
    bool in_rounds;                            /* lockstep and sequential mode */
    bool in_round;                             /* this round's weights are read */
    uint64_t round;
    uint32_t round_rows;               /* rows of a round */
    uint32_t round_steps;              /* made in this round */
    uint32_t rollout_rows;             /* rows of a rollout; 0: the learners sample from replay */
    bool synchronous;                  /* rollouts wait for weights */
    uint64_t ready[RM_BOARD_POLICIES]; /* 1 + the rollout whose weights are in use */
    uint64_t budget; /* free mode: of agent 0, over this actor's worlds; 0 = no end */
    uint64_t settings_version;
    struct rm_saver saver;
};

/* Rows of policy p in which this actor and its predecessors have acted. */
static uint64_t rows_answered(const struct rm_actor *actor, uint32_t p)
{
    return rm_ring_committed(actor->rings[p]) - actor->rings[p]->spec.first_index;
}

/* --- scores ---------------------------------------------------------------------------------- */

static void agent_finished(void *self, uint32_t agent, uint32_t world,
                           const struct rm_episode *episode)
{
    struct rm_actor *actor = self;
    struct rm_board_agent *board = &actor->session->board.agents[agent];

    (void)world;
    rm_stages_episode(&actor->stages, agent, episode);
    rm_scores_add(&board->scores, episode->score);
    rm_scores_add(&board->lengths, episode->steps);
    for (uint32_t f = 0; episode->figures && f < actor->session->plan.figures; f++)
        if (!isnan(episode->figures[f]))
            rm_scores_add(&board->figures[f], episode->figures[f]);
}

static void world_finished(void *self, uint32_t world, double score, uint64_t steps)
{
    struct rm_actor *actor = self;

    (void)world;
    rm_scores_add(&actor->session->board.run->scores, score);
    rm_scores_add(&actor->session->board.run->lengths, (double)steps);
}

/* --- weights --------------------------------------------------------------------------------- */

/* The parameters of this stamp are in place. */
static void use_weights(struct rm_actor *actor, uint32_t p, const struct rm_weights_stamp *stamp)
{
    struct rm_stepping_policy *policy = &actor->stepping.policies[p];

    if (stamp->version == actor->version[p])
        return;
    actor->version[p] = stamp->version;
    policy->updates = stamp->updates;
    rm_acting_prepare(&policy->acting);
}

/* Reads the newest weights. False while a policy has published none. */
static bool refresh_weights(struct rm_actor *actor)
{
    struct rm_session *s = actor->session;

    for (uint32_t p = 0; p < s->plan.policies; p++) {
        struct rm_weights_stamp stamp = rm_weights_latest(&s->weights[p]);
        if (stamp.version == 0)
            return false;
        if (stamp.version == actor->version[p])
            continue;
        if (!rm_weights_read(&s->weights[p], actor->stepping.policies[p].acting.params,
                             s->weights[p].act_count, &stamp, NULL))
            return false;
        use_weights(actor, p, &stamp);
    }
    return true;
}

/* Lockstep: what was published before this round. */
static bool refresh_weights_before(struct rm_actor *actor, uint64_t round)
{
    struct rm_session *s = actor->session;

    for (uint32_t p = 0; p < s->plan.policies; p++) {
        struct rm_weights_stamp stamp;
        if (!rm_weights_read_before(&s->weights[p], round,
                                    actor->stepping.policies[p].acting.params,
                                    s->weights[p].act_count, &stamp))
            return false;
        use_weights(actor, p, &stamp);
    }
    return true;
}

static void count_lag(struct rm_actor *actor)
{
    struct rm_session *s = actor->session;

    for (uint32_t p = 0; p < s->plan.policies; p++) {
        struct rm_board_policy *board = &s->board.policies[p];
        uint64_t updates = RM_PEEK(&board->updates);
        uint64_t used = actor->stepping.policies[p].updates;
        uint64_t lag = updates > used ? updates - used : 0;
        RM_ADD(&board->lag_sum, lag);
        RM_ADD(&board->lag_count, 1);
        rm_atomic_max(&board->lag_max, lag);
    }
}

/* --- waiting --------------------------------------------------------------------------------- */

/* May every policy take another row? Counts the time in which one could not. */
static bool limiter_allows(struct rm_actor *actor)
{
    struct rm_session *s = actor->session;
    bool allowed = true;

    for (uint32_t p = 0; p < s->plan.policies; p++) {
        struct rm_board_policy *board = &s->board.policies[p];
        uint64_t now, since = actor->blocked_since[p];
        bool may = rm_limiter_may_insert(&board->limiter, actor->ask[p]);
        if (may && !since)
            continue;
        now = rm_now_ns();
        if (since)
            RM_ADD(&board->insert_blocked_ns, now - since);
        actor->blocked_since[p] = may ? 0 : now;
        allowed &= may;
    }
    return allowed;
}

/* The limiter is asked for a whole row. If a row is more than it can ever grant, because the
 * learner's batch and the row do not fit between its bounds together, the actor asks for one lane:
 * the bound is then overshot by a row, and the actor does not wait for ever. */
static uint32_t lanes_to_ask(const struct rm_actor *actor, uint32_t p)
{
    const struct rm_limiter *limiter = &actor->session->board.policies[p].limiter;
    uint32_t lanes = actor->rings[p]->spec.lanes;
    double room = RM_PEEK(&limiter->max_error) - RM_PEEK(&limiter->min_error) -
                  actor->session->experiment.sample.batch;

    return RM_PEEK(&limiter->samples_per_insert) * lanes <= room ? lanes : 1;
}

/* A recorder that is waited for may sleep until there are more rows than the ring takes. */
static bool has_credit(struct rm_actor *actor)
{
    const bool has = rm_stepping_has_credit(&actor->stepping);

    if (!has && actor->session->objects.recorders)
        rm_wake_signal(&actor->recorder);
    return has;
}

static void read_settings(struct rm_actor *actor)
{
    struct rm_board_run *run = actor->session->board.run;
    uint64_t version = RM_SEE(&run->settings_version);

    if (version == actor->settings_version)
        return;
    actor->settings_version = version;
    actor->stepping.epsilon.end = RM_PEEK(&run->settings[RM_HOT_EPSILON_END]);
    for (uint32_t w = 0; w < actor->stepping.worlds; w++)
        actor->stepping.bound_episodes[w] = UINT64_MAX;
    for (uint32_t p = 0; p < actor->session->plan.policies; p++)
        actor->ask[p] = lanes_to_ask(actor, p);
}

/* A turn without work, and why. */
static int wait_for(struct rm_actor *actor, enum rm_wait reason)
{
    actor->clock.waits = reason;
    return 0;
}

/* --- one vector step ------------------------------------------------------------------------- */

/* Wakes the evaluator, the recorder and the daemon at the number of steps that they wait for. */
static void tell_steps(struct rm_actor *actor)
{
    struct rm_session *s = actor->session;
    const uint64_t awaited = rm_atomic_awaited_count(&actor->evaluator.word->threshold);
    uint64_t steps = 0;

    for (uint32_t a = 0; a < s->objects.actors; a++)
        steps += RM_PEEK(&s->board.workers[rm_worker_actor(&s->objects, a)].steps);
    if (steps >= awaited)
        rm_wake_signal(&actor->evaluator);
    if (s->objects.recorders && steps >= rm_atomic_awaited_count(&actor->recorder.word->threshold))
        rm_wake_signal(&actor->recorder);
    rm_session_ring_at(s, steps);
}

/* Has this policy's learner the rows that it waits for: a rollout's last row, or the number of
 * transitions in its threshold? The threshold is the learner's own; the wake is its process's. */
static bool learner_is_due(const struct rm_actor *actor, uint32_t p)
{
    const struct rm_session *s = actor->session;
    const uint32_t learner = rm_worker_learner(&s->objects, p);

    if (actor->rollout_rows)
        return rows_answered(actor, p) % actor->rollout_rows == 0;
    return rm_atomic_awaited_count(&s->board.workers[learner].wake.threshold) <=
           RM_PEEK(&s->board.policies[p].limiter.inserted);
}

/* Counts committed rows and wakes the learners that wait for them. */
static void account(struct rm_actor *actor)
{
    struct rm_session *s = actor->session;
    struct rm_stepping *stepping = &actor->stepping;

    RM_ADD_OWN(&actor->slot->steps, stepping->agent_counted[0]);
    RM_ADD_OWN(&actor->slot->acting_flops, rm_stepping_take_flops(stepping));
    for (uint32_t a = 0; a < s->plan.agents; a++)
        RM_ADD(&s->board.agents[a].env_steps, stepping->agent_counted[a]);
    for (uint32_t p = 0; p < s->plan.policies; p++) {
        struct rm_board_policy *board = &s->board.policies[p];
        RM_ADD(&board->env_steps, stepping->policies[p].counted);
        RM_POKE(&board->epsilon, stepping->rate);
        rm_limiter_inserted(&board->limiter, stepping->policies[p].counted);
        /* In rounds learners wait for the round, not for rows. */
        if (!actor->in_rounds && learner_is_due(actor, p))
            rm_wake_signal(&actor->learner[p]);
    }
    tell_steps(actor);
}

/* The next step goes into the worlds of another stage. */
static int change_stage(struct rm_actor *actor, struct rm_error *error)
{
    uint64_t seed;
    rm_stages_change(&actor->stages);
    const int rc =
        rm_stages_world(&actor->stages, actor->stepping.seed, &actor->world, &seed, error);
    if (rc == 0)
        rm_stepping_change(&actor->stepping, &actor->world, seed);
    return rc;
}

static int make_step(struct rm_actor *actor, struct rm_error *error)
{
    struct rm_stepping *stepping = &actor->stepping;
    int rc;

    if (!stepping->started && (rc = rm_stepping_begin(stepping, error)) < 0)
        return rc;
    if ((actor->stages.units ? rm_stages_differ(&actor->stages)
                             : rm_stages_follow(&actor->stages)) &&
        (rc = change_stage(actor, error)) < 0)
        return rc;
    count_lag(actor);
    if ((rc = rm_stepping_step(stepping, error)) < 0)
        return rc;
    rm_stages_changed(&actor->stages);
    account(actor);
    return 1;
}

/* Wakes the others: they may be waiting for this actor to end. */
static int finish(struct rm_actor *actor)
{
    RM_RAISE(&actor->slot->state, RM_WORKER_DONE);
    if (actor->in_rounds)
        rm_round_leave(actor->session->board.round, actor->worker);
    rm_session_wake_all(actor->session);
    rm_session_ring_bell(actor->session);
    return RM_DUTY_DONE;
}

/* --- free running ---------------------------------------------------------------------------- */

static int work_free(struct rm_actor *actor, struct rm_error *error)
{
    /* Rollouts are always completed: a learner cannot use a part of one. */
    if (actor->budget && RM_PEEK(&actor->slot->steps) >= actor->budget &&
        (!actor->rollout_rows || rows_answered(actor, 0) % actor->rollout_rows == 0))
        return finish(actor);
    /* Change nothing before all of these are true. */
    if (!actor->rollout_rows && !limiter_allows(actor))
        return wait_for(actor, RM_WAIT_LIMITER);
    if (!has_credit(actor))
        return wait_for(actor, RM_WAIT_CREDIT);
    if (!refresh_weights(actor))
        return wait_for(actor, RM_WAIT_WEIGHTS);
    return make_step(actor, error);
}

/* --- rounds ---------------------------------------------------------------------------------- */

/* The predecessor of a restarted actor may have written part of the round's rows. */
static uint32_t steps_made(const struct rm_actor *actor, uint64_t round)
{
    uint64_t before = (round - 1) * actor->round_rows, made = UINT64_MAX;

    for (uint32_t p = 0; p < actor->session->plan.policies; p++) {
        uint64_t rows = rows_answered(actor, p);
        uint64_t own = rows > before ? rows - before : 0;
        if (own < made)
            made = own;
    }
    return (uint32_t)made;
}

static int work_round(struct rm_actor *actor, struct rm_error *error)
{
    struct rm_session *s = actor->session;
    uint64_t round = rm_round_current(s->board.round);

    if (!actor->in_round) {
        if (rm_round_left(s->board.round, actor->worker))
            return finish(actor);
        if (rm_atomic_round_arrived(&s->board.round->arrived[actor->worker]) >= round)
            return wait_for(actor, RM_WAIT_ROUND);
        if (rm_session_budget_spent(s, round))
            return finish(actor);
        if (!refresh_weights_before(actor, round))
            return wait_for(actor, RM_WAIT_WEIGHTS);
        actor->in_round = true;
        actor->round = round;
        rm_stages_begin_unit(&actor->stages, round);
        actor->round_steps = steps_made(actor, round);
    }
    if (actor->round_steps < actor->round_rows) {
        if (!has_credit(actor))
            return wait_for(actor, RM_WAIT_CREDIT);
        int rc = make_step(actor, error);
        if (rc < 0)
            return rc;
        actor->round_steps++;
    }
    if (actor->round_steps >= actor->round_rows) {
        actor->in_round = false;
        RM_POKE(&actor->slot->steps_at[round & 1], RM_PEEK(&actor->slot->steps));
        if (rm_round_arrive(s->board.round, actor->worker))
            rm_session_wake_all(s);
    }
    return 1;
}

/* --- synchronous rollouts ------------------------------------------------------------------ */

/* Synchronous rollouts: the weights with which an actor acts, and when it is done. In all modes;
 * the rule replaces rounds.
 *
 * Row i belongs to rollout r = i / rollout.steps. After training on rollout r the learner publishes
 * version r + 2, version 1 being the initial one. So version r + 1 was trained on all rollouts
 * before rollout r. Actors act in rollout r with at least version r + 1 - rollout.max_policy_lag:
 * in lockstep and sequential mode exactly with that version, in free mode with the newest at the
 * rollout's start.
 *
 * The run is over at the start of a rollout when the version that it needs was trained on run.steps
 * steps. All actors check the same version, so they end at the same rollout. */

/* The oldest version that may act in this rollout. */
static uint64_t version_asked(const struct rm_actor *actor, uint64_t rollout)
{
    const uint64_t lag = actor->session->experiment.rollout.max_policy_lag;

    return rollout > lag ? rollout + 1 - lag : 1;
}

/* Reads the weights of the current rollout. False while they are not published. */
static bool take_weights(struct rm_actor *actor, uint32_t p)
{
    struct rm_session *s = actor->session;
    const struct rm_weights *weights = &s->weights[p];
    const uint64_t rollout = rows_answered(actor, p) / actor->rollout_rows;
    /* A frozen opponent makes no rollouts: in free mode any version will do. */
    const bool any = s->plan.policy[p].frozen && s->experiment.mode == RM_MODE_FREE;
    struct rm_weights_stamp stamp;

    if (actor->ready[p] == rollout + 1)
        return true;
    uint64_t version = any ? 1 : version_asked(actor, rollout);
    const uint64_t newest = rm_weights_latest(weights).version;
    if (newest < version)
        return false;
    if (s->experiment.mode == RM_MODE_FREE)
        version = newest;
    if (version != actor->version[p]) {
        if (!rm_weights_read_version(weights, version, actor->stepping.policies[p].acting.params,
                                     weights->act_count, &stamp))
            return false;
        use_weights(actor, p, &stamp);
    }
    actor->ready[p] = rollout + 1;
    return true;
}

/* At the start of a rollout: were enough steps trained on? */
static bool budget_spent(const struct rm_actor *actor)
{
    const struct rm_session *s = actor->session;
    const uint32_t p = rm_plan_first_trained(&s->plan);
    const uint64_t rows = rows_answered(actor, p);
    struct rm_weights_stamp stamp;

    return s->experiment.run.steps && rows % actor->rollout_rows == 0 &&
           rm_weights_read_version(&s->weights[p], version_asked(actor, rows / actor->rollout_rows),
                                   NULL, 0, &stamp) &&
           stamp.env_steps >= s->experiment.run.steps;
}

/* A turn of an actor whose learners' rollouts are synchronous. */
static int work_rollouts(struct rm_actor *actor, struct rm_error *error)
{
    struct rm_session *s = actor->session;
    int rc;

    /* Offer the first rows before there are weights: learners compute the values of the first
     * rollout from them. */
    if (!actor->stepping.started) {
        if (!has_credit(actor))
            return wait_for(actor, RM_WAIT_CREDIT);
        if ((rc = rm_stepping_begin(&actor->stepping, error)) < 0)
            return rc;
        for (uint32_t p = 0; p < s->plan.policies; p++)
            rm_wake_signal(&actor->learner[p]);
    }
    for (uint32_t p = 0; p < s->plan.policies; p++)
        if (!take_weights(actor, p))
            return wait_for(actor, RM_WAIT_WEIGHTS);
    if (budget_spent(actor))
        return finish(actor);
    const uint64_t rows = rows_answered(actor, 0);
    if (rows % actor->rollout_rows == 0)
        rm_stages_begin_unit(&actor->stages, rows / actor->rollout_rows);
    return has_credit(actor) ? make_step(actor, error) : wait_for(actor, RM_WAIT_CREDIT);
}

/* --- the duty -------------------------------------------------------------------------------- */

static int do_work(void *self, struct rm_error *error)
{
    struct rm_actor *actor = self;

    if (rm_experiment_only_evaluates(&actor->session->experiment))
        return finish(actor);
    read_settings(actor);
    return actor->synchronous ? work_rollouts(actor, error)
           : actor->in_rounds ? work_round(actor, error)
                              : work_free(actor, error);
}

/* Worlds of a restarted actor must not repeat its predecessor's episodes: only the first process
 * uses the run's seed. */
static uint64_t seed_of(uint64_t seed, uint64_t generation, uint32_t index)
{
    if (generation <= 1)
        return seed;
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_WORLD, UINT32_MAX - index, generation);
    uint64_t high = rm_rng_u32(&rng);
    return high << 32 | rm_rng_u32(&rng);
}

/* --- resuming -------------------------------------------------------------------------------- */

void rm_actor_state(struct rm_actor *actor, struct rm_state *state)
{
    rm_stepping_state(&actor->stepping, state);
    rm_stages_state(&actor->stages, state);
}

/* This actor's state in the checkpoint; NULL if there is none, or if its worlds could not be
 * saved. */
static int read_state(const struct rm_actor *actor, struct rm_state **state, struct rm_error *error)
{
    const char *folder = actor->session->resume;
    char path[RM_SESSION_PATH_MAX];

    *state = NULL;
    if (!folder[0])
        return 0;
    int rc = rm_session_checkpoint_file(folder, "actor", actor->index, "state", path, error);
    if (rc == 0)
        rc = rm_state_create(state, error);
    if (rc == 0)
        rc = rm_state_read(*state, path, error);
    if (rc == 0 && rm_stepping_state_whole(*state))
        return 0;
    rm_state_destroy(*state);
    *state = NULL;
    if (rc == 0)
        fprintf(stderr,
                RM_SEVERITY_NOTICE "actor %u: its worlds cannot save their state; after a restart "
                                   "they begin new episodes\n",
                actor->index);
    return rc;
}

/* Runs in the saver's thread. */
static int write_state(void *self, const struct rm_state *state, const char *folder,
                       struct rm_error *error)
{
    const struct rm_actor *actor = self;
    char path[RM_SESSION_PATH_MAX];
    int rc = rm_session_checkpoint_file(folder, "actor", actor->index, "state", path, error);

    return rc ? rc : rm_state_write(state, path, RM_STATE_ALL, error);
}

static int checkpoint(void *self, uint64_t number)
{
    struct rm_actor *actor = self;
    struct rm_error error = {""};
    struct rm_state *state;
    if (!rm_saver_is_free(&actor->saver, number))
        return 1;
    const enum rm_phase before = rm_phase_enter(&actor->clock, RM_PHASE_CHECKPOINT);
    int rc = rm_state_create(&state, &error);

    if (rc == 0) {
        rm_actor_state(actor, state);
        rc = rm_state_end(state, &error);
    }
    if (rc == 0)
        rm_saver_begin(&actor->saver, actor->session, number, state);
    else
        rm_saver_give_up(&actor->saver, number, rc, &error);
    if (rc)
        rm_state_destroy(state);
    rm_phase_enter(&actor->clock, before);
    return 1;
}

static int load_state(struct rm_actor *actor, struct rm_state *state, struct rm_error *error)
{
    rm_state_load(state);
    rm_actor_state(actor, state);
    return rm_state_end(state, error);
}

/* Opens the rings as their writer: in the same generation (resumed), or in a new one. */
static uint64_t take_rings(struct rm_actor *actor, bool resumes)
{
    struct rm_session *s = actor->session;
    uint64_t generation = 1;

    for (uint32_t p = 0; p < s->plan.policies; p++) {
        actor->rings[p] = rm_session_ring(s, actor->index, p);
        actor->learner[p] = rm_session_wake(s, rm_worker_learner(&s->objects, p));
        if (!resumes)
            RM_ADD(&s->board.policies[p].rows_lost, rm_ring_writer_open(actor->rings[p]));
        generation = RM_PEEK(&actor->rings[p]->shared->generation);
    }
    return generation;
}

static int create(struct rm_actor *actor, struct rm_error *error)
{
    struct rm_state *state;
    struct rm_session *s = actor->session;
    const struct rm_experiment *e = &s->experiment;
    uint64_t first_world;
    uint32_t worlds;

    rm_session_worlds(e, actor->index, &first_world, &worlds);
    if (worlds == 0)
        return rm_fail(error, -EINVAL, "actor %u: no worlds (actor.worlds %u, actor.count %u)",
                       actor->index, e->actor.worlds, e->actor.count);
    int rc = read_state(actor, &state, error);
    if (rc < 0)
        return rc;
    const uint64_t generation = take_rings(actor, state != NULL);
    actor->evaluator = rm_session_wake(s, rm_worker_evaluator(&s->objects));
    if (s->objects.recorders)
        actor->recorder = rm_session_wake(s, rm_worker_recorder(&s->objects));
    struct rm_stepping_options options = {
        .seed = seed_of(e->seed, generation, actor->index),
        .first_world = first_world,
        .total_worlds = e->actor.worlds,
        .worlds = worlds,
        .quantiles = e->actor.quantiles,
        .explore = true,
        .shared = true,
        .steps_before = RM_PEEK(&actor->slot->steps) / worlds,
        .episodes_before =
            generation <= 1 ? 0 : RM_PEEK(&s->board.run->scores.episodes) / e->actor.worlds,
        .rings = actor->rings,
        .clock = &actor->clock,
        .sink = {actor, agent_finished, world_finished},
    };
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(e->algorithm.name);
    actor->synchronous = traits->synchronous;
    actor->rollout_rows = traits->rollout ? e->rollout.steps : 0;
    actor->round_rows = traits->rollout ? e->rollout.steps : e->run.round_steps;
    actor->in_rounds = e->mode != RM_MODE_FREE && !traits->synchronous;
    if ((rc = rm_stages_create(&actor->stages, s, actor->index,
                               actor->in_rounds || actor->synchronous, error)) < 0)
        return rc;
    uint64_t world_seed = options.seed;
    if (actor->stages.count) {
        if ((rc = rm_stages_world(&actor->stages, options.seed, &actor->world, &world_seed,
                                  error)) < 0)
            return rc;
        options.world = &actor->world;
        options.world_seed = &world_seed;
    }
    /* Rounded up, so that the actors together reach the run's budget. */
    actor->budget = (e->run.steps * worlds + e->actor.worlds - 1) / e->actor.worlds;
    rc = rm_stepping_create(&actor->stepping, e, &s->plan, &options, error);
    if (rc == 0 && state)
        rc = load_state(actor, state, error);
    rm_state_destroy(state);
    return rc;
}

int rm_actor_create(struct rm_actor **actor, struct rm_session *session, uint32_t index,
                    struct rm_duty *duty, struct rm_error *error)
{
    if (index >= session->objects.actors)
        return rm_fail(error, -EINVAL, "actor %u: must be 0..%u", index,
                       session->objects.actors - 1);
    struct rm_actor *a = aligned_alloc(64, (sizeof *a + 63) & ~(size_t)63);
    if (!a)
        return rm_fail(error, -ENOMEM, "actor %u: no memory", index);
    *a = (struct rm_actor){.session = session, .index = index};
    a->worker = rm_worker_actor(&session->objects, index);
    a->slot = &session->board.workers[a->worker];
    a->saver = (struct rm_saver){.slot = a->slot, .write = write_state, .self = a};
    rm_session_phase_start(session, &a->clock, a->worker, RM_ROLE_ACTOR);
    int rc = create(a, error);
    if (rc < 0) {
        rm_actor_destroy(a);
        return rm_fail_within(error, rc, "actor %u", index);
    }
    *duty = (struct rm_duty){
        .self = a,
        .do_work = do_work,
        .checkpoint = session->directory[0] ? checkpoint : NULL,
        .run = session->board.run,
        .slot = a->slot,
        .wake = rm_session_wake(session, a->worker),
        .look_ns = rm_experiment_loads(&session->experiment) ? RM_DUTY_LOOK_NS : 0,
        .clock = &a->clock,
        .poll_us = !a->in_rounds && session->experiment.mode == RM_MODE_FREE &&
                           session->experiment.limiter.wake == RM_WAKE_POLL
                       ? session->experiment.limiter.poll_us
                       : 0,
    };
    *actor = a;
    return 0;
}

void rm_actor_destroy(struct rm_actor *actor)
{
    if (!actor)
        return;
    rm_saver_end(&actor->saver);
    if (actor->stepping.experiment)
        rm_stepping_destroy(&actor->stepping);
    rm_stages_destroy(&actor->stages);
    free(actor);
}
