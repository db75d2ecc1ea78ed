#include "learner/algo/staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The parts of a slot's block, in order; a part of 0 bytes is absent. */
enum part {
    PART_KNOBS,
    PART_TURN,
    PART_OBS,
    PART_NEXT_OBS,
    PART_ACTION,
    PART_RET,
    PART_DISCOUNT,
    PART_WEIGHT,
    PART_MASK,
    PART_NEXT_MASK,
    PART_STATE,
    PART_RESTART,
    PART_VALID,
    PART_AHEAD,
    PART_COUNT
};

#define MEMBER(name) offsetof(struct rm_batch, name)
static const size_t members[PART_COUNT] = {
    [PART_TURN] = MEMBER(turn),
    [PART_OBS] = MEMBER(obs),
    [PART_NEXT_OBS] = MEMBER(next_obs),
    [PART_ACTION] = MEMBER(action),
    [PART_RET] = MEMBER(ret),
    [PART_DISCOUNT] = MEMBER(discount),
    [PART_WEIGHT] = MEMBER(weight),
    [PART_MASK] = MEMBER(mask),
    [PART_NEXT_MASK] = MEMBER(next_mask),
    [PART_STATE] = MEMBER(state),
    [PART_RESTART] = MEMBER(restart),
    [PART_VALID] = MEMBER(valid),
    [PART_AHEAD] = MEMBER(ahead),
};

static void *member(const struct rm_batch *batch, enum part part)
{
    void *p;
    memcpy(&p, (const char *)batch + members[part], sizeof p);
    return p;
}

static void set_member(struct rm_batch *batch, enum part part, void *p)
{
    memcpy((char *)batch + members[part], &p, sizeof p);
}

_Static_assert(PART_COUNT == RM_STAGING_PARTS, "bytes of each");

struct layout {
    size_t at[PART_COUNT], bytes[PART_COUNT], all;
};

/* Bytes of a batch that comes from the host. */
static void measure_batch(const struct rm_staging_spec *spec, size_t bytes[PART_COUNT])
{
    const struct rm_batch *shape = &spec->shape;
    const size_t size = shape->size, sequences = shape->trace;
    const size_t rows = size * (sequences ? rm_batch_rows(shape) : 1); /* of observations */
    const size_t n = size * (sequences ? sequences : 1);               /* of transitions */
    const size_t row = (size_t)shape->inputs * sizeof(float);
    bytes[PART_OBS] = rows * row;
    bytes[PART_NEXT_OBS] = sequences ? 0 : rows * row;
    bytes[PART_ACTION] = n * rm_batch_words(shape) * sizeof(int32_t);
    bytes[PART_RET] = bytes[PART_DISCOUNT] = n * sizeof(float);
    bytes[PART_WEIGHT] = spec->priorities ? size * sizeof(float) : 0;
    bytes[PART_MASK] = (sequences ? spec->masks : spec->own_masks) ? rows * shape->actions : 0;
    bytes[PART_NEXT_MASK] = spec->masks && !sequences ? n * shape->actions : 0;
    if (!sequences)
        return;
    bytes[PART_STATE] = size * shape->state_floats * sizeof(float);
    bytes[PART_RESTART] = rows;
    bytes[PART_VALID] = n;
    bytes[PART_AHEAD] = n * sizeof(uint32_t);
}

static struct layout lay_out(const struct rm_staging_spec *spec)
{
    struct layout l = {.bytes = {[PART_KNOBS] = sizeof(struct rm_update_knobs)}};
    if (spec->draw)
        l.bytes[PART_TURN] = rm_device_turn_bytes(spec->draw->source_count);
    else
        measure_batch(spec, l.bytes);
    for (int i = 0; i < PART_COUNT; i++) {
        l.at[i] = l.all;
        l.all += (l.bytes[i] + 255) / 256 * 256; /* the alignment of an allocation */
    }
    return l;
}

static void name_parts(struct rm_staging_slot *s, const struct rm_staging_spec *spec,
                       const struct layout *l)
{
    s->knobs = (void *)s->pinned;
    s->device_knobs = (const void *)s->block;
    s->figures = (const void *)s->back;
    s->device_figures = (void *)s->result;
    s->host = s->device = spec->shape;
    for (enum part i = PART_KNOBS + 1; i < PART_COUNT; i++) {
        set_member(&s->host, i, l->bytes[i] ? s->pinned + l->at[i] : NULL);
        set_member(&s->device, i, l->bytes[i] ? s->block + l->at[i] : NULL);
    }
    if (spec->draw) {
        s->drawn = (const void *)(s->back + sizeof(struct rm_update_figures));
        s->device_drawn = (void *)(s->result + sizeof(struct rm_update_figures));
    } else if (spec->priorities) {
        s->host.error = (float *)(void *)(s->back + sizeof(struct rm_update_figures));
        s->device.error = (float *)(void *)(s->result + sizeof(struct rm_update_figures));
    }
}

