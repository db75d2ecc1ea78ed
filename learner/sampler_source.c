#include "learner/sampler_source.h"

#include "shm/layout.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct rm_row_view rm_rows_of(const struct rm_ring *ring, uint32_t actions)
{
    return (struct rm_row_view){
        .rows = ring->data,
        .stride = ring->row_bytes,
        .row_mask = ring->mask,
        .generation_at = offsetof(struct rm_row_head, generation),
        .reward_at = (uint32_t)ring->reward_at,
        .flags_at = (uint32_t)ring->flags_at,
        .action_at = (uint32_t)ring->action_at,
        .action_words = ring->spec.action_words,
        .actions = actions,
    };
}

void rm_window_open(struct rm_window *window, const struct rm_sampler_source *source,
                    uint32_t actions)
{
    memset(window, 0, sizeof *window);
    window->source = *source;
    window->view = rm_rows_of(source->ring, actions);
    window->end = window->counted = source->ring->spec.first_index;
}

void rm_window_free(struct rm_window *window, uint64_t capacity_rows)
{
    uint64_t first;
    rm_ring_window(window->source.ring, &first, &window->end);
    window->held = window->end - first;
    window->starts = least(window->held, capacity_rows);
}

void rm_window_round(struct rm_window *window, uint64_t round, uint32_t round_steps,
                     uint64_t capacity_rows)
{
    const struct rm_ring_spec *spec = &window->source.ring->spec;
    const uint64_t written = (round - 1) * round_steps; /* committed before this round */
    window->end = spec->first_index + written;
    /* During the round the writer reserves round_steps more rows, which replace the oldest. */
    const uint64_t safe = spec->rows > round_steps ? spec->rows - round_steps : 0;
    window->held = least(written, safe);
    window->starts = least(window->held, capacity_rows);
}

uint64_t rm_window_count_new(struct rm_window *window)
{
    const struct rm_ring *ring = window->source.ring;
    uint64_t fresh = window->end - window->counted, steps = 0;
    if (fresh > window->held)
        fresh = window->held;
    for (uint64_t d = fresh; d >= 1; d--) {
        const uint8_t *flags = rm_ring_row(ring, window->end - d).flags;
        for (uint32_t lane = 0; lane < ring->spec.lanes; lane++)
            steps += !(flags[lane] & (RM_FLAG_LAST | RM_FLAG_DEAD));
    }
    window->counted = window->end;
    return steps;
}

bool rm_transition_there(const struct rm_window *window, uint64_t distance, uint32_t lane,
                         const struct rm_transition_rule *rule)
{
    const struct rm_row_span span = rm_window_span(window);
    struct rm_transition_found ignored;
    return rm_view_look(&window->view, &span, distance, lane, rule, &ignored);
}

/* The whole action, of agents without discrete ones. */
static void take_reals(const struct rm_window *window, uint64_t distance, uint32_t lane,
                       int32_t *reals)
{
    const struct rm_ring *ring = window->source.ring;
    const uint32_t words = ring->spec.action_words;
    const struct rm_row row = rm_ring_row(ring, window->end - distance);
    rm_ring_copy_out(reals, row.action + (size_t)lane * words, words * sizeof *reals);
    for (uint32_t i = 0; i < words; i++)
        reals[i] = rm_row_real(reals[i]);
}

enum rm_item_copy rm_transition_copy(const struct rm_window *window, uint64_t distance,
                                     uint32_t lane, const struct rm_transition_rule *rule,
                                     struct rm_transition *out)
{
    const struct rm_ring *ring = window->source.ring;
    const struct rm_row_span span = rm_window_span(window);
    const struct rm_transition_found *found = &out->found;
    if (!rm_view_look(&window->view, &span, distance, lane, rule, &out->found))
        return RM_ITEM_INVALID;
    const size_t bytes = ring->spec.obs_bytes;
    uint8_t *to = out->frames;
    const uint32_t rows = found->before + 1 + found->steps;
    for (uint32_t i = 0; i < rows; i++, to += bytes) {
        const struct rm_row row = rm_ring_row(ring, window->end - distance - found->before + i);
        rm_ring_copy_out(to, row.obs + lane * bytes, bytes);
        if (row.mask && (i == found->before || i + 1 == rows))
            rm_ring_copy_out(i + 1 == rows ? out->mask : out->first_mask,
                             row.mask + (size_t)lane * ring->spec.mask_bytes,
                             ring->spec.mask_bytes);
    }
    out->action = rm_view_action(&window->view, window->end - distance, lane);
    if (!window->view.actions)
        take_reals(window, distance, lane, out->reals);
    return rm_ring_intact(ring, window->end - found->oldest) ? RM_ITEM_COPIED : RM_ITEM_OVERWRITTEN;
}
