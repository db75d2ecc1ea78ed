/* sorrel_slots: reproduces the replay buffer of Sorrel's treasure hunt, for the treasure hunt's
 * compat forms. The original buffer is an array of `capacity` slots with a write index. In its
 * sequential form the index jumps by 4 at the start of every episode without writing, so the
 * skipped slots keep rows that are a lap or two older, or are empty in the first laps. Here a slot
 * has the index of a ring's row, not a copy of the row. The learner uses the slots to sample, the
 * actor to stack the frames of an episode's first turns.
 *
 * The row in a slot can be up to three laps old: the ring needs 3 * capacity rows.
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

/* Adds the world's next row, which has these flags (RM_FLAG_*). At the first row of an episode the
 * index jumps before the row is written. A last row, which the original does not have, and a row of
 * an agent out of play are not written. */
void rm_sorrel_slots_push(struct rm_sorrel_slots *slots, uint64_t row, uint8_t flags);

/* The row that is `back` slots (1 .. capacity - 1) before the slot of the next row with these
 * flags: a frame of the stack with which the actor acts. RM_SORREL_NEVER: a frame of zeros. */
uint64_t rm_sorrel_slots_back(const struct rm_sorrel_slots *slots, uint32_t back, uint8_t flags);

/* Slots that the original counts as filled: rows written, at most capacity. */
uint32_t rm_sorrel_slots_size(const struct rm_sorrel_slots *slots);

#endif
