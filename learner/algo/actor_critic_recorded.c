/* Several devices that are one actor-critic learner: the others are made beside the first, and what
 * all of them do is run once and then captured. */
#include "learner/algo/actor_critic_device.h"
#include "shm/base/state.h"

#include <errno.h>
#include <stdio.h>

/* --- the others ------------------------------------------------------------------------------ */

/* The first device's rollout as it lies on this one, which nobody fills here. */
static int copy_rollout(struct rm_device_actor_critic *d, struct rm_error *error)
{
    struct rm_backend *b = d->ac.backend;
    d->copy = *d->ac.rollout;
    d->copy.backend = b;
    d->copy.there = b->device->alloc(b, d->copy.bytes, error);
    d->ac.rollout = &d->copy;
    return d->copy.there ? 0 : -ENOMEM;
}

static int make_replica(struct rm_actor_critic *ac, struct rm_error *error)
{
    struct rm_device_actor_critic *d = rm_device_actor_critic_of(ac);
    d->all[0] = d;
    d->count = 1;
    (void)error; /* its buffers come when it knows which of them it is */
    return 0;
}

static void unmake_replica(struct rm_actor_critic *ac)
{
    rm_device_unmake_buffers(rm_device_actor_critic_of(ac));
}

/* Only what is asked of one device; the rest is the first one's. */
static const struct rm_actor_critic_ops replica = {
    .bytes = sizeof(struct rm_device_actor_critic),
    .make = make_replica,
    .unmake = unmake_replica,
    .renewed = rm_device_renewed,
    .value_state = rm_device_value_state,
};

static int make_other(struct rm_device_actor_critic *d, struct rm_backend *backend, uint32_t number,
                      struct rm_error *error)
{
    const struct rm_actor_critic *first = &d->ac;
    struct rm_actor_critic *ac = NULL;
    const struct rm_actor_critic_spec spec = {
        .experiment = first->experiment,
        .backend = backend,
        .rollout = first->others ? first->others[number - 1] : first->rollout,
        .policy = first->policy,
        .shape = first->rollout->plan->shape,
        .name = first->rollout->plan->name,
    };
    int rc = rm_actor_critic_create_by(&ac, &replica, &spec, error);
    if (rc)
        return rc;
    struct rm_device_actor_critic *other = rm_device_actor_critic_of(ac);
    d->all[d->count++] = other;
    other->number = number;
    other->of = d->of;
    other->apart = d->apart;
    if (!other->apart)
        rc = copy_rollout(other, error);
    return rc ? rc : rm_device_make_buffers(other, error);
}

int rm_device_make_others(struct rm_device_actor_critic *d, struct rm_error *error)
{
    struct rm_backend *members[RM_DEVICE_MEMBERS];
    int rc = 0;
    if (d->of > 1)
        d->ac.backend->device->collective->members(d->ac.backend, members);
    for (uint32_t i = 1; i < d->of && !rc; i++)
        rc = make_other(d, members[i], i, error);
    return rc;
}

void rm_device_unmake_others(struct rm_device_actor_critic *d)
{
    for (uint32_t i = 1; i < d->count; i++)
        rm_actor_critic_destroy(&d->all[i]->ac);
}

struct rm_actor_critic *rm_device_actor_critic_replica(struct rm_actor_critic *ac, uint32_t i)
{
    return &rm_device_actor_critic_of(ac)->all[i]->ac;
}

static int copy_state(struct rm_actor_critic *from, struct rm_actor_critic *to,
                      struct rm_error *error)
{
    struct rm_state *state;
    int rc = rm_state_create(&state, error);
    if (rc)
        return rc;
    rm_actor_critic_state(from, state);
    rc = rm_state_end(state, error);
    if (!rc) {
        rm_state_load(state);
        rm_actor_critic_state(to, state);
        rc = rm_state_end(state, error);
    }
    rm_state_destroy(state);
    return rc;
}

void rm_device_make_equal(struct rm_device_actor_critic *d)
{
    struct rm_error error = {""};
    for (uint32_t i = 1; i < d->count; i++)
        if (copy_state(&d->ac, &d->all[i]->ac, &error))
            fprintf(stderr, "learner of %s: device %u of %u is not like the first: %s\n",
                    d->ac.rollout->plan->name, i + 1, d->count, error.text);
}

/* --- recording ------------------------------------------------------------------------------- */

/* On the rollout that is there from the beginning, which has no sample. */
static int warm_up(struct rm_device_actor_critic *d, struct rm_error *error)
{
    for (int which = 0; which < RM_DEVICE_RECORDINGS; which++)
        rm_device_put(d, (enum rm_device_recording)which);
    for (uint32_t i = 0; i < d->count; i++) {
        struct rm_device_actor_critic *m = d->all[i];
        struct rm_backend *b = m->ac.backend;
        b->device->clear(b, RM_STREAM_COMPUTE, m->value_now,
                         (size_t)m->ac.rollout->lanes * m->own_floats * sizeof *m->value_now);
    }
    for (uint32_t i = 0; i < d->count; i++)
        d->all[i]->ac.backend->device->finish(d->all[i]->ac.backend);
    return d->ac.backend->device->failed(d->ac.backend, error) ? -EIO : 0;
}

/* Captures of all devices stand open at the same time, as what they add up together asks; all are
 * ended before the first graph is instantiated. */
static int capture(struct rm_device_actor_critic *d, enum rm_device_recording which,
                   struct rm_error *error)
{
    uint32_t open = 0;
    int rc = 0;
    for (; open < d->count && !rc; open += !rc)
        rc = d->all[open]->ac.backend->device->capture(d->all[open]->ac.backend, error);
    if (!rc)
        rm_device_put(d, which);
    for (uint32_t i = 0; i < open; i++) {
        struct rm_backend *b = d->all[i]->ac.backend;
        const int ended = b->device->captured(b, &d->all[i]->graphs[which], rc ? NULL : error);
        rc = rc ? rc : ended;
    }
    for (uint32_t i = 0; i < open && !rc; i++) {
        struct rm_backend *b = d->all[i]->ac.backend;
        rc = b->device->instantiate(b, d->all[i]->graphs[which], error);
    }
    return rc;
}

int rm_device_record(struct rm_device_actor_critic *d, struct rm_error *error)
{
    int rc = warm_up(d, error);
    for (int which = 0; which < RM_DEVICE_RECORDINGS && !rc; which++)
        rc = capture(d, (enum rm_device_recording)which, error);
    return rc;
}
