#include "learner/feed_private.h"

#include "learner/net/features.h"
#include "shm/layout.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct rm_device_gather *rm_feed_gather(const struct rm_feed *feed)
{
    return &feed->gather;
}

const struct rm_device_sampler *rm_feed_draw(const struct rm_feed *feed)
{
    return feed->draw.sources ? &feed->draw : NULL;
}

/* --- where rows are -------------------------------------------------------------------------- */

void rm_feed_send(struct rm_feed *f, void *to, const void *from, size_t bytes)
{
    struct rm_backend *b = f->spec.backend;
    b->ops->upload(b, to, from, bytes / sizeof(float));
}

static void send_table(struct rm_feed *f, const struct rm_device_source *table)
{
    rm_feed_send(f, f->table, table, f->sampler.source_count * sizeof *table);
}

static struct rm_device_source *host_table(const struct rm_feed *f, struct rm_error *error)
{
    struct rm_device_source *table = calloc(f->sampler.source_count, sizeof *table);
    if (!table)
        rm_fail(error, -ENOMEM, "no memory for %u rings", f->sampler.source_count);
    for (uint32_t i = 0; table && i < f->sampler.source_count; i++) {
        const struct rm_ring *ring = f->sources[i].ring;
        table[i].row_mask = ring->mask;
        table[i].mask_at = ring->mask_at ? ring->mask_at - ring->obs_at : 0;
    }
    return table;
}

