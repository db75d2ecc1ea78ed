/* Results that are told late (algo/trainer.h): reports and errors of updates made some time ago. */
#include "learner/counting.h"
#include "learner/replay_private.h"
#include "shm/atomic.h"

/* Too many skipped in a row: what is under way is of the same parameters, and is waited for, so
 * that nothing of it follows the way back. */
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
    *report = rest;
}

static int count_report(struct rm_replay *r, struct rm_trainer_report *report,
                        struct rm_error *error)
{
    struct rm_board_policy *c = r->counters;
    await_rest(r, report);
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
    if (report->made)
        RM_POKE(&c->q_mean, report->mean.q_mean);
    return verdict < 0 ? verdict : 0;
}

int rm_replay_hear(struct rm_replay *r, bool wait, struct rm_error *error)
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
    const int rc = rm_replay_hear(r, true, error);
    rm_publisher_end(r->publisher);
    return rc;
}
