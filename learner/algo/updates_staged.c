#include "learner/algo/updates_staged.h"

#include "config/traits.h"
#include "learner/algo/record.h"

#include <errno.h>
#include <stdlib.h>

/* --- the two halves --------------------------------------------------------------- */

static struct rm_update update_of(const struct rm_staging_slot *slot)
{
    return (struct rm_update){.batch = &slot->device, .knobs = slot->device_knobs};
}

/* Weights are packed again in every update. */
void rm_staged_put_gradient(struct rm_updates *t, uint32_t i)
{
    const struct rm_staging_slot *slot = &t->staged->staging.slots[i];
    const struct rm_update update = update_of(slot);
    rm_staging_draw(&t->staged->staging, slot);
    rm_updates_prepare(t, true, true);
    t->ops->put_gradient(t, &update);
    t->backend->ops->draws(t->backend, NULL, 0);
}

void rm_staged_put_step(struct rm_updates *t, uint32_t i)
{
    const struct rm_staging_slot *slot = &t->staged->staging.slots[i];
    const struct rm_update update = update_of(slot);
    rm_updates_put_step(t, &update, slot->device_figures);
    rm_staging_learned(&t->staged->staging, slot);
}

/* --- an update ------------------------------------------------------------------------------- */

static struct rm_staged_figures fetch_figures(struct rm_updates *t)
{
    struct rm_backend *b = t->backend;
    struct rm_staged_figures *pinned = t->staged->pinned;
    const struct rm_device_sampler *draw = &t->staged->staging.draw;
    b->ops->copy_out(b, RM_QUEUE_COMPUTE, &pinned->figures, t->figures, sizeof pinned->figures);
    if (draw->batch)
        b->ops->copy_out(b, RM_QUEUE_COMPUTE, &pinned->drawn, draw->drawn, sizeof pinned->drawn);
    b->ops->finish(b);
    return *pinned;
}

struct rm_trainer_result rm_staged_gradient_result(struct rm_updates *t)
{
    const struct rm_update_figures f = fetch_figures(t).figures;
    return rm_updates_result(&f, rm_optimizer_norm(t->optimizer, t->grads));
}

static void run(struct rm_updates *t, struct rm_staging_slot *slot)
{
    const uint32_t i = (uint32_t)(slot - t->staged->staging.slots);
    if (!t->watched) {
        t->backend->device->launch(t->backend, slot->graph);
        return;
    }
    rm_staged_put_gradient(t, i);
    rm_updates_look(t, slot->number, rm_staged_gradient_result(t).skipped);
    rm_staged_put_step(t, i);
}

static void add_drawn(struct rm_staged_updates *s, const struct rm_device_drawn *drawn)
{
    struct rm_device_drawn *to = &s->unreported.drawn;
    to->rejected += drawn->rejected - s->drawn.rejected;
    to->age_sum += drawn->age_sum - s->drawn.age_sum;
    to->age_count += drawn->age_count - s->drawn.age_count;
    to->dry += drawn->dry - s->drawn.dry;
    s->drawn = *drawn;
}

/* Adds the figures after update `number`, whose sums begin after the previous figures. */
static void add_figures(struct rm_staged_updates *s, const struct rm_update_figures *f,
                        const struct rm_device_drawn *drawn, uint64_t number, double learning_rate)
{
    struct rm_trainer_report *r = &s->unreported;
    if (drawn)
        add_drawn(s, drawn);
    r->made += f->made - s->made;
    r->skipped += f->skipped - s->skipped;
    r->skipped_in_row = f->skipped_in_row;
    r->through = number;
    r->last_loss = f->last_loss;
    r->last_grad_norm = f->last_grad_norm;
    r->mean.loss += f->loss;
    r->mean.grad_norm += f->grad_norm;
    r->mean.q_mean += f->sums[RM_SUM_OF_Q];
    r->mean.entropy += f->sums[RM_SUM_OF_ENTROPY];
    r->mean.temperature += f->sums[RM_SUM_OF_TEMPERATURE];
    r->mean.policy_loss += f->sums[RM_SUM_OF_ACTIONS];
    r->mean.type_loss += f->sums[RM_SUM_OF_TYPES];
    r->mean.learning_rate = learning_rate;
    s->samples += f->samples;
    s->made = f->made;
    s->skipped = f->skipped;
}

