#include "learner/algo/parallel.h"

#include "learner/algo/record.h"
#include "learner/algo/updates_staged.h"
#include "learner/backend/device_collective.h"
#include "shm/base/state.h"
#include "shm/base/said.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A batch as it is drawn; `first` is what the first replica makes of its part, and tells which. */
struct whole {
    struct rm_batch batch;
    const struct rm_batch *first;
};

struct parallel {
    struct rm_trainer trainer; /* first */
    uint32_t count, rows;      /* replicas, and rows of each */
    struct rm_updates *replica[RM_DEVICE_MEMBERS];
    struct whole whole[RM_TRAINER_DEPTH];
};

static struct parallel *of(struct rm_trainer *trainer)
{
    return (struct parallel *)trainer;
}

static struct rm_trainer *nth(const struct parallel *p, uint32_t i)
{
    return &p->replica[i]->trainer;
}

static struct rm_trainer *first(const struct rm_trainer *trainer)
{
    return nth((const struct parallel *)trainer, 0);
}

uint32_t rm_parallel_devices(struct rm_backend *backend)
{
    struct rm_backend *members[RM_DEVICE_MEMBERS];
    return backend->device && backend->device->collective
               ? backend->device->collective->members(backend, members)
               : 0;
}

struct rm_trainer *rm_parallel_replica(struct rm_trainer *trainer, uint32_t i)
{
    return nth(of(trainer), i);
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_batch(struct rm_batch *b, const struct rm_update_ops *ops,
                      const struct rm_trainer_spec *spec, struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    const size_t rows = e->sample.batch, inputs = spec->shape.inputs;
    const bool priorities = e->priority.kind == RM_PRIORITY_PROPORTIONAL;
    struct {
        void *at;
        size_t bytes; /* 0: not there */
    } parts[] = {
        {&b->obs, rows * inputs * sizeof *b->obs},
        {&b->next_obs, rows * inputs * sizeof *b->next_obs},
        {&b->action, rows * sizeof *b->action},
        {&b->ret, rows * sizeof *b->ret},
        {&b->discount, rows * sizeof *b->discount},
        {&b->mask, spec->masks && ops->critics ? rows * spec->shape.actions : 0},
        {&b->next_mask, spec->masks ? rows * spec->shape.actions : 0},
        {&b->weight, priorities ? rows * sizeof *b->weight : 0},
        {&b->error, priorities ? rows * sizeof *b->error : 0},
        {&b->leaf, priorities ? rows * sizeof *b->leaf : 0},
    };
    b->size = e->sample.batch;
    b->inputs = spec->shape.inputs;
    b->actions = spec->shape.actions;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        void *p = parts[i].bytes ? calloc(1, parts[i].bytes) : NULL;
        if (parts[i].bytes && !p)
            return rm_fail(error, -ENOMEM, "no memory for a batch of %zu", rows);
        memcpy(parts[i].at, &p, sizeof p);
    }
    return 0;
}

static void free_batch(struct rm_batch *b)
{
    void *parts[] = {b->obs,  b->next_obs,  b->action, b->ret,   b->discount,
                     b->mask, b->next_mask, b->weight, b->error, b->leaf};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        free(parts[i]);
}

static int make(struct parallel *p, const struct rm_update_ops *ops,
                const struct rm_trainer_spec *spec, struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    struct rm_backend *members[RM_DEVICE_MEMBERS];
    struct rm_trainer_spec own = *spec;
    int rc = 0;
    own.replicas = spec->backend->device->collective->members(spec->backend, members);
    p->rows = e->sample.batch / own.replicas;
    if (e->sample.batch % own.replicas || p->rows == 0)
        return rm_fail(error, -EINVAL, "sample.batch: %u is no multiple of %u devices",
                       e->sample.batch, own.replicas);
    if (e->debug.check_finite != RM_CHECK_FINITE_OFF || e->network.normalize_observations)
        return rm_fail(error, -ENOTSUP,
                       "debug.check_finite and network.normalize_observations are for one device");
    for (; p->count < own.replicas && !rc; p->count += !rc) {
        struct rm_trainer *replica;
        own.backend = members[p->count];
        own.replica = p->count;
        rc = rm_updates_staged_create(&replica, ops, &own, error);
        p->replica[p->count] = rc ? NULL : (struct rm_updates *)replica;
    }
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH && !rc; i++)
        rc = make_batch(&p->whole[i].batch, ops, spec, error);
    return rc ? rc : rm_record(p->replica, p->count, true, error);
}

