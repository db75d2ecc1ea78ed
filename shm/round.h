/* round: the barrier of lockstep and sequential mode. A run is divided into rounds; within a round
 * every participant (actor, learner) uses only data from before the round: actors act with weights
 * published before it, learners sample rows committed before it. So results do not depend on
 * scheduling. Participants arrive when their share of the round is done; the last one to arrive
 * advances the round and wakes the others.
 *
 * One per experiment, on the board. No participant spins: do_work() returns 0 until the round
 * advances. A restarted participant arrives only if its predecessor had not (arrived[] shows
 * it). */
#ifndef RM_SHM_ROUND_H
#define RM_SHM_ROUND_H

#include "shm/wake.h"

#include <stdbool.h>
#include <stdint.h>

#define RM_ROUND_MAX 256 /* participants */

/* In shared memory. arrived[i] = the last round participant i finished. Rounds count from 1. */
struct rm_round {
    _Alignas(RM_PAGE) _Atomic uint32_t participants; /* fixed at creation */
    _Alignas(RM_PAGE) _Atomic uint64_t current;      /* written by participants, as are the fields
                                                      * after it */
    _Alignas(128) _Atomic uint64_t arrived[RM_ROUND_MAX];
};

void rm_round_init(struct rm_round *round, uint32_t participants);

/* The round in progress. */
uint64_t rm_round_current(const struct rm_round *round);

/* Marks participant `who` as done with the current round. Idempotent. Returns true to exactly one
 * caller per round, the one that completed and advanced it; this caller then wakes all
 * participants. */
bool rm_round_arrive(struct rm_round *round, uint32_t who);

/* A participant whose work is done leaves for good: it counts as arrived in every later round.
 * Returns true if that advanced the round; the last one to leave does not advance it. The caller
 * calls this instead of rm_round_arrive(), so the round cannot advance meanwhile; it has stored all
 * its results before; it never arrives again; and on true it wakes all participants. */
bool rm_round_leave(struct rm_round *round, uint32_t who);

/* Has the participant left? Its successor after a restart then has nothing to do. */
bool rm_round_left(const struct rm_round *round, uint32_t who);

/* Lets a participant that left in the current round take part again, with its share of the round
 * done (`arrived`) or still to do. For a finished run that is resumed. Call before any participant
 * works. */
void rm_round_come_back(struct rm_round *round, uint32_t who, bool arrived);

/* Advances the round if all have arrived in it: for the supervisor, when a participant died between
 * arriving and advancing. Does not mark any participant as arrived. Returns true if the round
 * advanced. The caller has reaped the dead participant (waitpid()), so it sees all its stores. The
 * caller wakes all participants in either case, since the dead one may have advanced the round
 * without waking them. */
bool rm_round_settle(struct rm_round *round);

/* Are the round's words consistent: is every participant in the current round or done with it?
 * Returns 0; -EAGAIN when the round advanced during the check; -EPROTO, with the participant in
 * *who, when they are not consistent. */
int rm_round_check(const struct rm_round *round, uint32_t *who);

#endif
