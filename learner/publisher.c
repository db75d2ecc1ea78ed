#include "learner/publisher.h"

#include "shm/atomic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    free(p->host);
    memset(p, 0, sizeof *p);
}

void rm_publisher_resume(struct rm_publisher *p, const float *params, uint64_t updates)
{
    p->backend->ops->upload(p->backend, p->last, params, p->weights->count);
    p->due_at = p->stamped = updates;
}

/* Relative to what was published; infinite when that was all zeros. */
static double change(const struct rm_publisher *p, const float *params)
{
    struct rm_backend *b = p->backend;
    const double moved = b->ops->sum_squares_diff(b, params, p->last, p->weights->count);
    return sqrt(moved / b->ops->sum_squares(b, p->last, p->weights->count));
}

void rm_publisher_publish(struct rm_publisher *p, const float *params, uint64_t updates,
                          uint64_t round)
{
    struct rm_backend *b = p->backend;
    if (RM_PEEK(&p->counters->published) > 0)
        RM_POKE(&p->counters->publish_change, change(p, params));
    b->ops->download(b, p->host, params, p->weights->count);
    b->ops->upload(b, p->last, p->host, p->weights->count);
    const struct rm_weights_stamp stamp = {
        .updates = updates, .round = round, .env_steps = p->env_steps};
    RM_POKE(&p->counters->published, rm_weights_publish(p->weights, p->host, stamp));
    p->due_at = p->stamped = updates;
}

bool rm_publisher_offer(struct rm_publisher *p, const float *params, uint64_t updates,
                        uint64_t round)
{
    if (updates - p->due_at < p->interval)
        return false;
    if (p->min_change > 0 && change(p, params) < p->min_change) {
        RM_ADD_OWN(&p->counters->publish_skipped, 1);
        p->due_at = updates;
        return false;
    }
    rm_publisher_publish(p, params, updates, round);
    return true;
}
