/* normaliser: running mean and deviation of a network's inputs (network.normalize_observations).
 * The arena has two vectors, mean and 1 / deviation, so actors receive them with the weights. The
 * normaliser computes the moments and writes the vectors.
 *
 * A learner adds the rows of a rollout or batch. It writes the vectors after its updates and before
 * it publishes, so that actors use the same vectors as the learner's next updates. Rows are merged
 * in the order given, in blocks of a fixed size (moments.h), so the result depends only on the rows
 * and their order. A block with a number that is not finite is ignored, because it would make all
 * later moments not finite.
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
    size_t mean_at, scale_at; /* floats into the arena; SIZE_MAX: the network does not normalise,
                                 and every call does nothing */
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

/* Adds rows to the moments. x: (rows, inputs), host memory, before normalisation. */
void rm_normaliser_add(struct rm_normaliser *normaliser, const float *x, size_t rows);

/* Writes mean and 1 / sqrt(variance + 1e-8) into the arena (the backend's memory); call
 * rm_net_prepare() afterwards. Before the first row, does nothing. */
void rm_normaliser_write(const struct rm_normaliser *normaliser, float *params);

/* Continues from the vectors of an arena (host memory), which count as moments of `count` rows. */
void rm_normaliser_resume(struct rm_normaliser *normaliser, const float *params, double count);

#endif
