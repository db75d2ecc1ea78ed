/* actor_private: what the files of the actor share. */
#ifndef RM_ACTOR_ACTOR_PRIVATE_H
#define RM_ACTOR_ACTOR_PRIVATE_H

#include "actor/actor.h"
#include "actor/stepping.h"
#include "shm/session/saver.h"

struct rm_actor {
    struct rm_session *session;
    uint32_t index, worker;
    struct rm_board_worker *slot;
    struct rm_phase_clock clock;
    struct rm_stepping stepping;
    struct rm_ring *rings[RM_BOARD_POLICIES];
    struct rm_wake learner[RM_BOARD_POLICIES];
    struct rm_wake evaluator;
    uint64_t version[RM_BOARD_POLICIES];       /* of the weights in use, 0 = none */
    uint32_t ask[RM_BOARD_POLICIES];           /* lanes that the limiter is asked for */
    uint64_t blocked_since[RM_BOARD_POLICIES]; /* by the limiter since then; 0 = not blocked */
    bool in_rounds;                            /* lockstep and sequential mode */
    bool in_round;                             /* this round's weights are read */
    uint64_t round;
    uint32_t round_rows;               /* rows of a round */
    uint32_t round_steps;              /* made in this round */
    uint32_t rollout_rows;             /* rows of a rollout; 0: the learners sample from replay */
    bool synchronous;                  /* rollouts wait for weights: actor_rollouts.c */
    uint64_t ready[RM_BOARD_POLICIES]; /* 1 + the rollout whose weights are in use */
    uint64_t budget; /* free mode: of agent 0, over this actor's worlds; 0 = no end */
    uint64_t settings_version;
    struct rm_saver saver;
};

/* Rows of policy p in which this actor and its predecessors have acted. */
static inline uint64_t rm_actor_rows(const struct rm_actor *actor, uint32_t p)
{
    return rm_ring_committed(actor->rings[p]) - actor->rings[p]->spec.first_index;
}

/* actor.c. The parameters of this stamp are in place. */
void rm_actor_use_weights(struct rm_actor *actor, uint32_t p, const struct rm_weights_stamp *stamp);

/* Makes and counts one vector step, and wakes the learners that wait for it. */
int rm_actor_step(struct rm_actor *actor, struct rm_error *error);

/* The last turn. */
int rm_actor_finish(struct rm_actor *actor);

/* actor_rollouts.c. A turn of an actor whose learners' rollouts are synchronous. */
int rm_actor_work_rollouts(struct rm_actor *actor, struct rm_error *error);

#endif
