/* worlds: finds a world's table by name (built in) or in a shared object, and checks it. Whatever
 * version a shared object was compiled against, its table is one of this version here.
 * Used by actors and evaluators, and by `ringctl envs`, `validate` and the daemon, which need
 * specs. */
#ifndef RM_ACTOR_WORLDS_WORLDS_H
#define RM_ACTOR_WORLDS_WORLDS_H

#include "actor/env.h"
#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>

/* Worlds [first, first + worlds) of a batch. */
struct rm_world_group {
    uint32_t first, worlds;
};

/* Worlds of one phase that other processes step: groups of a batch that step apart, so that their
 * caller has something to do meanwhile. Once each, in any order, a group is asked and received; the
 * table's step() does that with all. */
struct rm_world_groups {
    uint32_t (*count)(const struct rm_env *env); /* 1 to RM_WORLD_GROUPS_MAX */
    struct rm_world_group (*group)(const struct rm_env *env, uint32_t group);
    /* Begins the step of a group; only its worlds' actions are looked at, before it returns. 0, or
     * negative with last_error() set. */
    int (*ask)(struct rm_env *env, uint32_t group, const int32_t *const *actions);
    /* The group of those in `groups` (a bit each) that has stepped, or was not asked; waits until
     * there is one. */
    uint32_t (*first)(struct rm_env *env, uint32_t groups);
    /* Writes what its worlds show, if it was asked; waits for it. 0, or negative with last_error()
     * set. */
    int (*receive)(struct rm_env *env, uint32_t group, const struct rm_env_buffers *out);
};

#define RM_WORLD_GROUPS_MAX 4u

struct rm_world {
    const struct rm_env_ops *ops;
    const struct rm_world_groups *groups; /* NULL: the worlds are stepped by the caller's process */
    void *library;                        /* dlopen handle, NULL when built in */
    bool adapted; /* `ops` stand for an older version's (actor/worlds/env_v2.h) */
};

/* All built-in worlds, ends with NULL. */
extern const struct rm_env_ops *const rm_builtin_worlds[];

/* library "" means built in; else the path of a shared object exporting rm_env_entry.
 * Checks ABI version, struct sizes and that required functions are there. -ENOENT names the nearest
 * built-in world. */
int rm_world_open(struct rm_world *world, const char *name, const char *library,
                  struct rm_error *error);
/* The same for the world of a configuration, which may be in Python
 * (actor/worlds/bridges/python.h). */
int rm_world_open_configured(struct rm_world *world, const struct rm_world_config *config,
                             struct rm_error *error);
void rm_world_close(struct rm_world *world);

/* Creates a batch, with options checked against the world's table (actor/worlds/options.h). */
int rm_world_create(const struct rm_world *world, const struct rm_world_config *config,
                    uint64_t seed, uint64_t first_world, uint32_t worlds, struct rm_env **env,
                    struct rm_error *error);

/* What a world may say of itself: sizes, phases, bounds, a finite codebook. -EPROTO. */
int rm_world_check_spec(const char *name, const struct rm_env_spec *spec, struct rm_error *error);

/* Bytes of one observation in its compact type; number of network inputs of one frame. */
size_t rm_env_obs_bytes(const struct rm_env_agent *agent);
uint32_t rm_env_obs_features(const struct rm_env_agent *agent);

/* Real numbers that an agent chooses in a step, over all boxes; their bounds side by side. */
uint32_t rm_env_reals(const struct rm_env_agent *agent);
void rm_env_real_bounds(const struct rm_env_agent *agent, float *low, float *high);
bool rm_env_boxes_alike(const struct rm_env_agent *a, const struct rm_env_agent *b);

/* How many words a figure has; 0: it is a number. */
uint32_t rm_env_figure_words(const struct rm_env_figure *figure);

#endif
