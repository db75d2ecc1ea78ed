#include "learner/algo/actor_critic_device.h"

#include "learner/algo/parts_state.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* --- making ---------------------------------------------------------------------------------- */

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

/* What is sent with a rollout and what comes back. */
static int make_messages(struct rm_device_actor_critic *d, struct rm_error *error)
{
    struct rm_backend *b = d->ac.backend;
    const size_t updates = (size_t)d->ac.epochs * d->ac.minibatches.spec.parts;
    struct rm_device_sent *s = &d->here;
    s->knobs_at = aligned(sizeof *s->passes);
    s->order_at = s->knobs_at + aligned(updates * sizeof *s->knobs);
    s->bytes = s->order_at + (size_t)d->ac.epochs * d->entries * sizeof *s->order;
    d->there = *s;
    char *here = b->device->alloc_host(b, s->bytes, error);
    char *there = here ? b->device->alloc(b, s->bytes, error) : NULL;
    if (here)
        lay_out(&d->here, here);
    if (there)
        lay_out(&d->there, there);
    d->told = there ? b->device->alloc_host(b, sizeof *d->told, error) : NULL;
    if (!d->told)
        return -ENOMEM;
    int rc = b->device->mark_create(b, &d->over, error);
    for (int i = 0; i < 2 && !rc; i++)
        rc = b->device->mark_create(b, &d->passed[i], error);
    return rc;
}

static int make_buffers(struct rm_device_actor_critic *d, struct rm_error *error)
{
    const struct rm_rollout *r = d->ac.rollout;
    const bool recurrent = d->ac.order;
    const size_t rows = (size_t)r->steps * r->lanes, more = rows + r->lanes, f = sizeof(float);
    const size_t outputs = rm_net_outputs(d->ac.net), states = (size_t)d->floats * f;
    const struct want wants[] = {
        {&d->value, more * f},
        {&d->advantage, rows * f},
        {&d->target, rows * f},
        {&d->logp, d->ac.off_policy ? rows * f : 0},
        {&d->head, sizeof *d->head},
        {&d->first, d->own ? r->lanes * states : 0},
        {&d->now, recurrent ? r->lanes * states : 0},
        {&d->value_now, (size_t)r->lanes * d->own * f},
        {&d->restart, recurrent ? more : 0},
        {&d->index, d->batch * sizeof *d->index},
        {&d->entry, recurrent ? d->most * sizeof *d->entry : 0},
        {&d->weight, d->batch * f},
        {&d->part, (size_t)d->batch * RM_SUM_COUNT * f},
        {&d->d_out, d->batch * outputs * f},
        {&d->state, recurrent ? d->most * states : 0},
        {&d->restarts, recurrent ? d->batch : 0},
        {&d->knobs, sizeof *d->knobs},
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

static void put_all(struct rm_device_actor_critic *d)
{
    rm_device_put_values(d);
    rm_device_put_returns(d);
    rm_device_put_minibatch(d);
}

static int capture(struct rm_device_actor_critic *d, void (*put)(struct rm_device_actor_critic *),
                   struct rm_device_graph **graph, struct rm_error *error)
{
    struct rm_backend *b = d->ac.backend;
    const int rc = b->device->capture(b, error);
    if (rc)
        return rc;
    put(d);
    return b->device->captured(b, graph, error);
}

/* On the rollout that is there from the beginning, which has no sample. */
static int warm_up(struct rm_device_actor_critic *d, struct rm_error *error)
{
    struct rm_backend *b = d->ac.backend;
    put_all(d);
    b->device->clear(b, RM_STREAM_COMPUTE, d->value_now,
                     (size_t)d->ac.rollout->lanes * d->own * sizeof *d->value_now);
    b->device->finish(b);
    if (b->device->failed(b, error))
        return -EIO;
    int rc = capture(d, rm_device_put_values, &d->values, error);
    if (!rc)
        rc = capture(d, rm_device_put_returns, &d->returns, error);
    if (!rc)
        rc = capture(d, rm_device_put_minibatch, &d->minibatch, error);
    return rc;
}

/* The value head is kept on the host between rollouts, and on the device within one. */
static void renewed(struct rm_actor_critic *ac)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    const struct rm_value_head_state *s = &ac->value_head.state;
    const struct rm_device_value_head head = {s->mean, s->deviation, s->second, s->updates};
    ac->backend->ops->upload(ac->backend, (float *)(void *)d->head,
                             (const float *)(const void *)&head, sizeof head / sizeof(float));
}

static int make(struct rm_actor_critic *ac, struct rm_error *error)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    d->most = rm_minibatches_most(&ac->minibatches);
    d->batch = d->most * (ac->order ? ac->rollout->steps : 1);
    d->entries = ac->minibatches.spec.rows;
    d->floats = rm_net_state_count(ac->net);
    d->own = rm_net_value_state_count(ac->net);
    d->figures = rm_optimizer_figures(ac->optimizer);
    int rc = make_spaces(d, error);
    if (!rc)
        rc = make_messages(d, error);
    if (!rc)
        rc = make_buffers(d, error);
    if (rc)
        return rc;
    renewed(ac);
    return warm_up(d, error);
}

