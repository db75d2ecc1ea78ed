/* loss: targets and losses of the value-based algorithms on the CPU; with the loss of distill the
 * CPU's rm_value_ops. */
#ifndef RM_LEARNER_ALGO_LOSS_H
#define RM_LEARNER_ALGO_LOSS_H

#include "learner/algo/algo.h"

/* Returns the part of the batch's mean loss that comes from these rows, by in->kind. Ignores
 * in->d_q. d_q has the layout and size of the network's output. The caller has zeroed d_q; the
 * function writes the entries of the actions taken and, with CQL, adds the gradient of the penalty
 * (rm_cql()) to all entries.
 *
 * Huber loss with threshold kappa of y - q(s, a): u^2 / 2 where |u| <= kappa, else
 * kappa (|u| - kappa / 2). One quantile, one target.
 *
 * Quantile Huber loss (Dabney 2018a, eq. 10): with d_ij = y_j - q_i(s, a),
 * rho_ij = |tau_i - 1{d_ij < 0}| Huber_kappa(d_ij) / kappa. Sum over i, mean over j, mean over the
 * batch (Dabney 2018b, eq. 3); with mean_over_quantiles, the mean over i as well. */
double rm_loss_rows(const struct rm_value_loss *in, float *d_q);

#endif
