/* actor_critic_private: what the files of the actor-critic learner share. actor_critic.c makes it
 * and has what is the same wherever it computes; the rest is a table. On the CPU:
 * actor_critic_host.c, actor_critic_rollout.c values a rollout, actor_critic_step.c learns from it.
 * On a device, or on several: actor_critic_device.h. */
#ifndef RM_LEARNER_ALGO_ACTOR_CRITIC_PRIVATE_H
#define RM_LEARNER_ALGO_ACTOR_CRITIC_PRIVATE_H

#include "learner/algo/actor_critic.h"
#include "learner/algo/finite.h"
#include "learner/algo/minibatch.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/reward_scale.h"
#include "learner/algo/sequences.h"
#include "learner/algo/value_head.h"

/* Rows of one forward pass over a rollout: activations of small networks stay in the second-level
 * cache. */
#define FORWARD_ROWS 512u

/* How advantages are normalised: (A - mean) * scale. */
struct rm_moments_of_batch {
    float mean, scale;
};

struct rm_actor_critic_ops {
    size_t bytes; /* of its struct, which begins with struct rm_actor_critic */
    /* The rest of it; the network, parameters and optimizer are made. unmake() takes a part of it
     * too. */
    int (*make)(struct rm_actor_critic *ac, struct rm_error *error);
    void (*unmake)(struct rm_actor_critic *ac);
    /* Parameters, moments or the value head were replaced from outside. */
    void (*renewed)(struct rm_actor_critic *ac);
    /* The normaliser was written into the parameters. */
    void (*normalised)(struct rm_actor_critic *ac);
    void (*begin)(struct rm_actor_critic *ac, uint64_t number, struct rm_phase_clock *clock);
    void (*pass_by)(struct rm_actor_critic *ac);
    struct rm_actor_critic_update (*step)(struct rm_actor_critic *ac, uint64_t update,
                                          double progress, struct rm_phase_clock *clock);
    bool (*collect)(struct rm_actor_critic *ac, struct rm_actor_critic_update *update,
                    struct rm_phase_clock *clock); /* NULL: step() tells all */
    /* Of the value's own recurrent layers. */
    void (*value_state)(struct rm_actor_critic *ac, struct rm_state *state);
};

extern const struct rm_actor_critic_ops rm_host_actor_critic, rm_device_actor_critic;

/* What both have. The CPU's has nothing more. */
struct rm_actor_critic {
    const struct rm_actor_critic_ops *ops;
    const struct rm_experiment *experiment;
    const struct rm_rollout *rollout;
    const struct rm_rollout *const *others;
    struct rm_backend *backend;
    uint32_t policy;
    struct rm_actor_critic_settings settings;
    bool off_policy; /* V-trace */
    float clip;      /* of the ratio; 0: plain policy gradient */
    uint32_t epochs;

    struct rm_net *net;
    struct rm_net_workspace *value_space, *learn_space;
    struct rm_optimizer *optimizer;
    struct rm_value_head value_head;
    struct rm_reward_scale reward_scale;
    struct rm_normaliser normaliser;
    struct rm_finite finite;
    size_t count;          /* parameters */
    float *params, *grads; /* the backend's */

    /* Of the rollout in hand, (steps, lanes). */
    float *value;  /* (steps + 1, lanes) */
    float *reward; /* (steps + 1, lanes) scaled */
    uint8_t *lane; /* (lanes): enum rm_reward_lane */
    float *advantage;
    float *target;
    float *logp;  /* V-trace: of the policy at the rollout's start; else NULL */
    float *ratio; /* V-trace: that to the behaviour's; else NULL */
    struct rm_minibatches minibatches; /* of samples; recurrent: of lanes */
    struct rm_sequences sequences;
    uint32_t *order;                  /* recurrent: 0, 1, 2 ...; else NULL */
    struct rm_moments_of_batch whole; /* of all advantages */

    uint64_t number;
    uint32_t pass, part;
    bool stopped; /* by kl */
    double pass_kl, pass_samples;
    struct rm_actor_critic_figures figures; /* sums over updates until they are asked for */
    double samples;                         /* that these sums are over */
};

static inline void rm_actor_critic_enter(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

/* Steps of all lanes in one forward pass of a recurrent network. */
static inline uint32_t rm_actor_critic_pass_rows(const struct rm_actor_critic *ac)
{
    const struct rm_rollout *r = ac->rollout;
    const uint32_t steps = FORWARD_ROWS / r->lanes;
    return steps == 0 ? 1 : steps < r->steps ? steps : r->steps;
}

/* actor_critic.c. One that is made as the table says. */
int rm_actor_critic_create_by(struct rm_actor_critic **ac, const struct rm_actor_critic_ops *ops,
                              const struct rm_actor_critic_spec *spec, struct rm_error *error);

/* Divides the rollout's rewards, (steps + 1, lanes), by their running scale, in
 * place. */
void rm_actor_critic_scale(struct rm_actor_critic *ac, float *reward);

/* The CPU's functions. */
void rm_host_actor_critic_begin(struct rm_actor_critic *ac, uint64_t number,
                                struct rm_phase_clock *clock);
void rm_host_actor_critic_pass_by(struct rm_actor_critic *ac);
struct rm_actor_critic_update rm_host_actor_critic_step(struct rm_actor_critic *ac, uint64_t update,
                                                        double progress,
                                                        struct rm_phase_clock *clock);

/* Of these rows, which are samples: to mean 0 and deviation 1. */
struct rm_moments_of_batch rm_actor_critic_normal(const struct rm_actor_critic *ac,
                                                  const uint32_t *row, uint32_t n);

#endif
