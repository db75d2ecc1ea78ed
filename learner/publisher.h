/* publisher: publishes a policy's parameters to all workers that act with the policy, once per
 * interval. With min_change it publishes only if the parameters have changed enough since the last
 * publication. Used by one learner's thread; nothing is allocated after rm_publisher_open() and
 * rm_publisher_go_late(). */
#ifndef RM_LEARNER_PUBLISHER_H
#define RM_LEARNER_PUBLISHER_H

#include "learner/backend/backend.h"
#include "shm/base/error.h"
#include "shm/board.h"
#include "shm/weights.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_device_mark;

/* A publication that is being copied from a device. */
struct rm_publisher_late {
    const float *params;  /* in the device's memory: the parameters that are offered */
    const uint64_t *made; /* in the device's memory: updates made so far */
    uint64_t before;      /* earlier updates, which the device does not count */
    float *next;          /* (count), in the device's memory: the parameters when the copy began */
    float *staged;        /* (count), pinned: the copy */
    double *partials;     /* the device's */
    struct rm_publisher_found *found, *result; /* the result in the device's memory, and its pinned
                                                * copy */
    struct rm_device_mark *begun, *over;
    bool under_way;
    bool again; /* another publication is due: the latest parameters follow */
};

struct rm_publisher {
    struct rm_weights *weights;
    struct rm_backend *backend;
    struct rm_board_policy *counters;
    float *last;                   /* (weights->count), in the backend's memory: the parameters
                                    * published last */
    float *host;                   /* (weights->count), in host memory: the same */
    uint64_t due_at;               /* updates at the last publication or skip */
    uint64_t stamped;              /* updates of the last publication */
    uint64_t env_steps;            /* agent steps trained on, for the next stamp */
    uint32_t interval;             /* hot: updates */
    double min_change;             /* hot: relative change, 0 = always publish */
    struct rm_publisher_late late; /* zeros if offers are complete when they return */
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

/* Makes later offers not wait for updates on the device. All offers must be of `params`. An offer
 * puts a copy on the stream after the updates there, and a later rm_publisher_poll() writes the
 * copy to the weights. If an offer comes during a copy, the current parameters are copied after it,
 * so the latest are published. `made`, in the device's memory, counts updates; `before` is the
 * number of earlier updates. rm_publisher_publish() still publishes at once. */
int rm_publisher_go_late(struct rm_publisher *publisher, const float *params, const uint64_t *made,
                         uint64_t before, struct rm_error *error);

/* Offers now, regardless of the interval. Only after rm_publisher_go_late(). */
void rm_publisher_send(struct rm_publisher *publisher, uint64_t updates);

/* Writes an arrived copy to the weights; never waits. Returns whether a copy is still in
 * progress. */
bool rm_publisher_poll(struct rm_publisher *publisher);

/* Waits for the copy in progress. */
void rm_publisher_end(struct rm_publisher *publisher);

#endif
