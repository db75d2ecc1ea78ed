#include "actor/worlds/plan.h"

#include "actor/worlds/builtin/device_rules.h"
#include "actor/worlds/described.h"
#include "actor/worlds/worlds.h"
#include "config/check.h"
#include "config/names.h"
#include "config/policy_from.h"
#include "config/traits.h"
#include "learner/net/features.h"
#include "learner/net/history.h"
#include "learner/net/reals.h"
#include "learner/net/net.h"
#include "learner/net/policy_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool rm_plan_values(const struct rm_experiment *experiment)
{
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(experiment->algorithm.name);

    return traits->synchronous && traits->value && !experiment->rollout.max_policy_lag &&
           experiment->network.trunk == RM_TRUNK_SHARED && !experiment->actor.noise;
}

size_t rm_plan_act_count(const struct rm_experiment *experiment, const struct rm_net *net)
{
    return experiment->actor.noise || rm_plan_values(experiment) ? rm_net_param_count(net)
                                                                 : rm_net_act_count(net);
}

uint32_t rm_plan_outputs_per_action(const struct rm_experiment *experiment)
{
    return rm_algorithm_traits(experiment->algorithm.name)->quantiles
               ? experiment->algorithm.quantiles
               : 1;
}

_Static_assert(RM_INPUTS_MAX == RM_ENV_MAX_OBSERVATIONS, "a network takes all observations");

/* How an observation is laid out: CODE8 becomes channels before the observation's own dimensions;
 * frames of a stack come before everything and join the channels of an image. What is counted and
 * decoded has channels between its items: a vector. */
static void lay_out(const struct rm_env_observation *of, bool codes, uint32_t stack,
                    struct rm_net_observation *to)
{
    uint32_t dims = of->dims;
    to->low = of->low;
    to->high = of->high;
    for (uint32_t d = 0; d < dims; d++)
        to->dim[d] = of->shape[d];
    if (of->dtype == RM_ENV_CODE8 && codes) {
        to->low = 0;
        to->high = of->codes - 1.0;
    } else if (of->dtype == RM_ENV_CODE8 && dims == 2) {
        to->dim[2] = to->dim[1];
        to->dim[1] = to->dim[0];
        to->dim[0] = of->channels;
        dims = 3;
    }
    if (dims == 2 && stack > 1 && !of->counted) { /* one channel a frame */
        to->dim[2] = to->dim[1];
        to->dim[1] = to->dim[0];
        to->dim[0] = 1;
        dims = 3;
    }
    to->dim[0] *= stack;
    to->dims = of->counted && of->dtype == RM_ENV_CODE8 && !codes ? 0 : dims;
}

static void lay_out_all(const struct rm_env_agent *agent, uint32_t codes, uint32_t stack,
                        struct rm_net_shape *shape)
{
    shape->observations = agent->observations;
    for (uint32_t i = 0; i < agent->observations; i++) {
        const struct rm_env_observation *of = &agent->observation[i];
        const struct rm_observation_place place = rm_features_place(agent, codes, i);
        struct rm_net_observation *to = &shape->observation[i];
        lay_out(of, place.codes, stack, to);
        snprintf(to->name, sizeof to->name, "%s", of->name);
        to->at = place.words_at * stack;
        to->counts = place.count * stack;
        to->words = place.words * stack;
        to->item = of->counted ? place.words / of->shape[0] : 0;
    }
}

/* Are queries of histories observations as they are, or rows of a table? */
static bool ties_queries(const struct rm_network_config *network)
{
    return network->layer_count > 0 && network->layers[0].tied;
}

