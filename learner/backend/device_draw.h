/* device_draw: batches that a device draws for itself, from the rows that it has of replay: the
 * draws of sampler.h with the same numbers, so it finds the items that the host would, and with
 * priorities the sum tree of shm/priorities.h in its memory. The host says how far rows have come
 * and when to update; everything else is part of the captured update.
 *
 * C and C++. Pointers are device memory but where said. */
#ifndef RM_LEARNER_BACKEND_DEVICE_DRAW_H
#define RM_LEARNER_BACKEND_DEVICE_DRAW_H

#include "learner/backend/device_feed.h"
#include "learner/backend/transition.h"

struct rm_update_knobs;
struct rm_update_figures;

#define RM_DEVICE_LEVELS 14u /* RM_PRIORITY_LEVELS */

/* A source's rows, with all columns. */
struct rm_device_lanes {
    struct rm_row_view view;
    uint64_t first_index;
    uint32_t lanes, worlds, first_world;
    uint32_t reserved;
};

/* What the host says of one draw; behind it a struct rm_row_span for each source. */
struct rm_device_turn {
    uint64_t longest; /* `starts` of the longest span; under 2 there is nothing to draw from */
    double beta;      /* exponent of the importance weights */
};

static inline size_t rm_device_turn_bytes(uint32_t sources)
{
    return sizeof(struct rm_device_turn) + sources * sizeof(struct rm_row_span);
}

/* Counts of draws since the last report. */
struct rm_device_drawn {
    uint64_t rejected, age_sum, age_count; /* struct rm_sampler_counts */
    uint64_t dry;                          /* draws that found too little: see below */
};

/* Levels as in shm/priorities.h. `kept` are those of the region, in memory of the host that the
 * device writes through to, so that what a learner leaves is there when it dies. */
struct rm_device_tree {
    uint64_t slots;
    uint32_t levels; /* 0: draws are uniform */
    uint64_t nodes[RM_DEVICE_LEVELS];
    double *level[RM_DEVICE_LEVELS];
    uint64_t *entered; /* (sources) */
    double *largest;
    uint32_t *last; /* (leaves) 0 between launches: which place of a batch comes last */
    double *kept_leaves, *kept_largest;
    uint64_t *kept_entered;
    double alpha, epsilon;
};

struct rm_device_sampler {
    uint64_t seed;
    uint32_t policy, batch;
    uint32_t tries;         /* draws of an item before giving up */
    uint32_t worlds, lanes; /* of all sources */
    uint32_t source_count;
    uint64_t capacity_rows;
    struct rm_transition_rule rule;
    const struct rm_device_lanes *sources;
    const uint32_t *source_of_world; /* (worlds) */
    struct rm_device_tree tree;
    struct rm_device_drawn *drawn;
    /* Of one update. */
    const struct rm_update_knobs *knobs; /* `before` keys the draw */
    const struct rm_device_turn *turn;
    struct rm_update_figures *figures; /* `stop` is set where the draw is dry */
    struct rm_device_drawn *told;      /* a copy of *drawn as this draw leaves it */
    /* Made, (batch) each. */
    struct rm_device_pick *picks;
    int32_t *action;
    float *ret, *discount;
    float *weight;  /* with priorities */
    uint64_t *leaf; /* with priorities */
};

/* DRY. Where the host's draw would fail, the device sets figures->stop: this update and those after
 * it change nothing, count nothing, and count as dry, until the host reads that, takes them back
 * and clears `stop`. So what is made is what the host would have made. */

#endif
