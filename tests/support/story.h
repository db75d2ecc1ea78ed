/* story: two states, solved by hand. From state 0, action 0 gives 1 and the time limit strikes in
 * state 0; action 1 gives 2 and the world ends. From state 1, action 0 gives 0 and the time limit
 * strikes in state 0; action 1 gives -1 and the world ends. Truncation bootstraps, termination does
 * not. */
#ifndef RM_TESTS_SUPPORT_STORY_H
#define RM_TESTS_SUPPORT_STORY_H

#include "actor/env.h"
#include "shm/ring.h"

#define RM_STORY_GAMMA 0.75
#define RM_STORY_ROWS  8

/* Observes the state one-hot, as float[2]; two actions. */
extern const struct rm_env_agent rm_story_agent;

/* A ring of one lane that holds the four transitions `times` times (a power of two). state_floats:
 * of the column of recurrent states, all 0; 0: none. Fails the test when it cannot. */
void rm_story_tell(struct rm_ring *ring, uint32_t state_floats, uint32_t times);

#endif
