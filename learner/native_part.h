/* native_part: the worlds of a policy that are on one device (native_worlds.h): where rollouts are
 * made by the network that learns, out of which they are learned from. A world of the actors' kind
 * on the host gives what a device cannot make: the first episodes, and the check of a saved state.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_NATIVE_PART_H
#define RM_LEARNER_NATIVE_PART_H

#include "actor/worlds/builtin/native.h"
#include "actor/worlds/worlds.h"
#include "learner/algo/actor_critic.h"
#include "learner/backend/device_worlds.h"
#include "learner/rollout_rows.h"

struct rm_native_part {
    struct rm_backend *backend;
    const struct rm_session *session;
    struct rm_world world;
    struct rm_env *env; /* the host's */
    size_t state_bytes; /* of all its worlds */
    char *host;         /* (state_bytes), the owner's */

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

struct rm_native_part_spec {
    struct rm_session *session; /* outlives it */
    uint32_t policy;
    uint64_t seed; /* of the worlds and of acting */
    struct rm_backend *backend;
    uint32_t number;        /* which of the devices it is */
    uint32_t first, worlds; /* of the run's worlds */
};

/* In two steps, as native_worlds.h has it; in between `host` is to be set. */
int rm_native_part_create(struct rm_native_part *part, const struct rm_native_part_spec *spec,
                          struct rm_error *error);
int rm_native_part_join(struct rm_native_part *part, struct rm_actor_critic *learner,
                        struct rm_error *error);
void rm_native_part_destroy(struct rm_native_part *part);

/* Puts on the device's stream: the beginning of a rollout, its step t, its end and the news of it.
 */
void rm_native_part_begin(struct rm_native_part *part);
void rm_native_part_step(struct rm_native_part *part, uint32_t t);
void rm_native_part_end(struct rm_native_part *part);

/* The worlds' state, to `host`; and from there, where it is one that worlds can be in. */
void rm_native_part_fetch(struct rm_native_part *part);
int rm_native_part_send(struct rm_native_part *part, struct rm_error *error);

#endif