struct rm_net_shape rm_plan_net_shape(const struct rm_experiment *experiment,
                                      const struct rm_env_agent *agent)
{
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(experiment->algorithm.name);
    const uint32_t stack = experiment->sample.frame_stack;
    const uint32_t codes = rm_network_codes(&experiment->network, agent);
    const struct rm_env_observation first = rm_features_observation(agent, 0);
    if (traits->histories)
        return rm_history_shape(2 * experiment->sample.region + 2, experiment->sample.region,
                                rm_features_step_count(agent),
                                ties_queries(&experiment->network) ? 0 : rm_features_codes(agent),
                                agent->actions, RM_HISTORY_TYPES);
    struct rm_net_shape shape = {
        .inputs = rm_features_words(agent, codes) * stack,
        .actions = agent->actions,
        .outputs_per_action = rm_plan_outputs_per_action(experiment),
        .head = !traits->policy ? RM_HEAD_VALUES
                : traits->value ? RM_HEAD_ACTOR_CRITIC
                                : RM_HEAD_LOGITS,
        .choices = agent->choices,
        .reals = rm_env_reals(agent),
        .deviation_of_state = rm_deviation_of_state(experiment),
    };
    for (uint32_t c = 0; c < RM_CHOICES_MAX; c++)
        shape.choice_actions[c] = agent->choice_actions[c];
    struct rm_net_observation one = {.dims = 0};
    if (agent->observations > 1 || first.counted || experiment->network.input_count) {
        lay_out_all(agent, codes, stack, &shape);
        return shape;
    }
    lay_out(&first, codes, stack, &one);
    shape.low = one.low;
    shape.high = one.high;
    shape.dims = one.dims;
    memcpy(shape.dim, one.dim, sizeof shape.dim);
    return shape;
}

_Static_assert(RM_ENV_MAX_FIGURES == RM_BOARD_FIGURES && RM_ENV_MAX_WORDS == RM_BOARD_WORDS,
               "figures of worlds fit on the board");

static void take_figures(struct rm_plan *plan, const struct rm_env_spec *spec)
{
    plan->figures = spec->figures;
    for (uint32_t f = 0; f < spec->figures; f++) {
        const struct rm_env_figure *from = &spec->figure[f];
        struct rm_board_figure *to = &plan->figure[f];
        snprintf(to->name, sizeof to->name, "%s", from->name);
        to->words = rm_env_figure_words(from);
        for (uint32_t i = 0; i < to->words; i++)
            snprintf(to->word[i], sizeof to->word[i], "%s", from->words[i]);
    }
}

static int map_agents(struct rm_plan *plan, const struct rm_experiment *e,
                      const struct rm_env_spec *spec, struct rm_error *error)
{
    if (spec->agents > RM_BOARD_AGENTS)
        return rm_fail(error, -E2BIG, "world.name: \"%s\" has %u agents; at most %d", spec->name,
                       spec->agents, RM_BOARD_AGENTS);
    if (e->policy.map == RM_MAP_LIST && e->policy.list_count != spec->agents)
        return rm_fail(error, -EINVAL,
                       "policy.map: lists %u agents; world \"%s\" has %u (one entry each)",
                       e->policy.list_count, spec->name, spec->agents);
    plan->agents = spec->agents;
    plan->phases = spec->phases;
    for (uint32_t a = 0; a < spec->agents; a++) {
        uint32_t p = e->policy.map == RM_MAP_SHARED ? 0
                     : e->policy.map == RM_MAP_LIST ? e->policy.list[a]
                                                    : a;
        if (p >= RM_BOARD_POLICIES)
            return rm_fail(error, -E2BIG, "policy.map: agent %u uses policy %u; at most %d", a, p,
                           RM_BOARD_POLICIES - 1);
        snprintf(plan->agent_name[a], RM_NAME_MAX, "%.47s", spec->agent[a].name);
        plan->agent_policy[a] = p;
        plan->agent_slot[a] = plan->policy[p].agents;
        plan->policy[p].agent[plan->policy[p].agents++] = a;
        if (p + 1 > plan->policies)
            plan->policies = p + 1;
    }
    for (uint32_t p = 0; p < plan->policies; p++)
        if (plan->policy[p].agents == 0)
            return rm_fail(
                error, -EINVAL,
                "policy.map: no agent uses policy %u; number policies from 0 without gaps", p);
    return 0;
}