static void unmake(struct rm_actor_critic *ac)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    struct rm_backend *b = ac->backend;
    struct rm_device_graph *graphs[] = {d->values, d->returns, d->minibatch};
    struct rm_device_mark *marks[] = {d->over, d->passed[0], d->passed[1]};
    void *buffers[] = {d->there.passes, d->value, d->advantage, d->target,  d->logp,  d->head,
                       d->first,        d->now,   d->value_now, d->restart, d->index, d->entry,
                       d->weight,       d->part,  d->d_out,     d->state,   d->knobs, d->restarts};
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        b->device->graph_destroy(b, graphs[i]);
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        b->device->mark_destroy(b, marks[i]);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            b->ops->release(b, buffers[i]);
    if (d->here.passes)
        b->device->release_host(b, d->here.passes);
    if (d->told)
        b->device->release_host(b, d->told);
    if (ac->value_space)
        rm_net_workspace_destroy(ac->value_space);
    if (ac->learn_space)
        rm_net_workspace_destroy(ac->learn_space);
}

/* --- a rollout ------------------------------------------------------------------------------- */

/* Passes and orders, as on the CPU: each pass shuffles the order of the one before. */
static void write_orders(struct rm_device_actor_critic *d)
{
    struct rm_actor_critic *ac = &d->ac;
    const struct rm_rollout *r = ac->rollout;
    struct rm_minibatches *m = &ac->minibatches;
    rm_minibatches_begin(m, ac->order ? ac->order : r->sample, ac->order ? r->lanes : r->samples);
    *d->here.passes = (struct rm_device_passes){.samples = r->samples,
                                                .entries = m->samples,
                                                .parts = MIN(m->samples, m->spec.parts),
                                                .epochs = ac->epochs};
    for (uint32_t pass = 0; pass < ac->epochs; pass++) {
        rm_minibatches_shuffle(m, ac->number * ac->epochs + pass);
        memcpy(d->here.order + (size_t)pass * d->entries, m->row, m->samples * sizeof *m->row);
    }
}

/* Whether rollouts are made on the device. */
static bool native(const struct rm_device_actor_critic *d)
{
    return !d->ac.rollout->pinned;
}

static void send(struct rm_device_actor_critic *d)
{
    struct rm_backend *b = d->ac.backend;
    const struct rm_rollout *r = d->ac.rollout;
    if (!native(d))
        b->device->copy_in(b, RM_STREAM_COMPUTE, r->there, r->pinned, r->bytes);
}

static void send_orders(struct rm_device_actor_critic *d)
{
    struct rm_backend *b = d->ac.backend;
    if (native(d)) {
        d->here.passes->parts = d->ac.minibatches.spec.parts;
        return;
    }
    write_orders(d);
    b->device->copy_in(b, RM_STREAM_COMPUTE, d->there.passes, d->here.passes,
                       sizeof *d->here.passes);
    b->device->copy_in(b, RM_STREAM_COMPUTE, d->there.order, d->here.order,
                       d->here.bytes - d->here.order_at);
}

static void begin(struct rm_actor_critic *ac, uint64_t number, struct rm_phase_clock *clock)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    struct rm_backend *b = ac->backend;
    rm_actor_critic_enter(clock, RM_PHASE_SAMPLING);
    ac->number = number;
    ac->pass = ac->part = 0;
    ac->figures = (struct rm_actor_critic_figures){0};
    rm_actor_critic_scale(ac, ac->rollout->reward);
    send(d);
    send_orders(d);
    ac->stopped = ac->rollout->samples == 0;
    rm_actor_critic_enter(clock, RM_PHASE_FORWARD);
    b->device->launch(b, d->values);
    b->device->launch(b, d->returns);
}

/* Waits, because the next rollout is copied to the same place. */
static void pass_by(struct rm_actor_critic *ac)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    struct rm_backend *b = ac->backend;
    if (!d->own || ac->rollout->value)
        return;
    send(d);
    b->device->launch(b, d->values);
    b->device->mark(b, RM_STREAM_COMPUTE, d->over);
    b->device->wait(b, d->over);
}

/* Of all updates that the rollout may come to; `update` is the number of the first. */
static void send_knobs(struct rm_device_actor_critic *d, uint64_t update, double progress)
{
    struct rm_backend *b = d->ac.backend;
    const uint32_t stride = d->ac.minibatches.spec.parts, parts = d->here.passes->parts;
    for (uint32_t pass = 0; pass < d->ac.epochs; pass++)
        for (uint32_t part = 0; part < parts; part++, update++) {
            struct rm_device_knobs *k = &d->here.knobs[pass * stride + part];
            *k = (struct rm_device_knobs){.before = update - 1,
                                          .entropy_coefficient =
                                              (float)d->ac.settings.entropy_coefficient};
            rm_optimizer_knobs(d->ac.optimizer, update, progress, k);
        }
    b->device->copy_in(b, RM_STREAM_COMPUTE, d->there.knobs, d->here.knobs,
                       d->here.order_at - d->here.knobs_at);
}

