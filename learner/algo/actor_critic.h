/* actor_critic: trains one policy's network on rollouts. First computes values and advantages of
 * the whole rollout, then makes passes over it in shuffled minibatches, with one optimizer step for
 * each minibatch.
 *
 *   ppo      Schulman 2017: GAE, clipped ratio to the policy that acted
 *   appo     V-trace for what acted too long ago, then PPO's clipped ratio to the policy at the
 *            rollout's start, so that the correction is made once and the step is bounded
 *   vtrace   Espeholt 2018: V-trace and the plain policy gradient, one pass
 *
 * If the experiment enables them: the value head follows the returns (value_head.h), rewards are
 * divided by their running scale (reward_scale.h), and end() writes the observations' moments into
 * the parameters (normaliser.h).
 *
 * actor_critic.c has the update, as operations of the backend; actor_critic_run.c runs the updates
 * of a rollout on a backend.
 *
 * All randomness is a function of (seed, policy, rollout, pass). Belongs to one thread; nothing is
 * allocated after create. */
#ifndef RM_LEARNER_ALGO_ACTOR_CRITIC_H
#define RM_LEARNER_ALGO_ACTOR_CRITIC_H

#include "learner/algo/trainer.h"
#include "learner/rollout_rows.h"

struct rm_actor_critic;
struct rm_rollout_passes;

/* The result of one update, or on a device of all updates of a rollout. */
struct rm_actor_critic_update {
    double loss, grad_norm, learning_rate; /* of the latest */
    uint32_t made;
    uint32_t skipped;      /* loss or gradient was not finite: nothing was changed */
    uint32_t skipped_last; /* updates skipped after the last made update */
    uint64_t samples;      /* of all updates */
};

/* Figures of one rollout: means over its updates; kl is of its last pass. */
struct rm_actor_critic_figures {
    double policy_loss, value_loss, entropy, kl, clip_fraction;
    double explained_variance;          /* 1 - Var(return - value) / Var(return), before training */
    double value_mean, value_deviation; /* of the value head */
    double reward_scale;                /* the divisor of rewards */
    uint32_t passes; /* number of passes; fewer than algorithm.epochs if kl stopped them */
};

int rm_actor_critic_create(struct rm_actor_critic **ac, const struct rm_trainer_spec *spec,
                           struct rm_error *error);
void rm_actor_critic_destroy(struct rm_actor_critic *ac);

/* Begins the copied rollout, which has this number: computes values, advantages and the orders of
 * its passes, and scales its rewards in place. Books time on `clock` (NULL: not measured). */
void rm_actor_critic_begin(struct rm_actor_critic *ac, uint64_t number,
                           struct rm_phase_clock *clock);

/* Skips the copied rollout, but advances the state of the value's own recurrent layers over it,
 * from which the next rollout continues. */
void rm_actor_critic_pass_by(struct rm_actor_critic *ac);

/* Is another update of this rollout due? */
bool rm_actor_critic_due(const struct rm_actor_critic *ac);

/* One minibatch. `update` counts from 1 and includes updates of predecessors and skipped ones;
 * `progress` is the run's progress, 0 to 1. The arguments of a rollout's first minibatch, and the
 * settings at that time, hold for the whole rollout. On a device the call only starts the minibatch
 * and returns zeros: rm_actor_critic_collect() returns the results, and `update` counts only
 * updates whose results are known. */
struct rm_actor_critic_update rm_actor_critic_step(struct rm_actor_critic *ac, uint64_t update,
                                                   double progress, struct rm_phase_clock *clock);

/* After the last update of a rollout: waits for unfinished updates. Returns the results that step()
 * has not returned. */
struct rm_actor_critic_update rm_actor_critic_collect(struct rm_actor_critic *ac,
                                                      struct rm_phase_clock *clock);

/* After the last update of a rollout, before its weights are published. */
void rm_actor_critic_end(struct rm_actor_critic *ac, struct rm_phase_clock *clock);

struct rm_actor_critic_figures rm_actor_critic_figures(const struct rm_actor_critic *ac);

void rm_actor_critic_set(struct rm_actor_critic *ac, const struct rm_trainer_settings *settings);

/* Replaces the parameters by those in host memory, and resets the optimizer. */
void rm_actor_critic_load(struct rm_actor_critic *ac, const float *params);

/* Call after rm_actor_critic_load(). Continues from the predecessor's figures on the board
 * (`left`). The predecessor learned from `rows` rows in `rollouts` rollouts. */
void rm_actor_critic_resume(struct rm_actor_critic *ac, const struct rm_actor_critic_figures *left,
                            const float *params, uint64_t rows, uint64_t rollouts);

/* Declares to the guard the memory that an update changes (guard.h). After a rollback, restored()
 * recomputes derived data and skips the rest of the current rollout. */
void rm_actor_critic_guarded(struct rm_actor_critic *ac, struct rm_guard *guard);
void rm_actor_critic_restored(struct rm_actor_critic *ac);

/* The state that the next rollouts depend on, for checkpoints (shm/base/state.h). Call between two
 * rollouts. */
void rm_actor_critic_state(struct rm_actor_critic *ac, struct rm_state *state);

/* Number of updates made, in the backend's memory. */
const uint64_t *rm_actor_critic_made(const struct rm_actor_critic *ac);

const float *rm_actor_critic_params(const struct rm_actor_critic *ac);
const struct rm_net *rm_actor_critic_net(const struct rm_actor_critic *ac);

/* As rm_trainer_update_flops(), of a minibatch of the last rollout; before the first one, and if
 * worlds on a device make rollouts, of the largest minibatch. */
double rm_actor_critic_update_flops(const struct rm_actor_critic *ac);
/* For rm_trainer_workspace(), of the largest minibatch, and rm_trainer_fixed(). */
struct rm_trainer *rm_actor_critic_trainer(struct rm_actor_critic *ac);

/* The replica on device i, if there are several. Worlds on that device act with the replica's
 * parameters and write the orders of their rollouts' passes to the replica. */
struct rm_actor_critic *rm_actor_critic_replica(struct rm_actor_critic *ac, uint32_t i);
uint32_t *rm_actor_critic_orders(struct rm_actor_critic *ac); /* (epochs, steps * lanes) */
struct rm_rollout_passes *rm_actor_critic_passes(struct rm_actor_critic *ac);

#endif
