#include "learner/feed_private.h"

#include "learner/net/features.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)1 << 20)

const struct rm_device_gather *rm_feed_gather(const struct rm_feed *feed)
{
    return &feed->gather;
}

/* --- where rows are -------------------------------------------------------------------------- */

static int send_table(struct rm_feed *f, const struct rm_device_source *table)
{
    struct rm_backend *b = f->spec.backend;
    b->ops->upload(b, (float *)(void *)f->table, (const float *)(const void *)table,
                   f->spec.source_count * sizeof *table / sizeof(float));
    return 0;
}

static struct rm_device_source *host_table(const struct rm_feed *f, struct rm_error *error)
{
    struct rm_device_source *table = calloc(f->spec.source_count, sizeof *table);
    if (!table)
        rm_fail(error, -ENOMEM, "no memory for %u rings", f->spec.source_count);
    for (uint32_t i = 0; table && i < f->spec.source_count; i++) {
        const struct rm_ring *ring = f->sources[i].ring;
        table[i].row_mask = ring->mask;
        table[i].mask_at = ring->mask_at ? ring->mask_at - ring->obs_at : 0;
    }
    return table;
}

static int make_blocks(struct rm_feed *f, struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    f->block_bytes = BLOCK_BYTES;
    for (uint32_t i = 0; i < f->spec.source_count; i++)
        if (f->sources[i].stride > f->block_bytes)
            f->block_bytes = f->sources[i].stride;
    f->blocks = b->device->alloc_host(b, RM_FEED_BLOCKS * f->block_bytes, error);
    return f->blocks ? 0 : -ENOMEM;
}

int rm_feed_reside(struct rm_feed *f, struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    struct rm_device_source *table = host_table(f, error);
    int rc = table ? make_blocks(f, error) : -ENOMEM;
    for (uint32_t i = 0; i < f->spec.source_count && !rc; i++) {
        struct rm_feed_source *s = &f->sources[i];
        s->copy = b->device->alloc(b, s->stride * s->ring->spec.rows, error);
        s->brought = s->ring->spec.first_index;
        table[i].rows = s->copy;
        table[i].stride = s->stride;
        rc = s->copy ? 0 : -ENOMEM;
    }
    f->gather.checked = 0;
    if (!rc)
        rc = send_table(f, table);
    free(table);
    return rc;
}

/* To read alone, where the device can tell; some can not, and take a mapping that may be written.
 */
static int map_ring(struct rm_feed *f, const struct rm_ring *ring, void **at,
                    struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    const struct rm_region *region = &ring->region;
    if (!b->device->register_host(b, region->base, region->bytes, true, at, error))
        return 0;
    return b->device->register_host(b, region->base, region->bytes, false, at, error);
}

int rm_feed_register(struct rm_feed *f, struct rm_error *error)
{
    struct rm_device_source *table = host_table(f, error);
    int rc = table ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < f->spec.source_count && !rc; i++) {
        struct rm_feed_source *s = &f->sources[i];
        const struct rm_ring *ring = s->ring;
        void *at = NULL;
        rc = map_ring(f, ring, &at, error);
        if (rc)
            break;
        const uint8_t *region = s->mapped = at;
        table[i].rows = region + (ring->data - (const uint8_t *)ring->region.base) + ring->obs_at;
        table[i].stride = ring->row_bytes;
        table[i].claim =
            (const volatile uint64_t *)(const volatile void *)(region +
                                                               offsetof(struct rm_ring_shared,
                                                                        reserved));
    }
    f->gather.checked = 1;
    if (!rc)
        rc = send_table(f, table);
    free(table);
    return rc;
}

