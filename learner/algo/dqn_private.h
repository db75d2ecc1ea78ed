/* Private to the trainers of the value-based algorithms: what dqn.c and dqn_device.c have in
 * common. */
#ifndef RM_LEARNER_ALGO_DQN_PRIVATE_H
#define RM_LEARNER_ALGO_DQN_PRIVATE_H

#include "learner/algo/algo.h"
#include "learner/algo/followed.h"

/* The passes of an update, which key noise and fractions: pass p of update n has key
 * n * RM_DQN_COUNT + p. */
enum rm_dqn_pass { RM_DQN_CHOOSE, RM_DQN_TARGET, RM_DQN_ONLINE, RM_DQN_COUNT };

struct rm_dqn {
    struct rm_followed f; /* first */
    const struct rm_algo *algo;
    uint32_t batch, inputs, actions;
    uint32_t quantiles, target_quantiles; /* of the outputs; DQN: 1 */
};

/* Everything of the above. What was made by then is left for rm_followed_close(). */
int rm_dqn_open(struct rm_dqn *dqn, const struct rm_trainer_spec *spec, struct rm_error *error);

static inline uint32_t rm_dqn_most_quantiles(const struct rm_dqn *dqn)
{
    return dqn->quantiles > dqn->target_quantiles ? dqn->quantiles : dqn->target_quantiles;
}

/* Member of struct rm_trainer_ops. */
double rm_dqn_update_flops(const struct rm_trainer *trainer);

#endif
