#include "config/check.h"

#include "config/traits.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

typedef const struct rm_experiment experiment_t;

#define SAY(...) (snprintf(text, bytes, __VA_ARGS__), true)

static bool sorrel(experiment_t *e)
{
    return e->algorithm.form != RM_FORM_PAPER;
}

static bool rollout(experiment_t *e)
{
    return rm_algorithm_traits(e->algorithm.name)->rollout;
}

static uint32_t layers_of(experiment_t *e, enum rm_layer_type type)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->network.layer_count; i++)
        count += e->network.layers[i].type == type;
    return count;
}

/* --- worlds and processes ------------------------------------------------------------------ */

static bool worlds_per_actor(experiment_t *e, char *text, size_t bytes)
{
    return e->actor.worlds < e->actor.count &&
           SAY("%u worlds for %u actors (actor.count): every actor needs one", e->actor.worlds,
               e->actor.count);
}

static bool sandbox_mode(experiment_t *e, char *text, size_t bytes)
{
    return e->actor.sandbox == RM_SANDBOX_ON && e->mode == RM_MODE_SEQUENTIAL &&
           SAY("\"on\" in mode \"sequential\": worlds and learners are one process there, and "
               "learners write files");
}

#define MEMORY_LEAST (UINT64_C(64) << 20)

static bool memory_least(experiment_t *e, char *text, size_t bytes)
{
    return e->actor.memory_limit > 0 && e->actor.memory_limit < MEMORY_LEAST &&
           SAY("%" PRIu64 " bytes are too few for the actor itself: at least %" PRIu64,
               e->actor.memory_limit, MEMORY_LEAST);
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

/* --- priorities ---------------------------------------------------------------------------- */

static bool priority_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return e->priority.kind != RM_PRIORITY_UNIFORM &&
           rm_algorithm_traits(e->algorithm.name)->rollout &&
           SAY("\"%s\" is for replay; algorithm.name %s takes every rollout once",
               rm_priority_names[e->priority.kind], rm_algorithm_names[e->algorithm.name]);
}

static bool priority_form(experiment_t *e, char *text, size_t bytes)
{
    return e->priority.kind != RM_PRIORITY_UNIFORM && sorrel(e) &&
           SAY("\"%s\"; algorithm.form %s draws all alike", rm_priority_names[e->priority.kind],
               rm_form_names[e->algorithm.form]);
}