static void destroy(struct rm_trainer *trainer)
{
    struct parallel *p = of(trainer);
    for (uint32_t i = 0; i < p->count; i++)
        rm_trainer_destroy(nth(p, i));
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++)
        free_batch(&p->whole[i].batch);
    free(p);
}

/* --- updates --------------------------------------------------------------------------------- */

/* Replica i's rows. Errors come from the replica. */
static struct rm_batch part_of(const struct parallel *p, const struct rm_batch *whole, uint32_t i)
{
    struct rm_batch part = *whole;
    const size_t before = (size_t)i * p->rows;
    part.size = p->rows;
    part.obs += before * whole->inputs;
    part.next_obs += before * whole->inputs;
    part.action += before;
    part.ret += before;
    part.discount += before;
    if (whole->mask)
        part.mask += before * whole->actions;
    if (whole->next_mask)
        part.next_mask += before * whole->actions;
    if (whole->weight)
        part.weight += before;
    part.error = NULL;
    part.leaf = NULL;
    return part;
}

/* Of the update whose part the first replica has there. */
static struct whole *whole_of(struct parallel *p, const struct rm_batch *own)
{
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++) {
        struct whole *w = &p->whole[i];
        if (!w->first)
            w->first = own;
        if (w->first == own)
            return w;
    }
    return NULL; /* replicas have as many slots */
}

static struct rm_batch *batch(struct rm_trainer *trainer)
{
    struct parallel *p = of(trainer);
    const struct rm_batch *own = rm_trainer_batch(nth(p, 0));
    for (uint32_t i = 1; i < p->count; i++)
        rm_trainer_batch(nth(p, i));
    struct whole *w = whole_of(p, own);
    w->batch.codes = own->codes;
    return &w->batch;
}

/* A batch from another source is not kept, except for the leaves of its errors. */
static struct rm_trainer_result update(struct rm_trainer *trainer, const struct rm_batch *whole,
                                       uint64_t number, struct rm_phase_clock *clock)
{
    struct parallel *p = of(trainer);
    struct rm_trainer_result result = {0};
    batch(trainer);
    for (uint32_t i = p->count; i-- > 0;) {
        const struct rm_batch part = part_of(p, whole, i);
        result = rm_trainer_update(nth(p, i), &part, number, clock);
    }
    return result;
}

static struct rm_trainer_result gradient(struct rm_trainer *trainer, const struct rm_batch *whole,
                                         uint64_t number, struct rm_phase_clock *clock)
{
    struct parallel *p = of(trainer);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct rm_batch part = part_of(p, whole, i);
        rm_trainer_gradient(nth(p, i), &part, number, clock);
    }
    rm_record_mean(p->replica, p->count);
    return rm_staged_gradient_result(p->replica[0]);
}

/* --- results --------------------------------------------------------------------------------- */

static struct rm_batch *learned(struct rm_trainer *trainer)
{
    struct parallel *p = of(trainer);
    struct whole *w = NULL;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct rm_batch *part = rm_trainer_learned(nth(p, i));
        if (!part)
            return NULL; /* of none, then: the same updates are skipped by all */
        if (!w)
            w = whole_of(p, part);
        memcpy(w->batch.error + (size_t)i * p->rows, part->error, p->rows * sizeof *part->error);
    }
    return w ? &w->batch : NULL;
}

static bool report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *out)
{
    struct parallel *p = of(trainer);
    struct rm_trainer_report same;
    for (uint32_t i = 1; i < p->count; i++)
        rm_trainer_report(nth(p, i), wait, &same);
    return rm_trainer_report(nth(p, 0), wait, out);
}

