/* implements: config/check.h, for experience: how it is made, kept and taken. */
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
    return !rollout(e) && e->ring.capacity < e->sample.batch &&
           SAY("%" PRIu64 " transitions hold less than one batch (sample.batch %u)",
               e->ring.capacity, e->sample.batch);
}

/* A transition spans frame_stack rows before and n_step rows after; a row has at least one lane for
 * each world. */
static bool ring_sequence(experiment_t *e, char *text, size_t bytes)
{
    bool sequences = rm_algorithm_traits(e->algorithm.name)->sequences;
    uint64_t rows =
        (uint64_t)(sequences ? e->sample.sequence : e->sample.frame_stack) + e->sample.n_step;
    uint64_t least = rows * e->actor.worlds;
    return !rollout(e) && e->ring.capacity < least &&
           SAY("%" PRIu64 " transitions are %" PRIu64
               " rows of %u worlds (actor.worlds); one sample "
               "spans %" PRIu64 " rows (%s + sample.n_step), so at least %" PRIu64,
               e->ring.capacity, e->ring.capacity / e->actor.worlds, e->actor.worlds, rows,
               sequences ? "sample.sequence" : "sample.frame_stack", least);
}

static bool fill_capacity(experiment_t *e, char *text, size_t bytes)
{
    return !rollout(e) && e->sample.min_fill > e->ring.capacity &&
           SAY("%" PRIu64 " transitions will never be there: ring.capacity is %" PRIu64,
               e->sample.min_fill, e->ring.capacity);
}

static bool fill_batch(experiment_t *e, char *text, size_t bytes)
{
    return !rollout(e) && e->sample.min_fill < e->sample.batch &&
           SAY("%" PRIu64 " transitions are less than one batch (sample.batch %u)",
               e->sample.min_fill, e->sample.batch);
}

/* Every agent of an independent policy brings run.steps transitions at most. */
static bool fill_run(experiment_t *e, char *text, size_t bytes)
{
    return !rollout(e) && e->run.steps && e->policy.map == RM_MAP_INDEPENDENT &&
           e->sample.min_fill > e->run.steps &&
           SAY("%" PRIu64 " transitions before the first update, but the run ends after %" PRIu64
               " steps (run.steps): nothing would be learned",
               e->sample.min_fill, e->run.steps);
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

/* --- rollouts ------------------------------------------------------------------------------ */

/* A policy has a lane per world at least. */
static bool rollout_minibatches(experiment_t *e, char *text, size_t bytes)
{
    uint64_t rows = (uint64_t)e->rollout.steps * e->actor.worlds;
    return rollout(e) && e->policy.map == RM_MAP_INDEPENDENT && e->algorithm.minibatches > rows &&
           SAY("%u parts of a rollout of %" PRIu64 " rows (rollout.steps %u of %u worlds, "
               "actor.worlds); at most that many",
               e->algorithm.minibatches, rows, e->rollout.steps, e->actor.worlds);
}

/* --- limiter ------------------------------------------------------------------------------- */

static bool slack_batch(experiment_t *e, char *text, size_t bytes)
{
    return !rollout(e) && e->mode == RM_MODE_FREE && e->limiter.updates_per_step > 0 &&
           e->limiter.slack_updates < 1 &&
           SAY("%g updates are less than one batch: the learner could never sample; at least 1",
               e->limiter.slack_updates);
}

/* One vector step of an actor inserts a transition per world at least, all or nothing. */
static bool slack_row(experiment_t *e, char *text, size_t bytes)
{
    uint32_t worlds = (e->actor.worlds + e->actor.count - 1) / e->actor.count;
    double row = worlds * e->limiter.updates_per_step;
    return !rollout(e) && e->mode == RM_MODE_FREE && e->limiter.updates_per_step > 0 &&
           e->limiter.slack_updates < row &&
           SAY("%g updates are less than one row of an actor inserts (%u worlds x "
               "limiter.updates_per_step %g = %g): the actor could never go on; at least %g",
               e->limiter.slack_updates, worlds, e->limiter.updates_per_step, row, ceil(row));
}

static bool lockstep_free(experiment_t *e, char *text, size_t bytes)
{
    return !rollout(e) && e->mode != RM_MODE_FREE && e->limiter.updates_per_step == 0 &&
           SAY("0 is free running, which mode %s cannot do: a round makes a fixed number of "
               "updates; "
               "above 0",
               rm_mode_names[e->mode]);
}

static bool lockstep_poll(experiment_t *e, char *text, size_t bytes)
{
    return e->mode != RM_MODE_FREE && e->limiter.wake == RM_WAKE_POLL &&
           SAY("\"poll\" is for mode free; mode %s waits at the round's end only, by event",
               rm_mode_names[e->mode]);
}

/* --- exploration --------------------------------------------------------------------------- */

static bool epsilon_rises(experiment_t *e, char *text, size_t bytes)
{
    return e->epsilon.end > e->epsilon.start &&
           SAY("%g is above epsilon.start (%g): exploration falls, it does not rise",
               e->epsilon.end, e->epsilon.start);
}

static const struct rm_check rows[] = {
    {{"ring.capacity", "sample.batch"}, ring_batch, "The ring holds a batch."},
    {{"ring.capacity", "sample.frame_stack", "sample.n_step", "sample.sequence", "actor.worlds"},
     ring_sequence,
     "The ring holds, for every world, the rows one sample spans: its frames, or the sequence of "
     "r2d2, and its n steps."},
    {{"sample.min_fill", "ring.capacity"}, fill_capacity, "The first update's fill fits the ring."},
    {{"sample.min_fill", "sample.batch"}, fill_batch, "The first update has a batch to draw from."},
    {{"sample.min_fill", "run.steps", "policy.map"},
     fill_run,
     "With a policy per agent, the run is long enough for a first update."},
    {{"sample.batch", "algorithm.name", "algorithm.quantiles", "algorithm.target_quantiles"},
     batch_rows,
     "IQN: batch times quantiles is at most 4194304 rows."},
    {{"algorithm.minibatches", "algorithm.name", "rollout.steps", "actor.worlds", "policy.map"},
     rollout_minibatches,
     "ppo, appo, vtrace: every minibatch has a row at least."},
    {{"limiter.slack_updates", "limiter.updates_per_step", "mode"},
     slack_batch,
     "Free mode: the limiter's slack is at least one batch."},
    {{"limiter.slack_updates", "limiter.updates_per_step", "actor.worlds", "actor.count", "mode"},
     slack_row,
     "Free mode: the limiter's slack is at least what one row of an actor inserts."},
    {{"limiter.updates_per_step", "mode"},
     lockstep_free,
     "Lockstep and sequential mode need a ratio of updates to steps."},
    {{"limiter.wake", "mode"}, lockstep_poll, "Polling is for free mode."},
    {{"epsilon.end", "epsilon.start"}, epsilon_rises, "Exploration does not rise."},
};
const struct rm_check_table rm_checks_of_experience = {rows, sizeof(rows) / sizeof(rows[0])};
