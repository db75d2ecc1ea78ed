/* soft_ops: policy, targets and losses of discrete soft actor-critic, operations that every backend
 * has (learner/algo/learning.h). Equations are those of learner/algo/sac_loss.h and temperature.h.
 * Pointers are the backend's memory; what is not said to be else is (batch, actions). */
#ifndef RM_LEARNER_BACKEND_SOFT_OPS_H
#define RM_LEARNER_BACKEND_SOFT_OPS_H

#include "learner/backend/device.h"

/* alpha, learned as its logarithm by Adam. */
struct rm_temperature {
    double log, m, v; /* with Adam's moments */
    uint64_t steps;
};

/* A policy in some states and two estimates of its values there. */
struct rm_soft_states {
    uint32_t batch, actions;
    const float *logits, *q1, *q2;
    const uint8_t *mask;                      /* legal actions, NULL: all */
    const struct rm_temperature *temperature; /* (1) */
    float *p, *logp;                          /* scratch: of the policy */
};

struct rm_soft_critic_loss {
    uint32_t batch, actions;
    uint32_t critic; /* 0: the first, which resets loss and errors */
    const float *q;
    const int32_t *action; /* (batch) */
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
    float *d_logits;                   /* written all over */
    struct rm_update_figures *figures; /* added to last_loss; now_sums, enum rm_value_sum, of one
                                          sample */
};

struct rm_soft_step {
    double beta1, beta2, epsilon;
    const struct rm_update_knobs *knobs;     /* the learning rate */
    const struct rm_update_figures *figures; /* the gap; nothing is moved where it is skipped */
    struct rm_temperature *temperature;
};

struct rm_soft_ops {
    /* y(batch): the states are the next ones, with target networks. */
    void (*targets)(struct rm_backend *b, const struct rm_soft_states *next, const float *ret,
                    const float *discount, float *y);
    void (*critic_loss)(struct rm_backend *b, const struct rm_soft_critic_loss *loss);
    void (*policy_loss)(struct rm_backend *b, const struct rm_soft_policy_loss *loss);
    void (*temperature)(struct rm_backend *b, const struct rm_soft_step *step);
};

#endif
