/* feed: replay on a device (learner.feed "resident"). Every row is copied once, into a copy of the
 * ring on the device, and the device draws and makes the batches. With priorities the device also
 * has the tree, and writes changes of the tree through to shared memory (backend/device_draw.h).
 * Without a feed, batches are staged: the host draws and makes a batch and copies it to the device
 * (algo/staging.h).
 *
 * Both ways draw the same items, and batches are equal to the bit. With priorities the draws differ
 * in time: a resident draw uses the errors of all earlier updates, as on the CPU; with staged
 * batches errors arrive up to RM_TRAINER_DEPTH updates later. `auto` means resident if the device
 * has enough memory. Used by the learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_FEED_H
#define RM_LEARNER_FEED_H

#include "actor/env.h"
#include "config/experiment.h"
#include "learner/backend/backend.h"
#include "learner/backend/device_draw.h"
#include "learner/backend/device_feed.h"
#include "learner/sampler.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_feed;

struct rm_feed_spec {
    struct rm_backend *backend;            /* has a device; outlives the feed, as do the regions of
                                            * rings and priorities */
    const struct rm_sampler_spec *sampler; /* of the host's sampler; only read by create */
    enum rm_feed_kind kind;
    const char *cannot; /* reason why batches must be staged; NULL: no reason */
    const char *name;   /* of the policy, for the log */
};

/* Sets *feed to NULL if batches are staged. The log has the choice and the reason. It is an error
 * if learner.feed is "resident" and that is not available. */
int rm_feed_create(struct rm_feed **feed, const struct rm_feed_spec *spec, struct rm_error *error);
void rm_feed_destroy(struct rm_feed *feed);

/* How a device decodes an agent's observations; codebooks are not set. */
struct rm_device_decode rm_feed_decode(const struct rm_env_agent *agent, uint32_t codes);

/* How the device draws and makes batches, for the trainer (rm_trainer_spec.draw). */
const struct rm_device_sampler *rm_feed_draw(const struct rm_feed *feed);

/* Before a draw: puts the copies of rows that arrived since the last draw in the IN queue. */
void rm_feed_copy(struct rm_feed *feed, const struct rm_sampler *sampler);

/* Prepares a draw on the device from the copied rows, with this exponent of the importance weights.
 * Returns false when there are too few rows. */
bool rm_feed_turn(const struct rm_feed *feed, const struct rm_sampler *sampler, double beta,
                  struct rm_device_turn *turn);

#endif
