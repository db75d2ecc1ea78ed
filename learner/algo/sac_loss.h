/* sac_loss: the losses of soft actor-critic, with their gradients: for discrete actions
 * (Christodoulou 2019, "Soft actor-critic for discrete action settings") expectations are sums over
 * all of them, so nothing is drawn; for real ones (Haarnoja 2018, "Soft actor-critic algorithms and
 * applications") they are one draw, an action of probability 1. Pure functions over host memory,
 * callable from any thread.
 *
 * Everything with a batch is (batch, actions), row-major; weights are (batch), NULL: all 1. */
#ifndef RM_LEARNER_ALGO_SAC_LOSS_H
#define RM_LEARNER_ALGO_SAC_LOSS_H

#include <stdint.h>

/* The losses' input: a policy in some states and two estimates of its values there. */
struct rm_sac_view {
    uint32_t batch, actions;
    const float *p, *logp; /* rm_sac_policy() */
    const float *q1, *q2;  /* the minimum is used (eq. 8; Fujimoto 2018) */
    const float *weight;   /* (batch) */
    double alpha;          /* temperature */
    double target_ratio;   /* target entropy, as a fraction of ln(legal actions) */
    const uint8_t *mask;   /* legal actions, NULL: all */
};

/* Probabilities and their logarithms from logits. Illegal actions have 0 and 0. If a row has no
 * legal action, all its actions count as legal: only the end of an episode has such rows, and its
 * value is not used. logp may be the memory of logits. */
void rm_sac_policy(const float *logits, const uint8_t *mask, uint32_t batch, uint32_t actions,
                   float *p, float *logp);

/* y(batch) = ret + discount * sum_a p (min(q1, q2) - alpha log p) (eq. 3, 4): the view is of the
 * next states, with target networks. n-step returns omit the entropies of the steps between. */
void rm_sac_targets(const struct rm_sac_view *next, const float *ret, const float *discount,
                    float *y);

/* Half the squared error of q(b, action[b]) against y, mean over the batch (eq. 5). The
 * caller has zeroed d_q; the function writes the entries of the actions taken. error[b] +=
 * |y - q| / 2, so that two critics make the mean; error may be NULL.
 * action NULL: it is 0. */
double rm_sac_critic_loss(const float *q, uint32_t batch, uint32_t actions, const int32_t *action,
                          const float *y, const float *weight, float *d_q, float *error);

struct rm_sac_policy_loss {
    double loss;    /* sum_a p (alpha log p - min(q1, q2)), mean over the batch (eq. 12) */
    double entropy; /* mean over the batch */
    double gap;     /* of the target entropy over the entropy, mean over the batch */
    double value;   /* sum_a p min(q1, q2), mean over the batch */
};

/* d_logits is overwritten; 0 for illegal actions. Gradients do not pass through the values. */
struct rm_sac_policy_loss rm_sac_policy_loss(const struct rm_sac_view *view, float *d_logits);

/* Of one draw a row, whose values are of that action: d_q (2, batch) is the loss's gradient by
 * them, -1 by the smaller one (Haarnoja 2018, eq. 7; the gap is left 0). */
struct rm_sac_policy_loss rm_sac_drawn_loss(const struct rm_sac_view *view, float *d_q);

#endif
