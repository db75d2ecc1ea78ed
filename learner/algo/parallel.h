/* parallel: the trainer of one agent on several devices (learner.devices). Each device has a
 * replica: a trainer of its own, on a backend that is joined with the others (device_collective.h).
 * A batch is cut into equal parts, in order. Each replica computes loss and gradient of its part;
 * the means of gradients, loss and figures over all replicas replace the replicas' own; then every
 * replica judges and steps with the same numbers. So all replicas have the same parameters, target
 * network and moments, to the bit, and skip the same updates.
 *
 * Random numbers are those of the whole batch: a replica uses its rows' part of fractions and
 * dropout, and all of the noise. So an update equals that of one device, except for the rounding of
 * sums.
 *
 * The first replica's results are the trainer's; errors of samples come from all replicas, in the
 * order of the batch. Loading, resuming and rolling back change the first replica, then make the
 * others equal to it. */
#ifndef RM_LEARNER_ALGO_PARALLEL_H
#define RM_LEARNER_ALGO_PARALLEL_H

#include "learner/algo/trainer.h"

/* Number of devices joined with this one; 0 or 1: there is only one. */
uint32_t rm_parallel_devices(struct rm_backend *backend);

struct rm_update_ops;
struct rm_updates;
int rm_parallel_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                       const struct rm_trainer_spec *spec, struct rm_error *error);

/* Makes the others equal to the first, through the host: copies the state that a checkpoint would
 * have, which `state` saves and loads. */
void rm_parallel_make_equal(struct rm_updates *const *all, uint32_t count,
                            void (*state)(struct rm_updates *updates, struct rm_state *state));

#endif
