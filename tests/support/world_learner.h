/* Learners whose worlds are on their device: what tests of such worlds share. Helpers assert; they
 * are called inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_WORLD_LEARNER_H
#define RM_TESTS_SUPPORT_WORLD_LEARNER_H

#include "learner/algo/actor_critic.h"
#include "shm/session/session.h"
#include "learner/native_worlds.h"
#include "shm/base/state.h"

struct rm_test_world_learner {
    const struct rm_session *session;
    struct rm_native_worlds worlds;
    struct rm_actor_critic *ac;
    uint64_t attempts, number; /* updates and rollouts so far */
};

/* An experiment of PPO, two passes of three minibatches, in `worlds` worlds of this name;
 * `options`: what stands between the braces of world.options. Closed with rm_session_close(). */
void rm_test_world_session(struct rm_session *session, const char *world, const char *options,
                           uint32_t worlds, uint32_t steps);

/* The same with other passes: `algorithm` stands between its braces. */
void rm_test_world_session_by(struct rm_session *session, const char *algorithm, const char *world,
                              const char *options, uint32_t worlds, uint32_t steps);

/* The session outlives it; `device` may be the first of several that are joined. */
void rm_test_world_learner_open(struct rm_test_world_learner *l, struct rm_session *session,
                                struct rm_backend *device);
void rm_test_world_learner_close(struct rm_test_world_learner *l);

/* Makes the next rollout and learns from it. */
void rm_test_world_learner_turn(struct rm_test_world_learner *l);

/* All that a checkpoint has of it, as bytes; for the caller to destroy. */
struct rm_state *rm_test_world_learner_state(struct rm_test_world_learner *l);

/* A copy of device memory, for the caller to free. */
void *rm_test_device_fetch(struct rm_backend *device, const void *from, size_t bytes);

#endif
