/* policy_file: writes and reads a policy as a file, with the metadata that other programs need to
 * use it. The file is a safetensors file. Its tensors are the network's parameters by name. Its
 * metadata (strings, some of them JSON) describe the network, how an observation becomes its input,
 * and how its output becomes an action.
 *
 * Metadata: format ("ringmaster-policy-1"), experiment, policy, world (JSON), algorithm, quantiles,
 * acting_quantiles, network (JSON), observation (JSON: dtype, shape, low, high, features, and for
 * code8 codes, channels, codebook), frame_stack, actions, masks, seed, updates, env_steps; of a
 * network of histories history (JSON: places, width, queries, types, as in history.h). */
#ifndef RM_LEARNER_NET_POLICY_FILE_H
#define RM_LEARNER_NET_POLICY_FILE_H

#include "actor/env.h"
#include "config/experiment.h"
#include "learner/net/net.h"
#include "shm/base/error.h"

#include <stdint.h>

#define RM_POLICY_FORMAT   "ringmaster-policy-1"
#define RM_POLICY_NAME_MAX 48

struct rm_policy_file {
    const struct rm_experiment *experiment;
    const char *policy; /* its name */
    const struct rm_env_agent *agent;
    const struct rm_net *net;
    const float *params; /* (param_count), host memory */
    uint64_t updates, env_steps;
};

/* Writes DIRECTORY/NAME.safetensors; creates missing folders. */
int rm_policy_file_write(const struct rm_policy_file *policy, const char *directory,
                         struct rm_error *error);

/* The name and the steps of the policy in a file. */
struct rm_policy_file_facts {
    char name[RM_POLICY_NAME_MAX];
    uint64_t env_steps;
};

/* -EPROTO: the file has no policy. */
int rm_policy_file_facts(const char *path, struct rm_policy_file_facts *facts,
                         struct rm_error *error);

/* Reads params (param_count of net) from a file; with params NULL only checks the file. -EPROTO: a
 * tensor is missing, has another shape, or does not belong to the network. The message has one line
 * for each such tensor, as many as fit. */
int rm_policy_file_read(const struct rm_net *net, const char *path, float *params,
                        struct rm_error *error);

#endif
