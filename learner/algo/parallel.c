#include "learner/algo/parallel.h"

#include "learner/algo/record.h"
#include "learner/algo/updates_staged.h"
#include "learner/backend/device_collective.h"
#include "shm/base/state.h"
#include "shm/base/severity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A batch as drawn; `first` is the first replica's part of it, and identifies the update. Batches
 * of histories are made by learner/prepared.h. */
struct whole {
    struct rm_batch batch;
    const struct rm_batch *first;
};

struct parallel {
    struct rm_trainer trainer; /* first */
    uint32_t rows;             /* of each replica */
    struct whole whole[RM_TRAINER_DEPTH];
};

static struct parallel *parallel_of(struct rm_trainer *trainer)
{
    return (struct parallel *)trainer;
}

static struct rm_trainer *replica(const struct parallel *p, uint32_t i)
{
    return &p->trainer.all[i]->trainer;
}

uint32_t rm_parallel_devices(struct rm_backend *backend)
{
    struct rm_backend *members[RM_DEVICE_MEMBERS];
    return backend->device && backend->device->collective
               ? backend->device->collective->members(backend, members)
               : 0;
}

/* --- making ---------------------------------------------------------------------------------- */

static int make_batch(struct rm_batch *b, const struct rm_update_ops *ops,
                      const struct rm_trainer_spec *spec, struct rm_error *error)
{
    const struct rm_batch_extras extras = rm_updates_extras(spec, ops);
    *b = (struct rm_batch){.size = spec->experiment->sample.batch,
                           .inputs = spec->shape.inputs,
                           .actions = spec->shape.actions,
                           .reals = spec->shape.reals};
    return rm_batch_alloc(b, &extras, error);
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
        return rm_fail(error, -EINVAL,
                       "sample.batch: %u is not a multiple of %u devices (learner.devices)",
                       e->sample.batch, own.replicas);
    if (e->debug.check_finite != RM_CHECK_FINITE_OFF || e->network.normalize_observations)
        return rm_fail(error, -ENOTSUP,
                       "debug.check_finite and network.normalize_observations are for one device");
    for (uint32_t i = 0; i < own.replicas && !rc; i++) {
        struct rm_trainer *one;
        own.backend = members[i];
        own.replica = i;
        rc = rm_updates_staged_create(&one, ops, &own, error);
        if (!rc)
            p->trainer.all[p->trainer.count++] = one->all[0];
    }
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH && !rc && !spec->shape.history.queries; i++)
        rc = make_batch(&p->whole[i].batch, ops, spec, error);
    return rc ? rc : rm_record(p->trainer.all, p->trainer.count, true, error);
}

static void destroy(struct rm_trainer *trainer)
{
    struct parallel *p = parallel_of(trainer);
    for (uint32_t i = 0; i < p->trainer.count; i++)
        rm_trainer_destroy(replica(p, i));
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++)
        rm_batch_free(&p->whole[i].batch);
    free(p);
}

/* --- updates --------------------------------------------------------------------------------- */

/* Replica i's rows, without errors, which the replica has. */
static struct rm_batch part_of(const struct parallel *p, const struct rm_batch *whole, uint32_t i)
{
    struct rm_batch part = rm_batch_slice(whole, i * p->rows, p->rows);
    part.error = NULL;
    part.leaf = NULL;
    return part;
}

/* The batch of which the first replica has this part. */
static struct whole *whole_of(struct parallel *p, const struct rm_batch *own)
{
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++) {
        struct whole *w = &p->whole[i];
        if (!w->first)
            w->first = own;
        if (w->first == own)
            return w;
    }
    return NULL; /* unreachable: a replica has as many slots */
}

static struct rm_batch *batch(struct rm_trainer *trainer)
{
    struct parallel *p = parallel_of(trainer);
    const struct rm_batch *own = rm_trainer_batch(replica(p, 0));
    for (uint32_t i = 1; i < p->trainer.count; i++)
        rm_trainer_batch(replica(p, i));
    struct whole *w = whole_of(p, own);
    w->batch.codes = own->codes;
    return &w->batch;
}

/* `whole` may be a batch that the trainer does not own; its errors and leaves are then not kept. */
static struct rm_trainer_result update(struct rm_trainer *trainer, const struct rm_batch *whole,
                                       uint64_t number, struct rm_phase_clock *clock)
{
    struct parallel *p = parallel_of(trainer);
    struct rm_trainer_result result = {0};
    batch(trainer);
    for (uint32_t i = p->trainer.count; i-- > 0;) {
        const struct rm_batch part = part_of(p, whole, i);
        result = rm_trainer_update(replica(p, i), &part, number, clock);
    }
    return result;
}

static struct rm_trainer_result gradient(struct rm_trainer *trainer, const struct rm_batch *whole,
                                         uint64_t number, struct rm_phase_clock *clock)
{
    struct parallel *p = parallel_of(trainer);
    for (uint32_t i = 0; i < p->trainer.count; i++) {
        const struct rm_batch part = part_of(p, whole, i);
        rm_trainer_gradient(replica(p, i), &part, number, clock);
    }
    rm_record_mean(p->trainer.all, p->trainer.count);
    return rm_staged_gradient_result(p->trainer.all[0]);
}

/* One device measures the batch, a part at a time. */
static struct rm_trainer_result measure(struct rm_trainer *trainer, const struct rm_batch *whole)
{
    struct parallel *p = parallel_of(trainer);
    struct rm_trainer_result mean = {0};
    for (uint32_t at = 0, n; at < whole->size; at += n) {
        n = whole->size - at < p->rows ? whole->size - at : p->rows;
        const struct rm_batch part = rm_batch_slice(whole, at, n);
        const struct rm_trainer_result one = rm_trainer_measure(replica(p, 0), &part);
        const double share = (double)n / whole->size;
        mean.loss += share * one.loss;
        mean.policy_loss += share * one.policy_loss;
        mean.type_loss += share * one.type_loss;
        mean.entropy += share * one.entropy;
    }
    return mean;
}

/* --- results --------------------------------------------------------------------------------- */

static struct rm_batch *learned(struct rm_trainer *trainer)
{
    struct parallel *p = parallel_of(trainer);
    struct whole *w = NULL;
    for (uint32_t i = 0; i < p->trainer.count; i++) {
        const struct rm_batch *part = rm_trainer_learned(replica(p, i));
        if (!part)
            return NULL; /* all replicas skip the same updates */
        if (!w)
            w = whole_of(p, part);
        memcpy(w->batch.error + (size_t)i * p->rows, part->error, p->rows * sizeof *part->error);
    }
    return w ? &w->batch : NULL;
}

static bool report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *out)
{
    struct parallel *p = parallel_of(trainer);
    struct rm_trainer_report same;
    for (uint32_t i = 1; i < p->trainer.count; i++)
        rm_trainer_report(replica(p, i), wait, &same);
    return rm_trainer_report(replica(p, 0), wait, out);
}

/* --- state ----------------------------------------------------------------------------------- */

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
                    RM_SEVERITY_WARNING
                    "learner of %s: device %u of %u differs from the first: %s\n",
                    all[0]->finite.name, i + 1, count, error.text);
}

static const struct rm_trainer_ops parallel_trainer = {
    .destroy = destroy,
    .update = update,
    .gradient = gradient,
    .measure = measure,
    .batch = batch,
    .learned = learned,
    .report = report,
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
