/* python: worlds in Python, as worlds of C are (actor/env.h). A batch is dealt over worker
 * processes of the user's interpreter (python_worker.h), each of which steps its share; what they
 * show is copied into the caller's rows.
 *
 * A worker whose world raises, crashes, prints nonsense or takes longer than it may is replaced:
 * the episodes of its worlds end TRUNCATED and VOID, and new ones begin in the next step. Standard
 * error has the reason with world, seed, episode, step, action and the Python traceback. Only when
 * that happens as often as an actor may die does step() fail. One that has grown beyond
 * actor.recycle_mb when an episode ends is replaced in the same way. */
#ifndef RM_ACTOR_WORLDS_BRIDGES_PYTHON_H
#define RM_ACTOR_WORLDS_BRIDGES_PYTHON_H

#include "actor/worlds/worlds.h"
#include "config/experiment.h"
#include "shm/base/error.h"

#include <stdbool.h>

/* The table of any Python world, but for create(): that is rm_python_create(). */
extern const struct rm_env_ops rm_python_ops;
/* Two halves of one worker's worlds, each of which waits in its queue while the other steps; of
 * several workers, those of one or some each. */
extern const struct rm_world_groups rm_python_groups;

/* What Python workers of this process may do and how many there are: keys of `experiment`, which
 * stays. Their temporary files go below tmp/ of `directory` (NULL: of TMPDIR). Without this call
 * they are confined, one a batch. */
void rm_python_place(const struct rm_experiment *experiment, const char *directory);

/* Worlds that are made from now on show themselves, as pictures or as text. */
void rm_python_show(bool picture);

/* Makes the worlds of config->python, in workers. Errors: one sentence that says what to do. */
int rm_python_create(const struct rm_world_config *config, uint64_t seed, uint64_t first_world,
                     uint32_t worlds, struct rm_env **env, struct rm_error *error);

#endif
