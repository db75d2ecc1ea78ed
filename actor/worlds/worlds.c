#include "actor/worlds/worlds.h"

#include "actor/worlds/bridges/prolog.h"
#include "actor/worlds/bridges/python.h"
#include "actor/worlds/env_v2.h"
#include "actor/worlds/options.h"
#include "actor/worlds/watch.h"
#include "config/config.h"
#include "config/utf8.h"
#include "learner/net/features.h"
#include "shm/base/file.h"
#include "shm/board.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

extern const struct rm_env_ops rm_treasurehunt_ops, rm_cartpole_ops, rm_acrobot_ops,
    rm_mountaincar_ops, rm_mountaincar_continuous_ops, rm_pendulum_ops, rm_frozenlake_ops,
    rm_taxi_ops, rm_goodhart_ops, rm_darkroom_ops, rm_sokoban_ops, rm_connect_ops, rm_prover_ops,
    rm_platformer_ops, rm_count_ops, rm_pairing_ops;

const struct rm_env_ops *const rm_builtin_worlds[] = {
    &rm_treasurehunt_ops,
    &rm_cartpole_ops,
    &rm_acrobot_ops,
    &rm_mountaincar_ops,
    &rm_mountaincar_continuous_ops,
    &rm_pendulum_ops,
    &rm_frozenlake_ops,
    &rm_taxi_ops,
    &rm_goodhart_ops,
    &rm_darkroom_ops,
    &rm_sokoban_ops,
    &rm_connect_ops,
    &rm_prover_ops,
    &rm_platformer_ops,
    &rm_count_ops,
    &rm_pairing_ops,
    NULL,
};

enum { AGENTS_MAX = 64, ACTIONS_MAX = 1 << 16, REALS_MAX = 1024, PICTURE_MAX = 4096 };

/* --- open ------------------------------------------------------------------------------------- */

static int check_ops(const struct rm_env_ops *ops, const char *library, struct rm_error *error)
{
    if (ops->abi_version != RM_ENV_ABI_VERSION)
        return rm_fail(error, -EPROTO,
                       "%s: made for environment ABI %u, this program takes %u and %u; compile it "
                       "against this version's actor/env.h",
                       library, ops->abi_version, RM_ENV_V2, RM_ENV_ABI_VERSION);
    if (ops->struct_size != sizeof(*ops))
        return rm_fail(error, -EPROTO,
                       "%s: struct rm_env_ops has struct_size %u, must be sizeof(struct "
                       "rm_env_ops) = %zu; set it, or compile against this version's actor/env.h",
                       library, ops->struct_size, sizeof(*ops));
    const struct {
        const char *name;
        int missing;
    } required[] = {
        {"name", !ops->name},
        {"create", !ops->create},
        {"describe", !ops->describe},
        {"reset", !ops->reset},
        {"step", !ops->step},
        {"state_size", !ops->state_size},
        {"save_state", !ops->save_state},
        {"load_state", !ops->load_state},
        {"close", !ops->close},
        {"last_error", !ops->last_error},
    };
    for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++)
        if (required[i].missing)
            return rm_fail(error, -EPROTO,
                           "%s: rm_env_ops.%s is NULL; a world must set every member (state_size "
                           "may return 0)",
                           library, required[i].name);
    if (!rm_name_valid(ops->name))
        return rm_fail(error, -EPROTO, "%s: rm_env_ops.name cannot be a name: " RM_NAME_RULE,
                       library);
    return rm_options_check_table(library, ops->options, error);
}

static int open_builtin(struct rm_world *world, const char *name, struct rm_error *error)
{
    for (size_t i = 0; rm_builtin_worlds[i]; i++) {
        if (strcmp(rm_builtin_worlds[i]->name, name) == 0) {
            *world = (struct rm_world){.ops = rm_builtin_worlds[i]};
            return 0;
        }
    }
    const char *names[sizeof(rm_builtin_worlds) / sizeof(rm_builtin_worlds[0])] = {NULL};
    for (size_t i = 0; rm_builtin_worlds[i]; i++)
        names[i] = rm_builtin_worlds[i]->name;
    const char *nearest = rm_nearest(name, names);
    return rm_fail(error, -ENOENT,
                   "there is no built-in world '%s'%s%s%s. A world of your own needs "
                   "world.library, the path of its shared object, or world.python, the function "
                   "that makes it",
                   name, nearest ? "; the nearest is '" : "", nearest ? nearest : "",
                   nearest ? "'" : "");
}

