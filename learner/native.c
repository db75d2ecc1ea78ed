/* Learning in worlds that are on the device (actor.device "cuda"): ppo. A turn is a rollout made
 * and begun to be learned from, or one minibatch of it; none of them waits for the device. It is
 * waited for once a rollout, after the last minibatch, and then told how many steps it was, whose
 * episodes ended, and what came of the updates; then weights are published, for the evaluator and
 * whoever looks.
 *
 * In free mode weights are published behind the rollouts that follow, without waiting.
 *
 * There are no actors, no rings and no rounds: what the actors count, this does. */
#include "learner/algo/actor_critic.h"
#include "learner/counting.h"
#include "learner/method.h"
#include "learner/native_worlds.h"
#include "shm/atomic.h"
#include "shm/base/rng.h"
#include "shm/base/state.h"

#include <errno.h>
#include <stdlib.h>

struct native {
    struct rm_method method; /* first */
    struct rm_session *session;
    uint32_t policy;
    const struct rm_experiment *experiment;
    const struct rm_policy_plan *plan;
    struct rm_board_policy *counters;
    struct rm_board_worker *slot;
    struct rm_publisher *publisher;
    struct rm_phase_clock *clock;
    struct rm_wake evaluator;

    struct rm_native_worlds worlds;
    struct rm_actor_critic *learner;
    struct rm_guard *guard;

    uint64_t number;    /* of the rollout in hand, or the next */
    bool in_hand;       /* it is made, or being made, and updates are due */
    uint64_t env_steps; /* before it, predecessors' included */
    uint64_t updates;   /* made, predecessors' included */
    uint64_t attempts;  /* and skipped */
    bool late;          /* weights are published without waiting for the device */
};

static struct native *of(struct rm_method *method)
{
    return (struct native *)method;
}

static const struct native *of_const(const struct rm_method *method)
{
    return (const struct native *)method;
}

/* --- making ---------------------------------------------------------------------------------- */

static void native_destroy(struct rm_method *method)
{
    struct native *n = of(method);
    if (!n)
        return;
    rm_guard_destroy(n->guard);
    rm_native_worlds_destroy(&n->worlds);
    rm_actor_critic_destroy(n->learner);
    free(n);
}

/* Worlds of a successor must not play the episodes again that its predecessor's played. */
static uint64_t seed_of(const struct native *n)
{
    const uint64_t seed = n->experiment->seed, generation = RM_PEEK(&n->slot->generation);
    if (generation <= 1)
        return seed;
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_WORLD, UINT32_MAX - n->policy, generation);
    const uint64_t high = rm_rng_u32(&rng);
    return high << 32 | rm_rng_u32(&rng);
}

static int make(struct native *n, struct rm_backend *backend, struct rm_error *error)
{
    const struct rm_native_worlds_spec worlds = {
        .session = n->session, .policy = n->policy, .seed = seed_of(n), .backend = backend};
    int rc = rm_native_worlds_create(&n->worlds, &worlds, error);
    if (rc)
        return rc;
    const struct rm_actor_critic_spec learner = {
        .experiment = n->experiment,
        .backend = backend,
        .rollout = n->worlds.rows[0],
        .others = rm_native_worlds_others(&n->worlds),
        .policy = n->policy,
        .shape = n->plan->shape,
        .name = n->plan->name,
    };
    rc = rm_actor_critic_create(&n->learner, &learner, error);
    if (!rc)
        rc = rm_native_worlds_join(&n->worlds, n->learner, error);
    if (!rc)
        rc = rm_guard_create(&n->guard, n->experiment, backend, n->counters, n->plan->name, error);
    if (rc)
        return rc;
    rm_actor_critic_guarded(n->learner, n->guard);
    rc = rm_guard_ready(n->guard, error);
    n->late = n->experiment->mode == RM_MODE_FREE;
    if (!rc && n->late)
        rc = rm_publisher_go_late(n->publisher, rm_actor_critic_params(n->learner),
                                  rm_actor_critic_made(n->learner), n->updates, error);
    return rc;
}

static int native_create(struct rm_method **method, const struct rm_method_spec *spec,
                         struct rm_error *error)
{
    struct native *n = calloc(1, sizeof *n);
    if (!n)
        return rm_fail(error, -ENOMEM, "no memory for a learner");
    const struct rm_objects *objects = &spec->session->objects;
    n->method.ops = &rm_native_method;
    n->session = spec->session;
    n->policy = spec->policy;
    n->experiment = &spec->session->experiment;
    n->plan = &spec->session->plan.policy[spec->policy];
    n->counters = &spec->session->board.policies[spec->policy];
    n->slot = &spec->session->board.workers[rm_worker_learner(objects, spec->policy)];
    n->publisher = spec->publisher;
    n->clock = spec->clock;
    n->evaluator = rm_session_wake(spec->session, rm_worker_evaluator(objects));
    n->updates = spec->updates;
    n->attempts = spec->updates + spec->attempts;
    n->env_steps = rm_weights_latest(&spec->session->weights[spec->policy]).env_steps;
    n->publisher->env_steps = n->env_steps;
    const int rc = make(n, spec->backend, error);
    if (rc) {
        native_destroy(&n->method);
        return rc;
    }
    *method = &n->method;
    return 0;
}

/* --- a rollout ------------------------------------------------------------------------------- */

static void begin(struct native *n)
{
    rm_phase_enter(n->clock, RM_PHASE_FORWARD);
    rm_native_worlds_make(&n->worlds);
    rm_actor_critic_begin(n->learner, n->number, n->clock);
    n->in_hand = true;
}

