/* Private to the trainer of dqn_device.c: its state, and the updates of dqn_device_update.c. */
#ifndef RM_LEARNER_ALGO_DQN_DEVICE_H
#define RM_LEARNER_ALGO_DQN_DEVICE_H

#include "learner/algo/dqn_private.h"
#include "learner/algo/record.h"
#include "learner/algo/staging.h"

/* What an update changes: [0] there, [1] a copy. */
struct rm_dqn_kept {
    void *at[2];
    size_t bytes;
};

/* What comes back of an update. */
struct rm_dqn_told {
    struct rm_device_figures figures;
    struct rm_device_drawn drawn; /* zeros where the host draws */
};

struct rm_dqn_device {
    struct rm_dqn d; /* first; batch: of this device */
    uint32_t replica, replicas;
    struct rm_dqn_kept kept[5 + RM_OPTIMIZER_ARENAS]; /* while it is recorded */
    struct rm_staging staging;
    bool watched;   /* debug.check_finite: not captured */
    bool normalise; /* network.normalize_observations */

    /* Device memory. */
    struct rm_device_figures *figures; /* the optimizer's */
    float *noise;                      /* (noise_count), NULL when the network has no noisy layer */
    float *tau;       /* (all replicas' batch, most quantiles) drawn, or fixed, NULL: none */
    float *y;         /* (batch, target_quantiles) */
    double *partials; /* (2 * batch) */

    /* What was told and not reported. */
    struct rm_trainer_report heard; /* mean: sums over `made` until it is reported */
    double samples;                 /* of these */
    uint64_t made, skipped;         /* all that were told of, since create */
    uint64_t reported_through;
    bool afresh;                  /* the next update is the first that was not told of */
    uint64_t launched;            /* number of the last update begun */
    double told_rate;             /* learning rate of told_through */
    struct rm_device_drawn drawn; /* by all that was told of */
    struct rm_dqn_told *pinned;   /* for figures out of turn */
};

/* An update in two halves, on the COMPUTE stream: up to the gradient, and from its norm on. */
void rm_dqn_put_gradient(struct rm_dqn_device *t, const struct rm_staging_slot *slot);
void rm_dqn_put_step(struct rm_dqn_device *t, const struct rm_staging_slot *slot);

/* Waits; the norm is of the gradient as it is, not yet judged. */
struct rm_trainer_result rm_dqn_look_at_gradient(struct rm_dqn_device *t);

extern const struct rm_recorded_ops rm_dqn_recorded; /* dqn_device_recorded.c */

/* Members of struct rm_trainer_ops. */
struct rm_trainer_result rm_dqn_device_update(struct rm_trainer *trainer,
                                              const struct rm_batch *batch, uint64_t number,
                                              struct rm_phase_clock *clock);
struct rm_trainer_result rm_dqn_device_gradient(struct rm_trainer *trainer,
                                                const struct rm_batch *batch, uint64_t number,
                                                struct rm_phase_clock *clock);
struct rm_batch *rm_dqn_device_batch(struct rm_trainer *trainer);
struct rm_batch *rm_dqn_device_learned(struct rm_trainer *trainer);
bool rm_dqn_device_report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *report);
const uint64_t *rm_dqn_device_made(const struct rm_trainer *trainer);

#endif
