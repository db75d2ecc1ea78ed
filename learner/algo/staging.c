#include "learner/algo/staging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The parts of a slot's block, one after another: what has 0 bytes is not there. */
enum part {
    PART_KNOBS,
    PART_PICKS,
    PART_OBS,
    PART_NEXT_OBS,
    PART_ACTION,
    PART_RET,
    PART_DISCOUNT,
    PART_WEIGHT,
    PART_NEXT_MASK,
    PART_COUNT
};

struct layout {
    size_t at[PART_COUNT], bytes[PART_COUNT], all;
};

static struct layout lay_out(const struct rm_staging_spec *spec)
{
    const size_t rows = spec->batch, row = (size_t)spec->inputs * sizeof(float);
    const bool whole = !spec->gather;
    struct layout l = {
        .bytes =
            {
                [PART_KNOBS] = sizeof(struct rm_device_knobs),
                [PART_PICKS] = whole ? 0 : rows * sizeof(struct rm_device_pick),
                [PART_OBS] = whole ? rows * row : 0,
                [PART_NEXT_OBS] = whole ? rows * row : 0,
                [PART_ACTION] = rows * sizeof(int32_t),
                [PART_RET] = rows * sizeof(float),
                [PART_DISCOUNT] = rows * sizeof(float),
                [PART_WEIGHT] = spec->priorities ? rows * sizeof(float) : 0,
                [PART_NEXT_MASK] = whole && spec->masks ? rows * spec->actions : 0,
            },
    };
    for (int i = 0; i < PART_COUNT; i++) {
        l.at[i] = l.all;
        l.all += (l.bytes[i] + 255) / 256 * 256; /* as an allocation would be aligned */
    }
    return l;
}

static void *part_of(uint8_t *block, const struct layout *l, enum part part)
{
    return l->bytes[part] ? block + l->at[part] : NULL;
}

static void name_parts(struct rm_staging_slot *s, const struct rm_staging_spec *spec,
                       const struct layout *l)
{
    s->knobs = part_of(s->pinned, l, PART_KNOBS);
    s->figures = (const struct rm_device_figures *)(const void *)s->back;
    s->host.size = spec->batch;
    s->host.inputs = spec->inputs;
    s->host.actions = spec->actions;
    s->host.codes = spec->codes;
    s->host.picks = part_of(s->pinned, l, PART_PICKS);
    s->host.obs = part_of(s->pinned, l, PART_OBS);
    s->host.next_obs = part_of(s->pinned, l, PART_NEXT_OBS);
    s->host.action = part_of(s->pinned, l, PART_ACTION);
    s->host.ret = part_of(s->pinned, l, PART_RET);
    s->host.discount = part_of(s->pinned, l, PART_DISCOUNT);
    s->host.weight = part_of(s->pinned, l, PART_WEIGHT);
    s->host.next_mask = part_of(s->pinned, l, PART_NEXT_MASK);
    s->device = (struct rm_staged_batch){
        .knobs = part_of(s->block, l, PART_KNOBS),
        .picks = part_of(s->block, l, PART_PICKS),
        .obs = part_of(s->block, l, PART_OBS),
        .next_obs = part_of(s->block, l, PART_NEXT_OBS),
        .action = part_of(s->block, l, PART_ACTION),
        .ret = part_of(s->block, l, PART_RET),
        .discount = part_of(s->block, l, PART_DISCOUNT),
        .weight = part_of(s->block, l, PART_WEIGHT),
        .next_mask = part_of(s->block, l, PART_NEXT_MASK),
        .figures = (struct rm_device_figures *)(void *)s->result,
    };
    if (spec->priorities) {
        s->host.error = (float *)(void *)(s->back + sizeof(struct rm_device_figures));
        s->device.error = (float *)(void *)(s->result + sizeof(struct rm_device_figures));
    }
}

/* What the device makes of picks. */
enum made { MADE_OBS, MADE_NEXT_OBS, MADE_WEIGHT, MADE_NEXT_MASK, MADE_COUNT };

/* Weights are made where rows may be overwritten while they are read. */
static bool makes_weights(const struct rm_staging_spec *spec)
{
    return spec->gather->checked;
}

