#include "config/traits.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct rm_algorithm_traits traits[] = {
    [RM_ALGORITHM_DQN] = {.devices = true},
    [RM_ALGORITHM_QR_DQN] = {.devices = true, .quantiles = true},
    [RM_ALGORITHM_IQN] = {.devices = true},
    [RM_ALGORITHM_R2D2] = {.sequences = true},
    [RM_ALGORITHM_SAC] = {.policy = true, .devices = true},
    [RM_ALGORITHM_PPO] = {.rollout = true,
                          .synchronous = true,
                          .policy = true,
                          .value = true,
                          .logp = true,
                          .devices = true},
    [RM_ALGORITHM_APPO] =
        {.rollout = true, .policy = true, .value = true, .logp = true, .devices = true},
    [RM_ALGORITHM_VTRACE] =
        {.rollout = true, .policy = true, .value = true, .logp = true, .devices = true},
    [RM_ALGORITHM_CLONE] = {.policy = true, .value = true, .devices = true},
    [RM_ALGORITHM_DISTILL] = {.policy = true, .histories = true, .devices = true},
};
static_assert(sizeof traits / sizeof traits[0] == RM_ALGORITHM_COUNT, "a row per algorithm");

const struct rm_algorithm_traits *rm_algorithm_traits(enum rm_algorithm name)
{
    return &traits[name];
}

static bool keeps_state(const struct rm_layer_config *layers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (layers[i].type == RM_LAYER_GRU || layers[i].type == RM_LAYER_LSTM)
            return true;
    return false;
}

bool rm_network_is_recurrent(const struct rm_network_config *network)
{
    for (uint32_t i = 0; i < network->input_count; i++)
        if (keeps_state(network->input_layers + network->inputs[i].first,
                        network->inputs[i].layer_count))
            return true;
    return keeps_state(network->layers, network->layer_count);
}

bool rm_learns_sequences(const struct rm_experiment *experiment)
{
    return rm_algorithm_traits(experiment->algorithm.name)->sequences ||
           (experiment->algorithm.name == RM_ALGORITHM_CLONE &&
            rm_network_is_recurrent(&experiment->network));
}

uint32_t rm_steps_ahead(const struct rm_experiment *experiment)
{
    return experiment->algorithm.name == RM_ALGORITHM_CLONE ? 1 : experiment->sample.n_step;
}

bool rm_fills_replay(const struct rm_experiment *experiment)
{
    return !rm_algorithm_traits(experiment->algorithm.name)->rollout &&
           !rm_experiment_is_offline(experiment);
}

uint32_t rm_actor_processes(const struct rm_experiment *experiment)
{
    return experiment->actor.device == RM_ACTOR_CPU && !rm_experiment_is_offline(experiment)
               ? experiment->actor.count
               : 0;
}

const struct rm_input_config *rm_network_input(const struct rm_network_config *network,
                                               const char *name)
{
    for (uint32_t i = 0; i < network->input_count; i++)
        if (!network->inputs[i].is_group && strcmp(network->inputs[i].name, name) == 0)
            return &network->inputs[i];
    return NULL;
}

enum rm_combine rm_network_combine(const struct rm_network_config *network, uint32_t group)
{
    return group ? network->inputs[group - 1].combine : network->combine;
}

size_t rm_network_input_path(const struct rm_network_config *network,
                             const struct rm_input_config *input, char *text, size_t bytes)
{
    size_t used = 0;
    if (input->group)
        used = rm_network_input_path(network, &network->inputs[input->group - 1], text, bytes);
    if (used < bytes)
        used += (size_t)snprintf(text + used, bytes - used, "%s.inputs.%s",
                                 input->group ? "" : "network", input->name);
    return used;
}

bool rm_layer_needs_edges(enum rm_layer_type type)
{
    return type == RM_LAYER_MESSAGE_PASSING || type == RM_LAYER_GRAPH_ATTENTION ||
           type == RM_LAYER_GRAPH_POOL;
}

bool rm_network_is_of_graph(const struct rm_network_config *network, const char *name)
{
    static const char *const parts[] = {"_edges", "_node", "_version"};
    for (uint32_t i = 0; i < network->input_count; i++) {
        const struct rm_input_config *input = &network->inputs[i];
        const size_t length = strlen(input->name);
        bool graph = false;
        for (uint32_t k = 0; k < input->layer_count; k++)
            graph = graph || rm_layer_needs_edges(network->input_layers[input->first + k].type);
        for (size_t k = 0; graph && k < sizeof parts / sizeof *parts; k++)
            if (!strncmp(name, input->name, length) && !strcmp(name + length, parts[k]))
                return true;
    }
    return false;
}

uint32_t rm_network_codes(const struct rm_network_config *network, const struct rm_env_agent *agent)
{
    uint32_t codes = 0;
    if (agent->observations == 0 || (network->input_count == 0 && agent->observations == 1))
        return network->layer_count > 0 && network->layers[0].type == RM_LAYER_EMBEDDING;
    for (uint32_t i = 0; i < agent->observations; i++) {
        const struct rm_input_config *input = rm_network_input(network, agent->observation[i].name);
        if (input && input->layer_count &&
            network->input_layers[input->first].type == RM_LAYER_EMBEDDING)
            codes |= UINT32_C(1) << i;
    }
    return codes;
}

const char *rm_evaluation_word(const struct rm_experiment *experiment)
{
    const bool draws = traits[experiment->algorithm.name].policy;

    return draws && experiment->evaluation.answer == RM_ANSWER_SAMPLE ? "sampled" : "greedy";
}

const struct rm_frozen_config *rm_frozen_policy(const struct rm_experiment *experiment,
                                                uint32_t policy)
{
    for (uint32_t i = 0; i < experiment->policy.frozen_count; i++)
        if (experiment->policy.frozen[i].policy == policy)
            return &experiment->policy.frozen[i];
    return NULL;
}
