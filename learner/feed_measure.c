/* What a batch takes: the least of a few, after one that is not counted. Learners of one process
 * are made one after another, each with nothing left under way (learner.c), so none measures
 * another's work; what other processes put on the same device only ever adds, and the least has
 * least of it. */
#include "learner/feed_private.h"
#include "learner/net/features.h"
#include "learner/sampler_source.h"
#include "shm/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RUNS 5

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static double time_of(struct rm_backend *b, void (*run)(struct rm_backend *b, void *self),
                      void *self)
{
    double least = HUGE_VAL;
    for (int i = -1; i < RUNS; i++) {
        b->device->finish(b);
        const uint64_t start = rm_now_ns();
        run(b, self);
        b->device->finish(b);
        if (i >= 0)
            least = fmin(least, (double)(rm_now_ns() - start) / 1e9);
    }
    return least;
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
    for (uint32_t i = 0; i < f->sampler.batch; i++) {
        const uint32_t source = i % f->sampler.source_count;
        const struct rm_ring_spec *ring = &f->sources[source].ring->spec;
        picks[i] = (struct rm_device_pick){
            .row = (uint64_t)i * 2654435761u % ring->rows,
            .source = source,
            .lane = i % ring->lanes,
            .before = f->sampler.frame_stack - 1,
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

/* --- drawn there ----------------------------------------------------------------------------- */

struct drawing {
    struct rm_device_sampler draw;
    struct rm_device_gather gather;
};

static void run_draw(struct rm_backend *b, void *self)
{
    const struct drawing *d = self;
    b->device->feed->draw(b, &d->draw);
    b->device->feed->gather(b, &d->gather);
}

/* What a draw is asked with: rows of zeros, of which every one begins a transition. */
static size_t fill_asked(const struct rm_feed *f, uint8_t *host)
{
    struct rm_device_turn *turn = (void *)(host + sizeof(struct rm_device_knobs));
    struct rm_row_span *spans = (void *)(turn + 1);
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        const struct rm_ring_spec *ring = &f->sources[i].ring->spec;
        spans[i] = (struct rm_row_span){ring->first_index + ring->rows, ring->rows, ring->rows};
        turn->longest = ring->rows > turn->longest ? ring->rows : turn->longest;
    }
    return sizeof(struct rm_device_knobs) + rm_device_turn_bytes(f->sampler.source_count);
}

/* One of several pointers into one piece of memory, and its bytes there. */
struct part {
    void *pointer;
    size_t bytes;
};

double rm_feed_time_draw(struct rm_feed *f)
{
    struct rm_backend *b = f->spec.backend;
    struct drawing d = {f->draw, f->gather};
    const uint32_t n = d.gather.batch;
    const size_t stacks = (size_t)n * d.gather.stack * d.gather.decode.words * sizeof(float);
    const size_t asked =
        sizeof(struct rm_device_knobs) + rm_device_turn_bytes(f->sampler.source_count);
    const struct part parts[] = {
        {&d.draw.knobs, asked},
        {&d.draw.figures, sizeof *d.draw.figures},
        {&d.draw.told, sizeof *d.draw.told},
        {&d.draw.picks, n * sizeof *d.draw.picks},
        {&d.draw.action, n * sizeof *d.draw.action},
        {&d.draw.ret, n * sizeof *d.draw.ret},
        {&d.draw.discount, n * sizeof *d.draw.discount},
        {&d.gather.obs, stacks},
        {&d.gather.next_obs, stacks},
    };
    size_t all = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        all += aligned(parts[i].bytes);
    uint8_t *host = calloc(1, asked), *at = b->device->alloc(b, all, NULL);
    double seconds = -1;
    if (host && at) {
        rm_feed_send(f, at, host, fill_asked(f, host));
        uint8_t *to = at;
        for (size_t i = 0; i < sizeof parts / sizeof *parts; to += aligned(parts[i++].bytes))
            memcpy(parts[i].pointer, &to, sizeof to);
        d.draw.turn = (const void *)(at + sizeof(struct rm_device_knobs));
        d.gather.picks = d.draw.picks;
        seconds = time_of(b, run_draw, &d);
    }
    if (at)
        b->ops->release(b, (float *)(void *)at);
    free(host);
    return seconds;
}

/* --- on the host ----------------------------------------------------------------------------- */

/* As many rows as a batch has, and those after them. */
static void run_choice(struct rm_backend *b, void *self)
{
    const struct rm_feed *f = self;
    const struct rm_transition_rule rule = {f->sampler.n_step, f->sampler.frame_stack,
                                            f->sampler.gamma};
    volatile bool found; /* so that it is looked for */
    (void)b;
    for (uint32_t i = 0; i < f->sampler.batch; i++) {
        const struct rm_ring *ring = f->sources[i % f->sampler.source_count].ring;
        const struct rm_row_view view = rm_rows_of(ring, f->sampler.agent->actions);
        const struct rm_row_span span = {ring->spec.first_index + ring->spec.rows, ring->spec.rows,
                                         ring->spec.rows};
        struct rm_transition_found ignored;
        const uint64_t distance = 1 + (uint64_t)i * 2654435761u % ring->spec.rows;
        found = rm_view_look(&view, &span, distance, i % ring->spec.lanes, &rule, &ignored);
        (void)found;
    }
}

double rm_feed_time_choice(struct rm_feed *f)
{
    return time_of(f->spec.backend, run_choice, f);
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
    const struct rm_sampler_spec *spec = &h->feed->sampler;
    (void)b;
    for (uint32_t i = 0; i < 2 * spec->batch; i++) {
        const struct rm_ring *ring = h->feed->sources[i % spec->source_count].ring;
        const uint64_t row = (uint64_t)i * 2654435761u % ring->spec.rows;
        for (uint32_t k = 0; k < spec->frame_stack; k++)
            h->frames[k] = rm_ring_row(ring, row + k).obs;
        rm_features_take_stack(spec->agent, spec->codes, h->frames, spec->frame_stack, h->out);
    }
}

double rm_feed_time_host(struct rm_feed *f)
{
    struct host_batch h = {
        .feed = f,
        .frames = calloc(f->sampler.frame_stack, sizeof *h.frames),
        .out = calloc((size_t)f->sampler.frame_stack * f->gather.decode.words, sizeof(float)),
    };
    const double seconds = h.frames && h.out ? time_of(f->spec.backend, run_host, &h) : -1;
    free(h.frames);
    free(h.out);
    return seconds;
}
