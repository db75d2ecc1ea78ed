/* on_policy: the common part of methods that learn from rollouts (rollout.c, native.c): an
 * actor-critic learner with its guard, counts of its updates, and publishing of weights after each
 * rollout. struct rm_on_policy is the first member of such a method's struct. */
#ifndef RM_LEARNER_ON_POLICY_H
#define RM_LEARNER_ON_POLICY_H

#include "learner/algo/actor_critic.h"
#include "learner/method.h"

struct rm_on_policy {
    struct rm_method method; /* first */
    struct rm_session *session;
    uint32_t policy, who; /* who: the worker */
    const struct rm_experiment *experiment;
    const struct rm_policy_plan *plan;
    struct rm_board_policy *counters;
    struct rm_publisher *publisher;
    struct rm_phase_clock *clock;

    struct rm_actor_critic *learner;
    struct rm_guard *guard;

    uint64_t number;    /* of the current rollout, or the next */
    bool in_hand;       /* a rollout exists or is being made, and its updates are due */
    uint64_t env_steps; /* predecessors' included */
    uint64_t rows;      /* policy.from: number of rows in the moments of the file */
    uint64_t attempts;  /* updates made or skipped */
    bool late;          /* weights are published without waiting for the device */
};

/* Initialises a zeroed method. */
void rm_on_policy_begin(struct rm_on_policy *p, const struct rm_method_spec *spec,
                        const struct rm_method_ops *ops);

/* Creates the learner. The caller has filled in the members of `learner` that depend on its method;
 * this function fills in the others. */
int rm_on_policy_learner(struct rm_on_policy *p, struct rm_trainer_spec *learner,
                         struct rm_error *error);
/* Creates the guard, after the learner; with `late` the publisher copies from the device without
 * waiting. */
int rm_on_policy_guard(struct rm_on_policy *p, struct rm_backend *backend, struct rm_error *error);

/* Destroys learner and guard; either may be missing. */
void rm_on_policy_end(struct rm_on_policy *p);

/* Counts the result of the latest update, or of all updates of a rollout. Returns a negative number
 * if the guard ends the learner. */
int rm_on_policy_count(struct rm_on_policy *p, const struct rm_actor_critic_update *update,
                       struct rm_error *error);

/* Ends the current rollout: writes its figures to the board and publishes the weights, in `round`
 * (0 outside of rounds). */
void rm_on_policy_publish(struct rm_on_policy *p, uint64_t round);

/* Publishes the last weights in any case. */
void rm_on_policy_finish(struct rm_on_policy *p);

/* Save or load parts of the state: rm_on_policy_state_counts() before the method's own parts,
 * rm_on_policy_state_learner() after them. */
void rm_on_policy_state_counts(struct rm_on_policy *p, struct rm_state *s);
void rm_on_policy_state_learner(struct rm_on_policy *p, struct rm_state *s);

/* Members of rm_method_ops. The state is saved only between rollouts, so it has no part of a
 * rollout. */
void rm_on_policy_settings(struct rm_method *method, const struct rm_board_run *run);
bool rm_on_policy_settled(const struct rm_method *method);

#endif
