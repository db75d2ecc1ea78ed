/* native: the worlds whose step is written once for both sides (shm/base/both.h), so that a device
 * can have them: actor.device "cuda". What a device needs of one beside its saved state. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_NATIVE_H
#define RM_ACTOR_WORLDS_BUILTIN_NATIVE_H

#include "actor/env.h"
#include "learner/backend/device_worlds.h"

struct rm_native_world {
    const char *name;
    enum rm_device_world_kind kind;
    /* Writes the world's own rules, at most RM_DEVICE_RULES_BYTES. */
    void (*rules)(const struct rm_env *env, void *rules);
};

/* NULL where the world has no such form. */
const struct rm_native_world *rm_native_world_of(const char *name);

/* Their names, for words: "goodhart, cartpole". */
const char *rm_native_world_names(void);

#endif
