/* weights: the parameters of one policy, from its learner to all workers that act with it. One
 * writer, any number of readers; neither side ever waits for the other.
 *
 * Three slots, each with its own sequence word, and `latest`. The writer fills the slot after the
 * latest one and then moves `latest`. A learner that dies while publishing leaves `latest`
 * readable. A reader that finds another version in the slot than `latest` named tries again.
 *
 * Version 0 means that nothing was published yet. Versions count publications, from 1, without
 * gaps. `updates` is the learner's update count at that publication, in which policy lag is
 * measured.
 *
 * The arena is `count` floats; acting needs the first `act_count`. */
#ifndef RM_SHM_WEIGHTS_H
#define RM_SHM_WEIGHTS_H

#include "shm/base/error.h"
#include "shm/region.h"

#include <stdint.h>

#define RM_WEIGHTS_SLOTS 3

struct rm_weights {
    struct rm_region region;
    struct rm_weights_shared *shared;
    uint64_t count;     /* floats per slot */
    uint64_t act_count; /* leading floats needed to act */
};

struct rm_weights_stamp {
    uint64_t version;   /* publication number */
    uint64_t updates;   /* learner updates when published */
    uint64_t round;     /* lockstep round in which it was published, else 0 */
    uint64_t time_ns;   /* rm_now_ns() when published */
    uint64_t env_steps; /* agent steps that the learner had counted then */
};

int rm_weights_create(struct rm_weights *weights, uint32_t policy, uint64_t count,
                      uint64_t act_count, struct rm_error *error);
int rm_weights_attach(struct rm_weights *weights, int fd, bool writable, struct rm_error *error);
void rm_weights_close(struct rm_weights *weights);

/* Writer only. Copies `count` floats. Sets the stamp's version, and its time if that is 0. Returns
 * the version. */
uint64_t rm_weights_publish(struct rm_weights *weights, const float *params,
                            struct rm_weights_stamp stamp);

/* The latest stamp, without copying weights. Its version is 0 when nothing is published. */
struct rm_weights_stamp rm_weights_latest(const struct rm_weights *weights);

/* Copies the first `n` floats of the latest version. Returns 1 with the stamp, 0 when nothing was
 * published yet. Retries while the writer laps the copy and adds the retries to *retries (may be
 * NULL). */
int rm_weights_read(const struct rm_weights *weights, float *params, uint64_t n,
                    struct rm_weights_stamp *stamp, uint64_t *retries);

/* Copies version `version`. Returns 1; 0 when it is not published yet or no longer kept. */
int rm_weights_read_version(const struct rm_weights *weights, uint64_t version, float *params,
                            uint64_t n, struct rm_weights_stamp *stamp);

/* All versions that are kept, for checkpoints (shm/base/state.h). The writer must not publish
 * during the call. */
struct rm_state;
void rm_weights_state(struct rm_weights *weights, struct rm_state *state);

/* Lockstep: like rm_weights_read(), but copies the newest version published in a round <
 * `round`. */
int rm_weights_read_before(const struct rm_weights *weights, uint64_t round, float *params,
                           uint64_t n, struct rm_weights_stamp *stamp);

#endif
