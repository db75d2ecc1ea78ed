/* head: the first member of every world with one agent that acts in every step; it begins, counts
 * and ends episodes. For both sides (shm/base/both.h). */
#ifndef RM_ACTOR_WORLDS_BUILTIN_HEAD_H
#define RM_ACTOR_WORLDS_BUILTIN_HEAD_H

#include "actor/env.h"
#include "shm/base/draw.h"

/* Head of one world's state; a cache line. A saved state is an array of structs with this head. */
struct rm_single_world {
    uint64_t episode;  /* from 0 */
    struct rm_rng rng; /* of this episode, read in order */
    uint32_t step;     /* steps done */
    uint8_t last;      /* flags of the last row, until the next episode begins; else 0 */
    uint8_t zero[3];
};

/* The first step of an episode of world `id`. */
RM_BOTH void rm_head_begin(struct rm_single_world *head, uint64_t seed, uint64_t id,
                           uint64_t episode)
{
    head->episode = episode;
    rm_draw_world(&head->rng, seed, id, episode);
    head->step = 0;
    head->last = 0;
}

/* Counts a step and returns the flags of its row. `flags` are those of the world's rules; max_steps
 * 0: no time limit. */
RM_BOTH uint8_t rm_head_count(struct rm_single_world *head, uint32_t max_steps, int flags)
{
    head->step++;
    if (flags == 0 && max_steps && head->step >= max_steps)
        flags = RM_ENV_TRUNCATED;
    head->last = (uint8_t)flags;
    return head->last;
}

#endif
