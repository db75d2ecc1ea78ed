/* Private to the sampler's files. */
#ifndef RM_LEARNER_SAMPLER_PRIVATE_H
#define RM_LEARNER_SAMPLER_PRIVATE_H

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
    struct rm_transition_rule rule;
    bool device_draws; /* rm_sampler_device_draws() */
    uint32_t reach;    /* rows after an item's first that must be committed before it enters */

    /* Priorities; tree NULL: uniform draws. */
    struct rm_priorities *tree;
    struct rm_priorities own; /* the sampler's own tree: for uniform draws of sequences, and with
                               * own_priorities */
    bool alike;               /* uniform draws from a tree */
    uint32_t *age;  /* [lanes]: sequences: rows since the episode's first, at the last row read;
                     * UINT32_MAX: unknown */
    uint64_t items; /* leaves that are not 0 */
    double beta;
    double *at;         /* [batch]: draws */
    uint64_t *leaf;     /* [batch]: drawn leaves */
    double *value;      /* [batch]: new priorities */
    uint64_t *new_leaf; /* [RM_SAMPLER_ENTRIES]: rows being entered */
    double *new_value;
    uint32_t entries;

    const struct rm_sampler_way *way; /* NULL: by age, or by priority where there is a tree */
    void *way_own;                    /* the way's data */
};

/* Another way to draw, with its data (`way_own`). */
struct rm_sampler_way {
    int (*create)(struct rm_sampler *s, struct rm_error *error); /* sets s->way_own */
    void (*destroy)(struct rm_sampler *s);
    void (*scan)(struct rm_sampler *s); /* the windows have changed */
    int (*draw)(struct rm_sampler *s, struct rm_rng *rng, struct rm_batch *batch);
    uint64_t (*held)(const struct rm_sampler *s);
    void (*state)(struct rm_sampler *s, struct rm_state *state);
};

/* The other way to draw that a form of replay has (config/forms.h); NULL: none. */
const struct rm_sampler_way *rm_sampler_way_of(enum rm_form form);

#define RM_SAMPLER_ENTRIES 1024u

/* Copies the item of `lane` that starts in row end - distance to position i of the batch. */
enum rm_item_copy rm_sampler_copy(struct rm_sampler *s, const struct rm_window *window,
                                  uint64_t distance, uint32_t lane, uint32_t i,
                                  struct rm_batch *batch);

/* The source of a global lane, and its lane there. */
const struct rm_window *rm_sampler_lane(const struct rm_sampler *s, uint32_t global,
                                        uint32_t *lane);

/* Sequences (sampler_sequence.c). */
int rm_sampler_sequence_create(struct rm_sampler *s, struct rm_error *error);
/* Does a sequence of `lane` start in row end - distance? Call for every row in order. */
bool rm_sampler_sequence_starts(struct rm_sampler *s, const struct rm_window *window,
                                uint64_t distance, uint32_t lane, uint32_t global);
enum rm_item_copy rm_sampler_sequence_copy(struct rm_sampler *s, const struct rm_window *window,
                                           uint64_t distance, uint32_t lane, uint32_t i,
                                           struct rm_batch *batch);

/* Draws by priority (sampler_priority.c). */
int rm_sampler_priority_create(struct rm_sampler *s, struct rm_error *error);
void rm_sampler_priority_destroy(struct rm_sampler *s);
void rm_sampler_priority_scan(struct rm_sampler *s);
int rm_sampler_priority_draw(struct rm_sampler *s, struct rm_rng *rng, struct rm_batch *batch);

#endif