/* Takes the table that the library hands out, if it can be used. */
static int find_table(struct rm_world *world, const char *library, struct rm_error *error)
{
    rm_env_entry_fn entry;
    int rc = 0;
    *(void **)&entry = dlsym(world->library, "rm_env_entry");
    if (!entry)
        return rm_fail(error, -EPROTO,
                       "%s: does not export rm_env_entry; define `const struct rm_env_ops "
                       "*rm_env_entry(void)` with default visibility",
                       library);
    const struct rm_env_ops *ops = entry();
    if (!ops)
        return rm_fail(error, -EPROTO, "%s: rm_env_entry() returned NULL, must return its table",
                       library);
    if (ops->abi_version == RM_ENV_V2) {
        ops = rm_env_v2_adapt(ops, library, &rc, error);
        world->adapted = ops != NULL;
    }
    if (ops) {
        world->ops = ops;
        rc = check_ops(ops, library, error);
    }
    return rc;
}

static int open_library(struct rm_world *world, const char *name, const char *library,
                        struct rm_error *error)
{
    /* dlopen() searches the system's folders for a name without a slash; a path is meant. */
    char path[RM_PATH_TEXT_MAX + 2];
    snprintf(path, sizeof(path), "%s%s", strchr(library, '/') ? "" : "./", library);
    const struct rm_watch watch = {.world = path};
    rm_watch_enter(&watch, RM_WATCH_LOAD);
    world->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    rm_watch_leave();
    if (!world->library) {
        const char *why = dlerror();
        char start[RM_PATH_TEXT_MAX];
        return rm_fail(error, -ENOENT, "world.library '%s' cannot be loaded: %s%s", library, why,
                       rm_file_start(library, start, sizeof start));
    }

    rm_watch_enter(&watch, RM_WATCH_LOAD);
    int rc = find_table(world, library, error);
    rm_watch_leave();
    if (rc == 0 && name[0] && strcmp(name, world->ops->name) != 0)
        rc = rm_fail(error, -ENOENT, "%s: holds the world '%s', but world.name is '%s'", library,
                     world->ops->name, name);
    if (rc < 0)
        rm_world_close(world);
    return rc;
}

int rm_world_open(struct rm_world *world, const char *name, const char *library,
                  struct rm_error *error)
{
    *world = (struct rm_world){0};
    return library && library[0] ? open_library(world, name, library, error)
                                 : open_builtin(world, name, error);
}

int rm_world_open_configured(struct rm_world *world, const struct rm_world_config *config,
                             struct rm_error *error)
{
    if (config->prolog[0])
        return rm_prolog_open(world, error);
    if (!config->python[0])
        return rm_world_open(world, config->name, config->library, error);
    *world = (struct rm_world){.ops = &rm_python_ops, .groups = &rm_python_groups};
    return 0;
}

void rm_world_close(struct rm_world *world)
{
    if (world->adapted)
        rm_env_v2_forget(world->ops);
    if (world->library)
        dlclose(world->library);
    *world = (struct rm_world){0};
}

/* --- create ----------------------------------------------------------------------------------- */

static struct rm_env *make(const struct rm_env_ops *ops, const struct rm_env_config *batch,
                           char *message, size_t bytes)
{
    const struct rm_watch watch = {.world = ops->name,
                                   .seed = batch->seed,
                                   .first_world = batch->first_world,
                                   .worlds = batch->worlds};
    message[0] = 0;
    rm_watch_enter(&watch, RM_WATCH_CREATE);
    struct rm_env *env = ops->create(batch, message, bytes);
    rm_watch_leave();
    message[bytes - 1] = 0;
    rm_utf8_repair(message);
    return env;
}

static int make_python(const struct rm_world_config *config, uint64_t seed, uint64_t first_world,
                       uint32_t worlds, struct rm_env **env, struct rm_error *error)
{
    const struct rm_watch watch = {
        .world = config->name, .seed = seed, .first_world = first_world, .worlds = worlds};
    rm_watch_enter(&watch, RM_WATCH_CREATE);
    const int rc = rm_python_create(config, seed, first_world, worlds, env, error);
    rm_watch_leave();
    return rc;
}

