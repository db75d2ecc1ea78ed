/* What a batch takes: the median of a few, after one that is not counted. */
#include "learner/feed_private.h"
#include "learner/net/features.h"
#include "shm/base/clock.h"

#include <stdlib.h>

#define RUNS 5

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double time_of(struct rm_backend *b, void (*run)(struct rm_backend *b, void *self),
                      void *self)
{
    double seconds[RUNS] = {0};
    for (int i = -1; i < RUNS; i++) {
        b->device->finish(b);
        const uint64_t start = rm_now_ns();
        run(b, self);
        b->device->finish(b);
        if (i >= 0)
            seconds[i] = (double)(rm_now_ns() - start) / 1e9;
    }
    qsort(seconds, RUNS, sizeof *seconds, by_size);
    return seconds[RUNS / 2];
}

struct copy {
    void *to, *from;
    size_t bytes;
};

static void run_copy(struct rm_backend *b, void *self)
{
    const struct copy *c = self;
    b->device->copy_in(b, RM_STREAM_IN, c->to, c->from, c->bytes);
}

double rm_feed_time_copy(struct rm_feed *f, size_t bytes)
{
    struct rm_backend *b = f->spec.backend;
    struct copy c = {.bytes = bytes};
    c.to = b->device->alloc(b, bytes, NULL);
    c.from = b->device->alloc_host(b, bytes, NULL);
    const double seconds = c.to && c.from ? time_of(b, run_copy, &c) : -1;
    if (c.to)
        b->ops->release(b, c.to);
    if (c.from)
        b->device->release_host(b, c.from);
    return seconds;
}

static void run_gather(struct rm_backend *b, void *self)
{
    b->device->feed->gather(b, self);
}

/* Picks all over the rows, as draws are. */
static void spread(struct rm_feed *f, struct rm_device_pick *picks)
{
    for (uint32_t i = 0; i < f->spec.batch; i++) {
        const uint32_t source = i % f->spec.source_count;
        const struct rm_ring_spec *ring = &f->sources[source].ring->spec;
        picks[i] = (struct rm_device_pick){
            .row = (uint64_t)i * 2654435761u % ring->rows,
            .source = source,
            .lane = i % ring->lanes,
            .before = f->spec.stack - 1,
            .steps = 1,
        };
    }
}

double rm_feed_time_gather(struct rm_feed *f)
{
    struct rm_backend *b = f->spec.backend;
    struct rm_device_gather g = f->gather;
    const size_t bytes = (size_t)g.batch * g.stack * g.decode.words * sizeof(float);
    const size_t pick_bytes = g.batch * sizeof *g.picks;
    struct rm_device_pick *host = calloc(g.batch, sizeof *host);
    void *picks = b->device->alloc(b, pick_bytes, NULL);
    g.obs = b->device->alloc(b, bytes, NULL);
    g.next_obs = b->device->alloc(b, bytes, NULL);
    g.picks = picks;
    double seconds = -1;
    if (host && picks && g.obs && g.next_obs) {
        spread(f, host);
        b->ops->upload(b, picks, (const float *)(const void *)host, pick_bytes / sizeof(float));
        seconds = time_of(b, run_gather, &g);
    }
    void *device[] = {picks, g.obs, g.next_obs};
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            b->ops->release(b, device[i]);
    free(host);
    return seconds;
}

struct host_batch {
    const struct rm_feed *feed;
    const uint8_t **frames; /* (stack) */
    void *out;              /* (stack * words) */
};

/* As many stacks as a batch has, two of each sample. */
static void run_host(struct rm_backend *b, void *self)
{
    const struct host_batch *h = self;
    const struct rm_feed_spec *spec = &h->feed->spec;
    (void)b;
    for (uint32_t i = 0; i < 2 * spec->batch; i++) {
        const struct rm_ring *ring = h->feed->sources[i % spec->source_count].ring;
        const uint64_t row = (uint64_t)i * 2654435761u % ring->spec.rows;
        for (uint32_t k = 0; k < spec->stack; k++)
            h->frames[k] = rm_ring_row(ring, row + k).obs;
        rm_features_take_stack(spec->agent, spec->codes, h->frames, spec->stack, h->out);
    }
}

double rm_feed_time_host(struct rm_feed *f)
{
    struct host_batch h = {
        .feed = f,
        .frames = calloc(f->spec.stack, sizeof *h.frames),
        .out = calloc((size_t)f->spec.stack * f->gather.decode.words, sizeof(float)),
    };
    const double seconds = h.frames && h.out ? time_of(f->spec.backend, run_host, &h) : -1;
    free(h.frames);
    free(h.out);
    return seconds;
}
