/* Worlds of the host's that are given the actions of a device's. Helpers assert; they are called
 * inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_WORLD_TWIN_H
#define RM_TESTS_SUPPORT_WORLD_TWIN_H

#include "actor/worlds/worlds.h"
#include "shm/session/session.h"
#include "learner/native_part.h"

struct rm_test_twin {
    struct rm_world world;
    struct rm_env *env;
    const struct rm_env_agent *agent;
    uint32_t worlds, bytes, inputs;
    uint8_t *obs, *flags;
    float *reward, *x;
    double *score;
    struct rm_env_buffers out;
};

/* Worlds [first, first + worlds) of the run. */
void rm_test_twin_open(struct rm_test_twin *t, const struct rm_session *session, uint32_t first,
                       uint32_t worlds);
void rm_test_twin_close(struct rm_test_twin *t);

/* Plays the rollout in hand: its rows, the scores of its episodes and the worlds after it are the
 * same to the bit. Returns how many episodes ended. */
uint32_t rm_test_twin_follow(struct rm_test_twin *t, const struct rm_native_part *n);

#endif
