/* Runs updates on the CPU, where an update is complete when the call returns. */
#include "learner/algo/updates.h"

/* Sets the knobs of update `number` and puts its gradient. */
static struct rm_update put_gradient(struct rm_updates *t, const struct rm_batch *batch,
                                     uint64_t number, struct rm_update_knobs *knobs,
                                     struct rm_phase_clock *clock)
{
    const struct rm_update update = {.batch = batch, .knobs = knobs, .clock = clock};
    rm_updates_set_knobs(t, number, knobs);
    rm_update_phase(update.clock, RM_PHASE_FORWARD);
    t->ops->put_gradient(t, &update);
    return update;
}

static struct rm_trainer_result gradient(struct rm_trainer *trainer, const struct rm_batch *batch,
                                         uint64_t number, struct rm_phase_clock *clock)
{
    struct rm_updates *t = trainer->all[0];
    struct rm_update_knobs knobs = {0};
    put_gradient(t, batch, number, &knobs, clock);
    return rm_updates_result(t->figures, rm_optimizer_norm(t->optimizer, t->grads));
}

static struct rm_trainer_result update(struct rm_trainer *trainer, const struct rm_batch *batch,
                                       uint64_t number, struct rm_phase_clock *clock)
{
    struct rm_updates *t = trainer->all[0];
    struct rm_update_knobs knobs = {0};
    const struct rm_update update = put_gradient(t, batch, number, &knobs, clock);
    if (t->watched) {
        const double norm = rm_optimizer_norm(t->optimizer, t->grads);
        rm_updates_look(t, number, rm_updates_result(t->figures, norm).skipped);
    }
    rm_update_phase(update.clock, RM_PHASE_OPTIMIZER);
    rm_updates_put_step(t, &update, NULL);
    struct rm_trainer_result result = rm_updates_result(t->figures, t->figures->last_grad_norm);
    if (result.skipped)
        return result;
    result.learning_rate = knobs.learning_rate;
    if (t->normalise)
        rm_updates_add_moments(t, batch, (double)knobs.target_tau);
    rm_updates_prepare(t, true, knobs.target_tau > 0.0f);
    return result;
}

static struct rm_trainer_result measure(struct rm_trainer *trainer, const struct rm_batch *batch)
{
    struct rm_updates *t = trainer->all[0];
    t->ops->measure(t, batch);
    return rm_updates_result(t->figures, 0);
}

static void destroy(struct rm_trainer *trainer)
{
    rm_updates_destroy(trainer->all[0]);
}

static const struct rm_trainer_ops at_once = {
    .destroy = destroy,
    .update = update,
    .gradient = gradient,
    .measure = measure,
};

int rm_updates_at_once_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                              const struct rm_trainer_spec *spec, struct rm_error *error)
{
    struct rm_updates *t;
    const int rc = rm_updates_create(&t, ops, spec, error);
    if (rc) {
        rm_updates_destroy(t);
        return rc;
    }
    t->trainer.ops = &at_once;
    rm_updates_init(t);
    *trainer = &t->trainer;
    return 0;
}
