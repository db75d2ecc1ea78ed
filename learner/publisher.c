#include "learner/publisher.h"

#include "shm/atomic.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <string.h>

/* What the backend finds of the copied parameters. */
struct rm_publisher_found {
    double change[2]; /* sums of squares: of the change, and of the last published parameters */
    uint64_t made;    /* updates */
};

/* Are there non-finite parameters, or some so large that the next update cannot be finite? `moved`
 * is ||params - last||^2. The learner's guard detects that only after the next update; this
 * distance shows it now and is computed in any case. */
static bool exploded(double moved)
{
    return !(moved <= (double)FLT_MAX);
}

int rm_publisher_open(struct rm_publisher *p, struct rm_weights *weights,
                      struct rm_backend *backend, struct rm_board_policy *counters,
                      struct rm_error *error)
{
    const size_t bytes = weights->count * sizeof(float);
    memset(p, 0, sizeof *p);
    p->weights = weights;
    p->backend = backend;
    p->counters = counters;
    if (!(p->last = backend->ops->alloc_bytes(backend, bytes, error)) ||
        !(p->next = backend->ops->alloc_bytes(backend, bytes, error)) ||
        !(p->found = backend->ops->alloc_bytes(backend, sizeof *p->found, error)) ||
        !(p->host = backend->ops->alloc_host(backend, bytes, error)) ||
        !(p->staged = backend->ops->alloc_host(backend, bytes, error)) ||
        !(p->result = backend->ops->alloc_host(backend, sizeof *p->result, error)))
        return -ENOMEM;
    const int rc = backend->ops->mark_create(backend, &p->begun, error);
    return rc ? rc : backend->ops->mark_create(backend, &p->over, error);
}

void rm_publisher_close(struct rm_publisher *p)
{
    struct rm_backend *b = p->backend;
    if (!b)
        return;
    b->ops->finish(b);
    b->ops->release(b, p->last);
    b->ops->release(b, p->next);
    b->ops->release(b, p->found);
    b->ops->release_host(b, p->host);
    b->ops->release_host(b, p->staged);
    b->ops->release_host(b, p->result);
    b->ops->mark_destroy(b, p->begun);
    b->ops->mark_destroy(b, p->over);
    memset(p, 0, sizeof *p);
}

void rm_publisher_resume(struct rm_publisher *p, const float *params, uint64_t updates)
{
    memcpy(p->host, params, p->weights->count * sizeof *params);
    p->backend->ops->upload(p->backend, p->last, params, p->weights->count);
    p->due_at = p->stamped = updates;
}

/* --- a copy ---------------------------------------------------------------------------------- */

/* Puts a copy of the parameters: within the backend's memory behind the updates there, from there
 * to the host beside later ones. */
static void start(struct rm_publisher *p, const float *params)
{
    struct rm_backend *b = p->backend;
    const size_t count = p->weights->count, bytes = count * sizeof *params;
    p->params = params;
    b->ops->change(b, params, p->last, count, p->found->change);
    if (p->made)
        b->ops->copy(b, &p->found->made, p->made, sizeof *p->made);
    b->ops->copy(b, p->next, params, bytes);
    b->ops->mark(b, RM_QUEUE_COMPUTE, p->begun);
    b->ops->follow(b, RM_QUEUE_OUT, p->begun);
    b->ops->copy_out(b, RM_QUEUE_OUT, p->result, p->found, sizeof *p->result);
    b->ops->copy_out(b, RM_QUEUE_OUT, p->staged, p->next, bytes);
    b->ops->mark(b, RM_QUEUE_OUT, p->over);
    p->under_way = true;
    p->again = false;
}

static void swap(float **a, float **b)
{
    float *old = *a;
    *a = *b;
    *b = old;
}

static void publish(struct rm_publisher *p, uint64_t round)
{
    const struct rm_weights_stamp stamp = {
        .updates = p->stamped, .round = round, .env_steps = p->env_steps};
    RM_POKE(&p->counters->published, rm_weights_publish(p->weights, p->host, stamp));
}

/* The copy replaces the parameters published last. */
static void keep(struct rm_publisher *p, uint64_t updates)
{
    swap(&p->last, &p->next);
    swap(&p->host, &p->staged);
    p->stamped = updates;
}

/* Publishes a copy that has arrived, if it has changed enough and has not exploded. */
static bool publish_changed(struct rm_publisher *p, uint64_t updates, uint64_t round)
{
    const double moved = p->result->change[0], by = sqrt(moved / p->result->change[1]);
    p->under_way = false;
    if (p->backend->ops->failed(p->backend, NULL))
        return false;
    if (exploded(moved) || (p->min_change > 0 && by < p->min_change)) {
        RM_ADD_OWN(&p->counters->publish_skipped, 1);
        return false;
    }
    RM_POKE(&p->counters->publish_change, by);
    keep(p, updates);
    publish(p, round);
    return true;
}

static void copy_now(struct rm_publisher *p, const float *params)
{
    rm_publisher_end(p);
    start(p, params);
    p->backend->ops->wait(p->backend, p->over);
}

void rm_publisher_publish(struct rm_publisher *p, const float *params, uint64_t updates,
                          uint64_t round)
{
    copy_now(p, params);
    const double *change = p->result->change;
    const bool first = RM_PEEK(&p->counters->published) == 0;
    p->under_way = false;
    p->due_at = updates;
    if (p->backend->ops->failed(p->backend, NULL))
        return;
    if (!first && exploded(change[0])) {
        RM_ADD_OWN(&p->counters->publish_skipped, 1);
    } else {
        if (!first)
            RM_POKE(&p->counters->publish_change, sqrt(change[0] / change[1]));
        keep(p, updates);
    }
    publish(p, round);
}

/* --- without waiting ------------------------------------------------------------------------- */

void rm_publisher_go_late(struct rm_publisher *p, const uint64_t *made, uint64_t before)
{
    p->made = made;
    p->before = before;
}

bool rm_publisher_poll(struct rm_publisher *p)
{
    if (!p->under_way || !p->backend->ops->passed(p->backend, p->over))
        return p->under_way;
    publish_changed(p, p->before + p->result->made, 0);
    if (p->again)
        start(p, p->params);
    return p->under_way;
}

bool rm_publisher_send(struct rm_publisher *p, const float *params, uint64_t updates)
{
    p->due_at = updates;
    p->again = p->under_way;
    rm_publisher_poll(p);
    if (!p->under_way)
        start(p, params);
    return !p->again;
}

bool rm_publisher_offer(struct rm_publisher *p, const float *params, uint64_t updates,
                        uint64_t round)
{
    if (updates - p->due_at < p->interval)
        return false;
    if (p->made && round == 0)
        return rm_publisher_send(p, params, updates);
    p->due_at = updates;
    copy_now(p, params);
    return publish_changed(p, updates, round);
}

void rm_publisher_end(struct rm_publisher *p)
{
    while (p->under_way) {
        p->backend->ops->wait(p->backend, p->over);
        rm_publisher_poll(p);
    }
}
