/* batch: transitions as an algorithm wants them. Filled by the sampler in host memory; arrays
 * belong to whoever made the batch and are reused for every update. */
#ifndef RM_LEARNER_BATCH_H
#define RM_LEARNER_BATCH_H

#include <stdint.h>

struct rm_batch {
    uint32_t size;   /* B */
    uint32_t inputs; /* features of a frame * frame stack */
    uint32_t actions;
    float *obs;         /* (B, inputs) */
    float *next_obs;    /* (B, inputs): m steps on */
    int32_t *action;    /* (B) */
    float *ret;         /* (B): R = sum over k < m of gamma^k r_k */
    float *discount;    /* (B): g = gamma^m, 0 when the episode terminated within the m steps */
    uint8_t *mask;      /* (B, actions): legal in obs; NULL when the world gives no masks */
    uint8_t *next_mask; /* (B, actions): legal in next_obs; NULL when the world gives no masks */
    float *weight;      /* (B): importance weights, at most 1; NULL: all 1 */
    float *error;       /* (B): what the update leaves, the size of each sample's error, from which
                           its priority follows; NULL: nobody asks */
};

#endif