/* With a bound on KL a pass is begun only when the one before the last is known not to have been
 * too far: at most one is made in vain. */
static bool went_too_far(struct rm_device_actor_critic *d)
{
    struct rm_backend *b = d->ac.backend;
    if (d->ac.pass < 2 || d->ac.part > 0 || d->ac.experiment->algorithm.target_kl <= 0)
        return false;
    b->device->wait(b, d->passed[d->ac.pass % 2]);
    return d->told->stop[d->ac.pass % 2];
}

static void end_pass(struct rm_device_actor_critic *d)
{
    struct rm_backend *b = d->ac.backend;
    const uint32_t slot = d->ac.pass++ % 2;
    d->ac.part = 0;
    if (d->ac.experiment->algorithm.target_kl <= 0)
        return;
    b->device->copy_out(b, RM_STREAM_COMPUTE, &d->told->stop[slot], &d->figures->stop,
                        sizeof d->figures->stop);
    b->device->mark(b, RM_STREAM_COMPUTE, d->passed[slot]);
}

static struct rm_actor_critic_update step(struct rm_actor_critic *ac, uint64_t update,
                                          double progress, struct rm_phase_clock *clock)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    struct rm_backend *b = ac->backend;
    rm_actor_critic_enter(clock, RM_PHASE_BACKWARD);
    if (went_too_far(d)) {
        ac->stopped = true;
        return (struct rm_actor_critic_update){0};
    }
    if (ac->pass == 0 && ac->part == 0) {
        send_knobs(d, update, progress);
        d->launched = 0;
    }
    if (ac->finite.check != RM_CHECK_FINITE_OFF)
        rm_device_watch_minibatch(d, update + d->launched);
    else
        b->device->launch(b, d->minibatch);
    d->launched++;
    if (++ac->part >= d->here.passes->parts)
        end_pass(d);
    return (struct rm_actor_critic_update){0};
}

static void keep_figures(struct rm_device_actor_critic *d)
{
    struct rm_actor_critic *ac = &d->ac;
    const struct rm_device_figures *f = &d->told->figures;
    const struct rm_device_value_head *h = &d->told->head;
    ac->value_head.state =
        (struct rm_value_head_state){h->mean, h->deviation, h->second, h->updates};
    ac->figures = (struct rm_actor_critic_figures){
        .policy_loss = f->sums[RM_SUM_POLICY],
        .value_loss = f->sums[RM_SUM_VALUE],
        .entropy = f->sums[RM_SUM_ENTROPY],
        .clip_fraction = f->sums[RM_SUM_CLIPPED],
        .kl = d->told->passes.kl,
        .explained_variance = d->told->passes.explained_variance,
        .passes = d->told->passes.pass,
    };
    ac->samples = f->samples;
}

static bool collect(struct rm_actor_critic *ac, struct rm_actor_critic_update *u,
                    struct rm_phase_clock *clock)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    struct rm_backend *b = ac->backend;
    struct rm_device_told *t = d->told;
    rm_actor_critic_enter(clock, RM_PHASE_BACKWARD);
    b->device->copy_out(b, RM_STREAM_COMPUTE, &t->passes, d->there.passes, sizeof t->passes);
    b->device->copy_out(b, RM_STREAM_COMPUTE, &t->head, d->head, sizeof t->head);
    b->device->copy_out(b, RM_STREAM_COMPUTE, &t->figures, d->figures, sizeof t->figures);
    b->device->mark(b, RM_STREAM_COMPUTE, d->over);
    b->device->wait(b, d->over);
    keep_figures(d);
    *u = (struct rm_actor_critic_update){
        .loss = t->figures.last_loss,
        .grad_norm = t->figures.last_grad_norm,
        .made = (uint32_t)(t->figures.made - d->made),
        .skipped = (uint32_t)(t->figures.skipped - d->skipped),
        .samples = (uint64_t)t->passes.seen,
    };
    const uint64_t in_row = t->figures.skipped_in_row;
    u->skipped_last = in_row < u->skipped ? (uint32_t)in_row : u->skipped;
    d->made = t->figures.made;
    d->skipped = t->figures.skipped;
    const uint32_t last = u->made + u->skipped, parts = d->here.passes->parts;
    if (last)
        d->learning_rate =
            d->here.knobs[(last - 1) / parts * ac->minibatches.spec.parts + (last - 1) % parts]
                .learning_rate;
    u->learning_rate = d->learning_rate;
    return true;
}

struct rm_device_sent rm_device_actor_critic_there(struct rm_actor_critic *ac)
{
    return rm_device_actor_critic_of(ac)->there;
}

static void value_state(struct rm_actor_critic *ac, struct rm_state *s)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    if (d->own)
        rm_device_state(s, ac->backend, "value_state", d->value_now,
                        (size_t)ac->rollout->lanes * d->own);
}

const struct rm_actor_critic_ops rm_device_actor_critic = {
    .bytes = sizeof(struct rm_device_actor_critic),
    .make = make,
    .unmake = unmake,
    .renewed = renewed,
    .begin = begin,
    .pass_by = pass_by,
    .step = step,
    .collect = collect,
    .value_state = value_state,
};
