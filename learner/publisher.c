#include "learner/publisher.h"

#include "shm/atomic.h"
#include "learner/backend/device_optimizer.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Are there non-finite parameters, or some so large that the next update cannot be finite? `moved`
 * is ||params - last||^2. The learner's guard detects that only after the next update; this
 * distance shows it now and is computed in any case. */
static bool exploded(double moved)
{
    return !(moved <= (double)FLT_MAX);
}

static void close_late(struct rm_publisher *p);
static bool begin(struct rm_publisher *p);

int rm_publisher_open(struct rm_publisher *p, struct rm_weights *weights,
                      struct rm_backend *backend, struct rm_board_policy *counters,
                      struct rm_error *error)
{
    memset(p, 0, sizeof *p);
    p->weights = weights;
    p->backend = backend;
    p->counters = counters;
    p->last = backend->ops->alloc(backend, weights->count);
    p->host = calloc(weights->count, sizeof *p->host);
    if (!p->last || !p->host)
        return rm_fail(error, -ENOMEM, "no memory for %llu parameters to publish",
                       (unsigned long long)weights->count);
    return 0;
}

void rm_publisher_close(struct rm_publisher *p)
{
    if (p->last)
        p->backend->ops->release(p->backend, p->last);
    if (p->late.staged)
        close_late(p); /* which frees `host` too */
    else
        free(p->host);
    memset(p, 0, sizeof *p);
}

void rm_publisher_resume(struct rm_publisher *p, const float *params, uint64_t updates)
{
    memcpy(p->host, params, p->weights->count * sizeof *params);
    p->backend->ops->upload(p->backend, p->last, params, p->weights->count);
    p->due_at = p->stamped = updates;
}

/* ||params - last||^2. */
static double moved_by(const struct rm_publisher *p, const float *params)
{
    return p->backend->ops->sum_squares_diff(p->backend, params, p->last, p->weights->count);
}

/* Relative to the published parameters; infinite if those are all zeros. */
static double change(const struct rm_publisher *p, double moved)
{
    return sqrt(moved / p->backend->ops->sum_squares(p->backend, p->last, p->weights->count));
}

static void publish(struct rm_publisher *p, uint64_t round)
{
    const struct rm_weights_stamp stamp = {
        .updates = p->stamped, .round = round, .env_steps = p->env_steps};
    RM_POKE(&p->counters->published, rm_weights_publish(p->weights, p->host, stamp));
}

static void publish_new(struct rm_publisher *p, const float *params, uint64_t updates,
                        uint64_t round)
{
    struct rm_backend *b = p->backend;
    b->ops->download(b, p->host, params, p->weights->count);
    b->ops->upload(b, p->last, p->host, p->weights->count);
    p->stamped = updates;
    publish(p, round);
}

static bool wanted(struct rm_publisher *p, double moved, double by)
{
    if (exploded(moved) || (p->min_change > 0 && by < p->min_change)) {
        RM_ADD_OWN(&p->counters->publish_skipped, 1);
        return false;
    }
    RM_POKE(&p->counters->publish_change, by);
    return true;
}

void rm_publisher_publish(struct rm_publisher *p, const float *params, uint64_t updates,
                          uint64_t round)
{
    rm_publisher_end(p);
    p->due_at = updates;
    if (RM_PEEK(&p->counters->published) > 0) {
        const double moved = moved_by(p, params);
        if (exploded(moved)) {
            RM_ADD_OWN(&p->counters->publish_skipped, 1);
            publish(p, round);
            return;
        }
        RM_POKE(&p->counters->publish_change, change(p, moved));
    }
    publish_new(p, params, updates, round);
}

bool rm_publisher_offer(struct rm_publisher *p, const float *params, uint64_t updates,
                        uint64_t round)
{
    if (updates - p->due_at < p->interval)
        return false;
    p->due_at = updates;
    if (p->late.params && round == 0)
        return begin(p);
    rm_publisher_end(p);
    const double moved = moved_by(p, params);
    if (!wanted(p, moved, change(p, moved)))
        return false;
    publish_new(p, params, updates, round);
    return true;
}

/* --- without waiting for a device ---------------------------------------------------------- */

/* Publishes from a device without waiting for it: parameters are copied to a second buffer between
 * two updates, from there to pinned memory on the OUT stream, and then written to the weights. */

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
    l->result = b->device->alloc_host(b, sizeof *l->result, error);
    l->next = b->device->alloc(b, bytes, error);
    l->found = b->device->alloc(b, sizeof *l->found, error);
    l->partials = b->device->alloc(b, 2 * RM_DEVICE_PARTIALS * sizeof *l->partials, error);
    if (!l->result || !l->next || !l->found || !l->partials)
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

static void close_late(struct rm_publisher *p)
{
    struct rm_publisher_late *l = &p->late;
    struct rm_backend *b = p->backend;
    void *device[] = {l->next, l->found, l->partials}, *pinned[] = {p->host, l->staged, l->result};
    b->device->finish(b);
    for (size_t i = 0; i < sizeof device / sizeof *device; i++)
        b->ops->release(b, device[i]);
    for (size_t i = 0; i < sizeof pinned / sizeof *pinned; i++)
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
    d->copy(b, RM_DEVICE_STREAM_COMPUTE, &l->found->made, l->made, sizeof *l->made);
    d->copy(b, RM_DEVICE_STREAM_COMPUTE, l->next, l->params, bytes);
    d->mark(b, RM_DEVICE_STREAM_COMPUTE, l->begun);
    d->follow(b, RM_DEVICE_STREAM_OUT, l->begun);
    d->copy_out(b, RM_DEVICE_STREAM_OUT, l->result, l->found, sizeof *l->result);
    d->copy_out(b, RM_DEVICE_STREAM_OUT, l->staged, l->next, bytes);
    d->mark(b, RM_DEVICE_STREAM_OUT, l->over);
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
    const double moved = l->result->change[0], by = sqrt(moved / l->result->change[1]);
    l->under_way = false;
    if (p->backend->device->failed(p->backend, NULL) || !wanted(p, moved, by))
        return;
    swap(&p->last, &l->next);
    swap(&p->host, &l->staged);
    p->stamped = l->before + l->result->made;
    publish(p, 0);
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

static bool begin(struct rm_publisher *p)
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
    begin(p);
}

void rm_publisher_end(struct rm_publisher *p)
{
    while (p->late.under_way) {
        p->backend->device->wait(p->backend, p->late.over);
        rm_publisher_poll(p);
    }
}
