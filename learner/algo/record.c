#include "learner/algo/record.h"

#include "learner/algo/updates_staged.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/* --- an update ------------------------------------------------------------------------------- */

/* The numbers of an update, from last_loss on: its loss, its norm, which is not yet computed, its
 * sums and their count. */
#define AVERAGED                                                                                   \
    (offsetof(struct rm_update_figures, skip) - offsetof(struct rm_update_figures, last_loss))
_Static_assert(AVERAGED == 11 * sizeof(double), "the numbers of an update are consecutive");

void rm_record_sum(struct rm_updates *t, void *at, size_t n, enum rm_device_number kind)
{
    t->backend->device->collective->sum(t->backend, at, n, kind);
}

void rm_record_joined(struct rm_updates *const *all, uint32_t count,
                      void (*put)(struct rm_updates *updates))
{
    struct rm_backend *first = all[0]->backend;
    if (count < 2)
        return;
    first->device->collective->begin(first);
    for (uint32_t i = 0; i < count; i++)
        put(all[i]);
    first->device->collective->end(first);
}

static void put_mean(struct rm_updates *t)
{
    const struct rm_device_collective_ops *ops = t->backend->device->collective;
    ops->mean(t->backend, t->grads, t->count, RM_DEVICE_FLOAT);
    ops->mean(t->backend, &t->figures->last_loss, AVERAGED / sizeof(double), RM_DEVICE_DOUBLE);
}

void rm_record_mean(struct rm_updates *const *all, uint32_t count)
{
    rm_record_joined(all, count, put_mean);
}

static void put_update(struct rm_updates *const *all, uint32_t count, uint32_t slot)
{
    for (uint32_t i = 0; i < count; i++)
        rm_staged_put_gradient(all[i], slot);
    rm_record_mean(all, count);
    for (uint32_t i = 0; i < count; i++)
        rm_staged_put_step(all[i], slot);
}

/* An update that is stopped changes neither parameters nor moments nor counts; a draw counts that
 * it was dry. */
static int warm_up(struct rm_updates *const *all, uint32_t count, struct rm_error *error)
{
    const uint32_t stop = 1;
    for (uint32_t i = 0; i < count; i++)
        all[i]->backend->ops->upload(all[i]->backend, (float *)(void *)&all[i]->figures->stop,
                                     (const float *)(const void *)&stop, 1);
    put_update(all, count, 0);
    for (uint32_t i = 0; i < count; i++) {
        struct rm_backend *b = all[i]->backend;
        const struct rm_device_sampler *draw = &all[i]->staged->staging.draw;
        b->ops->clear(b, &all[i]->figures->stop, sizeof stop);
        if (draw->batch)
            b->ops->clear(b, draw->drawn, sizeof *draw->drawn);
        b->ops->finish(b);
    }
    return all[0]->backend->ops->failed(all[0]->backend, error) ? -EIO : 0;
}

/* The captures of all devices are open at the same time, because averaging joins them; all end
 * before the first graph is instantiated. */
int rm_record_graph(struct rm_updates *const *all, uint32_t count, rm_record_put *put,
                    uint32_t part, struct rm_device_graph **graph, struct rm_error *error)
{
    uint32_t open = 0;
    int rc = 0;
    memset(graph, 0, count * sizeof(struct rm_device_graph *));
    for (; open < count && !rc; open += !rc)
        rc = all[open]->backend->device->capture(all[open]->backend, error);
    if (!rc)
        put(all, count, part);
    for (uint32_t i = 0; i < open; i++) {
        struct rm_backend *b = all[i]->backend;
        const int ended = b->device->captured(b, &graph[i], rc ? NULL : error);
        rc = rc ? rc : ended;
    }
    for (uint32_t i = 0; i < open && !rc; i++)
        rc = all[i]->backend->device->instantiate(all[i]->backend, graph[i], error);
    return rc;
}

int rm_record(struct rm_updates *const *all, uint32_t count, bool graphs, struct rm_error *error)
{
    struct rm_device_graph *graph[RM_DEVICE_MEMBERS];
    int rc = warm_up(all, count, error);
    for (uint32_t slot = 0; slot < RM_TRAINER_DEPTH && !rc && graphs; slot++) {
        rc = rm_record_graph(all, count, put_update, slot, graph, error);
        for (uint32_t i = 0; i < count; i++)
            all[i]->staged->staging.slots[slot].graph = graph[i];
    }
    return rc;
}
