/* native_part: the part of a policy's worlds on one device (native_worlds.h). The trained network
 * acts in these worlds and trains on their rollouts. The device cannot begin the first episodes or
 * check a saved state; a world on the host, as in an actor, does both.
 *
 * Belongs to one learner's thread; nothing is allocated after create. */
#ifndef RM_LEARNER_NATIVE_PART_H
#define RM_LEARNER_NATIVE_PART_H

#include "actor/worlds/builtin/device_rules.h"
#include "actor/worlds/worlds.h"
#include "learner/algo/actor_critic.h"
#include "learner/backend/device_worlds.h"
#include "learner/rollout_rows.h"

struct rm_native_part {
    struct rm_backend *backend;
    const struct rm_session *session;
    struct rm_world world;
    struct rm_env *env; /* the host world */
    size_t state_bytes; /* of all its worlds */
    char *host;         /* (state_bytes), belongs to the owner */

    struct rm_rollout rows; /* in the device's memory: the rollout that the learner trains on */
    struct rm_device_worlds on;
    struct rm_device_draw draw;
    struct rm_device_orders orders;
    const struct rm_net *net; /* the learner's */
    const float *params;
    struct rm_net_workspace *space;       /* for acting */
    struct rm_device_graph *first, *step; /* graphs of a rollout's first step, which prepares the
                                           * weights, and of the others */
    struct rm_device_stage *results;      /* pinned copy of on.stage */
    void *owned[20];
    uint32_t owned_count;
};

struct rm_native_part_spec {
    struct rm_session *session; /* outlives it */
    uint32_t policy;
    uint64_t seed; /* of the worlds and of acting */
    struct rm_backend *backend;
    uint32_t number;        /* index of the device */
    uint32_t first, worlds; /* of the run's worlds */
};

/* Creation in two steps, as in native_worlds.h; the caller sets `host` between them. */
int rm_native_part_create(struct rm_native_part *part, const struct rm_native_part_spec *spec,
                          struct rm_error *error);
int rm_native_part_join(struct rm_native_part *part, struct rm_actor_critic *learner,
                        struct rm_error *error);
void rm_native_part_destroy(struct rm_native_part *part);

/* Put on the device's stream: the beginning of a rollout, its step t, its end and the copy of its
 * results. */
void rm_native_part_begin(struct rm_native_part *part);
void rm_native_part_step(struct rm_native_part *part, uint32_t t);
void rm_native_part_end(struct rm_native_part *part);

/* rm_native_part_fetch() copies the worlds' state to `host`; rm_native_part_send() checks it and
 * copies it back. */
void rm_native_part_fetch(struct rm_native_part *part);
int rm_native_part_send(struct rm_native_part *part, struct rm_error *error);

#endif
