/* round: the barrier of lockstep and sequential mode. A run is divided into rounds; within a round
 * every participant (actor, learner) works only on what was there at the round's start: actors act
 * with weights published before the round, learners sample rows committed before it. So results do
 * not depend on scheduling. Participants arrive when their share of the round is done; the last one
 * to arrive advances the round and wakes the others.
 *
 * One per experiment, in the board. Nobody spins: do_work() returns 0 until the round advances.
 * A participant that died and was respawned arrives again only if it had not (its slot says). */
#ifndef RM_SHM_ROUND_H
#define RM_SHM_ROUND_H

#include "shm/wake.h"

#include <stdbool.h>
#include <stdint.h>

#define RM_ROUND_MAX 256 /* participants */

/* In shared memory. arrived[i] = the last round participant i finished. Rounds count from 1. */
struct rm_round {
    _Alignas(RM_PAGE) _Atomic uint32_t participants; /* fixed at creation */
    _Alignas(RM_PAGE) _Atomic uint64_t current;      /* by participants, as is what follows */
    _Alignas(128) _Atomic uint64_t arrived[RM_ROUND_MAX];
};

void rm_round_init(struct rm_round *round, uint32_t participants);

/* The round in progress. */
uint64_t rm_round_current(const struct rm_round *round);

/* Participant `who` has done its share of the current round. Idempotent. Returns true for exactly
 * one caller per round: the one that completed and advanced it, who then wakes everybody. */
bool rm_round_arrive(struct rm_round *round, uint32_t who);

/* A participant leaves for good (its work is done): it counts as arrived in every later round.
 * Returns true if that advanced the round; the last one to leave does not. Of the caller: it leaves
 * instead of arriving, so the round cannot advance meanwhile; what others read of its work stands
 * already; it never arrives again; and where this returns true it wakes everybody. */
bool rm_round_leave(struct rm_round *round, uint32_t who);

/* Has it left? A successor of one that left has nothing to do. */
bool rm_round_left(const struct rm_round *round, uint32_t who);

/* One that left in the current round takes part again, with its share of it done or still to do:
 * when a run that had come to its end goes on. Before anybody works. */
void rm_round_come_back(struct rm_round *round, uint32_t who, bool arrived);

/* Advances the round if all have arrived in it: for the supervisor, when a participant died between
 * arriving and advancing. Nobody arrives by this. Returns true if it advanced. Of the caller: the
 * kernel has said that the participant is dead (waitpid()), so that all it stored is seen; and it
 * wakes everybody whatever this returns, since the dead one may have advanced and told nobody. */
bool rm_round_settle(struct rm_round *round);

/* Can its words have come about? Participants are in the current round or have finished it. Looked
 * at while they work: -EAGAIN when it advanced meanwhile; -EPROTO, and which of them, when not. */
int rm_round_check(const struct rm_round *round, uint32_t *who);

#endif