static int make_gather(struct rm_staging *t, const struct rm_staging_spec *spec,
                       struct rm_error *error)
{
    const size_t rows = spec->batch, row = rows * spec->inputs * sizeof(float);
    const size_t bytes[MADE_COUNT] = {row, row, makes_weights(spec) ? rows * sizeof(float) : 0,
                                      spec->masks ? rows * spec->actions : 0};
    size_t at[MADE_COUNT], all = 0;
    for (int i = 0; i < MADE_COUNT; i++) {
        at[i] = all;
        all += (bytes[i] + 255) / 256 * 256;
    }
    t->made = t->backend->device->alloc(t->backend, all, error);
    if (!t->made)
        return -ENOMEM;
    t->gather = *spec->gather;
    t->gather.batch = spec->batch;
    t->gather.obs = t->made + at[MADE_OBS];
    t->gather.next_obs = t->made + at[MADE_NEXT_OBS];
    t->gather.weight = bytes[MADE_WEIGHT] ? (float *)(void *)(t->made + at[MADE_WEIGHT]) : NULL;
    t->gather.next_mask = bytes[MADE_NEXT_MASK] ? t->made + at[MADE_NEXT_MASK] : NULL;
    return 0;
}

/* An update of the slot finds what was made for it. */
static void use_gather(const struct rm_staging *t, struct rm_staging_slot *s)
{
    s->device.obs = t->gather.obs;
    s->device.next_obs = t->gather.next_obs;
    s->device.next_mask = t->gather.next_mask;
    s->weight_in = s->device.weight;
    if (t->gather.weight)
        s->device.weight = t->gather.weight;
}

void rm_staging_gather(struct rm_staging *t, const struct rm_staging_slot *s)
{
    struct rm_device_gather gather = t->gather;
    if (!gather.batch)
        return;
    gather.picks = s->device.picks;
    gather.weight_in = s->weight_in;
    t->backend->device->feed->gather(t->backend, &gather);
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
    if (spec->gather)
        use_gather(t, s);
    if (spec->priorities && !(s->host.leaf = calloc(spec->batch, sizeof *s->host.leaf)))
        return rm_fail(error, -ENOMEM, "no memory for a batch of %u", spec->batch);
    int rc = b->device->mark_create(b, &s->in, error);
    if (!rc)
        rc = b->device->mark_create(b, &s->computed, error);
    return rc ? rc : b->device->mark_create(b, &s->over, error);
}

int rm_staging_create(struct rm_staging *t, struct rm_backend *backend,
                      const struct rm_staging_spec *spec, struct rm_error *error)
{
    const struct layout l = lay_out(spec);
    *t = (struct rm_staging){.backend = backend, .bytes_in = l.all, .errors = spec->priorities};
    t->bytes_back = sizeof(struct rm_device_figures);
    if (spec->priorities)
        t->bytes_back += spec->batch * sizeof(float);
    int rc = spec->gather ? make_gather(t, spec, error) : 0;
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

void rm_staging_fill(struct rm_staging_slot *s, const struct rm_batch *from)
{
    const size_t n = s->host.size, features = n * s->host.inputs;
    if (from == &s->host)
        return;
    memcpy(s->host.obs, from->obs, features * sizeof *from->obs);
    memcpy(s->host.next_obs, from->next_obs, features * sizeof *from->next_obs);
    memcpy(s->host.action, from->action, n * sizeof *from->action);
    memcpy(s->host.ret, from->ret, n * sizeof *from->ret);
    memcpy(s->host.discount, from->discount, n * sizeof *from->discount);
    for (size_t i = 0; s->host.weight && i < n; i++)
        s->host.weight[i] = from->weight ? from->weight[i] : 1.0f;
    if (s->host.next_mask && from->next_mask)
        memcpy(s->host.next_mask, from->next_mask, n * s->host.actions);
    else if (s->host.next_mask)
        memset(s->host.next_mask, 1, n * s->host.actions);
}

void rm_staging_send(struct rm_staging *t, struct rm_staging_slot *s)
{
    struct rm_backend *b = t->backend;
    b->device->copy_in(b, RM_STREAM_IN, s->block, s->pinned, t->bytes_in);
    b->device->mark(b, RM_STREAM_IN, s->in);
    b->device->follow(b, RM_STREAM_COMPUTE, s->in);
}

void rm_staging_sent(struct rm_staging *t, struct rm_staging_slot *s, bool tell)
{
    struct rm_backend *b = t->backend;
    const size_t bytes = t->errors ? t->bytes_back : tell ? sizeof(struct rm_device_figures) : 0;
    if (bytes) {
        b->device->mark(b, RM_STREAM_COMPUTE, s->computed);
        b->device->follow(b, RM_STREAM_OUT, s->computed);
        b->device->copy_out(b, RM_STREAM_OUT, s->back, s->result, bytes);
    }
    b->device->mark(b, bytes ? RM_STREAM_OUT : RM_STREAM_COMPUTE, s->over);
    s->told = tell;
    s->sent = true;
    t->next = (t->next + 1) % RM_TRAINER_DEPTH;
}
