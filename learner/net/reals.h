/* reals: computes the real numbers of actions: drawn from a policy's normal distributions
 * (gaussian.h), greedy, or uniform.
 *
 * A result depends only on (seed, lane, step) and on the row's outputs, not on other rows of the
 * batch. Any thread. */
#ifndef RM_LEARNER_NET_REALS_H
#define RM_LEARNER_NET_REALS_H

#include "config/experiment.h"
#include "learner/backend/gaussian.h"
#include "learner/net/categorical.h"

/* For policies of real actions. rm_deviation_of_state(): does the network compute deviations from
 * the state? rm_bounds_by_tanh(): does tanh bound the draws? */
bool rm_deviation_of_state(const struct rm_experiment *experiment);
bool rm_bounds_by_tanh(const struct rm_experiment *experiment);

/* Rows of outputs, and rows of actions. Real numbers are written after the choices of an action. */
struct rm_reals_rows {
    const struct rm_gaussian *gaussian;
    const struct rm_categorical *choices;
    const float *out; /* row i at out + i * stride: logits, then means and deviations */
    size_t stride;
    uint32_t n;
    int32_t *action; /* (n, words) */
};

/* Draws. Adds the log-probability of each row's real numbers to logp (n); logp may be NULL. */
void rm_reals_draw(const struct rm_reals_rows *rows, uint64_t seed, uint64_t step,
                   const uint32_t *lane, float *logp);

/* Writes the means. */
void rm_reals_greedy(const struct rm_reals_rows *rows);

/* For exploration: writes numbers for which the policy's bounded action is uniform between -1 and 1
 * (gaussian.h). `word` has the real numbers of one row. */
void rm_reals_explore(const struct rm_gaussian *gaussian, uint64_t seed, uint64_t step,
                      uint32_t lane, int32_t *word);

#endif
