/* publisher: gives a policy's parameters to everybody who acts with it, by interval, and where
 * asked for only when they have changed enough since the last time. Belongs to one learner's
 * thread; nothing is allocated after open and go_late. */
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

/* A publication on its way out of a device. */
struct rm_publisher_late {
    const float *params;  /* the device's: what offers are of */
    const uint64_t *made; /* the device's: updates made so far */
    uint64_t before;      /* and those that are not counted there */
    float *next;          /* (count), the device's: as they were when the copy began */
    float *staged;        /* (count), pinned: the copy */
    double *partials;     /* the device's */
    struct rm_publisher_found *found, *told; /* the device's, and its copy, pinned */
    struct rm_device_mark *begun, *over;
    bool under_way;
    bool again; /* another was due since: the latest parameters go next */
};

struct rm_publisher {
    struct rm_weights *weights;
    struct rm_backend *backend;
    struct rm_board_policy *counters;
    float *last;                   /* (weights->count), the backend's: what was published last */
    float *host;                   /* (weights->count), the same */
    uint64_t due_at;               /* updates at the last publication or skip */
    uint64_t stamped;              /* updates of the last publication */
    uint64_t env_steps;            /* agent steps learned from, for the stamp of the next one */
    uint32_t interval;             /* hot: updates */
    double min_change;             /* hot: relative, 0 = always */
    struct rm_publisher_late late; /* zeros where offers are complete when they return */
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
 * was skipped. Round 0: rounds are not kept. */
bool rm_publisher_offer(struct rm_publisher *publisher, const float *params, uint64_t updates,
                        uint64_t round);

/* From now on offers, which are of `params` alone, wait for no update on a device: they begin a
 * copy behind the updates that have been put there, and a later call of rm_publisher_poll() writes
 * it to the weights. An offer that comes meanwhile waits its turn, and is of the parameters as they
 * are then; so the latest wins. `made`, in the device's memory, counts updates; `before` more are
 * not counted there. rm_publisher_publish() goes on publishing at once. */
int rm_publisher_go_late(struct rm_publisher *publisher, const float *params, const uint64_t *made,
                         uint64_t before, struct rm_error *error);

/* Offers now, whatever the interval is. Only after rm_publisher_go_late(). */
void rm_publisher_send(struct rm_publisher *publisher, uint64_t updates);

/* Writes what has arrived; never waits. Returns whether a copy is still under way. */
bool rm_publisher_poll(struct rm_publisher *publisher);

/* Waits for what is under way. */
void rm_publisher_end(struct rm_publisher *publisher);

#endif
