/* traits: properties of each algorithm that actors, session and plan need. One row per algorithm.
 * Read-only data; any thread. */
#ifndef RM_CONFIG_TRAITS_H
#define RM_CONFIG_TRAITS_H

#include "actor/env.h"
#include "config/experiment.h"

struct rm_algorithm_traits {
    bool rollout;     /* learns from rollouts, once from each, not from replay */
    bool synchronous; /* actors wait for the weights of the rollout before (max_policy_lag) */
    bool policy;      /* acts by a distribution: the network's acting part computes logits, and
                       * actors draw from their softmax; otherwise it computes values, and actors
                       * are epsilon-greedy */
    bool value;       /* the network has a state value beside the logits, for training only */
    bool logp;        /* rows keep the behaviour's log-probability */
    bool sequences;   /* trains on sequences from stored recurrent states */
    bool devices;     /* can be trained on several GPUs together (learner.devices) */
    bool quantiles;   /* outputs_per_action = algorithm.quantiles */
};

const struct rm_algorithm_traits *rm_algorithm_traits(enum rm_algorithm name);

/* The layers of an observation, NULL where the network has no input of this name. */
const struct rm_input_config *rm_network_input(const struct rm_network_config *network,
                                               const char *name);

/* Whether a layer runs over the edges of a graph; whether an observation belongs to one: the edges,
 * the own node or the version (NAME_edges, NAME_node, NAME_version) of an input NAME with such a
 * layer. It has no list of layers of its own. */
bool rm_layer_needs_edges(enum rm_layer_type type);
bool rm_network_is_of_graph(const struct rm_network_config *network, const char *name);

/* Which of the agent's observations the network begins with an embedding: bit i for observation i.
 * Those are its input as whole numbers, not as floats. */
uint32_t rm_network_codes(const struct rm_network_config *network,
                          const struct rm_env_agent *agent);

/* How evaluations choose actions, for messages: "greedy" or "sampled". */
const char *rm_evaluation_word(const struct rm_experiment *experiment);

/* The row of policy.frozen for this policy; NULL if the policy is trained. */
const struct rm_frozen_config *rm_frozen_policy(const struct rm_experiment *experiment,
                                                uint32_t policy);

/* Do actors insert into rings for replay? Not for rollouts, and not with a recording. */
bool rm_fills_replay(const struct rm_experiment *experiment);

/* Number of actor processes of a run: 0 with worlds on a device, or with a recording. */
uint32_t rm_actor_processes(const struct rm_experiment *experiment);

#endif
