/* loss: the two losses of the value-based algorithms, with their gradients. */
#ifndef RM_LEARNER_ALGO_LOSS_H
#define RM_LEARNER_ALGO_LOSS_H

#include "learner/algo/algo.h"

/* Huber loss with threshold kappa of y - q(s, a), averaged over the batch:
 * u^2 / 2 where |u| <= kappa, else kappa (|u| - kappa / 2). One quantile, one target. */
double rm_loss_huber(const struct rm_algo_loss_input *in, float *d_q);

/* Quantile Huber loss (Dabney 2018a, eq. 10): with d_ij = y_j - q_i(s, a),
 * rho_ij = |tau_i - 1{d_ij < 0}| Huber_kappa(d_ij) / kappa. Sum over i, mean over j, mean over the
 * batch (Dabney 2018b, eq. 3); with mean_over_quantiles, the mean over i as well. */
double rm_loss_quantile_huber(const struct rm_algo_loss_input *in, float *d_q);

#endif
