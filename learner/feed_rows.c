/* Copies of the rings on a device, and rows on their way there: each crosses once, whole, through
 * blocks of pinned memory on the IN stream. */
#include "learner/feed_private.h"

#include <errno.h>

#define BLOCK_BYTES ((size_t)1 << 20)

static int make_blocks(struct rm_feed *f, struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    f->block_bytes = BLOCK_BYTES;
    for (uint32_t i = 0; i < f->sampler.source_count; i++)
        if (f->sources[i].ring->row_bytes > f->block_bytes)
            f->block_bytes = f->sources[i].ring->row_bytes;
    f->blocks = b->device->alloc_host(b, RM_FEED_BLOCKS * f->block_bytes, error);
    return f->blocks ? 0 : -ENOMEM;
}

int rm_feed_make_copies(struct rm_feed *f, struct rm_error *error)
{
    struct rm_backend *b = f->spec.backend;
    int rc = make_blocks(f, error);
    for (uint32_t i = 0; i < f->sampler.source_count && !rc; i++) {
        struct rm_feed_source *s = &f->sources[i];
        s->copy = b->device->alloc(b, s->ring->row_bytes * s->ring->spec.rows, error);
        s->brought = s->whole = s->ring->spec.first_index;
        rc = s->copy ? 0 : -ENOMEM;
    }
    return rc;
}

void rm_feed_free_copies(struct rm_feed *f)
{
    struct rm_backend *b = f->spec.backend;
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        if (f->sources[i].copy)
            b->ops->release(b, (float *)(void *)f->sources[i].copy);
        f->sources[i].copy = NULL;
    }
    if (f->blocks)
        b->device->release_host(b, f->blocks);
    f->blocks = NULL;
}

/* Rows that their writer touched while they were copied: it is a whole ring ahead, and rows before
 * them are gone as well. */
static void leave_out_torn(struct rm_feed_source *s, uint64_t from, uint64_t n)
{
    uint64_t torn = 0;
    while (torn < n && !rm_ring_intact(s->ring, from + torn))
        torn++;
    if (torn)
        s->whole = from + torn;
}

/* Rows [from, from + n) of one source, which do not go around its end, in the next block. */
static void bring_block(struct rm_feed *f, struct rm_feed_source *s, uint64_t from, uint64_t n)
{
    struct rm_backend *b = f->spec.backend;
    struct rm_device_mark *copied = f->copied[f->block];
    uint8_t *block = f->blocks + f->block * f->block_bytes;
    const size_t at = (from & s->ring->mask) * s->ring->row_bytes, bytes = n * s->ring->row_bytes;
    if (!b->device->passed(b, copied))
        b->device->wait(b, copied);
    rm_ring_copy_out(block, s->ring->data + at, bytes);
    leave_out_torn(s, from, n);
    b->device->copy_in(b, RM_STREAM_IN, s->copy + at, block, bytes);
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

static void bring_rows(struct rm_feed *f, struct rm_feed_source *s, const struct rm_row_span *span)
{
    struct rm_backend *b = f->spec.backend;
    const uint64_t most = f->block_bytes / s->ring->row_bytes;
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
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        struct rm_feed_source *s = &f->sources[i];
        const struct rm_row_span span = rm_sampler_span(sampler, i);
        const uint64_t reach = span.starts + f->sampler.frame_stack;
        if (!s->copy)
            continue;
        bring_rows(f, s, &span);
        s->lows[draw] = span.end - (reach < span.held ? reach : span.held);
    }
}
