/* policy_file: a policy on disk, with all that is needed to use it elsewhere. A safetensors file:
 * the tensors are the network's parameters by name, the metadata (strings, some of them JSON) says
 * what network they belong to, how an observation becomes its input and how its output becomes an
 * action.
 *
 * Metadata: format ("ringmaster-policy-1"), experiment, policy, world (JSON), algorithm, quantiles,
 * acting_quantiles, network (JSON), observation (JSON: dtype, shape, low, high, features, and for
 * code8 codes, channels, codebook), frame_stack, actions, masks, seed, updates, env_steps. */
#ifndef RM_LEARNER_NET_POLICY_FILE_H
#define RM_LEARNER_NET_POLICY_FILE_H

#include "actor/env.h"
#include "config/experiment.h"
#include "learner/net/net.h"
#include "shm/base/error.h"

#include <stdint.h>

#define RM_POLICY_FORMAT "ringmaster-policy-1"

struct rm_policy_file {
    const struct rm_experiment *experiment;
    const char *policy; /* its name */
    const struct rm_env_agent *agent;
    const struct rm_net *net;
    const float *params; /* (param_count), host memory */
    uint64_t updates, env_steps;
};

/* Writes DIRECTORY/NAME.safetensors, making the folder and those above it as needed. */
int rm_policy_file_write(const struct rm_policy_file *policy, const char *directory,
                         struct rm_error *error);

#endif
