/* implements: config/check.h, for the rows that a policy's actors insert and its learner waits for.
 * If a run broke one of these rules, it would learn nothing, or actors and learner would wait for
 * each other for ever. The rules depend on the policy's number of agents, which only the world
 * defines, so a plan checks them again (actor/worlds/plan.h). */
#include "config/check_tables.h"

#include "config/forms.h"
#include "config/traits.h"
#include "shm/base/plural.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef const struct rm_experiment experiment_t;

#define SAY(...) (snprintf(text, bytes, __VA_ARGS__), true)

struct words {
    char s[64];
};

static bool rollout(experiment_t *e)
{
    return rm_algorithm_traits(e->algorithm.name)->rollout;
}

static bool sequences(experiment_t *e)
{
    return rm_learns_sequences(e);
}

/* A row has a lane for each agent of each world. */
static uint64_t lanes_of(experiment_t *e, uint32_t agents)
{
    return (uint64_t)e->actor.worlds * agents;
}

static struct words lanes_in_words(experiment_t *e, uint32_t agents)
{
    struct words w;
    const int n = snprintf(w.s, sizeof w.s, "%u %s (actor.worlds)", e->actor.worlds,
                           rm_plural(e->actor.worlds, "world", "worlds"));
    if (agents > 1)
        snprintf(w.s + n, sizeof w.s - (size_t)n, " of %u agents", agents);
    return w;
}

/* A transition spans its frames and n_step rows after the last frame. At least two rows of frames:
 * no transition begins in the row that ends an episode, and all lanes may be there at once. */
static bool ring_of_transitions(experiment_t *e, uint32_t agents, char *text, size_t bytes)
{
    const uint32_t frames = e->sample.frame_stack > 2 ? e->sample.frame_stack : 2;
    const uint64_t lanes = lanes_of(e, agents), rows = (uint64_t)frames + e->sample.n_step;
    const uint64_t held = e->ring.capacity / lanes;
    return held < rows &&
           SAY("%" PRIu64 " transitions are %" PRIu64 " %s of %s; one sample needs %" PRIu64
               " rows (sample.frame_stack, at least 2, + sample.n_step), so use at least %" PRIu64,
               e->ring.capacity, held, rm_plural(held, "row", "rows"), lanes_in_words(e, agents).s,
               rows, rows * lanes);
}

/* One of sequence + n_step rows begins every `period` rows of an episode, and in the row after its
 * end. */
static bool ring_of_sequences(experiment_t *e, uint32_t agents, char *text, size_t bytes)
{
    const uint64_t lanes = lanes_of(e, agents);
    const uint64_t rows = (uint64_t)e->sample.sequence + e->sample.n_step + e->sample.period;
    const uint64_t held = e->ring.capacity / lanes;
    return held < rows &&
           SAY("%" PRIu64 " transitions are %" PRIu64 " %s of %s; a whole sequence needs %" PRIu64
               " (sample.sequence + sample.n_step + sample.period), so use at least %" PRIu64,
               e->ring.capacity, held, rm_plural(held, "row", "rows"), lanes_in_words(e, agents).s,
               rows, rows * lanes);
}

static bool ring_sample(experiment_t *e, uint32_t agents, char *text, size_t bytes)
{
    if (!rm_fills_replay(e))
        return false;
    return sequences(e) ? ring_of_sequences(e, agents, text, bytes)
                        : ring_of_transitions(e, agents, text, bytes);
}

/* Rows of a lane from a sample's first row to its last. */
static uint64_t sample_rows(experiment_t *e)
{
    return (uint64_t)(sequences(e) ? e->sample.sequence : 1) + e->sample.n_step;
}

static const char *sample_in_words(experiment_t *e)
{
    return sequences(e) ? "sample.sequence + sample.n_step" : "sample.n_step + 1";
}

/* Items that an actor asks the limiter for: a row, or one lane of it if a row is never granted
 * (actor/actor.c). */
static double asked_for(experiment_t *e, uint32_t agents)
{
    const uint32_t worlds = (e->actor.worlds + e->actor.count - 1) / e->actor.count;
    const double row = (double)worlds * agents;
    return row * e->limiter.updates_per_step <= 2 * e->limiter.slack_updates - 1 ? row : 1;
}

/* Least number of rows of a lane when all actors wait: they insert until min_fill is reached, and
 * then as far as the limiter's slack allows. */
static uint64_t rows_before_first(experiment_t *e, uint32_t agents)
{
    const uint64_t lanes = lanes_of(e, agents), fill = (e->sample.min_fill + lanes - 1) / lanes;
    const double more =
        e->limiter.slack_updates / e->limiter.updates_per_step - asked_for(e, agents);
    const double slack = more < 0 ? 0 : floor(more / (double)lanes) + 1;
    return slack > (double)fill ? (uint64_t)fmin(slack, 1e18) : fill;
}

