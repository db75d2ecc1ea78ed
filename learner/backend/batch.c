#include "learner/backend/batch.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 256u /* that of an allocation in device memory */

#define MEMBER(part, name) [RM_BATCH_##part] = offsetof(struct rm_batch, name)
static const size_t members[RM_BATCH_PARTS] = {
    MEMBER(TURN, turn),     MEMBER(OBS, obs),         MEMBER(NEXT_OBS, next_obs),
    MEMBER(ACTION, action), MEMBER(RET, ret),         MEMBER(DISCOUNT, discount),
    MEMBER(WEIGHT, weight), MEMBER(MASK, mask),       MEMBER(NEXT_MASK, next_mask),
    MEMBER(STATE, state),   MEMBER(RESTART, restart), MEMBER(VALID, valid),
    MEMBER(AHEAD, ahead),   MEMBER(ERROR, error),     MEMBER(LEAF, leaf),
};

void *rm_batch_part(const struct rm_batch *batch, enum rm_batch_part part)
{
    void *p;
    memcpy(&p, (const char *)batch + members[part], sizeof p);
    return p;
}

static void set_part(struct rm_batch *batch, enum rm_batch_part part, void *p)
{
    memcpy((char *)batch + members[part], &p, sizeof p);
}

void rm_batch_measure(const struct rm_batch *shape, const struct rm_batch_extras *extras,
                      size_t bytes[RM_BATCH_PARTS])
{
    const bool sequences = shape->trace;
    const size_t size = shape->size;
    const size_t rows = size * (sequences ? rm_batch_rows(shape) : 1); /* of observations */
    const size_t n = size * (sequences ? shape->trace : 1);            /* of transitions */
    const size_t row = (size_t)shape->inputs * sizeof(float);
    memset(bytes, 0, RM_BATCH_PARTS * sizeof *bytes);
    bytes[RM_BATCH_OBS] = rows * row;
    bytes[RM_BATCH_ACTION] = n * rm_batch_words(shape) * sizeof *shape->action;
    if (shape->queries)
        return;
    bytes[RM_BATCH_RET] = bytes[RM_BATCH_DISCOUNT] = n * sizeof(float);
    if (sequences ? extras->next_masks : extras->masks)
        bytes[RM_BATCH_MASK] = rows * shape->actions;
    if (extras->priorities)
        bytes[RM_BATCH_WEIGHT] = bytes[RM_BATCH_ERROR] = size * sizeof(float);
    if (extras->leaves)
        bytes[RM_BATCH_LEAF] = size * sizeof *shape->leaf;
    if (sequences) {
        bytes[RM_BATCH_STATE] = size * shape->state_floats * sizeof(float);
        bytes[RM_BATCH_RESTART] = rows;
        bytes[RM_BATCH_VALID] = n * sizeof *shape->valid;
        bytes[RM_BATCH_AHEAD] = n * sizeof *shape->ahead;
    } else {
        bytes[RM_BATCH_NEXT_OBS] = rows * row;
        bytes[RM_BATCH_NEXT_MASK] = extras->next_masks ? n * shape->actions : 0;
    }
}

size_t rm_batch_place(struct rm_batch *batch, const size_t bytes[RM_BATCH_PARTS], uint8_t *block)
{
    size_t at = 0;
    for (enum rm_batch_part i = 0; i < RM_BATCH_PARTS; i++) {
        set_part(batch, i, block && bytes[i] ? block + at : NULL);
        at += (bytes[i] + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    return at;
}

int rm_batch_alloc(struct rm_batch *batch, const struct rm_batch_extras *extras,
                   struct rm_error *error)
{
    size_t bytes[RM_BATCH_PARTS];
    rm_batch_measure(batch, extras, bytes);
    const size_t all = rm_batch_place(batch, bytes, NULL);
    uint8_t *block = aligned_alloc(ALIGNMENT, all);
    if (!block)
        return rm_fail(error, -ENOMEM, "no memory for a batch of %u, with %u inputs", batch->size,
                       batch->inputs);
    memset(block, 0, all);
    rm_batch_place(batch, bytes, block);
    return 0;
}

void rm_batch_free(struct rm_batch *batch)
{
    free(batch->obs); /* the first part of the block */
}

struct rm_batch rm_batch_slice(const struct rm_batch *whole, uint32_t from, uint32_t size)
{
    const struct rm_batch_extras all = {true, true, true, true};
    struct rm_batch slice = *whole;
    size_t bytes[RM_BATCH_PARTS];
    rm_batch_measure(whole, &all, bytes);
    slice.size = size;
    for (enum rm_batch_part i = 0; i < RM_BATCH_PARTS; i++) {
        uint8_t *at = rm_batch_part(whole, i);
        set_part(&slice, i, at ? at + bytes[i] / whole->size * from : NULL);
    }
    return slice;
}
