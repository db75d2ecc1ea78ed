/* implements: config/check.h, for experience: acting, replay and sampling. */
#include "config/check_tables.h"

#include "config/traits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef const struct rm_experiment experiment_t;

#define SAY(...) (snprintf(text, bytes, __VA_ARGS__), true)

static bool rollout(experiment_t *e)
{
    return rm_algorithm_traits(e->algorithm.name)->rollout;
}

/* --- ring and samples ---------------------------------------------------------------------- */

static bool ring_batch(experiment_t *e, char *text, size_t bytes)
{
    return rm_fills_replay(e) && e->ring.capacity < e->sample.batch &&
           SAY("%" PRIu64 " transitions are fewer than one batch (sample.batch %u)",
               e->ring.capacity, e->sample.batch);
}

static bool fill_capacity(experiment_t *e, char *text, size_t bytes)
{
    return rm_fills_replay(e) && e->sample.min_fill > e->ring.capacity &&
           SAY("%" PRIu64 " transitions do not fit: ring.capacity is %" PRIu64, e->sample.min_fill,
               e->ring.capacity);
}

static bool fill_batch(experiment_t *e, char *text, size_t bytes)
{
    return rm_fills_replay(e) && e->sample.min_fill < e->sample.batch &&
           SAY("%" PRIu64 " transitions are fewer than one batch (sample.batch %u)",
               e->sample.min_fill, e->sample.batch);
}

static bool batch_rows(experiment_t *e, char *text, size_t bytes)
{
    uint32_t n = e->algorithm.quantiles > e->algorithm.target_quantiles
                     ? e->algorithm.quantiles
                     : e->algorithm.target_quantiles;
    uint64_t rows = (uint64_t)e->sample.batch * n;
    return e->algorithm.name == RM_ALGORITHM_IQN && rows > 1u << 22 &&
           SAY("%u transitions with %u quantiles each are %" PRIu64
               " rows of a batch; allowed are at most %u",
               e->sample.batch, n, rows, 1u << 22);
}

/* --- limiter ------------------------------------------------------------------------------- */

static bool slack_batch(experiment_t *e, char *text, size_t bytes)
{
    return rm_fills_replay(e) && e->mode == RM_MODE_FREE && e->limiter.updates_per_step > 0 &&
           e->limiter.slack_updates < 1 &&
           SAY("%g updates are less than one batch: the learner could never sample; use at least 1",
               e->limiter.slack_updates);
}

/* One vector step of an actor inserts a transition per world at least, all or nothing. */
static bool slack_row(experiment_t *e, char *text, size_t bytes)
{
    uint32_t worlds = (e->actor.worlds + e->actor.count - 1) / e->actor.count;
    double row = worlds * e->limiter.updates_per_step;
    return rm_fills_replay(e) && e->mode == RM_MODE_FREE && e->limiter.updates_per_step > 0 &&
           e->limiter.slack_updates < row &&
           SAY("%g updates are fewer than one vector step of an actor grants (%u worlds x "
               "limiter.updates_per_step %g = %g): the actor could never continue; use at least %g",
               e->limiter.slack_updates, worlds, e->limiter.updates_per_step, row, ceil(row));
}

static bool lockstep_free(experiment_t *e, char *text, size_t bytes)
{
    return rm_fills_replay(e) && e->mode != RM_MODE_FREE && e->limiter.updates_per_step == 0 &&
           SAY("0 is free running, but in mode %s a round has a fixed number of updates; use a "
               "value above 0",
               rm_mode_names[e->mode]);
}

static bool lockstep_poll(experiment_t *e, char *text, size_t bytes)
{
    return e->mode != RM_MODE_FREE && e->limiter.wake == RM_WAKE_POLL &&
           SAY("\"poll\" is for mode free; mode %s waits only at the end of a round, by event",
               rm_mode_names[e->mode]);
}

/* --- a recording --------------------------------------------------------------------------- */

static bool offline_algorithm(experiment_t *e, char *text, size_t bytes)
{
    if (!rm_experiment_is_offline(e))
        return false;
    if (rm_algorithm_traits(e->algorithm.name)->sequences)
        return SAY(
            "algorithm.name %s learns from recurrent states, which are not recorded; use dqn, "
            "qr-dqn, iqn, sac, clone or distill",
            rm_algorithm_names[e->algorithm.name]);
    return rollout(e) && SAY("algorithm.name %s learns from rollouts of its own policy, not from a "
                             "recording; use dqn, qr-dqn, iqn, sac, clone or distill",
                             rm_algorithm_names[e->algorithm.name]);
}

