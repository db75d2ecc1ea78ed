#include "learner/method.h"

#include "config/traits.h"

const struct rm_method_ops *rm_method_of(const struct rm_experiment *experiment, uint32_t policy)
{
    (void)policy;
    return rm_algorithm_traits(experiment->algorithm.name)->rollout ? &rm_rollout_method
                                                                    : &rm_replay_method;
}
