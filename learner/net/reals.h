/* reals: the real numbers of actions, drawn from a policy's normals (gaussian.h) or greedy.
 *
 * Functions of (seed, lane, step) and of the row's outputs, never of the batch. Any thread. */
#ifndef RM_LEARNER_NET_REALS_H
#define RM_LEARNER_NET_REALS_H

#include "config/experiment.h"
#include "learner/backend/gaussian.h"
#include "learner/net/categorical.h"

/* Of policies of real actions: is the deviation made of the state, and do draws go through tanh? */
bool rm_deviation_of_state(const struct rm_experiment *experiment);
bool rm_bounds_by_tanh(const struct rm_experiment *experiment);

/* Rows of outputs, and of actions behind whose choices the reals are written. */
struct rm_reals_rows {
    const struct rm_gaussian *gaussian;
    const struct rm_categorical *choices;
    const float *out; /* row i at out + i * stride: logits, then means and deviations */
    size_t stride;
    uint32_t n;
    int32_t *action; /* (n, words) */
};

/* `logp` (n): that of each row is added; may be NULL. */
void rm_reals_draw(const struct rm_reals_rows *rows, uint64_t seed, uint64_t step,
                   const uint32_t *lane, float *logp);

/* The means. */
void rm_reals_greedy(const struct rm_reals_rows *rows);

/* Uniform within the policy's bounds -1 and 1, as numbers that become that (gaussian.h). One row:
 * `word` are its reals. */
void rm_reals_explore(const struct rm_gaussian *gaussian, uint64_t seed, uint64_t step,
                      uint32_t lane, int32_t *word);

#endif
