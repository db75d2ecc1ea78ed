/* policy_from: the key policy.from, the files from which policies start: a path for all policies,
 * or paths by the names of policies. The experiment has it as JSON; paths are absolute once the
 * experiment was loaded from a file. */
#ifndef RM_CONFIG_POLICY_FROM_H
#define RM_CONFIG_POLICY_FROM_H

#include "config/experiment.h"
#include "shm/base/error.h"

#include <stddef.h>

/* The file from which this policy starts. false: none; its weights are drawn. */
bool rm_policy_from(const struct rm_experiment *experiment, const char *policy, char *path,
                    size_t bytes);

/* Calls `each` with every name that the key lists; with one path for all policies, never. Returns
 * the first result that is not 0. */
typedef int (*rm_policy_from_fn)(void *user, const char *policy);
int rm_policy_from_each(const struct rm_experiment *experiment, rm_policy_from_fn each, void *user);

/* Makes relative paths absolute, from `folder`. -EINVAL: a path gets too long; -ENOMEM. */
int rm_policy_from_place(struct rm_experiment *experiment, const char *folder,
                         struct rm_error *error);

#endif
