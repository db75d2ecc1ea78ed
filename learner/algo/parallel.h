/* parallel: the trainer of one agent on several devices (learner.devices). Each device has a
 * replica: a trainer of its own, on a backend that is joined with the others (device_collective.h).
 * A batch is cut into equal parts, in order. Each replica computes loss and gradient of its part.
 * The means of gradients, loss and figures over all replicas replace each replica's own. Then every
 * replica makes its step with the same numbers. So all replicas have the same parameters, target
 * network and moments, to the bit, and skip the same updates.
 *
 * Random numbers are drawn as for the whole batch: a replica uses the fractions and dropout of its
 * rows, and all of the noise. So an update on several devices equals an update on one, except for
 * the rounding of sums.
 *
 * The trainer's results are those of the first replica. Errors of samples come from all replicas,
 * in the order of the batch. Loading, resuming and rolling back change the first replica, and then
 * copy its state to the others. */
#ifndef RM_LEARNER_ALGO_PARALLEL_H
#define RM_LEARNER_ALGO_PARALLEL_H

#include "learner/algo/trainer.h"

/* Number of devices joined with the backend's device, itself included; 0 or 1: there is only
 * one. */
uint32_t rm_parallel_devices(struct rm_backend *backend);

struct rm_update_ops;
struct rm_updates;
int rm_parallel_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                       const struct rm_trainer_spec *spec, struct rm_error *error);

/* Copies the first replica's state to the others, through the host. `state` saves and loads the
 * state that a checkpoint has. */
void rm_parallel_make_equal(struct rm_updates *const *all, uint32_t count,
                            void (*state)(struct rm_updates *updates, struct rm_state *state));

#endif
