#include "learner/feed.h"

#include "learner/algo/trainer.h"
#include "learner/backend/device.h"
#include "learner/net/features.h"
#include "learner/sampler_source.h"
#include "shm/layout.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Number of blocks of pinned memory that hold rows until they are copied. */
#define BLOCKS      4u
#define BLOCK_BYTES ((size_t)1 << 20)

/* A ring and its copy on the device. */
struct source {
    const struct rm_ring *ring;
    uint8_t *copy;                   /* (rows, row_bytes), on the device */
    uint64_t copied;                 /* rows below this were copied to the device, or are skipped
                                      * for good */
    uint64_t whole;                  /* rows below this were overwritten during the copy, or are
                                      * older: no draw may use them */
    uint64_t lows[RM_TRAINER_DEPTH]; /* first rows of the last draws' windows, stacks included */
};

struct rm_feed {
    struct rm_feed_spec spec;       /* `sampler` is not kept, but a copy of it: */
    struct rm_sampler_spec sampler; /* `sources` is not kept */
    struct rm_device_sampler draw;
    struct source *sources;         /* (sampler.source_count) */
    struct rm_device_source *table; /* on the device */
    float *codebook;                /* on the device; NULL: none */
    uint8_t *blocks;                /* pinned: (BLOCKS, block_bytes) */
    size_t block_bytes;
    struct rm_queue_mark *copied[BLOCKS], *behind;
    uint32_t block, draws;
    uint8_t *tables, *tree; /* on the device: what `draw` points to */
    void *mapped;           /* the region of priorities as the device sees it */
};

const struct rm_device_sampler *rm_feed_draw(const struct rm_feed *feed)
{
    return &feed->draw;
}

/* Copies `bytes` (a multiple of 4) of the host to device memory, and waits. */
static void send(struct rm_feed *f, void *to, const void *from, size_t bytes)
{
    struct rm_backend *b = f->spec.backend;
    b->ops->upload(b, to, from, bytes / sizeof(float));
}

/* --- rows: each is copied once, whole, through blocks of pinned memory in the IN queue ------- */

static int make_blocks(struct rm_feed *f, struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    f->block_bytes = BLOCK_BYTES;
    for (uint32_t i = 0; i < f->sampler.source_count; i++)
        if (f->sources[i].ring->row_bytes > f->block_bytes)
            f->block_bytes = f->sources[i].ring->row_bytes;
    f->blocks = b->ops->alloc_host(b, BLOCKS * f->block_bytes, error);
    return f->blocks ? 0 : -ENOMEM;
}

static int make_copies(struct rm_feed *f, struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    int rc = make_blocks(f, error);
    for (uint32_t i = 0; i < f->sampler.source_count && !rc; i++) {
        struct source *s = &f->sources[i];
        s->copy = b->ops->alloc_bytes(b, s->ring->row_bytes * s->ring->spec.rows, error);
        s->copied = s->whole = s->ring->spec.first_index;
        rc = s->copy ? 0 : -ENOMEM;
    }
    return rc;
}

static void free_copies(struct rm_feed *f)
{
    struct rm_backend *b = f->spec.backend;
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        b->ops->release(b, f->sources[i].copy);
        f->sources[i].copy = NULL;
    }
    b->ops->release_host(b, f->blocks);
    f->blocks = NULL;
}

/* Skips rows that their writer overwrote during the copy: the writer is a whole ring ahead, so
 * earlier rows are overwritten as well. */
static void leave_out_torn(struct source *s, uint64_t from, uint64_t n)
{
    uint64_t torn = 0;
    while (torn < n && !rm_ring_intact(s->ring, from + torn))
        torn++;
    if (torn)
        s->whole = from + torn;
}

/* Copies rows [from, from + n) of one source, which do not wrap, through the next block. */
static void copy_block(struct rm_feed *f, struct source *s, uint64_t from, uint64_t n)
{
    struct rm_backend *b = f->spec.backend;
    struct rm_queue_mark *copied = f->copied[f->block];
    uint8_t *block = f->blocks + f->block * f->block_bytes;
    const size_t at = (from & s->ring->mask) * s->ring->row_bytes, bytes = n * s->ring->row_bytes;
    if (!b->ops->passed(b, copied))
        b->ops->wait(b, copied);
    rm_ring_copy_out(block, s->ring->data + at, bytes);
    leave_out_torn(s, from, n);
    b->ops->copy_in(b, RM_QUEUE_IN, s->copy + at, block, bytes);
    b->ops->mark(b, RM_QUEUE_IN, copied);
    f->block = (f->block + 1) % BLOCKS;
}

/* Would row `end` - 1 replace a row that an unfinished update may still read? */
static bool in_use(const struct source *s, uint64_t end)
{
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++)
        if ((int64_t)(end - s->ring->spec.rows - s->lows[i]) > 0)
            return true;
    return false;
}

