/* A batch of worlds with buffers around it, for tests: every buffer has guard bytes between
 * entries, which rm_test_batch_guards() checks. Helpers assert; they are called inside a cmocka
 * test. */
#ifndef RM_TESTS_SUPPORT_BATCH_H
#define RM_TESTS_SUPPORT_BATCH_H

#include "actor/worlds/worlds.h"
#include "shm/base/rng.h"

struct rm_test_batch {
    struct rm_world world;
    struct rm_env *env;
    const struct rm_env_spec *spec;
    uint32_t worlds;
    struct rm_env_buffers out[64];
    int32_t *actions[64]; /* (worlds, words) */
    const int32_t *const_actions[64];
    size_t obs_bytes[64];
};

/* options: "key=1 other=0.5", or NULL. library: NULL for built in. Does not reset. */
void rm_test_batch_open(struct rm_test_batch *batch, const char *name, const char *library,
                        const char *options, uint64_t seed, uint64_t first_world, uint32_t worlds);
/* The same for the world of a configuration. */
void rm_test_batch_open_configured(struct rm_test_batch *batch,
                                   const struct rm_world_config *config, uint64_t seed,
                                   uint64_t first_world, uint32_t worlds);
void rm_test_batch_close(struct rm_test_batch *batch);

/* Choices that an agent makes in one step, and words of its action: real numbers are behind them.
 */
uint32_t rm_test_batch_choices(const struct rm_env_agent *agent);
uint32_t rm_test_batch_words(const struct rm_env_agent *agent);

/* Fills `config` from such a text. */
void rm_test_world_config(struct rm_world_config *config, const char *name, const char *options);

void rm_test_batch_reset(struct rm_test_batch *batch);

/* The actions of `phase`, as they stand in batch->actions. */
void rm_test_batch_step(struct rm_test_batch *batch, uint32_t phase);

/* Random actions for the agents of `phase`, legal where there are masks, drawn by (seed, world id,
 * agent, `time`): the same whatever the batch. */
void rm_test_batch_draw(struct rm_test_batch *batch, uint64_t seed, uint64_t first_world,
                        uint32_t phase, uint64_t time);

const void *rm_test_batch_obs(const struct rm_test_batch *batch, uint32_t agent, uint32_t world);
const uint8_t *rm_test_batch_mask(const struct rm_test_batch *batch, uint32_t agent,
                                  uint32_t world);
void rm_test_batch_guards(const struct rm_test_batch *batch);

/* Path of a file under the build folder, found from where the test program stands. */
const char *rm_test_build_path(const char *name);

#endif