int rm_feed_reside(struct rm_feed *f, const struct rm_sampler_source *sources,
                   struct rm_error *error)
{
    struct rm_device_source *table = host_table(f, error);
    int rc = table ? rm_feed_make_copies(f, error) : -ENOMEM;
    for (uint32_t i = 0; i < f->sampler.source_count && !rc; i++) {
        const struct rm_ring *ring = f->sources[i].ring;
        table[i].rows = f->sources[i].copy + ring->obs_at;
        table[i].stride = ring->row_bytes;
    }
    f->gather.checked = 0;
    if (!rc)
        send_table(f, table);
    free(table);
    return rc ? rc : rm_feed_make_draw(f, sources, error);
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
    for (uint32_t i = 0; i < f->sampler.source_count && !rc; i++) {
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
        send_table(f, table);
    free(table);
    return rc;
}

void rm_feed_leave(struct rm_feed *f)
{
    struct rm_backend *b = f->spec.backend;
    rm_feed_free_draw(f);
    rm_feed_free_copies(f);
    for (uint32_t i = 0; i < f->sampler.source_count; i++) {
        struct rm_feed_source *s = &f->sources[i];
        if (s->mapped)
            b->device->unregister_host(b, s->ring->region.base);
        s->mapped = NULL;
    }
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_decode(struct rm_feed *f, struct rm_error *error)
{
    const struct rm_env_agent *a = f->sampler.agent;
    struct rm_backend *b = f->spec.backend;
    const bool book = a->dtype == RM_ENV_CODE8 && !f->sampler.codes;
    const size_t floats = book ? (size_t)a->codes * a->channels : 0;
    f->gather.decode = (struct rm_device_decode){
        .dtype = a->dtype,
        .elements = rm_features_elements(a),
        .obs_bytes = (uint32_t)rm_features_bytes(a),
        .words = rm_features_words(a, f->sampler.codes),
        .codes = book ? a->codes : 0,
        .channels = book ? a->channels : 0,
        .actions = a->actions,
        .as_codes = f->sampler.codes,
    };
    f->gather.stack = f->sampler.frame_stack;
    f->gather.batch = f->sampler.batch;
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
    f->sources = calloc(f->sampler.source_count, sizeof *f->sources);
    if (!f->sources)
        return rm_fail(error, -ENOMEM, "no memory for %u rings", f->sampler.source_count);
    for (uint32_t i = 0; i < f->sampler.source_count; i++)
        f->sources[i].ring = sources[i].ring;
    f->table = b->device->alloc(b, f->sampler.source_count * sizeof *f->table, error);
    f->gather.sources = f->table;
    int rc = f->table ? b->device->mark_create(b, &f->behind, error) : -ENOMEM;
    for (uint32_t i = 0; i < RM_FEED_BLOCKS && !rc; i++)
        rc = b->device->mark_create(b, &f->copied[i], error);
    return rc;
}

/* Seconds of what can be had; negative where it cannot. */
struct measured {
    double staged, resident, registered;
    struct rm_error why; /* it cannot reside */
};

/* Negative where one of them is. */
static double together(double x, double y)
{
    return x < 0 || y < 0 ? -1 : x + y;
}

static void measure(struct rm_feed *f, const struct rm_sampler_source *sources, struct measured *m)
{
    const struct rm_device_decode *d = &f->gather.decode;
    const size_t stacks = (size_t)f->sampler.batch * f->sampler.frame_stack * 2;
    const size_t batch = stacks * d->words * sizeof(float);
    const double rows = f->spec.steps_per_update * d->obs_bytes;
    const double choice = rm_feed_time_choice(f);
    m->staged = together(together(choice, rm_feed_time_host(f)), rm_feed_time_copy(f, batch));
    m->registered = m->resident = -1;
    if (!rm_feed_register(f, NULL))
        m->registered = together(choice, rm_feed_time_gather(f));
    rm_feed_leave(f);
    if (!rm_feed_reside(f, sources, &m->why))
        m->resident =
            together(rm_feed_time_draw(f),
                     rm_feed_time_copy(f, rows < (double)batch ? (size_t)rows + 1 : batch));
    rm_feed_leave(f);
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

static enum rm_feed_kind choose(struct rm_feed *f, const struct rm_sampler_source *sources)
{
    static const char *const words[] = {
        [RM_FEED_STAGED] = "staged on the host",
        [RM_FEED_RESIDENT] = "drawn and made of a replay on the device",
        [RM_FEED_REGISTERED] = "read out of the shared ring",
    };
    struct measured m = {.why = {""}};
    measure(f, sources, &m);
    const enum rm_feed_kind kind = best_of(&m);
    fprintf(stderr,
            "learner of %s: batches are %s; measured, microseconds each: staged %s, resident %s, "
            "registered %s%s%s\n",
            f->spec.name, words[kind], microseconds(m.staged).text, microseconds(m.resident).text,
            microseconds(m.registered).text, m.why.text[0] ? "; no replay on the device: " : "",
            m.why.text);
    return kind;
}

/* With priorities what is chosen may not depend on how fast things are. */
static int choose_by_priority(struct rm_feed *f, const struct rm_sampler_source *sources,
                              enum rm_feed_kind *kind)
{
    struct rm_error why = {""};
    *kind = rm_feed_reside(f, sources, &why) ? RM_FEED_STAGED : RM_FEED_RESIDENT;
    if (*kind == RM_FEED_STAGED)
        fprintf(stderr,
                "learner of %s: batches are staged on the host; no replay on the device: "
                "%s\n",
                f->spec.name, why.text);
    else
        fprintf(stderr,
                "learner of %s: batches are drawn and made of a replay on the device, with its "
                "priorities\n",
                f->spec.name);
    return 0;
}

static int open_feed(struct rm_feed *f, const struct rm_sampler_source *sources,
                     enum rm_feed_kind *kind, struct rm_error *error)
{
    int rc = make_sources(f, sources, error);
    if (!rc)
        rc = make_decode(f, error);
    if (!rc && *kind == RM_FEED_AUTO && f->sampler.priorities)
        return choose_by_priority(f, sources, kind);
    if (!rc && *kind == RM_FEED_AUTO)
        *kind = choose(f, sources);
    if (!rc && *kind == RM_FEED_RESIDENT && (rc = rm_feed_reside(f, sources, error)))
        rc = rm_fail_within(error, rc, "learner.feed \"resident\"");
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
    f->sampler = *spec->sampler;
    f->spec.sampler = NULL;
    f->sampler.sources = NULL;
    const int rc = open_feed(f, spec->sampler->sources, &kind, error);
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