static void copy_rows(struct rm_feed *f, struct source *s, const struct rm_row_span *span)
{
    struct rm_backend *b = f->spec.backend;
    const uint64_t most = f->block_bytes / s->ring->row_bytes;
    if (span->end - s->copied > span->held) /* the writer is a whole ring ahead */
        s->copied = span->end - span->held;
    if (s->copied != span->end && in_use(s, span->end)) {
        b->ops->mark(b, RM_QUEUE_COMPUTE, f->behind);
        b->ops->follow(b, RM_QUEUE_IN, f->behind);
    }
    while (s->copied != span->end) {
        uint64_t n = span->end - s->copied;
        const uint64_t to_end = s->ring->spec.rows - (s->copied & s->ring->mask);
        n = n < most ? n : most;
        n = n < to_end ? n : to_end;
        copy_block(f, s, s->copied, n);
        s->copied += n;
    }
}

void rm_feed_copy(struct rm_feed *f, const struct rm_sampler *sampler)
{
    const uint32_t draw = f->draws++ % RM_TRAINER_DEPTH;
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        struct source *s = &f->sources[i];
        const struct rm_row_span span = rm_sampler_span(sampler, i);
        const uint64_t reach = span.starts + f->sampler.frame_stack;
        if (!s->copy)
            continue;
        copy_rows(f, s, &span);
        s->lows[draw] = span.end - (reach < span.held ? reach : span.held);
    }
}

/* --- draws: tables of sources and worlds, and with priorities the tree, whose leaves the device
 * writes through to shared memory for a restarted learner
 * --------------------------------------- */

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

/* Allocates sources, worlds and counters in one block. */
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
    f->tables = b->ops->alloc_bytes(b, drawn_at + sizeof *d->drawn, error);
    if (f->tables) {
        send(f, f->tables, host, drawn_at);
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

/* Allocates the device's levels. */
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
    f->tree = b->ops->alloc_bytes(b, largest_at + sizeof *t->largest, error);
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

/* Copies leaves, numbers of entered rows and the largest priority to the device. From then on the
 * device writes every change back to shared memory. */
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
    send(f, t->level[0], p->level[0], p->spec.slots * p->spec.lanes * sizeof(double));
    send(f, t->entered, (const void *)p->entered, p->spec.sources * sizeof *t->entered);
    send(f, t->largest, (const void *)&p->shared->largest, sizeof *t->largest);
    b->device->feed->add_up(b, &f->draw);
    return 0;
}

static int make_draw(struct rm_feed *f, const struct rm_sampler_source *sources,
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
        .gather = f->draw.gather,
    };
    int rc = make_tables(f, sources, error);
    if (!rc && with.priorities)
        rc = make_levels(f, with.priorities, error);
    if (!rc && with.priorities)
        rc = take_over(f, with.priorities, error);
    return rc;
}

static void free_draw(struct rm_feed *f)
{
    struct rm_backend *b = f->spec.backend;
    if (f->mapped)
        b->device->unregister_host(b, f->sampler.priorities->region.base);
    b->ops->release(b, f->tables);
    b->ops->release(b, f->tree);
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

/* --- making ---------------------------------------------------------------------------------- */

/* Sends the table of the rows' addresses to the device. */
static int send_table(struct rm_feed *f, struct rm_error *error)
{
    struct rm_device_source *table = calloc(f->sampler.source_count, sizeof *table);
    if (!table)
        return rm_fail(error, -ENOMEM, "no memory for %u rings", f->sampler.source_count);
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        const struct rm_ring *ring = f->sources[i].ring;
        table[i] = (struct rm_device_source){
            .rows = f->sources[i].copy + ring->obs_at,
            .stride = ring->row_bytes,
            .row_mask = ring->mask,
            .mask_at = ring->mask_at ? ring->mask_at - ring->obs_at : 0,
        };
    }
    send(f, f->table, table, f->sampler.source_count * sizeof *table);
    free(table);
    return 0;
}

_Static_assert(RM_DEVICE_OBSERVATIONS == RM_ENV_MAX_OBSERVATIONS, "a device decodes all");

struct rm_device_decode rm_feed_decode(const struct rm_env_agent *agent, uint32_t codes)
{
    struct rm_device_decode decode = {
        .obs_bytes = (uint32_t)rm_features_bytes(agent),
        .words = rm_features_words(agent, codes),
        .actions = agent->actions,
        .observations = rm_features_observations(agent),
    };
    for (uint32_t i = 0; i < decode.observations; i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        const struct rm_observation_place place = rm_features_place(agent, codes, i);
        const bool book = of.dtype == RM_ENV_CODE8 && !place.codes;
        decode.observation[i] = (struct rm_device_observation){
            .dtype = of.dtype,
            .at = (uint32_t)place.at,
            .words_at = place.words_at,
            .words = place.words,
            .elements = rm_observation_elements(&of),
            .codes = book ? of.codes : 0,
            .channels = book ? of.channels : 0,
            .as_codes = place.codes,
            .most = of.counted ? of.shape[0] : 0,
            .item = of.counted ? rm_observation_item(&of) : 0,
        };
    }
    return decode;
}

