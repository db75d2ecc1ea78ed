/* batch: transitions, or sequences of them, as an algorithm wants them. Filled by the sampler in
 * host memory; arrays belong to whoever made the batch and are reused for every update.
 *
 * SEQUENCES (R2D2): B lanes of consecutive rows of an episode each, time first. `burn_in` rows only
 * warm up the recurrent state, then come `trace` rows that are trained on, then `tail` rows that
 * are only bootstrapped from: burn_in + trace + tail = rows. Where an episode is shorter, before or
 * after, rows are zeros: `restart` says where a lane begins, `valid` which of its trace rows count.
 */
#ifndef RM_LEARNER_BACKEND_BATCH_H
#define RM_LEARNER_BACKEND_BATCH_H

#include <stdbool.h>
#include <stdint.h>

struct rm_batch {
    uint32_t size;   /* B */
    uint32_t inputs; /* features of a frame * frame stack */
    uint32_t actions;
    bool codes;         /* obs, next_obs are int32: the network begins with an embedding */
    float *obs;         /* (B, inputs); sequences: (rows, B, inputs) */
    float *next_obs;    /* (B, inputs): m steps on; sequences: NULL */
    int32_t *action;    /* (B); sequences: (trace, B), and so the next two */
    float *ret;         /* (B): R = sum over k < m of gamma^k r_k */
    float *discount;    /* (B): g = gamma^m, 0 when the episode terminated within the m steps */
    uint8_t *mask;      /* (B, actions): legal in obs; sequences: (rows, B, actions); NULL when the
                           world gives no masks */
    uint8_t *next_mask; /* (B, actions): legal in next_obs; NULL when the world gives no masks, and
                           for sequences */
    float *weight;      /* (B): importance weights, at most 1; NULL: all 1 */
    float *error;       /* (B): what the update leaves, the size of each sample's error, from which
                           its priority follows; NULL: nobody asks */
    struct rm_device_pick *picks; /* (B): where the rows of these are (backend/device_feed.h),
                                     instead of copies of them: obs, next_obs and masks are not
                                     filled; NULL: they are */
    struct rm_device_turn *turn;  /* what the host says where the device draws for itself
                                     (backend/device_draw.h): nothing else is filled; NULL: it does
                                     not */
    uint64_t *leaf; /* (B): which items these are, for the sampler; NULL: it knows of the batch
                       drawn     last, and no other is learned from */
    /* Sequences; trace 0: transitions. */
    uint32_t burn_in, trace, tail;
    uint32_t state_floats;
    float *state;     /* (B, state_floats) before the first row */
    uint8_t *restart; /* (rows, B): the state is zeros before this row */
    uint8_t *valid;   /* (trace, B): a transition starts here */
    uint32_t *ahead;  /* (trace, B): m, the rows from here to the one bootstrapped from */
};

static inline uint32_t rm_batch_rows(const struct rm_batch *batch)
{
    return batch->burn_in + batch->trace + batch->tail;
}

#endif
