/* algo: a table of the value-based algorithms DQN, QR-DQN and IQN. All three treat a network's
 * output as quantiles of the return, q(b, action, j). DQN has one quantile, the expectation; QR-DQN
 * has fixed fractions; IQN draws its fractions tau. So all three share the code for the next
 * action, targets and gradients, and a row of the table has only the differences.
 *
 * Sources: DQN (Mnih 2015), double DQN (van Hasselt 2016, eq. 4), n-step (Hessel 2018), QR-DQN
 * (Dabney 2018a, eq. 10 and algorithm 1), IQN (Dabney 2018b, eq. 3 and algorithm 1).
 *
 * Pure functions over host memory, callable from any thread. */
#ifndef RM_LEARNER_ALGO_ALGO_H
#define RM_LEARNER_ALGO_ALGO_H

#include "config/experiment.h"
#include "learner/backend/value_ops.h"
#include "learner/backend/batch.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_algo {
    const char *name;     /* as in algorithm.name */
    bool drawn_fractions; /* IQN: the network takes tau */
    bool fixed_fractions; /* QR-DQN: the fractions are midpoints */
    enum rm_value_loss_kind loss;
    struct rm_value_layout (*layout)(uint32_t actions, uint32_t quantiles);
};

/* The row of an algorithm; NULL if the table has none. */
const struct rm_algo *rm_algo_of(enum rm_algorithm name);

/* QR-DQN: tau_i = (2i + 1) / 2n, i = 0 .. n-1, for each row: tau is (batch, n). */
void rm_algo_midpoints(uint32_t batch, uint32_t n, float *tau);

/* action[b] = argmax over legal actions of the mean over quantiles; the first of equal ones. mask
 * (batch, actions) or NULL. If a row has no legal action, all its actions count as legal: only the
 * end of an episode has such rows, and its value is not used. */
void rm_algo_greedy(const float *q, const struct rm_value_layout *layout, uint32_t batch,
                    const uint8_t *mask, int32_t *action);

/* y(batch, quantiles) = ret + discount * q(b, action[b], j). If discount is 0, y = ret, even if q
 * is not finite. */
void rm_algo_targets(const float *q, const struct rm_value_layout *layout, uint32_t batch,
                     const int32_t *action, const float *ret, const float *discount, float *y);

/* Mean over batch and quantiles of q(b, action[b], .). */
double rm_algo_mean_q(const float *q, const struct rm_value_layout *layout, uint32_t batch,
                      const int32_t *action);

#endif
