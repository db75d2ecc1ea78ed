/* Private to the feed's files. */
#ifndef RM_LEARNER_FEED_PRIVATE_H
#define RM_LEARNER_FEED_PRIVATE_H

#include "learner/algo/trainer.h"
#include "learner/backend/device.h"
#include "learner/feed.h"

/* Blocks of pinned memory in which rows wait for their copy. */
#define RM_FEED_BLOCKS 4u

/* A ring as the device sees it. */
struct rm_feed_source {
    const struct rm_ring *ring;
    uint8_t *copy;                   /* resident: (rows, stride) */
    void *mapped;                    /* registered: where the region stands for the device */
    size_t stride;                   /* bytes of a row's observations and masks */
    uint64_t brought;                /* rows below this are on the device, or never will be */
    uint64_t lows[RM_TRAINER_DEPTH]; /* first rows of the last draws' windows, stacks included */
};

struct rm_feed {
    struct rm_feed_spec spec; /* `sources` is not kept */
    struct rm_device_gather gather;
    struct rm_feed_source *sources;
    struct rm_device_source *table; /* on the device */
    float *codebook;                /* on the device; NULL: none */
    uint8_t *blocks;                /* pinned: (RM_FEED_BLOCKS, block_bytes) */
    size_t block_bytes;
    struct rm_device_mark *copied[RM_FEED_BLOCKS], *behind;
    uint32_t block, draws;
};

/* Whether rows are copied, or read where they are; 0, or an error in words. Undone by
 * rm_feed_leave(), which takes either. */
int rm_feed_reside(struct rm_feed *feed, struct rm_error *error);
int rm_feed_register(struct rm_feed *feed, struct rm_error *error);
void rm_feed_leave(struct rm_feed *feed);

/* feed_measure.c: seconds that a batch takes to be made on the device as things stand, and by a
 * copy from the host. Negative where there is no memory to measure with. */
double rm_feed_time_gather(struct rm_feed *feed);
double rm_feed_time_host(struct rm_feed *feed); /* made by the host, not copied */
double rm_feed_time_copy(struct rm_feed *feed, size_t bytes);

#endif
