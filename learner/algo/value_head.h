/* value_head: computes the value v = mean + deviation * z from the network's output z. A plain head
 * and PopArt have the same interface, so updates do not distinguish them.
 *
 * Plain: mean 0 and deviation 1, always.
 *
 * PopArt (van Hasselt 2016, "Learning values across many orders of magnitude"; Hessel 2019): mean
 * mu and deviation sigma follow the returns,
 *
 *   mu' = (1 - beta) mu + beta E[G]       nu' = (1 - beta) nu + beta E[G^2]     (eq. 5)
 *   sigma' = sqrt(nu' - mu'^2), within [1e-4, 1e6]                              (eq. 6)
 *   w' = w sigma / sigma'                 b' = (sigma b + mu - mu') / sigma'    (proposition 1)
 *
 * so that a state's value does not change when the scale of its targets does. beta of the k-th
 * update is max(1 / k, algorithm.popart_beta). algorithm.popart_deviation "averaged" selects the
 * deviation of the Goodhart grid's original: sigma'^2 = (1 - beta) sigma^2 + beta s^2, where s^2 is
 * the unbiased variance of the batch and s is at least 1e-4.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_VALUE_HEAD_H
#define RM_LEARNER_ALGO_VALUE_HEAD_H

#include "config/experiment.h"
#include "learner/algo/moments.h"
#include "learner/backend/policy_ops.h"
#include "learner/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_value_head {
    struct rm_value_head_state state; /* saved in checkpoints */
    enum rm_value_follow follow;      /* nothing, or PopArt */
    struct rm_net_value_output output;
    double beta_least;
};

/* output: rm_net_value_output() of the network. Cannot fail; nothing to destroy. */
void rm_value_head_create(struct rm_value_head *head, const struct rm_experiment *experiment,
                          struct rm_net_value_output output);

/* The head's rule, for backends; the state is in the backend's memory. */
struct rm_value_head_step rm_value_head_step(const struct rm_value_head *head,
                                             struct rm_value_head_state *state, float *params);

/* The step on the CPU: moves mean and deviation towards returns with these moments, and changes the
 * head's weights and bias so that values stay the same. Call once per rollout, before the gradient
 * steps. Returns false, and changes nothing, if there are no returns or a return is not finite. */
bool rm_value_head_follow(struct rm_backend *cpu, const struct rm_value_head_step *step,
                          struct rm_moments returns);

/* Continues from a checkpoint, or from a predecessor's mean and deviation on the board. Deviation 0
 * (the predecessor had none) changes nothing. */
void rm_value_head_resume(struct rm_value_head *head, struct rm_value_head_state state);
struct rm_value_head_state rm_value_head_left(double mean, double deviation, uint64_t updates);

#endif
