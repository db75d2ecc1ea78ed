/* limiter: keeps inserting and sampling in proportion (the SampleToInsertRatio limiter of Reverb,
 * Cassirer et al. 2021). One per policy, on the board.
 *
 *   error = inserted * samples_per_insert - sampled, held within [min_error, max_error]
 *
 * Inserting stops (actors sleep) when it would push the error above max_error; sampling stops (the
 * learner sleeps) when it would push it below min_error, or before `min_inserted` items are there.
 * samples_per_insert 0 switches the limiter off (free running), except for min_inserted.
 *
 * An item is a transition: one lane of one row that can be sampled. */
#ifndef RM_SHM_LIMITER_H
#define RM_SHM_LIMITER_H

#include "shm/wake.h"

#include <stdbool.h>
#include <stdint.h>

/* In shared memory. Only the daemon writes the doubles, before start and at a hot reload. */
struct rm_limiter {
    _Alignas(RM_PAGE) _Atomic uint64_t sampled; /* by the learner */
    _Alignas(128) _Atomic double samples_per_insert;
    _Atomic double min_error;
    _Atomic double max_error;
    _Atomic uint64_t min_inserted;
    _Alignas(RM_PAGE) _Atomic uint64_t inserted; /* by the actors, which can write nothing else
                                                  * here */
};

void rm_limiter_init(struct rm_limiter *limiter, double samples_per_insert, double min_error,
                     double max_error, uint64_t min_inserted);

/* The daemon sets another ratio and slack while actors and learners work. The bounds move with the
 * ratio, so the error keeps its distance to them: neither side has to catch up for earlier items,
 * and neither gets ahead. A limiter that was off begins with error 0. `slack` is how far the error
 * may go either way. */
void rm_limiter_change(struct rm_limiter *limiter, double samples_per_insert, double slack);

/* May `n` more items be inserted now? No side effect. Whether `n` may be sampled:
 * rm_limiter_needed(). */
bool rm_limiter_may_insert(const struct rm_limiter *limiter, uint64_t n);

/* Counts `n` items. Call after checking (several actors may overshoot by one row each). */
void rm_limiter_inserted(struct rm_limiter *limiter, uint64_t n);
void rm_limiter_sampled(struct rm_limiter *limiter, uint64_t n);

/* The number of items that must be inserted in all before `n` may be sampled; 0: now. The learner
 * writes it into its wake's threshold before it sleeps, so that actors do not wake it for every
 * row: an actor signals only when inserted >= threshold. It is a total and not a difference, so
 * that rows counted after this call has read `inserted` do not raise the threshold. */
uint64_t rm_limiter_needed(const struct rm_limiter *limiter, uint64_t n);

#endif
