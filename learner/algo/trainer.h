/* trainer: one policy's networks, optimizer state and target networks, and the update that moves
 * them, by batches from replay. What an algorithm is stands in a struct rm_update_ops (updates.h):
 * dqn.c (dqn, qr-dqn, iqn), sac.c, r2d2.c. Replay knows none by name.
 *
 * All randomness is a function of (seed, policy, update, pass), so an update is a function of
 * parameters, moments and batch. Belongs to one thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_TRAINER_H
#define RM_LEARNER_ALGO_TRAINER_H

#include "config/experiment.h"
#include "learner/backend/backend.h"
#include "learner/backend/device_collective.h"
#include "learner/backend/device_draw.h"
#include "learner/backend/batch.h"
#include "learner/net/net.h"
#include "shm/base/error.h"
#include "shm/duty.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_trainer;
struct rm_guard;
struct rm_rollout;
struct rm_state;
struct rm_updates;

struct rm_trainer_spec {
    const struct rm_experiment *experiment; /* outlives the trainer */
    struct rm_backend *backend;             /* outlives the trainer; joined with others
                                               (device_collective.h): all learn, this one tells */
    uint32_t policy;
    struct rm_net_shape shape; /* of the network: rm_plan_net_shape() */
    const char *name;          /* of the policy, for the log; outlives the trainer */
    uint64_t updates;          /* that predecessors made: what load() is given stands for them */
    bool masks;                /* batches come with legal actions */
    const struct rm_device_sampler *draw; /* the device draws with it; outlives the trainer; NULL:
                                             the host draws */
    /* One agent on several devices (parallel.h): this trainer learns from every replicas-th part of
     * each batch, the replica-th, and is recorded with the others. 0: it has all of it. */
    uint32_t replica, replicas;
    /* Of algorithms that learn from rollouts (actor_critic.h), else NULL: the buffers that hold the
     * rollout in hand; and where rollouts are made on several devices, that of each but the first,
     * by parts of the worlds (NULL: all devices learn from the one). */
    const struct rm_rollout *rollout;
    const struct rm_rollout *const *others;
};

/* Numbers that may change while running; from the experiment at first. */
struct rm_trainer_settings {
    double learning_rate, grad_clip, target_tau;
    uint32_t report; /* updates between reports, at least 1, where they are late; 0 counts as 1 */
    double entropy_coefficient; /* from rollouts */
};

struct rm_trainer_result {
    double loss, grad_norm, q_mean;
    double learning_rate;        /* of this update */
    double temperature, entropy; /* sac; else 0 */
    bool skipped;                /* loss or gradient was not finite: nothing was changed */
    bool late;                   /* nothing of the above is known yet: a report will say it */
};

/* LATE RESULTS. On a device an update goes on when rm_trainer_update() has returned, and up to
 * RM_TRAINER_DEPTH of them are under way at a time: reports have their results, in which the
 * numbers of the result are means over the updates made since the report before, and errors of
 * samples come out batch by batch. When something is told depends on the number of updates alone,
 * not on how fast the device is. */
#define RM_TRAINER_DEPTH 3
struct rm_trainer_report {
    uint64_t made, skipped;
    uint64_t skipped_in_row;          /* at its end */
    uint64_t through;                 /* number of its last update */
    struct rm_trainer_result mean;    /* where made > 0; else zeros */
    double last_loss, last_grad_norm; /* of its last update */
    struct rm_device_drawn drawn; /* where the device draws: by these updates. `dry` of them have
                                     drawn nothing, changed nothing and count for nothing: the
                                     next update has the number of the first of these again */
};

struct rm_trainer_ops {
    void (*destroy)(struct rm_trainer *trainer);
    struct rm_trainer_result (*update)(struct rm_trainer *trainer, const struct rm_batch *batch,
                                       uint64_t number, struct rm_phase_clock *clock);
    struct rm_trainer_result (*gradient)(struct rm_trainer *trainer, const struct rm_batch *batch,
                                         uint64_t number, struct rm_phase_clock *clock);
    /* If results are late; else NULL. */
    struct rm_batch *(*batch)(struct rm_trainer *trainer);
    struct rm_batch *(*learned)(struct rm_trainer *trainer);
    bool (*report)(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *report);
};

/* Every trainer begins with this struct. */
struct rm_trainer {
    const struct rm_trainer_ops *ops;
    uint32_t count;                            /* devices */
    struct rm_updates *all[RM_DEVICE_MEMBERS]; /* (count) one for each device; the first one's
                                                  numbers are the trainer's */
};

int rm_trainer_create(struct rm_trainer **trainer, const struct rm_trainer_spec *spec,
                      struct rm_error *error);
void rm_trainer_destroy(struct rm_trainer *trainer);

/* One update. `number` counts from 1 and keys the draws. Books its time on `clock` (NULL: nowhere).
 * Where the batch has room for errors, leaves each sample's there. */
struct rm_trainer_result rm_trainer_update(struct rm_trainer *trainer, const struct rm_batch *batch,
                                           uint64_t number, struct rm_phase_clock *clock);

/* Whether results are late. If not, the next four are not to be called. */
bool rm_trainer_is_late(const struct rm_trainer *trainer);

/* The batch for the next update, in memory that the device reads: drawing into it saves a copy.
 * Waits where RM_TRAINER_DEPTH updates are under way, until the first of them is over. Call
 * rm_trainer_learned() before drawing into it. */
struct rm_batch *rm_trainer_batch(struct rm_trainer *trainer);

/* The next batch, in the order of updates, that was learned from and whose errors are in
 * batch->error; NULL when there is none. Batches of skipped updates are left out. */
struct rm_batch *rm_trainer_learned(struct rm_trainer *trainer);

/* The next report, or false. `wait`: ends the updates under way; the last report then speaks of all
 * that there were. */
bool rm_trainer_report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *report);

/* Updates made since create, in the device's memory: a copy of it after a copy of the parameters
 * gives the number of their updates. */
const uint64_t *rm_trainer_made(const struct rm_trainer *trainer);

/* Its first half: loss and gradient of the batch, nothing changed. */
struct rm_trainer_result rm_trainer_gradient(struct rm_trainer *trainer,
                                             const struct rm_batch *batch, uint64_t number,
                                             struct rm_phase_clock *clock);

void rm_trainer_set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings);

/* How far the run is, 0 to 1, for schedules over the run; 0 at first. */
void rm_trainer_progress(struct rm_trainer *trainer, double progress);

/* Replaces the online parameters, from host memory; the target network becomes equal to them and
 * the optimizer starts afresh. */
void rm_trainer_load(struct rm_trainer *trainer, const float *params);

/* Declares to the guard what an update changes (algo/guard.h); and after the guard put it back,
 * prepares what is derived from it. */
void rm_trainer_guarded(struct rm_trainer *trainer, struct rm_guard *guard);
void rm_trainer_restored(struct rm_trainer *trainer);

/* What the next updates depend on, for checkpoints (shm/base/state.h). */
void rm_trainer_state(struct rm_trainer *trainer, struct rm_state *state);

/* The parameters that act (param_count of the net), in the backend's memory. */
const float *rm_trainer_params(const struct rm_trainer *trainer);
const struct rm_net *rm_trainer_net(const struct rm_trainer *trainer);

/* Floating-point operations of the matrix products of one update (a multiply-add is two). */
double rm_trainer_update_flops(const struct rm_trainer *trainer);

#endif
