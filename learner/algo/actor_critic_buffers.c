/* What an actor-critic learner has on one device: buffers, messages, workspaces. */
#include "learner/algo/actor_critic_device.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

struct want {
    void *at; /* a pointer that is to be set */
    size_t bytes;
};

static int take_all(struct rm_backend *b, const struct want *wants, size_t n,
                    struct rm_error *error)
{
    for (size_t i = 0; i < n; i++) {
        void *p = wants[i].bytes ? b->device->alloc(b, wants[i].bytes, error) : NULL;
        memcpy(wants[i].at, &p, sizeof p);
        if (wants[i].bytes && !p)
            return -ENOMEM;
    }
    return 0;
}

static size_t aligned(size_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

static void lay_out(struct rm_device_sent *s, char *block)
{
    s->passes = (void *)block;
    s->knobs = (void *)(block + s->knobs_at);
    s->order = (void *)(block + s->order_at);
}

/* What is sent with a rollout, and what comes back: in pinned memory, the first device's. */
static int make_here(struct rm_device_actor_critic *d, struct rm_error *error)
{
    struct rm_backend *b = d->ac.backend;
    char *here = b->device->alloc_host(b, d->here.bytes, error);
    if (here)
        lay_out(&d->here, here);
    d->told = here ? b->device->alloc_host(b, sizeof *d->told, error) : NULL;
    int rc = d->told ? 0 : -ENOMEM;
    for (int i = 0; i < 2 && !rc; i++)
        rc = b->device->mark_create(b, &d->passed[i], error);
    return rc;
}

static int make_messages(struct rm_device_actor_critic *d, struct rm_error *error)
{
    struct rm_backend *b = d->ac.backend;
    const size_t updates = (size_t)d->ac.epochs * d->ac.minibatches.spec.parts;
    struct rm_device_sent *s = &d->here;
    s->knobs_at = aligned(sizeof *s->passes);
    s->order_at = s->knobs_at + aligned(updates * sizeof *s->knobs);
    s->bytes = s->order_at + (size_t)d->ac.epochs * d->entries * sizeof *s->order;
    d->there = *s;
    char *there = b->device->alloc(b, s->bytes, error);
    if (!there)
        return -ENOMEM;
    lay_out(&d->there, there);
    const int rc = b->device->mark_create(b, &d->over, error);
    return rc || d->number > 0 ? rc : make_here(d, error);
}

static int make_arrays(struct rm_device_actor_critic *d, struct rm_error *error)
{
    const struct rm_rollout *r = d->ac.rollout;
    const bool recurrent = d->ac.order, several = d->of > 1;
    const size_t rows = (size_t)r->steps * r->lanes, more = rows + r->lanes, f = sizeof(float);
    const size_t outputs = rm_net_outputs(d->ac.net), states = (size_t)d->floats * f;
    const struct want wants[] = {
        {&d->value, more * f},
        {&d->advantage, rows * f},
        {&d->target, rows * f},
        {&d->logp, d->ac.off_policy ? rows * f : 0},
        {&d->head, sizeof *d->head},
        {&d->first, d->own_floats ? r->lanes * states : 0},
        {&d->now, recurrent ? r->lanes * states : 0},
        {&d->value_now, (size_t)r->lanes * d->own_floats * f},
        {&d->restart, recurrent ? more : 0},
        {&d->index, d->batch * sizeof *d->index},
        {&d->entry, recurrent ? d->most * sizeof *d->entry : 0},
        {&d->weight, d->batch * f},
        {&d->part, (size_t)d->batch * RM_SUM_COUNT * f},
        {&d->d_out, d->batch * outputs * f},
        {&d->state, recurrent ? d->most * states : 0},
        {&d->restarts, recurrent ? d->batch : 0},
        {&d->knobs, sizeof *d->knobs},
        {&d->sums, several ? RM_SUM_COUNT * sizeof *d->sums : 0},
        {&d->slots, d->apart ? d->of * RM_DEVICE_SLOT * sizeof *d->slots : 0},
    };
    return take_all(d->ac.backend, wants, sizeof wants / sizeof *wants, error);
}

static int make_spaces(struct rm_device_actor_critic *d, struct rm_error *error)
{
    struct rm_actor_critic *ac = &d->ac;
    const struct rm_rollout *r = ac->rollout;
    const uint32_t rows = (r->value ? 1 : r->steps) * r->lanes;
    const uint32_t forward = ac->order ? rows : MIN(rows, RM_DEVICE_FORWARD_ROWS);
    const int rc = rm_net_workspace_create(&ac->value_space, ac->net, ac->backend, forward, 0,
                                           ac->off_policy ? RM_NET_INFER : RM_NET_VALUE, error);
    return rc ? rc
              : rm_net_workspace_create(&ac->learn_space, ac->net, ac->backend, d->batch, 0,
                                        RM_NET_TRAIN, error);
}

int rm_device_make_buffers(struct rm_device_actor_critic *d, struct rm_error *error)
{
    const uint32_t shares = d->apart ? 1 : d->of;
    d->whole = rm_minibatches_most(&d->ac.minibatches);
    d->most = (d->whole + shares - 1) / shares;
    d->batch = d->most * (d->ac.order ? d->ac.rollout->steps : 1);
    d->entries = d->ac.minibatches.spec.rows;
    d->floats = rm_net_state_count(d->ac.net);
    d->own_floats = rm_net_value_state_count(d->ac.net);
    d->figures = rm_optimizer_figures(d->ac.optimizer);
    int rc = make_spaces(d, error);
    if (!rc)
        rc = make_messages(d, error);
    return rc ? rc : make_arrays(d, error);
}

void rm_device_unmake_buffers(struct rm_device_actor_critic *d)
{
    struct rm_backend *b = d->ac.backend;
    struct rm_device_mark *marks[] = {d->over, d->passed[0], d->passed[1]};
    void *buffers[] = {d->there.passes, d->value, d->advantage, d->target,  d->logp,  d->head,
                       d->first,        d->now,   d->value_now, d->restart, d->index, d->entry,
                       d->weight,       d->part,  d->d_out,     d->state,   d->knobs, d->restarts,
                       d->sums,         d->slots, d->copy.there};
    for (size_t i = 0; i < RM_DEVICE_RECORDINGS; i++)
        b->device->graph_destroy(b, d->graphs[i]);
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        b->device->mark_destroy(b, marks[i]);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            b->ops->release(b, buffers[i]);
    if (d->here.passes)
        b->device->release_host(b, d->here.passes);
    if (d->told)
        b->device->release_host(b, d->told);
    if (d->ac.value_space)
        rm_net_workspace_destroy(d->ac.value_space);
    if (d->ac.learn_space)
        rm_net_workspace_destroy(d->ac.learn_space);
}
