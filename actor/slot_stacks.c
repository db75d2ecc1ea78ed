#include "actor/slot_stacks.h"

#include "actor/worlds/sorrel_slots.h"
#include "shm/base/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct rm_slot_stacks {
    uint32_t lanes;
    struct rm_sorrel_slots lane[]; /* [lanes] */
};

int rm_slot_stacks_create(struct rm_slot_stacks **stacks, uint64_t capacity, uint32_t jump,
                          uint32_t lanes, struct rm_error *error)
{
    *stacks = NULL;
    if (capacity > UINT32_MAX)
        return rm_fail(error, -EINVAL, "ring.capacity: %" PRIu64 " is too many for the compat form",
                       capacity);
    struct rm_slot_stacks *s = calloc(1, sizeof *s + lanes * sizeof s->lane[0]);
    if (!s)
        return rm_fail(error, -ENOMEM, "no memory for %u replay views", lanes);
    for (; s->lanes < lanes; s->lanes++) {
        const int rc = rm_sorrel_slots_create(&s->lane[s->lanes], (uint32_t)capacity, jump, error);
        if (rc < 0) {
            rm_slot_stacks_destroy(s);
            return rc;
        }
    }
    *stacks = s;
    return 0;
}

void rm_slot_stacks_destroy(struct rm_slot_stacks *s)
{
    for (uint32_t i = 0; s && i < s->lanes; i++)
        rm_sorrel_slots_destroy(&s->lane[i]);
    free(s);
}

/* Slots count rows from the ring's first, so that no index is RM_SORREL_NEVER. */
const uint8_t *rm_slot_stacks_row(const struct rm_slot_stacks *s, const struct rm_ring *ring,
                                  size_t lane, uint32_t back, uint8_t flags)
{
    const uint64_t index = rm_sorrel_slots_back(&s->lane[lane], back, flags);
    return index == RM_SORREL_NEVER ? NULL : rm_ring_row(ring, index + ring->spec.first_index).obs;
}

void rm_slot_stacks_push(struct rm_slot_stacks *s, const struct rm_ring *ring,
                         const struct rm_row *row, size_t first, uint32_t count)
{
    for (size_t lane = first; lane < first + count; lane++)
        rm_sorrel_slots_push(&s->lane[lane], row->index - ring->spec.first_index, row->flags[lane]);
}

void rm_slot_stacks_state(struct rm_slot_stacks *s, struct rm_state *state)
{
    for (uint32_t i = 0; i < s->lanes; i++) {
        struct rm_sorrel_slots *slots = &s->lane[i];
        char name[32];
        snprintf(name, sizeof name, "slots%u", i);
        rm_state_enter(state, name);
        RM_STATE(state, "head", slots->head);
        RM_STATE(state, "written", slots->written);
        rm_state_bytes(state, "row", slots->row, slots->capacity * sizeof *slots->row);
        rm_state_leave(state);
    }
}
