/* device_feed: batches made on a device from its copy of the replay rows. A draw (device_draw.h)
 * picks the rows; the gather reads their observations, decodes them (learner/net/features.h) and
 * stacks them.
 *
 * C and C++. Pointers are device memory. */
#ifndef RM_LEARNER_BACKEND_DEVICE_FEED_H
#define RM_LEARNER_BACKEND_DEVICE_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_backend;

/* The rows of one ring: row r is at rows + (r & row_mask) * stride. */
struct rm_device_source {
    const uint8_t *rows;       /* observations of row 0's lanes, obs_bytes each */
    uint64_t stride, row_mask; /* bytes; rows - 1 */
    uint64_t mask_at;          /* from a row's observations to its masks; 0: none */
};

/* One transition: it ends `steps` rows after `row`; a stack may include `before` earlier rows. */
struct rm_device_pick {
    uint64_t row;
    uint32_t source, lane;
    uint32_t before, steps;
};

/* One of the observations of an entry (struct rm_observation_place). */
struct rm_device_observation {
    uint32_t dtype; /* enum rm_env_dtype of actor/env.h */
    uint32_t at;    /* bytes from the entry to its elements */
    uint32_t words_at, words;
    uint32_t elements;
    uint32_t codes, channels; /* CODE8, where it is decoded; else 0 */
    uint32_t as_codes;        /* words are int32 codes, not floats */
    uint32_t most, item;      /* counted: its shape[0], elements of each; else 0 */
    const float *codebook;
};
#define RM_DEVICE_OBSERVATIONS 32

struct rm_device_decode {
    uint32_t obs_bytes; /* of an entry */
    uint32_t words;     /* of a frame */
    uint32_t actions;
    uint32_t observations;
    struct rm_device_observation observation[RM_DEVICE_OBSERVATIONS];
};

struct rm_device_gather {
    const struct rm_device_source *sources;
    struct rm_device_decode decode;
    uint32_t stack, batch;
    const struct rm_device_pick *picks; /* (batch) */
    /* Results: */
    void *obs, *next_obs; /* (batch, stack * words) of 4 bytes, laid out as in features.h */
    uint8_t *next_mask;   /* (batch, actions), NULL: none */
};

struct rm_device_sampler; /* device_draw.h */

struct rm_device_feed_ops {
    void (*gather)(struct rm_backend *b, const struct rm_device_gather *gather);

    /* Draws a batch. With priorities, first enters rows that have arrived. The result does not
     * depend on the order of threads. */
    void (*draw)(struct rm_backend *b, const struct rm_device_sampler *draw);
    /* With priorities: stores the errors (batch) of the last batch as its priorities, unless its
     * update was skipped. */
    void (*learned)(struct rm_backend *b, const struct rm_device_sampler *draw, const float *error);
    /* With priorities: computes all levels from the leaves. */
    void (*add_up)(struct rm_backend *b, const struct rm_device_sampler *draw);
};

#endif
