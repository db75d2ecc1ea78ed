/* pace: when a learner may make its next update. In free mode that is the limiter's word; in
 * lockstep and sequential mode it is arithmetic: by the start of a round, floor(steps inserted *
 * updates_per_step) updates are due. Also when the run is over for this learner.
 *
 * Belongs to one learner's thread. */
#ifndef RM_LEARNER_PACE_H
#define RM_LEARNER_PACE_H

#include "shm/session/session.h"
#include "learner/sampler.h"

#include <stdbool.h>
#include <stdint.h>

enum rm_turn {
    RM_TURN_WAIT,      /* nothing to do until somebody signals the wake */
    RM_TURN_AGAIN,     /* rows came meanwhile: ask again */
    RM_TURN_UPDATE,    /* make an update; the sampler's windows are set */
    RM_TURN_ROUND_END, /* this round's updates are made: publish, then rm_pace_arrive() */
    RM_TURN_FINISHED,  /* no update is owed any more and none will be */
};

struct rm_pace {
    struct rm_session *session;
    struct rm_sampler *sampler;
    uint32_t policy, who;    /* who = this learner's number as a participant and worker */
    bool successor;          /* predecessors have drawn batches */
    bool rounds;             /* lockstep or sequential */
    double updates_per_step; /* hot */
    uint64_t attempts;       /* updates made or skipped: batches drawn */
    uint64_t seen;           /* free: items that were inserted before the windows were set */
    bool done;               /* free: the actors were done before that */
    uint64_t due_base,
        inserted_base; /* due = due_base + floor((inserted - inserted_base) * rate) */

    /* Rounds. */
    uint64_t round;    /* the one in hand, 0 before the first */
    uint64_t inserted; /* agent steps in the rows before it */
    uint64_t due;
    bool last_round; /* the actors have left */
    bool arrived;
};

/* attempts: batches that predecessors have drawn. */
void rm_pace_start(struct rm_pace *pace, struct rm_session *session, struct rm_sampler *sampler,
                   uint32_t policy, uint64_t attempts);

/* A changed rate counts from now on. */
void rm_pace_set_rate(struct rm_pace *pace, double updates_per_step);

/* What to do now. With RM_TURN_WAIT in free mode the wake's threshold is set. */
enum rm_turn rm_pace_next(struct rm_pace *pace);

/* A batch was drawn: counts it. */
void rm_pace_drawn(struct rm_pace *pace);

/* The last n of these were dry (algo/trainer.h): they count no more. */
void rm_pace_undrawn(struct rm_pace *pace, uint64_t n);

/* No batch could be drawn: what is due waits for more rows. Returns the turn to take instead. */
enum rm_turn rm_pace_too_few(struct rm_pace *pace);

/* Ends the round, or with `leave` this learner's part in all rounds. Wakes everybody if that
 * advances the round. */
void rm_pace_arrive(struct rm_pace *pace, bool leave);

/* What it stands on, for checkpoints (shm/base/state.h). */
struct rm_state;
void rm_pace_state(struct rm_pace *pace, struct rm_state *state);

#endif
