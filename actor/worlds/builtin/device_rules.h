/* device_rules: the worlds that a device can step (actor.device "cuda"), because their step is
 * written for both sides (shm/base/both.h). A device needs their saved state and their rules. */
#ifndef RM_ACTOR_WORLDS_BUILTIN_DEVICE_RULES_H
#define RM_ACTOR_WORLDS_BUILTIN_DEVICE_RULES_H

#include "actor/env.h"
#include "learner/backend/device_worlds.h"

struct rm_device_rules {
    const char *name;
    enum rm_device_world_kind kind;
    /* Writes the world's own rules, at most RM_DEVICE_RULES_BYTES. */
    void (*rules)(const struct rm_env *env, void *rules);
};

/* NULL: a device cannot step this world. */
const struct rm_device_rules *rm_device_rules_of(const char *name);

/* Names of these worlds, for messages: "goodhart, cartpole". */
const char *rm_device_rules_names(void);

#endif
