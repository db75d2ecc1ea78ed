#include "actor/worlds/worlds.h"

#include "actor/worlds/watch.h"
#include "config/utf8.h"
#include "shm/base/file.h"
#include "shm/board.h"

#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

extern const struct rm_env_ops rm_treasurehunt_ops, rm_cartpole_ops, rm_acrobot_ops,
    rm_mountaincar_ops, rm_frozenlake_ops, rm_taxi_ops, rm_goodhart_ops, rm_darkroom_ops,
    rm_sokoban_ops, rm_connect_ops, rm_count_ops;

const struct rm_env_ops *const rm_builtin_worlds[] = {
    &rm_treasurehunt_ops, &rm_cartpole_ops, &rm_acrobot_ops,  &rm_mountaincar_ops,
    &rm_frozenlake_ops,   &rm_taxi_ops,     &rm_goodhart_ops, &rm_darkroom_ops,
    &rm_sokoban_ops,      &rm_connect_ops,  &rm_count_ops,    NULL,
};

enum { NAME_MAX_LENGTH = 64, AGENTS_MAX = 64, ACTIONS_MAX = 1 << 16 };

/* --- nearest names ---------------------------------------------------------------------------- */

/* Number of single-character changes from a to b (Levenshtein); texts are cut at 64 characters. A
 * name begun and not ended is one change away. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned row[NAME_MAX_LENGTH + 1];
    if (strlen(a) >= 3 && strncmp(a, b, strlen(a)) == 0)
        return b[strlen(a)] ? 1 : 0;
    size_t n = strnlen(b, NAME_MAX_LENGTH);
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 0; i < NAME_MAX_LENGTH && a[i]; i++) {
        unsigned diagonal = row[0];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < n; j++) {
            unsigned best = diagonal + (a[i] != b[j]);
            diagonal = row[j + 1];
            best = best < row[j] + 1 ? best : row[j] + 1;
            row[j + 1] = best < diagonal + 1 ? best : diagonal + 1;
        }
    }
    return row[n];
}

static const struct rm_env_ops *nearest_world(const char *name)
{
    const struct rm_env_ops *nearest = rm_builtin_worlds[0];
    for (size_t i = 0; rm_builtin_worlds[i]; i++)
        if (edit_distance(name, rm_builtin_worlds[i]->name) < edit_distance(name, nearest->name))
            nearest = rm_builtin_worlds[i];
    return nearest;
}

static const char *nearest_option(const char *key, const struct rm_env_option_doc *docs)
{
    const char *nearest = docs->key;
    for (; docs->key; docs++)
        if (edit_distance(key, docs->key) < edit_distance(key, nearest))
            nearest = docs->key;
    return nearest;
}

/* --- open ------------------------------------------------------------------------------------- */

static int check_ops(const struct rm_env_ops *ops, const char *library, struct rm_error *error)
{
    if (ops->abi_version != RM_ENV_ABI_VERSION)
        return rm_fail(error, -EPROTO,
                       "%s: made for environment ABI %u, this program has %u; compile it against "
                       "this version's actor/env.h",
                       library, ops->abi_version, RM_ENV_ABI_VERSION);
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
    for (uint32_t i = 0; ops->options && ops->options[i].key; i++)
        if (!rm_name_valid(ops->options[i].key))
            return rm_fail(error, -EPROTO,
                           "%s: the key of option %u cannot be a name: " RM_NAME_RULE, library, i);
    return 0;
}

static int open_builtin(struct rm_world *world, const char *name, struct rm_error *error)
{
    for (size_t i = 0; rm_builtin_worlds[i]; i++) {
        if (strcmp(rm_builtin_worlds[i]->name, name) == 0) {
            *world = (struct rm_world){.ops = rm_builtin_worlds[i]};
            return 0;
        }
    }
    return rm_fail(
        error, -ENOENT,
        "there is no built-in world '%s'; the nearest is '%s'. A world of your own needs "
        "world.library, the path of its shared object",
        name, nearest_world(name)->name);
}

/* NULL, with *rc and a message, when there is no table that can be used. */
static const struct rm_env_ops *find_table(void *handle, const char *library, int *rc,
                                           struct rm_error *error)
{
    rm_env_entry_fn entry;
    *(void **)&entry = dlsym(handle, "rm_env_entry");
    const struct rm_env_ops *ops = entry ? entry() : NULL;
    if (!entry)
        *rc = rm_fail(error, -EPROTO,
                      "%s: does not export rm_env_entry; define `const struct rm_env_ops "
                      "*rm_env_entry(void)` with default visibility",
                      library);
    else if (!ops)
        *rc = rm_fail(error, -EPROTO, "%s: rm_env_entry() returned NULL, must return its table",
                      library);
    else
        *rc = check_ops(ops, library, error);
    return *rc == 0 ? ops : NULL;
}