static bool sees_alike(const struct rm_env_agent *a, const struct rm_env_agent *b)
{
    bool same = a->observations == b->observations;
    for (uint32_t i = 0; same && i < rm_features_observations(a); i++) {
        const struct rm_env_observation x = rm_features_observation(a, i),
                                        y = rm_features_observation(b, i);
        same = x.dtype == y.dtype && x.counted == y.counted &&
               rm_observation_elements(&x) == rm_observation_elements(&y) &&
               (x.dtype != RM_ENV_CODE8 || x.channels == y.channels) &&
               (!x.name || strcmp(x.name, y.name) == 0);
    }
    return same;
}

static bool alike(const struct rm_env_agent *a, const struct rm_env_agent *b)
{
    return sees_alike(a, b) && a->actions == b->actions && a->has_mask == b->has_mask &&
           a->choices == b->choices && rm_env_boxes_alike(a, b) &&
           memcmp(a->choice_actions, b->choice_actions, sizeof a->choice_actions) == 0;
}

/* Steps of a history are discrete actions; its queries are observations, for a table as whole
 * numbers. */
static int check_history(const struct rm_network_config *network, const struct rm_env_agent *agent,
                         struct rm_error *error)
{
    if (agent->actions == 0 || agent->choices > 1 || agent->boxes)
        return rm_fail(
            error, -EINVAL,
            "algorithm.name distill learns from histories of one discrete action a step; "
            "agent %s has others",
            agent->name);
    if (agent->has_mask)
        return rm_fail(error, -EINVAL,
                       "algorithm.name distill learns from histories without masks of legal "
                       "actions; agent %s has masks",
                       agent->name);
    if (!ties_queries(network) && !rm_features_codes(agent))
        return rm_fail(error, -EINVAL,
                       "network: the table of queries needs observations of whole numbers within "
                       "bounds, at most 2^24 different ones; those of agent %s are not: set `tied` "
                       "in the layer `history`",
                       agent->name);
    return 0;
}

/* The path of the layers that read observation i of an agent. */
static const char *embedding_list(const struct rm_network_config *network,
                                  const struct rm_env_agent *agent, uint32_t i, char *path,
                                  size_t bytes)
{
    if (!network->input_count || !agent->observations)
        return "network.layers";
    rm_network_input_path(network, rm_network_input(network, agent->observation[i].name), path,
                          bytes);
    return path;
}

static int size_policy(struct rm_policy_plan *policy, uint32_t index, const struct rm_plan *plan,
                       const struct rm_experiment *e, const struct rm_env_spec *spec,
                       struct rm_error *error)
{
    const struct rm_env_agent *first = &spec->agent[policy->agent[0]];
    char list[RM_KEY_PATH_MAX];

    for (uint32_t i = 1; i < policy->agents; i++)
        if (!alike(first, &spec->agent[policy->agent[i]]))
            return rm_fail(error, -EINVAL,
                           "policy.map: agents %s and %s share policy %u, but their observations "
                           "or actions differ; give each agent its own policy",
                           first->name, spec->agent[policy->agent[i]].name, index);
    if (e->policy.map == RM_MAP_INDEPENDENT)
        memcpy(policy->name, plan->agent_name[policy->agent[0]], RM_NAME_MAX);
    else if (plan->policies == 1)
        snprintf(policy->name, RM_NAME_MAX, "shared");
    else
        snprintf(policy->name, RM_NAME_MAX, "policy_%u", index);
    policy->obs_bytes = (uint32_t)rm_env_obs_bytes(first);
    const uint32_t codes = rm_network_codes(&e->network, first);
    for (uint32_t i = 0; i < rm_features_observations(first); i++)
        if (codes >> i & 1 && rm_features_observation(first, i).dtype == RM_ENV_F32)
            return rm_fail(error, -EINVAL,
                           "%s[0]: embedding: world \"%s\" shows agent %s real numbers; an "
                           "embedding takes whole ones",
                           embedding_list(&e->network, first, i, list, sizeof list), spec->name,
                           first->name);
    policy->features = rm_features_words(first, codes);
    policy->inputs = policy->features * e->sample.frame_stack;
    policy->actions = first->actions;
    policy->mask_bytes = first->has_mask ? first->actions : 0;