/* Without a limiter, and in rounds, actors do not wait for the learner. */
static bool fill_sample(experiment_t *e, uint32_t agents, char *text, size_t bytes)
{
    if (!rm_fills_replay(e) || rm_form_traits(e->algorithm.form)->slots ||
        e->mode != RM_MODE_FREE || e->limiter.updates_per_step <= 0)
        return false;
    const uint64_t there = rows_before_first(e, agents), needed = sample_rows(e);
    return there < needed &&
           SAY("deadlock: actors would stop after %" PRIu64
               " %s of %s until the first update, which needs %" PRIu64
               " rows of a sample (%s); use at least %" PRIu64,
               there, rm_plural(there, "row", "rows"), lanes_in_words(e, agents).s, needed,
               sample_in_words(e), (needed - 1) * lanes_of(e, agents) + 1);
}

static bool fill_run(experiment_t *e, uint32_t agents, char *text, size_t bytes)
{
    struct words of = {""};
    if (agents > 1)
        snprintf(of.s, sizeof of.s, " of %u agents", agents);
    return rm_fills_replay(e) && e->run.steps &&
           (e->sample.min_fill + agents - 1) / agents > e->run.steps &&
           SAY("%" PRIu64 " transitions before the first update, but the run ends after %" PRIu64
               " steps (run.steps)%s: nothing would be learned",
               e->sample.min_fill, e->run.steps, of.s);
}

/* A step is a step of one world. An actor's last vector step may exceed run.steps, and one more row
 * follows it. */
static bool run_length(experiment_t *e, uint32_t agents, char *text, size_t bytes)
{
    const uint64_t rows = (e->run.steps + e->actor.worlds - 1) / e->actor.worlds + 1;
    (void)agents;
    return rm_fills_replay(e) && !rm_form_traits(e->algorithm.form)->slots && e->run.steps &&
           rows < sample_rows(e) &&
           SAY("%" PRIu64 " steps are %" PRIu64 " rows of %s, and a sample spans %" PRIu64
               " (%s): nothing would be learned; use at least %" PRIu64,
               e->run.steps, rows, lanes_in_words(e, 1).s, sample_rows(e), sample_in_words(e),
               (sample_rows(e) - 1) * e->actor.worlds);
}

static bool minibatch_rows(experiment_t *e, uint32_t agents, char *text, size_t bytes)
{
    const uint64_t rows = e->rollout.steps * lanes_of(e, agents);
    return rollout(e) && e->algorithm.minibatches > rows &&
           SAY("%u parts of a rollout of %" PRIu64 " rows (rollout.steps %u of %s); at most that "
               "many",
               e->algorithm.minibatches, rows, e->rollout.steps, lanes_in_words(e, agents).s);
}

const struct rm_policy_check rm_checks_of_supply[] = {
    {.check = {.keys = {"ring.capacity", "algorithm.name", "sample.frame_stack", "sample.n_step",
                        "sample.sequence", "sample.period", "actor.worlds"},
               .doc = "The ring holds, for every world and each agent of the policy, the rows of "
                      "one sample: its frames and its n steps; for r2d2 the rows of a sequence and "
                      "those until the next one begins."},
     .wrong = ring_sample},
    {.check = {.keys = {"sample.min_fill", "algorithm.name", "sample.n_step", "sample.sequence",
                        "actor.worlds", "limiter.updates_per_step", "limiter.slack_updates",
                        "mode"},
               .doc = "Free mode: when actors wait for the first update, the ring has a whole "
                      "sample of a lane: its n steps, for r2d2 a sequence."},
     .wrong = fill_sample},
    {.check = {.keys = {"sample.min_fill", "run.steps", "policy.map"},
               .doc = "The run has enough steps for sample.min_fill."},
     .wrong = fill_run,
     .more_agents_help = true},
    {.check = {.keys = {"run.steps", "algorithm.name", "sample.n_step", "sample.sequence",
                        "actor.worlds"},
               .doc = "The run is long enough for a whole sample of a lane."},
     .wrong = run_length},
    {.check = {.keys = {"algorithm.minibatches", "algorithm.name", "rollout.steps", "actor.worlds",
                        "policy.map"},
               .doc = "ppo, appo, vtrace: every minibatch has at least one row."},
     .wrong = minibatch_rows,
     .more_agents_help = true},
};
const size_t rm_checks_of_supply_count =
    sizeof(rm_checks_of_supply) / sizeof(rm_checks_of_supply[0]);
