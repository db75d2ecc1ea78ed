/* temperature: alpha of soft actor-critic, learned as its logarithm by Adam (Kingma 2015) down the
 * gradient of alpha (H - target) (Christodoulou 2019, eq. 11), H the policy's entropy in the states
 * of the batch: alpha falls while the entropy is above its target. Plain data. */
#ifndef RM_LEARNER_ALGO_TEMPERATURE_H
#define RM_LEARNER_ALGO_TEMPERATURE_H

#include "learner/backend/soft_ops.h"

#include <math.h>
#include <stdint.h>

static inline struct rm_temperature rm_temperature_of(double alpha)
{
    return (struct rm_temperature){.log = log(alpha)};
}

static inline double rm_temperature_alpha(const struct rm_temperature *temperature)
{
    return exp(temperature->log);
}

/* One step of Adam's; gap = target - H. */
void rm_temperature_move(struct rm_temperature *temperature, const struct rm_soft_step *step,
                         double learning_rate, double gap);

#endif