void rm_feed_leave(struct rm_feed *f)
{
    struct rm_backend *b = f->spec.backend;
    for (uint32_t i = 0; i < f->spec.source_count; i++) {
        struct rm_feed_source *s = &f->sources[i];
        if (s->copy)
            b->ops->release(b, (float *)(void *)s->copy);
        if (s->mapped)
            b->device->unregister_host(b, s->ring->region.base);
        s->copy = NULL;
        s->mapped = NULL;
    }
    if (f->blocks)
        b->device->release_host(b, f->blocks);
    f->blocks = NULL;
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_decode(struct rm_feed *f, struct rm_error *error)
{
    const struct rm_env_agent *a = f->spec.agent;
    struct rm_backend *b = f->spec.backend;
    const bool book = a->dtype == RM_ENV_CODE8 && !f->spec.codes;
    const size_t floats = book ? (size_t)a->codes * a->channels : 0;
    f->gather.decode = (struct rm_device_decode){
        .dtype = a->dtype,
        .elements = rm_features_elements(a),
        .obs_bytes = (uint32_t)rm_features_bytes(a),
        .words = rm_features_words(a, f->spec.codes),
        .codes = book ? a->codes : 0,
        .channels = book ? a->channels : 0,
        .actions = a->actions,
        .as_codes = f->spec.codes,
    };
    f->gather.stack = f->spec.stack;
    f->gather.batch = f->spec.batch;
    if (!book)
        return 0;
    f->codebook = b->device->alloc(b, floats * sizeof(float), error);
    if (!f->codebook)
        return -ENOMEM;
    b->ops->upload(b, f->codebook, a->codebook, floats);
    f->gather.decode.codebook = f->codebook;
    return 0;
}

static int make_sources(struct rm_feed *f, const struct rm_sampler_source *sources,
                        struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    f->sources = calloc(f->spec.source_count, sizeof *f->sources);
    if (!f->sources)
        return rm_fail(error, -ENOMEM, "no memory for %u rings", f->spec.source_count);
    for (uint32_t i = 0; i < f->spec.source_count; i++) {
        const struct rm_ring *ring = sources[i].ring;
        /* The two columns stand one after the other, and rewards behind them. */
        f->sources[i].ring = ring;
        f->sources[i].stride = ring->reward_at - ring->obs_at;
    }
    f->table = b->device->alloc(b, f->spec.source_count * sizeof *f->table, error);
    f->gather.sources = f->table;
    int rc = f->table ? b->device->mark_create(b, &f->behind, error) : -ENOMEM;
    for (uint32_t i = 0; i < RM_FEED_BLOCKS && !rc; i++)
        rc = b->device->mark_create(b, &f->copied[i], error);
    return rc;
}

/* Seconds of what can be had; negative where it cannot. */
struct measured {
    double staged, resident, registered;
};

static struct measured measure(struct rm_feed *f)
{
    const struct rm_device_decode *d = &f->gather.decode;
    const size_t batch = (size_t)f->spec.batch * f->spec.stack * d->words * 2 * sizeof(float);
    const double rows = f->spec.steps_per_update * d->obs_bytes;
    const double host = rm_feed_time_host(f), across = rm_feed_time_copy(f, batch);
    struct measured m = {.staged = host + across, .resident = -1, .registered = -1};
    if (host < 0 || across < 0)
        m.staged = -1;
    if (!rm_feed_register(f, NULL))
        m.registered = rm_feed_time_gather(f);
    rm_feed_leave(f);
    if (!rm_feed_reside(f, NULL)) {
        const double gather = rm_feed_time_gather(f);
        const double copy = rm_feed_time_copy(f, rows < (double)batch ? (size_t)rows + 1 : batch);
        m.resident = gather < 0 || copy < 0 ? -1 : gather + copy;
    }
    rm_feed_leave(f);
    return m;
}

static enum rm_feed_kind best_of(const struct measured *m)
{
    const bool resident = m->resident >= 0 && (m->staged < 0 || m->resident <= m->staged);
    if (m->registered >= 0 && m->registered < (resident ? m->resident : m->staged))
        return RM_FEED_REGISTERED;
    return resident ? RM_FEED_RESIDENT : RM_FEED_STAGED;
}

struct words {
    char text[24];
};

static struct words microseconds(double seconds)
{
    struct words w = {"cannot be had"};
    if (seconds >= 0)
        snprintf(w.text, sizeof w.text, "%.1f", 1e6 * seconds);
    return w;
}

static enum rm_feed_kind choose(struct rm_feed *f)
{
    static const char *const words[] = {
        [RM_FEED_STAGED] = "staged on the host",
        [RM_FEED_RESIDENT] = "made of a replay on the device",
        [RM_FEED_REGISTERED] = "read out of the shared ring",
    };
    const struct measured m = measure(f);
    const enum rm_feed_kind kind = best_of(&m);
    fprintf(stderr,
            "learner of %s: batches are %s; measured, microseconds each: staged %s, resident %s, "
            "registered %s\n",
            f->spec.name, words[kind], microseconds(m.staged).text, microseconds(m.resident).text,
            microseconds(m.registered).text);
    return kind;
}

static int open_feed(struct rm_feed *f, const struct rm_feed_spec *spec, enum rm_feed_kind *kind,
                     struct rm_error *error)
{
    int rc = make_sources(f, spec->sources, error);
    if (!rc)
        rc = make_decode(f, error);
    if (!rc && *kind == RM_FEED_AUTO)
        *kind = choose(f);
    if (!rc && *kind == RM_FEED_RESIDENT)
        rc = rm_feed_reside(f, error);
    if (!rc && *kind == RM_FEED_REGISTERED)
        rc = rm_feed_register(f, error);
    return rc;
}

int rm_feed_create(struct rm_feed **feed, const struct rm_feed_spec *spec, struct rm_error *error)
{
    enum rm_feed_kind kind = spec->kind;
    *feed = NULL;
    if (spec->cannot && kind != RM_FEED_AUTO && kind != RM_FEED_STAGED)
        return rm_fail(error, -EINVAL, "learner.feed: batches must be staged: %s", spec->cannot);
    if (spec->cannot || kind == RM_FEED_STAGED)
        return 0;
    struct rm_feed *f = calloc(1, sizeof *f);
    if (!f)
        return rm_fail(error, -ENOMEM, "no memory for a feed");
    f->spec = *spec;
    const int rc = open_feed(f, spec, &kind, error);
    f->spec.sources = NULL;
    if (rc || kind == RM_FEED_STAGED) {
        rm_feed_destroy(f);
        return rc;
    }
    *feed = f;
    return 0;
}

void rm_feed_destroy(struct rm_feed *f)
{
    if (!f)
        return;
    struct rm_backend *b = f->spec.backend;
    b->device->finish(b);
    if (f->sources)
        rm_feed_leave(f);
    b->ops->release(b, (float *)(void *)f->table);
    b->ops->release(b, f->codebook);
    b->device->mark_destroy(b, f->behind);
    for (uint32_t i = 0; i < RM_FEED_BLOCKS; i++)
        b->device->mark_destroy(b, f->copied[i]);
    free(f->sources);
    free(f);
}

/* --- rows on their way ----------------------------------------------------------------------- */

/* Rows [from, from + n) of one source, which do not go around its end, in the next block. */
static void bring_block(struct rm_feed *f, struct rm_feed_source *s, uint64_t from, uint64_t n)
{
    struct rm_backend *b = f->spec.backend;
    struct rm_device_mark *copied = f->copied[f->block];
    uint8_t *block = f->blocks + f->block * f->block_bytes;
    if (!b->device->passed(b, copied))
        b->device->wait(b, copied);
    for (uint64_t i = 0; i < n; i++)
        rm_ring_copy_out(block + i * s->stride, rm_ring_row(s->ring, from + i).obs, s->stride);
    b->device->copy_in(b, RM_STREAM_IN, s->copy + (from & s->ring->mask) * s->stride, block,
                       n * s->stride);
    b->device->mark(b, RM_STREAM_IN, copied);
    f->block = (f->block + 1) % RM_FEED_BLOCKS;
}

/* Whether row `end` - 1 takes the place of a row that an update under way may still read. */
static bool in_use(const struct rm_feed_source *s, uint64_t end)
{
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++)
        if ((int64_t)(end - s->ring->spec.rows - s->lows[i]) > 0)
            return true;
    return false;
}

