/* prepared: batches of pairs (histories.h), made ahead of the updates by a thread,
 * RM_PREPARED_AHEAD at most. Batch `number` is a function of seed, policy and number, so neither
 * the thread's speed nor the number of processes changes a bit. Pairs are drawn uniformly, with
 * replacement.
 *
 * Belongs to the learner's thread. Nothing is allocated after create. */
#ifndef RM_LEARNER_PREPARED_H
#define RM_LEARNER_PREPARED_H

#include "config/net_shape.h"
#include "learner/backend/batch.h"
#include "learner/histories.h"

#define RM_PREPARED_AHEAD 3u

struct rm_prepared;

struct rm_prepared_spec {
    const struct rm_histories *histories; /* outlive it */
    struct rm_net_shape shape;            /* of the network */
    uint32_t batch;                       /* pairs */
    uint64_t seed;
    uint32_t policy;
};

int rm_prepared_create(struct rm_prepared **prepared, const struct rm_prepared_spec *spec,
                       struct rm_error *error);
void rm_prepared_destroy(struct rm_prepared *prepared);

/* Batch `number`: obs has the matrices of its pairs, action the actions of their queries. Valid
 * until the next call. Consecutive numbers are fast. */
struct rm_batch *rm_prepared_batch(struct rm_prepared *prepared, uint64_t number);

/* The held-out pairs from number `from` on, at most a batch. Valid until the next call. NULL: no
 * pair is left. */
struct rm_batch *rm_prepared_held_out(struct rm_prepared *prepared, uint64_t from);

#endif
