/* The optimizer on a device: a table of chunks of the arena's ranges, in device memory, and a step,
 * which is put in the COMPUTE queue. */
#include "learner/algo/optimizer_private.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

static const enum rm_device_rule_kind rules[] = {
    [RM_OPTIMIZER_ADAM] = RM_DEVICE_ADAM,
    [RM_OPTIMIZER_ADAMW] = RM_DEVICE_ADAM,
    [RM_OPTIMIZER_RMSPROP] = RM_DEVICE_RMSPROP,
    [RM_OPTIMIZER_MUON] = RM_DEVICE_ADAM,
};
_Static_assert(sizeof rules / sizeof *rules == RM_OPTIMIZER_COUNT, "a row per optimizer");

/* Cuts [at, at + n) into chunks of `most` floats, to `to` unless NULL. Returns their number. */
static size_t cut(size_t at, size_t n, size_t most, uint32_t flags, uint32_t group,
                  struct rm_device_chunk *to)
{
    const size_t count = (n + most - 1) / most;
    for (size_t i = 0; to && i < count; i++) {
        const size_t before = i * most, left = n - before;
        to[i] = (struct rm_device_chunk){at + before, (uint32_t)(left < most ? left : most),
                                         (uint16_t)flags, (uint16_t)group};
    }
    return count;
}

/* Cuts the whole arena: ranges, and the parameters between them, which are not trained. */
static size_t cut_all(const struct rm_optimizer *o, struct rm_device_chunk *to)
{
    size_t at = 0, count = 0;
    for (uint32_t i = 0; i < o->range_count; i++) {
        const struct rm_optimizer_range *r = &o->ranges[i];
        const uint32_t flags = RM_DEVICE_TRAINED | (r->decayed ? RM_DEVICE_DECAYED : 0u) |
                               (r->rows ? RM_DEVICE_APART : 0u) | (r->piece ? RM_DEVICE_LAZY : 0u);
        count += cut(at, r->at - at, RM_DEVICE_CHUNK, 0, 0, to ? to + count : NULL);
        count += cut(r->at, r->n, r->piece ? r->piece : RM_DEVICE_CHUNK, flags, r->group,
                     to ? to + count : NULL);
        at = r->at + r->n;
    }
    return count + cut(at, o->count - at, RM_DEVICE_CHUNK, 0, 0, to ? to + count : NULL);
}

static void send(struct rm_backend *b, void *to, const void *from, size_t bytes)
{
    b->ops->upload(b, to, from, bytes / sizeof(float));
}

static int make_table(struct rm_optimizer *o, struct rm_error *error)
{
    struct rm_optimizer_device *d = &o->device;
    const size_t count = cut_all(o, NULL), bytes = count * sizeof *d->chunks;
    struct rm_device_chunk *chunks = malloc(bytes ? bytes : 1);
    if (!chunks)
        return rm_fail(error, -ENOMEM, "optimizer: no memory for %zu chunks", count);
    cut_all(o, chunks);
    d->chunk_count = (uint32_t)count;
    d->chunks = o->backend->ops->alloc_bytes(o->backend, bytes, error);
    if (d->chunks)
        send(o->backend, d->chunks, chunks, bytes);
    free(chunks);
    return d->chunks ? 0 : -ENOMEM;
}

void rm_optimizer_device_destroy(struct rm_optimizer *o)
{
    struct rm_optimizer_device *d = &o->device;
    void *all[] = {d->chunks, d->partials, d->matrix_partials};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        o->backend->ops->release(o->backend, all[i]);
}

bool rm_optimizer_scales(const struct rm_optimizer *o)
{
    return o->backend->device && o->experiment->learner.compute == RM_COMPUTE_FP16;
}

struct rm_loss_scale rm_optimizer_loss_scale(const struct rm_optimizer *o)
{
    struct rm_loss_scale scale;
    o->backend->ops->download(o->backend, (float *)(void *)&scale, &o->figures->loss_scale,
                              sizeof scale / sizeof(float));
    return scale;
}

void rm_optimizer_set_loss_scale(struct rm_optimizer *o, struct rm_loss_scale scale)
{
    send(o->backend, &o->figures->loss_scale, &scale, sizeof scale);
}

/* Muon's step of one matrix. */
static void put_matrix(struct rm_optimizer *o, const struct rm_device_step *step,
                       const struct rm_optimizer_range *r)
{
    const struct rm_device_optimizer_ops *ops = o->backend->device->optimizer;
    const struct rm_device_matrix matrix = {
        .at = r->at,
        .rows = r->rows,
        .columns = r->columns,
        .group = r->group,
        .reach = rm_muon_reach(r->rows, r->columns),
        .x = o->muon.x,
        .partials = o->device.matrix_partials,
    };
    ops->muon_begin(o->backend, &o->device.rule, step, &matrix);
    rm_muon_orthogonalise(&o->muon, r->rows, r->columns);
    ops->muon_end(o->backend, &o->device.rule, step, &matrix);
}

static void put_on_device(struct rm_optimizer *o, const struct rm_optimizer_put *put)
{
    const struct rm_device_optimizer_ops *ops = o->backend->device->optimizer;
    const struct rm_optimizer_device *d = &o->device;
    const struct rm_device_step step = {
        .chunks = d->chunks,
        .chunk_count = d->chunk_count,
        .params = put->params,
        .grads = put->grads,
        .m = o->m,
        .v = o->v,
        .target = put->target,
        .knobs = put->knobs,
        .figures = o->figures,
        .copy = put->copy,
        .partials = d->partials,
    };
    ops->norm(o->backend, &d->rule, &step);
    for (uint32_t i = 0; i < o->range_count; i++)
        if (o->ranges[i].rows)
            put_matrix(o, &step, &o->ranges[i]);
    ops->step(o->backend, &d->rule, &step);
}

int rm_optimizer_device_create(struct rm_optimizer *o, struct rm_error *error)
{
    const struct rm_experiment *e = o->experiment;
    struct rm_optimizer_device *d = &o->device;
    struct rm_backend *b = o->backend;
    if (!b->device)
        return 0;
    o->put = put_on_device;
    d->rule = (struct rm_device_rule){
        .kind = rules[e->optimizer.name],
        .beta1 = (float)e->optimizer.beta1,
        .beta2 = (float)e->optimizer.beta2,
        .epsilon = (float)e->optimizer.epsilon,
        .weight_decay = (float)e->optimizer.weight_decay,
        .momentum = (float)e->optimizer.momentum,
        .groups = o->by_group ? RM_OPTIMIZER_GROUPS : 1,
    };
    const int rc = make_table(o, error);
    if (rc)
        return rc;
    d->partials = b->ops->alloc_bytes(b, d->chunk_count * sizeof *d->partials, error);
    d->matrix_partials =
        b->ops->alloc_bytes(b, (RM_DEVICE_PARTIALS + 1) * sizeof *d->matrix_partials, error);
    if (!d->partials || !d->matrix_partials)
        return -ENOMEM;
    const struct rm_loss_scale first = {RM_DEVICE_SCALE_FIRST, 0};
    if (rm_optimizer_scales(o))
        rm_optimizer_set_loss_scale(o, first);
    return 0;
}