static void bring_rows(struct rm_feed *f, struct rm_feed_source *s,
                       const struct rm_sampler_span *span)
{
    struct rm_backend *b = f->spec.backend;
    const uint64_t most = f->block_bytes / s->stride;
    if (span->end - s->brought > span->held) /* the writer is a whole ring ahead */
        s->brought = span->end - span->held;
    if (s->brought != span->end && in_use(s, span->end)) {
        b->device->mark(b, RM_STREAM_COMPUTE, f->behind);
        b->device->follow(b, RM_STREAM_IN, f->behind);
    }
    while (s->brought != span->end) {
        uint64_t n = span->end - s->brought;
        const uint64_t to_end = s->ring->spec.rows - (s->brought & s->ring->mask);
        n = n < most ? n : most;
        n = n < to_end ? n : to_end;
        bring_block(f, s, s->brought, n);
        s->brought += n;
    }
}

void rm_feed_bring(struct rm_feed *f, const struct rm_sampler *sampler)
{
    const uint32_t draw = f->draws++ % RM_TRAINER_DEPTH;
    for (uint32_t i = 0; i < f->spec.source_count; i++) {
        struct rm_feed_source *s = &f->sources[i];
        const struct rm_sampler_span span = rm_sampler_span(sampler, i);
        const uint64_t reach = span.starts + f->spec.stack;
        if (!s->copy)
            continue;
        bring_rows(f, s, &span);
        s->lows[draw] = span.end - (reach < span.held ? reach : span.held);
    }
}
