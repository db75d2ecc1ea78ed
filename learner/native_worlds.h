/* native_worlds: a policy's worlds on its learner's devices (actor.device "cuda"): each device has
 * a part of them (native_part.h), in the order of their numbers, and makes rollouts of it that it
 * alone learns from.
 *
 * What happens in a world does not depend on how many devices there are, but through the weights; a
 * checkpoint of some goes on on others.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_NATIVE_WORLDS_H
#define RM_LEARNER_NATIVE_WORLDS_H

#include "learner/backend/device_collective.h"
#include "learner/native_part.h"

struct rm_native_worlds {
    uint32_t count; /* of devices */
    uint32_t worlds;
    struct rm_native_part part[RM_DEVICE_MEMBERS];
    const struct rm_rollout *rows[RM_DEVICE_MEMBERS]; /* each one's: what the learner is given */
    char *host;                                       /* (worlds) states, in the host's form */
    float *scratch;                                   /* (worlds + 1, 2) */
};

struct rm_native_worlds_spec {
    struct rm_session *session; /* outlives it */
    uint32_t policy;
    uint64_t seed;              /* of the worlds and of acting */
    struct rm_backend *backend; /* joined with others: all of them */
};

/* In two steps, because the learner is made of the rows and acting of the learner: after the first
 * `rows` can be given to a learner, after the second rollouts can be made. On failure of either
 * destroy() takes what there is. */
int rm_native_worlds_create(struct rm_native_worlds *worlds,
                            const struct rm_native_worlds_spec *spec, struct rm_error *error);
int rm_native_worlds_join(struct rm_native_worlds *worlds, struct rm_actor_critic *learner,
                          struct rm_error *error);
void rm_native_worlds_destroy(struct rm_native_worlds *worlds);

/* For rm_actor_critic_spec: the rollouts of the devices after the first; NULL where there is one.
 */
const struct rm_rollout *const *rm_native_worlds_others(const struct rm_native_worlds *worlds);

/* Puts a whole rollout on the devices' streams, and the news of it behind. Waits for nothing; what
 * the parts were `told` then is there once anything that was put behind it is
 * (rm_actor_critic_collect()). */
void rm_native_worlds_make(struct rm_native_worlds *worlds);

/* Between rollouts, for checkpoints. */
void rm_native_worlds_state(struct rm_native_worlds *worlds, struct rm_state *state);

#endif
