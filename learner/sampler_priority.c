/* Draws in proportion to priorities: items that enter and leave the tree, draws, importance
 * weights, and new priorities. */
#include "learner/priority_tree.h"
#include "learner/sampler_private.h"
#include "shm/base/fault.h"
#include "shm/layout.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

int rm_sampler_priority_create(struct rm_sampler *s, struct rm_error *error)
{
    const struct rm_sampler_spec *spec = &s->spec;
    int rc = 0;
    s->tree = spec->priorities;
    s->alike = !spec->priorities && !spec->own_priorities;
    if (!spec->priorities) {
        const struct rm_priorities_spec own = {.slots = s->capacity_rows,
                                               .lanes = s->lanes,
                                               .sources = spec->source_count,
                                               .policy = spec->policy};
        rc = rm_priorities_create(&s->own, &own, error);
        s->tree = &s->own;
    }
    if (rc)
        return rc;
    const struct rm_priorities_spec *tree = &s->tree->spec;
    if (tree->slots != s->capacity_rows || tree->lanes != s->lanes ||
        tree->sources != spec->source_count)
        return rm_fail(
            error, -EPROTO,
            "priorities have %llu rows of %u lanes from %u rings; the sampler has %llu, %u, %u",
            (unsigned long long)tree->slots, tree->lanes, tree->sources,
            (unsigned long long)s->capacity_rows, s->lanes, spec->source_count);
    s->beta = 1;
    s->at = calloc(spec->batch, sizeof *s->at);
    s->leaf = calloc(spec->batch, sizeof *s->leaf);
    s->value = calloc(spec->batch, sizeof *s->value);
    s->new_leaf = calloc(RM_SAMPLER_ENTRIES, sizeof *s->new_leaf);
    s->new_value = calloc(RM_SAMPLER_ENTRIES, sizeof *s->new_value);
    if (!s->at || !s->leaf || !s->value || !s->new_leaf || !s->new_value)
        return rm_fail(error, -ENOMEM, "no memory for draws of %u", spec->batch);
    /* A predecessor may have died between leaves and sums. */
    rm_priority_rebuild(s->tree);
    s->items = rm_priority_count(s->tree);
    return 0;
}

void rm_sampler_priority_destroy(struct rm_sampler *s)
{
    free(s->at);
    free(s->leaf);
    free(s->value);
    free(s->new_leaf);
    free(s->new_value);
    if (s->tree == &s->own)
        rm_priorities_close(&s->own);
}

/* --- rows come and go ------------------------------------------------------------------------ */

static void change(struct rm_sampler *s, const uint64_t *leaf, const double *value, uint32_t n)
{
    s->items += (uint64_t)rm_priority_set(s->tree, leaf, value, n);
}

static void flush(struct rm_sampler *s)
{
    change(s, s->new_leaf, s->new_value, s->entries);
    s->entries = 0;
}

static void enter(struct rm_sampler *s, uint64_t leaf, double value)
{
    if (value == rm_priority_at(s->tree, leaf))
        return;
    s->new_leaf[s->entries] = leaf;
    s->new_value[s->entries] = value;
    if (++s->entries == RM_SAMPLER_ENTRIES)
        flush(s);
}

static bool starts(struct rm_sampler *s, const struct rm_window *window, uint64_t distance,
                   uint32_t lane, uint32_t global)
{
    if (s->spec.sequence.trace)
        return rm_sampler_sequence_starts(s, window, distance, lane, global);
    return rm_transition_there(window, distance, lane, &s->rule);
}

/* Enters row `row`, counted from the ring's first: removes the items of the row that it replaces,
 * and enters the items that start `reach` rows before it, which are complete now. */
static void enter_row(struct rm_sampler *s, const struct rm_window *window, uint64_t row)
{
    const struct rm_sampler_source *source = &window->source;
    const uint64_t rows = window->end - source->ring->spec.first_index;
    const double largest = RM_PEEK(&s->tree->shared->largest);
    const uint64_t start = row - s->reach;
    const bool there = row >= s->reach && s->reach < s->capacity_rows;
    for (uint32_t lane = 0; lane < source->ring->spec.lanes; lane++) {
        const uint64_t global = (uint64_t)(lane / source->worlds) * s->worlds +
                                source->first_world + lane % source->worlds;
        enter(s, row % s->capacity_rows * s->lanes + global, 0);
        if (there && starts(s, window, rows - start, lane, (uint32_t)global))
            enter(s, start % s->capacity_rows * s->lanes + global, largest);
    }
    flush(s); /* the next row may change the same leaves */
}

