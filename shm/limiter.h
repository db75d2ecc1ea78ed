/* limiter: keeps inserting and sampling in proportion (the SampleToInsertRatio limiter of Reverb,
 * Cassirer et al. 2021). One per policy, in the board.
 *
 *   error = inserted * samples_per_insert - sampled, held within [min_error, max_error]
 *
 * Inserting stops (actors sleep) when it would push the error above max_error; sampling stops (the
 * learner sleeps) when it would push it below min_error, or before `min_inserted` items are there.
 * samples_per_insert 0 switches the limiter off (free running), but for min_inserted.
 *
 * Items are transitions: one lane of one row that can be sampled. */
#ifndef RM_SHM_LIMITER_H
#define RM_SHM_LIMITER_H

#include "shm/wake.h"

#include <stdbool.h>
#include <stdint.h>

/* In shared memory. Doubles are written by the daemon before start (and by hot reload) only. */
struct rm_limiter {
    _Alignas(RM_PAGE) _Atomic uint64_t sampled; /* by the learner */
    _Alignas(128) _Atomic double samples_per_insert;
    _Atomic double min_error;
    _Atomic double max_error;
    _Atomic uint64_t min_inserted;
    _Alignas(RM_PAGE) _Atomic uint64_t inserted; /* by the actors, who can write nothing else */
};

void rm_limiter_init(struct rm_limiter *limiter, double samples_per_insert, double min_error,
                     double max_error, uint64_t min_inserted);

/* Another ratio and slack from now on, by the daemon while the others work: the error stays what it
 * is, within bounds that move along. So nobody has to make up for what was inserted before, and
 * nobody gets ahead by it. A limiter that was off begins with no error. `slack` is how far the
 * error may go either way. */
void rm_limiter_change(struct rm_limiter *limiter, double samples_per_insert, double slack);

/* May `n` more items be inserted now? No side effect. Whether `n` may be sampled:
 * rm_limiter_needed(). */
bool rm_limiter_may_insert(const struct rm_limiter *limiter, uint64_t n);

/* Counts them. Call after asking (several actors may overshoot by one row each). */
void rm_limiter_inserted(struct rm_limiter *limiter, uint64_t n);
void rm_limiter_sampled(struct rm_limiter *limiter, uint64_t n);

/* How many items must be inserted in all before `n` may be sampled; 0: now. The learner writes it
 * into its wake's threshold before it sleeps, so that actors do not wake it for every row: an actor
 * signals only when inserted >= threshold. A count and not a difference: rows that are counted
 * after this has looked at `inserted` must not raise the threshold. */
uint64_t rm_limiter_needed(const struct rm_limiter *limiter, uint64_t n);

#endif
