/* updates_staged: the device's side of updates.h. Batches are copied to the device while the
 * updates before compute, an update is one launch, and the host learns of it late (trainer.h).
 *
 * Two settings make every update wait for its end, because the host has a part in it:
 * network.normalize_observations, whose moments are the host's and take in no skipped batch, and
 * debug.check_finite, which looks through numbers between gradient and step and is not captured. */
#ifndef RM_LEARNER_ALGO_UPDATES_STAGED_H
#define RM_LEARNER_ALGO_UPDATES_STAGED_H

#include "learner/algo/staging.h"
#include "learner/algo/updates.h"

/* What comes back of updates. */
struct rm_staged_figures {
    struct rm_update_figures figures;
    struct rm_device_drawn drawn; /* zeros where the host draws */
};

struct rm_staged_updates {
    struct rm_staging staging;
    /* What came back and was not reported. */
    struct rm_trainer_report unreported; /* mean: sums over `made` until it is reported */
    double samples;                      /* of these */
    uint64_t made, skipped;              /* all that came back, since create */
    uint64_t reported_through;
    bool afresh;                      /* the next update is the first that nothing came back of */
    uint64_t launched;                /* number of the last update begun */
    struct rm_device_drawn drawn;     /* by all that came back */
    struct rm_staged_figures *pinned; /* for figures out of turn */
};

/* The two halves of a slot's update, on the COMPUTE stream: up to the gradient, and from its norm
 * on. */
void rm_staged_put_gradient(struct rm_updates *updates, uint32_t slot);
void rm_staged_put_step(struct rm_updates *updates, uint32_t slot);

/* Waits; the norm is of the gradient as it is, not yet judged. */
struct rm_trainer_result rm_staged_gradient_result(struct rm_updates *updates);

#endif