static bool imitates_offline(experiment_t *e, char *text, size_t bytes)
{
    return (e->algorithm.name == RM_ALGORITHM_CLONE || e->algorithm.name == RM_ALGORITHM_DISTILL) &&
           !rm_experiment_is_offline(e) &&
           SAY("%s learns from a recording; name one in sample.from",
               rm_algorithm_names[e->algorithm.name]);
}

static bool histories_stack(experiment_t *e, char *text, size_t bytes)
{
    return rm_algorithm_traits(e->algorithm.name)->histories && e->sample.frame_stack > 1 &&
           SAY("%u frames, but a history has each observation once; use 1", e->sample.frame_stack);
}

static bool histories_steps(experiment_t *e, char *text, size_t bytes)
{
    return rm_algorithm_traits(e->algorithm.name)->histories && e->sample.first_steps &&
           e->sample.first_steps < e->sample.region &&
           SAY("%" PRIu64 " steps are fewer than one region (sample.region %u)",
               e->sample.first_steps, e->sample.region);
}

static bool offline_form(experiment_t *e, char *text, size_t bytes)
{
    return rm_experiment_is_offline(e) && e->algorithm.form != RM_FORM_PAPER &&
           SAY("algorithm.form %s draws from the slots of a ring that a world fills, not from a "
               "recording; use \"paper\"",
               rm_form_names[e->algorithm.form]);
}

static bool offline_frozen(experiment_t *e, char *text, size_t bytes)
{
    return rm_experiment_is_offline(e) && e->policy.frozen_count &&
           SAY("%u opponents, but with a recording (sample.from) no policy acts; use none",
               e->policy.frozen_count);
}

static bool offline_stages(experiment_t *e, char *text, size_t bytes)
{
    return rm_experiment_is_offline(e) && e->curriculum.stages &&
           SAY("%u stages, but with a recording (sample.from) no actors step worlds; use none",
               e->curriculum.stages);
}

static bool offline_records(experiment_t *e, char *text, size_t bytes)
{
    return rm_experiment_is_offline(e) && rm_experiment_records(e) &&
           SAY("\"%s\", but with a recording (sample.from) there are no actors, whose rows could "
               "be recorded; use \"\"",
               e->record.directory);
}

/* --- exploration --------------------------------------------------------------------------- */

static bool epsilon_rises(experiment_t *e, char *text, size_t bytes)
{
    return e->epsilon.end > e->epsilon.start &&
           SAY("%g is above epsilon.start (%g): exploration must not rise", e->epsilon.end,
               e->epsilon.start);
}

static const struct rm_check rows[] = {
    {{"ring.capacity", "sample.batch"}, ring_batch, "The ring holds a batch."},
    {{"sample.min_fill", "ring.capacity"}, fill_capacity, "The first update's fill fits the ring."},
    {{"sample.min_fill", "sample.batch"}, fill_batch, "The first update has a batch to draw from."},
    {{"sample.batch", "algorithm.name", "algorithm.quantiles", "algorithm.target_quantiles"},
     batch_rows,
     "IQN: batch times quantiles is at most 4194304 rows."},
    {{"limiter.slack_updates", "limiter.updates_per_step", "mode"},
     slack_batch,
     "Free mode: the limiter's slack is at least one batch."},
    {{"limiter.slack_updates", "limiter.updates_per_step", "actor.worlds", "actor.count", "mode"},
     slack_row,
     "Free mode: the limiter's slack is at least the updates that one vector step of an actor "
     "grants."},
    {{"limiter.updates_per_step", "mode"},
     lockstep_free,
     "Lockstep and sequential mode need a ratio of updates to steps."},
    {{"limiter.wake", "mode"}, lockstep_poll, "Polling is for free mode."},
    {{"sample.from", "algorithm.name"},
     offline_algorithm,
     "A recording is learned from as replay of transitions."},
    {{"algorithm.name", "sample.from"},
     imitates_offline,
     "clone and distill learn from recordings."},
    {{"sample.frame_stack", "algorithm.name"}, histories_stack, "A history has no stacks."},
    {{"sample.first_steps", "sample.region", "algorithm.name"},
     histories_steps,
     "A history has a whole region."},
    {{"sample.from", "algorithm.form"},
     offline_form,
     "The sorrel forms draw from a ring that actors fill."},
    {{"policy.frozen", "sample.from"}, offline_frozen, "Opponents are for policies that act."},
    {{"curriculum", "sample.from"}, offline_stages, "A curriculum is for actors."},
    {{"record.directory", "sample.from"}, offline_records, "Rows of actors are recorded."},
    {{"epsilon.end", "epsilon.start"}, epsilon_rises, "Exploration does not rise."},
};
const struct rm_check_table rm_checks_of_experience = {rows, sizeof(rows) / sizeof(rows[0])};
