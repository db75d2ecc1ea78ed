/* native_worlds: a policy's worlds on its learner's devices (actor.device "cuda"): each device has
 * a part of them (native_part.h), in the order of their numbers, and trains on rollouts of that
 * part only.
 *
 * With given weights, a world behaves the same on any number of devices; a checkpoint can be
 * resumed on another number of devices.
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
    const struct rm_rollout *rows[RM_DEVICE_MEMBERS]; /* each device's rollout, on which the learner
                                                       * trains */
    char *host;                                       /* (worlds) states, in the host's format */
    float *scratch;                                   /* (worlds + 1, 2) */
};

struct rm_native_worlds_spec {
    struct rm_session *session; /* outlives it */
    uint32_t policy;
    uint64_t seed;              /* of the worlds and of acting */
    struct rm_backend *backend; /* joined with others: all of them */
};

/* Creation has two steps, because the learner needs the rows, and acting needs the learner. After
 * rm_native_worlds_create() `rows` can be passed to a learner; after rm_native_worlds_join()
 * rollouts can be made. If either function fails, call rm_native_worlds_destroy(). */
int rm_native_worlds_create(struct rm_native_worlds *worlds,
                            const struct rm_native_worlds_spec *spec, struct rm_error *error);
int rm_native_worlds_join(struct rm_native_worlds *worlds, struct rm_actor_critic *learner,
                          struct rm_error *error);
void rm_native_worlds_destroy(struct rm_native_worlds *worlds);

/* The rollouts of all devices but the first, for rm_trainer_spec.others; NULL if there is one
 * device. */
const struct rm_rollout *const *rm_native_worlds_others(const struct rm_native_worlds *worlds);

/* Puts a whole rollout and the copy of its results on the devices' streams. Does not wait; the
 * results are there when later work on the streams is done (rm_actor_critic_collect()). */
void rm_native_worlds_make(struct rm_native_worlds *worlds);

/* The worlds' state, for checkpoints. Call between rollouts. */
void rm_native_worlds_state(struct rm_native_worlds *worlds, struct rm_state *state);

#endif