void rm_sampler_priority_scan(struct rm_sampler *s)
{
    for (uint32_t i = 0; i < s->spec.source_count; i++) {
        const struct rm_window *window = &s->windows[i];
        const uint64_t rows = window->end - window->source.ring->spec.first_index;
        uint64_t row = RM_PEEK(&s->tree->entered[i]);
        if (row < rows - window->held) { /* the writer is a whole ring ahead */
            row = rows - window->held;
            for (uint32_t l = 0; s->age && l < s->lanes; l++)
                s->age[l] = UINT32_MAX;
        }
        for (; row < rows; row++)
            enter_row(s, window, row);
        RM_FAULT("priorities.scan.entered");
        RM_RAISE(&s->tree->entered[i], rows);
    }
}

/* --- draws ----------------------------------------------------------------------------------- */

/* Copies the item of `leaf` into the batch. An item whose rows are overwritten leaves the tree. */
static bool copy_leaf(struct rm_sampler *s, uint64_t leaf, uint32_t i, struct rm_batch *batch)
{
    const uint64_t slot = leaf / s->lanes;
    uint32_t lane;
    const struct rm_window *window = rm_sampler_lane(s, (uint32_t)(leaf % s->lanes), &lane);
    const uint64_t rows = window->end - window->source.ring->spec.first_index;
    const uint64_t newest = rows - 1, cap = s->capacity_rows;
    /* The newest row of that slot. */
    const uint64_t distance = 1 + (newest % cap + cap - slot) % cap;
    if (rows && rm_priority_at(s->tree, leaf) > 0 &&
        rm_sampler_copy(s, window, distance, lane, i, batch) == RM_ITEM_COPIED)
        return true;
    const double nothing = 0;
    change(s, &leaf, &nothing, 1);
    return false;
}

/* The array of a batch's leaves. */
static uint64_t *leaves_of(const struct rm_sampler *s, const struct rm_batch *batch)
{
    return batch->leaf ? batch->leaf : s->leaf;
}

static bool draw_again(struct rm_sampler *s, struct rm_rng *rng, uint32_t i, struct rm_batch *batch)
{
    uint64_t *leaf = leaves_of(s, batch) + i;
    for (uint32_t tries = 0; tries < RM_SAMPLER_TRIES && s->items > 0; tries++) {
        const double at = rm_rng_double(rng) * rm_priority_total(s->tree);
        rm_priority_find(s->tree, &at, 1, leaf);
        if (copy_leaf(s, *leaf, i, batch))
            return true;
    }
    return false;
}

/* w = (N P)^-beta / max w, P = p / total. The largest belongs to the smallest p, so the quotient
 * needs neither N nor the total: w = (smallest p / p)^beta. */
static void weigh(const struct rm_sampler *s, struct rm_batch *batch)
{
    const uint64_t *leaf = leaves_of(s, batch);
    double least = INFINITY;
    for (uint32_t i = 0; i < batch->size; i++)
        least = fmin(least, rm_priority_at(s->tree, leaf[i]));
    for (uint32_t i = 0; i < batch->size; i++)
        batch->weight[i] = (float)pow(least / rm_priority_at(s->tree, leaf[i]), s->beta);
}

int rm_sampler_priority_draw(struct rm_sampler *s, struct rm_rng *rng, struct rm_batch *batch)
{
    const uint32_t n = s->spec.batch;
    const double part = rm_priority_total(s->tree) / n;
    uint64_t *leaf = leaves_of(s, batch);
    if (!s->items)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        s->at[i] = (i + rm_rng_double(rng)) * part;
    rm_priority_find(s->tree, s->at, n, leaf);
    for (uint32_t i = 0; i < n; i++)
        if (!copy_leaf(s, leaf[i], i, batch) && !draw_again(s, rng, i, batch))
            return 0;
    if (!s->alike)
        weigh(s, batch);
    return 1;
}

/* --- new priorities -------------------------------------------------------------------------- */

void rm_sampler_set_beta(struct rm_sampler *s, double beta)
{
    s->beta = beta;
}

void rm_sampler_learned(struct rm_sampler *s, const struct rm_batch *batch)
{
    if (!s->tree || s->alike)
        return;
    const uint64_t *leaf = leaves_of(s, batch);
    double largest = RM_PEEK(&s->tree->shared->largest);
    for (uint32_t i = 0; i < s->spec.batch; i++) {
        const double error = (double)batch->error[i];
        const double p = pow(fabs(error) + s->spec.epsilon, s->spec.alpha);
        s->value[i] = isfinite(p) ? p : largest;
        largest = fmax(largest, s->value[i]);
        if (batch->leaf && rm_priority_at(s->tree, leaf[i]) == 0)
            s->value[i] = 0; /* the item has left the tree since it was drawn */
    }
    change(s, leaf, s->value, s->spec.batch);
    RM_FAULT("priorities.learned.before");
    RM_POKE(&s->tree->shared->largest, largest);
}

double rm_sampler_largest(const struct rm_sampler *s)
{
    return s->tree && !s->alike ? RM_PEEK(&s->tree->shared->largest) : 0;
}
