/* optimizer: moves parameters by a gradient. One object for one flat arena, by optimizer.name:
 *
 *   adam     Kingma 2015, algorithm 1
 *   adamw    Loshchilov 2019, algorithm 2: decoupled decay, of matrices only, or of all parameters
 *            with optimizer.decay_all
 *   rmsprop  Hinton 2012, lecture 6e: alpha is optimizer.beta2, epsilon outside the root, momentum
 *            over the scaled gradient
 *   muon     Jordan 2024: matrices move along their orthogonalised momentum (muon.h), the rest by
 *            AdamW without decay
 *
 * With optimizer.sparse Adam and AdamW do not change rows of tables (RM_TENSOR_TABLE) whose
 * gradient is 0, nor the moments of these rows. The correction of bias uses the number of all
 * steps.
 *
 * Tensors that are not trained (RM_TENSOR_TRAINED) do not change and do not count in the norm. With
 * optimizer.clip_apart the state value's own parameters and the others are clipped by separate
 * norms; the returned norm and scale are those of all parameters.
 *
 * A step has two passes. The first computes the gradient's norm, which decides whether the update
 * is skipped and how much the gradient is clipped. The second moves parameters and moments. Belongs
 * to one thread; nothing is allocated after create. */
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

/* All arguments outlive the optimizer. */
int rm_optimizer_create(struct rm_optimizer **optimizer, struct rm_backend *backend,
                        const struct rm_experiment *experiment, const struct rm_net *net,
                        struct rm_error *error);

/* For several networks in one arena, one after another (rm_optimizer_room), at most
 * RM_OPTIMIZER_GROUPS. Each is clipped by its own norm; either all are moved or none. */
#define RM_OPTIMIZER_GROUPS RM_DEVICE_GROUPS
size_t rm_optimizer_room(const struct rm_net *net); /* floats of the arena for this network */
int rm_optimizer_create_joint(struct rm_optimizer **optimizer, struct rm_backend *backend,
                              const struct rm_experiment *experiment,
                              const struct rm_net *const *nets, uint32_t count,
                              struct rm_error *error);
/* Lets the optimizer ask the workspace, in which the only network learns, which rows of tables have
 * a gradient: with optimizer.sparse it looks at no others then. */
void rm_optimizer_follow(struct rm_optimizer *optimizer, const struct rm_net_workspace *workspace);
void rm_optimizer_destroy(struct rm_optimizer *optimizer);

/* Sets the learning rate, which schedules multiply, and the bound of the gradient's norm (0: no
 * clipping). Initially both are the experiment's. */
void rm_optimizer_set(struct rm_optimizer *optimizer, double learning_rate, double grad_clip);

/* The norm of the trained part of the gradient. */
double rm_optimizer_norm(struct rm_optimizer *optimizer, const float *grads);

/* The scheduled learning rate of this update. */
double rm_optimizer_rate(const struct rm_optimizer *optimizer, uint64_t update, double progress);

/* A step, both passes, as an operation of the backend. The optimizer owns the figures. The loss has
 * written its numbers to the figures, and the step writes the update's result there. All pointers
 * are to the backend's memory. On a device the step is put in the COMPUTE queue, captured or run.
 */
struct rm_optimizer_put {
    float *params;
    const float *grads;
    float *target; /* moved by the knobs' target_tau; NULL: no target network */
    const struct rm_update_knobs *knobs;
    struct rm_update_figures
        *copy; /* a device's: receives the figures after the norm; NULL: none */
};
void rm_optimizer_put(struct rm_optimizer *optimizer, const struct rm_optimizer_put *put);

/* Whether losses are scaled (learner.compute "fp16" on a device), and the scale, for checkpoints.
 */
struct rm_loss_scale {
    float scale; /* loss_scale and loss_scale_good of struct rm_update_figures */
    uint32_t good;
};
bool rm_optimizer_scales(const struct rm_optimizer *optimizer);
struct rm_loss_scale rm_optimizer_loss_scale(const struct rm_optimizer *optimizer);
void rm_optimizer_set_loss_scale(struct rm_optimizer *optimizer, struct rm_loss_scale scale);

struct rm_update_figures *rm_optimizer_figures(const struct rm_optimizer *optimizer);

/* The host's input to an update: learning rate and clipping. */
void rm_optimizer_knobs(const struct rm_optimizer *optimizer, uint64_t update, double progress,
                        struct rm_update_knobs *knobs);

/* The state that the next steps depend on, for checkpoints: arenas with the parameters' layout, in
 * the backend's memory, and the number of steps made (for bias correction). */
#define RM_OPTIMIZER_ARENAS 2
struct rm_optimizer_arena {
    const char *name; /* "first_moment", "second_moment" */
    float *data;
    size_t count;
};
size_t rm_optimizer_arenas(const struct rm_optimizer *optimizer,
                           struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS]);
uint64_t rm_optimizer_steps(const struct rm_optimizer *optimizer);

/* Call after the arenas were filled from a checkpoint. */
void rm_optimizer_resume(struct rm_optimizer *optimizer, uint64_t steps);

/* Resets the optimizer to its initial state, except for the numbers of rm_optimizer_set(). */
void rm_optimizer_reset(struct rm_optimizer *optimizer);

#endif
