/* policy_loss: the loss of actor-critic algorithms on samples of a rollout, as a loss of rows for
 * rm_net_learn(). Over N samples, with ratio = pi(a) / pi_old(a):
 *
 *   policy   ppo, appo:  -1/N sum min(ratio A, clip(ratio, 1 - clip, 1 + clip) A)
 *                        (Schulman 2017, eq. 7)
 *            vtrace:     -1/N sum A ln pi(a)    (Espeholt 2018, section 4.2)
 *   value    1/N sum 1/2 max((V - R)^2, (V_old + clip(V - V_old, +-value_clip) - R)^2);
 *            with value_clip 0: 1/N sum 1/2 (V - R)^2;
 *            with value_clip_maximum "means" the maximum is that of the two means over the
 *            minibatch: only one of the two errors counts, in all of its samples
 *   entropy  1/N sum H(pi)
 *   loss = policy + value_coefficient value - entropy_coefficient entropy
 *
 * With several choices in a step, or real numbers (gaussian.h), ln pi(a) and H are sums over them.
 * Where a bound holds, min and max have gradient 0. Beside the loss it sums figures for the board:
 * KL ~ (ratio - 1) - ln ratio (Schulman 2020, "Approximating KL divergence", the estimator k3), and
 * the number of ratios outside of the clip range. */
#ifndef RM_LEARNER_BACKEND_POLICY_LOSS_H
#define RM_LEARNER_BACKEND_POLICY_LOSS_H

#include "learner/backend/gaussian.h"
#include "learner/net/categorical.h"
#include "learner/net/net.h"

enum rm_policy_sum {
    RM_SUM_POLICY = 0, /* each a sum over samples, to be divided by their number */
    RM_SUM_ENTROPY,    /* as RM_SUM_OF_ENTROPY (value_ops.h) */
    RM_SUM_VALUE,
    RM_SUM_KL,
    RM_SUM_CLIPPED,
    RM_SUM_COUNT
};

/* The error of a value that counts. */
enum rm_value_error {
    RM_ERROR_LARGER = 0, /* of each sample */
    RM_ERROR_FREE,       /* (V - R)^2 */
    RM_ERROR_HELD,       /* that of the clipped value */
};

struct rm_policy_loss {
    struct rm_categorical distribution;
    struct rm_gaussian gaussian;
    uint32_t outputs; /* floats of an output row: logits, means, deviations, then the value */
    float advantage_mean, advantage_scale;
    float scale;      /* 1 / number of samples of the batch: of the gradient, not of the sums */
    float clip;       /* 0: plain policy gradient */
    float value_clip; /* 0: none */
    float value_coefficient, entropy_coefficient;
    uint32_t value_error; /* enum rm_value_error */
    uint32_t unused;
    /* Row i of the batch is row index[i] of these; NULL: row i. */
    const uint32_t *index;
    const int32_t *action;  /* (rows, words) */
    const uint8_t *mask;    /* (rows, actions) or NULL */
    const float *logp;      /* ln pi_old(a) */
    const float *advantage; /* A = (advantage - advantage_mean) * advantage_scale */
    const float *target;    /* R */
    const float *value;     /* V_old */
    const float *valid;     /* 1: a sample; 0: none, without loss and gradient */
};

/* The two errors of a value, and the loss and gradient of the one that counts. */
struct rm_value_errors {
    float free, held;  /* squared errors of the value and of the clipped value */
    float loss, slope; /* of the one that counts */
};

RM_BOTH struct rm_value_errors rm_value_errors(float v, float target, float old, float value_clip,
                                               uint32_t which)
{
    const float most = value_clip > 0 ? value_clip : INFINITY;
    const float off = v - target, moved = v - old;
    const float above = moved < -most ? -most : moved;
    const float bounded = above > most ? most : above;
    const bool within = bounded == moved;
    const float held = within ? off : old + bounded - target;
    struct rm_value_errors e = {off * off, held * held, 0, 0};
    const bool free = which == RM_ERROR_LARGER ? e.free >= e.held : which == RM_ERROR_FREE;
    e.loss = 0.5f * (free ? e.free : e.held);
    e.slope = free || within ? off : 0;
    return e;
}

/* Adds the squares of both errors over samples [first, first + rows), whose output is `out`, to
 * sums[0], of the value, and sums[1], of the clipped value. */
void rm_policy_loss_add_errors(const struct rm_policy_loss *loss, uint32_t first, uint32_t rows,
                               const float *out, double sums[2]);

/* The error with the larger sum; RM_ERROR_FREE if the sums are equal. */
RM_BOTH enum rm_value_error rm_larger_error(double free, double held)
{
    return held > free ? RM_ERROR_HELD : RM_ERROR_FREE;
}

/* The rows function of struct rm_net_loss; self is a struct rm_policy_loss. */
void rm_policy_loss_rows(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                         double sums[RM_NET_SUMS]);

#endif
