#include "learner/algo/record.h"

#include "learner/backend/device_collective.h"

#include <errno.h>

static const struct rm_recorded_ops *ops_of(const struct rm_recorded *r)
{
    return r->trainer->ops->recorded;
}

void rm_record_mean(const struct rm_recorded *all, uint32_t count)
{
    struct rm_backend *first = all->backend;
    if (count < 2)
        return;
    first->device->collective->begin(first);
    for (uint32_t i = 0; i < count; i++)
        ops_of(&all[i])->put_mean(all[i].trainer);
    first->device->collective->end(first);
}

static void put_update(const struct rm_recorded *all, uint32_t count, uint32_t slot)
{
    for (uint32_t i = 0; i < count; i++)
        ops_of(&all[i])->put_gradient(all[i].trainer, slot);
    rm_record_mean(all, count);
    for (uint32_t i = 0; i < count; i++)
        ops_of(&all[i])->put_step(all[i].trainer, slot);
}

static int warm_up(const struct rm_recorded *all, uint32_t count, struct rm_error *error)
{
    int rc = 0;
    for (uint32_t i = 0; i < count && !rc; i++)
        rc = ops_of(&all[i])->keep(all[i].trainer, error);
    if (!rc)
        put_update(all, count, 0);
    for (uint32_t i = 0; i < count; i++)
        ops_of(&all[i])->put_back(all[i].trainer);
    return rc ? rc : all->backend->device->failed(all->backend, error) ? -EIO : 0;
}

/* Captures of all devices stand open at the same time, as what they average together asks. */
static int capture(const struct rm_recorded *all, uint32_t count, uint32_t slot,
                   struct rm_error *error)
{
    uint32_t open = 0;
    int rc = 0;
    for (; open < count && !rc; open += !rc)
        rc = all[open].backend->device->capture(all[open].backend, error);
    if (!rc)
        put_update(all, count, slot);
    for (uint32_t i = 0; i < open; i++) {
        struct rm_device_graph *graph = NULL;
        const int ended =
            all[i].backend->device->captured(all[i].backend, &graph, rc ? NULL : error);
        rc = rc ? rc : ended;
        ops_of(&all[i])->take_graph(all[i].trainer, slot, graph);
    }
    return rc;
}

int rm_record(const struct rm_recorded *all, uint32_t count, bool graphs, struct rm_error *error)
{
    int rc = warm_up(all, count, error);
    for (uint32_t slot = 0; slot < RM_TRAINER_DEPTH && !rc && graphs; slot++)
        rc = capture(all, count, slot, error);
    return rc;
}
