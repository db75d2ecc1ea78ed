/* plan: what the world and the networks of an experiment imply - agents, policies, sizes. A pure
 * function of the experiment: daemon and workers each make their own and must agree. */
#ifndef RM_ACTOR_WORLDS_PLAN_H
#define RM_ACTOR_WORLDS_PLAN_H

#include "actor/env.h"
#include "shm/session/session.h"
#include "learner/net/net.h"

/* Opens the world, maps agents to policies, compiles each policy's network for its size.
 * Policies are named after their agent when independent ("agent_0"), else "shared" or "policy_N".
 * Errors: what a world or network refuses; agents of one policy that differ in what they see or do,
 * or yield less than its learner needs (config/check.h).
 */
int rm_plan_make(struct rm_plan *plan, const struct rm_experiment *experiment,
                 struct rm_error *error);

/* What a rule of the curriculum looks at. */
struct rm_plan_figure {
    enum { RM_PLAN_RETURN, RM_PLAN_LENGTH, RM_PLAN_FIGURE, RM_PLAN_WORD } what;
    uint32_t agent, figure, word;
};

/* Finds it by name; 0 where there is no rule. */
int rm_plan_stage_figure(const struct rm_plan *plan, const struct rm_stage_rule *rule,
                         struct rm_plan_figure *figure, struct rm_error *error);

/* For a new run: do the files of policy.from exist, are they for policies of the plan,
 * and do they fit their networks? Every mismatch is a line of the message. */
int rm_plan_check_from(const struct rm_plan *plan, const struct rm_experiment *experiment,
                       struct rm_error *error);

/* The file that a policy starts from (policy.from): its own, or that of the policy whose snapshots
 * it plays. false: none. */
bool rm_plan_from(const struct rm_plan *plan, const struct rm_experiment *experiment,
                  uint32_t policy, char *path, size_t bytes);

/* The shape of the network of a policy whose agents are like `agent`: what it sees, does, and what
 * the experiment's algorithm wants at its end. Plan, actors and learners compile with this. */
struct rm_net_shape rm_plan_net_shape(const struct rm_experiment *experiment,
                                      const struct rm_env_agent *agent);

/* outputs per action of the experiment's algorithm: 1, or QR-DQN's quantiles. */
uint32_t rm_plan_outputs_per_action(const struct rm_experiment *experiment);

/* Whether actors keep the state value of what they answer to. They do where that is the value which
 * the learner would make of the row: the same trunk, the same weights (PPO that waits for them) and
 * no noise. */
bool rm_plan_values(const struct rm_experiment *experiment);

/* Leading floats of the arena that actors and evaluators copy: what acts, with actor.noise the
 * sigmas behind it, which are the rest of a network of values, and with rm_plan_values() the head
 * of the value. */
size_t rm_plan_act_count(const struct rm_experiment *experiment, const struct rm_net *net);

#endif