/* Codebooks of all observations that are decoded by one go to the device in one piece. */
static int send_codebooks(struct rm_feed *f, struct rm_error *error)
{
    struct rm_device_decode *decode = &f->draw.gather.decode;
    struct rm_backend *b = f->spec.backend;
    size_t floats = 0, at = 0;
    for (uint32_t i = 0; i < decode->observations; i++)
        floats += (size_t)decode->observation[i].codes * decode->observation[i].channels;
    if (floats == 0)
        return 0;
    f->codebook = b->ops->alloc_bytes(b, floats * sizeof(float), error);
    if (!f->codebook)
        return -ENOMEM;
    for (uint32_t i = 0; i < decode->observations; i++) {
        struct rm_device_observation *o = &decode->observation[i];
        const size_t n = (size_t)o->codes * o->channels;
        if (n == 0)
            continue;
        b->ops->upload(b, f->codebook + at, rm_features_observation(f->sampler.agent, i).codebook,
                       n);
        o->codebook = f->codebook + at;
        at += n;
    }
    return 0;
}

static int make_decode(struct rm_feed *f, struct rm_error *error)
{
    const struct rm_env_agent *a = f->sampler.agent;
    struct rm_device_decode *decode = &f->draw.gather.decode;
    *decode = rm_feed_decode(a, f->sampler.codes);
    f->draw.gather.stack = f->sampler.frame_stack;
    f->draw.gather.batch = f->sampler.batch;
    return send_codebooks(f, error);
}

static int make_sources(struct rm_feed *f, const struct rm_sampler_source *sources,
                        struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    f->sources = calloc(f->sampler.source_count, sizeof *f->sources);
    if (!f->sources)
        return rm_fail(error, -ENOMEM, "no memory for %u rings", f->sampler.source_count);
    for (uint32_t i = 0; i < f->sampler.source_count; i++)
        f->sources[i].ring = sources[i].ring;
    f->table = b->ops->alloc_bytes(b, f->sampler.source_count * sizeof *f->table, error);
    f->draw.gather.sources = f->table;
    int rc = f->table ? b->ops->mark_create(b, &f->behind, error) : -ENOMEM;
    for (uint32_t i = 0; i < BLOCKS && !rc; i++)
        rc = b->ops->mark_create(b, &f->copied[i], error);
    return rc;
}

static int reside(struct rm_feed *f, const struct rm_sampler_source *sources,
                  struct rm_error *error)
{
    int rc = make_sources(f, sources, error);
    if (!rc)
        rc = make_decode(f, error);
    if (!rc)
        rc = make_copies(f, error);
    if (!rc)
        rc = send_table(f, error);
    return rc ? rc : make_draw(f, sources, error);
}

static int make(struct rm_feed **feed, const struct rm_feed_spec *spec, struct rm_error *error)
{
    struct rm_feed *f = calloc(1, sizeof *f);
    if (!f)
        return rm_fail(error, -ENOMEM, "no memory for a feed");
    f->spec = *spec;
    f->sampler = *spec->sampler;
    f->spec.sampler = NULL;
    f->sampler.sources = NULL;
    const int rc = reside(f, spec->sampler->sources, error);
    if (rc)
        rm_feed_destroy(f);
    else
        *feed = f;
    return rc;
}

int rm_feed_create(struct rm_feed **feed, const struct rm_feed_spec *spec, struct rm_error *error)
{
    struct rm_error why = {""};
    *feed = NULL;
    if (spec->cannot && spec->kind == RM_FEED_RESIDENT)
        return rm_fail(error, -EINVAL, "learner.feed: batches must be staged: %s", spec->cannot);
    if (spec->cannot || spec->kind == RM_FEED_STAGED)
        return 0;
    if (spec->kind == RM_FEED_RESIDENT) {
        const int rc = make(feed, spec, error);
        return rc ? rm_fail_within(error, rc, "learner.feed \"resident\"") : 0;
    }
    const bool made = make(feed, spec, &why) == 0;
    fprintf(
        stderr, "learner of %s: %s%s\n", spec->name,
        made ? "replay is resident: batches are drawn and made on the device"
             : "batches are staged on the host, because the device has no memory for the replay: ",
        why.text);
    return 0;
}

void rm_feed_destroy(struct rm_feed *f)
{
    if (!f)
        return;
    struct rm_backend *b = f->spec.backend;
    b->ops->finish(b);
    if (f->sources) {
        free_draw(f);
        free_copies(f);
    }
    b->ops->release(b, f->table);
    b->ops->release(b, f->codebook);
    b->ops->mark_destroy(b, f->behind);
    for (uint32_t i = 0; i < BLOCKS; i++)
        b->ops->mark_destroy(b, f->copied[i]);
    free(f->sources);
    free(f);
}
