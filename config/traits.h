/* traits: what follows from algorithm.name for everybody else - actors, session, plan. One row per
 * algorithm. Read-only data; any thread. */
#ifndef RM_CONFIG_TRAITS_H
#define RM_CONFIG_TRAITS_H

#include "config/experiment.h"

struct rm_algorithm_traits {
    bool rollout;     /* learns from rollouts, each once, not from replay */
    bool synchronous; /* actors wait for the weights of the rollout before (max_policy_lag) */
    bool policy;      /* acts by a distribution: the network's acting part gives logits, actors draw
                         from softmax; else it gives values, actors are epsilon-greedy */
    bool value;       /* the network has a state value beside the logits, for training only */
    bool logp;        /* rows keep the behaviour's log-probability */
    bool sequences;   /* trains on sequences from stored recurrent states */
    bool device;      /* can be trained on a GPU */
    bool devices;     /* and on several together (learner.devices) */
    bool quantiles;   /* outputs_per_action = algorithm.quantiles */
};

const struct rm_algorithm_traits *rm_algorithm_traits(enum rm_algorithm name);

/* Whether the network begins with an embedding: then its input is the world's whole numbers, not
 * floats made of them. */
bool rm_network_takes_codes(const struct rm_network_config *network);

/* How evaluations answer, for words: "greedy" or "sampled". */
const char *rm_evaluation_word(const struct rm_experiment *experiment);

/* Is this policy a frozen opponent? NULL if not. */
const struct rm_frozen_config *rm_frozen_policy(const struct rm_experiment *experiment,
                                                uint32_t policy);

/* Actor processes of a run: none where worlds are on a device. */
uint32_t rm_actor_processes(const struct rm_experiment *experiment);

#endif
