/* schedule: the learning rate over a run, as a factor of optimizer.learning_rate. The factor
 * depends only on the configuration, the update's number and the run's progress, so a restarted
 * learner continues with its predecessor's rate. */
#ifndef RM_LEARNER_ALGO_SCHEDULE_H
#define RM_LEARNER_ALGO_SCHEDULE_H

#include "config/experiment.h"

#include <stdint.h>

/* The factor of update number `update` (from 1). Over the first `warmup` updates it rises as update
 * / warmup. Then it falls from 1 to `end`: over `span` updates, or if span is 0 with `progress`,
 * the fraction of the run's steps made (0 to 1; 0 if the run has no end).
 *
 *   linear   1 - (1 - end) x
 *   cosine   end + (1 - end) (1 + cos(pi x)) / 2    (Loshchilov 2017, eq. 5, without restarts)
 *
 * x = (update - 1 - warmup) / span, or progress, clipped to [0, 1]. */
double rm_schedule_factor(const struct rm_experiment *experiment, uint64_t update, double progress);

#endif