static bool beta_falls(experiment_t *e, char *text, size_t bytes)
{
    return e->priority.beta_end < e->priority.beta_start &&
           SAY("%g is below priority.beta_start (%g): the correction grows towards the end",
               e->priority.beta_end, e->priority.beta_start);
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

/* --- algorithm and network ----------------------------------------------------------------- */

static bool cosine_missing(experiment_t *e, char *text, size_t bytes)
{
    return e->algorithm.name == RM_ALGORITHM_IQN && !layers_of(e, RM_LAYER_COSINE_EMBEDDING) &&
           SAY("algorithm.name iqn needs a layer of type cosine_embedding");
}

static bool cosine_twice(experiment_t *e, char *text, size_t bytes)
{
    return layers_of(e, RM_LAYER_COSINE_EMBEDDING) > 1 &&
           SAY("%u layers of type cosine_embedding; allowed is one",
               layers_of(e, RM_LAYER_COSINE_EMBEDDING));
}

static bool cosine_stray(experiment_t *e, char *text, size_t bytes)
{
    return e->algorithm.name != RM_ALGORITHM_IQN && layers_of(e, RM_LAYER_COSINE_EMBEDDING) &&
           SAY("a layer of type cosine_embedding needs algorithm.name iqn, but that is %s",
               rm_algorithm_names[e->algorithm.name]);
}

static bool recurrent_stray(experiment_t *e, char *text, size_t bytes)
{
    return !rollout(e) && !rm_algorithm_traits(e->algorithm.name)->sequences &&
           layers_of(e, RM_LAYER_GRU) + layers_of(e, RM_LAYER_LSTM) > 0 &&
           SAY("recurrent layers learn from sequences (algorithm.name r2d2) or rollouts (ppo, "
               "appo, "
               "vtrace), but algorithm.name is %s",
               rm_algorithm_names[e->algorithm.name]);
}

static bool sequence_stack(experiment_t *e, char *text, size_t bytes)
{
    return rm_algorithm_traits(e->algorithm.name)->sequences && e->sample.frame_stack > 1 &&
           SAY("%u frames; algorithm.name %s remembers what it saw: 1", e->sample.frame_stack,
               rm_algorithm_names[e->algorithm.name]);
}

/* Nothing draws noise for a policy: its layers would be linear ones with sigmas that never move. */
static bool noise_policy(experiment_t *e, char *text, size_t bytes)
{
    bool noisy = e->network.noisy_head || layers_of(e, RM_LAYER_NOISY_LINEAR);
    for (uint32_t i = 0; i < e->network.value_layer_count; i++)
        noisy = noisy || e->network.value_layers[i].type == RM_LAYER_NOISY_LINEAR;
    return rm_algorithm_traits(e->algorithm.name)->policy && noisy &&
           SAY("noisy layers are for algorithms that learn values of actions; algorithm.name %s "
               "draws its actions: use linear layers and no noisy head",
               rm_algorithm_names[e->algorithm.name]);
}

static bool noise_without_sigma(experiment_t *e, char *text, size_t bytes)
{
    return e->network.sigma0 == 0 &&
           (e->network.noisy_head || layers_of(e, RM_LAYER_NOISY_LINEAR)) &&
           SAY("0 makes the noisy layers silent; above 0, or use linear layers and no noisy head");
}

static bool actor_noise_stray(experiment_t *e, char *text, size_t bytes)
{
    return e->actor.noise && !e->network.noisy_head && !layers_of(e, RM_LAYER_NOISY_LINEAR) &&
           SAY("the network has no noisy layers to explore by: noisy_linear layers, or a noisy "
               "head");
}

static bool form_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return sorrel(e) && e->algorithm.name != RM_ALGORITHM_IQN &&
           SAY("%s is a form of iqn, but algorithm.name is %s", rm_form_names[e->algorithm.form],
               rm_algorithm_names[e->algorithm.name]);
}

static bool form_double(experiment_t *e, char *text, size_t bytes)
{
    return sorrel(e) && !e->algorithm.double_q &&
           SAY("algorithm.form %s is double Q-learning; use true",
               rm_form_names[e->algorithm.form]);
}

static bool form_worlds(experiment_t *e, char *text, size_t bytes)
{
    return sorrel(e) && e->actor.worlds != 1 &&
           SAY("%u worlds; algorithm.form %s counts the slots of a ring that one world fills; use "
               "1",
               e->actor.worlds, rm_form_names[e->algorithm.form]);
}

static bool form_policy(experiment_t *e, char *text, size_t bytes)
{
    return sorrel(e) && e->policy.map != RM_MAP_INDEPENDENT &&
           SAY("algorithm.form %s has a ring per agent; use \"independent\"",
               rm_form_names[e->algorithm.form]);
}

/* It draws distinct starts from [0, size - frame_stack - 1). */
static bool form_capacity(experiment_t *e, char *text, size_t bytes)
{
    uint64_t least = (uint64_t)e->sample.batch + e->sample.frame_stack + 1;
    if (!sorrel(e))
        return false;
    if (e->ring.capacity & (e->ring.capacity - 1))
        return SAY("%" PRIu64 " is no power of two; algorithm.form %s addresses the ring by slots: "
                   "1024 is its own figure",
                   e->ring.capacity, rm_form_names[e->algorithm.form]);
    return e->ring.capacity < least &&
           SAY("%" PRIu64 " slots; algorithm.form %s draws %u distinct ones that have "
               "sample.frame_stack + 1 followers: at least %" PRIu64,
               e->ring.capacity, rm_form_names[e->algorithm.form], e->sample.batch, least);
}

/* --- returns and rates ---------------------------------------------------------------------- */

static bool popart_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return e->algorithm.value_head == RM_VALUE_POPART &&
           !rm_algorithm_traits(e->algorithm.name)->value &&
           SAY("popart is for the state value of ppo, appo and vtrace; algorithm.name is %s",
               rm_algorithm_names[e->algorithm.name]);
}

static bool rewards_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return e->algorithm.normalize_rewards && !rollout(e) &&
           SAY("rewards are normalised in rollouts (ppo, appo, vtrace); algorithm.name is %s",
               rm_algorithm_names[e->algorithm.name]);
}