    policy->choices = first->choices > 1 ? first->choices : first->actions > 0;
    policy->reals = rm_env_reals(first);
    policy->action_words = policy->choices + policy->reals;
    const struct rm_algorithm_traits *traits = rm_algorithm_traits(e->algorithm.name);
    if (policy->choices > 1 && !traits->rollout)
        return rm_fail(error, -EINVAL,
                       "world \"%s\": %u choices a step; algorithms that learn from replay support "
                       "only one choice; use ppo, appo or vtrace",
                       spec->name, policy->choices);
    if (policy->reals && !traits->policy)
        return rm_fail(error, -EINVAL,
                       "world \"%s\": agent %s chooses real numbers; %s learns values of discrete "
                       "actions: use ppo, appo, vtrace or sac",
                       spec->name, first->name, rm_algorithm_names[e->algorithm.name]);
    if (policy->reals && policy->choices && !traits->rollout)
        return rm_fail(error, -EINVAL,
                       "world \"%s\": agent %s chooses real numbers beside discrete actions; sac "
                       "takes either: use ppo, appo or vtrace",
                       spec->name, first->name);
    if (policy->reals && rm_learns_sequences(e))
        return rm_fail(error, -EINVAL,
                       "world \"%s\": agent %s chooses real numbers; a recurrent network is cloned "
                       "only from discrete actions: use layers without a state",
                       spec->name, first->name);
    const int fits = traits->histories ? check_history(&e->network, first, error) : 0;
    if (fits < 0)
        return rm_fail_within(error, fits, "policy %s", policy->name);
    policy->frozen = rm_frozen_policy(e, index) != NULL;
    policy->shape = rm_plan_net_shape(e, first);
    struct rm_net *net;
    int r = rm_net_compile(&net, &e->network, &policy->shape, error);
    if (r < 0)
        return rm_fail_within(error, r, "policy %s", policy->name);
    policy->param_count = rm_net_param_count(net);
    policy->act_count = rm_plan_act_count(e, net);
    policy->values = rm_plan_values(e) && !policy->frozen;
    policy->state_floats = rm_net_state_count(net) - rm_net_value_state_count(net);
    if (e->actor.device != RM_ACTOR_CPU && (codes || rm_net_is_recurrent(net)))
        r = rm_fail(error, -EINVAL,
                    "actor.device: \"%s\": networks that act in worlds on a device have no "
                    "recurrent layers and no embedding of the observation",
                    rm_actor_device_names[e->actor.device]);
    rm_net_destroy(net);
    return r;
}

/* Checks that a policy's agents yield as many rows together as its learner needs. */
static int check_supply(const struct rm_policy_plan *policy, const struct rm_experiment *e,
                        struct rm_error *error)
{
    char words[RM_ERROR_TEXT];
    const char *key =
        policy->frozen ? NULL : rm_check_policy(e, policy->agents, words, sizeof words);
    return key ? rm_fail(error, -EINVAL, "%s: policy %s: %s", key, policy->name, words) : 0;
}

/* What two policies' agents see and do makes a snapshot of one fit the other. */
static int check_frozen(const struct rm_plan *plan, const struct rm_experiment *e,
                        const struct rm_env_spec *spec, struct rm_error *error)
{
    for (uint32_t i = 0; i < e->policy.frozen_count; i++) {
        const struct rm_frozen_config *f = &e->policy.frozen[i];
        if (f->policy >= plan->policies || f->of >= plan->policies)
            return rm_fail(
                error, -EINVAL, "policy.frozen: names policy %u; world \"%s\" has 0 to %u",
                f->policy >= plan->policies ? f->policy : f->of, spec->name, plan->policies - 1);
        const struct rm_policy_plan *own = &plan->policy[f->policy], *of = &plan->policy[f->of];
        if (!alike(&spec->agent[own->agent[0]], &spec->agent[of->agent[0]]))
            return rm_fail(error, -EINVAL,
                           "policy.frozen: policy %s cannot take snapshots of %s: the observations "
                           "or actions of their agents differ",
                           own->name, of->name);
    }
    return 0;
}

