/* dqn_device: the trainer of dqn.c where the backend is a device's. The same update with the same
 * draws, but all of it on the device: three passes, loss, backward pass, norm, optimizer and target
 * network, captured once for each slot of staging.h and launched from then on. The host says what
 * it knows of an update in its knobs, copied with the batch, and hears of it late (trainer.h).
 *
 * Two settings make every update wait for its end, because the host has a part in it:
 * network.normalize_observations, whose moments are the host's and take in no skipped batch, and
 * debug.check_finite, which looks through numbers between gradient and step. */
#include "learner/algo/dqn_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int make_buffers(struct rm_dqn_device *t, struct rm_error *error)
{
    struct rm_backend *b = t->d.f.backend;
    const size_t rows = t->d.batch, all = rows * t->replicas; /* fractions are drawn for all */
    const size_t noise = rm_net_noise_count(t->d.f.net);
    const bool quantiles = t->d.algo->drawn_fractions || t->d.algo->fixed_fractions;
    struct {
        void *at;
        size_t bytes;
    } buffers[] = {
        {&t->noise, noise * sizeof(float)},
        {&t->tau, quantiles ? all * rm_dqn_most_quantiles(&t->d) * sizeof(float) : 0},
        {&t->y, rows * t->d.target_quantiles * sizeof(float)},
        {&t->partials, 2 * rows * sizeof(double)},
    };
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        void *p = buffers[i].bytes ? b->device->alloc(b, buffers[i].bytes, error) : NULL;
        if (buffers[i].bytes && !p)
            return -ENOMEM;
        memcpy(buffers[i].at, &p, sizeof p);
    }
    t->pinned = b->device->alloc_host(b, sizeof *t->pinned, error);
    return t->pinned ? 0 : -ENOMEM;
}

static int send_midpoints(struct rm_dqn_device *t, struct rm_error *error)
{
    struct rm_backend *b = t->d.f.backend;
    const size_t n = (size_t)t->d.batch * t->d.quantiles;
    if (!t->d.algo->fixed_fractions)
        return 0;
    float *tau = malloc(n * sizeof *tau);
    if (!tau)
        return rm_fail(error, -ENOMEM, "no memory for %zu fractions", n);
    rm_algo_midpoints(t->d.batch, t->d.quantiles, tau);
    b->ops->upload(b, t->tau, tau, n);
    free(tau);
    return 0;
}

static void destroy(struct rm_trainer *trainer)
{
    struct rm_dqn_device *t = (struct rm_dqn_device *)trainer;
    struct rm_backend *b = t->d.f.backend;
    void *buffers[] = {t->noise, t->tau, t->y, t->partials};
    rm_staging_destroy(&t->staging);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            b->ops->release(b, buffers[i]);
    if (t->pinned)
        b->device->release_host(b, t->pinned);
    rm_followed_close(&t->d.f);
    free(t);
}

static int make(struct rm_dqn_device *t, const struct rm_trainer_spec *spec, struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    int rc = rm_dqn_open(&t->d, spec, error);
    if (rc)
        return rc;
    t->figures = rm_optimizer_figures(t->d.f.optimizer);
    const struct rm_staging_spec staging = {
        .batch = t->d.batch,
        .inputs = spec->shape.inputs,
        .actions = spec->shape.actions,
        .gather = spec->gather,
        .draw = spec->draw,
        .figures = t->figures,
        .masks = spec->masks,
        .priorities = e->priority.kind == RM_PRIORITY_PROPORTIONAL,
    };
    t->replica = spec->replica;
    t->replicas = spec->replicas ? spec->replicas : 1;
    rc = make_buffers(t, error);
    if (!rc)
        rc = rm_staging_create(&t->staging, spec->backend, &staging, error);
    if (!rc)
        rc = send_midpoints(t, error);
    if (rc)
        return rc;
    t->watched = e->debug.check_finite != RM_CHECK_FINITE_OFF;
    t->normalise = rm_net_input_mean_at(t->d.f.net) != SIZE_MAX;
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++)
        t->staging.slots[i].host.codes = rm_net_takes_codes(t->d.f.net);
    rm_followed_init(&t->d.f);
    const struct rm_recorded own = {&t->d.f.trainer, t->d.f.backend};
    return t->replicas > 1 ? 0 : rm_record(&own, 1, !t->watched, error);
}

static int create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                  struct rm_error *error)
{
    struct rm_dqn_device *t = calloc(1, sizeof *t);
    if (!t)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    t->d.f.trainer.ops = &rm_dqn_device_trainer;
    t->d.f.backend = spec->backend;
    const int rc = make(t, spec, error);
    if (rc) {
        destroy(&t->d.f.trainer);
        return rc;
    }
    *trainer = &t->d.f.trainer;
    return 0;
}

const struct rm_trainer_ops rm_dqn_device_trainer = {
    .create = create,
    .destroy = destroy,
    .update = rm_dqn_device_update,
    .gradient = rm_dqn_device_gradient,
    .batch = rm_dqn_device_batch,
    .learned = rm_dqn_device_learned,
    .report = rm_dqn_device_report,
    .made = rm_dqn_device_made,
    RM_FOLLOWED_OPS,
    .update_flops = rm_dqn_update_flops,
    .recorded = &rm_dqn_recorded,
};
