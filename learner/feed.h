/* feed: how batches of replay get to a device, learner.feed.
 *
 *   staged      the host makes them of rows; one copy each (algo/staging.h)
 *   resident    every row's observations cross once, into a copy of the ring on the device, and
 *               batches are made there of what the sampler picks
 *   registered  the device reads the shared ring itself, mapped into its address space; a row that
 *               its writer touched meanwhile counts with weight 0
 *
 * The sampler draws the same items in all of them, and batches are equal to the bit. `auto`
 * measures what a batch takes and says what it chose. Belongs to the learner's thread; nothing is
 * allocated after create. */
#ifndef RM_LEARNER_FEED_H
#define RM_LEARNER_FEED_H

#include "actor/env.h"
#include "config/experiment.h"
#include "learner/backend/backend.h"
#include "learner/backend/device_feed.h"
#include "learner/sampler.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_feed;

struct rm_feed_spec {
    struct rm_backend *backend; /* has a device; outlives the feed, as all that follows */
    const struct rm_sampler_source *sources;
    uint32_t source_count;
    const struct rm_env_agent *agent;
    bool codes; /* batches are of int32 codes */
    uint32_t batch, stack;
    double steps_per_update; /* agent steps that come in meanwhile, about; for measuring */
    enum rm_feed_kind kind;
    const char *cannot; /* why it has to be staged, NULL: it has not */
    const char *name;   /* of the policy, for the log */
};

/* *feed is NULL where batches are staged. A kind that was asked for and cannot be had is an error
 * in words. */
int rm_feed_create(struct rm_feed **feed, const struct rm_feed_spec *spec, struct rm_error *error);
void rm_feed_destroy(struct rm_feed *feed);

/* How the device makes batches, for whoever trains (rm_trainer_spec.gather). */
const struct rm_device_gather *rm_feed_gather(const struct rm_feed *feed);

/* Before a draw: rows that have come since the last one are put on their way, on the IN stream. */
void rm_feed_bring(struct rm_feed *feed, const struct rm_sampler *sampler);

#endif
