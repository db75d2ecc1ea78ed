/* method: how a policy learns. The learner duty (learner.c) handles settings, publishing,
 * checkpoints and phases, and leaves the rest to the method of the experiment's algorithm: replay.c
 * samples transitions or sequences, rollout.c consumes rollouts, native.c makes rollouts on a
 * device, frozen.c plays snapshots of a source policy.
 *
 * A method belongs to one learner's thread. Nothing is allocated after create. */
#ifndef RM_LEARNER_METHOD_H
#define RM_LEARNER_METHOD_H

#include "actor/env.h"
#include "shm/session/session.h"
#include "learner/backend/backend.h"
#include "learner/net/net.h"
#include "learner/publisher.h"
#include "shm/base/error.h"
#include "shm/duty.h"

#include <stdbool.h>
#include <stdint.h>

struct rm_method;
struct rm_state;
struct rm_trainer;

struct rm_method_spec {
    struct rm_session *session; /* all outlive the method */
    uint32_t policy;
    const struct rm_env_agent *agent;
    struct rm_backend *backend;
    struct rm_publisher *publisher;
    struct rm_phase_clock *clock;
    uint64_t updates;  /* updates made by predecessors */
    uint64_t attempts; /* updates made or skipped by predecessors: batches drawn */
    uint64_t rows;     /* policy.from: number of observations in the moments of the file */
};

/* Results of a turn. */
enum rm_method_turn {
    RM_METHOD_WAIT = 0, /* nothing to do until the wake is signalled */
    RM_METHOD_WORKED,
    RM_METHOD_FINISHED, /* no update is due, and none will be */
};

struct rm_method_ops {
    const char *name;
    int (*create)(struct rm_method **method, const struct rm_method_spec *spec,
                  struct rm_error *error);
    void (*destroy)(struct rm_method *method);

    /* One turn: at most one optimizer step; publishes by the method's own rule. Sets *turn. Counts
     * on the board. Errors end the learner. */
    int (*turn)(struct rm_method *method, enum rm_method_turn *turn, struct rm_error *error);

    /* Called when settings on the board (rm_hot) have changed. NULL: the method uses none of
     * them. */
    void (*settings)(struct rm_method *method, const struct rm_board_run *run);

    /* load(): continues with these published parameters (host memory); other state starts from
     * scratch. takes_rest: optimizers and target network may be loaded after it, with
     * rm_state_only(). */
    bool takes_rest;
    void (*load)(struct rm_method *method, const float *params);

    /* Between two turns: may the state be saved? NULL: always. */
    bool (*settled)(const struct rm_method *method);

    /* The state that the next turns depend on, without shared memory, for checkpoints
     * (shm/base/state.h). It is loaded before the first turn. */
    void (*state)(struct rm_method *method, struct rm_state *state);

    /* Called last, in modes with rounds: leaves the rounds for good. NULL: the method takes no part
     * in rounds. */
    void (*leave)(struct rm_method *method);
};

struct rm_method {
    const struct rm_method_ops *ops;
    const struct rm_net *net;
    const float *params; /* the parameters to publish, in the backend's memory */
    double flops; /* operations of the products of an update, padding included; 0: it makes none */
    const struct rm_net_workspace *space; /* that makes them */
    struct rm_trainer *trainer;           /* NULL: no updates */
    uint64_t updates; /* updates made, including predecessors'; late ones only after their results
                         arrived */
};

/* Whether all actors have ended. */
bool rm_actors_done(const struct rm_session *session);

/* The method of this policy in this experiment. */
const struct rm_method_ops *rm_method_of(const struct rm_experiment *experiment, uint32_t policy);

extern const struct rm_method_ops rm_replay_method, rm_rollout_method, rm_frozen_method,
    rm_native_method;

#endif
