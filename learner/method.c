#include "learner/method.h"

#include "config/traits.h"
#include "shm/atomic.h"

const struct rm_method_ops *rm_method_of(const struct rm_experiment *experiment, uint32_t policy)
{
    if (rm_frozen_policy(experiment, policy))
        return &rm_frozen_method;
    if (experiment->actor.device != RM_ACTOR_CPU)
        return &rm_native_method;
    return rm_algorithm_traits(experiment->algorithm.name)->rollout ? &rm_rollout_method
                                                                    : &rm_replay_method;
}

bool rm_actors_done(const struct rm_session *session)
{
    for (uint32_t a = 0; a < session->objects.actors; a++)
        if (RM_SEE(&session->board.workers[a].state) != RM_WORKER_DONE)
            return false;
    return true;
}
