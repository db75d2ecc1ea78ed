/* A world that takes options of every type and shows their values: the colour's place among the
 * words, the first byte of the file `level`, how many `files` there are and the first byte of their
 * last, the sum of `weights`, how many `rows` there are, the length of `label` and `depth`. */
#include "env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8, FILES = 3, WEIGHTS = 4 };

struct rm_env {
    uint32_t worlds;
    struct rm_env_agent agent;
    struct rm_env_spec spec;
    float shown[SHOWN];
};

static const char *const colours[] = {"red", "green", "dark-blue", NULL};

static const struct rm_env_option_doc options[] = {
    {.key = "colour",
     .doc = "of the walls",
     .type = RM_ENV_WORD,
     .words = colours,
     .fallback_text = "green"},
    {.key = "label", .doc = "any text", .type = RM_ENV_WORD},
    {.key = "rows", .doc = "a map", .type = RM_ENV_WORD, .most = 5},
    {.key = "level", .doc = "a file", .type = RM_ENV_PATH},
    {.key = "files", .doc = "some files", .type = RM_ENV_PATH, .most = FILES},
    {.key = "weights", .low = -1, .high = 1, .doc = "of the parts", .most = WEIGHTS},
    {.key = "depth", .fallback = 2, .low = 0, .high = 9, .doc = "how deep"},
    {.key = NULL},
};

static int first_byte(const char *path, float *byte, char *error, size_t error_size)
{
    FILE *file = fopen(path, "r");
    const int c = file ? fgetc(file) : EOF;
    if (file)
        fclose(file);
    if (c == EOF)
        snprintf(error, error_size, "%s: cannot be read, or is empty", path);
    *byte = (float)c;
    return c == EOF ? -1 : 0;
}

static int take(struct rm_env *env, const struct rm_env_option *o, char *error, size_t error_size)
{
    if (strcmp(o->key, "colour") == 0)
        for (env->shown[0] = 0; strcmp(colours[(int)env->shown[0]], o->text) != 0;)
            env->shown[0]++;
    if (strcmp(o->key, "level") == 0)
        return first_byte(o->text, &env->shown[1], error, error_size);
    if (strcmp(o->key, "files") == 0) {
        env->shown[2] = (float)o->count;
        return o->count ? first_byte(o->texts[o->count - 1], &env->shown[3], error, error_size) : 0;
    }
    if (strcmp(o->key, "weights") == 0)
        for (uint32_t i = 0; i < o->count; i++)
            env->shown[4] += (float)o->values[i];
    if (strcmp(o->key, "rows") == 0)
        env->shown[5] = (float)o->count;
    if (strcmp(o->key, "label") == 0)
        env->shown[6] = (float)strlen(o->text);
    if (strcmp(o->key, "depth") == 0)
        env->shown[7] = (float)o->value;
    return 0;
}

static void close_env(struct rm_env *env)
{
    free(env);
}

static struct rm_env *create(const struct rm_env_config *config, char *error, size_t error_size)
{
    struct rm_env *env = calloc(1, sizeof *env);
    if (!env)
        return NULL;
    env->worlds = config->worlds;
    env->shown[0] = 1;
    env->shown[7] = 2;
    for (uint32_t i = 0; i < config->option_count; i++) {
        if (take(env, &config->options[i], error, error_size) < 0) {
            close_env(env);
            return NULL;
        }
    }
    env->agent = (struct rm_env_agent){.name = "agent_0",
                                       .dtype = RM_ENV_F32,
                                       .dims = 1,
                                       .shape = {SHOWN},
                                       .low = -4,
                                       .high = 256,
                                       .actions = env->shown[7] == 9 ? 3 : 2};
    env->spec = (struct rm_env_spec){.abi_version = RM_ENV_ABI_VERSION,
                                     .struct_size = sizeof env->spec,
                                     .name = "choosy",
                                     .agents = 1,
                                     .phases = 1,
                                     .agent = &env->agent};
    return env;
}

static const struct rm_env_spec *describe(const struct rm_env *env)
{
    return &env->spec;
}

static int write_rows(struct rm_env *env, const struct rm_env_buffers *out, uint8_t flags)
{
    for (uint32_t w = 0; w < env->worlds; w++) {
        memcpy((char *)out->obs + (ptrdiff_t)w * out->obs_stride, env->shown, sizeof env->shown);
        out->reward[w] = 0;
        out->flags[w] = flags;
    }
    return 0;
}

static int reset(struct rm_env *env, const struct rm_env_buffers *out)
{
    return write_rows(env, out, RM_ENV_FIRST);
}

static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,
                const struct rm_env_buffers *out)
{
    (void)phase, (void)actions;
    return write_rows(env, out, 0);
}

static size_t state_size(const struct rm_env *env)
{
    (void)env;
    return 0;
}

static int save_state(const struct rm_env *env, void *state)
{
    (void)env, (void)state;
    return -1;
}

static int load_state(struct rm_env *env, const void *state)
{
    (void)env, (void)state;
    return -1;
}

static const char *last_error(const struct rm_env *env)
{
    (void)env;
    return "";
}

static const struct rm_env_ops ops = {
    .abi_version = RM_ENV_ABI_VERSION,
    .struct_size = sizeof(struct rm_env_ops),
    .name = "choosy",
    .options = options,
    .create = create,
    .describe = describe,
    .reset = reset,
    .step = step,
    .state_size = state_size,
    .save_state = save_state,
    .load_state = load_state,
    .close = close_env,
    .last_error = last_error,
};

const struct rm_env_ops *rm_env_entry(void);
const struct rm_env_ops *rm_env_entry(void)
{
    return &ops;
}
