/* Private to the sampler: windows over rings, and reading one transition from a ring's rows. */
#ifndef RM_LEARNER_SAMPLER_SOURCE_H
#define RM_LEARNER_SAMPLER_SOURCE_H

#include "learner/sampler.h"
#include "learner/backend/transition.h"

/* A source with its window. Distances count back from `end`, so indices may wrap: row end - d. */
struct rm_window {
    struct rm_sampler_source source;
    uint64_t end;     /* one past the newest row that may be read */
    uint64_t held;    /* rows that may be read: distances 1 .. held */
    uint64_t starts;  /* rows where a transition may start: distances 1 .. starts, <= held */
    uint64_t counted; /* index up to which rm_sampler_count_new() has counted */
    struct rm_row_view view;
};

/* A view of a ring's rows in place. */
struct rm_row_view rm_rows_of(const struct rm_ring *ring, uint32_t actions);

void rm_window_open(struct rm_window *window, const struct rm_sampler_source *source,
                    uint32_t actions);
/* All rows readable now. */
void rm_window_free(struct rm_window *window, uint64_t capacity_rows);
/* Rows committed before round `round` that the writer cannot overwrite during it. */
void rm_window_round(struct rm_window *window, uint64_t round, uint32_t round_steps,
                     uint64_t capacity_rows);
/* Agent steps in rows not counted before. */
uint64_t rm_window_count_new(struct rm_window *window);

static inline struct rm_row_span rm_window_span(const struct rm_window *window)
{
    return (struct rm_row_span){window->end, window->held, window->starts};
}

/* Raw copies of one transition's rows, checked after copying. */
struct rm_transition {
    struct rm_transition_found found;
    int32_t action;
    int32_t *reals;      /* (action_words) of agents that choose real numbers alone; else unused */
    uint8_t *frames;     /* (before + 1 + m, obs_bytes): rows start - before .. start + m */
    uint8_t *mask;       /* (actions) of row start + m, when the ring has masks */
    uint8_t *first_mask; /* (actions) of row start */
};

enum rm_item_copy { RM_ITEM_COPIED, RM_ITEM_INVALID, RM_ITEM_OVERWRITTEN };

/* Is there a transition of `lane` that starts in row end - distance? The rows are not checked: they
 * may have been overwritten meanwhile. */
bool rm_transition_there(const struct rm_window *window, uint64_t distance, uint32_t lane,
                         const struct rm_transition_rule *rule);

/* Copies the transition of `lane` that starts in row end - distance to `out`. INVALID: no
 * transition starts there. OVERWRITTEN: the writer has overwritten a row meanwhile; do not use
 * `out`. */
enum rm_item_copy rm_transition_copy(const struct rm_window *window, uint64_t distance,
                                     uint32_t lane, const struct rm_transition_rule *rule,
                                     struct rm_transition *out);

#endif
