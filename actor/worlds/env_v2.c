#include "actor/worlds/env_v2.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- version 2 ------------------------------------------------------------------------------- */

struct agent_v2 {
    const char *name;
    uint32_t phase, dtype, dims, shape[4];
    double low, high;
    uint32_t codes, channels;
    const float *codebook;
    uint32_t actions, has_mask, choices, choice_actions[8];
};

struct spec_v2 {
    uint32_t abi_version, struct_size;
    const char *name, *doc;
    uint32_t agents, phases;
    const struct agent_v2 *agent;
    uint32_t max_steps;
    double score_low, score_high, score_random, score_solved;
};

struct option_v2 {
    const char *key;
    double value;
};

struct option_doc_v2 {
    const char *key;
    double fallback, low, high;
    const char *doc;
};

struct config_v2 {
    uint32_t struct_size, worlds;
    uint64_t seed, first_world;
    const struct option_v2 *options;
    uint32_t option_count;
};

struct buffers_v2 {
    void *obs;
    ptrdiff_t obs_stride;
    uint8_t *mask;
    ptrdiff_t mask_stride;
    float *reward;
    uint8_t *flags;
};

struct env_v2; /* the world's own */

struct ops_v2 {
    uint32_t abi_version, struct_size;
    const char *name;
    const struct option_doc_v2 *options;
    struct env_v2 *(*create)(const struct config_v2 *config, char *error, size_t error_size);
    const struct spec_v2 *(*describe)(const struct env_v2 *env);
    int (*reset)(struct env_v2 *env, const struct buffers_v2 *out);
    int (*step)(struct env_v2 *env, uint32_t phase, const int32_t *const *actions,
                const struct buffers_v2 *out);
    size_t (*state_size)(const struct env_v2 *env);
    int (*save_state)(const struct env_v2 *env, void *state);
    int (*load_state)(struct env_v2 *env, const void *state);
    void (*close)(struct env_v2 *env);
    const char *(*last_error)(const struct env_v2 *env);
};

/* As compilers for x86-64 lay them out: what the shared objects have. */
_Static_assert(sizeof(struct agent_v2) == 120 && sizeof(struct spec_v2) == 80, "version 2");
_Static_assert(sizeof(struct option_v2) == 16 && sizeof(struct option_doc_v2) == 40, "version 2");
_Static_assert(sizeof(struct config_v2) == 40 && sizeof(struct buffers_v2) == 48, "version 2");
_Static_assert(sizeof(struct ops_v2) == 96, "version 2");

/* --- the adapter ----------------------------------------------------------------------------- */

struct adapter {
    struct rm_env_ops ops; /* first */
    const struct ops_v2 *own;
    struct rm_env_option_doc options[]; /* ends with key NULL */
};

struct rm_env {
    const struct ops_v2 *ops;
    struct env_v2 *own;
    const struct spec_v2 *described; /* NULL: describe() returned none */
    struct rm_env_spec spec;
    struct rm_env_agent *agent; /* [spec.agents] */
    struct buffers_v2 *out;     /* [spec.agents] */
};

enum { AGENTS_MAX = 64 }; /* more are refused when the spec is read */

static void take_agent(struct rm_env_agent *to, const struct agent_v2 *from)
{
    *to = (struct rm_env_agent){
        .name = from->name,
        .phase = from->phase,
        .dtype = from->dtype,
        .dims = from->dims,
        .low = from->low,
        .high = from->high,
        .codes = from->codes,
        .channels = from->channels,
        .codebook = from->codebook,
        .actions = from->actions,
        .has_mask = from->has_mask,
        .choices = from->choices,
    };
    memcpy(to->shape, from->shape, sizeof from->shape);
    memcpy(to->choice_actions, from->choice_actions, sizeof from->choice_actions);
}

/* What the world says of itself, in version 3. */
static int take_spec(struct rm_env *env, char *error, size_t error_size)
{
    const struct spec_v2 *described = env->described = env->ops->describe(env->own);
    if (!described)
        return 0;
    if (described->abi_version != RM_ENV_V2 || described->struct_size != sizeof *described) {
        snprintf(error, error_size,
                 "its spec has ABI version %u and struct_size %u, must be %u and %zu as its table",
                 described->abi_version, described->struct_size, RM_ENV_V2, sizeof *described);
        return -EPROTO;
    }
    const uint32_t agents =
        described->agent && described->agents <= AGENTS_MAX ? described->agents : 0;
    env->agent = calloc(agents + 1, sizeof *env->agent);
    env->out = calloc(agents + 1, sizeof *env->out);
    if (!env->agent || !env->out) {
        snprintf(error, error_size, "no memory for %u agents", agents);
        return -ENOMEM;
    }
    for (uint32_t a = 0; a < agents; a++)
        take_agent(&env->agent[a], &described->agent[a]);
    env->spec = (struct rm_env_spec){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof env->spec,
        .name = described->name,
        .doc = described->doc,
        .agents = described->agents,
        .phases = described->phases,
        .agent = described->agent ? env->agent : NULL,
        .max_steps = described->max_steps,
        .score_low = described->score_low,
        .score_high = described->score_high,
        .score_random = described->score_random,
        .score_solved = described->score_solved,
    };
    return 0;
}