static void await_slot(struct rm_staged_updates *s, struct rm_staging_slot *slot)
{
    rm_staging_wait(&s->staging, slot);
    if (slot->has_figures)
        add_figures(s, slot->figures, slot->drawn, slot->number, slot->learning_rate);
    slot->has_figures = false;
}

static struct rm_batch *batch(struct rm_trainer *trainer)
{
    struct rm_staged_updates *s = trainer->all[0]->staged;
    struct rm_staging_slot *slot = rm_staging_slot(&s->staging);
    await_slot(s, slot);
    return &slot->host;
}

static struct rm_staging_slot *filled_slot(struct rm_updates *t, const struct rm_batch *from,
                                           uint64_t number)
{
    struct rm_staged_updates *s = t->staged;
    struct rm_staging_slot *slot = rm_staging_slot(&s->staging);
    await_slot(s, slot);
    rm_staging_fill(&s->staging, slot, from);
    slot->number = number;
    slot->learnable = false;
    rm_updates_set_knobs(t, number, slot->knobs);
    slot->learning_rate = slot->knobs->learning_rate;
    slot->knobs->afresh = s->afresh;
    return slot;
}

static struct rm_trainer_result update(struct rm_trainer *trainer, const struct rm_batch *from,
                                       uint64_t number, struct rm_phase_clock *clock)
{
    struct rm_updates *t = trainer->all[0];
    struct rm_staged_updates *s = t->staged;
    const uint32_t every = t->settings.report ? t->settings.report : 1;
    rm_update_phase(clock, RM_PHASE_UPLOAD);
    struct rm_staging_slot *slot = filled_slot(t, from, number);
    rm_staging_send(&s->staging, slot);
    rm_update_phase(clock, RM_PHASE_FORWARD);
    run(t, slot);
    s->afresh = t->normalise || number % every == 0;
    rm_staging_sent(&s->staging, slot, s->afresh);
    s->launched = number;
    if (t->normalise) {
        rm_staging_wait(&s->staging, slot);
        if (!slot->figures->skip)
            rm_updates_add_moments(t, &slot->host, (double)slot->knobs->target_tau);
    }
    return (struct rm_trainer_result){.learning_rate = slot->learning_rate, .late = true};
}

static struct rm_trainer_result gradient(struct rm_trainer *trainer, const struct rm_batch *from,
                                         uint64_t number, struct rm_phase_clock *clock)
{
    struct rm_updates *t = trainer->all[0];
    struct rm_staging_slot *slot = filled_slot(t, from, number);
    (void)clock;
    rm_staging_send(&t->staged->staging, slot);
    rm_staged_put_gradient(t, (uint32_t)(slot - t->staged->staging.slots));
    return rm_staged_gradient_result(t);
}

/* --- results of updates ---------------------------------------------------------------------- */

static struct rm_batch *learned(struct rm_trainer *trainer)
{
    struct rm_staging *staging = &trainer->all[0]->staged->staging;
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++) {
        struct rm_staging_slot *slot = rm_staging_oldest(staging, i);
        if (!slot->learnable)
            continue;
        slot->learnable = false;
        return &slot->host;
    }
    return NULL;
}

/* Waits for all updates, and adds their figures. */
static void finish_all(struct rm_updates *t)
{
    struct rm_staged_updates *s = t->staged;
    double learning_rate = 0.0;
    for (uint32_t i = 0; i < RM_TRAINER_DEPTH; i++) {
        struct rm_staging_slot *slot = rm_staging_oldest(&s->staging, i);
        await_slot(s, slot);
        if (slot->number == s->launched)
            learning_rate = slot->learning_rate;
    }
    if (s->unreported.through == s->launched)
        return;
    const struct rm_staged_figures now = fetch_figures(t);
    add_figures(s, &now.figures, &now.drawn, s->launched, learning_rate);
    s->afresh = true;
}

/* Nothing is in progress meanwhile, because a measurement writes the figures of an update. */
static struct rm_trainer_result measure(struct rm_trainer *trainer, const struct rm_batch *from)
{
    struct rm_updates *t = trainer->all[0];
    struct rm_staging *staging = &t->staged->staging;
    struct rm_staging_slot *slot = rm_staging_slot(staging);
    finish_all(t);
    rm_staging_fill(staging, slot, from);
    rm_staging_send(staging, slot);
    struct rm_batch batch = slot->device;
    batch.size = from->size;
    rm_updates_prepare(t, true, false);
    t->ops->measure(t, &batch);
    const struct rm_update_figures f = fetch_figures(t).figures;
    return rm_updates_result(&f, 0);
}

