/* target: moves a target network towards its online network (algorithm.target): softly, by a
 * fraction after every update, or hard, by copies. */
#ifndef RM_LEARNER_ALGO_TARGET_H
#define RM_LEARNER_ALGO_TARGET_H

#include "config/experiment.h"
#include "learner/backend/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The target's step towards the parameters after update `number` (from 1): 0: none, 1: a copy, else
 * tau, which may change during a run. */
double rm_target_part(const struct rm_experiment *experiment, double tau, uint64_t number);

/* Moves `target` by that part towards `params`; both are (count), in the backend's memory. */
void rm_target_move(struct rm_backend *backend, double part, const float *params, size_t count,
                    float *target);

#endif
