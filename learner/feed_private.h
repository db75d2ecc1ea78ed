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
    uint8_t *copy;                   /* resident: (rows, row_bytes) */
    void *mapped;                    /* registered: where the region stands for the device */
    uint64_t brought;                /* rows below this are on the device, or never will be */
    uint64_t whole;                  /* rows below this were overwritten while they were copied, or
                                        are older: nothing may be drawn that needs one */
    uint64_t lows[RM_TRAINER_DEPTH]; /* first rows of the last draws' windows, stacks included */
};

struct rm_feed {
    struct rm_feed_spec spec;       /* `sampler` is not kept, but a copy of it: */
    struct rm_sampler_spec sampler; /* `sources` is not kept */
    struct rm_device_gather gather;
    struct rm_device_sampler draw;  /* .sources NULL: the host draws */
    struct rm_feed_source *sources; /* (sampler.source_count) */
    struct rm_device_source *table; /* on the device */
    float *codebook;                /* on the device; NULL: none */
    uint8_t *blocks;                /* pinned: (RM_FEED_BLOCKS, block_bytes) */
    size_t block_bytes;
    struct rm_device_mark *copied[RM_FEED_BLOCKS], *behind;
    uint32_t block, draws;
    uint8_t *tables, *tree; /* on the device: what `draw` points to */
    void *mapped;           /* the region of priorities as the device sees it */
};

/* Whether rows are copied, or read where they are; 0, or an error in words. Undone by
 * rm_feed_leave(), which takes either. */
int rm_feed_reside(struct rm_feed *feed, const struct rm_sampler_source *sources,
                   struct rm_error *error);
int rm_feed_register(struct rm_feed *feed, struct rm_error *error);
void rm_feed_leave(struct rm_feed *feed);

/* Sends the host's `bytes` (a multiple of 4) to device memory, and waits. */
void rm_feed_send(struct rm_feed *feed, void *to, const void *from, size_t bytes);

/* feed_rows.c: the copies of the rings, and how rows get there. */
int rm_feed_make_copies(struct rm_feed *feed, struct rm_error *error);
void rm_feed_free_copies(struct rm_feed *feed);

/* feed_draw.c: what a device needs that draws. Rows are copied already. */
int rm_feed_make_draw(struct rm_feed *feed, const struct rm_sampler_source *sources,
                      struct rm_error *error);
void rm_feed_free_draw(struct rm_feed *feed);

/* feed_measure.c: seconds that a batch takes as things stand: to be drawn and made on the device,
 * to be made there of what was drawn, to be chosen and to be made on the host, and a copy from
 * there. Negative where there is no memory to measure with. Nothing else may be under way on the
 * device. */
double rm_feed_time_draw(struct rm_feed *feed);
double rm_feed_time_gather(struct rm_feed *feed);
double rm_feed_time_choice(struct rm_feed *feed);
double rm_feed_time_host(struct rm_feed *feed);
double rm_feed_time_copy(struct rm_feed *feed, size_t bytes);

#endif
