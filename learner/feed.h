/* feed: how batches of replay get to a device, learner.feed.
 *
 *   staged      the host draws and makes them of rows; one copy each (algo/staging.h)
 *   resident    every row crosses once, into a copy of the ring on the device, and batches are
 * drawn and made there; with priorities their tree is the device's too, and what it changes is
 * written through to shared memory (backend/device_draw.h) registered  the host draws; the device
 * reads the shared ring itself, mapped into its address space; a row that its writer touched
 * meanwhile counts with weight 0
 *
 * The same items are drawn in all of them, and batches are equal to the bit. With priorities there
 * is a difference in when: a resident draw knows what all updates before it have learned, as on the
 * CPU, the others hear of it up to RM_TRAINER_DEPTH updates later. `auto` measures what a batch
 * takes and says what it chose; with priorities it does not, for then its choice would change
 * results: it takes `resident` wherever it can be had. Belongs to the learner's thread; nothing is
 * allocated after create. */
#ifndef RM_LEARNER_FEED_H
#define RM_LEARNER_FEED_H

#include "actor/env.h"
#include "config/experiment.h"
#include "learner/backend/backend.h"
#include "learner/backend/device_draw.h"
#include "learner/sampler.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_feed;

struct rm_feed_spec {
    struct rm_backend *backend;            /* has a device; outlives the feed, as what its rings and
                                              priorities stand in */
    const struct rm_sampler_spec *sampler; /* of who draws on the host; read by create alone */
    double steps_per_update; /* agent steps that come in meanwhile, about; for measuring */
    enum rm_feed_kind kind;
    const char *cannot; /* why it has to be staged, NULL: it has not */
    const char *name;   /* of the policy, for the log */
};

/* *feed is NULL where batches are staged. A kind that was asked for and cannot be had is an error
 * in words. */
int rm_feed_create(struct rm_feed **feed, const struct rm_feed_spec *spec, struct rm_error *error);
void rm_feed_destroy(struct rm_feed *feed);

/* How the device makes batches, for whoever trains (rm_trainer_spec.gather), and how it draws them
 * (.draw); NULL: the host draws. */
const struct rm_device_gather *rm_feed_gather(const struct rm_feed *feed);
const struct rm_device_sampler *rm_feed_draw(const struct rm_feed *feed);

/* Before a draw: rows that have come since the last one are put on their way, on the IN stream. */
void rm_feed_bring(struct rm_feed *feed, const struct rm_sampler *sampler);

/* What the device is to draw from, of the rows that were brought, with this exponent of the
 * importance weights. Returns false where there is too little. */
bool rm_feed_turn(const struct rm_feed *feed, const struct rm_sampler *sampler, double beta,
                  struct rm_device_turn *turn);

#endif
