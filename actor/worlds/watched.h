/* watched: opens, resets, steps, saves and closes a batch of worlds, and replaces them by worlds of
 * another configuration. Every call into the worlds is watched (watch.h).
 *
 * Error messages name the worlds, the call and the vector step, and end with the world's own
 * message. The code is RM_DUTY_NEVER if the world returned -EPROTO, the world's code if that is
 * another negative errno, else -EIO.
 *
 * Belongs to one thread. */
#ifndef RM_ACTOR_WORLDS_WATCHED_H
#define RM_ACTOR_WORLDS_WATCHED_H

#include "actor/worlds/watch.h"
#include "actor/worlds/worlds.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_state;

struct rm_watched {
    struct rm_world world;
    struct rm_env *env;
    const struct rm_env_spec *spec;
    const struct rm_world_config *described; /* all worlds must match its description */
    struct rm_watch watch;                   /* name, seed, ids and progress of the worlds */
    bool apart;                              /* the batch may step in groups */
    uint32_t groups; /* number of groups that step apart; 1: all worlds step at once */
};

/* Opens `config` and creates worlds watch->first_world and following with watch->seed. The spec
 * must match the description in `described`, if there is one. After an error, rm_watched_close()
 * must still be called. `watch` is copied; `described` is used until the batch is closed. */
int rm_watched_open(struct rm_watched *worlds, const struct rm_world_config *config,
                    const struct rm_world_config *described, const struct rm_watch *watch,
                    bool apart, struct rm_error *error);
void rm_watched_close(struct rm_watched *worlds);

/* Replaces all worlds by worlds of another configuration and seed. -EPROTO: they have other agents,
 * phases or figures. The new worlds have not been reset. */
int rm_watched_replace(struct rm_watched *worlds, const struct rm_world_config *config,
                       uint64_t seed, struct rm_error *error);

/* The world's reset() and step(); [agents] buffers and actions as in actor/env.h. */
int rm_watched_reset(struct rm_watched *worlds, const struct rm_env_buffers *out,
                     struct rm_error *error);
int rm_watched_step(struct rm_watched *worlds, uint32_t phase, const int32_t *const *actions,
                    const struct rm_env_buffers *out, struct rm_error *error);

/* For groups (struct rm_world_groups). rm_watched_ask() begins the step of one group.
 * rm_watched_receive() waits for the first group in `left` (bit g for group g), writes the
 * observations of the group's worlds, and returns its number. */
int rm_watched_ask(struct rm_watched *worlds, uint32_t group, const int32_t *const *actions,
                   struct rm_error *error);
int rm_watched_receive(struct rm_watched *worlds, uint32_t left, const struct rm_env_buffers *out,
                       struct rm_error *error);

/* The worlds' own state, as part "world"; 0 bytes if the worlds cannot save it. */
void rm_watched_state(struct rm_watched *worlds, struct rm_state *state);

#endif
