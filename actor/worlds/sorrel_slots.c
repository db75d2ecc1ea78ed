#include "actor/worlds/sorrel_slots.h"

#include "shm/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int rm_sorrel_slots_create(struct rm_sorrel_slots *slots, uint32_t capacity, uint32_t jump,
                           struct rm_error *error)
{
    memset(slots, 0, sizeof *slots);
    if (capacity <= jump)
        return rm_fail(error, -EINVAL, "a replay of %u slots is too small: more than %u are needed",
                       capacity, jump);
    slots->row = malloc(capacity * sizeof *slots->row);
    if (!slots->row)
        return rm_fail(error, -ENOMEM, "no memory for %u replay slots", capacity);
    for (uint32_t i = 0; i < capacity; i++)
        slots->row[i] = RM_SORREL_NEVER;
    slots->capacity = capacity;
    slots->jump = jump;
    return 0;
}

void rm_sorrel_slots_destroy(struct rm_sorrel_slots *slots)
{
    free(slots->row);
    memset(slots, 0, sizeof *slots);
}

static uint32_t head_for(const struct rm_sorrel_slots *slots, uint8_t flags)
{
    return (slots->head + (flags & RM_FLAG_FIRST ? slots->jump : 0)) % slots->capacity;
}

void rm_sorrel_slots_push(struct rm_sorrel_slots *slots, uint64_t row, uint8_t flags)
{
    if (flags & (RM_FLAG_LAST | RM_FLAG_DEAD))
        return;
    const uint32_t at = head_for(slots, flags);
    slots->row[at] = row;
    slots->head = (at + 1) % slots->capacity;
    slots->written++;
}

uint64_t rm_sorrel_slots_back(const struct rm_sorrel_slots *slots, uint32_t back, uint8_t flags)
{
    return slots->row[(head_for(slots, flags) + slots->capacity - back) % slots->capacity];
}

uint32_t rm_sorrel_slots_size(const struct rm_sorrel_slots *slots)
{
    return slots->written < slots->capacity ? (uint32_t)slots->written : slots->capacity;
}