/* Several choices in one step: the actions of each, which add up to all. */
static const char *choices_fault(const struct rm_env_agent *agent)
{
    if (agent->choices > RM_ENV_MAX_CHOICES)
        return "must have at most 8 choices";
    uint64_t sum = 0;
    for (uint32_t c = 0; c < agent->choices; c++) {
        if (agent->choice_actions[c] < 1 || agent->choice_actions[c] > ACTIONS_MAX)
            return "must have 1 to 65536 actions in every choice";
        sum += agent->choice_actions[c];
    }
    if (agent->choices > 1 && sum != agent->actions)
        return "must have as many actions as its choices have together";
    return NULL;
}

/* Boxes of real numbers, each between two others. */
static const char *boxes_fault(const struct rm_env_agent *agent)
{
    uint64_t reals = 0;
    if (agent->boxes > REALS_MAX || !agent->box)
        return "must have at most 1024 boxes, and a list of them";
    for (uint32_t i = 0; i < agent->boxes; i++) {
        const struct rm_env_box *box = &agent->box[i];
        if (!box->name || !rm_name_valid(box->name))
            return "has a box whose name cannot be one: " RM_NAME_RULE;
        reals += box->values;
        if (box->values < 1 || reals > REALS_MAX || !box->low || !box->high)
            return "must have boxes of 1 to 1024 numbers together, each with bounds";
        for (uint32_t v = 0; v < box->values; v++)
            if (!isfinite(box->low[v]) || !isfinite(box->high[v]) || box->low[v] >= box->high[v])
                return "has a box without finite bounds, the lower below the upper: give it the "
                       "range in which actions make sense";
    }
    return NULL;
}

/* What is wrong with what an agent sees, or NULL. */
static const char *observation_fault(const struct rm_env_observation *of)
{
    if (rm_dtype_bytes(of->dtype) == 0)
        return "has an unknown dtype";
    if (of->dims < 1 || of->dims > RM_ENV_MAX_DIMS)
        return "must have 1 to 4 dims";
    uint64_t elements = 1;
    for (uint32_t d = 0; d < of->dims; d++) {
        elements *= of->shape[d];
        if (elements == 0 || elements > UINT32_MAX / 256)
            return "has a shape with no elements, or with more than 2^24";
    }
    if (of->counted > 1)
        return "has an observation whose `counted` is neither 0 nor 1";
    if (of->dtype != RM_ENV_CODE8)
        return NULL;
    if (of->codes < 1 || of->codes > 256)
        return "must have 1 to 256 codes";
    if (of->channels < 1 || of->channels > 256)
        return "must have 1 to 256 channels";
    if (!of->codebook)
        return "has no codebook";
    for (uint32_t i = 0; i < of->codes * of->channels; i++)
        if (!isfinite(of->codebook[i]))
            return "has a value in its codebook that is not finite";
    return NULL;
}

static const char *observations_fault(const struct rm_env_agent *agent)
{
    uint64_t words = 0;
    if (agent->observations > RM_ENV_MAX_OBSERVATIONS)
        return "must have at most 32 observations";
    if (agent->observations && !agent->observation)
        return "has no list of its observations";
    for (uint32_t i = 0; i < rm_features_observations(agent); i++) {
        const struct rm_env_observation of = rm_features_observation(agent, i);
        const char *fault = observation_fault(&of);
        if (fault)
            return fault;
        if (agent->observations && (!of.name || !rm_name_valid(of.name)))
            return "has an observation without a name, or with one that cannot be: " RM_NAME_RULE;
        if (agent->observations && strlen(of.name) >= RM_INPUT_NAME_MAX)
            return "has an observation whose name has more than 47 bytes";
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(agent->observation[j].name, of.name) == 0)
                return "has two observations of one name";
        words +=
            rm_observation_elements(&of) * (uint64_t)(of.dtype == RM_ENV_CODE8 ? of.channels : 1) +
            of.counted;
        if (agent->observations && words > UINT32_MAX / 256)
            return "has observations with more than 2^24 numbers together";
    }
    return NULL;
}

