/* python: worlds in Python behind the interface of actor/env.h. Worker processes of the user's
 * interpreter (python_worker.h) share the worlds of a batch; their rows are copied into the
 * caller's buffers.
 *
 * A worker is replaced when its world raises, crashes, gives invalid output or exceeds its time
 * limit: the episodes of its worlds end TRUNCATED and VOID, and new ones begin in the next step.
 * Standard error has the reason with world, seed, episode, step, action and the Python traceback.
 * step() fails after as many replacements as an actor may die. A worker that is larger than
 * actor.recycle_mb when an episode ends is replaced in the same way. */
#ifndef RM_ACTOR_WORLDS_BRIDGES_PYTHON_H
#define RM_ACTOR_WORLDS_BRIDGES_PYTHON_H

#include "actor/worlds/worlds.h"
#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>

/* The table of all Python worlds. To create one, call rm_python_create() instead of create(). */
extern const struct rm_env_ops rm_python_ops;
/* Groups: with one worker two halves of its worlds, of which one waits in the worker's queue while
 * the other steps; with several workers the worlds of one or more workers. */
extern const struct rm_world_groups rm_python_groups;

/* Sets the rights and the number of this process's Python workers, by keys of `experiment`, which
 * must stay valid. Their temporary files go below tmp/ of `directory` (NULL: of TMPDIR). Without
 * this call workers are confined, and each batch has one. */
void rm_python_place(const struct rm_experiment *experiment, const char *directory);

/* Steps of worlds created from now on take longer by `debug.lengthen_by`, if `debug.lengthen` is
 * "world". Their workers spend that time, not the actor. */
void rm_python_lengthen(const struct rm_experiment *experiment);

/* Worlds created from now on can be shown, as pictures or as text. */
void rm_python_show(bool picture);

/* Creates the worlds of config->python, in workers. The message of an error says what to do. */
int rm_python_create(const struct rm_world_config *config, uint64_t seed, uint64_t first_world,
                     uint32_t worlds, struct rm_env **env, struct rm_error *error);

#endif
