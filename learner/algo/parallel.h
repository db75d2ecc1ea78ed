/* parallel: the trainer of one agent on several devices (learner.devices): a replica of the
 * algorithm's own trainer on each, whose backends are joined (device_collective.h). A batch is cut
 * into equal parts, in order; each replica makes loss and gradient of its part, the means over
 * replicas of gradients, loss and figures take their places, and then every replica judges and
 * steps by the same numbers. So all have the same parameters, target network and moments, to the
 * bit, and the same updates are skipped.
 *
 * Draws are those of the whole batch: a replica takes its rows' part of fractions and dropout and
 * all of the noise. So an update is that of one device, but for the rounding of sums.
 *
 * What is told is the first replica's, errors of samples come from all in the order of the batch.
 * Loading, resuming and going back change the first one and then make the others equal to it. */
#ifndef RM_LEARNER_ALGO_PARALLEL_H
#define RM_LEARNER_ALGO_PARALLEL_H

#include "learner/algo/trainer.h"

/* Of the devices joined with this one: 0 and 1 is one. */
uint32_t rm_parallel_devices(struct rm_backend *backend);

struct rm_update_ops;
struct rm_updates;
int rm_parallel_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                       const struct rm_trainer_spec *spec, struct rm_error *error);

/* Makes the others equal to the first, through the host: by what a checkpoint would have, which is
 * what state() puts. */
void rm_parallel_make_equal(struct rm_updates *const *all, uint32_t count,
                            void (*state)(struct rm_updates *updates, struct rm_state *state));

/* For tests: replica `i`. */
struct rm_trainer *rm_parallel_replica(struct rm_trainer *trainer, uint32_t i);

#endif
