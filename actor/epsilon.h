/* epsilon: the exploration rate as a function of the steps or episodes made. Pure functions, so
 * every process computes the same rate at the same position. Any thread may call them. */
#ifndef RM_ACTOR_EPSILON_H
#define RM_ACTOR_EPSILON_H

#include "config/experiment.h"

#include <stdint.h>

struct rm_epsilon {
    double start, end;
    double factor; /* exponential decay: factor per unit */
    uint64_t span; /* linear decay: units from start to end */
    enum rm_decay decay;
    enum rm_decay_unit unit;
};

struct rm_epsilon rm_epsilon_of(const struct rm_experiment *experiment);

/* The rate after `units` steps or episodes, counted over all worlds of the run. Between start and
 * end. Linear: start + (end - start) min(1, units / span). Exponential: start * factor^units, but
 * never beyond end. */
double rm_epsilon_at(const struct rm_epsilon *epsilon, uint64_t units);

/* Converts a rate to a bound, 0 .. 2^32: explore if a uniform 32-bit word is below the bound. */
uint64_t rm_epsilon_bound(double rate);

#endif
