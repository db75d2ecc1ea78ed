/* rounds: a learner's part in the rounds of lockstep and sequential mode (shm/round.h). In each
 * round the learner does its share of the work and arrives; at the end of its work it leaves. A
 * restarted learner does nothing in a round in which its predecessor has arrived.
 *
 * Belongs to one learner's thread. */
#ifndef RM_LEARNER_ROUNDS_H
#define RM_LEARNER_ROUNDS_H

#include "shm/session/session.h"

#include <stdbool.h>
#include <stdint.h>

enum rm_rounds_turn {
    RM_ROUNDS_WAIT, /* arrived: nothing to do until the next round */
    RM_ROUNDS_WORK, /* do the share of round `current`, then arrive or leave */
    RM_ROUNDS_OVER  /* has left, before a checkpoint or through a predecessor that died: finished */
};

struct rm_rounds {
    struct rm_session *session;
    uint32_t who;     /* number of the participant, which is the worker's number */
    bool on;          /* there are rounds; otherwise rm_rounds_arrive() does nothing */
    uint64_t current; /* the round in which work was due last; 0 before the first */
    bool last;        /* the actors have left: no round follows `current` */
    bool arrived;     /* in `current` */
};

void rm_rounds_start(struct rm_rounds *rounds, struct rm_session *session, uint32_t policy,
                     bool on);

/* Sets `current` and `last` when a round begins. Only with rounds->on. */
enum rm_rounds_turn rm_rounds_next(struct rm_rounds *rounds);

/* Arrives in the round, or with `leave` leaves all rounds. Wakes all participants if that advances
 * the round. */
void rm_rounds_arrive(struct rm_rounds *rounds, bool leave);

/* Parts "round", "arrived" and "last_round" of a checkpoint (shm/base/state.h). */
struct rm_state;
void rm_rounds_state(struct rm_rounds *rounds, struct rm_state *state);

#endif
