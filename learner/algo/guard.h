/* guard: counts updates that are not finite, and rolls back. After each update the trainer reports
 * whether its loss and the norm of its gradient were finite; every update computes both, so the
 * report costs nothing. The optimizer skips an update that is not finite, and the guard counts it
 * (updates_skipped). After debug.finite_patience such updates in a row the guard restores all
 * declared memory from the last good copy (rollbacks). After debug.rollbacks_max rollbacks the
 * learner fails.
 *
 * The guard copies every RM_GUARD_INTERVAL finite updates. A copy is good once the next update,
 * made from the copied numbers, is finite too. So there are two copies: a good one and a candidate.
 * Copies of the backend's memory stay there.
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

/* All arguments outlive the guard. name: the policy's, for messages; counters may be NULL. */
int rm_guard_create(struct rm_guard **guard, const struct rm_experiment *experiment,
                    struct rm_backend *backend, struct rm_board_policy *counters, const char *name,
                    struct rm_error *error);
void rm_guard_destroy(struct rm_guard *guard);

/* Declare memory that a rollback restores: arenas in the backend's memory, plain data in host
 * memory, the moments and steps of an optimizer. At most RM_GUARD_PARTS in total; an optimizer
 * counts as at most 4. */
#define RM_GUARD_PARTS 32
void rm_guard_floats(struct rm_guard *guard, float *arena, size_t floats);
void rm_guard_bytes(struct rm_guard *guard, void *data, size_t bytes);
void rm_guard_optimizer(struct rm_guard *guard, struct rm_optimizer *optimizer);

/* Call after all declarations, once the memory has its first values. */
int rm_guard_ready(struct rm_guard *guard, struct rm_error *error);

/* Discards all copies. Call after the declared memory was replaced, for example by a predecessor's
 * weights. */
void rm_guard_renew(struct rm_guard *guard);

enum rm_guard_verdict {
    RM_GUARD_GOOD = 0,
    RM_GUARD_SKIPPED, /* the update changed nothing */
    RM_GUARD_BACK,    /* rolled back: call rm_net_prepare() for the networks, and recompute derived
                         data */
};

/* The guard's counts, for checkpoints (shm/base/state.h). After loading, the loaded numbers replace
 * the last good copy. */
struct rm_state;
void rm_guard_state(struct rm_guard *guard, struct rm_state *state);

/* Call after an update. `updates`: number of finite updates, with this one if it is finite. Returns
 * a verdict, or -EDOM after too many rollbacks. */
int rm_guard_judge(struct rm_guard *guard, bool finite, double loss, double grad_norm,
                   uint64_t updates, struct rm_error *error);

/* rm_guard_judge_late() does the same for updates on a device, whose results arrive while later
 * updates are in progress. */
struct rm_guard_report {
    uint64_t made, skipped;  /* since the previous report */
    uint64_t skipped_in_row; /* consecutive skipped updates at the end of the report. If they reach
                                debug.finite_patience, no update may be in progress */
    uint64_t through;        /* number of its last update; skipped updates count */
    uint64_t launched;       /* number of the last update begun; skipped updates count */
    uint64_t updates;        /* finite updates so far */
    double loss, grad_norm;  /* of its last update */
};
int rm_guard_judge_late(struct rm_guard *guard, const struct rm_guard_report *report,
                        struct rm_error *error);

#endif
