/* Learning in worlds that are on the device (actor.device "cuda"): ppo. A turn makes a rollout and
 * begins to train on it, or trains on one minibatch; no turn waits for the device. Once a rollout,
 * after the last minibatch, the learner waits for the device and reads the number of steps, the
 * ended episodes and the results of the updates; then it publishes weights for the evaluator.
 *
 * In free mode weights are published while the next rollouts are made, without waiting.
 *
 * There are no actors, no rings and no rounds; this method counts what actors would. */
#include "learner/counting.h"
#include "learner/native_worlds.h"
#include "learner/on_policy.h"
#include "shm/atomic.h"
#include "shm/base/rng.h"
#include "shm/base/state.h"

#include <errno.h>
#include <stdlib.h>

struct native {
    struct rm_on_policy on; /* first */
    struct rm_board_worker *slot;
    struct rm_wake evaluator;
    struct rm_native_worlds worlds;
};

static struct native *native_of(struct rm_method *method)
{
    return (struct native *)method;
}

/* --- making ---------------------------------------------------------------------------------- */

static void native_destroy(struct rm_method *method)
{
    struct native *n = native_of(method);
    if (!n)
        return;
    rm_guard_destroy(n->on.guard);
    rm_native_worlds_destroy(&n->worlds);
    rm_actor_critic_destroy(n->on.learner);
    free(n);
}

/* Worlds of a restarted learner must not repeat its predecessor's episodes. */
static uint64_t seed_of(const struct native *n)
{
    const uint64_t seed = n->on.experiment->seed, generation = RM_PEEK(&n->slot->generation);
    if (generation <= 1)
        return seed;
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_WORLD, UINT32_MAX - n->on.policy, generation);
    const uint64_t high = rm_rng_u32(&rng);
    return high << 32 | rm_rng_u32(&rng);
}

static int make(struct native *n, struct rm_backend *backend, struct rm_error *error)
{
    const struct rm_native_worlds_spec worlds = {
        .session = n->on.session, .policy = n->on.policy, .seed = seed_of(n), .backend = backend};
    int rc = rm_native_worlds_create(&n->worlds, &worlds, error);
    if (rc)
        return rc;
    struct rm_trainer_spec learner = {
        .backend = backend,
        .rollout = n->worlds.rows[0],
        .others = rm_native_worlds_others(&n->worlds),
    };
    rc = rm_on_policy_learner(&n->on, &learner, error);
    if (!rc)
        rc = rm_native_worlds_join(&n->worlds, n->on.learner, error);
    return rc ? rc : rm_on_policy_guard(&n->on, backend, error);
}

static int native_create(struct rm_method **method, const struct rm_method_spec *spec,
                         struct rm_error *error)
{
    struct native *n = calloc(1, sizeof *n);
    if (!n)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    const struct rm_objects *objects = &spec->session->objects;
    rm_on_policy_begin(&n->on, spec, &rm_native_method);
    n->slot = &spec->session->board.workers[rm_worker_learner(objects, spec->policy)];
    n->on.late = n->on.experiment->mode == RM_MODE_FREE;
    n->evaluator = rm_session_wake(spec->session, rm_worker_evaluator(objects));
    n->on.env_steps = rm_weights_latest(&spec->session->weights[spec->policy]).env_steps;
    n->on.publisher->env_steps = n->on.env_steps;
    const int rc = make(n, spec->backend, error);
    if (rc) {
        native_destroy(&n->on.method);
        return rc;
    }
    *method = &n->on.method;
    return 0;
}

/* --- a rollout ------------------------------------------------------------------------------- */

static void begin(struct native *n)
{
    rm_phase_enter(n->on.clock, RM_PHASE_FORWARD);
    rm_native_worlds_make(&n->worlds);
    rm_actor_critic_begin(n->on.learner, n->on.number, n->on.clock);
    n->on.in_hand = true;
}

/* Writes to the board what actors would write. */
static void count_results(struct native *n, const struct rm_device_stage *results)
{
    struct rm_board_policy *c = n->on.counters;
    struct rm_board_view *board = &n->on.session->board;
    struct rm_scores *const scores[2] = {&board->agents[n->on.plan->agent[0]].scores,
                                         &board->run->scores};
    const uint32_t lost =
        results->episodes > RM_DEVICE_SCORES ? results->episodes - RM_DEVICE_SCORES : 0;
    for (int s = 0; s < 2; s++) {
        for (uint32_t i = lost; i < results->episodes; i++)
            rm_scores_add(scores[s], results->scores[i % RM_DEVICE_SCORES]);
        RM_ADD(&scores[s]->episodes, lost);
    }
    RM_ADD(&c->env_steps, results->answers);
    RM_ADD(&board->agents[n->on.plan->agent[0]].env_steps, results->answers);
    RM_ADD_OWN(&n->slot->steps, results->answers);
    n->on.env_steps += results->answers;
}

static void count_steps(struct native *n)
{
    for (uint32_t i = 0; i < n->worlds.count; i++)
        count_results(n, n->worlds.part[i].results);
    RM_ADD(&n->on.counters->lag_count, n->on.experiment->rollout.steps);
    n->on.publisher->env_steps = n->on.env_steps;
    const uint64_t awaited = rm_atomic_awaited_count(&n->evaluator.word->threshold);
    const uint64_t steps = rm_session_steps(n->on.session);
    if (steps >= awaited)
        rm_wake_signal(&n->evaluator);
    rm_session_ring_at(n->on.session, steps);
}

static int finish(struct native *n, struct rm_error *error)
{
    const struct rm_actor_critic_update u = rm_actor_critic_collect(n->on.learner, n->on.clock);
    count_steps(n);
    const int rc = rm_on_policy_count(&n->on, &u, error);
    if (!rc)
        rm_on_policy_publish(&n->on, 0);
    return rc;
}

static int native_turn(struct rm_method *method, enum rm_method_turn *did, struct rm_error *error)
{
    struct native *n = native_of(method);
    const uint64_t all = n->on.experiment->run.steps;
    *did = RM_METHOD_WORKED;
    if (!n->on.in_hand && all && n->on.env_steps >= all) {
        *did = RM_METHOD_FINISHED;
        rm_on_policy_finish(&n->on);
        return 0;
    }
    rm_publisher_poll(n->on.publisher);
    if (!n->on.in_hand)
        begin(n);
    if (rm_actor_critic_due(n->on.learner))
        rm_actor_critic_step(n->on.learner, n->on.attempts + 1,
                             rm_share_of_run(n->on.env_steps, all), n->on.clock);
    return rm_actor_critic_due(n->on.learner) ? 0 : finish(n, error);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void native_load(struct rm_method *method, const float *params)
{
    struct native *n = native_of(method);
    rm_take_over(n->on.learner, n->on.counters, params, n->on.env_steps + n->on.rows);
    rm_guard_renew(n->on.guard);
}

static void native_state(struct rm_method *method, struct rm_state *s)
{
    struct native *n = native_of(method);
    rm_on_policy_state_counts(&n->on, s);
    rm_native_worlds_state(&n->worlds, s);
    rm_on_policy_state_learner(&n->on, s);
}

const struct rm_method_ops rm_native_method = {
    .name = "native",
    .create = native_create,
    .destroy = native_destroy,
    .turn = native_turn,
    .settings = rm_on_policy_settings,
    .load = native_load,
    .takes_rest = true,
    .settled = rm_on_policy_settled,
    .state = native_state,
};
