/* sorrel_slots: which row stands in which slot of the replay buffer of Sorrel's treasure hunt, for
 * the compat forms of it. The original is an array of `capacity` slots with a write index; in its
 * sequential form the index jumps by 4 at the start of every episode without writing, so slots in
 * the gap hold what was there a lap (or two) before, or nothing on the first laps. Here slots hold
 * ring row indices in place of copies. Its user pushes the rows in order: the learner to sample,
 * the actor for the stacks of an episode's first turns.
 *
 * A row that a slot names can be up to three laps old: the ring needs 3 * capacity rows.
 *
 * One world, one agent. Belongs to one thread. */
#ifndef RM_ACTOR_WORLDS_SORREL_SLOTS_H
#define RM_ACTOR_WORLDS_SORREL_SLOTS_H

#include "shm/base/error.h"

#include <stdint.h>

#define RM_SORREL_NEVER UINT64_MAX /* a slot that was never written: zero frame, action, reward */

struct rm_sorrel_slots {
    uint64_t *row; /* [capacity] */
    uint32_t capacity;
    uint32_t jump;    /* slots skipped at the start of an episode: 4 (sorrel-seq), 0 (sorrel-mp) */
    uint32_t head;    /* where the next row goes */
    uint64_t written; /* rows written in all */
};

int rm_sorrel_slots_create(struct rm_sorrel_slots *slots, uint32_t capacity, uint32_t jump,
                           struct rm_error *error);
void rm_sorrel_slots_destroy(struct rm_sorrel_slots *slots);

/* The next row of the world, by its flags (RM_FLAG_*): a first row jumps and is written, a last row
 * (which the original does not have) and a row of an agent out of play leave no trace. */
void rm_sorrel_slots_push(struct rm_sorrel_slots *slots, uint64_t row, uint8_t flags);

/* The row `back` slots (1 .. capacity - 1) before the place where a row with these flags is about
 * to be pushed: the frames below the current one in an acting stack. RM_SORREL_NEVER for a zero
 * frame. */
uint64_t rm_sorrel_slots_back(const struct rm_sorrel_slots *slots, uint32_t back, uint8_t flags);

/* Slots that the original counts as filled: rows written, at most capacity. */
uint32_t rm_sorrel_slots_size(const struct rm_sorrel_slots *slots);

#endif
