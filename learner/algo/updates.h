/* updates: trainers whose update is two calls: put the gradient, put the step. Both call operations
 * that every backend has (backend.h, learning.h, optimizer.h). An algorithm is a struct
 * rm_update_ops. The struct with an algorithm's state begins with a struct rm_updates, which has
 * the networks, target networks, the optimizer and everything else that all algorithms need.
 *
 * One of two files runs the updates; algorithms do not depend on which:
 *
 *   updates_at_once.c   on the CPU an update is complete when the call returns; it reads the batch
 *                       where the sampler wrote it
 *   updates_staged.c    batches are copied to a device (staging.h); the two calls are recorded once
 *                       for each slot (record.h) and launched from then on; results are late
 *                       (trainer.h)
 *
 * The host's input to an update is in its knobs, the update's results are in the figures
 * (device.h); both are in the backend's memory. Belongs to one thread; nothing is allocated after
 * create. */
#ifndef RM_LEARNER_ALGO_UPDATES_H
#define RM_LEARNER_ALGO_UPDATES_H

#include "learner/algo/finite.h"
#include "learner/algo/learning.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/trainer.h"

struct rm_staged_updates; /* updates_staged.c */
struct rm_updates;

/* One update; pointers are to the backend's memory. */
struct rm_update {
    const struct rm_batch *batch; /* the struct itself is in host memory */
    const struct rm_update_knobs *knobs;
    struct rm_phase_clock *clock; /* NULL: not measured */
};

struct rm_update_ops {
    size_t bytes;       /* of the algorithm's struct, which begins with struct rm_updates; zeroed */
    bool imitates;      /* the loss needs the legal actions of the state that was acted in */
    bool from_rollouts; /* no batches and no target networks (actor_critic.h) */
    bool untargeted;    /* no target networks */
    uint32_t
        critics; /* value networks beside the policy's; if any, they have the target networks */

    /* Called once the network is compiled. Makes checks, allocates buffers (rm_updates_alloc), and
     * sets `rows`, `quantiles`, `target_quantiles` and `observations`. */
    int (*open)(struct rm_updates *updates, const struct rm_trainer_spec *spec,
                struct rm_error *error);
    /* Loss and gradient, to `figures` and `grads`. Ends with rm_updates_learn() or
     * rm_updates_backward(). */
    void (*put_gradient)(struct rm_updates *updates, const struct rm_update *update);
    /* Both may be NULL. put_step moves the algorithm's own state after the optimizer's step, unless
     * the update is skipped (`figures`); reset initialises the algorithm's own state. */
    void (*put_step)(struct rm_updates *updates, const struct rm_update *update);
    void (*reset)(struct rm_updates *updates);
    /* Operations of the products of an update. NULL: those of a forward and a backward pass of
     * `rows` rows through the first network. */
    double (*flops)(const struct rm_updates *updates);
    /* The figures of a batch that is not learned from; NULL: there are no such batches. */
    void (*measure)(struct rm_updates *updates, const struct rm_batch *batch);
};

#define RM_UPDATES_BUFFERS 32u

struct rm_update_net {
    struct rm_net *net;
    struct rm_net_workspace *online, *target; /* target NULL: no target network */
    size_t at, count;                         /* the network's floats in the arenas */
    struct rm_net_input trained_on;           /* input of the last trained pass */
    const float *d_out; /* its gradient, if rm_updates_backward() got it; NULL: a loss made it */
};

struct rm_updates {
    struct rm_trainer trainer; /* first */
    const struct rm_update_ops *ops;
    const struct rm_experiment *experiment;
    struct rm_backend *backend;
    uint32_t policy;
    uint32_t replica, replicas; /* as in struct rm_trainer_spec; replicas is at least 1 */
    struct rm_trainer_settings settings;
    double progress; /* the run's */

    struct rm_update_net nets[RM_OPTIMIZER_GROUPS]; /* the policy's, then critics */
    uint32_t net_count;
    uint32_t rows, quantiles, target_quantiles; /* of the largest pass; 0: no quantiles as input */
    struct rm_optimizer *optimizer;
    size_t count;                      /* parameters */
    float *params, *grads;             /* (count), the backend's memory */
    float *target;                     /* likewise; NULL: no target network */
    struct rm_update_figures *figures; /* the backend's memory */
    float *noise;                      /* (noise_count); NULL: no layer is noisy */
    float *host_params;                /* (count), host memory */

    bool normalise; /* network.normalize_observations: the host computes the moments */
    struct rm_normaliser normaliser;
    float *observed; /* (batch, inputs), host memory: valid rows of sequences; NULL: not needed */
    double observations; /* of an update, added to the moments */
    double rows_before;  /* in the predecessors' moments */
    bool watched;        /* debug.check_finite */
    struct rm_finite finite;

    struct rm_staged_updates *staged; /* NULL: updates_at_once.c */
    void *buffers[RM_UPDATES_BUFFERS];
    uint32_t buffer_count;
    const char *kept_name; /* NULL: no such memory */
    float *kept;           /* the backend's memory; saved and rolled back with the parameters */
    size_t kept_floats;
};

