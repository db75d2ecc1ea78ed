/* updates_staged: runs updates.h on a device. Batches are copied to the device while earlier
 * updates compute; an update is one launch; its result is late (trainer.h).
 *
 * Two settings make the host wait for every update. With network.normalize_observations the host
 * computes the moments, without the batches of skipped updates. With debug.check_finite the host
 * searches the numbers between gradient and step, and the update is not captured. */
#ifndef RM_LEARNER_ALGO_UPDATES_STAGED_H
#define RM_LEARNER_ALGO_UPDATES_STAGED_H

#include "learner/algo/staging.h"
#include "learner/algo/updates.h"

/* Results of updates. */
struct rm_staged_figures {
    struct rm_update_figures figures;
    struct rm_device_drawn drawn; /* zeros if the host draws */
};

struct rm_staged_updates {
    struct rm_staging staging;
    /* Results that arrived and were not reported. */
    struct rm_trainer_report unreported; /* mean: sums over `made` until it is reported */
    double samples;                      /* in `unreported` */
    uint64_t made, skipped;              /* updates whose results arrived, since create */
    uint64_t reported_through;
    bool afresh;                      /* the next update is the first without results */
    uint64_t launched;                /* number of the last update begun */
    struct rm_device_drawn drawn;     /* counts of all draws whose results arrived */
    struct rm_staged_figures *pinned; /* for fetch_figures() */
};

/* The two halves of a slot's update, in the COMPUTE queue: up to the gradient, and from its norm
 * on. */
void rm_staged_put_gradient(struct rm_updates *updates, uint32_t slot);
void rm_staged_put_step(struct rm_updates *updates, uint32_t slot);

/* Waits for the gradient and returns the result; the norm is the one before clipping. */
struct rm_trainer_result rm_staged_gradient_result(struct rm_updates *updates);

#endif
