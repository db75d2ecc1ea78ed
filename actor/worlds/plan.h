/* plan: computes agents, policies and sizes from an experiment's world and networks. The plan
 * depends only on the experiment, so the daemon and each worker make the same plan. */
#ifndef RM_ACTOR_WORLDS_PLAN_H
#define RM_ACTOR_WORLDS_PLAN_H

#include "actor/env.h"
#include "shm/session/session.h"
#include "learner/net/net.h"

/* Opens the world, maps agents to policies, compiles each policy's network for its size. A policy
 * of a single agent has the agent's name ("agent_0"); others are "shared" or "policy_N". Errors:
 * those of the world and the networks; agents of one policy have different observations or actions,
 * or fewer steps than the policy's learner needs (config/check.h). */
int rm_plan_make(struct rm_plan *plan, const struct rm_experiment *experiment,
                 struct rm_error *error);

/* The figure that a rule of the curriculum compares with its bound. */
struct rm_plan_figure {
    enum { RM_PLAN_RETURN, RM_PLAN_LENGTH, RM_PLAN_FIGURE, RM_PLAN_WORD } what;
    uint32_t agent, figure, word;
};

/* Finds the figure by its name. Returns 0 if there is no rule, too. */
int rm_plan_stage_figure(const struct rm_plan *plan, const struct rm_stage_rule *rule,
                         struct rm_plan_figure *figure, struct rm_error *error);

/* For a new run: checks that the files of policy.from exist, are for policies of the plan, and fit
 * their networks. The message has a line for each mismatch. */
int rm_plan_check_from(const struct rm_plan *plan, const struct rm_experiment *experiment,
                       struct rm_error *error);

/* Writes the path of the file from which a policy starts (policy.from). A frozen policy without a
 * file starts from its source policy's file. Returns false if there is no file. */
bool rm_plan_from(const struct rm_plan *plan, const struct rm_experiment *experiment,
                  uint32_t policy, char *path, size_t bytes);

/* The shape of the network for agents like `agent`: inputs, outputs, and the heads that the
 * experiment's algorithm needs. Plan, actors and learners compile networks with this shape. */
struct rm_net_shape rm_plan_net_shape(const struct rm_experiment *experiment,
                                      const struct rm_env_agent *agent);

/* Outputs per action of the experiment's algorithm: 1; for QR-DQN the number of quantiles. */
uint32_t rm_plan_outputs_per_action(const struct rm_experiment *experiment);

/* Do actors store the state value in a row? They do if the learner would compute the same value:
 * with the same trunk, the same weights (PPO that waits for them) and no noise. */
bool rm_plan_values(const struct rm_experiment *experiment);

/* Number of leading floats of the arena that actors and evaluators copy: the acting part; with
 * actor.noise also the sigmas, which are the rest of a network of values; with rm_plan_values()
 * also the value head. */
size_t rm_plan_act_count(const struct rm_experiment *experiment, const struct rm_net *net);

#endif
