/* Trainers of rollouts, and rollouts of random numbers for them: what tests of whole rollouts on a
 * device share. Helpers assert; they are called inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_ROLLOUT_LEARNER_H
#define RM_TESTS_SUPPORT_ROLLOUT_LEARNER_H

#include "actor/worlds/worlds.h"
#include "shm/session/session.h"
#include "learner/algo/actor_critic.h"
#include "shm/base/state.h"

/* An experiment in the corridor, 6 lanes and rollouts of 10 steps; agents with masks and several
 * choices a step. */
struct rm_test_corridor {
    struct rm_session session;
    struct rm_world world;
    struct rm_env *env;
};

/* A learner, its rollout's buffers, and what its updates came to. */
struct rm_test_learner {
    struct rm_backend *backend;
    struct rm_rollout rows;
    struct rm_actor_critic *ac;
    uint64_t attempts, made, skipped, samples;
    double loss, grad_norm; /* of the last update */
};

/* `algorithm` and `network`: what stands between the braces of these sections. */
void rm_test_corridor_open(struct rm_test_corridor *c, const char *algorithm, const char *network);
void rm_test_corridor_close(struct rm_test_corridor *c);

/* A network for it: two small layers. */
#define RM_TEST_CORRIDOR_LAYERS                                                                    \
    "\"layers\": [{\"type\": \"linear\", \"units\": 16}, {\"type\": \"tanh\"},"                    \
    " {\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"}]"

/* And a recurrent one; what follows is the trunk, in quotes. */
#define RM_TEST_CORRIDOR_RECURRENT(cell)                                                           \
    "\"layers\": [{\"type\": \"linear\", \"units\": 8}, {\"type\": \"tanh\"},"                     \
    " {\"type\": \"" cell "\", \"units\": 6}], \"trunk\": "

/* The corridor outlives its learners. */
void rm_test_learner_open(struct rm_test_learner *l, struct rm_test_corridor *c,
                          struct rm_backend *backend);
void rm_test_learner_close(struct rm_test_learner *l);

/* Fills its buffers with rollout `number`, which is a function of the number alone. */
void rm_test_learner_draw(struct rm_test_learner *l, uint64_t number);

/* Learns from what is in its buffers, from the rollout's beginning to its end. */
void rm_test_learner_learn(struct rm_test_learner *l, uint64_t number);

/* Adds what an update came to. */
void rm_test_learner_count(struct rm_test_learner *l, const struct rm_actor_critic_update *u);

/* Its parameters in host memory, for the caller to free. */
float *rm_test_learner_params(const struct rm_test_learner *l);

/* All that a checkpoint has of it, as bytes; for the caller to destroy. */
struct rm_state *rm_test_learner_state(struct rm_test_learner *l);
struct rm_state *rm_test_actor_critic_state(struct rm_actor_critic *ac);

/* What both counted, and what they made of the latest rollout, is alike but for rounding. */
void rm_test_learner_compare(const struct rm_test_learner *d, const struct rm_test_learner *c);

#endif