static void close_env(struct rm_env *env)
{
    if (env->own)
        env->ops->close(env->own);
    free(env->agent);
    free(env->out);
    free(env);
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    const struct adapter *adapter = (const struct adapter *)config->ops;
    struct option_v2 *options = calloc(config->option_count + 1, sizeof *options);
    struct rm_env *env = calloc(1, sizeof *env);
    if (!env || !options) {
        snprintf(error, error_size, "no memory for %u worlds", config->worlds);
        free(options);
        free(env);
        return NULL;
    }
    for (uint32_t i = 0; i < config->option_count; i++)
        options[i] = (struct option_v2){config->options[i].key, config->options[i].value};
    const struct config_v2 own = {
        .struct_size = sizeof own,
        .worlds = config->worlds,
        .seed = config->seed,
        .first_world = config->first_world,
        .options = options,
        .option_count = config->option_count,
    };
    env->ops = adapter->own;
    env->own = adapter->own->create(&own, error, error_size);
    free(options);
    if (env->own && take_spec(env, error, error_size) == 0)
        return env;
    close_env(env);
    return NULL;
}

static const struct rm_env_spec *describe(const struct rm_env *env)
{
    return env->described ? &env->spec : NULL;
}

static const struct buffers_v2 *take_buffers(struct rm_env *env, const struct rm_env_buffers *out)
{
    for (uint32_t a = 0; a < env->spec.agents; a++)
        env->out[a] = (struct buffers_v2){out[a].obs,         out[a].obs_stride, out[a].mask,
                                          out[a].mask_stride, out[a].reward,     out[a].flags};
    return env->out;
}

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    return env->ops->reset(env->own, take_buffers(env, out));
}

static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    return env->ops->step(env->own, phase, actions, take_buffers(env, out));
}

static size_t state_size(const struct rm_env *env)
{
    return env->ops->state_size(env->own);
}

static int save_state(const struct rm_env *env, void *state)
{
    return env->ops->save_state(env->own, state);
}

static int load_state(struct rm_env *env, const void *state)
{
    return env->ops->load_state(env->own, state);
}

static const char *last_error(const struct rm_env *env)
{
    return env->ops->last_error(env->own);
}

const struct rm_env_ops *rm_env_v2_adapt(const void *table, const char *library, int *rc,
                                         struct rm_error *error)
{
    const struct ops_v2 *own = table;
    size_t count = 0;
    *rc = 0;
    if (own->struct_size != sizeof *own) {
        *rc = rm_fail(error, -EPROTO,
                      "%s: struct rm_env_ops has struct_size %u, must be sizeof(struct "
                      "rm_env_ops) = %zu in version %u; set it, or compile against this version's "
                      "actor/env.h",
                      library, own->struct_size, sizeof *own, RM_ENV_V2);
        return NULL;
    }
    while (own->options && own->options[count].key)
        count++;
    struct adapter *adapter = calloc(1, sizeof *adapter + (count + 1) * sizeof adapter->options[0]);
    if (!adapter) {
        *rc = rm_fail(error, -ENOMEM, "%s: no memory for %zu options", library, count);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        adapter->options[i] = (struct rm_env_option_doc){
            .key = own->options[i].key,
            .fallback = own->options[i].fallback,
            .low = own->options[i].low,
            .high = own->options[i].high,
            .doc = own->options[i].doc,
        };
    adapter->own = own;
    adapter->ops = (struct rm_env_ops){
        .abi_version = RM_ENV_ABI_VERSION,
        .struct_size = sizeof adapter->ops,
        .name = own->name,
        .options = own->options ? adapter->options : NULL,
        .create = own->create ? create : NULL,
        .describe = own->describe ? describe : NULL,
        .reset = own->reset ? reset : NULL,
        .step = own->step ? step : NULL,
        .state_size = own->state_size ? state_size : NULL,
        .save_state = own->save_state ? save_state : NULL,
        .load_state = own->load_state ? load_state : NULL,
        .close = own->close ? close_env : NULL,
        .last_error = own->last_error ? last_error : NULL,
    };
    return &adapter->ops;
}

void rm_env_v2_forget(const struct rm_env_ops *adapted)
{
    free((void *)adapted);
}
