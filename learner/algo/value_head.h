/* value_head: what the output z of the network's value means: v = mean + deviation * z. Plain and
 * PopArt behind one interface; an update never asks which it is.
 *
 * Plain: mean 0 and deviation 1 for ever.
 *
 * PopArt (van Hasselt 2016, "Learning values across many orders of magnitude"; Hessel 2019): mean
 * mu and deviation sigma follow the returns,
 *
 *   mu' = (1 - beta) mu + beta E[G]       nu' = (1 - beta) nu + beta E[G^2]     (eq. 5)
 *   sigma' = sqrt(nu' - mu'^2), within [1e-4, 1e6]                              (eq. 6)
 *   w' = w sigma / sigma'                 b' = (sigma b + mu - mu') / sigma'    (proposition 1)
 *
 * so that what the network says of a state does not change when the scale of its targets does. beta
 * of the k-th update is max(1 / k, algorithm.popart_beta). With algorithm.popart_deviation
 * "averaged" the deviation is that of the Goodhart grid's original instead: sigma'^2 = (1 - beta)
 * sigma^2 + beta s^2, s^2 the unbiased variance of the batch, s at least 1e-4.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_VALUE_HEAD_H
#define RM_LEARNER_ALGO_VALUE_HEAD_H

#include "config/experiment.h"
#include "learner/algo/moments.h"
#include "learner/backend/backend.h"
#include "learner/net/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a checkpoint keeps. */
struct rm_value_head_state {
    double mean, deviation;
    double second;    /* nu */
    uint64_t updates; /* made: k - 1 of the next one */
};

struct rm_value_head {
    struct rm_value_head_state state;
    const struct rm_value_head_ops *ops; /* plain or PopArt */
    struct rm_backend *backend;
    struct rm_net_value_output output;
    double beta_least;
};

/* output: rm_net_value_output() of the network. The backend outlives the head. Cannot fail; nothing
 * to destroy. */
void rm_value_head_create(struct rm_value_head *head, const struct rm_experiment *experiment,
                          struct rm_backend *backend, struct rm_net_value_output output);

/* Follows the returns of which these are the moments and moves the head's weights and bias in
 * `params` (the backend's memory) so that values stay what they were. Call it once per rollout,
 * before the gradient steps, and if it returns true, rm_net_prepare() after it. No returns, or
 * some that are not finite, change nothing. */
bool rm_value_head_update(struct rm_value_head *head, struct rm_moments returns, float *params);

/* Goes on from a checkpoint, or from the mean and deviation that a predecessor left on the board.
 * deviation 0 (it left none) changes nothing. */
void rm_value_head_resume(struct rm_value_head *head, struct rm_value_head_state state);
struct rm_value_head_state rm_value_head_left(double mean, double deviation, uint64_t updates);

static inline float rm_value_of(const struct rm_value_head *head, float z)
{
    return (float)(head->state.mean + head->state.deviation * (double)z);
}

/* And back: what z should be where the value is v. */
static inline float rm_value_target(const struct rm_value_head *head, float v)
{
    return (float)(((double)v - head->state.mean) / head->state.deviation);
}

/* The same of n numbers; `to` may be `from`. */
void rm_values_of(const struct rm_value_head *head, const float *from, size_t n, float *to);
void rm_value_targets(const struct rm_value_head *head, const float *from, size_t n, float *to);

#endif
