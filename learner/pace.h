/* pace: decides when a learner makes its next update, and when its part of the run is over. With a
 * recording (sample.from) the learner makes run.steps updates without waiting. Otherwise, in free
 * mode the limiter decides; in lockstep and sequential mode floor(steps inserted *
 * updates_per_step) updates are due at the start of a round.
 *
 * Belongs to one learner's thread. */
#ifndef RM_LEARNER_PACE_H
#define RM_LEARNER_PACE_H

#include "shm/session/session.h"
#include "learner/rounds.h"
#include "learner/sampler.h"

#include <stdbool.h>
#include <stdint.h>

enum rm_turn {
    RM_TURN_WAIT,      /* nothing to do until the wake is signalled */
    RM_TURN_AGAIN,     /* rows arrived meanwhile: call again */
    RM_TURN_UPDATE,    /* make an update; the sampler's windows are set */
    RM_TURN_ROUND_END, /* this round's updates are made: publish, then rm_rounds_arrive() */
    RM_TURN_FINISHED,  /* no update is due, and none will be */
};

struct rm_pace {
    struct rm_session *session;
    struct rm_sampler *sampler;
    uint32_t policy;
    bool offline;            /* there are no actors */
    bool successor;          /* predecessors have drawn batches */
    struct rm_rounds rounds; /* lockstep and sequential mode */
    double updates_per_step; /* hot */
    uint64_t attempts;       /* updates made or skipped: batches drawn */
    uint64_t seen;           /* free: items inserted before the windows were set */
    bool done;               /* free: the actors were done before the windows were set */
    uint64_t due_base,
        inserted_base; /* due = due_base + floor((inserted - inserted_base) * rate) */

    /* Rounds. */
    uint64_t inserted; /* agent steps in the rows before the current round */
    uint64_t due;      /* updates */
};

/* `attempts`: number of batches that predecessors have drawn. `sampler` may be NULL with a
 * recording, if another object draws the batches. */
void rm_pace_start(struct rm_pace *pace, struct rm_session *session, struct rm_sampler *sampler,
                   uint32_t policy, uint64_t attempts);

/* Sets the rate for steps from now on. */
void rm_pace_set_rate(struct rm_pace *pace, double updates_per_step);

/* Returns what to do now. With RM_TURN_WAIT in free mode it has set the wake's threshold. */
enum rm_turn rm_pace_next(struct rm_pace *pace);

/* Counts a drawn batch. */
void rm_pace_drawn(struct rm_pace *pace);

/* Subtracts the last n counted batches, whose draws found too few rows (`dry` in
 * algo/trainer.h). */
void rm_pace_undrawn(struct rm_pace *pace, uint64_t n);

/* No batch could be drawn: due updates wait for more rows. Returns the turn to take instead. */
enum rm_turn rm_pace_too_few(struct rm_pace *pace);

/* The state, for checkpoints (shm/base/state.h). */
struct rm_state;
void rm_pace_state(struct rm_pace *pace, struct rm_state *state);

#endif
