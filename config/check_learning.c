/* implements: config/check.h, for learning: algorithm, network, priorities, rates, opponents. */
#include "config/check_tables.h"

#include "config/traits.h"

#include <inttypes.h>
#include <stdio.h>

typedef const struct rm_experiment experiment_t;

#define SAY(...) (snprintf(text, bytes, __VA_ARGS__), true)

static bool sorrel(experiment_t *e)
{
    return e->algorithm.form != RM_FORM_PAPER;
}

static uint32_t layers_of(experiment_t *e, enum rm_layer_type type)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < e->network.layer_count; i++)
        count += e->network.layers[i].type == type;
    for (uint32_t i = 0; i < e->network.input_count; i++)
        for (uint32_t j = 0; j < e->network.inputs[i].layer_count; j++)
            count += e->network.input_layers[e->network.inputs[i].first + j].type == type;
    return count;
}

/* --- priorities ---------------------------------------------------------------------------- */

static bool priority_algorithm(experiment_t *e, char *text, size_t bytes)
{
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(e->algorithm.name);
    return e->priority.kind != RM_PRIORITY_UNIFORM && (traits->value || traits->histories) &&
           SAY("\"%s\" draws by the errors of action values, and algorithm.name %s has none; use "
               "\"uniform\"",
               rm_priority_names[e->priority.kind], rm_algorithm_names[e->algorithm.name]);
}

static bool priority_form(experiment_t *e, char *text, size_t bytes)
{
    return e->priority.kind != RM_PRIORITY_UNIFORM && sorrel(e) &&
           SAY("\"%s\": algorithm.form %s draws uniformly; use \"uniform\"",
               rm_priority_names[e->priority.kind], rm_form_names[e->algorithm.form]);
}

static bool beta_falls(experiment_t *e, char *text, size_t bytes)
{
    return e->priority.beta_end < e->priority.beta_start &&
           SAY("%g is below priority.beta_start (%g): the correction must not fall",
               e->priority.beta_end, e->priority.beta_start);
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
           SAY("a layer of type cosine_embedding needs algorithm.name iqn, but it is %s",
               rm_algorithm_names[e->algorithm.name]);
}

static bool recurrent_stray(experiment_t *e, char *text, size_t bytes)
{
    return !rm_algorithm_traits(e->algorithm.name)->rollout && !rm_learns_sequences(e) &&
           rm_network_is_recurrent(&e->network) &&
           SAY("recurrent layers learn from sequences (algorithm.name r2d2, clone) or rollouts "
               "(ppo, appo, vtrace), but algorithm.name is %s",
               rm_algorithm_names[e->algorithm.name]);
}

static bool sequence_stack(experiment_t *e, char *text, size_t bytes)
{
    return rm_learns_sequences(e) && e->sample.frame_stack > 1 &&
           SAY("%u frames: algorithm.name %s has a recurrent state and takes no stacks; use 1",
               e->sample.frame_stack, rm_algorithm_names[e->algorithm.name]);
}

/* Policies draw no noise: their noisy layers would be linear ones with sigmas that never change. */
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
           SAY("0 removes the noise of noisy layers; use a value above 0, or linear layers and no "
               "noisy head");
}

static bool actor_noise_stray(experiment_t *e, char *text, size_t bytes)
{
    return e->actor.noise && !e->network.noisy_head && !layers_of(e, RM_LAYER_NOISY_LINEAR) &&
           SAY("the network has no noisy layers to explore with; add noisy_linear layers, or set "
               "network.head.noisy");
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

/* The form draws distinct starts from [0, size - frame_stack - 1). */
static bool form_capacity(experiment_t *e, char *text, size_t bytes)
{
    uint64_t least = (uint64_t)e->sample.batch + e->sample.frame_stack + 1;
    if (!sorrel(e))
        return false;
    if (e->ring.capacity & (e->ring.capacity - 1))
        return SAY("%" PRIu64 " is not a power of two; algorithm.form %s addresses the ring by "
                   "slots (the original has 1024)",
                   e->ring.capacity, rm_form_names[e->algorithm.form]);
    return e->ring.capacity < least &&
           SAY("%" PRIu64 " slots: algorithm.form %s draws %u distinct ones with "
               "sample.frame_stack + 1 slots after them; use at least %" PRIu64,
               e->ring.capacity, rm_form_names[e->algorithm.form], e->sample.batch, least);
}

/* --- returns and rates --------------------------------------------------------------------- */

static bool popart_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return e->algorithm.value_head == RM_VALUE_POPART &&
           !rm_algorithm_traits(e->algorithm.name)->value &&
           SAY("popart is for the state value of ppo, appo and vtrace; algorithm.name is %s",
               rm_algorithm_names[e->algorithm.name]);
}

static bool maximum_clip(experiment_t *e, char *text, size_t bytes)
{
    return e->algorithm.value_clip_maximum == RM_MAXIMUM_OF_MEANS && e->algorithm.value_clip == 0 &&
           SAY("\"means\" compares clipped values, but algorithm.value_clip is 0, which means no "
               "clipping; use \"samples\"");
}

static bool rewards_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return e->algorithm.normalize_rewards && !rm_algorithm_traits(e->algorithm.name)->rollout &&
           SAY("only rewards of rollouts (ppo, appo, vtrace) are normalised; algorithm.name is %s",
               rm_algorithm_names[e->algorithm.name]);
}