/* After a dry draw, all later updates are dry too: waits for them, uncounts them and lets updates
 * continue. */
static void uncount_dry(struct rm_updates *t)
{
    struct rm_staged_updates *s = t->staged;
    struct rm_backend *b = t->backend;
    finish_all(t);
    b->ops->clear(b, &t->figures->stop, sizeof t->figures->stop);
    s->launched -= s->unreported.drawn.dry;
    s->unreported.through = s->launched;
}

static bool report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *out)
{
    struct rm_updates *t = trainer->all[0];
    struct rm_staged_updates *s = t->staged;
    struct rm_trainer_report *r = &s->unreported;
    if (wait)
        finish_all(t);
    if (r->drawn.dry)
        uncount_dry(t);
    if (r->through == s->reported_through && !r->drawn.dry)
        return false;
    if (r->made > 0) {
        r->mean.loss /= (double)r->made;
        r->mean.grad_norm /= (double)r->made;
        r->mean.q_mean /= s->samples;
        r->mean.entropy /= s->samples;
        r->mean.temperature /= s->samples;
        r->mean.policy_loss /= s->samples;
        r->mean.type_loss /= s->samples;
    }
    *out = *r;
    *r = (struct rm_trainer_report){.through = r->through};
    s->samples = 0.0;
    s->reported_through = r->through;
    return true;
}

/* --- making ---------------------------------------------------------------------------------- */

static void destroy(struct rm_trainer *trainer)
{
    struct rm_updates *t = trainer->all[0];
    if (t->staged) {
        rm_staging_destroy(&t->staged->staging);
        t->backend->ops->release_host(t->backend, t->staged->pinned);
        free(t->staged);
    }
    rm_updates_destroy(t);
}

static const struct rm_trainer_ops staged = {
    .destroy = destroy,
    .update = update,
    .gradient = gradient,
    .measure = measure,
    .batch = batch,
    .learned = learned,
    .report = report,
};

static int make_staged(struct rm_updates *t, const struct rm_trainer_spec *spec,
                       struct rm_error *error)
{
    const struct rm_experiment *e = spec->experiment;
    struct rm_backend *b = t->backend;
    const bool sequences = rm_learns_sequences(e);
    const struct rm_staging_spec staging = {
        .shape =
            {
                .size = e->sample.batch / t->replicas,
                .inputs = spec->shape.inputs,
                .actions = spec->shape.actions,
                .reals = spec->shape.reals,
                .queries = spec->shape.history.queries,
                .codes = rm_net_takes_codes(t->nets[0].net),
                .burn_in = sequences ? e->sample.burn_in : 0,
                .trace = sequences ? e->sample.sequence : 0,
                .tail = sequences ? rm_steps_ahead(e) : 0,
                .state_floats =
                    rm_experiment_is_offline(e) ? 0 : rm_net_state_count(t->nets[0].net),
            },
        .draw = spec->draw,
        .figures = t->figures,
        .extras = rm_updates_extras(spec, t->ops),
    };
    t->staged = calloc(1, sizeof *t->staged);
    if (!t->staged)
        return rm_fail(error, -ENOMEM, "no memory for a trainer");
    t->staged->pinned = b->ops->alloc_host(b, sizeof *t->staged->pinned, error);
    return t->staged->pinned ? rm_staging_create(&t->staged->staging, b, &staging, error) : -ENOMEM;
}

int rm_updates_staged_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                             const struct rm_trainer_spec *spec, struct rm_error *error)
{
    struct rm_updates *t;
    int rc = rm_updates_create(&t, ops, spec, error);
    if (!rc)
        rc = make_staged(t, spec, error);
    if (!rc) {
        rm_updates_init(t);
        rc = t->replicas > 1 ? 0 : rm_record(&t, 1, !t->watched, error);
    }
    if (rc) {
        if (t)
            destroy(&t->trainer);
        return rc;
    }
    t->trainer.ops = &staged;
    *trainer = &t->trainer;
    return 0;
}
