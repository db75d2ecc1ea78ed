/* native_worlds: a policy's worlds on its learner's device (actor.device "cuda"): where rollouts
 * are made by the network that learns, out of which they are learned from. A world of the actors'
 * kind on the host gives what a device cannot make: the first episodes, and the check of a saved
 * state.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_NATIVE_WORLDS_H
#define RM_LEARNER_NATIVE_WORLDS_H

#include "actor/envs/native.h"
#include "actor/worlds.h"
#include "learner/algo/actor_critic.h"
#include "learner/backend/device_worlds.h"
#include "learner/rollout_rows.h"

struct rm_native_worlds {
    struct rm_backend *backend;
    const struct rm_session *session;
    struct rm_world world;
    struct rm_env *env; /* the host's */
    size_t state_bytes; /* of all worlds */
    char *host;         /* (state_bytes) */

    struct rm_rollout rows; /* in the device's memory: what the learner is given */
    struct rm_device_worlds on;
    struct rm_device_draw draw;
    struct rm_device_orders orders;
    const struct rm_net *net; /* the learner's */
    const float *params;
    struct rm_net_workspace *space;       /* for acting */
    struct rm_device_graph *first, *step; /* of a rollout: the first readies the weights */
    struct rm_device_stage *told;         /* pinned */
    void *owned[20];
    uint32_t owned_count;
};

struct rm_native_worlds_spec {
    struct rm_session *session; /* outlives it */
    uint32_t policy;
    uint64_t seed; /* of the worlds and of acting */
    struct rm_backend *backend;
};

/* In two steps, because the learner is made of the rows and acting of the learner: after the first
 * `rows` can be given to a learner, after the second rollouts can be made. On failure of either
 * destroy() takes what there is. */
int rm_native_worlds_create(struct rm_native_worlds *worlds,
                            const struct rm_native_worlds_spec *spec, struct rm_error *error);
int rm_native_worlds_join(struct rm_native_worlds *worlds, struct rm_actor_critic *learner,
                          struct rm_error *error);
void rm_native_worlds_destroy(struct rm_native_worlds *worlds);

/* Puts a whole rollout on the device's stream, and the news of it behind. Waits for nothing; what
 * `told` then has is there once anything that was put behind it is (rm_actor_critic_collect()). */
void rm_native_worlds_make(struct rm_native_worlds *worlds);

/* Between rollouts, for checkpoints. */
void rm_native_worlds_state(struct rm_native_worlds *worlds, struct rm_state *state);

#endif
