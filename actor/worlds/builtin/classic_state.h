/* classic_state: the state of one world of a classic control problem, and the flags of its rows;
 * for both sides (shm/base/both.h). */
#ifndef RM_ACTOR_WORLDS_BUILTIN_CLASSIC_STATE_H
#define RM_ACTOR_WORLDS_BUILTIN_CLASSIC_STATE_H

#include "actor/env.h"
#include "shm/base/both.h"

enum { RM_CLASSIC_STATES = 4 };

/* A saved state is an array of these, and so are the worlds of a device. */
struct rm_classic_state {
    double state[RM_CLASSIC_STATES]; /* unused ones 0 */
    uint64_t episode;
    uint32_t step;  /* done in this episode */
    uint32_t ended; /* 0, or the flag of the last row that was written */
};

/* The flags of a row after `steps` steps of the episode. */
RM_BOTH uint32_t rm_classic_flag(uint32_t steps, uint32_t max_steps, int terminated)
{
    const uint32_t flag = steps >= max_steps ? (uint32_t)RM_ENV_TRUNCATED : 0;
    return terminated ? (uint32_t)RM_ENV_TERMINATED : flag;
}

#endif
