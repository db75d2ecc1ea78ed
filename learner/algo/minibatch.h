/* minibatch: the samples of a rollout, shuffled for every pass. A pass is cut into minibatches by
 * rm_passes_part() (learner/backend/policy_ops.h). The order depends only on (seed, policy, pass
 * number) and on the samples.
 *
 * Belongs to one thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_MINIBATCH_H
#define RM_LEARNER_ALGO_MINIBATCH_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_minibatches_spec {
    uint32_t rows;  /* maximum number of samples */
    uint32_t parts; /* minibatches of a pass; fewer if there are fewer samples */
    uint64_t seed;
    uint32_t policy;
    bool shuffled; /* false: always in order */
};

struct rm_minibatches {
    struct rm_minibatches_spec spec;
    uint32_t *row;  /* (rows) the samples, in this pass's order */
    uint32_t *word; /* (rows) random numbers of a shuffle */
    uint32_t samples;
};

int rm_minibatches_create(struct rm_minibatches *m, const struct rm_minibatches_spec *spec,
                          struct rm_error *error);
void rm_minibatches_destroy(struct rm_minibatches *m);

/* Rows of the largest minibatch. */
uint32_t rm_minibatches_most(const struct rm_minibatches *m);

/* Begins a rollout with these samples. */
void rm_minibatches_begin(struct rm_minibatches *m, const uint32_t *row, uint32_t samples);

/* Permutes the previous order. Call before each pass. The permutation is uniform, except that a
 * position's probability may differ by 2^-32. */
void rm_minibatches_shuffle(struct rm_minibatches *m, uint64_t pass);

#endif
