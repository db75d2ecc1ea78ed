/* counting: what methods that learn put on their policy's board in the same way, and what they take
 * from it. Belongs to the learner's thread. */
#ifndef RM_LEARNER_COUNTING_H
#define RM_LEARNER_COUNTING_H

#include "learner/algo/actor_critic.h"
#include "learner/algo/guard.h"
#include "shm/base/error.h"
#include "shm/board.h"

#include <stdbool.h>
#include <stdint.h>

/* The time that it waits for actors, counted when that is over. *since_ns: when it began to, 0 = it
 * does not. */
void rm_count_waiting(struct rm_board_policy *counters, uint64_t *since_ns, bool waits);

struct rm_counted_update {
    bool skipped;
    double loss, grad_norm, learning_rate;
};

/* Judges an update; a good one is counted, in *updates as well. Returns the guard's verdict. */
int rm_count_update(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                    const struct rm_counted_update *update, struct rm_error *error);

/* Several, of which one hears at once. */
struct rm_counted_updates {
    uint32_t made;
    uint32_t skipped, skipped_last;        /* and of these, after the last that was made */
    double loss, grad_norm, learning_rate; /* of the latest */
};

/* As if they were judged one by one; those that were skipped before the last good one are counted
 * alone, because they were not the end of anything. */
int rm_count_updates(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                     const struct rm_counted_updates *all, struct rm_error *error);

/* What a report says of updates that were made some time ago; `report->updates` is filled in.
 * `mean` is of those made, if any. */
int rm_count_late(struct rm_board_policy *counters, struct rm_guard *guard, uint64_t *updates,
                  const struct rm_counted_update *mean, struct rm_guard_report *report,
                  struct rm_error *error);

/* A rollout was learned from, and came to this. */
void rm_count_rollout(struct rm_board_policy *counters,
                      const struct rm_actor_critic_figures *figures);

/* An actor-critic learner's settings are the board's now. */
void rm_take_settings(struct rm_actor_critic *learner, struct rm_board_policy *counters,
                      const struct rm_board_run *run);

/* It goes on from these parameters (host memory) and from what its predecessor left on the board;
 * `rows` were learned from by then. */
void rm_take_over(struct rm_actor_critic *learner, const struct rm_board_policy *counters,
                  const float *params, uint64_t rows);

/* `had` of `all`: 0 to 1; 0 of a run without an end (all 0). */
double rm_share_of_run(uint64_t had, uint64_t all);

#endif
