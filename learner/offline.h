/* offline: the rows of a recording as the replay of a policy (`sample.from`). The learner makes
 * rings of its own of them, one for each stream, from which its sampler draws as from those of
 * actors; nothing else writes or reads these rings. The rows are not part of checkpoints: a resumed
 * learner reads the recording again, and its hash says whether that is still the same.
 *
 * A row after lost ones, or of another writer than the row before it, begins a generation: no
 * transition reaches across. Belongs to the learner's thread. */
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

/* Does the experiment's recording fit what its policies see and do? 0, also without a recording;
 * -EINVAL, -EBADMSG with a message. Reads no rows. */
int rm_offline_check(const struct rm_experiment *experiment, const struct rm_plan *plan,
                     struct rm_error *error);

/* Reads all rows of a policy, after the same checks. -EBADMSG with number and position of a chunk
 * that is damaged. */
int rm_offline_open(struct rm_offline *offline, const struct rm_experiment *experiment,
                    const struct rm_plan *plan, uint32_t policy, struct rm_error *error);
void rm_offline_close(struct rm_offline *offline);

#endif
