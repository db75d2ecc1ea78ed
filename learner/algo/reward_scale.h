/* reward_scale: divides rewards by the running deviation of the discounted return
 * (algorithm.normalize_rewards), so that losses have the same scale in every world. As in the PPO
 * of Dhariwal et al. (2017, OpenAI baselines; detail 36 of the ICLR blog track 2022): every lane
 * keeps
 *
 *   R <- gamma R + r,  and starts at 0 again after an episode's end,
 *
 * one variance is kept over the R of all lanes, and a reward becomes r / sqrt(variance + 1e-8),
 * clipped to +-algorithm.reward_clip. The mean is not subtracted, because that would change the
 * optimal policy.
 *
 * Rewards are added one vector step after another, with lanes in the order of worlds, so the
 * numbers do not depend on the number of actors. If rewards are not normalised, the divisor is 1
 * and nothing is clipped. Belongs to one thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_REWARD_SCALE_H
#define RM_LEARNER_ALGO_REWARD_SCALE_H

#include "config/experiment.h"
#include "learner/algo/moments.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A lane after a step. */
enum rm_reward_lane {
    RM_REWARD_GOES_ON = 0,
    RM_REWARD_ENDS,   /* the reward was the episode's last: terminated or truncated */
    RM_REWARD_ABSENT, /* no reward: the return restarts at 0 */
};

struct rm_reward_scale {
    bool on;
    double gamma;
    float clip; /* infinite: none */
    uint32_t lanes;
    double *returns; /* (lanes) */
    struct rm_moments moments;
};

int rm_reward_scale_create(struct rm_reward_scale *scale, const struct rm_experiment *experiment,
                           uint32_t lanes, struct rm_error *error);
void rm_reward_scale_destroy(struct rm_reward_scale *scale);

/* Adds one vector step: rewards and enum rm_reward_lane of every lane. A step with a reward that is
 * not finite does not count in the variance. */
void rm_reward_scale_add(struct rm_reward_scale *scale, const float *rewards, const uint8_t *lanes);

/* Continues from the predecessor's divisor on the board, as if it came from `count` rewards. */
void rm_reward_scale_resume(struct rm_reward_scale *scale, double divisor, double count);

/* The divisor of rewards; 1 before the first reward. */
double rm_reward_scale_divisor(const struct rm_reward_scale *scale);

/* Divides and clips, in place. */
void rm_reward_scale_apply(const struct rm_reward_scale *scale, float *rewards, size_t n);

#endif