/* --- for algorithms -------------------------------------------------------------------------- */

/* `bytes` of the backend's memory, zeroed, released with the trainer; 0 bytes: *at is NULL. */
int rm_updates_alloc(struct rm_updates *updates, void *at, size_t bytes, struct rm_error *error);

/* The same for memory that updates change beside the parameters; at most one such block. */
int rm_updates_alloc_kept(struct rm_updates *updates, const char *name, void *at, size_t bytes,
                          struct rm_error *error);

/* The key of this update's draws, times * number + pass, in the backend's form; on a device it is
 * valid until the next call. */
uint64_t rm_updates_key(struct rm_updates *updates, const struct rm_update *update, uint64_t times,
                        uint64_t pass);

/* Draws the noise of a pass; sets the key of dropout for the trained pass. */
void rm_updates_draw_noise(struct rm_updates *updates, const struct rm_update *update,
                           uint64_t passes, uint64_t pass, struct rm_net_input *input);
void rm_updates_draw_dropout(struct rm_updates *updates, const struct rm_update *update,
                             struct rm_net_input *input);

/* Runs a network over the burn-in rows of sequences, without gradients. Then *input is that of the
 * next `steps` rows; what it says beside rows and states stays. `state`: (B, state_count), the
 * backend's memory; NULL: the network has no state. */
void rm_updates_burn_in(struct rm_net_workspace *space, const float *params,
                        const struct rm_batch *batch, uint32_t steps, float *state,
                        struct rm_net_input *input);

/* Forward, loss and backward of the online network, in tiles if that is faster on the backend. The
 * loss is over `samples` samples. */
void rm_updates_learn(struct rm_updates *updates, const struct rm_net_input *input,
                      const struct rm_net_loss *loss, double samples);
/* Sets the figures of a pass on the CPU; a device's loss has set them. */
void rm_updates_set_sums(struct rm_updates *updates, const double sums[RM_NET_SUMS],
                         double samples);
/* Only the backward pass, after the last forward pass of a network; the loss writes the figures. */
void rm_updates_backward(struct rm_updates *updates, uint32_t net, const struct rm_net_input *input,
                         const float *d_out);

/* Books the time from now on for this phase; clock NULL: not measured. */
static inline void rm_update_phase(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

/* --- for the code that runs them ------------------------------------------------------------- */

/* Creates the part that does not depend on the backend. Sets *updates on failure too, for
 * rm_updates_destroy(), which accepts NULL. */
int rm_updates_create(struct rm_updates **updates, const struct rm_update_ops *ops,
                      const struct rm_trainer_spec *spec, struct rm_error *error);
void rm_updates_destroy(struct rm_updates *updates);

/* The arrays of this algorithm's batches that other algorithms' batches lack. */
struct rm_batch_extras rm_updates_extras(const struct rm_trainer_spec *spec,
                                         const struct rm_update_ops *ops);

/* Sets initial parameters; call last. */
void rm_updates_init(struct rm_updates *updates);

/* The host's input to update `number`. */
void rm_updates_set_knobs(const struct rm_updates *updates, uint64_t number,
                          struct rm_update_knobs *knobs);

/* The step along the gradient. `copy`: as in struct rm_optimizer_put. */
void rm_updates_put_step(struct rm_updates *updates, const struct rm_update *update,
                         struct rm_update_figures *copy);

/* Packs the weights of online networks, and of target networks, after they changed. */
void rm_updates_prepare(struct rm_updates *updates, bool online, bool target);

/* With network.normalize_observations, after an update that was made: adds a batch in host memory
 * to the moments, then moves the target network. */
void rm_updates_add_moments(struct rm_updates *updates, const struct rm_batch *batch, double part);

/* The result of an update from the copied figures. grad_norm decides whether the update is
 * skipped. */
struct rm_trainer_result rm_updates_result(const struct rm_update_figures *figures,
                                           double grad_norm);

/* As rm_trainer_fixed(). */
double rm_updates_fixed(struct rm_updates *updates);

/* debug.check_finite: searches this update's numbers if due. */
void rm_updates_look(struct rm_updates *updates, uint64_t number, bool skipped);

/* One device's part of trainer.h's functions of the same names. */
void rm_updates_set(struct rm_updates *updates, const struct rm_trainer_settings *settings);
void rm_updates_load(struct rm_updates *updates, const float *params);
void rm_updates_guarded(struct rm_updates *updates, struct rm_guard *guard);
void rm_updates_restored(struct rm_updates *updates);
void rm_updates_state(struct rm_updates *updates, struct rm_state *state);

extern const struct rm_update_ops rm_dqn_updates, rm_r2d2_updates, rm_sac_updates, rm_clone_updates,
    rm_distill_updates;

/* The trainer of such updates, for each kind of backend. */
int rm_updates_at_once_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                              const struct rm_trainer_spec *spec, struct rm_error *error);
int rm_updates_staged_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                             const struct rm_trainer_spec *spec, struct rm_error *error);

#endif
