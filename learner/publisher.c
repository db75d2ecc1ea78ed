#include "learner/publisher_private.h"

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
    if (p->late.staged)
        rm_publisher_late_close(p); /* which frees `host` too */
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

void rm_publisher_give(struct rm_publisher *p, uint64_t round)
{
    const struct rm_weights_stamp stamp = {
        .updates = p->stamped, .round = round, .env_steps = p->env_steps};
    RM_POKE(&p->counters->published, rm_weights_publish(p->weights, p->host, stamp));
}

static void give_new(struct rm_publisher *p, const float *params, uint64_t updates, uint64_t round)
{
    struct rm_backend *b = p->backend;
    b->ops->download(b, p->host, params, p->weights->count);
    b->ops->upload(b, p->last, p->host, p->weights->count);
    p->stamped = updates;
    rm_publisher_give(p, round);
}

bool rm_publisher_wanted(struct rm_publisher *p, double moved, double by)
{
    if (rm_publisher_exploded(moved) || (p->min_change > 0 && by < p->min_change)) {
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
        if (rm_publisher_exploded(moved)) {
            RM_ADD_OWN(&p->counters->publish_skipped, 1);
            rm_publisher_give(p, round);
            return;
        }
        RM_POKE(&p->counters->publish_change, change(p, moved));
    }
    give_new(p, params, updates, round);
}

bool rm_publisher_offer(struct rm_publisher *p, const float *params, uint64_t updates,
                        uint64_t round)
{
    if (updates - p->due_at < p->interval)
        return false;
    p->due_at = updates;
    if (p->late.params && round == 0)
        return rm_publisher_begin(p);
    rm_publisher_end(p);
    const double moved = moved_by(p, params);
    if (!rm_publisher_wanted(p, moved, change(p, moved)))
        return false;
    give_new(p, params, updates, round);
    return true;
}
