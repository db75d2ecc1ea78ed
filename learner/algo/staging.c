#include "learner/algo/staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the knobs, with which a slot's block begins, and of the picks of a draw. */
static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256; /* the alignment of an allocation */
}

#define KNOBS_BYTES aligned(sizeof(struct rm_update_knobs))

static void name_parts(const struct rm_staging *t, struct rm_staging_slot *s,
                       const struct rm_staging_spec *spec)
{
    void *host = s->back + sizeof(struct rm_update_figures);
    void *device = s->result + sizeof(struct rm_update_figures);
    s->knobs = (void *)s->pinned;
    s->device_knobs = (const void *)s->block;
    s->figures = (const void *)s->back;
    s->device_figures = (void *)s->result;
    s->host = s->device = spec->shape;
    rm_batch_place(&s->host, t->part_bytes, s->pinned + KNOBS_BYTES);
    rm_batch_place(&s->device, t->part_bytes, s->block + KNOBS_BYTES);
    if (spec->draw) { /* all slots share the buffers of a drawn batch */
        struct rm_device_turn *turn = s->device.turn;
        s->device = t->drawn;
        s->device.turn = turn;
        s->drawn = host;
        s->device_drawn = device;
    } else if (t->errors) {
        s->host.error = host;
        s->device.error = device;
    }
}

static int make_draw(struct rm_staging *t, const struct rm_staging_spec *spec,
                     struct rm_error *error)
{
    const size_t picks = aligned(spec->shape.size * sizeof(struct rm_device_pick));
    size_t bytes[RM_BATCH_PARTS];
    struct rm_batch *drawn = &t->drawn;
    *drawn = spec->shape;
    rm_batch_measure(drawn, &spec->extras, bytes);
    t->made =
        t->backend->ops->alloc_bytes(t->backend, picks + rm_batch_place(drawn, bytes, NULL), error);
    if (!t->made)
        return -ENOMEM;
    rm_batch_place(drawn, bytes, t->made + picks);
    t->draw = *spec->draw;
    t->draw.batch = t->draw.gather.batch = drawn->size;
    t->draw.figures = spec->figures;
    t->draw.gather.picks = t->draw.picks = (void *)t->made;
    t->draw.action = drawn->action;
    t->draw.ret = drawn->ret;
    t->draw.discount = drawn->discount;
    t->draw.weight = drawn->weight;
    t->draw.leaf = drawn->leaf;
    t->draw.gather.obs = drawn->obs;
    t->draw.gather.next_obs = drawn->next_obs;
    t->draw.gather.next_mask = drawn->next_mask;
    return 0;
}

/* The draw of this slot's update. */
static struct rm_device_sampler draw_of(const struct rm_staging *t, const struct rm_staging_slot *s)
{
    struct rm_device_sampler draw = t->draw;
    draw.knobs = s->device_knobs;
    draw.turn = s->device.turn;
    draw.drawn_copy = s->device_drawn;
    return draw;
}

void rm_staging_draw(struct rm_staging *t, const struct rm_staging_slot *s)
{
    const struct rm_device_sampler draw = draw_of(t, s);
    if (!draw.batch)
        return;
    t->backend->device->feed->draw(t->backend, &draw);
    t->backend->device->feed->gather(t->backend, &draw.gather);
}

void rm_staging_learned(struct rm_staging *t, const struct rm_staging_slot *s)
{
    if (!t->drawn.error)
        return;
    const struct rm_device_sampler draw = draw_of(t, s);
    t->backend->device->feed->learned(t->backend, &draw, t->drawn.error);
}

static int make_slot(struct rm_staging *t, struct rm_staging_slot *s,
                     const struct rm_staging_spec *spec, struct rm_error *error)
{
    struct rm_backend *b = t->backend;
    s->pinned = b->ops->alloc_host(b, t->bytes_in, error);
    s->block = s->pinned ? b->ops->alloc_bytes(b, t->bytes_in, error) : NULL;
    s->back = s->block ? b->ops->alloc_host(b, t->bytes_back, error) : NULL;
    s->result = s->back ? b->ops->alloc_bytes(b, t->bytes_back, error) : NULL;
    if (!s->result)
        return -ENOMEM;
    name_parts(t, s, spec);
    if (t->errors && !(s->host.leaf = calloc(spec->shape.size, sizeof *s->host.leaf)))
        return rm_fail(error, -ENOMEM, "no memory for a batch of %u", spec->shape.size);
    int rc = b->ops->mark_create(b, &s->in, error);
    if (!rc)
        rc = b->ops->mark_create(b, &s->computed, error);
    return rc ? rc : b->ops->mark_create(b, &s->over, error);
}