static bool schedule_end(experiment_t *e, char *text, size_t bytes)
{
    return e->optimizer.schedule.kind != RM_SCHEDULE_CONSTANT && !e->optimizer.schedule.span &&
           !e->run.steps &&
           SAY("0 lets the rate fall over the run, which has no end (run.steps 0); say over how "
               "many updates");
}

/* --- frozen opponents ---------------------------------------------------------------------- */

static bool frozen_shared(experiment_t *e, char *text, size_t bytes)
{
    return e->policy.frozen_count && e->policy.map == RM_MAP_SHARED &&
           SAY("policy.map \"shared\" has one policy, which cannot be its own opponent; give the "
               "opponent one with a list such as [0, 1]");
}

static bool frozen_twice(experiment_t *e, char *text, size_t bytes)
{
    for (uint32_t i = 0; i < e->policy.frozen_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (e->policy.frozen[i].policy == e->policy.frozen[j].policy)
                return SAY("policy %u is there twice", e->policy.frozen[i].policy);
    return false;
}

/* Of itself, or of one that stands still as well. */
static bool frozen_of_frozen(experiment_t *e, char *text, size_t bytes)
{
    for (uint32_t i = 0; i < e->policy.frozen_count; i++) {
        const uint32_t p = e->policy.frozen[i].policy, of = e->policy.frozen[i].of;
        if (p == of)
            return SAY("policy %u would take snapshots of itself; \"of\" names a trained one", p);
        for (uint32_t j = 0; j < e->policy.frozen_count; j++)
            if (e->policy.frozen[j].policy == of)
                return SAY("policy %u takes snapshots of policy %u, which is frozen too", p, of);
    }
    return false;
}

static bool frozen_missing(experiment_t *e, char *text, size_t bytes)
{
    uint32_t policies = 0;
    if (e->policy.map != RM_MAP_LIST)
        return false;
    for (uint32_t i = 0; i < e->policy.list_count; i++)
        policies = e->policy.list[i] >= policies ? e->policy.list[i] + 1 : policies;
    for (uint32_t i = 0; i < e->policy.frozen_count; i++) {
        const struct rm_frozen_config *f = &e->policy.frozen[i];
        if (f->policy >= policies || f->of >= policies)
            return SAY("names policy %u; policy.map has 0 to %u",
                       f->policy >= policies ? f->policy : f->of, policies - 1);
    }
    return false;
}

/* --- evaluation ---------------------------------------------------------------------------- */

/* Episodes are shared out evenly over the worlds. */
static bool evaluation_worlds(experiment_t *e, char *text, size_t bytes)
{
    uint32_t most = e->evaluation.episodes > e->evaluation.final_episodes
                        ? e->evaluation.episodes
                        : e->evaluation.final_episodes;
    return e->evaluation.worlds > most &&
           SAY("%u worlds, but no evaluation has more than %u episodes (evaluation.episodes, "
               "evaluation.final_episodes): the rest would never play",
               e->evaluation.worlds, most);
}

/* --- supervisor ---------------------------------------------------------------------------- */

static bool backoff(experiment_t *e, char *text, size_t bytes)
{
    return e->supervisor.backoff_max_s < e->supervisor.respawn_floor_s &&
           SAY("%g s is below supervisor.respawn_floor_s (%g s)", e->supervisor.backoff_max_s,
               e->supervisor.respawn_floor_s);
}

static bool deaths(experiment_t *e, char *text, size_t bytes)
{
    double least = e->supervisor.deaths_max * e->supervisor.respawn_floor_s;
    return least > e->supervisor.deaths_window_s &&
           SAY("%u deaths cannot happen within supervisor.deaths_window_s (%g s) when starts are "
               "supervisor.respawn_floor_s (%g s) apart",
               e->supervisor.deaths_max, e->supervisor.deaths_window_s,
               e->supervisor.respawn_floor_s);
}

const struct rm_check rm_checks[] = {
    {{"actor.worlds", "actor.count"}, worlds_per_actor, "Every actor has a world at least."},
    {{"actor.sandbox", "mode"}, sandbox_mode, "A process of its own is what can be confined."},
    {{"actor.memory_limit"}, memory_least, "The actor itself fits into its memory."},
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
    {{"priority.kind", "algorithm.name"},
     priority_algorithm,
     "Priorities are for algorithms that replay."},
    {{"priority.kind", "algorithm.form"}, priority_form, "The sorrel forms draw uniformly."},
    {{"priority.beta_end", "priority.beta_start"},
     beta_falls,
     "The exponent of the importance weights does not fall."},
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
    {{"network.layers", "algorithm.name"}, cosine_missing, "IQN needs a cosine embedding."},
    {{"network.layers"}, cosine_twice, "There is at most one cosine embedding."},
    {{"network.layers", "algorithm.name"}, cosine_stray, "A cosine embedding is for IQN only."},
    {{"network.layers", "algorithm.name"},
     recurrent_stray,
     "Recurrent layers need an algorithm that learns from sequences or rollouts."},
    {{"sample.frame_stack", "algorithm.name"}, sequence_stack, "r2d2 takes no stacks of frames."},
    {{"network.layers", "network.head.noisy", "network.value_layers", "algorithm.name"},
     noise_policy,
     "sac, ppo, appo and vtrace have no noisy layers."},
    {{"network.sigma0", "network.layers", "network.head.noisy"},
     noise_without_sigma,
     "Noisy layers start with some noise."},
    {{"actor.noise", "network.layers", "network.head.noisy"},
     actor_noise_stray,
     "Exploring by noise needs noisy layers."},
    {{"algorithm.form", "algorithm.name"}, form_algorithm, "The sorrel forms are forms of IQN."},
    {{"algorithm.double_q", "algorithm.form"},
     form_double,
     "The sorrel forms are double Q-learning."},
    {{"actor.worlds", "algorithm.form"}, form_worlds, "The sorrel forms have one world."},
    {{"policy.map", "algorithm.form"}, form_policy, "The sorrel forms have a policy per agent."},
    {{"ring.capacity", "algorithm.form", "sample.batch", "sample.frame_stack"},
     form_capacity,
     "The sorrel forms address the ring by slots: a power of two that holds a batch of stacks."},
    {{"algorithm.value_head", "algorithm.name"},
     popart_algorithm,
     "PopArt is for algorithms with a state value."},
    {{"algorithm.normalize_rewards", "algorithm.name"},
     rewards_algorithm,
     "Rewards are normalised in rollouts."},
    {{"optimizer.schedule.span", "optimizer.schedule.kind", "run.steps"},
     schedule_end,
     "A rate that falls has an end, in updates or with the run."},
    {{"policy.frozen", "policy.map"}, frozen_shared, "A frozen opponent has a policy of its own."},
    {{"policy.frozen"}, frozen_twice, "A policy is frozen once."},
    {{"policy.frozen"}, frozen_of_frozen, "A frozen opponent takes snapshots of a trained policy."},
    {{"policy.frozen", "policy.map"},
     frozen_missing,
     "With a list of policies, those that policy.frozen names are in it."},
    {{"evaluation.worlds", "evaluation.episodes", "evaluation.final_episodes"},
     evaluation_worlds,
     "Every world of the evaluator has an episode to play."},
    {{"supervisor.backoff_max_s", "supervisor.respawn_floor_s"},
     backoff,
     "The longest wait is no shorter than the shortest."},
    {{"supervisor.deaths_max", "supervisor.deaths_window_s", "supervisor.respawn_floor_s"},
     deaths,
     "The death tally can be reached within its window."},
};
const size_t rm_check_count = sizeof(rm_checks) / sizeof(rm_checks[0]);

void rm_check_all(const struct rm_experiment *experiment, struct rm_findings *findings)
{
    size_t own = findings->count; /* findings of single keys; contradictions do not hide others */
    for (size_t i = 0; i < rm_check_count; i++) {
        const struct rm_check *check = &rm_checks[i];
        char text[sizeof(findings->list[0].text)];
        bool sound = true;
        for (size_t k = 0; k < RM_CHECK_KEYS && check->keys[k]; k++)
            sound = sound && !rm_findings_touch(findings, own, check->keys[k]);
        if (sound && check->wrong(experiment, text, sizeof(text)))
            rm_find(findings, check->keys[0], false, "%s", text);
    }
}
