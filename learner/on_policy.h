/* on_policy: what methods have in common that learn from rollouts, wherever these are made
 * (rollout.c, native.c): an actor-critic learner and its guard, what is counted of its updates, and
 * the weights that are published after each rollout. The first member of such a method. */
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

    uint64_t number;    /* of the rollout in hand, or the next */
    bool in_hand;       /* it is there, or being made, and updates are due */
    uint64_t env_steps; /* predecessors' included */
    uint64_t updates;   /* made, predecessors' included */
    uint64_t attempts;  /* and skipped */
    bool late;          /* weights are published without waiting for the device */
};

/* Of a method that is all zeros. */
void rm_on_policy_begin(struct rm_on_policy *p, const struct rm_method_spec *spec,
                        const struct rm_method_ops *ops);

/* Makes the learner; what of `learner` is this method's own is filled in. */
int rm_on_policy_learner(struct rm_on_policy *p, struct rm_actor_critic_spec *learner,
                         struct rm_error *error);
/* Its guard, behind it; and, where `late`, the publisher follows the device. */
int rm_on_policy_guard(struct rm_on_policy *p, struct rm_backend *backend, struct rm_error *error);

/* Either may not be there. */
void rm_on_policy_end(struct rm_on_policy *p);

/* What came of the latest update, or of all of a rollout's. Negative: the guard gives up. */
int rm_on_policy_count(struct rm_on_policy *p, const struct rm_actor_critic_update *update,
                       struct rm_error *error);

/* The rollout in hand was learned from: its figures go to the board, its weights to the actors, in
 * `round` (0 outside of rounds). */
void rm_on_policy_publish(struct rm_on_policy *p, uint64_t round);

/* The last weights are published whatever else was. */
void rm_on_policy_finish(struct rm_on_policy *p);

/* Parts of its state: those before a method's own and those behind. */
void rm_on_policy_state_counts(struct rm_on_policy *p, struct rm_state *s);
void rm_on_policy_state_learner(struct rm_on_policy *p, struct rm_state *s);

/* Members of rm_method_ops. A rollout in hand is learned from to its end before state is taken: it
 * is not part of that. */
void rm_on_policy_settings(struct rm_method *method, const struct rm_board_run *run);
const float *rm_on_policy_params(const struct rm_method *method);
const struct rm_net *rm_on_policy_net(const struct rm_method *method);
uint64_t rm_on_policy_updates(const struct rm_method *method);
bool rm_on_policy_settled(const struct rm_method *method);

#endif
