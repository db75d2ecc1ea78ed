#include "learner/method.h"

#include "config/traits.h"

const struct rm_method_ops *rm_method_of(const struct rm_experiment *experiment, uint32_t policy)
{
    if (rm_frozen_policy(experiment, policy))
        return &rm_frozen_method;
    if (experiment->actor.device != RM_ACTOR_CPU)
        return &rm_native_method;
    return rm_algorithm_traits(experiment->algorithm.name)->rollout ? &rm_rollout_method
                                                                    : &rm_replay_method;
}
