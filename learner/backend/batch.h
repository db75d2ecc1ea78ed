/* batch: the transitions, or sequences of transitions, of one update. The sampler fills it in host
 * memory; the arrays belong to the code that created the batch and are reused for every update.
 *
 * SEQUENCES (R2D2): B lanes, each with consecutive rows of an episode, time first. `burn_in` rows
 * only warm up the recurrent state, then follow `trace` trained rows, then `tail` rows for
 * bootstrapping: burn_in + trace + tail = rows. Rows before the episode's first and after its last
 * are zeros: `restart` marks where a lane begins, `valid` which of its trace rows count. */
#ifndef RM_LEARNER_BACKEND_BATCH_H
#define RM_LEARNER_BACKEND_BATCH_H

#include <stdbool.h>
#include <stdint.h>

struct rm_batch {
    uint32_t size;   /* B */
    uint32_t inputs; /* features of a frame * frame stack */
    uint32_t actions;
    uint32_t reals;     /* real numbers of an action, where it has those; else 0 */
    bool codes;         /* obs, next_obs are int32: the network begins with an embedding */
    float *obs;         /* (B, inputs); sequences: (rows, B, inputs) */
    float *next_obs;    /* (B, inputs): m steps on; sequences: NULL */
    int32_t *action;    /* (B, words); sequences: (trace, B), and so the next two */
    float *ret;         /* (B): R = sum over k < m of gamma^k r_k */
    float *discount;    /* (B): g = gamma^m, 0 when the episode terminated within the m steps */
    uint8_t *mask;      /* (B, actions): legal in obs; sequences: (rows, B, actions); NULL when the
                           world gives no masks */
    uint8_t *next_mask; /* (B, actions): legal in next_obs; NULL when the world gives no masks, and
                           for sequences */
    float *weight;      /* (B): importance weights, at most 1; NULL: all 1 */
    float *error;       /* (B): written by the update: the size of each sample's error, for its
                         * priority; NULL: not needed */
    struct rm_device_turn *turn; /* if the device draws, the host's part of the draw
                                  * (backend/device_draw.h), and no other member is filled; NULL:
                                  * the host draws */
    uint64_t *leaf; /* (B): leaves of the items, for the sampler; NULL: only the batch drawn last is
                     * trained on */
    /* Sequences; trace 0: transitions. */
    uint32_t burn_in, trace, tail;
    uint32_t state_floats;
    float *state;     /* (B, state_floats) before the first row */
    uint8_t *restart; /* (rows, B): the state is zeros before this row */
    uint8_t *valid;   /* (trace, B): a transition starts here */
    uint32_t *ahead;  /* (trace, B): m, the rows from here to the one bootstrapped from */
};

/* Words of an action. */
static inline uint32_t rm_batch_words(const struct rm_batch *batch)
{
    return batch->reals ? batch->reals : 1;
}

static inline uint32_t rm_batch_rows(const struct rm_batch *batch)
{
    return batch->burn_in + batch->trace + batch->tail;
}

#endif
