#include "learner/sampler_source.h"

#include <string.h>

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void rm_window_open(struct rm_window *window, const struct rm_sampler_source *source)
{
    memset(window, 0, sizeof *window);
    window->source = *source;
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
    const uint64_t written = (round - 1) * round_steps; /* before this round */
    window->end = spec->first_index + written;
    /* During the round the writer claims round_steps rows more: those take the place of the oldest.
     */
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

int rm_window_before(const struct rm_window *window, uint64_t distance, uint32_t lane,
                     uint32_t most, uint64_t generation, uint64_t *oldest)
{
    const struct rm_ring *ring = window->source.ring;
    uint8_t flags = rm_ring_row(ring, window->end - distance).flags[lane];
    for (uint32_t n = 0; n < most; n++) {
        if (flags & RM_FLAG_FIRST)
            return (int)n;
        if (distance + n + 1 > window->held)
            return -1;
        *oldest = distance + n + 1;
        const struct rm_row row = rm_ring_row(ring, window->end - *oldest);
        flags = row.flags[lane];
        if (*row.generation != generation || (flags & (RM_FLAG_LAST | RM_FLAG_DEAD)))
            return (int)n;
    }
    return (int)most;
}

bool rm_transition_walk(const struct rm_window *window, uint64_t distance, uint32_t lane,
                        uint32_t n, double gamma, uint64_t generation, struct rm_transition *out)
{
    double ret = 0, discount = 1;
    out->steps = 0;
    for (uint32_t k = 1; k <= n; k++) {
        if (distance <= k)
            return false;
        const struct rm_row row = rm_ring_row(window->source.ring, window->end - distance + k);
        const uint8_t flags = row.flags[lane];
        if (*row.generation != generation ||
            (flags & (RM_FLAG_FIRST | RM_FLAG_DEAD | RM_FLAG_VOID)))
            break;
        ret += discount * (double)row.reward[lane];
        discount *= gamma;
        out->steps = k;
        if (flags & RM_FLAG_TERMINATED)
            discount = 0;
        if (flags & RM_FLAG_LAST)
            break;
    }
    out->ret = (float)ret;
    out->discount = (float)discount;
    return out->steps > 0;
}

/* Everything but the copies. *oldest: the greatest distance that was looked at. */
static bool look(const struct rm_window *window, uint64_t distance, uint32_t lane,
                 const struct rm_transition_rule *rule, struct rm_transition *out, uint64_t *oldest)
{
    if (distance < 2 || distance > window->starts)
        return false;
    *oldest = distance;
    const struct rm_row start = rm_ring_row(window->source.ring, window->end - distance);
    const uint64_t generation = *start.generation;
    if (start.flags[lane] & (RM_FLAG_LAST | RM_FLAG_DEAD))
        return false;
    if (!rm_transition_walk(window, distance, lane, rule->n_step, rule->gamma, generation, out))
        return false;
    const int before =
        rm_window_before(window, distance, lane, rule->frame_stack - 1, generation, oldest);
    out->before = (uint32_t)before;
    return before >= 0;
}

bool rm_transition_there(const struct rm_window *window, uint64_t distance, uint32_t lane,
                         const struct rm_transition_rule *rule)
{
    struct rm_transition ignored;
    uint64_t oldest;
    return look(window, distance, lane, rule, &ignored, &oldest);
}

enum rm_take rm_transition_take(const struct rm_window *window, uint64_t distance, uint32_t lane,
                                const struct rm_transition_rule *rule, struct rm_transition *out)
{
    const struct rm_ring *ring = window->source.ring;
    uint64_t oldest;
    if (!look(window, distance, lane, rule, out, &oldest))
        return RM_TAKE_INVALID;
    const struct rm_row start = rm_ring_row(ring, window->end - distance);

    const size_t bytes = ring->spec.obs_bytes;
    uint8_t *to = out->frames;
    const uint32_t rows = out->before + 1 + out->steps;
    for (uint32_t i = 0; i < rows; i++, to += bytes) {
        const struct rm_row row = rm_ring_row(ring, window->end - distance - out->before + i);
        rm_ring_copy_out(to, row.obs + lane * bytes, bytes);
        if (row.mask && (i == out->before || i + 1 == rows))
            rm_ring_copy_out(i + 1 == rows ? out->mask : out->first_mask,
                             row.mask + (size_t)lane * ring->spec.mask_bytes,
                             ring->spec.mask_bytes);
    }
    out->action = start.action[(size_t)lane * ring->spec.action_words];
    return rm_ring_intact(ring, window->end - oldest) ? RM_TAKE_OK : RM_TAKE_TORN;
}

enum rm_take rm_transition_pick(const struct rm_window *window, uint64_t distance, uint32_t lane,
                                const struct rm_transition_rule *rule, struct rm_transition *out)
{
    const struct rm_ring *ring = window->source.ring;
    uint64_t oldest;
    if (!look(window, distance, lane, rule, out, &oldest))
        return RM_TAKE_INVALID;
    const struct rm_row start = rm_ring_row(ring, window->end - distance);
    out->action = start.action[(size_t)lane * ring->spec.action_words];
    return rm_ring_intact(ring, window->end - oldest) ? RM_TAKE_OK : RM_TAKE_TORN;
}