uint32_t rm_env_reals(const struct rm_env_agent *agent)
{
    uint32_t reals = 0;
    for (uint32_t i = 0; i < agent->boxes; i++)
        reals += agent->box[i].values;
    return reals;
}

void rm_env_real_bounds(const struct rm_env_agent *agent, float *low, float *high)
{
    for (uint32_t i = 0; i < agent->boxes; i++)
        for (uint32_t v = 0; v < agent->box[i].values; v++) {
            *low++ = agent->box[i].low[v];
            *high++ = agent->box[i].high[v];
        }
}

bool rm_env_boxes_alike(const struct rm_env_agent *a, const struct rm_env_agent *b)
{
    bool same = a->boxes == b->boxes;
    for (uint32_t i = 0; same && i < a->boxes; i++) {
        const struct rm_env_box *x = &a->box[i], *y = &b->box[i];
        const size_t bytes = x->values * sizeof *x->low;
        same = x->values == y->values && strcmp(x->name, y->name) == 0 &&
               memcmp(x->low, y->low, bytes) == 0 && memcmp(x->high, y->high, bytes) == 0;
    }
    return same;
}

/* What is wrong with an agent's description, or NULL. */
static const char *agent_fault(const struct rm_env_agent *agent, uint32_t phases)
{
    if (!agent->name || !agent->name[0])
        return "has no name";
    if (!rm_name_valid(agent->name))
        return "has a name that cannot be one: " RM_NAME_RULE;
    if (agent->phase >= phases)
        return "acts in a phase that the world does not have";
    const char *fault = observations_fault(agent);
    if (!fault && agent->boxes)
        fault = boxes_fault(agent);
    if (fault)
        return fault;
    if (agent->actions > ACTIONS_MAX || (agent->actions == 0 && agent->boxes == 0))
        return "must have 1 to 65536 actions, or boxes of real numbers";
    if (agent->actions == 0 && (agent->has_mask || agent->choices))
        return "has a mask or choices, but no discrete actions";
    if (agent->has_mask > 1)
        return "has_mask must be 0 or 1";
    return agent->choices > 1 ? choices_fault(agent) : NULL;
}

/* A name that is part of others, between dots. */
static bool part_valid(const char *name)
{
    return name && rm_name_valid(name) && !strchr(name, '.');
}

/* What is wrong with what episodes end with, or NULL. */
static const char *figure_fault(const struct rm_env_spec *spec, uint32_t f)
{
    const struct rm_env_figure *figure = &spec->figure[f];
    if (!part_valid(figure->name))
        return "has no name, or one that cannot be: " RM_NAME_RULE ", without dots";
    if (strcmp(figure->name, "length") == 0 || strcmp(figure->name, "return") == 0)
        return "is called length or return, as what every episode has";
    for (uint32_t g = 0; g < f; g++)
        if (strcmp(spec->figure[g].name, figure->name) == 0)
            return "has the name of another";
    for (uint32_t i = 0; figure->words && figure->words[i]; i++) {
        if (i == RM_ENV_MAX_WORDS)
            return "has more than 16 words";
        if (!part_valid(figure->words[i]))
            return "has a word that cannot be a name: " RM_NAME_RULE ", without dots";
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(figure->words[i], figure->words[j]) == 0)
                return "has a word twice";
    }
    return figure->words && !figure->words[0] ? "has an empty list of words" : NULL;
}

uint32_t rm_env_figure_words(const struct rm_env_figure *figure)
{
    uint32_t words = 0;
    while (figure->words && figure->words[words])
        words++;
    return words;
}

