/* single: a batch of worlds with one agent that acts in every step: an array of plain structs that
 * begin with rm_single_world. Begins, ends and cuts their episodes. The rules of a world are a few
 * functions; rm_single_reset() and rm_single_step() are inlined around them, so no call is
 * indirect.
 *
 * A world's own struct rm_env begins with struct rm_single. Internal to actor/worlds/builtin. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_SINGLE_H
#define RM_ACTOR_WORLDS_BUILTIN_SINGLE_H

#include "actor/worlds/builtin/env_batch.h"
#include "actor/worlds/builtin/head.h"

#include <errno.h>
#include <inttypes.h>

struct rm_single {
    struct rm_env_batch batch; /* agents, phases and agent of its spec: rm_single_create() */
    size_t world_bytes;        /* of the world's own struct */
    char *world;               /* [worlds] */
    uint32_t max_steps;        /* 0: never cut */
    /* Returns the fault of a loaded world, or NULL if it is valid. May be NULL. */
    const char *(*fault)(const struct rm_env *env, const void *world);
    struct rm_env_agent agent;
};

/* The rules. `world` is the world's own struct, `w` its place in the batch. */
struct rm_single_rules {
    /* Begins an episode. The head is set; the rest is from the previous episode, at first zero. */
    void (*begin)(const struct rm_env *env, uint32_t w, void *world);
    /* One step with an action in range. RM_ENV_TERMINATED, RM_ENV_TRUNCATED or 0; negative with a
     * message. world.step has not counted this step yet. */
    int (*play)(struct rm_env *env, uint32_t w, void *world, int32_t action, float *reward);
    void (*observe)(const struct rm_env *env, const void *world, void *obs);
    void (*mask)(const struct rm_env *env, const void *world, uint8_t *mask); /* may be NULL */
    /* Writes the figures of the episode whose last row is written. NULL: the spec has none. */
    void (*figures)(const struct rm_env *env, const void *world, double *figures);
};

/* Allocates env_bytes for the world's struct rm_env and world_bytes (a multiple of 8) for every
 * world, all zero. NULL with a message. */
struct rm_env *rm_single_create(const struct rm_env_config *config, size_t env_bytes,
                                size_t world_bytes, char *error, size_t error_size);

size_t rm_single_state_size(const struct rm_env *env);
int rm_single_save_state(const struct rm_env *env, void *state);
int rm_single_load_state(struct rm_env *env, const void *state);
void rm_single_close(struct rm_env *env);

/* The struct of world `w`. */
static inline const void *rm_single_world_at(const struct rm_env *env, uint32_t w)
{
    const struct rm_single *single = (const struct rm_single *)env;
    return single->world + w * single->world_bytes;
}

/* The members of rm_env_ops that all such worlds share. */
#define RM_SINGLE_OPS                                                                              \
    RM_ENV_BATCH_OPS, .state_size = rm_single_state_size, .save_state = rm_single_save_state,      \
                      .load_state = rm_single_load_state, .close = rm_single_close

#define RM_SINGLE_INLINE static inline __attribute__((always_inline))

RM_SINGLE_INLINE void rm_single_begin(const struct rm_env *env, uint32_t w, uint64_t episode,
                                      const struct rm_single_rules *rules)
{
    const struct rm_single *single = (const struct rm_single *)env;
    struct rm_single_world *world = (void *)(single->world + w * single->world_bytes);
    rm_head_begin(world, single->batch.seed, single->batch.first_world + w, episode);
    rules->begin(env, w, world);
}

RM_SINGLE_INLINE void rm_single_write(const struct rm_env *env, uint32_t w,
                                      const struct rm_env_buffers *out,
                                      const struct rm_single_rules *rules)
{
    const struct rm_single *single = (const struct rm_single *)env;
    const void *world = single->world + w * single->world_bytes;
    rules->observe(env, world, rm_env_at(out->obs, out->obs_stride, w));
    if (rules->mask && out->mask)
        rules->mask(env, world, rm_env_at(out->mask, out->mask_stride, w));
}

RM_SINGLE_INLINE int rm_single_reset(struct rm_env *env, const struct rm_env_buffers *out,
                                     const struct rm_single_rules *rules)
{
    struct rm_single *single = (struct rm_single *)env;
    memset(single->world, 0, single->batch.worlds * single->world_bytes);
    for (uint32_t w = 0; w < single->batch.worlds; w++) {
        rm_single_begin(env, w, 0, rules);
        out->reward[w] = 0;
        out->flags[w] = RM_ENV_FIRST;
        rm_single_write(env, w, out, rules);
    }
    return 0;
}

RM_SINGLE_INLINE int rm_single_step(struct rm_env *env, uint32_t phase,
                                    const int32_t *const *actions, const struct rm_env_buffers *out,
                                    const struct rm_single_rules *rules)
{
    struct rm_single *single = (struct rm_single *)env;
    if (phase != 0)
        return rm_env_fail(single->batch.error, -EINVAL, "phase %u: must be 0", phase);
    for (uint32_t w = 0; w < single->batch.worlds; w++) {
        struct rm_single_world *world = (void *)(single->world + w * single->world_bytes);
        float reward = 0;
        int flags = RM_ENV_FIRST;
        if (world->last) {
            rm_single_begin(env, w, world->episode + 1, rules);
        } else {
            int32_t action = actions[0][w];
            if ((uint32_t)action >= single->agent.actions)
                return rm_env_fail(single->batch.error, -EINVAL,
                                   "action %d in world %" PRIu64 ": must be 0..%u", action,
                                   single->batch.first_world + w, single->agent.actions - 1);
            flags = rules->play(env, w, world, action, &reward);
            if (flags < 0)
                return flags;
            flags = rm_head_count(world, single->max_steps, flags);
        }
        out->reward[w] = reward;
        out->flags[w] = (uint8_t)flags;
        if (world->last && rules->figures && out->figures)
            rules->figures(env, world, out->figures + w * single->batch.spec.figures);
        rm_single_write(env, w, out, rules);
    }
    return 0;
}

/* reset() and step() of a world around its rules. */
#define RM_SINGLE_STEPS(rules)                                                                     \
    static int reset(struct rm_env *env, const struct rm_env_buffers *out)                         \
    {                                                                                              \
        return rm_single_reset(env, out, &(rules));                                                \
    }                                                                                              \
    static int step(struct rm_env *env, uint32_t phase, const int32_t *const *actions,             \
                    const struct rm_env_buffers *out)                                              \
    {                                                                                              \
        return rm_single_step(env, phase, actions, out, &(rules));                                 \
    }

/* Refuses an action that the mask forbids. */
__attribute__((cold)) static inline int rm_single_refuse(struct rm_env *env, uint32_t w,
                                                         int32_t action)
{
    struct rm_single *single = (struct rm_single *)env;
    return rm_env_fail(single->batch.error, -EINVAL, "action %d in world %" PRIu64 " is masked out",
                       action, single->batch.first_world + w);
}

#endif
