/* The updates of dqn_device.c in parts, for record.c. */
#include "learner/algo/dqn_device.h"
#include "learner/backend/device_collective.h"

#include <errno.h>
#include <string.h>

static struct rm_dqn_device *of(struct rm_trainer *trainer)
{
    return (struct rm_dqn_device *)trainer;
}

static size_t list_kept(struct rm_dqn_device *t)
{
    const size_t bytes = t->d.f.count * sizeof(float);
    struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS];
    const size_t arena_count = rm_optimizer_arenas(t->d.f.optimizer, arenas);
    size_t n = 0;
    t->kept[n++] = (struct rm_dqn_kept){{t->d.f.params}, bytes};
    t->kept[n++] = (struct rm_dqn_kept){{t->d.f.target}, bytes};
    t->kept[n++] = (struct rm_dqn_kept){{t->d.f.grads}, bytes};
    t->kept[n++] = (struct rm_dqn_kept){{t->figures}, sizeof *t->figures};
    if (t->staging.draw.batch)
        t->kept[n++] = (struct rm_dqn_kept){{t->staging.draw.drawn}, sizeof t->drawn};
    for (size_t i = 0; i < arena_count; i++)
        t->kept[n++] = (struct rm_dqn_kept){{arenas[i].data}, arenas[i].count * sizeof(float)};
    return n;
}

static int keep(struct rm_trainer *trainer, struct rm_error *error)
{
    struct rm_dqn_device *t = of(trainer);
    struct rm_backend *b = t->d.f.backend;
    const size_t n = list_kept(t);
    for (size_t i = 0; i < n; i++) {
        struct rm_dqn_kept *k = &t->kept[i];
        k->at[1] = b->device->alloc(b, k->bytes, error);
        if (!k->at[1])
            return -ENOMEM;
        b->device->copy(b, RM_STREAM_COMPUTE, k->at[1], k->at[0], k->bytes);
    }
    return 0;
}

static void put_back(struct rm_trainer *trainer)
{
    struct rm_dqn_device *t = of(trainer);
    struct rm_backend *b = t->d.f.backend;
    const size_t most = sizeof t->kept / sizeof *t->kept;
    for (size_t i = 0; i < most; i++)
        if (t->kept[i].at[1])
            b->device->copy(b, RM_STREAM_COMPUTE, t->kept[i].at[0], t->kept[i].at[1],
                            t->kept[i].bytes);
    b->device->finish(b);
    for (size_t i = 0; i < most; i++)
        if (t->kept[i].at[1])
            b->ops->release(b, t->kept[i].at[1]);
    memset(t->kept, 0, sizeof t->kept);
}

static void put_gradient(struct rm_trainer *trainer, uint32_t slot)
{
    rm_dqn_put_gradient(of(trainer), &of(trainer)->staging.slots[slot]);
}

static void put_step(struct rm_trainer *trainer, uint32_t slot)
{
    rm_dqn_put_step(of(trainer), &of(trainer)->staging.slots[slot]);
}

/* From last_loss on: the loss, by which updates are judged, a norm that is not yet there, and the
 * sums of the update under way with what they are over. */
#define AVERAGED                                                                                   \
    (offsetof(struct rm_device_figures, skip) - offsetof(struct rm_device_figures, last_loss))
_Static_assert(AVERAGED == 11 * sizeof(double), "numbers of an update stand together");

static void put_mean(struct rm_trainer *trainer)
{
    struct rm_dqn_device *t = of(trainer);
    struct rm_backend *b = t->d.f.backend;
    b->device->collective->mean(b, t->d.f.grads, t->d.f.count, RM_DEVICE_FLOAT);
    b->device->collective->mean(b, &t->figures->last_loss, AVERAGED / sizeof(double),
                                RM_DEVICE_DOUBLE);
}

static void take_graph(struct rm_trainer *trainer, uint32_t slot, struct rm_device_graph *graph)
{
    of(trainer)->staging.slots[slot].graph = graph;
}

static struct rm_trainer_result look(struct rm_trainer *trainer)
{
    return rm_dqn_look_at_gradient(of(trainer));
}

const struct rm_recorded_ops rm_dqn_recorded = {
    .keep = keep,
    .put_back = put_back,
    .put_gradient = put_gradient,
    .put_step = put_step,
    .put_mean = put_mean,
    .take_graph = take_graph,
    .look = look,
};
