/* Publishes from a device without waiting for it: parameters are copied to a second buffer between
 * two updates, from there to pinned memory on the OUT stream, and then written to the weights. */
#include "learner/backend/device_optimizer.h"
#include "learner/publisher_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The device's figures of the copied parameters. */
struct rm_publisher_found {
    double change[2]; /* sums of squares: of the change, and of the last published parameters */
    uint64_t made;    /* updates */
};

static int make(struct rm_publisher *p, struct rm_error *error)
{
    struct rm_publisher_late *l = &p->late;
    struct rm_backend *b = p->backend;
    const size_t bytes = p->weights->count * sizeof(float);
    float *host = b->device->alloc_host(b, bytes, error);
    if (!host)
        return -ENOMEM;
    memcpy(host, p->host, bytes);
    free(p->host);
    p->host = host;
    l->staged = b->device->alloc_host(b, bytes, error);
    if (!l->staged) {
        b->device->release_host(b, p->host);
        p->host = NULL;
        return -ENOMEM;
    }
    l->told = b->device->alloc_host(b, sizeof *l->told, error);
    l->next = b->device->alloc(b, bytes, error);
    l->found = b->device->alloc(b, sizeof *l->found, error);
    l->partials = b->device->alloc(b, 2 * RM_DEVICE_PARTIALS * sizeof *l->partials, error);
    if (!l->told || !l->next || !l->found || !l->partials)
        return -ENOMEM;
    const int rc = b->device->mark_create(b, &l->begun, error);
    return rc ? rc : b->device->mark_create(b, &l->over, error);
}

int rm_publisher_go_late(struct rm_publisher *p, const float *params, const uint64_t *made,
                         uint64_t before, struct rm_error *error)
{
    const int rc = make(p, error);
    if (rc)
        return rc;
    p->late.params = params;
    p->late.made = made;
    p->late.before = before;
    return 0;
}

void rm_publisher_late_close(struct rm_publisher *p)
{
    struct rm_publisher_late *l = &p->late;
    struct rm_backend *b = p->backend;
    void *device[] = {l->next, l->found, l->partials}, *pinned[] = {p->host, l->staged, l->told};
    b->device->finish(b);
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        if (device[i])
            b->ops->release(b, device[i]);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
        if (pinned[i])
            b->device->release_host(b, pinned[i]);
    b->device->mark_destroy(b, l->begun);
    b->device->mark_destroy(b, l->over);
}

static void start(struct rm_publisher *p)
{
    struct rm_publisher_late *l = &p->late;
    struct rm_backend *b = p->backend;
    const struct rm_device_ops *d = b->device;
    const size_t count = p->weights->count, bytes = count * sizeof(float);
    d->optimizer->change(b, l->params, p->last, count, l->partials, l->found->change);
    d->copy(b, RM_STREAM_COMPUTE, &l->found->made, l->made, sizeof *l->made);
    d->copy(b, RM_STREAM_COMPUTE, l->next, l->params, bytes);
    d->mark(b, RM_STREAM_COMPUTE, l->begun);
    d->follow(b, RM_STREAM_OUT, l->begun);
    d->copy_out(b, RM_STREAM_OUT, l->told, l->found, sizeof *l->told);
    d->copy_out(b, RM_STREAM_OUT, l->staged, l->next, bytes);
    d->mark(b, RM_STREAM_OUT, l->over);
    l->under_way = true;
    l->again = false;
}

static void swap(float **a, float **b)
{
    float *old = *a;
    *a = *b;
    *b = old;
}

static void arrived(struct rm_publisher *p)
{
    struct rm_publisher_late *l = &p->late;
    const double moved = l->told->change[0], by = sqrt(moved / l->told->change[1]);
    l->under_way = false;
    if (p->backend->device->failed(p->backend, NULL) || !rm_publisher_wanted(p, moved, by))
        return;
    swap(&p->last, &l->next);
    swap(&p->host, &l->staged);
    p->stamped = l->before + l->told->made;
    rm_publisher_give(p, 0);
}

bool rm_publisher_poll(struct rm_publisher *p)
{
    struct rm_publisher_late *l = &p->late;
    if (!l->under_way || !p->backend->device->passed(p->backend, l->over))
        return l->under_way;
    arrived(p);
    if (l->again)
        start(p);
    return l->under_way;
}

bool rm_publisher_begin(struct rm_publisher *p)
{
    p->late.again = p->late.under_way;
    rm_publisher_poll(p);
    if (!p->late.under_way)
        start(p);
    return !p->late.again;
}

void rm_publisher_send(struct rm_publisher *p, uint64_t updates)
{
    p->due_at = updates;
    rm_publisher_begin(p);
}

void rm_publisher_end(struct rm_publisher *p)
{
    while (p->late.under_way) {
        p->backend->device->wait(p->backend, p->late.over);
        rm_publisher_poll(p);
    }
}
