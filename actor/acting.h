/* acting: chooses actions of one policy for a batch of observations. Owns the policy's network, the
 * copy of its acting parameters and the workspace of the forward pass. Used by one thread. Nothing
 * is allocated after creation.
 *
 * The action for an observation depends on the parameters and the observation. A drawn action, and
 * one with quantile draws, also depends on (seed, lane, step); with exploration by noise it depends
 * on (seed, policy, step). No action depends on the other rows of the batch. */
#ifndef RM_ACTOR_ACTING_H
#define RM_ACTOR_ACTING_H

#include "shm/session/session.h"
#include "learner/backend/gaussian.h"
#include "learner/net/categorical.h"
#include "learner/net/net.h"

struct rm_acting {
    struct rm_net *net;
    struct rm_net_workspace *workspace;
    struct rm_backend *backend; /* the caller's */
    float *params;              /* (rm_plan_act_count()) fill it, then rm_acting_prepare() */
    float *noise; /* (noise_count) noise of noisy layers; NULL: they use their mean weights */
    uint32_t noise_policy; /* keys the draws */
    float *tau;            /* (chunk, quantiles) */
    float *value;          /* (actions) */
    uint32_t *word; /* (chunk, choices) random words of draws; NULL if the network computes values
                       of actions */
    struct rm_categorical distribution;
    struct rm_gaussian gaussian;
    uint32_t inputs, actions;
    uint32_t outputs;            /* outputs of a row; if the policy stores values, the last is the
                                  * value */
    uint32_t types;              /* of these, the last ones, if the network is over histories */
    uint32_t state_floats;       /* floats of a lane's recurrent state */
    uint32_t outputs_per_action; /* QR-DQN: its quantiles, else 1 */
    uint32_t quantiles;          /* IQN: draws per decision, else 0 */
    uint32_t chunk;              /* rows of one forward pass */
    uint64_t rows;               /* rows of forward passes; who counts sets it to 0 */
    bool draws;                  /* the network computes logits, not values of actions */
    uint64_t seed;
};

/* `quantiles`: draws per decision, if the network uses them. `seed` keys the draws. */
int rm_acting_create(struct rm_acting *acting, const struct rm_experiment *experiment,
                     const struct rm_policy_plan *policy, struct rm_backend *backend,
                     uint32_t quantiles, uint64_t seed, struct rm_error *error);
void rm_acting_destroy(struct rm_acting *acting);

/* rm_acting_make_noisy() makes noisy layers use noise, for exploration, if the network has such
 * layers. rm_acting_draw_noise() draws the noise of all actions until the next call, as a function
 * of (seed, policy, step). The parameters must include sigmas: actor.noise is set. */
int rm_acting_make_noisy(struct rm_acting *acting, uint32_t policy, struct rm_error *error);
void rm_acting_draw_noise(struct rm_acting *acting, uint64_t step);

/* Call after a change of the parameters, before the next action. */
void rm_acting_prepare(struct rm_acting *acting);

/* Greedy actions for n observations.
 *   x       (n, inputs)
 *   lane    (n) lane ids over the whole run, coordinates of the quantile draws
 *   step    of those lanes
 *   mask    (n, actions) 1 = legal, or NULL
 *   action  (n) the first of the legal actions with the largest value (mean over quantiles) */
void rm_acting_greedy(struct rm_acting *acting, const float *x, uint32_t n, const uint32_t *lane,
                      uint64_t step, const uint8_t *mask, int32_t *action);

/* Rows of a vector step, for the three functions below.
 *   x           (n, inputs), floats or codes
 *   state       (n, state_floats) before this step, and next_state after it, which may be the same
 *               memory; NULL where the network has none
 *   action      (n, words): choices, then real numbers within the policy's bounds (gaussian.h)
 *   logp        (n), or NULL
 *   value       (n) of the state, or NULL; only of policies that store it (rm_policy_plan)
 *   types       (n, types) outputs behind those of actions, of networks over histories; or NULL
 *   cache       of such a network, and the lane of row 0 in it; NULL: x has whole histories */
struct rm_acting_rows {
    const void *x;
    uint32_t n;
    const uint32_t *lane;
    uint64_t step;
    const uint8_t *mask;
    const float *state;
    float *next_state;
    int32_t *action;
    float *logp;
    float *value;
    float *types;
    struct rm_net_cache *cache;
    uint32_t cache_lane;
};
/* Draws actions from a policy's distribution (categorical.h, gaussian.h). Requires
 * acting->draws. */
void rm_acting_draw(struct rm_acting *acting, const struct rm_acting_rows *rows);

/* Greedy actions of a recurrent network that computes values of actions. Does not compute logp. */
void rm_acting_best(struct rm_acting *acting, const struct rm_acting_rows *rows);

/* The most likely action of every choice and the mean of every real number, without draws. logp has
 * the log-probability of the choices alone. */
void rm_acting_likeliest(struct rm_acting *acting, const struct rm_acting_rows *rows);

/* Chooses exploring lanes among `n` lanes with consecutive ids from first_lane, at `step`. Lane i
 * explores with probability bound[i] / 2^32 (epsilon.h); then action[i] is uniform over the legal
 * actions, otherwise -1. One 32-bit word decides both: a word below the bound is uniform below the
 * bound. Four neighbouring lanes share a Philox block, wherever the batch begins. mask (n, actions)
 * or NULL. Returns the number of exploring lanes. */
uint32_t rm_acting_explore(uint64_t seed, uint32_t first_lane, uint32_t n, uint64_t step,
                           const uint64_t *bound, uint32_t actions, const uint8_t *mask,
                           int32_t *action);

#endif
