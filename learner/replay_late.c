/* Late results (algo/trainer.h): reports and errors of earlier updates. */
#include "learner/counting.h"
#include "learner/replay_private.h"
#include "shm/atomic.h"

/* Too many consecutive skips: waits for updates in progress, which have the same parameters, so
 * that none of them follows the rollback. */
static void await_rest(struct rm_replay *r, struct rm_trainer_report *report)
{
    struct rm_trainer_report rest;
    if (report->skipped_in_row < r->experiment->debug.finite_patience ||
        !rm_trainer_report(r->trainer, true, &rest))
        return;
    rest.made += report->made;
    rest.skipped += report->skipped;
    if (rest.made == report->made)
        rest.mean = report->mean;
    rest.drawn.rejected += report->drawn.rejected;
    rest.drawn.age_sum += report->drawn.age_sum;
    rest.drawn.age_count += report->drawn.age_count;
    rest.drawn.dry += report->drawn.dry;
    *report = rest;
}

/* Counts the device's draws. Dry draws are taken back, since they were counted when they began. */
static void count_drawn(struct rm_replay *r, const struct rm_device_drawn *drawn)
{
    const struct rm_sampler_counts counts = {
        .rejected = drawn->rejected, .age_sum = drawn->age_sum, .age_count = drawn->age_count};
    rm_sampler_drawn(r->sampler, &counts);
    rm_replay_count_draws(r);
    RM_POKE(&r->counters->priority_max, rm_sampler_largest(r->sampler));
    if (!drawn->dry)
        return;
    r->dry = true;
    rm_pace_undrawn(&r->pace, drawn->dry);
    RM_ADD_OWN(&r->counters->samples, 0 - drawn->dry * r->experiment->sample.batch);
}

static int count_report(struct rm_replay *r, struct rm_trainer_report *report,
                        struct rm_error *error)
{
    struct rm_board_policy *c = r->counters;
    await_rest(r, report);
    if (r->feed && rm_feed_draw(r->feed))
        count_drawn(r, &report->drawn);
    const struct rm_counted_update mean = {.loss = report->mean.loss,
                                           .grad_norm = report->mean.grad_norm,
                                           .learning_rate = report->mean.learning_rate};
    struct rm_guard_report judged = {
        .made = report->made,
        .skipped = report->skipped,
        .skipped_in_row = report->skipped_in_row,
        .through = report->through,
        .launched = r->pace.attempts,
        .loss = report->last_loss,
        .grad_norm = report->last_grad_norm,
    };
    const int verdict = rm_count_late(c, r->guard, &r->updates, &mean, &judged, error);
    if (verdict == RM_GUARD_BACK)
        rm_trainer_restored(r->trainer);
    if (report->made) {
        RM_POKE(&c->q_mean, report->mean.q_mean);
        RM_POKE(&c->entropy, report->mean.entropy);
        RM_POKE(&c->temperature, report->mean.temperature);
    }
    return verdict < 0 ? verdict : 0;
}

int rm_replay_poll(struct rm_replay *r, bool wait, struct rm_error *error)
{
    struct rm_trainer_report report;
    struct rm_batch *batch;
    int rc = 0;
    if (!r->late)
        return 0;
    if (rm_trainer_report(r->trainer, wait, &report))
        rc = count_report(r, &report, error);
    while ((batch = rm_trainer_learned(r->trainer)))
        rm_replay_learned(r, batch);
    return rc;
}

int rm_replay_settle(struct rm_replay *r, struct rm_error *error)
{
    const int rc = rm_replay_poll(r, true, error);
    rm_publisher_end(r->publisher);
    return rc;
}
