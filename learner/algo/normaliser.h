/* normaliser: running mean and deviation of a network's inputs (network.normalize_observations).
 * The numbers themselves are two vectors of the arena, mean and 1 / deviation, so actors apply what
 * they are given with the weights, and the learner the same; this counts, and writes them there.
 *
 * A learner adds the rows of a rollout or batch and writes after its updates and before it
 * publishes: what an actor answered with is what the learner trained with. Rows are merged in the
 * order in which they are given, in blocks of a fixed size (moments.h), so that the numbers depend
 * on nothing else. A block with a number that is not finite is left out: it would stay for ever.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_NORMALISER_H
#define RM_LEARNER_ALGO_NORMALISER_H

#include "learner/backend/backend.h"
#include "shm/base/error.h"

#include <stddef.h>
#include <stdint.h>

struct rm_normaliser {
    struct rm_backend *backend;
    uint32_t inputs;
    size_t mean_at, scale_at; /* floats into the arena; SIZE_MAX: the network takes inputs as they
                                 are, and every call does nothing */
    double count;
    double *mean, *m2; /* (inputs): m2 the sum of squared deviations. A checkpoint keeps count, mean
                          and m2 */
    double *block_mean, *block_m2; /* (inputs) of the rows being added */
    float *host;                   /* (inputs) */
};

/* mean_at, scale_at: rm_net_input_mean_at(), rm_net_input_scale_at(). */
int rm_normaliser_create(struct rm_normaliser *normaliser, struct rm_backend *backend,
                         uint32_t inputs, size_t mean_at, size_t scale_at, struct rm_error *error);
void rm_normaliser_destroy(struct rm_normaliser *normaliser);

/* x (rows, inputs), host memory, before normalising. */
void rm_normaliser_add(struct rm_normaliser *normaliser, const float *x, size_t rows);

/* Writes mean and 1 / sqrt(variance + 1e-8) into the arena (the backend's memory); rm_net_prepare()
 * must follow. Nothing before the first row. */
void rm_normaliser_write(const struct rm_normaliser *normaliser, float *params);

/* Goes on from the vectors of an arena (host memory) that stand for `count` rows. */
void rm_normaliser_resume(struct rm_normaliser *normaliser, const float *params, double count);

#endif
