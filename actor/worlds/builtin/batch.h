/* batch: the head of every built-in world's struct rm_env - what it was made from, what it says of
 * itself and its last message - and the functions of its table that need nothing else. Internal to
 * actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_BATCH_H
#define RM_ACTOR_WORLDS_BUILTIN_BATCH_H

#include "actor/worlds/builtin/common.h"

struct rm_env_batch {
    uint32_t worlds;
    uint64_t seed, first_world;
    struct rm_env_spec spec;
    char error[RM_ENV_ERROR_TEXT];
};

/* Allocates `bytes` for a struct rm_env, all zero but for its head. NULL with a message. To be
 * closed with rm_env_batch_close(), by itself or after what the world has added. */
struct rm_env *rm_env_batch_create(const struct rm_env_config *config, size_t bytes, char *error,
                                   size_t error_size);

/* Fills in the head: what config says, and the versions of the spec. */
void rm_env_batch_begin(struct rm_env_batch *batch, const struct rm_env_config *config);

/* The message for worlds that there is no memory for. */
void rm_env_batch_no_memory(const struct rm_env_config *config, char *error, size_t error_size);

const struct rm_env_spec *rm_env_batch_describe(const struct rm_env *env);
const char *rm_env_batch_last_error(const struct rm_env *env);
void rm_env_batch_close(struct rm_env *env);

/* What the spec says that episodes end with. */
#define RM_ENV_FIGURES(list) .figures = sizeof(list) / sizeof((list)[0]), .figure = (list)

/* The members of a rm_env_ops that are the same in all of them. */
#define RM_ENV_BATCH_OPS                                                                           \
    .abi_version = RM_ENV_ABI_VERSION, .struct_size = sizeof(struct rm_env_ops),                   \
    .describe = rm_env_batch_describe, .last_error = rm_env_batch_last_error

#endif
