/* soft_ops: policy, targets and losses of soft actor-critic, operations that every backend has
 * (learner/algo/learning.h). The equations are in learner/algo/sac_loss.h and temperature.h.
 * Pointers are to the backend's memory; arrays without a stated shape are (batch, actions).
 *
 * REAL ACTIONS. An expectation over discrete actions is a sum over all of them; over real actions
 * it is one draw (Haarnoja 2018, eq. 7): one action of probability 1, whose logp is the draw's. So
 * targets and losses are the same. The draw, which is an input of the critics, and the gradient
 * through critics and draw are different. */
#ifndef RM_LEARNER_BACKEND_SOFT_OPS_H
#define RM_LEARNER_BACKEND_SOFT_OPS_H

#include "learner/backend/device.h"
#include "learner/backend/gaussian.h"

/* The temperature alpha: Adam learns its logarithm. */
struct rm_temperature {
    double log, m, v; /* with Adam's moments */
    uint64_t steps;
};

/* A policy in some states and two estimates of its values there. */
struct rm_soft_states {
    uint32_t batch, actions;
    const float *logits; /* NULL: p and logp are there */
    const float *q1, *q2;
    const uint8_t *mask;                      /* legal actions, NULL: all */
    const struct rm_temperature *temperature; /* (1) */
    float *p, *logp;                          /* scratch: the policy's probabilities */
};

struct rm_soft_critic_loss {
    uint32_t batch, actions;
    uint32_t critic;       /* 0: the first, which resets errors, and the loss */
    uint32_t after_policy; /* 1: not the loss, which has the policy's part */
    const float *q;
    const int32_t *action; /* (batch); NULL: there is one */
    const float *y;        /* (batch) */
    const float *weight;   /* (batch), NULL: all 1 */
    float *error;          /* (batch): the mean over critics of |y - q|; NULL: not needed */
    float *d_q;            /* written all over */
    struct rm_update_figures *figures; /* last_loss */
};

struct rm_soft_policy_loss {
    struct rm_soft_states states;
    const float *weight;               /* (batch), NULL: all 1 */
    double target_ratio;               /* target entropy, as a fraction of ln(legal actions) */
    double target_entropy;             /* itself, where logits are NULL */
    float *d_logits;                   /* written all over; where logits are NULL those of the two
                                          values, (2, batch) */
    struct rm_update_figures *figures; /* added to last_loss, or set where logits are NULL;
                                          now_sums, enum rm_value_sum, of one sample */
};

/* Of real actions: (batch, reals) but where said. */
struct rm_soft_draw {
    struct rm_gaussian gaussian; /* through tanh */
    uint32_t batch, unused;
    const float *out;    /* (batch, 2 reals) of the policy */
    const float *normal; /* standard normals */
    float *drawn;        /* before tanh */
    float *action;       /* after it */
    float *p, *logp;     /* (batch) 1, and that of the action */
};

/* The gradient of the policy's loss by its outputs, where critics have given theirs by the action.
 */
struct rm_soft_draw_back {
    struct rm_soft_draw draw;
    const float *d_action[2]; /* (batch, reals) */
    const float *weight;      /* (batch), NULL: all 1 */
    const struct rm_temperature *temperature;
    const struct rm_update_figures *figures;
    float *d_out; /* (batch, 2 reals) */
};

struct rm_soft_step {
    double beta1, beta2, epsilon;
    const struct rm_update_knobs *knobs; /* the learning rate */
    const struct rm_update_figures
        *figures; /* the gap; if the update is skipped, alpha does not move */
    struct rm_temperature *temperature;
};

struct rm_soft_ops {
    /* y(batch): the states are the next ones, with target networks. */
    void (*targets)(struct rm_backend *b, const struct rm_soft_states *next, const float *ret,
                    const float *discount, float *y);
    void (*critic_loss)(struct rm_backend *b, const struct rm_soft_critic_loss *loss);
    void (*policy_loss)(struct rm_backend *b, const struct rm_soft_policy_loss *loss);
    void (*temperature)(struct rm_backend *b, const struct rm_soft_step *step);
    void (*draw)(struct rm_backend *b, const struct rm_soft_draw *draw);
    void (*draw_back)(struct rm_backend *b, const struct rm_soft_draw_back *back);
    /* n actions of rows, as critics are given them: tanh of what was drawn. */
    void (*bound)(struct rm_backend *b, const int32_t *word, size_t n, float *action);
};

/* --- of both sides --------------------------------------------------------------------------- */

/* One row: drawn, action and logp. */
RM_BOTH void rm_soft_draw_row(const struct rm_soft_draw *d, size_t row)
{
    const uint32_t reals = d->gaussian.reals;
    const float *mean = d->out + row * 2 * reals;
    float logp = 0.0f;
    for (uint32_t i = 0; i < reals; i++) {
        const size_t at = row * reals + i;
        const float log_deviation = rm_log_deviation(mean[reals + i]);
        const float u = mean[i] + expf(log_deviation) * d->normal[at];
        d->drawn[at] = u;
        d->action[at] = rm_gaussian_bounded(u, 1);
        logp +=
            -0.5f * d->normal[at] * d->normal[at] - log_deviation - 0.91893853f - rm_log_squash(u);
    }
    d->logp[row] = logp;
    d->p[row] = 1.0f;
}

/* One row of d_out. With u = mean + deviation normal, ln pi has d/du = 2 tanh(u) and d/d ln
 * deviation = -1 besides; `share` is the row's weight by the size of the batch, scaled as gradients
 * are. */
RM_BOTH void rm_soft_draw_back_row(const struct rm_soft_draw_back *k, size_t row, float alpha_share)
{
    const struct rm_soft_draw *d = &k->draw;
    const uint32_t reals = d->gaussian.reals;
    const float *given = d->out + row * 2 * reals + reals;
    float *d_mean = k->d_out + row * 2 * reals;
    for (uint32_t i = 0; i < reals; i++) {
        const size_t at = row * reals + i;
        const float a = d->action[at], log_deviation = rm_log_deviation(given[i]);
        const float d_action = k->d_action[0][at] + k->d_action[1][at];
        const float d_u = d_action * (1.0f - a * a) + alpha_share * 2.0f * a;
        d_mean[i] = d_u;
        d_mean[reals + i] = given[i] == log_deviation
                                ? d_u * expf(log_deviation) * d->normal[at] - alpha_share
                                : 0.0f;
    }
}

#endif