static const uint64_t *made(const struct rm_trainer *trainer)
{
    return rm_trainer_made(first(trainer));
}

/* --- settings and state ---------------------------------------------------------------------- */

static void set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings)
{
    for (uint32_t i = 0; i < of(trainer)->count; i++)
        rm_trainer_set(nth(of(trainer), i), settings);
}

static void progress(struct rm_trainer *trainer, double progress)
{
    for (uint32_t i = 0; i < of(trainer)->count; i++)
        rm_trainer_progress(nth(of(trainer), i), progress);
}

static void load(struct rm_trainer *trainer, const float *params)
{
    for (uint32_t i = 0; i < of(trainer)->count; i++)
        rm_trainer_load(nth(of(trainer), i), params);
}

static void guarded(struct rm_trainer *trainer, struct rm_guard *guard)
{
    rm_trainer_guarded(first(trainer), guard);
}

static int copy_state(struct rm_updates *from, struct rm_updates *to,
                      void (*state)(struct rm_updates *updates, struct rm_state *state),
                      struct rm_error *error)
{
    struct rm_state *s;
    int rc = rm_state_create(&s, error);
    if (rc)
        return rc;
    state(from, s);
    rc = rm_state_end(s, error);
    if (!rc) {
        rm_state_load(s);
        state(to, s);
        rc = rm_state_end(s, error);
    }
    rm_state_destroy(s);
    return rc;
}

void rm_parallel_make_equal(struct rm_updates *const *all, uint32_t count,
                            void (*state)(struct rm_updates *updates, struct rm_state *state))
{
    struct rm_error error = {""};
    for (uint32_t i = 1; i < count; i++)
        if (copy_state(all[0], all[i], state, &error))
            fprintf(stderr,
                    RM_SAID_WARNING "learner of %s: device %u of %u is not like the first: %s\n",
                    all[0]->finite.name, i + 1, count, error.text);
}

static void one_state(struct rm_updates *u, struct rm_state *s)
{
    rm_updates_state(&u->trainer, s);
}

static void restored(struct rm_trainer *trainer)
{
    struct parallel *p = of(trainer);
    rm_updates_restored(nth(p, 0));
    rm_parallel_make_equal(p->replica, p->count, one_state);
}

static void state(struct rm_trainer *trainer, struct rm_state *s)
{
    first(trainer)->ops->state(first(trainer), s);
}

static const float *params(const struct rm_trainer *trainer)
{
    return rm_trainer_params(first(trainer));
}

static const float *target(const struct rm_trainer *trainer)
{
    return rm_trainer_target(first(trainer));
}

static const float *grads(const struct rm_trainer *trainer)
{
    return rm_trainer_grads(first(trainer));
}

static const struct rm_net *net(const struct rm_trainer *trainer)
{
    return rm_trainer_net(first(trainer));
}

static double update_flops(const struct rm_trainer *trainer)
{
    const struct parallel *p = (const struct parallel *)trainer;
    return p->count * rm_trainer_update_flops(nth(p, 0));
}

static const struct rm_trainer_ops parallel_trainer = {
    .destroy = destroy,
    .update = update,
    .gradient = gradient,
    .batch = batch,
    .learned = learned,
    .report = report,
    .made = made,
    .set = set,
    .progress = progress,
    .load = load,
    .guarded = guarded,
    .restored = restored,
    .state = state,
    .params = params,
    .target = target,
    .grads = grads,
    .net = net,
    .update_flops = update_flops,
};

int rm_parallel_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                       const struct rm_trainer_spec *spec, struct rm_error *error)
{
    struct parallel *p = calloc(1, sizeof *p);
    if (!p)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    p->trainer.ops = &parallel_trainer;
    const int rc = make(p, ops, spec, error);
    if (rc) {
        destroy(&p->trainer);
        return rc;
    }
    *trainer = &p->trainer;
    return 0;
}
