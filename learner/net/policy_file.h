/* policy_file: a policy on disk, with the metadata for using it in other programs. The file is a
 * safetensors file: its tensors are the network's parameters by name. Its metadata (strings, some
 * of them JSON) describe the network, the way from an observation to its input and the way from its
 * output to an action.
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

/* What a file says of its policy. */
struct rm_policy_file_facts {
    char name[RM_POLICY_NAME_MAX];
    uint64_t env_steps;
};

/* -EPROTO: the file has no policy. */
int rm_policy_file_facts(const char *path, struct rm_policy_file_facts *facts,
                         struct rm_error *error);

/* Fills params (param_count of net) from a file; NULL: only checks that it could. -EPROTO names
 * each tensor that is missing, has another shape or is not the network's, a sentence and a line
 * each, as many as fit. */
int rm_policy_file_read(const struct rm_net *net, const char *path, float *params,
                        struct rm_error *error);

#endif
