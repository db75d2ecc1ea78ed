/* device_draw: batches that a device draws from its copy of the replay rows. The draws use the
 * random numbers of sampler.h, so the device finds the items that the host would find. With
 * priorities, the sum tree of shm/priorities.h is in device memory. The host gives the number of
 * committed rows and the time of an update; everything else is part of the captured update.
 *
 * C and C++. Pointers are device memory, except where a comment names another. */
#ifndef RM_LEARNER_BACKEND_DEVICE_DRAW_H
#define RM_LEARNER_BACKEND_DEVICE_DRAW_H

#include "learner/backend/device_feed.h"
#include "learner/backend/transition.h"

struct rm_update_knobs;
struct rm_update_figures;

#define RM_DEVICE_LEVELS 14u /* RM_PRIORITY_LEVELS */

/* The rows of a source, with all columns. */
struct rm_device_lanes {
    struct rm_row_view view;
    uint64_t first_index;
    uint32_t lanes, worlds, first_world;
    uint32_t reserved;
};

/* The host's numbers for one draw; a struct rm_row_span for each source follows. */
struct rm_device_turn {
    uint64_t longest; /* `starts` of the longest span; below 2 no draw is possible */
    double beta;      /* exponent of the importance weights */
};

static inline size_t rm_device_turn_bytes(uint32_t sources)
{
    return sizeof(struct rm_device_turn) + sources * sizeof(struct rm_row_span);
}

/* Counts of draws since the last report. */
struct rm_device_drawn {
    uint64_t rejected, age_sum, age_count; /* struct rm_sampler_counts */
    uint64_t dry;                          /* draws that found too few rows: DRY below */
};

/* Levels as in shm/priorities.h. `kept_` members are the region's: host memory to which the device
 * writes every change, so that the priorities survive the learner. */
struct rm_device_tree {
    uint64_t slots;
    uint32_t levels; /* 0: draws are uniform */
    uint64_t nodes[RM_DEVICE_LEVELS];
    double *level[RM_DEVICE_LEVELS];
    uint64_t *entered; /* (sources) */
    double *largest;
    uint32_t *last; /* (leaves) the last position of a leaf in the batch; 0 between launches */
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
    struct rm_update_figures *figures;  /* the draw sets `stop` if it is dry */
    struct rm_device_drawn *drawn_copy; /* receives *drawn after this draw */
    /* Results, (batch) each. */
    struct rm_device_pick *picks;
    int32_t *action;
    float *ret, *discount;
    float *weight;                  /* with priorities */
    uint64_t *leaf;                 /* with priorities */
    struct rm_device_gather gather; /* makes the batch from the picks */
};

/* DRY. If too few rows can be drawn, the device sets figures->stop. This update and its successors
 * then change nothing and count as dry, until the host has read the count, uncounted the updates
 * and cleared `stop`. So the device makes exactly the updates that the host would make. */

#endif
