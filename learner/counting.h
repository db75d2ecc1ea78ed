/* counting: writes and reads the counters in a policy's block of the board, for all training
 * methods. Used by the learner's thread. */
#ifndef RM_LEARNER_COUNTING_H
#define RM_LEARNER_COUNTING_H

#include "learner/algo/actor_critic.h"
#include "learner/algo/guard.h"
#include "shm/base/error.h"
#include "shm/board.h"

#include <stdbool.h>
#include <stdint.h>

/* Adds the time for which the learner waited for actors, once the wait is over. `waits`: the
 * learner waits now. *since_ns is the start of the wait; 0: no wait. */
void rm_count_waiting(struct rm_board_policy *counters, uint64_t *since_ns, bool waits);

struct rm_counted_update {
    bool skipped;
    double loss, grad_norm, learning_rate;
};

/* Passes an update to the guard and counts it if it is good, also in *updates. Returns the guard's
 * verdict. */
int rm_count_update(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                    const struct rm_counted_update *update, struct rm_error *error);

/* Updates that are reported together. */
struct rm_counted_updates {
    uint32_t made;
    uint32_t skipped, skipped_last;        /* of these, those after the last good update */
    double loss, grad_norm, learning_rate; /* of the latest */
};

/* Has the result of rm_count_update() for one update after another. Updates skipped before the last
 * good update are only counted, because the good update ended their series. */
int rm_count_updates(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                     const struct rm_counted_updates *all, struct rm_error *error);

/* Counts a late report; fills in `report->updates`. `mean` is the mean over the updates made, if
 * any. */
int rm_count_late(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                  const struct rm_counted_update *mean, struct rm_guard_report *report,
                  struct rm_error *error);

/* Counts a finished rollout with its figures. */
void rm_count_rollout(struct rm_board_policy *counters,
                      const struct rm_actor_critic_figures *figures);

/* Copies the board's settings to an actor-critic learner. */
void rm_take_settings(struct rm_actor_critic *learner, struct rm_board_policy *counters,
                      const struct rm_board_run *run);

/* Continues with these parameters (host memory) and the predecessor's figures on the board. `rows`:
 * rows trained on so far. */
void rm_take_over(struct rm_actor_critic *learner, const struct rm_board_policy *counters,
                  const float *params, uint64_t rows);

/* Progress of the run: had / all, from 0 to 1; 0 in a run without an end (all = 0). */
double rm_share_of_run(uint64_t had, uint64_t all);

#endif
