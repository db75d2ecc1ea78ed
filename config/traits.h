/* traits: properties of each algorithm that actors, session and plan need. One row per algorithm.
 * Read-only data; any thread. */
#ifndef RM_CONFIG_TRAITS_H
#define RM_CONFIG_TRAITS_H

#include "actor/env.h"
#include "config/experiment.h"

#include <stddef.h>

struct rm_algorithm_traits {
    bool rollout;     /* learns from rollouts, once from each, not from replay */
    bool synchronous; /* actors wait until the learner has trained on the previous rollouts
                         (rollout.max_policy_lag) */
    bool policy;      /* the network computes logits, and actors draw actions from their softmax;
                         otherwise it computes values of actions, and actors are epsilon-greedy */
    bool value;       /* the network has a state value beside the logits, for training only */
    bool logp;        /* rows have the log-probability of the action under the policy that acted */
    bool sequences;   /* trains on sequences, whatever its network: rm_learns_sequences() */
    bool devices;     /* one policy can be trained on several GPUs (learner.devices) */
    bool histories;   /* trains on histories, which its network reads (learner/histories.h) */
    bool quantiles;   /* outputs_per_action = algorithm.quantiles */
};

const struct rm_algorithm_traits *rm_algorithm_traits(enum rm_algorithm name);

/* The layers for the observation `name` (network.inputs); NULL if the network has no input of this
 * name. */
const struct rm_input_config *rm_network_input(const struct rm_network_config *network,
                                               const char *name);

/* What combines the inputs of a group, counted from 1, or with 0 those that are in no group. */
enum rm_combine rm_network_combine(const struct rm_network_config *network, uint32_t group);

/* Writes "network.inputs.NAME", with the groups around it, as far as it fits. Returns the length of
 * the whole path. */
size_t rm_network_input_path(const struct rm_network_config *network,
                             const struct rm_input_config *input, char *text, size_t bytes);

/* rm_layer_needs_edges(): does a layer run over the edges of a graph? rm_network_is_of_graph(): is
 * an observation the edges, the own node or the version (NAME_edges, NAME_node, NAME_version) of an
 * input NAME with such a layer? Such an observation has no list of layers. */
bool rm_layer_needs_edges(enum rm_layer_type type);
bool rm_network_is_of_graph(const struct rm_network_config *network, const char *name);

/* Bit i is set if the layers for observation i of the agent begin with an embedding. The network
 * reads such an observation as whole numbers, other observations as floats. */
uint32_t rm_network_codes(const struct rm_network_config *network,
                          const struct rm_env_agent *agent);

/* How evaluations choose actions, for messages: "greedy" or "sampled". */
const char *rm_evaluation_word(const struct rm_experiment *experiment);

/* The row of policy.frozen for this policy; NULL if the policy is trained. */
const struct rm_frozen_config *rm_frozen_policy(const struct rm_experiment *experiment,
                                                uint32_t policy);

/* Has the network layers with a state of their own (lstm, gru)? */
bool rm_network_is_recurrent(const struct rm_network_config *network);

/* Does the algorithm draw sequences from a replay, not transitions? r2d2 does, and clone for a
 * recurrent network. */
bool rm_learns_sequences(const struct rm_experiment *experiment);

/* Steps of a transition of a replay: sample.n_step; 1 for clone, which reads no rewards. */
uint32_t rm_steps_ahead(const struct rm_experiment *experiment);

/* Do actors write rows into replay rings? False for rollouts and with a recording (sample.from). */
bool rm_fills_replay(const struct rm_experiment *experiment);

/* Number of actor processes of a run: 0 with worlds on a device, or with a recording. */
uint32_t rm_actor_processes(const struct rm_experiment *experiment);

#endif