static int open_library(struct rm_world *world, const char *name, const char *library,
                        struct rm_error *error)
{
    /* dlopen() searches the system's folders for a name without a slash; a path is meant. */
    char path[RM_PATH_TEXT_MAX + 2];
    snprintf(path, sizeof(path), "%s%s", strchr(library, '/') ? "" : "./", library);
    const struct rm_watch watch = {.world = path};
    rm_watch_enter(&watch, RM_WATCH_LOAD);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    rm_watch_leave();
    if (!handle) {
        const char *why = dlerror();
        char start[RM_PATH_TEXT_MAX];
        return rm_fail(error, -ENOENT, "world.library '%s' cannot be loaded: %s%s", library, why,
                       rm_file_start(library, start, sizeof start));
    }

    int rc = 0;
    rm_watch_enter(&watch, RM_WATCH_LOAD);
    const struct rm_env_ops *ops = find_table(handle, library, &rc, error);
    rm_watch_leave();
    if (ops && name[0] && strcmp(name, ops->name) != 0) {
        rc = rm_fail(error, -ENOENT, "%s: holds the world '%s', but world.name is '%s'", library,
                     ops->name, name);
        ops = NULL;
    }
    if (!ops) {
        dlclose(handle);
        return rc;
    }
    *world = (struct rm_world){.ops = ops, .library = handle};
    return 0;
}

int rm_world_open(struct rm_world *world, const char *name, const char *library,
                  struct rm_error *error)
{
    *world = (struct rm_world){0};
    return library && library[0] ? open_library(world, name, library, error)
                                 : open_builtin(world, name, error);
}

void rm_world_close(struct rm_world *world)
{
    if (world->library)
        dlclose(world->library);
    *world = (struct rm_world){0};
}

/* --- create ----------------------------------------------------------------------------------- */

/* What is wrong with an option by the world's table; 0 when nothing is. */
static int check_option(const struct rm_env_ops *ops, const struct rm_world_option_value *option,
                        struct rm_error *error)
{
    const struct rm_env_option_doc *doc = ops->options;
    while (doc && doc->key && strcmp(doc->key, option->key) != 0)
        doc++;
    if (!doc || !doc->key) {
        if (!ops->options || !ops->options->key)
            return rm_fail(error, -EINVAL, "world.options.%s: the world '%s' has no options",
                           option->key, ops->name);
        return rm_fail(error, -EINVAL,
                       "world.options.%s: the world '%s' has no such option; the nearest is '%s'",
                       option->key, ops->name, nearest_option(option->key, ops->options));
    }
    if (!(option->value >= doc->low && option->value <= doc->high))
        return rm_fail(error, -ERANGE, "world.options.%s is %.17g, must be %.17g..%.17g (%s)",
                       option->key, option->value, doc->low, doc->high, doc->doc ? doc->doc : "");
    return 0;
}

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

/* What the world itself has against an option that its table allows, with all others at their
 * defaults. Only whole numbers are asked for beyond the table, so only others are tried. */
static int try_option(const struct rm_env_ops *ops, const struct rm_world_option_value *option,
                      struct rm_error *error)
{
    const struct rm_env_option one = {option->key, option->value};
    const struct rm_env_config batch = {
        .struct_size = sizeof(batch), .worlds = 1, .options = &one, .option_count = 1};
    char message[512];
    if (option->value == floor(option->value))
        return 0;
    struct rm_env *env = make(ops, &batch, message, sizeof(message));
    if (!env)
        return rm_fail(error, -EINVAL, "world '%s' refuses: %s", ops->name, message);
    ops->close(env);
    return 0;
}