/* Results of a draw on the device. */
enum made {
    MADE_OBS,
    MADE_NEXT_OBS,
    MADE_WEIGHT,
    MADE_NEXT_MASK,
    MADE_PICKS,
    MADE_ACTION,
    MADE_RET,
    MADE_DISCOUNT,
    MADE_LEAF,
    MADE_ERROR,
    MADE_COUNT
};

static int alloc_made(struct rm_staging *t, const struct rm_staging_spec *spec,
                      void *made[MADE_COUNT], struct rm_error *error)
{
    const size_t rows = spec->shape.size, row = rows * spec->shape.inputs * sizeof(float);
    const size_t by_priority = spec->priorities ? rows : 0;
    const size_t bytes[MADE_COUNT] = {
        [MADE_OBS] = row,
        [MADE_NEXT_OBS] = row,
        [MADE_WEIGHT] = by_priority * sizeof(float),
        [MADE_NEXT_MASK] = spec->masks ? rows * spec->shape.actions : 0,
        [MADE_PICKS] = rows * sizeof(struct rm_device_pick),
        [MADE_ACTION] = rows * sizeof(int32_t),
        [MADE_RET] = rows * sizeof(float),
        [MADE_DISCOUNT] = rows * sizeof(float),
        [MADE_LEAF] = by_priority * sizeof(uint64_t),
        [MADE_ERROR] = by_priority * sizeof(float),
    };
    size_t at[MADE_COUNT], all = 0;
    for (int i = 0; i < MADE_COUNT; i++) {
        at[i] = all;
        all += (bytes[i] + 255) / 256 * 256;
    }
    t->made = t->backend->device->alloc(t->backend, all, error);
    for (int i = 0; i < MADE_COUNT; i++)
        made[i] = t->made && bytes[i] ? t->made + at[i] : NULL;
    return t->made ? 0 : -ENOMEM;
}

static int make_draw(struct rm_staging *t, const struct rm_staging_spec *spec,
                     struct rm_error *error)
{
    void *made[MADE_COUNT];
    const int rc = alloc_made(t, spec, made, error);
    if (rc)
        return rc;
    t->draw = *spec->draw;
    t->draw.batch = spec->shape.size;
    t->draw.figures = spec->figures;
    t->draw.picks = made[MADE_PICKS];
    t->draw.action = made[MADE_ACTION];
    t->draw.ret = made[MADE_RET];
    t->draw.discount = made[MADE_DISCOUNT];
    t->draw.weight = made[MADE_WEIGHT];
    t->draw.leaf = made[MADE_LEAF];
    t->draw.gather.batch = spec->shape.size;
    t->draw.gather.picks = made[MADE_PICKS];
    t->draw.gather.obs = made[MADE_OBS];
    t->draw.gather.next_obs = made[MADE_NEXT_OBS];
    t->draw.gather.next_mask = made[MADE_NEXT_MASK];
    t->error = made[MADE_ERROR];
    return 0;
}

/* All slots share the buffers of a drawn batch. */
static void share_batch(const struct rm_staging *t, struct rm_staging_slot *s)
{
    s->device.obs = t->draw.gather.obs;
    s->device.next_obs = t->draw.gather.next_obs;
    s->device.next_mask = t->draw.gather.next_mask;
    s->device.action = t->draw.action;
    s->device.ret = t->draw.ret;
    s->device.discount = t->draw.discount;
    s->device.weight = t->draw.weight;
    s->device.error = t->error;
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
    if (!t->error)
        return;
    const struct rm_device_sampler draw = draw_of(t, s);
    t->backend->device->feed->learned(t->backend, &draw, t->error);
}

static int make_slot(struct rm_staging *t, struct rm_staging_slot *s,
                     const struct rm_staging_spec *spec, const struct layout *l,
                     struct rm_error *error)
{
    struct rm_backend *b = t->backend;
    s->pinned = b->device->alloc_host(b, t->bytes_in, error);
    s->block = s->pinned ? b->device->alloc(b, t->bytes_in, error) : NULL;
    s->back = s->block ? b->device->alloc_host(b, t->bytes_back, error) : NULL;
    s->result = s->back ? b->device->alloc(b, t->bytes_back, error) : NULL;
    if (!s->result)
        return -ENOMEM;
    name_parts(s, spec, l);
    if (spec->draw)
        share_batch(t, s);
    if (t->errors && !(s->host.leaf = calloc(spec->shape.size, sizeof *s->host.leaf)))
        return rm_fail(error, -ENOMEM, "no memory for a batch of %u", spec->shape.size);
    int rc = b->device->mark_create(b, &s->in, error);
    if (!rc)
        rc = b->device->mark_create(b, &s->computed, error);
    return rc ? rc : b->device->mark_create(b, &s->over, error);
}

