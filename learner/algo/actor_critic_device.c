#include "learner/algo/actor_critic_device.h"

#include "learner/algo/parallel.h"
#include "learner/algo/parts_state.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* --- making ---------------------------------------------------------------------------------- */

/* The value head is kept on the host between rollouts, and on the device within one. */
void rm_device_renewed(struct rm_actor_critic *ac)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    const struct rm_value_head_state *s = &ac->value_head.state;
    const struct rm_device_value_head head = {s->mean, s->deviation, s->second, s->updates};
    ac->backend->ops->upload(ac->backend, (float *)(void *)d->head,
                             (const float *)(const void *)&head, sizeof head / sizeof(float));
    rm_device_make_equal(d);
}

static void normalised(struct rm_actor_critic *ac)
{
    const struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    for (uint32_t i = 1; i < d->count; i++) {
        struct rm_normaliser theirs = ac->normaliser;
        theirs.backend = d->all[i]->ac.backend;
        rm_normaliser_write(&theirs, d->all[i]->ac.params);
    }
}

static int make(struct rm_actor_critic *ac, struct rm_error *error)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    const uint32_t devices = rm_parallel_devices(ac->backend);
    d->all[0] = d;
    d->count = 1;
    d->of = devices ? devices : 1;
    d->apart = ac->others;
    if (d->of > 1 && ac->finite.check != RM_CHECK_FINITE_OFF)
        return rm_fail(error, -ENOTSUP, "debug.check_finite is for one device");
    int rc = rm_device_make_buffers(d, error);
    if (!rc)
        rc = rm_device_make_others(d, error);
    if (rc)
        return rc;
    rm_device_renewed(ac);
    return rm_device_record(d, error);
}

static void unmake(struct rm_actor_critic *ac)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    rm_device_unmake_others(d);
    rm_device_unmake_buffers(d);
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

/* To all devices, from the first one's pinned memory. */
static void send(struct rm_device_actor_critic *d)
{
    const struct rm_rollout *r = d->ac.rollout;
    for (uint32_t i = 0; i < d->count && !native(d); i++) {
        struct rm_backend *b = d->all[i]->ac.backend;
        b->device->copy_in(b, RM_STREAM_COMPUTE, d->all[i]->ac.rollout->there, r->pinned, r->bytes);
    }
}

static void send_orders(struct rm_device_actor_critic *d)
{
    if (native(d)) {
        d->here.passes->parts = d->ac.minibatches.spec.parts;
        return;
    }
    write_orders(d);
    for (uint32_t i = 0; i < d->count; i++) {
        struct rm_backend *b = d->all[i]->ac.backend;
        const struct rm_device_sent *there = &d->all[i]->there;
        b->device->copy_in(b, RM_STREAM_COMPUTE, there->passes, d->here.passes,
                           sizeof *d->here.passes);
        b->device->copy_in(b, RM_STREAM_COMPUTE, there->order, d->here.order,
                           d->here.bytes - d->here.order_at);
    }
}

static void launch(struct rm_device_actor_critic *d, enum rm_device_recording which)
{
    for (uint32_t i = 0; i < d->count; i++)
        d->all[i]->ac.backend->device->launch(d->all[i]->ac.backend, d->all[i]->graphs[which]);
}

/* For all that was put on the devices. */
static void wait(struct rm_device_actor_critic *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        struct rm_backend *b = d->all[i]->ac.backend;
        b->device->mark(b, RM_STREAM_COMPUTE, d->all[i]->over);
    }
    for (uint32_t i = 0; i < d->count; i++)
        d->all[i]->ac.backend->device->wait(d->all[i]->ac.backend, d->all[i]->over);
}

static void begin(struct rm_actor_critic *ac, uint64_t number, struct rm_phase_clock *clock)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    rm_actor_critic_enter(clock, RM_PHASE_SAMPLING);
    ac->number = number;
    ac->pass = ac->part = 0;
    ac->figures = (struct rm_actor_critic_figures){0};
    rm_actor_critic_scale(ac, ac->rollout->reward);
    send(d);
    send_orders(d);
    ac->stopped = ac->rollout->samples == 0;
    rm_actor_critic_enter(clock, RM_PHASE_FORWARD);
    launch(d, RM_DEVICE_VALUES);
    launch(d, RM_DEVICE_RETURNS);
}

/* Waits, because the next rollout is copied to the same place. */
static void pass_by(struct rm_actor_critic *ac)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    if (!d->own_floats || ac->rollout->value)
        return;
    send(d);
    launch(d, RM_DEVICE_VALUES);
    wait(d);
}

/* Of all updates that the rollout may come to; `update` is the number of the first. */
static void send_knobs(struct rm_device_actor_critic *d, uint64_t update, double progress)
{
    const uint32_t stride = d->ac.minibatches.spec.parts, parts = d->here.passes->parts;
    for (uint32_t pass = 0; pass < d->ac.epochs; pass++)
        for (uint32_t part = 0; part < parts; part++, update++) {
            struct rm_device_knobs *k = &d->here.knobs[pass * stride + part];
            *k = (struct rm_device_knobs){.before = update - 1,
                                          .entropy_coefficient =
                                              (float)d->ac.settings.entropy_coefficient};
            rm_optimizer_knobs(d->ac.optimizer, update, progress, k);
        }
    for (uint32_t i = 0; i < d->count; i++) {
        struct rm_backend *b = d->all[i]->ac.backend;
        b->device->copy_in(b, RM_STREAM_COMPUTE, d->all[i]->there.knobs, d->here.knobs,
                           d->here.order_at - d->here.knobs_at);
    }
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
        launch(d, RM_DEVICE_MINIBATCH);
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
    wait(d);
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

void rm_device_value_state(struct rm_actor_critic *ac, struct rm_state *s)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    if (d->own_floats)
        rm_device_state(s, ac->backend, "value_state", d->value_now,
                        (size_t)ac->rollout->lanes * d->own_floats);
}

const struct rm_actor_critic_ops rm_device_actor_critic = {
    .bytes = sizeof(struct rm_device_actor_critic),
    .make = make,
    .unmake = unmake,
    .renewed = rm_device_renewed,
    .normalised = normalised,
    .begin = begin,
    .pass_by = pass_by,
    .step = step,
    .collect = collect,
    .value_state = rm_device_value_state,
};
