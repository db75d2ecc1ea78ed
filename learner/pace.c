#include "learner/pace.h"

#include "config/forms.h"
#include "learner/method.h"
#include "shm/atomic.h"
#include "shm/base/state.h"

#include <math.h>
#include <string.h>

static const struct rm_experiment *experiment(const struct rm_pace *pace)
{
    return &pace->session->experiment;
}

static struct rm_limiter *limiter(const struct rm_pace *pace)
{
    return &pace->session->board.policies[pace->policy].limiter;
}

void rm_pace_start(struct rm_pace *pace, struct rm_session *session, struct rm_sampler *sampler,
                   uint32_t policy, uint64_t attempts)
{
    const struct rm_experiment *e = &session->experiment;
    memset(pace, 0, sizeof *pace);
    pace->session = session;
    pace->sampler = sampler;
    pace->policy = policy;
    pace->offline = rm_experiment_is_offline(e);
    rm_rounds_start(&pace->rounds, session, policy, e->mode != RM_MODE_FREE && !pace->offline);
    pace->updates_per_step = e->limiter.updates_per_step;
    pace->attempts = attempts;
    pace->successor = attempts > 0;
    if (pace->rounds.on)
        pace->due_base = attempts;
}

/* The sum may fall short of a whole number by rounding: 150 * 0.02. */
static uint64_t due_after(const struct rm_pace *pace, uint64_t inserted)
{
    if (inserted <= pace->inserted_base)
        return pace->due_base;
    const double steps = (double)(inserted - pace->inserted_base);
    return pace->due_base + (uint64_t)floor(steps * pace->updates_per_step + 1e-9);
}

void rm_pace_set_rate(struct rm_pace *pace, double updates_per_step)
{
    if (updates_per_step == pace->updates_per_step)
        return;
    const uint64_t inserted = pace->rounds.on ? pace->inserted : RM_PEEK(&limiter(pace)->inserted);
    pace->due_base = due_after(pace, inserted);
    pace->inserted_base = inserted;
    pace->updates_per_step = updates_per_step;
}

/* --- free running ---------------------------------------------------------------------------- */

/* Actors signal when `count` items are inserted. The count is based on the items seen before: a
 * count from a later read may exceed what the limiter lets actors insert before an update. */
static enum rm_turn wait_for(const struct rm_pace *pace, uint64_t count)
{
    rm_atomic_await_count(&pace->session->board.workers[pace->rounds.who].wake.threshold, count);
    return RM_PEEK(&limiter(pace)->inserted) < count ? RM_TURN_WAIT : RM_TURN_AGAIN;
}

static enum rm_turn next_free(struct rm_pace *pace)
{
    struct rm_limiter *l = limiter(pace);
    pace->done = rm_actors_done(pace->session); /* read before the number of inserted items */
    pace->seen = rm_atomic_limiter_counted(&l->inserted);
    rm_sampler_window_free(pace->sampler);
    if (pace->done)
        return pace->seen >= RM_PEEK(&l->min_inserted) &&
                       pace->attempts < due_after(pace, pace->seen)
                   ? RM_TURN_UPDATE
                   : RM_TURN_FINISHED;
    const uint64_t needed = rm_limiter_needed(l, experiment(pace)->sample.batch);
    return needed ? wait_for(pace, needed) : RM_TURN_UPDATE;
}

/* --- rounds ---------------------------------------------------------------------------------- */

/* Updates that fell due while there were too few rows: a form may drop them (config/forms.h), the
 * others make them later. */
static uint64_t dropped(const struct rm_pace *pace)
{
    const struct rm_experiment *e = experiment(pace);
    if (!rm_form_traits(e->algorithm.form)->drops_first_updates || pace->successor ||
        e->sample.min_fill == 0)
        return 0;
    return (uint64_t)floor((double)(e->sample.min_fill - 1) * pace->updates_per_step + 1e-9);
}

static void begin_round(struct rm_pace *pace, bool first)
{
    const struct rm_experiment *e = experiment(pace);
    rm_sampler_window_round(pace->sampler, pace->rounds.current, e->run.round_steps);
    const uint64_t fresh = rm_sampler_count_new(pace->sampler);
    /* Earlier rows belonged to the predecessor. */
    if (!pace->successor || !first)
        pace->inserted += fresh;
    if (pace->inserted < e->sample.min_fill && !pace->successor) {
        pace->due = pace->attempts;
        return;
    }
    const uint64_t due = due_after(pace, pace->inserted), less = dropped(pace);
    pace->due = due > less ? due - less : 0;
}

static enum rm_turn next_in_rounds(struct rm_pace *pace)
{
    const uint64_t before = pace->rounds.current;
    const enum rm_rounds_turn turn = rm_rounds_next(&pace->rounds);
    if (turn != RM_ROUNDS_WORK)
        return turn == RM_ROUNDS_OVER ? RM_TURN_FINISHED : RM_TURN_WAIT;
    if (pace->rounds.current != before)
        begin_round(pace, before == 0);
    if (pace->attempts < pace->due)
        return RM_TURN_UPDATE;
    return pace->rounds.last ? RM_TURN_FINISHED : RM_TURN_ROUND_END;
}

/* --- from a recording ------------------------------------------------------------------------ */

static enum rm_turn next_offline(struct rm_pace *pace)
{
    const uint64_t updates = experiment(pace)->run.steps;
    if (updates && pace->attempts >= updates)
        return RM_TURN_FINISHED;
    if (pace->sampler)
        rm_sampler_window_free(pace->sampler);
    return RM_TURN_UPDATE;
}

enum rm_turn rm_pace_next(struct rm_pace *pace)
{
    if (pace->offline)
        return next_offline(pace);
    return pace->rounds.on ? next_in_rounds(pace) : next_free(pace);
}

void rm_pace_drawn(struct rm_pace *pace)
{
    pace->attempts++;
    rm_limiter_sampled(limiter(pace), experiment(pace)->sample.batch);
}

void rm_pace_undrawn(struct rm_pace *pace, uint64_t n)
{
    pace->attempts -= n;
    rm_limiter_sampled(limiter(pace), 0 - n * experiment(pace)->sample.batch);
}

enum rm_turn rm_pace_too_few(struct rm_pace *pace)
{
    if (pace->offline)
        return RM_TURN_WAIT;
    if (pace->rounds.on)
        return pace->rounds.last ? RM_TURN_FINISHED : RM_TURN_ROUND_END;
    return pace->done ? RM_TURN_FINISHED : wait_for(pace, pace->seen + 1);
}

void rm_pace_state(struct rm_pace *pace, struct rm_state *s)
{
    rm_state_enter(s, "pace");
    RM_STATE(s, "successor", pace->successor);
    RM_STATE(s, "updates_per_step", pace->updates_per_step);
    RM_STATE(s, "attempts", pace->attempts);
    RM_STATE(s, "due_base", pace->due_base);
    RM_STATE(s, "inserted_base", pace->inserted_base);
    RM_STATE(s, "inserted", pace->inserted);
    RM_STATE(s, "due", pace->due);
    rm_rounds_state(&pace->rounds, s);
    rm_state_leave(s);
}
