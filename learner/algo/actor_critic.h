/* actor_critic: one policy's network and how a rollout moves it: values and advantages of the whole
 * rollout, then passes over it in shuffled minibatches, one optimizer step each.
 *
 *   ppo      Schulman 2017: GAE, clipped ratio to the policy that acted
 *   appo     V-trace for what acted too long ago, then PPO's clipped ratio to the policy at the
 *            rollout's start, so that the correction is made once and the step is bounded
 *   vtrace   Espeholt 2018: V-trace and the plain policy gradient, one pass
 *
 * Returns are followed by the value head (value_head.h), rewards are divided by their running scale
 * (reward_scale.h), observations are normalised by what end() writes into the parameters
 * (normaliser.h): each where the experiment asks for it.
 *
 * What an update is stands in actor_critic.c, as operations of the backend; how updates of a
 * rollout run is the backend's side (actor_critic_run.c).
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
    uint32_t skipped_last; /* of these, the ones after the last that was made */
    uint64_t samples;      /* of all of them */
};

/* Of one rollout: means over its updates, but for kl, of its last pass, and explained_variance. */
struct rm_actor_critic_figures {
    double policy_loss, value_loss, entropy, kl, clip_fraction;
    double explained_variance;          /* 1 - Var(return - value) / Var(return), before training */
    double value_mean, value_deviation; /* of the value head */
    double reward_scale;                /* what rewards are divided by */
    uint32_t passes;                    /* made; fewer than algorithm.epochs when kl stopped them */
};

int rm_actor_critic_create(struct rm_actor_critic **ac, const struct rm_trainer_spec *spec,
                           struct rm_error *error);
void rm_actor_critic_destroy(struct rm_actor_critic *ac);

/* Values and advantages of the rollout that was copied, whose rewards are scaled in place, and the
 * orders of its passes; `number` is its. Books time on `clock` (NULL: nowhere). */
void rm_actor_critic_begin(struct rm_actor_critic *ac, uint64_t number,
                           struct rm_phase_clock *clock);

/* The rollout that was copied is not learned from. What the next one goes on from, the state of the
 * value's own recurrent layers, goes past it. */
void rm_actor_critic_pass_by(struct rm_actor_critic *ac);

/* Is another update of this rollout due? */
bool rm_actor_critic_due(const struct rm_actor_critic *ac);

/* One minibatch. `update` counts from 1, predecessors' and skipped ones included; `progress` of the
 * run, 0 to 1. Both, and the settings, are those of a rollout's first for all of it. On a device it
 * is only begun: then nothing is made or skipped yet, `update` counts those that are known, and
 * collect() tells the rest. */
struct rm_actor_critic_update rm_actor_critic_step(struct rm_actor_critic *ac, uint64_t update,
                                                   double progress, struct rm_phase_clock *clock);

/* After the last update of a rollout: waits for unfinished updates and returns their result; false
 * if step() has returned all results. */
bool rm_actor_critic_collect(struct rm_actor_critic *ac, struct rm_actor_critic_update *update,
                             struct rm_phase_clock *clock);

/* After the last update of a rollout, before its weights are published. */
void rm_actor_critic_end(struct rm_actor_critic *ac, struct rm_phase_clock *clock);

struct rm_actor_critic_figures rm_actor_critic_figures(const struct rm_actor_critic *ac);

void rm_actor_critic_set(struct rm_actor_critic *ac, const struct rm_trainer_settings *settings);

/* Replaces the parameters, from host memory; the optimizer starts afresh. */
void rm_actor_critic_load(struct rm_actor_critic *ac, const float *params);

/* After that, goes on from what a predecessor left on the board; `rows` it has learned from, in
 * `rollouts`. */
void rm_actor_critic_resume(struct rm_actor_critic *ac, const struct rm_actor_critic_figures *left,
                            const float *params, uint64_t rows, uint64_t rollouts);

/* Declares to the guard what an update changes; and after the guard put it back, prepares what is
 * derived from it (guard.h) and leaves the rest of the rollout in hand. */
void rm_actor_critic_guarded(struct rm_actor_critic *ac, struct rm_guard *guard);
void rm_actor_critic_restored(struct rm_actor_critic *ac);

/* What the next rollouts depend on, between two of them, for checkpoints (shm/base/state.h). */
void rm_actor_critic_state(struct rm_actor_critic *ac, struct rm_state *state);

/* How many updates were made, in the device's memory; NULL where there is none. */
const uint64_t *rm_actor_critic_made(const struct rm_actor_critic *ac);

const float *rm_actor_critic_params(const struct rm_actor_critic *ac);
const struct rm_net *rm_actor_critic_net(const struct rm_actor_critic *ac);

/* That of device i of several that are one learner: what worlds on that device act with and lay the
 * orders of their rollouts' passes for. */
struct rm_actor_critic *rm_actor_critic_replica(struct rm_actor_critic *ac, uint32_t i);
uint32_t *rm_actor_critic_orders(struct rm_actor_critic *ac); /* (epochs, steps * lanes) */
struct rm_rollout_passes *rm_actor_critic_passes(struct rm_actor_critic *ac);

#endif