int rm_staging_create(struct rm_staging *t, struct rm_backend *backend,
                      const struct rm_staging_spec *spec, struct rm_error *error)
{
    const struct layout l = lay_out(spec);
    *t = (struct rm_staging){.backend = backend, .bytes_in = l.all};
    memcpy(t->part_bytes, l.bytes, sizeof l.bytes);
    t->errors = spec->priorities && !spec->draw;
    t->bytes_back = sizeof(struct rm_update_figures);
    if (spec->draw)
        t->bytes_back += sizeof(struct rm_device_drawn);
    if (t->errors)
        t->bytes_back += spec->shape.size * sizeof(float);
    int rc = spec->draw ? make_draw(t, spec, error) : 0;
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH && !rc; i++)
        rc = make_slot(t, &t->slots[i], spec, &l, error);
    return rc;
}

static void destroy_slot(struct rm_backend *b, struct rm_staging_slot *s)
{
    b->device->graph_destroy(b, s->graph);
    b->device->mark_destroy(b, s->in);
    b->device->mark_destroy(b, s->computed);
    b->device->mark_destroy(b, s->over);
    b->device->release_host(b, s->pinned);
    b->device->release_host(b, s->back);
    b->ops->release(b, (float *)(void *)s->block);
    b->ops->release(b, (float *)(void *)s->result);
    free(s->host.leaf);
}

void rm_staging_destroy(struct rm_staging *t)
{
    if (!t->backend)
        return;
    t->backend->device->finish(t->backend);
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++)
        destroy_slot(t->backend, &t->slots[i]);
    t->backend->ops->release(t->backend, (float *)(void *)t->made);
    memset(t, 0, sizeof *t);
}

bool rm_staging_wait(struct rm_staging *t, struct rm_staging_slot *s)
{
    struct rm_backend *b = t->backend;
    if (!s->sent)
        return false;
    if (!b->device->passed(b, s->over))
        b->device->wait(b, s->over);
    s->sent = false;
    s->learnable = t->errors && !s->figures->skip;
    return true;
}

struct rm_staging_slot *rm_staging_slot(struct rm_staging *t)
{
    return &t->slots[t->next];
}

/* A batch without weights has weight 1 everywhere; without masks, every action is legal. */
static void fill_default(struct rm_staging_slot *s, enum part part, size_t bytes)
{
    if (part == PART_MASK || part == PART_NEXT_MASK)
        memset(member(&s->host, part), 1, bytes);
    for (size_t i = 0; part == PART_WEIGHT && i < s->host.size; i++)
        s->host.weight[i] = 1.0f;
}

void rm_staging_fill(const struct rm_staging *t, struct rm_staging_slot *s,
                     const struct rm_batch *from)
{
    if (from == &s->host || s->host.turn)
        return;
    for (enum part i = PART_KNOBS + 1; i < PART_COUNT; i++) {
        void *to = member(&s->host, i);
        if (to && member(from, i))
            memcpy(to, member(from, i), t->part_bytes[i]);
        else if (to)
            fill_default(s, i, t->part_bytes[i]);
    }
}

void rm_staging_send(struct rm_staging *t, struct rm_staging_slot *s)
{
    struct rm_backend *b = t->backend;
    b->device->copy_in(b, RM_DEVICE_STREAM_IN, s->block, s->pinned, t->bytes_in);
    b->device->mark(b, RM_DEVICE_STREAM_IN, s->in);
    b->device->follow(b, RM_DEVICE_STREAM_COMPUTE, s->in);
}

void rm_staging_sent(struct rm_staging *t, struct rm_staging_slot *s, bool figures)
{
    struct rm_backend *b = t->backend;
    const size_t bytes = t->errors || figures ? t->bytes_back : 0;
    if (bytes) {
        b->device->mark(b, RM_DEVICE_STREAM_COMPUTE, s->computed);
        b->device->follow(b, RM_DEVICE_STREAM_OUT, s->computed);
        b->device->copy_out(b, RM_DEVICE_STREAM_OUT, s->back, s->result, bytes);
    }
    b->device->mark(b, bytes ? RM_DEVICE_STREAM_OUT : RM_DEVICE_STREAM_COMPUTE, s->over);
    s->has_figures = figures;
    s->sent = true;
    t->next = (t->next + 1) % RM_TRAINER_DEPTH;
}
