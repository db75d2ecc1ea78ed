/* env_batch: the head of every built-in world's struct rm_env - its configuration, its spec and its
 * last message - and the functions of the table that need only the head. Internal to
 * actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_ENV_BATCH_H
#define RM_ACTOR_WORLDS_BUILTIN_ENV_BATCH_H

#include "actor/worlds/builtin/common.h"

struct rm_env_batch {
    uint32_t worlds;
    uint64_t seed, first_world;
    struct rm_env_spec spec;
    char error[RM_ENV_ERROR_TEXT];
};

/* Allocates `bytes` for a struct rm_env, all zero except for the head. NULL with a message. Free
 * with rm_env_batch_close(), after the world's own members. */
struct rm_env *rm_env_batch_create(const struct rm_env_config *config, size_t bytes, char *error,
                                   size_t error_size);

/* Fills in the head from `config`, and the versions of the spec. */
void rm_env_batch_begin(struct rm_env_batch *batch, const struct rm_env_config *config);

/* Writes the message for missing memory. */
void rm_env_batch_no_memory(const struct rm_env_config *config, char *error, size_t error_size);

const struct rm_env_spec *rm_env_batch_describe(const struct rm_env *env);
const char *rm_env_batch_last_error(const struct rm_env *env);
void rm_env_batch_close(struct rm_env *env);

/* The spec's members for a list of figures. */
#define RM_ENV_FIGURES(list) .figures = sizeof(list) / sizeof((list)[0]), .figure = (list)

/* The members of rm_env_ops that all built-in worlds share. */
#define RM_ENV_BATCH_OPS                                                                           \
    .abi_version = RM_ENV_ABI_VERSION, .struct_size = sizeof(struct rm_env_ops),                   \
    .describe = rm_env_batch_describe, .last_error = rm_env_batch_last_error

#endif
