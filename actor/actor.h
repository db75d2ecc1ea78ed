/* actor: the duty that steps worlds, acts for every policy and writes rows. An actor process has
 * one. A turn (do_work) is one vector step: for each phase, act for the phase's agents in all
 * worlds with one batched forward per policy, commit rows, step the worlds. */
#ifndef RM_ACTOR_ACTOR_H
#define RM_ACTOR_ACTOR_H

#include "shm/session/session.h"
#include "shm/duty.h"

struct rm_actor;

/* Creates actor `index` of the session, with worlds, networks and workspaces; fills *duty.
 * No allocation after it returns. */
int rm_actor_create(struct rm_actor **actor, struct rm_session *session, uint32_t index,
                    struct rm_duty *duty, struct rm_error *error);
void rm_actor_destroy(struct rm_actor *actor);

/* The actor's state for checkpoints (shm/base/state.h). Call between two turns. In a resumed
 * session rm_actor_create() loads the state. */
struct rm_state;
void rm_actor_state(struct rm_actor *actor, struct rm_state *state);

#endif