static bool sparse_optimizer(experiment_t *e, char *text, size_t bytes)
{
    return e->optimizer.sparse && e->optimizer.name != RM_OPTIMIZER_ADAM &&
           e->optimizer.name != RM_OPTIMIZER_ADAMW &&
           SAY("only adam and adamw can skip rows without a gradient; optimizer.name is %s",
               rm_optimizer_names[e->optimizer.name]);
}

static bool schedule_end(experiment_t *e, char *text, size_t bytes)
{
    return e->optimizer.schedule.kind != RM_SCHEDULE_CONSTANT && !e->optimizer.schedule.span &&
           !e->run.steps && !rm_experiment_only_evaluates(e) &&
           SAY("0 lets the rate fall over the run, which has no end (run.steps 0); set a number of "
               "updates");
}

static bool bound_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return e->algorithm.name == RM_ALGORITHM_SAC && e->algorithm.bound == RM_BOUND_CLIP &&
           SAY("clip is for ppo, appo and vtrace; sac learns through tanh: use tanh or auto");
}

static bool random_algorithm(experiment_t *e, char *text, size_t bytes)
{
    return e->actor.random_steps && e->algorithm.name != RM_ALGORITHM_SAC &&
           SAY("random real actions are for sac; algorithm.name %s explores by its own draws",
               rm_algorithm_names[e->algorithm.name]);
}

/* --- frozen opponents ---------------------------------------------------------------------- */

static bool frozen_shared(experiment_t *e, char *text, size_t bytes)
{
    return e->policy.frozen_count && e->policy.map == RM_MAP_SHARED &&
           SAY("policy.map \"shared\" has one policy, which cannot be its own opponent; give the "
               "opponent a policy of its own with a list such as [0, 1]");
}

static bool frozen_twice(experiment_t *e, char *text, size_t bytes)
{
    for (uint32_t i = 0; i < e->policy.frozen_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (e->policy.frozen[i].policy == e->policy.frozen[j].policy)
                return SAY("policy %u is listed twice", e->policy.frozen[i].policy);
    return false;
}

/* The source policy is itself, or is frozen too. */
static bool frozen_of_frozen(experiment_t *e, char *text, size_t bytes)
{
    for (uint32_t i = 0; i < e->policy.frozen_count; i++) {
        const uint32_t p = e->policy.frozen[i].policy, of = e->policy.frozen[i].of;
        if (p == of)
            return SAY("policy %u cannot take snapshots of itself; \"of\" must be a trained policy",
                       p);
        for (uint32_t j = 0; j < e->policy.frozen_count; j++)
            if (e->policy.frozen[j].policy == of)
                return SAY("policy %u takes snapshots of policy %u, which is frozen too; \"of\" "
                           "must be a trained policy",
                           p, of);
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

static const struct rm_check rows[] = {
    {{"priority.kind", "algorithm.name"},
     priority_algorithm,
     "Priorities are for algorithms that learn values of actions."},
    {{"priority.kind", "algorithm.form"}, priority_form, "The sorrel forms draw uniformly."},
    {{"priority.beta_end", "priority.beta_start"},
     beta_falls,
     "The exponent of the importance weights must not fall."},
    {{"network.layers", "algorithm.name"}, cosine_missing, "IQN needs a cosine embedding."},
    {{"network.layers"}, cosine_twice, "There is at most one cosine embedding."},
    {{"network.layers", "algorithm.name"}, cosine_stray, "A cosine embedding is for IQN only."},
    {{"network.layers", "algorithm.name"},
     recurrent_stray,
     "Recurrent layers need an algorithm that learns from sequences or rollouts."},
    {{"sample.frame_stack", "algorithm.name", "network.layers"},
     sequence_stack,
     "Sequences of a recurrent network have no stacks of frames."},
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
    {{"algorithm.value_clip_maximum", "algorithm.value_clip"},
     maximum_clip,
     "Values that are not clipped have one error."},
    {{"algorithm.normalize_rewards", "algorithm.name"},
     rewards_algorithm,
     "Rewards are normalised in rollouts."},
    {{"optimizer.sparse", "optimizer.name"},
     sparse_optimizer,
     "Only Adam and AdamW skip rows of tables without a gradient."},
    {{"optimizer.schedule.span", "optimizer.schedule.kind", "run.steps"},
     schedule_end,
     "A falling rate ends after a number of updates or with the run."},
    {{"algorithm.bound", "algorithm.name"}, bound_algorithm, "sac bounds real actions by tanh."},
    {{"actor.random_steps", "algorithm.name"},
     random_algorithm,
     "Random real actions at the start are for sac."},
    {{"policy.frozen", "policy.map"}, frozen_shared, "A frozen opponent has a policy of its own."},
    {{"policy.frozen"}, frozen_twice, "A policy is frozen once."},
    {{"policy.frozen"}, frozen_of_frozen, "A frozen opponent takes snapshots of a trained policy."},
    {{"policy.frozen", "policy.map"},
     frozen_missing,
     "With a list of policies, those that policy.frozen names are in it."},
};
const struct rm_check_table rm_checks_of_learning = {rows, sizeof(rows) / sizeof(rows[0])};