/* What actors put on the board. */
static void count_told(struct native *n, const struct rm_device_stage *told)
{
    struct rm_board_policy *c = n->counters;
    struct rm_board_view *board = &n->session->board;
    struct rm_scores *const scores[2] = {&board->agents[n->plan->agent[0]].scores,
                                         &board->run->scores};
    const uint32_t lost = told->episodes > RM_DEVICE_SCORES ? told->episodes - RM_DEVICE_SCORES : 0;
    for (int s = 0; s < 2; s++) {
        for (uint32_t i = lost; i < told->episodes; i++)
            rm_scores_add(scores[s], told->scores[i % RM_DEVICE_SCORES]);
        RM_ADD(&scores[s]->episodes, lost);
    }
    RM_ADD(&c->env_steps, told->answers);
    RM_ADD_OWN(&n->slot->steps, told->answers);
    n->env_steps += told->answers;
}

static void count_steps(struct native *n)
{
    for (uint32_t i = 0; i < n->worlds.count; i++)
        count_told(n, n->worlds.part[i].told);
    RM_ADD(&n->counters->lag_count, n->experiment->rollout.steps);
    n->publisher->env_steps = n->env_steps;
    if (rm_session_steps(n->session) >= RM_PEEK(&n->evaluator.word->threshold))
        rm_wake_signal(&n->evaluator);
}

static int count_updates(struct native *n, const struct rm_actor_critic_update *u,
                         struct rm_error *error)
{
    RM_ADD_OWN(&n->counters->samples, u->samples);
    n->attempts += u->made + u->skipped;
    const struct rm_counted_updates counted = {.made = u->made,
                                               .skipped = u->skipped,
                                               .skipped_last = u->skipped_last,
                                               .loss = u->loss,
                                               .grad_norm = u->grad_norm,
                                               .learning_rate = u->learning_rate};
    const int verdict = rm_count_updates(n->counters, n->guard, &n->updates, &counted, error);
    if (verdict == RM_GUARD_BACK)
        rm_actor_critic_restored(n->learner);
    return verdict < 0 ? verdict : 0;
}

static int finish(struct native *n, struct rm_error *error)
{
    struct rm_actor_critic_update u;
    rm_actor_critic_collect(n->learner, &u, n->clock);
    count_steps(n);
    const int rc = count_updates(n, &u, error);
    if (rc)
        return rc;
    rm_actor_critic_end(n->learner, n->clock);
    const struct rm_actor_critic_figures f = rm_actor_critic_figures(n->learner);
    rm_count_rollout(n->counters, &f);
    rm_phase_enter(n->clock, RM_PHASE_PUBLISH);
    if (n->late)
        rm_publisher_send(n->publisher, n->updates);
    else
        rm_publisher_publish(n->publisher, rm_actor_critic_params(n->learner), n->updates, 0);
    n->in_hand = false;
    n->number++;
    return 0;
}

/* The last weights are published whatever else was. */
static void finish_run(struct native *n)
{
    rm_publisher_end(n->publisher);
    if (n->publisher->stamped != n->updates)
        rm_publisher_publish(n->publisher, rm_actor_critic_params(n->learner), n->updates, 0);
}

static int native_turn(struct rm_method *method, enum rm_method_turn *did, struct rm_error *error)
{
    struct native *n = of(method);
    const uint64_t all = n->experiment->run.steps;
    *did = RM_METHOD_WORKED;
    if (!n->in_hand && all && n->env_steps >= all) {
        *did = RM_METHOD_FINISHED;
        finish_run(n);
        return 0;
    }
    rm_publisher_poll(n->publisher);
    if (!n->in_hand)
        begin(n);
    if (rm_actor_critic_due(n->learner))
        rm_actor_critic_step(n->learner, n->attempts + 1, rm_share_of_run(n->env_steps, all),
                             n->clock);
    return rm_actor_critic_due(n->learner) ? 0 : finish(n, error);
}

/* --- the rest -------------------------------------------------------------------------------- */

static void native_settings(struct rm_method *method, const struct rm_board_run *run)
{
    rm_take_settings(of(method)->learner, of(method)->counters, run);
}

static const float *native_params(const struct rm_method *method)
{
    return rm_actor_critic_params(of_const(method)->learner);
}

static const struct rm_net *native_net(const struct rm_method *method)
{
    return rm_actor_critic_net(of_const(method)->learner);
}

static uint64_t native_updates(const struct rm_method *method)
{
    return of_const(method)->updates;
}

static void native_load(struct rm_method *method, const float *params)
{
    struct native *n = of(method);
    rm_take_over(n->learner, n->counters, params, n->env_steps);
    rm_guard_renew(n->guard);
}

static bool native_settled(const struct rm_method *method)
{
    return !of_const(method)->in_hand;
}

static void native_state(struct rm_method *method, struct rm_state *s)
{
    struct native *n = of(method);
    RM_STATE(s, "number", n->number);
    RM_STATE(s, "env_steps", n->env_steps);
    RM_STATE(s, "updates", n->updates);
    RM_STATE(s, "attempts", n->attempts);
    rm_native_worlds_state(&n->worlds, s);
    rm_actor_critic_state(n->learner, s);
    rm_guard_state(n->guard, s);
}

static void native_leave(struct rm_method *method)
{
    (void)method; /* nobody waits for it */
}

const struct rm_method_ops rm_native_method = {
    .name = "native",
    .create = native_create,
    .destroy = native_destroy,
    .turn = native_turn,
    .settings = native_settings,
    .params = native_params,
    .net = native_net,
    .updates = native_updates,
    .load = native_load,
    .takes_optimizers = true,
    .settled = native_settled,
    .state = native_state,
    .leave = native_leave,
};
