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
#include "actor/actor_private.h"
#include "shm/atomic.h"

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
    const uint64_t rollout = rm_actor_rows(actor, p) / actor->rollout_rows;
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
        rm_actor_use_weights(actor, p, &stamp);
    }
    actor->ready[p] = rollout + 1;
    return true;
}

/* At the start of a rollout: were enough steps trained on? */
static bool budget_spent(const struct rm_actor *actor)
{
    const struct rm_session *s = actor->session;
    const uint32_t p = rm_plan_first_trained(&s->plan);
    const uint64_t rows = rm_actor_rows(actor, p);
    struct rm_weights_stamp stamp;

    return s->experiment.run.steps && rows % actor->rollout_rows == 0 &&
           rm_weights_read_version(&s->weights[p], version_asked(actor, rows / actor->rollout_rows),
                                   NULL, 0, &stamp) &&
           stamp.env_steps >= s->experiment.run.steps;
}

int rm_actor_work_rollouts(struct rm_actor *actor, struct rm_error *error)
{
    struct rm_session *s = actor->session;
    int rc;

    /* Offer the first rows before there are weights: learners compute the values of the first
     * rollout from them. */
    if (!actor->stepping.started) {
        if (!rm_stepping_has_credit(&actor->stepping))
            return 0;
        if ((rc = rm_stepping_begin(&actor->stepping, error)) < 0)
            return rc;
        for (uint32_t p = 0; p < s->plan.policies; p++)
            rm_wake_signal(&actor->learner[p]);
    }
    for (uint32_t p = 0; p < s->plan.policies; p++)
        if (!take_weights(actor, p))
            return 0;
    if (budget_spent(actor))
        return rm_actor_finish(actor);
    return rm_stepping_has_credit(&actor->stepping) ? rm_actor_step(actor, error) : 0;
}
