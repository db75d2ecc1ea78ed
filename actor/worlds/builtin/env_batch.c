#include "actor/worlds/builtin/env_batch.h"

#include <stdlib.h>

void rm_env_batch_no_memory(const struct rm_env_config *config, char *error, size_t error_size)
{
    snprintf(error, error_size, "no memory for %u worlds", config->worlds);
}

void rm_env_batch_begin(struct rm_env_batch *batch, const struct rm_env_config *config)
{
    batch->worlds = config->worlds;
    batch->seed = config->seed;
    batch->first_world = config->first_world;
    batch->spec.abi_version = RM_ENV_ABI_VERSION;
    batch->spec.struct_size = sizeof(struct rm_env_spec);
}

struct rm_env *rm_env_batch_create(const struct rm_env_config *config, size_t bytes, char *error,
                                   size_t error_size)
{
    struct rm_env_batch *batch = calloc(1, bytes);
    if (!batch) {
        rm_env_batch_no_memory(config, error, error_size);
        return NULL;
    }
    rm_env_batch_begin(batch, config);
    return (struct rm_env *)batch;
}

const struct rm_env_spec *rm_env_batch_describe(const struct rm_env *env)
{
    return &((const struct rm_env_batch *)env)->spec;
}

const char *rm_env_batch_last_error(const struct rm_env *env)
{
    return ((const struct rm_env_batch *)env)->error;
}

void rm_env_batch_close(struct rm_env *env)
{
    free(env);
}
