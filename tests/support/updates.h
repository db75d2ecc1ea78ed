/* Batches of random numbers and trainers to learn from them: what tests of whole updates share.
 * Helpers assert; they are called inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_UPDATES_H
#define RM_TESTS_SUPPORT_UPDATES_H

#include "learner/algo/updates.h"

enum { RM_UPDATES_INPUTS = 10, RM_UPDATES_ACTIONS = 3, RM_UPDATES_BATCH = 16 };

struct rm_test_updates {
    struct rm_batch batch;
    float obs[RM_UPDATES_BATCH * RM_UPDATES_INPUTS], next_obs[RM_UPDATES_BATCH * RM_UPDATES_INPUTS];
    float ret[RM_UPDATES_BATCH], discount[RM_UPDATES_BATCH];
    float weight[RM_UPDATES_BATCH], error[RM_UPDATES_BATCH];
    int32_t action[RM_UPDATES_BATCH];
    uint8_t next_mask[RM_UPDATES_BATCH * RM_UPDATES_ACTIONS];
};

/* An experiment of this algorithm with Adam, batches of RM_UPDATES_BATCH and no layers yet. */
struct rm_experiment rm_test_updates_settings(enum rm_algorithm name);
/* Adds a layer; what its type does not have is 0. Dropout drops a fifth. */
void rm_test_updates_layer(struct rm_experiment *e, enum rm_layer_type type, uint32_t units,
                           uint32_t cosines);

/* An experiment with them: a small network with all that an update can meet - noise,
 * dropout, dueling heads - and Adam. `plain`: two linear layers alone. */
struct rm_experiment rm_test_updates_experiment(enum rm_algorithm name, bool plain);

/* What to make a trainer of it with: agents with this many inputs and actions, without masks. */
struct rm_trainer_spec rm_test_updates_spec(const struct rm_experiment *e, struct rm_backend *b,
                                            uint32_t inputs, uint32_t actions);
struct rm_trainer *rm_test_updates_make(const struct rm_trainer_spec *spec);

/* A trainer for the batches below, masks and all; and what it is made of. */
struct rm_trainer_spec rm_test_updates_trainer_spec(const struct rm_experiment *e,
                                                    struct rm_backend *b);
struct rm_trainer *rm_test_updates_trainer(const struct rm_experiment *e, struct rm_backend *b);

/* The batch of update `number`: by its number alone. Weights and errors where replay is
 * prioritised, masks always. */
void rm_test_updates_draw(struct rm_test_updates *u, const struct rm_experiment *e,
                          uint64_t number);

/* Copies of a trainer's arena, for the caller to free: host memory. */
float *rm_test_updates_copy(const struct rm_trainer *t, struct rm_backend *b, const float *arena);

/* ||x - y|| / ||y||. */
double rm_test_updates_apart(const float *x, const float *y, size_t n);

#endif