int rm_world_check_spec(const char *name, const struct rm_env_spec *spec, struct rm_error *error)
{
    if (!spec)
        return rm_fail(error, -EPROTO, "world '%s': describe() returned NULL", name);
    if (spec->abi_version != RM_ENV_ABI_VERSION || spec->struct_size != sizeof(*spec))
        return rm_fail(error, -EPROTO,
                       "world '%s': its spec has ABI version %u and struct_size %u, must be %u "
                       "and %zu",
                       name, spec->abi_version, spec->struct_size, RM_ENV_ABI_VERSION,
                       sizeof(*spec));
    if (!spec->name || !rm_name_valid(spec->name))
        return rm_fail(
            error, -EPROTO,
            "world '%s': its description has no name, or one that cannot be: " RM_NAME_RULE, name);
    if (spec->agents < 1 || spec->agents > AGENTS_MAX || !spec->agent)
        return rm_fail(error, -EPROTO, "world '%s': %u agents, must be 1 to %d", name, spec->agents,
                       AGENTS_MAX);
    if (spec->phases < 1 || spec->phases > spec->agents)
        return rm_fail(error, -EPROTO,
                       "world '%s': %u phases, must be 1 to the number of agents, %u", name,
                       spec->phases, spec->agents);
    for (uint32_t a = 0; a < spec->agents; a++) {
        const char *fault = agent_fault(&spec->agent[a], spec->phases);
        if (fault)
            return rm_fail(error, -EPROTO, "world '%s': agent %u %s", name, a, fault);
        for (uint32_t b = 0; b < a; b++)
            if (strcmp(spec->agent[a].name, spec->agent[b].name) == 0)
                return rm_fail(error, -EPROTO,
                               "world '%s': agents %u and %u are both called '%s'; their policies "
                               "and figures need names of their own",
                               name, b, a, spec->agent[a].name);
    }
    if (spec->figures > RM_ENV_MAX_FIGURES || (spec->figures && !spec->figure))
        return rm_fail(error, -EPROTO, "world '%s': %u figures, must be at most %d, and a list",
                       name, spec->figures, RM_ENV_MAX_FIGURES);
    for (uint32_t f = 0; f < spec->figures; f++) {
        const char *fault = figure_fault(spec, f);
        if (fault)
            return rm_fail(error, -EPROTO, "world '%s': figure %u %s", name, f, fault);
    }
    if (spec->picture_width > PICTURE_MAX || spec->picture_height > PICTURE_MAX)
        return rm_fail(error, -EPROTO, "world '%s': a picture of %u x %u, must be at most %d x %d",
                       name, spec->picture_width, spec->picture_height, PICTURE_MAX, PICTURE_MAX);
    for (uint32_t phase = 0; phase < spec->phases; phase++) {
        uint32_t a = 0;
        while (a < spec->agents && spec->agent[a].phase != phase)
            a++;
        if (a == spec->agents)
            return rm_fail(error, -EPROTO, "world '%s': no agent acts in phase %u of %u", name,
                           phase, spec->phases);
    }
    return 0;
}

int rm_world_create(const struct rm_world *world, const struct rm_world_config *config,
                    uint64_t seed, uint64_t first_world, uint32_t worlds, struct rm_env **env,
                    struct rm_error *error)
{
    const struct rm_env_ops *ops = world->ops;
    struct rm_options options;
    if (config->python[0])
        return make_python(config, seed, first_world, worlds, env, error);
    *env = NULL;
    int rc = config->prolog[0] ? rm_prolog_options(&options, config, error)
                               : rm_options_read(&options, ops->name, ops->options, config, error);
    if (rc < 0)
        return rc;
    const struct rm_env_config batch = {
        .struct_size = sizeof(batch),
        .worlds = worlds,
        .seed = seed,
        .first_world = first_world,
        .options = options.option,
        .option_count = options.count,
        .ops = ops,
    };
    char message[512];
    struct rm_env *made = worlds ? make(ops, &batch, message, sizeof(message)) : NULL;
    rm_options_free(&options);
    if (!worlds)
        return rm_fail(error, -EINVAL, "world '%s': a batch of 0 worlds, must be 1 or more",
                       ops->name);
    if (!made)
        return rm_fail(error, -EINVAL, "world '%s' refuses: %s", ops->name,
                       message[0] ? message : "create() gave no reason");
    rc = rm_world_check_spec(ops->name, ops->describe(made), error);
    if (rc < 0) {
        ops->close(made);
        return rc;
    }
    *env = made;
    return 0;
}

/* --- sizes ------------------------------------------------------------------------------------ */

size_t rm_env_obs_bytes(const struct rm_env_agent *agent)
{
    return rm_features_bytes(agent);
}

uint32_t rm_env_obs_features(const struct rm_env_agent *agent)
{
    return rm_features_count(agent);
}
