/* slot_stacks: finds the frames that an actor stacks if replay is an array of slots
 * (config/forms.h): the frames in the slots before the write index, also if they are from another
 * episode. Each lane has its own view of the slots, which follows the ring's rows. Used by one
 * thread; nothing is allocated after create. */
#ifndef RM_ACTOR_SLOT_STACKS_H
#define RM_ACTOR_SLOT_STACKS_H

#include "shm/base/error.h"
#include "shm/ring.h"

#include <stdint.h>

struct rm_slot_stacks;
struct rm_state;

int rm_slot_stacks_create(struct rm_slot_stacks **stacks, uint64_t capacity, uint32_t jump,
                          uint32_t lanes, struct rm_error *error);
void rm_slot_stacks_destroy(struct rm_slot_stacks *stacks); /* NULL: nothing */

/* The observations in the slot that is `back` (>= 1) slots before the slot of the current row.
 * `flags` are the lane's flags in the current row. NULL: use a frame of zeros. */
const uint8_t *rm_slot_stacks_row(const struct rm_slot_stacks *stacks, const struct rm_ring *ring,
                                  size_t lane, uint32_t back, uint8_t flags);

/* Adds the current row to the slots of lanes [first, first + count). */
void rm_slot_stacks_push(struct rm_slot_stacks *stacks, const struct rm_ring *ring,
                         const struct rm_row *row, size_t first, uint32_t count);

/* For checkpoints (shm/base/state.h). */
void rm_slot_stacks_state(struct rm_slot_stacks *stacks, struct rm_state *state);

#endif
