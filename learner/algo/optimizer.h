/* optimizer: how a gradient becomes a change of weights. One object over one flat arena, by
 * optimizer.name:
 *
 *   adam     Kingma 2015, algorithm 1
 *   adamw    Loshchilov 2019, algorithm 2: decay apart from the gradient, of matrices only
 *   rmsprop  Hinton 2012, lecture 6e: alpha is optimizer.beta2, epsilon outside the root, momentum
 *            over the scaled gradient
 *   muon     Jordan 2024: matrices move along their orthogonalised momentum (muon.h), the rest by
 *            AdamW without decay
 *
 * Tensors that are not trained (RM_TENSOR_TRAINED) are not changed and not part of the norm. With
 * optimizer.clip_apart the state value's own parameters and the rest are clipped by norms of their
 * own; the norm that is returned is of both together, and so is the scale.
 *
 * A step is two passes: one over the gradient for its norm, which says whether it is finite and how
 * much it is clipped, and one that moves parameters and moments. Belongs to one thread; nothing is
 * allocated after create. */
#ifndef RM_LEARNER_ALGO_OPTIMIZER_H
#define RM_LEARNER_ALGO_OPTIMIZER_H

#include "config/experiment.h"
#include "learner/backend/backend.h"
#include "learner/net/net.h"
#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_optimizer;
struct rm_update_figures;
struct rm_update_knobs;

/* All three outlive the optimizer. */
int rm_optimizer_create(struct rm_optimizer **optimizer, struct rm_backend *backend,
                        const struct rm_experiment *experiment, const struct rm_net *net,
                        struct rm_error *error);

/* Of several networks in one arena, each at a place of its own behind the one
 * before (rm_optimizer_room) and clipped by a norm of its own; at most RM_OPTIMIZER_GROUPS. They
 * are moved together, or not at all. */
#define RM_OPTIMIZER_GROUPS RM_DEVICE_GROUPS
size_t rm_optimizer_room(const struct rm_net *net); /* floats that it takes of the arena */
int rm_optimizer_create_joint(struct rm_optimizer **optimizer, struct rm_backend *backend,
                              const struct rm_experiment *experiment,
                              const struct rm_net *const *nets, uint32_t count,
                              struct rm_error *error);
void rm_optimizer_destroy(struct rm_optimizer *optimizer);

/* Numbers that may change while running; from the experiment at first. The rate is what schedules
 * start from; grad_clip 0 does not clip. */
void rm_optimizer_set(struct rm_optimizer *optimizer, double learning_rate, double grad_clip);

/* The norm of the trained part of the gradient. */
double rm_optimizer_norm(struct rm_optimizer *optimizer, const float *grads);

/* The learning rate of this update, by the schedule. */
double rm_optimizer_rate(const struct rm_optimizer *optimizer, uint64_t update, double progress);

/* A step as an operation of the backend: both passes. The loss has left its numbers in the figures,
 * which the optimizer owns; what comes of the update goes there too. All of it is the backend's
 * memory: on a device the step is put on the COMPUTE stream, to be captured or run, and the count
 * of steps is there too. */
struct rm_optimizer_put {
    float *params;
    const float *grads;
    float *target; /* follows by the knobs' target_tau; NULL: none does */
    const struct rm_update_knobs *knobs;
    struct rm_update_figures *copy; /* a device's: of the figures once the update is judged; NULL:
                                       none */
};
void rm_optimizer_put(struct rm_optimizer *optimizer, const struct rm_optimizer_put *put);

/* Whether losses are scaled (learner.compute "fp16" on a device), and by what: for checkpoints. */
struct rm_loss_scale {
    float scale; /* loss_scale and loss_scale_good of struct rm_update_figures */
    uint32_t good;
};
bool rm_optimizer_scales(const struct rm_optimizer *optimizer);
struct rm_loss_scale rm_optimizer_loss_scale(const struct rm_optimizer *optimizer);
void rm_optimizer_set_loss_scale(struct rm_optimizer *optimizer, struct rm_loss_scale scale);

struct rm_update_figures *rm_optimizer_figures(const struct rm_optimizer *optimizer);

/* What the host says of an update: rate and clipping, as set and scheduled. */
void rm_optimizer_knobs(const struct rm_optimizer *optimizer, uint64_t update, double progress,
                        struct rm_update_knobs *knobs);

/* What the next steps depend on, for checkpoints: arenas of the layout of the parameters, in the
 * backend's memory, and the number of steps made (bias correction). */
#define RM_OPTIMIZER_ARENAS 2
struct rm_optimizer_arena {
    const char *name; /* "first_moment", "second_moment" */
    float *data;
    size_t count;
};
size_t rm_optimizer_arenas(const struct rm_optimizer *optimizer,
                           struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS]);
uint64_t rm_optimizer_steps(const struct rm_optimizer *optimizer);

/* After the arenas were filled from a checkpoint. */
void rm_optimizer_resume(struct rm_optimizer *optimizer, uint64_t steps);

/* As freshly made, but for what was set. */
void rm_optimizer_reset(struct rm_optimizer *optimizer);

#endif