/* Worlds on a device are compiled for it, and so is acting in them. */
static int check_native(const struct rm_experiment *e, struct rm_error *error)
{
    if (e->actor.device == RM_ACTOR_CPU)
        return 0;
    if (rm_experiment_is_foreign(e) || !rm_device_rules_of(e->world.name))
        return rm_fail(error, -EINVAL,
                       "actor.device: \"%s\": world \"%s\" is not compiled for a device; these "
                       "are: %s",
                       rm_actor_device_names[e->actor.device], e->world.name,
                       rm_device_rules_names());
    return 0;
}

/* --- curriculum ------------------------------------------------------------------------------ */

static int find_agent(const struct rm_plan *plan, const char *name)
{
    for (uint32_t a = 0; a < plan->agents; a++)
        if (!name[0] || !strcmp(plan->agent_name[a], name))
            return (int)a;
    return -1;
}

/* "success", or "end.time". */
static bool find_figure(const struct rm_plan *plan, const char *name, struct rm_plan_figure *to)
{
    for (uint32_t f = 0; f < plan->figures; f++) {
        const struct rm_board_figure *figure = &plan->figure[f];
        const size_t n = strlen(figure->name);
        to->figure = f;
        to->what = RM_PLAN_FIGURE;
        if (!figure->words && !strcmp(figure->name, name))
            return true;
        to->what = RM_PLAN_WORD;
        if (!figure->words || strncmp(figure->name, name, n) != 0 || name[n] != '.')
            continue;
        for (to->word = 0; to->word < figure->words; to->word++)
            if (!strcmp(figure->word[to->word], name + n + 1))
                return true;
    }
    return false;
}

static void list_figures(const struct rm_plan *plan, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "return, length");
    for (uint32_t f = 0; f < plan->figures && used < size; f++) {
        const struct rm_board_figure *figure = &plan->figure[f];
        if (!figure->words)
            used += (size_t)snprintf(text + used, size - used, ", %s", figure->name);
        for (uint32_t k = 0; k < figure->words && used < size; k++)
            used += (size_t)snprintf(text + used, size - used, ", %s.%s", figure->name,
                                     figure->word[k]);
    }
}

int rm_plan_stage_figure(const struct rm_plan *plan, const struct rm_stage_rule *rule,
                         struct rm_plan_figure *figure, struct rm_error *error)
{
    char all[512];
    *figure = (struct rm_plan_figure){.agent = 0};
    if (!rule->over)
        return 0;
    const int agent = find_agent(plan, rule->agent);
    if (agent < 0)
        return rm_fail(error, -EINVAL, "agent: there is no agent %s", rule->agent);
    figure->agent = (uint32_t)agent;
    if (!strcmp(rule->figure, "return")) {
        figure->what = RM_PLAN_RETURN;
        return 0;
    }
    if (!strcmp(rule->figure, "length")) {
        figure->what = RM_PLAN_LENGTH;
        return 0;
    }
    if (find_figure(plan, rule->figure, figure))
        return 0;
    list_figures(plan, all, sizeof all);
    return rm_fail(error, -EINVAL, "figure: the world has no figure %s; its figures are: %s",
                   rule->figure, all);
}

