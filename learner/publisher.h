/* publisher: gives a policy's parameters to everybody who acts with it, by interval, and where
 * asked for only when they have changed enough since the last time. Belongs to one learner's
 * thread. */
#ifndef RM_LEARNER_PUBLISHER_H
#define RM_LEARNER_PUBLISHER_H

#include "learner/backend/backend.h"
#include "shm/base/error.h"
#include "shm/board.h"
#include "shm/weights.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_publisher {
    struct rm_weights *weights;
    struct rm_backend *backend;
    struct rm_board_policy *counters;
    float *last;        /* (weights->count), the backend's: what was published last */
    float *host;        /* (weights->count), the same */
    uint64_t due_at;    /* updates at the last publication or skip */
    uint64_t stamped;   /* updates of the last publication */
    uint64_t env_steps; /* agent steps learned from, for the stamp of the next one */
    uint32_t interval;  /* hot: updates */
    double min_change;  /* hot: relative, 0 = always */
};

int rm_publisher_open(struct rm_publisher *publisher, struct rm_weights *weights,
                      struct rm_backend *backend, struct rm_board_policy *counters,
                      struct rm_error *error);
void rm_publisher_close(struct rm_publisher *publisher);

/* Takes a predecessor's last publication for its own. params: host memory. */
void rm_publisher_resume(struct rm_publisher *publisher, const float *params, uint64_t updates);

/* Publishes now, as a new version in any case. params: weights->count floats of the backend. Those
 * that have exploded are not given to anybody: then it is the last ones again, and counted as
 * skipped. */
void rm_publisher_publish(struct rm_publisher *publisher, const float *params, uint64_t updates,
                          uint64_t round);

/* Publishes if `interval` updates have been made since it was last due and the relative change
 * ||params - last|| / ||last|| is at least min_change, and they have not exploded; else counts what
 * was skipped. */
bool rm_publisher_offer(struct rm_publisher *publisher, const float *params, uint64_t updates,
                        uint64_t round);

#endif
