/* What a device needs that draws for itself: tables of sources and worlds, and with priorities the
 * tree, whose leaves it writes through to the region that a successor will find. */
#include "learner/feed_private.h"
#include "learner/sampler_source.h"
#include "shm/layout.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static_assert(RM_DEVICE_LEVELS == RM_PRIORITY_LEVELS, "levels of a tree");

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* --- tables ---------------------------------------------------------------------------------- */

static uint32_t count_worlds(const struct rm_feed *f, const struct rm_sampler_source *sources)
{
    uint32_t worlds = 0;
    for (uint32_t i = 0; i < f->sampler.source_count; i++)
        worlds += sources[i].worlds;
    return worlds;
}

static void fill_tables(const struct rm_feed *f, const struct rm_sampler_source *sources,
                        struct rm_device_lanes *lanes, uint32_t *source_of_world)
{
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        const struct rm_ring *ring = sources[i].ring;
        lanes[i] = (struct rm_device_lanes){
            .view = rm_rows_of(ring, f->sampler.agent->actions),
            .first_index = ring->spec.first_index,
            .lanes = ring->spec.lanes,
            .worlds = sources[i].worlds,
            .first_world = (uint32_t)sources[i].first_world,
        };
        lanes[i].view.rows = f->sources[i].copy;
        for (uint32_t w = 0; w < sources[i].worlds; w++)
            source_of_world[sources[i].first_world + w] = i;
    }
}

/* Sources, worlds and what is counted, in one piece of memory. */
static int make_tables(struct rm_feed *f, const struct rm_sampler_source *sources,
                       struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    struct rm_device_sampler *d = &f->draw;
    const uint32_t worlds = count_worlds(f, sources);
    const size_t worlds_at = aligned(f->sampler.source_count * sizeof(struct rm_device_lanes));
    const size_t drawn_at = worlds_at + aligned(worlds * sizeof(uint32_t));
    uint8_t *host = calloc(1, drawn_at ? drawn_at : 1);
    if (!host)
        return rm_fail(error, -ENOMEM, "no memory for tables of %u worlds", worlds);
    fill_tables(f, sources, (void *)host, (void *)(host + worlds_at));
    f->tables = b->device->alloc(b, drawn_at + sizeof *d->drawn, error);
    if (f->tables) {
        rm_feed_send(f, f->tables, host, drawn_at);
        d->sources = (const void *)f->tables;
        d->source_of_world = (const void *)(f->tables + worlds_at);
        d->drawn = (void *)(f->tables + drawn_at);
        d->worlds = worlds;
        d->lanes = worlds * f->sampler.agents;
    }
    free(host);
    return f->tables ? 0 : -ENOMEM;
}

/* --- the tree -------------------------------------------------------------------------------- */

/* Where the device has it. */
static int make_levels(struct rm_feed *f, const struct rm_priorities *p, struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    struct rm_device_tree *t = &f->draw.tree;
    size_t at[RM_DEVICE_LEVELS], all = 0;
    for (uint32_t l = 0; l < p->levels; l++) {
        at[l] = all;
        all += aligned(p->nodes[l] * sizeof(double));
    }
    const size_t last_at = all, entered_at = last_at + aligned(p->nodes[0] * sizeof *t->last);
    const size_t largest_at = entered_at + aligned(p->spec.sources * sizeof *t->entered);
    f->tree = b->device->alloc(b, largest_at + sizeof *t->largest, error);
    if (!f->tree)
        return -ENOMEM;
    for (uint32_t l = 0; l < p->levels; l++) {
        t->nodes[l] = p->nodes[l];
        t->level[l] = (void *)(f->tree + at[l]);
    }
    t->slots = p->spec.slots;
    t->levels = p->levels;
    t->last = (void *)(f->tree + last_at);
    t->entered = (void *)(f->tree + entered_at);
    t->largest = (void *)(f->tree + largest_at);
    return 0;
}

static void *within(const struct rm_feed *f, const struct rm_priorities *p, const void *at)
{
    return (uint8_t *)f->mapped + ((const uint8_t *)at - (const uint8_t *)p->region.base);
}

/* Leaves, how far rows have been entered and the largest priority go there, and from then on
 * everything that changes comes back by itself. */
static int take_over(struct rm_feed *f, struct rm_priorities *p, struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    struct rm_device_tree *t = &f->draw.tree;
    const int rc =
        b->device->register_host(b, p->region.base, p->region.bytes, false, &f->mapped, error);
    if (rc) {
        f->mapped = NULL;
        return rm_fail_within(error, rc, "priorities");
    }
    t->kept_leaves = within(f, p, p->level[0]);
    t->kept_entered = within(f, p, p->entered);
    t->kept_largest = within(f, p, &p->shared->largest);
    rm_feed_send(f, t->level[0], p->level[0], p->spec.slots * p->spec.lanes * sizeof(double));
    rm_feed_send(f, t->entered, (const void *)p->entered, p->spec.sources * sizeof *t->entered);
    rm_feed_send(f, t->largest, (const void *)&p->shared->largest, sizeof *t->largest);
    b->device->feed->add_up(b, &f->draw);
    return 0;
}

int rm_feed_make_draw(struct rm_feed *f, const struct rm_sampler_source *sources,
                      struct rm_error *error)
{
    struct rm_sampler_spec with = f->sampler;
    with.sources = sources;
    f->draw = (struct rm_device_sampler){
        .seed = with.seed,
        .policy = with.policy,
        .batch = with.batch,
        .tries = RM_SAMPLER_TRIES,
        .source_count = with.source_count,
        .capacity_rows = rm_sampler_capacity_rows(&with),
        .rule = {with.n_step, with.frame_stack, with.gamma},
        .tree = {.alpha = with.alpha, .epsilon = with.epsilon},
    };
    int rc = make_tables(f, sources, error);
    if (!rc && with.priorities)
        rc = make_levels(f, with.priorities, error);
    if (!rc && with.priorities)
        rc = take_over(f, with.priorities, error);
    return rc;
}

void rm_feed_free_draw(struct rm_feed *f)
{
    struct rm_backend *b = f->spec.backend;
    if (f->mapped)
        b->device->unregister_host(b, f->sampler.priorities->region.base);
    if (f->tables)
        b->ops->release(b, (float *)(void *)f->tables);
    if (f->tree)
        b->ops->release(b, (float *)(void *)f->tree);
    f->mapped = NULL;
    f->tables = f->tree = NULL;
    memset(&f->draw, 0, sizeof f->draw);
}

/* --- turns ----------------------------------------------------------------------------------- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

bool rm_feed_turn(const struct rm_feed *f, const struct rm_sampler *sampler, double beta,
                  struct rm_device_turn *turn)
{
    struct rm_row_span *spans = (void *)(turn + 1);
    turn->longest = 0;
    turn->beta = beta;
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        struct rm_row_span span = rm_sampler_span(sampler, i);
        turn->longest = span.starts > turn->longest ? span.starts : turn->longest;
        span.held = least(span.held, span.end - f->sources[i].whole);
        span.starts = least(span.starts, span.held);
        spans[i] = span;
    }
    return turn->longest >= 2;
}
