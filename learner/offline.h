/* offline: reads the rows of a recording as a policy's replay (`sample.from`). The learner fills
 * rings of its own with the rows, one ring for each stream, and its sampler draws from them as from
 * actors' rings. No other code uses these rings. Checkpoints do not contain the rows: a resumed
 * learner reads the recording again, and compares its hash with the checkpoint's.
 *
 * A new generation begins at a row that follows lost rows, or that another writer wrote than the
 * row before; no transition crosses its beginning. Used by the learner's thread. */
#ifndef RM_LEARNER_OFFLINE_H
#define RM_LEARNER_OFFLINE_H

#include "learner/sampler.h"
#include "shm/session/session.h"

struct rm_offline {
    uint32_t count; /* streams of the policy */
    struct rm_ring *ring;
    struct rm_sampler_source *source; /* (count), as the sampler takes them */
    uint64_t rows;                    /* of the longest stream */
    uint32_t lanes;                   /* of all streams */
    uint64_t hash;                    /* of the recording's chunks */
};

/* Checks that the experiment's recording has the observations and actions of its policies. Reads no
 * rows. Returns 0, also without a recording; -EINVAL or -EBADMSG with a message. */
int rm_offline_check(const struct rm_experiment *experiment, const struct rm_plan *plan,
                     struct rm_error *error);

/* Makes the same checks, then reads all rows of a policy. -EBADMSG: a chunk is damaged; the message
 * has its number and position. */
int rm_offline_open(struct rm_offline *offline, const struct rm_experiment *experiment,
                    const struct rm_plan *plan, uint32_t policy, struct rm_error *error);
void rm_offline_close(struct rm_offline *offline);

#endif
