/* trainer: one policy's networks, target networks and optimizer state, and the update that moves
 * them with batches from replay. An algorithm is a struct rm_update_ops (updates.h): dqn.c (dqn,
 * qr-dqn, iqn), sac.c, r2d2.c, clone.c, distill.c. The code for replay depends on no algorithm.
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
    struct rm_backend *backend;             /* outlives the trainer; if it is joined with others
                                               (device_collective.h), all of them train and this one
                                               has the results */
    uint32_t policy;
    struct rm_net_shape shape; /* of the network: rm_plan_net_shape() */
    const char *name;          /* the policy's, for the log; outlives the trainer */
    uint64_t updates;          /* made by predecessors, whose parameters load() will set */
    uint64_t
        rows;   /* rows that these parameters' input moments include and no update learned from */
    bool masks; /* batches have the legal actions */
    const struct rm_device_sampler *draw; /* the device's sampler, which outlives the trainer; NULL:
                                             the host draws */
    /* One agent on several devices (parallel.h): each batch is cut into `replicas` parts, and this
     * trainer learns from part number `replica`. replicas 0: it learns from whole batches. */
    uint32_t replica, replicas;
    /* For algorithms that learn from rollouts (actor_critic.h), else NULL: the buffers of the
     * current rollout. If each of several devices makes rollouts of its own worlds, `others` has
     * the buffers of all devices but the first; NULL: all devices learn from the one rollout. */
    const struct rm_rollout *rollout;
    const struct rm_rollout *const *others;
};

/* Numbers that may change during a run; initially the experiment's. */
struct rm_trainer_settings {
    double learning_rate, grad_clip, target_tau;
    uint32_t report;            /* late results: updates between reports; 0 counts as 1 */
    double entropy_coefficient; /* from rollouts */
};

struct rm_trainer_result {
    double loss, grad_norm, q_mean;
    double learning_rate;          /* of this update */
    double temperature, entropy;   /* sac; else 0; entropy: clone, distill too */
    double policy_loss, type_loss; /* distill */
    bool skipped;                  /* loss or gradient was not finite: nothing was changed */
    bool late; /* the results above are not known yet: a report will have them */
};

/* LATE RESULTS. On a device an update continues after rm_trainer_update() has returned, and up to
 * RM_TRAINER_DEPTH updates are in progress at a time. Reports have the results: means over the
 * updates made since the previous report. Errors of samples arrive batch by batch. The time of a
 * report depends on the number of updates alone, not on the device's speed. */
#define RM_TRAINER_DEPTH 3
struct rm_trainer_report {
    uint64_t made, skipped;
    uint64_t skipped_in_row;          /* consecutive skipped updates up to its last one */
    uint64_t through;                 /* number of its last update */
    struct rm_trainer_result mean;    /* if made > 0; else zeros */
    double last_loss, last_grad_norm; /* of its last update */
    struct rm_device_drawn drawn;     /* if the device draws: counts of these updates' draws. `dry`
                                         updates drew nothing, changed nothing and do not count: the
                                         next update gets the first one's number again */
};

struct rm_trainer_ops {
    void (*destroy)(struct rm_trainer *trainer);
    struct rm_trainer_result (*update)(struct rm_trainer *trainer, const struct rm_batch *batch,
                                       uint64_t number, struct rm_phase_clock *clock);
    struct rm_trainer_result (*gradient)(struct rm_trainer *trainer, const struct rm_batch *batch,
                                         uint64_t number, struct rm_phase_clock *clock);
    struct rm_trainer_result (*measure)(struct rm_trainer *trainer, const struct rm_batch *batch);
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

/* One update. `number` counts from 1 and keys the draws. Books its time on `clock` (NULL: not
 * measured). If the batch has room for errors, writes each sample's. */
struct rm_trainer_result rm_trainer_update(struct rm_trainer *trainer, const struct rm_batch *batch,
                                           uint64_t number, struct rm_phase_clock *clock);

/* Whether results are late. If not, do not call the next four functions. */
bool rm_trainer_is_late(const struct rm_trainer *trainer);

/* The batch for the next update, in memory that the device reads: drawing into it saves a copy. If
 * RM_TRAINER_DEPTH updates are in progress, waits for the first of them. Call rm_trainer_learned()
 * before you draw into the batch. */
struct rm_batch *rm_trainer_batch(struct rm_trainer *trainer);

/* The next trained batch, in the order of updates, with its errors in batch->error; NULL if there
 * is none. Omits batches of skipped updates. */
struct rm_batch *rm_trainer_learned(struct rm_trainer *trainer);

/* The next report, or false. `wait`: first waits for all updates in progress, so that the last
 * report includes them. */
bool rm_trainer_report(struct rm_trainer *trainer, bool wait, struct rm_trainer_report *report);

/* Number of updates made since create, in the backend's memory. A copy of this number that follows
 * a copy of the parameters is the number of updates in these parameters. */
const uint64_t *rm_trainer_made(const struct rm_trainer *trainer);

/* The first half of an update: loss and gradient of the batch. Changes nothing. */
struct rm_trainer_result rm_trainer_gradient(struct rm_trainer *trainer,
                                             const struct rm_batch *batch, uint64_t number,
                                             struct rm_phase_clock *clock);

/* distill: the losses of a batch that is not learned from, without dropout. Changes nothing. The
 * batch may have fewer samples than those of updates, but its arrays are of that size. */
struct rm_trainer_result rm_trainer_measure(struct rm_trainer *trainer,
                                            const struct rm_batch *batch);

void rm_trainer_set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings);

/* Sets the run's progress, 0 to 1, for schedules over the run; initially 0. */
void rm_trainer_progress(struct rm_trainer *trainer, double progress);

/* Replaces the online parameters, from host memory; copies them to the target network and resets
 * the optimizer. */
void rm_trainer_load(struct rm_trainer *trainer, const float *params);

/* Declares to the guard the memory that an update changes (algo/guard.h). After a rollback,
 * restored() recomputes derived data. */
void rm_trainer_guarded(struct rm_trainer *trainer, struct rm_guard *guard);
void rm_trainer_restored(struct rm_trainer *trainer);

/* The state that the next updates depend on, for checkpoints (shm/base/state.h). */
void rm_trainer_state(struct rm_trainer *trainer, struct rm_state *state);

/* The parameters that act (param_count of the net), in the backend's memory. */
const float *rm_trainer_params(const struct rm_trainer *trainer);
const struct rm_net *rm_trainer_net(const struct rm_trainer *trainer);

/* Floating-point operations of the matrix products of one update (a multiply-add is two), padding
 * included, and the workspace that makes them. */
double rm_trainer_update_flops(const struct rm_trainer *trainer);

/* The part of the passes' time, forward and backward, that does not depend on the number of rows:
 * f, where n rows take f + (1 - f) n / N of the time of an update's N. Repeats the trained passes
 * of the last update, which it must follow, with all rows and with a quarter: for each network
 * twice, or as often as 10 ms are enough for, or once if that takes a second. Changes nothing that
 * later updates or figures depend on. Below 0: more rows take longer than in proportion. NAN: not
 * known, on a device or of less than four rows. */
double rm_trainer_fixed(struct rm_trainer *trainer);
const struct rm_net_workspace *rm_trainer_workspace(const struct rm_trainer *trainer);

#endif
