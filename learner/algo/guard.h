/* guard: what becomes of updates that were not finite. The trainer reports after each one whether
 * its loss and the norm of its gradient were finite - both are computed anyway, so this costs
 * nothing. One that was not is skipped by the optimizer and counted here (updates_skipped); after
 * debug.finite_patience of them in a row everything that was declared goes back to the last good
 * copy (rollbacks); after debug.rollbacks_max of those the learner gives up.
 *
 * A copy is taken every RM_GUARD_INTERVAL finite updates and is good once the next update, which is
 * made of what was copied, has turned out finite too. So there are two: one that is good and one
 * that may become so. On a device copies are in its memory, and made on its COMPUTE stream.
 *
 * Belongs to one learner's thread; nothing is allocated after rm_guard_ready(). */
#ifndef RM_LEARNER_ALGO_GUARD_H
#define RM_LEARNER_ALGO_GUARD_H

#include "config/experiment.h"
#include "learner/algo/optimizer.h"
#include "learner/backend/backend.h"
#include "shm/base/error.h"
#include "shm/board.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RM_GUARD_INTERVAL 100u

struct rm_guard;

/* All outlive the guard. name: of the policy, for words; counters may be NULL. */
int rm_guard_create(struct rm_guard **guard, const struct rm_experiment *experiment,
                    struct rm_backend *backend, struct rm_board_policy *counters, const char *name,
                    struct rm_error *error);
void rm_guard_destroy(struct rm_guard *guard);

/* Declares what goes back together: arenas in the backend's memory, plain data in the host's, an
 * optimizer's moments and steps. At most RM_GUARD_PARTS in all; an optimizer is four at most. */
#define RM_GUARD_PARTS 32
void rm_guard_floats(struct rm_guard *guard, float *arena, size_t floats);
void rm_guard_bytes(struct rm_guard *guard, void *data, size_t bytes);
void rm_guard_optimizer(struct rm_guard *guard, struct rm_optimizer *optimizer);

/* All is declared and has its first values. */
int rm_guard_ready(struct rm_guard *guard, struct rm_error *error);

/* What was declared was replaced from outside (a predecessor's weights): old copies are void. */
void rm_guard_renew(struct rm_guard *guard);

enum rm_guard_verdict {
    RM_GUARD_GOOD = 0,
    RM_GUARD_SKIPPED, /* nothing was changed */
    RM_GUARD_BACK,    /* everything declared is the last good copy again: networks need
                       * rm_net_prepare(), derived data must be computed again */
};

/* For checkpoints (shm/base/state.h): how often it has gone back, and what it counts. What was
 * loaded takes the place of its last good copy. */
struct rm_state;
void rm_guard_state(struct rm_guard *guard, struct rm_state *state);

/* After an update. `updates`: good ones so far, this one included if it was. Returns a verdict, or
 * -EDOM: it gives up, and *error says so. */
int rm_guard_judge(struct rm_guard *guard, bool finite, double loss, double grad_norm,
                   uint64_t updates, struct rm_error *error);

/* The same of updates that are judged some time after they were made (on a device), while others
 * are under way. */
struct rm_guard_report {
    uint64_t made, skipped;  /* since the report before */
    uint64_t skipped_in_row; /* at its end; all updates before are over where there are too many */
    uint64_t through;        /* number of its last update, skipped ones counted */
    uint64_t launched;       /* updates begun so far, counted likewise */
    uint64_t updates;        /* good ones so far */
    double loss, grad_norm;  /* of its last update */
};
int rm_guard_judge_late(struct rm_guard *guard, const struct rm_guard_report *report,
                        struct rm_error *error);

#endif
