/* epsilon: the exploration rate as a function of how far the run is. Stateless: the same position
 * gives the same rate in any process. Any thread may call it. */
#ifndef RM_ACTOR_EPSILON_H
#define RM_ACTOR_EPSILON_H

#include "config/experiment.h"

#include <stdint.h>

struct rm_epsilon {
    double start, end;
    double factor; /* exponential: per unit */
    uint64_t span; /* linear: units from start to end */
    enum rm_decay decay;
    enum rm_decay_unit unit;
};

struct rm_epsilon rm_epsilon_of(const struct rm_experiment *experiment);

/* The rate after `units` steps or episodes, counted over all worlds of the run: start .. end.
 * Linear: start + (end - start) min(1, units / span). Exponential: start * factor^units, but never
 * beyond end. */
double rm_epsilon_at(const struct rm_epsilon *epsilon, uint64_t units);

/* As a bound for a uniform 32-bit word w: explore iff w < bound. 0 .. 2^32. */
uint64_t rm_epsilon_bound(double rate);

#endif