static int check_curriculum(const struct rm_plan *plan, const struct rm_experiment *e,
                            struct rm_error *error)
{
    struct rm_plan_figure figure;
    if (e->curriculum.stages && plan->phases > 1)
        return rm_fail(error, -EINVAL,
                       "curriculum: the agents of world \"%s\" act in turn; stages are for worlds "
                       "whose agents act at the same time",
                       e->world.name);
    for (uint32_t i = 0; i < e->curriculum.stages; i++) {
        const struct rm_stage_config *stage = &e->curriculum.stage[i];
        int rc = rm_plan_stage_figure(plan, &stage->until, &figure, error);
        if (rc < 0)
            return rm_fail_within(error, rc, "curriculum[%u].until", i);
        rc = rm_plan_stage_figure(plan, &stage->back, &figure, error);
        if (rc < 0)
            return rm_fail_within(error, rc, "curriculum[%u].back", i);
    }
    return 0;
}

int rm_plan_make(struct rm_plan *plan, const struct rm_experiment *experiment,
                 struct rm_error *error)
{
    struct rm_world_spec world;
    int r = rm_world_spec_open(&world, &experiment->world, experiment->seed, error);

    if (r < 0)
        return r;
    memset(plan, 0, sizeof *plan);
    const struct rm_env_spec *spec = world.spec;
    take_figures(plan, spec);
    r = map_agents(plan, experiment, spec, error);
    if (r == 0 && !experiment->world.description) /* otherwise the probe has checked it */
        r = rm_world_check_evaluation(experiment, spec, error);
    if (r == 0)
        r = check_curriculum(plan, experiment, error);
    for (uint32_t p = 0; r == 0 && p < plan->policies; p++)
        r = size_policy(&plan->policy[p], p, plan, experiment, spec, error);
    for (uint32_t p = 0; r == 0 && p < plan->policies; p++)
        r = check_supply(&plan->policy[p], experiment, error);
    if (r == 0)
        r = check_frozen(plan, experiment, spec, error);
    if (r == 0)
        r = check_native(experiment, error);
    if (r == 0 && spec->phases > 1 && experiment->rollout.steps < 2 &&
        rm_algorithm_traits(experiment->algorithm.name)->rollout)
        r = rm_fail(error, -EINVAL,
                    "rollout.steps: 1; world \"%s\" has %u phases, so the last step of a rollout "
                    "only completes the one before: use at least 2",
                    spec->name, spec->phases);
    rm_world_spec_close(&world);
    return r;
}

/* --- policy.from ----------------------------------------------------------------------------- */

bool rm_plan_from(const struct rm_plan *plan, const struct rm_experiment *experiment,
                  uint32_t policy, char *path, size_t bytes)
{
    const struct rm_frozen_config *frozen = rm_frozen_policy(experiment, policy);

    return rm_policy_from(experiment, plan->policy[policy].name, path, bytes) ||
           (frozen && rm_policy_from(experiment, plan->policy[frozen->of].name, path, bytes));
}

struct listed {
    const struct rm_plan *plan;
    struct rm_error *error;
};

static int check_listed(void *user, const char *name)
{
    const struct listed *l = user;
    char all[512] = "";
    size_t used = 0;

    for (uint32_t p = 0; p < l->plan->policies; p++) {
        if (!strcmp(l->plan->policy[p].name, name))
            return 0;
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", p ? ", " : "",
                                     l->plan->policy[p].name);
    }
    return rm_fail(l->error, -EINVAL, "policy.from: there is no policy %.64s; policies are: %s",
                   name, all);
}

int rm_plan_check_from(const struct rm_plan *plan, const struct rm_experiment *experiment,
                       struct rm_error *error)
{
    struct listed listed = {plan, error};
    char path[RM_PATH_TEXT_MAX];
    int rc = rm_policy_from_each(experiment, check_listed, &listed);

    for (uint32_t p = 0; rc == 0 && p < plan->policies; p++) {
        struct rm_net *net;
        if (!rm_plan_from(plan, experiment, p, path, sizeof path))
            continue;
        rc = rm_net_compile(&net, &experiment->network, &plan->policy[p].shape, error);
        if (rc == 0) {
            rc = rm_policy_file_read(net, path, NULL, error);
            rm_net_destroy(net);
        }
        if (rc < 0)
            rm_fail_within(error, rc, "policy.from: policy %s", plan->policy[p].name);
    }
    return rc;
}