int rm_staging_create(struct rm_staging *t, struct rm_backend *backend,
                      const struct rm_staging_spec *spec, struct rm_error *error)
{
    struct rm_batch ignored;
    *t = (struct rm_staging){.backend = backend, .errors = spec->extras.priorities && !spec->draw};
    if (spec->draw)
        t->part_bytes[RM_BATCH_TURN] = rm_device_turn_bytes(spec->draw->source_count);
    else
        rm_batch_measure(&spec->shape, &spec->extras, t->part_bytes);
    t->part_bytes[RM_BATCH_ERROR] = t->part_bytes[RM_BATCH_LEAF] = 0; /* not copied to the device */
    t->bytes_in = KNOBS_BYTES + rm_batch_place(&ignored, t->part_bytes, NULL);
    t->bytes_back = sizeof(struct rm_update_figures);
    if (spec->draw)
        t->bytes_back += sizeof(struct rm_device_drawn);
    if (t->errors)
        t->bytes_back += spec->shape.size * sizeof(float);
    int rc = spec->draw ? make_draw(t, spec, error) : 0;
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH && !rc; i++)
        rc = make_slot(t, &t->slots[i], spec, error);
    return rc;
}

static void destroy_slot(struct rm_backend *b, struct rm_staging_slot *s)
{
    b->device->graph_destroy(b, s->graph);
    b->ops->mark_destroy(b, s->in);
    b->ops->mark_destroy(b, s->computed);
    b->ops->mark_destroy(b, s->over);
    b->ops->release_host(b, s->pinned);
    b->ops->release_host(b, s->back);
    b->ops->release(b, s->block);
    b->ops->release(b, s->result);
    free(s->host.leaf);
}

void rm_staging_destroy(struct rm_staging *t)
{
    if (!t->backend)
        return;
    t->backend->ops->finish(t->backend);
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++)
        destroy_slot(t->backend, &t->slots[i]);
    t->backend->ops->release(t->backend, t->made);
    memset(t, 0, sizeof *t);
}

bool rm_staging_wait(struct rm_staging *t, struct rm_staging_slot *s)
{
    struct rm_backend *b = t->backend;
    if (!s->sent)
        return false;
    if (!b->ops->passed(b, s->over))
        b->ops->wait(b, s->over);
    s->sent = false;
    s->learnable = t->errors && !s->figures->skip;
    return true;
}

struct rm_staging_slot *rm_staging_slot(struct rm_staging *t)
{
    return &t->slots[t->next];
}

/* A batch without weights has weight 1 everywhere; without masks, every action is legal. */
static void fill_default(struct rm_staging_slot *s, enum rm_batch_part part, size_t bytes)
{
    if (part == RM_BATCH_MASK || part == RM_BATCH_NEXT_MASK)
        memset(rm_batch_part(&s->host, part), 1, bytes);
    for (size_t i = 0; part == RM_BATCH_WEIGHT && i < s->host.size; i++)
        s->host.weight[i] = 1.0f;
}

void rm_staging_fill(const struct rm_staging *t, struct rm_staging_slot *s,
                     const struct rm_batch *from)
{
    if (from == &s->host || s->host.turn)
        return;
    for (enum rm_batch_part i = 0; i < RM_BATCH_PARTS; i++) {
        if (t->part_bytes[i] && rm_batch_part(from, i))
            memcpy(rm_batch_part(&s->host, i), rm_batch_part(from, i), t->part_bytes[i]);
        else if (t->part_bytes[i])
            fill_default(s, i, t->part_bytes[i]);
    }
}

void rm_staging_send(struct rm_staging *t, struct rm_staging_slot *s)
{
    struct rm_backend *b = t->backend;
    b->ops->copy_in(b, RM_QUEUE_IN, s->block, s->pinned, t->bytes_in);
    b->ops->mark(b, RM_QUEUE_IN, s->in);
    b->ops->follow(b, RM_QUEUE_COMPUTE, s->in);
}

void rm_staging_sent(struct rm_staging *t, struct rm_staging_slot *s, bool figures)
{
    struct rm_backend *b = t->backend;
    const size_t bytes = t->errors || figures ? t->bytes_back : 0;
    if (bytes) {
        b->ops->mark(b, RM_QUEUE_COMPUTE, s->computed);
        b->ops->follow(b, RM_QUEUE_OUT, s->computed);
        b->ops->copy_out(b, RM_QUEUE_OUT, s->back, s->result, bytes);
    }
    b->ops->mark(b, bytes ? RM_QUEUE_OUT : RM_QUEUE_COMPUTE, s->over);
    s->has_figures = figures;
    s->sent = true;
    t->next = (t->next + 1) % RM_TRAINER_DEPTH;
}
