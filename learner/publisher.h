/* publisher: publishes a policy's parameters to all workers that act with the policy, once per
 * interval. With min_change it publishes only if the parameters have changed enough since the last
 * publication. Used by one learner's thread; nothing is allocated after rm_publisher_open(). */
#ifndef RM_LEARNER_PUBLISHER_H
#define RM_LEARNER_PUBLISHER_H

#include "learner/backend/backend.h"
#include "shm/base/error.h"
#include "shm/board.h"
#include "shm/weights.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_publisher_found;

struct rm_publisher {
    struct rm_weights *weights;
    struct rm_backend *backend;
    struct rm_board_policy *counters;
    /* (weights->count), in the backend's memory: the parameters published last; those of the copy
     * in progress */
    float *last, *next;
    float *host, *staged; /* the same, in host memory */
    uint64_t due_at;      /* updates at the last publication or skip */
    uint64_t stamped;     /* updates of the last publication */
    uint64_t env_steps;   /* agent steps trained on, for the next stamp */
    uint32_t interval;    /* hot: updates */
    double min_change;    /* hot: relative change, 0 = always publish */

    const uint64_t *made; /* in the backend's memory: updates made; NULL: offers wait */
    uint64_t before;      /* earlier updates, which are not in *made */
    struct rm_publisher_found *found, *result; /* in the backend's memory; its copy on the host */
    struct rm_queue_mark *begun, *over;
    const float *params; /* of the copy in progress */
    bool under_way;
    bool again; /* another publication is due: the latest parameters follow */
};

int rm_publisher_open(struct rm_publisher *publisher, struct rm_weights *weights,
                      struct rm_backend *backend, struct rm_board_policy *counters,
                      struct rm_error *error);
void rm_publisher_close(struct rm_publisher *publisher);

/* Continues after a predecessor's last publication. params: host memory. */
void rm_publisher_resume(struct rm_publisher *publisher, const float *params, uint64_t updates);

/* Publishes a new version now. params: weights->count floats in the backend's memory. If the
 * parameters have exploded, the new version repeats the last parameters and is counted as
 * skipped. */
void rm_publisher_publish(struct rm_publisher *publisher, const float *params, uint64_t updates,
                          uint64_t round);

/* If `interval` updates have been made since a publication was last due: publishes if the relative
 * change ||params - last|| / ||last|| is at least min_change and the parameters have not exploded,
 * else counts a skip. round 0: a mode without rounds. */
bool rm_publisher_offer(struct rm_publisher *publisher, const float *params, uint64_t updates,
                        uint64_t round);

/* Makes later offers not wait for updates on the backend. All offers must be of the same
 * parameters. An offer puts a copy behind the updates there, and a later rm_publisher_poll() writes
 * the copy to the weights. If an offer comes during a copy, the current parameters are copied after
 * it, so the latest are published. `made`, in the backend's memory, counts updates; `before` is the
 * number of earlier updates. rm_publisher_publish() still publishes at once. */
void rm_publisher_go_late(struct rm_publisher *publisher, const uint64_t *made, uint64_t before);

/* Offers now, regardless of the interval. Only after rm_publisher_go_late(). */
bool rm_publisher_send(struct rm_publisher *publisher, const float *params, uint64_t updates);

/* Writes an arrived copy to the weights; never waits. Returns whether a copy is still in
 * progress. */
bool rm_publisher_poll(struct rm_publisher *publisher);

/* Waits for the copy in progress. */
void rm_publisher_end(struct rm_publisher *publisher);

#endif