/* A line for each option that is wrong, in the order in which they stand. */
static int check_options(const struct rm_env_ops *ops, const struct rm_world_config *config,
                         struct rm_error *error)
{
    char lines[RM_ERROR_TEXT] = "";
    size_t used = 0;
    int first = 0;
    if (config->option_count > RM_WORLD_OPTIONS_MAX)
        return rm_fail(error, -EINVAL, "world.options: %u options, at most %u are possible",
                       config->option_count, RM_WORLD_OPTIONS_MAX);
    for (uint32_t i = 0; i < config->option_count && first == 0; i++) {
        first = check_option(ops, &config->options[i], error);
        for (uint32_t j = 0; j < i && first == 0; j++)
            if (strcmp(config->options[i].key, config->options[j].key) == 0)
                return rm_fail(error, -EINVAL, "world.options.%s is given twice",
                               config->options[i].key);
    }
    for (uint32_t i = 0; i < config->option_count && first; i++) {
        struct rm_error one;
        if (check_option(ops, &config->options[i], &one) == 0 &&
            try_option(ops, &config->options[i], &one) == 0)
            continue;
        used += (size_t)snprintf(lines + used, sizeof(lines) - used, "%s%s", used ? "\n" : "",
                                 one.text);
        if (used >= sizeof(lines))
            break;
    }
    return first ? rm_fail(error, first, "%s", lines) : 0;
}

static size_t dtype_bytes(uint32_t dtype)
{
    static const uint8_t bytes[] = {
        [RM_ENV_U8] = 1,  [RM_ENV_I8] = 1,  [RM_ENV_I16] = 2,
        [RM_ENV_I32] = 4, [RM_ENV_F32] = 4, [RM_ENV_CODE8] = 1,
    };
    return dtype < sizeof(bytes) ? bytes[dtype] : 0;
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

/* What is wrong with an agent's description, or NULL. */
static const char *agent_fault(const struct rm_env_agent *agent, uint32_t phases)
{
    if (!agent->name || !agent->name[0])
        return "has no name";
    if (!rm_name_valid(agent->name))
        return "has a name that cannot be one: " RM_NAME_RULE;
    if (agent->phase >= phases)
        return "acts in a phase that the world does not have";
    if (dtype_bytes(agent->dtype) == 0)
        return "has an unknown dtype";
    if (agent->dims < 1 || agent->dims > RM_ENV_MAX_DIMS)
        return "must have 1 to 4 dims";
    uint64_t elements = 1;
    for (uint32_t d = 0; d < agent->dims; d++) {
        elements *= agent->shape[d];
        if (elements == 0 || elements > UINT32_MAX / 256)
            return "has a shape with no elements, or with more than 2^24";
    }
    if (agent->actions < 1 || agent->actions > ACTIONS_MAX)
        return "must have 1 to 65536 actions";
    if (agent->has_mask > 1)
        return "has_mask must be 0 or 1";
    if (agent->choices > 1) {
        const char *fault = choices_fault(agent);
        if (fault)
            return fault;
    }
    if (agent->dtype != RM_ENV_CODE8)
        return NULL;
    if (agent->codes < 1 || agent->codes > 256)
        return "must have 1 to 256 codes";
    if (agent->channels < 1 || agent->channels > 256)
        return "must have 1 to 256 channels";
    if (!agent->codebook)
        return "has no codebook";
    for (uint32_t i = 0; i < agent->codes * agent->channels; i++)
        if (!isfinite(agent->codebook[i]))
            return "has a value in its codebook that is not finite";
    return NULL;
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
    *env = NULL;
    int rc = check_options(ops, config, error);
    if (rc < 0)
        return rc;
    if (worlds == 0)
        return rm_fail(error, -EINVAL, "world '%s': a batch of 0 worlds, must be 1 or more",
                       ops->name);

    struct rm_env_option options[RM_WORLD_OPTIONS_MAX];
    for (uint32_t i = 0; i < config->option_count; i++)
        options[i] = (struct rm_env_option){config->options[i].key, config->options[i].value};
    const struct rm_env_config batch = {
        .struct_size = sizeof(batch),
        .worlds = worlds,
        .seed = seed,
        .first_world = first_world,
        .options = options,
        .option_count = config->option_count,
    };
    char message[512];
    struct rm_env *made = make(ops, &batch, message, sizeof(message));
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

static uint32_t elements_of(const struct rm_env_agent *agent)
{
    uint32_t elements = 1;
    for (uint32_t d = 0; d < agent->dims; d++)
        elements *= agent->shape[d];
    return elements;
}

size_t rm_env_obs_bytes(const struct rm_env_agent *agent)
{
    return elements_of(agent) * dtype_bytes(agent->dtype);
}

uint32_t rm_env_obs_features(const struct rm_env_agent *agent)
{
    return elements_of(agent) * (agent->dtype == RM_ENV_CODE8 ? agent->channels : 1);
}
