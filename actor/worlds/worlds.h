/* worlds: finds a world's table by name (built in) or in a shared object, and checks it. The table
 * of a shared object for an older version is wrapped, so callers see only the current version. */
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

/* Functions of worlds with one phase that other processes step, in groups, so that the caller can
 * work while a group steps. In each step the caller asks and receives every group once, in any
 * order. The table's step() does that for all groups. */
struct rm_world_groups {
    uint32_t (*count)(const struct rm_env *env); /* 1 to RM_WORLD_GROUPS_MAX */
    struct rm_world_group (*group)(const struct rm_env *env, uint32_t group);
    /* Begins the step of a group. Reads only the actions of its worlds, before it returns. 0, or
     * negative with last_error() set. */
    int (*ask)(struct rm_env *env, uint32_t group, const int32_t *const *actions);
    /* Waits until one of `groups` (one bit for each) has stepped, and returns it. A group that was
     * not asked is returned at once. */
    uint32_t (*first)(struct rm_env *env, uint32_t groups);
    /* Waits for a group that was asked, and writes its worlds' rows. 0, or negative with
     * last_error() set. */
    int (*receive)(struct rm_env *env, uint32_t group, const struct rm_env_buffers *out);
};

#define RM_WORLD_GROUPS_MAX 4u

struct rm_world {
    const struct rm_env_ops *ops;
    const struct rm_world_groups *groups; /* NULL: the worlds are stepped by the caller's process */
    void *library;                        /* dlopen handle, NULL when built in */
    bool adapted; /* `ops` wraps a table of an older version (actor/worlds/env_v2.h) */
};

/* All built-in worlds, ends with NULL. */
extern const struct rm_env_ops *const rm_builtin_worlds[];

/* Opens a built-in world (`library` is "") or the world of a shared object that exports
 * rm_env_entry(). Checks the ABI version, struct sizes and required functions. -ENOENT: the message
 * names the nearest built-in world. */
int rm_world_open(struct rm_world *world, const char *name, const char *library,
                  struct rm_error *error);
/* The same for the world of a configuration, which may also be in Python or Prolog
 * (actor/worlds/bridges/). */
int rm_world_open_configured(struct rm_world *world, const struct rm_world_config *config,
                             struct rm_error *error);
void rm_world_close(struct rm_world *world);

/* Creates a batch, with options checked against the world's table (actor/worlds/options.h). */
int rm_world_create(const struct rm_world *world, const struct rm_world_config *config,
                    uint64_t seed, uint64_t first_world, uint32_t worlds, struct rm_env **env,
                    struct rm_error *error);

/* Checks a world's spec: sizes, phases, bounds, and that the codebook is finite. -EPROTO: not
 * valid. */
int rm_world_check_spec(const char *name, const struct rm_env_spec *spec, struct rm_error *error);

/* rm_env_obs_bytes(): bytes of one observation in its compact type. rm_env_obs_features(): number
 * of network inputs of one frame. */
size_t rm_env_obs_bytes(const struct rm_env_agent *agent);
uint32_t rm_env_obs_features(const struct rm_env_agent *agent);

/* rm_env_reals(): number of real numbers in an agent's action, over all boxes.
 * rm_env_real_bounds(): the bounds of these numbers, box after box. */
uint32_t rm_env_reals(const struct rm_env_agent *agent);
void rm_env_real_bounds(const struct rm_env_agent *agent, float *low, float *high);
bool rm_env_boxes_alike(const struct rm_env_agent *a, const struct rm_env_agent *b);

/* Number of words of a figure; 0: the figure is a number. */
uint32_t rm_env_figure_words(const struct rm_env_figure *figure);

#endif
