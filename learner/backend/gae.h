/* gae: generalised advantage estimation (Schulman 2016, eq. 16) over a rollout of many lanes side
 * by side, which distinguishes termination, truncation and the rollout's end.
 *
 * A rollout is (steps + 1, lanes), time first; its last row is the successor of the last step. A
 * sample is a row t whose action led to row t + 1:
 *
 *   delta_t = r_(t+1) + discount_t V_(t+1) - V_t
 *   A_t     = delta_t + discount_t lambda A_(t+1),  return_t = A_t + V_t
 *
 * discount_t is gamma, or 0 if the episode terminated in row t + 1. If it was truncated in row
 * t + 1, or the rollout ends there, V_(t+1) is the value of the true last observation, and A_(t+1)
 * is 0 because that row is not a sample. Rows that are not samples (valid 0) have advantage 0,
 * discount 0, and their value as return.
 *
 * In float: an advantage is a sum of at most 1 / (1 - gamma lambda) deltas that matter. */
#ifndef RM_LEARNER_BACKEND_GAE_H
#define RM_LEARNER_BACKEND_GAE_H

#include <stdint.h>

struct rm_rollout_rows {
    uint32_t steps, lanes;
    const float *reward;   /* (steps + 1, lanes) on arriving in the row */
    const float *value;    /* (steps + 1, lanes) */
    const float *discount; /* (steps, lanes) */
    const float *valid;    /* (steps, lanes) 1: a sample; 0: none */
};

/* advantage, target: (steps, lanes). */
void rm_gae(const struct rm_rollout_rows *rows, float lambda, float *advantage, float *target);

#endif
