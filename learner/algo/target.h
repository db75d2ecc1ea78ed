/* target: moves a target network towards its online network (algorithm.target): by a fraction after
 * every update (soft), or by a copy every so many updates (hard). */
#ifndef RM_LEARNER_ALGO_TARGET_H
#define RM_LEARNER_ALGO_TARGET_H

#include "config/experiment.h"
#include "learner/backend/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far the target network moves towards the parameters after update `number` (from 1). 0: not at
 * all; 1: a copy; else `tau`, which may change during a run. */
double rm_target_part(const struct rm_experiment *experiment, double tau, uint64_t number);

/* Moves `target` by that part towards `params`; both are (count), in the backend's memory. */
void rm_target_move(struct rm_backend *backend, double part, const float *params, size_t count,
                    float *target);

#endif
