#include "actor/worlds/builtin/single.h"

#include <stdlib.h>

_Static_assert(sizeof(struct rm_single_world) == 64, "the head of a world is a cache line");

static void *zeroed(size_t bytes)
{
    size_t lines = (bytes + 63) / 64 * 64;
    void *block = aligned_alloc(64, lines);
    return block ? memset(block, 0, lines) : NULL;
}

struct rm_env *rm_single_create(const struct rm_env_config *config, size_t env_bytes,
                                size_t world_bytes, char *error, size_t error_size)
{
    struct rm_single *single = zeroed(env_bytes);
    char *world = single ? zeroed(config->worlds * world_bytes) : NULL;
    if (!world) {
        rm_env_batch_no_memory(config, error, error_size);
        free(single);
        return NULL;
    }
    rm_env_batch_begin(&single->batch, config);
    single->world_bytes = world_bytes;
    single->world = world;
    single->agent.name = "agent_0";
    single->batch.spec.agents = single->batch.spec.phases = 1;
    single->batch.spec.agent = &single->agent;
    return (struct rm_env *)single;
}

size_t rm_single_state_size(const struct rm_env *env)
{
    const struct rm_single *single = (const struct rm_single *)env;
    return single->batch.worlds * single->world_bytes;
}

int rm_single_save_state(const struct rm_env *env, void *state)
{
    memcpy(state, ((const struct rm_single *)env)->world, rm_single_state_size(env));
    return 0;
}

static const char *head_fault(const struct rm_single *single, const struct rm_single_world *world)
{
    if (world->last != 0 && world->last != RM_ENV_TERMINATED && world->last != RM_ENV_TRUNCATED)
        return "the flags of its last row are impossible";
    if (single->max_steps &&
        (world->step > single->max_steps || (world->step == single->max_steps && world->last == 0)))
        return "it has made more steps than an episode has";
    if (world->rng.used > 4)
        return "the state of its random numbers is impossible";
    return NULL;
}

int rm_single_load_state(struct rm_env *env, const void *state)
{
    struct rm_single *single = (struct rm_single *)env;
    for (uint32_t w = 0; w < single->batch.worlds; w++) {
        const void *world = (const char *)state + w * single->world_bytes;
        const char *fault = head_fault(single, world);
        if (!fault && single->fault)
            fault = single->fault(env, world);
        if (fault)
            return rm_env_fail(single->batch.error, -EINVAL, "state of world %u: %s", w, fault);
    }
    memcpy(single->world, state, rm_single_state_size(env));
    return 0;
}

void rm_single_close(struct rm_env *env)
{
    struct rm_single *single = (struct rm_single *)env;
    free(single->world);
    rm_env_batch_close(env);
}
