/* Private to the sampler's files. */
#ifndef RM_LEARNER_SAMPLER_PRIVATE_H
#define RM_LEARNER_SAMPLER_PRIVATE_H

#include "learner/net/sorrel_slots.h"
#include "learner/sampler.h"
#include "learner/sampler_source.h"
#include "shm/base/rng.h"

struct rm_sampler {
    struct rm_sampler_spec spec; /* `sources` is not kept */
    uint32_t worlds, lanes;      /* of the experiment: lanes = agents * worlds */
    uint32_t features;           /* of one frame */
    size_t obs_bytes;
    uint64_t capacity_rows;
    uint64_t longest;          /* `starts` of the longest window */
    struct rm_window *windows; /* [source_count] */
    uint32_t *source_of_world; /* [worlds] */
    const uint8_t **frames;    /* [frame_stack + n_step + 1] */
    struct rm_transition scratch;
    struct rm_batch batch;
    struct rm_sampler_counts counts;

    /* Forms sorrel-*: the original's buffer. */
    struct rm_sorrel_slots slots;
    uint64_t scanned; /* index of the next row to push */
    uint32_t *order;  /* [capacity]: a permutation of start slots */
};

/* The original's buffer over the single ring of a single world (sampler_sorrel.c). */
int rm_sampler_sorrel_create(struct rm_sampler *s, struct rm_error *error);
void rm_sampler_sorrel_scan(struct rm_sampler *s);
int rm_sampler_sorrel_draw(struct rm_sampler *s, struct rm_rng *rng, struct rm_batch *batch);

#endif
