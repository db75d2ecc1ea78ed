/* batch: the transitions, or sequences of transitions, of one update. The sampler fills it in host
 * memory; the arrays belong to the code that created the batch and are reused for every update.
 *
 * SEQUENCES (R2D2): B lanes, each with consecutive rows of an episode, time first. A lane has
 * `burn_in` rows that only warm up the recurrent state, then `trace` rows that are trained on, then
 * `tail` rows for bootstrapping; `rows` is their sum. Rows before the episode's first and after its
 * last are zeros. `restart` marks the row where a lane's episode begins, `valid` the trace rows
 * that are trained on. */
#ifndef RM_LEARNER_BACKEND_BATCH_H
#define RM_LEARNER_BACKEND_BATCH_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_batch {
    uint32_t size;   /* B */
    uint32_t inputs; /* features of a frame * frame stack */
    uint32_t actions;
    uint32_t reals;     /* real numbers of an action; 0: actions are discrete */
    uint32_t queries;   /* of a sample, which is a packed history (learner/net/history.h): it has
                           obs, and an action for each query; 0: transitions or sequences */
    bool codes;         /* obs, next_obs are int32: the network begins with an embedding */
    float *obs;         /* (B, inputs); sequences: (rows, B, inputs) */
    float *next_obs;    /* (B, inputs): m steps on; sequences: NULL */
    int32_t *action;    /* (B, words); sequences: (trace, B), also ret and discount */
    float *ret;         /* (B): R = sum over k < m of gamma^k r_k */
    float *discount;    /* (B): g = gamma^m, 0 when the episode terminated within the m steps */
    uint8_t *mask;      /* (B, actions): legal in obs; sequences: (rows, B, actions); NULL when the
                           world gives no masks */
    uint8_t *next_mask; /* (B, actions): legal in next_obs; NULL when the world gives no masks, and
                           for sequences */
    float *weight;      /* (B): importance weights, at most 1; NULL: all 1 */
    float *error;       /* (B): written by the update: the size of each sample's error, for its
                         * priority; NULL: not needed */
    struct rm_device_turn *turn; /* the host's part of a draw on the device
                                  * (backend/device_draw.h); then no other member is filled. NULL:
                                  * the host draws */
    uint64_t *leaf; /* (B): each item's leaf in the tree of priorities, for the sampler; NULL: the
                     * sampler has the leaves, because only the batch drawn last is trained on */
    /* Only for sequences; trace 0: the batch has transitions. */
    uint32_t burn_in, trace, tail;
    uint32_t state_floats;
    float *state;     /* (B, state_floats) before the first row */
    uint8_t *restart; /* (rows, B): the state is zeros before this row */
    float *valid;     /* (trace, B) 1: a transition starts here; 0: none does */
    uint32_t *ahead;  /* (trace, B): m, the rows from here to the one bootstrapped from */
};

/* Words of an action. */
static inline uint32_t rm_batch_words(const struct rm_batch *batch)
{
    return batch->queries ? batch->queries : batch->reals ? batch->reals : 1;
}

static inline uint32_t rm_batch_rows(const struct rm_batch *batch)
{
    return batch->burn_in + batch->trace + batch->tail;
}

/* The arrays, in the order that they have in one block of memory. */
enum rm_batch_part {
    RM_BATCH_TURN,
    RM_BATCH_OBS,
    RM_BATCH_NEXT_OBS,
    RM_BATCH_ACTION,
    RM_BATCH_RET,
    RM_BATCH_DISCOUNT,
    RM_BATCH_WEIGHT,
    RM_BATCH_MASK,
    RM_BATCH_NEXT_MASK,
    RM_BATCH_STATE,
    RM_BATCH_RESTART,
    RM_BATCH_VALID,
    RM_BATCH_AHEAD,
    RM_BATCH_ERROR,
    RM_BATCH_LEAF,
    RM_BATCH_PARTS
};

/* Which of the optional arrays a batch has. */
struct rm_batch_extras {
    bool next_masks; /* with next_mask; sequences: with mask */
    bool masks;      /* transitions: with mask too */
    bool priorities; /* with weight and error */
    bool leaves;     /* with leaf */
};

void *rm_batch_part(const struct rm_batch *batch, enum rm_batch_part part);

/* Writes the bytes of each array for a batch of this shape; 0: the batch has no such array. Does
 * not read the arrays of `shape`, and does not include `turn`. */
void rm_batch_measure(const struct rm_batch *shape, const struct rm_batch_extras *extras,
                      size_t bytes[RM_BATCH_PARTS]);

/* Sets the batch's arrays to their places in the block, or to NULL without a block. Returns the
 * block's bytes. */
size_t rm_batch_place(struct rm_batch *batch, const size_t bytes[RM_BATCH_PARTS], uint8_t *block);

/* Allocates the arrays for the batch's shape in host memory, zeroed. rm_batch_free() accepts a
 * zeroed batch too. */
int rm_batch_alloc(struct rm_batch *batch, const struct rm_batch_extras *extras,
                   struct rm_error *error);
void rm_batch_free(struct rm_batch *batch);

/* `size` transitions of a batch, from number `from` on; no sequences. */
struct rm_batch rm_batch_slice(const struct rm_batch *whole, uint32_t from, uint32_t size);

#endif
