/* followed: a network that is moved by gradients and a target network that follows it: what the
 * trainers of dqn.c and r2d2.c have in common. Such a trainer begins with a struct rm_followed and
 * puts RM_FOLLOWED_OPS into its table. Belongs to one thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_FOLLOWED_H
#define RM_LEARNER_ALGO_FOLLOWED_H

#include "learner/algo/finite.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/trainer.h"

struct rm_followed {
    struct rm_trainer trainer; /* first */
    const struct rm_experiment *experiment;
    struct rm_backend *backend;
    uint32_t policy;
    struct rm_trainer_settings settings;
    double progress; /* of the run */

    struct rm_net *net;
    struct rm_net_workspace *online_space, *target_space; /* made by the trainer */
    struct rm_optimizer *optimizer;
    struct rm_normaliser normaliser;
    double rows_before; /* that predecessors' moments stand for */
    struct rm_finite finite;
    size_t count;                   /* parameters */
    float *params, *target, *grads; /* (count), the backend's memory */
    float *host_params;             /* (count): for whole copies */
};

/* What the specification says, and the network. `rows`: of observations in an update. */
int rm_followed_open(struct rm_followed *followed, const struct rm_trainer_spec *spec, double rows,
                     struct rm_error *error);

/* Optimizer, normaliser and parameters; after the workspaces. What was made by then is left for
 * rm_followed_close(). */
int rm_followed_make(struct rm_followed *followed, uint32_t inputs, struct rm_error *error);

/* Initial parameters; after everything else. */
void rm_followed_init(struct rm_followed *followed);
void rm_followed_close(struct rm_followed *followed);

/* One step along the last gradient. rm_followed_follow() must come after whatever else changes the
 * parameters: it prepares them, and moves the target network. */
void rm_followed_move(struct rm_followed *followed, struct rm_trainer_result *result,
                      uint64_t number);
void rm_followed_follow(struct rm_followed *followed, uint64_t number);

/* Members of struct rm_trainer_ops. */
void rm_followed_set(struct rm_trainer *trainer, const struct rm_trainer_settings *settings);
void rm_followed_progress(struct rm_trainer *trainer, double progress);
void rm_followed_load(struct rm_trainer *trainer, const float *params);
void rm_followed_guarded(struct rm_trainer *trainer, struct rm_guard *guard);
void rm_followed_restored(struct rm_trainer *trainer);
void rm_followed_state(struct rm_trainer *trainer, struct rm_state *state);
const float *rm_followed_params(const struct rm_trainer *trainer);
const float *rm_followed_target(const struct rm_trainer *trainer);
const float *rm_followed_grads(const struct rm_trainer *trainer);
const struct rm_net *rm_followed_net(const struct rm_trainer *trainer);
#define RM_FOLLOWED_OPS                                                                            \
    .set = rm_followed_set, .progress = rm_followed_progress, .load = rm_followed_load,            \
    .guarded = rm_followed_guarded, .restored = rm_followed_restored, .state = rm_followed_state,  \
    .params = rm_followed_params, .target = rm_followed_target, .grads = rm_followed_grads,        \
    .net = rm_followed_net

#endif
