/* updates: trainers whose update is two calls, put the gradient and put the step, of operations
 * that every backend has (backend.h, learning.h, optimizer.h). An algorithm gives a struct
 * rm_update_ops and begins its own state with a struct rm_updates, which has the networks, their
 * target networks, the optimizer and what else all of them need.
 *
 * How updates run is the backend's side, of which algorithms know nothing:
 *
 *   updates_at_once.c   the CPU: an update is over when the call returns, and its batch is read
 *                       where it was drawn
 *   updates_staged.c    a device: batches are copied there (staging.h), the two calls are recorded
 *                       once for each slot (record.h) and launched from then on; the result of an
 * update is reported late (trainer.h)
 *
 * What an update needs of the host is in its knobs, what comes of it in the figures (device.h),
 * both in the backend's memory. Belongs to one thread; nothing is allocated after create. */
#ifndef RM_LEARNER_ALGO_UPDATES_H
#define RM_LEARNER_ALGO_UPDATES_H

#include "learner/algo/finite.h"
#include "learner/algo/learning.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/optimizer.h"
#include "learner/algo/trainer.h"

struct rm_staged_updates; /* updates_staged.c */
struct rm_updates;

/* One update; pointers are the backend's memory. */
struct rm_update {
    const struct rm_batch *batch; /* the struct itself is the host's */
    const struct rm_update_knobs *knobs;
    struct rm_phase_clock *clock; /* NULL: not measured */
};

struct rm_update_ops {
    size_t bytes; /* of the trainer, which begins with its struct rm_updates and else is zeros */
    bool on_several_devices;
    bool from_rollouts; /* no batches and no target networks (actor_critic.h) */
    uint32_t critics;   /* networks of values beside the one that acts; the target networks are then
                           theirs */

    /* Sizes, checks and buffers (rm_updates_alloc), once the network is compiled; sets `rows`,
     * `quantiles`, `target_quantiles` and `observations`. */
    int (*open)(struct rm_updates *updates, const struct rm_trainer_spec *spec,
                struct rm_error *error);
    /* Loss and gradient: what is learned from in `grads`, its numbers in `figures`. Ends with
     * rm_updates_learn() or rm_updates_backward(). */
    void (*put_gradient)(struct rm_updates *updates, const struct rm_update *update);
    /* Either may be NULL. What the algorithm moves besides, where the figures say that the update
     * is not skipped; and as it is with new parameters. */
    void (*put_step)(struct rm_updates *updates, const struct rm_update *update);
    void (*reset)(struct rm_updates *updates);
    double (*flops)(const struct rm_updates *updates); /* of one */
};

#define RM_UPDATES_BUFFERS 32u

struct rm_update_net {
    struct rm_net *net;
    struct rm_net_workspace *online, *target; /* target NULL: it has none */
    size_t at, count;                         /* of the arenas: floats */
    struct rm_net_input trained_on;           /* of the last pass that was trained */
};

struct rm_updates {
    struct rm_trainer trainer; /* first */
    const struct rm_update_ops *ops;
    const struct rm_experiment *experiment;
    struct rm_backend *backend;
    uint32_t policy;
    uint32_t replica, replicas; /* of those that learn from parts of one batch */
    struct rm_trainer_settings settings;
    double progress; /* of the run */

    struct rm_update_net nets[RM_OPTIMIZER_GROUPS]; /* the one that acts, then critics */
    uint32_t net_count;
    uint32_t rows, quantiles, target_quantiles; /* of the largest pass; quantiles 0: none */
    struct rm_optimizer *optimizer;
    size_t count;                      /* parameters */
    float *params, *grads;             /* (count), the backend's memory */
    float *target;                     /* the same; NULL: no network has one */
    struct rm_update_figures *figures; /* the backend's memory */
    float *noise;                      /* (noise_count), NULL when no layer is noisy */
    float *host_params;                /* (count), host memory */

    bool normalise; /* network.normalize_observations: moments are made on the host */
    struct rm_normaliser normaliser;
    float *observed; /* (batch, inputs), host memory: rows of sequences that count; NULL: none */
    double observations; /* in an update, that go into the moments */
    double rows_before;  /* that predecessors' moments stand for */
    bool watched;        /* debug.check_finite */
    struct rm_finite finite;

    struct rm_staged_updates *staged; /* NULL: at once */
    void *buffers[RM_UPDATES_BUFFERS];
    uint32_t buffer_count;
    const char *kept_name; /* NULL: nothing */
    float *kept; /* the backend's memory: goes into checkpoints and back with parameters */
    size_t kept_floats;
};

/* --- for algorithms -------------------------------------------------------------------------- */

/* `bytes` of the backend's memory, zeroed, released with the trainer; 0 bytes: *at is NULL. */
int rm_updates_alloc(struct rm_updates *updates, void *at, size_t bytes, struct rm_error *error);

/* The same, for what updates change beside parameters. At most one. */
int rm_updates_alloc_kept(struct rm_updates *updates, const char *name, void *at, size_t bytes,
                          struct rm_error *error);

/* The key of draws of this update, times * number + pass, in the form that the backend takes: on a
 * device it holds until the next call. */
uint64_t rm_updates_key(struct rm_updates *updates, const struct rm_update *update, uint64_t times,
                        uint64_t pass);

/* Draws the noise of a pass, and of the pass that is trained on what dropout is keyed by. */
void rm_updates_draw_noise(struct rm_updates *updates, const struct rm_update *update,
                           uint64_t passes, uint64_t pass, struct rm_net_input *input);
void rm_updates_draw_dropout(struct rm_updates *updates, const struct rm_update *update,
                             struct rm_net_input *input);

/* Forward, loss and backward of the online network, in tiles where the backend has use for them;
 * `samples` are what the loss is over. */
void rm_updates_learn(struct rm_updates *updates, const struct rm_net_input *input,
                      const struct rm_net_loss *loss, double samples);
/* Backward alone, of the last forward pass of a network; the loss writes the figures. */
void rm_updates_backward(struct rm_updates *updates, uint32_t net, const struct rm_net_input *input,
                         const float *d_out);

/* Books the time from now on for this phase; clock NULL: not measured. */
static inline void rm_update_phase(struct rm_phase_clock *clock, enum rm_phase phase)
{
    if (clock)
        rm_phase_enter(clock, phase);
}

/* --- for what runs them ---------------------------------------------------------------------- */

/* Everything but what the backend's side adds; sets *updates on failure too, for
 * rm_updates_destroy(), which takes NULL. */
int rm_updates_create(struct rm_updates **updates, const struct rm_update_ops *ops,
                      const struct rm_trainer_spec *spec, struct rm_error *error);
void rm_updates_destroy(struct rm_updates *updates);

/* Initial parameters; after everything else. */
void rm_updates_init(struct rm_updates *updates);

/* What the host says of update `number`. */
void rm_updates_set_knobs(const struct rm_updates *updates, uint64_t number,
                          struct rm_update_knobs *knobs);

/* The step along the gradient. `copy`: as in struct rm_optimizer_put. */
void rm_updates_put_step(struct rm_updates *updates, const struct rm_update *update,
                         struct rm_update_figures *copy);

/* Packs the weights again: of the online network if they changed, and of target networks. */
void rm_updates_prepare(struct rm_updates *updates, bool online, bool target);

/* What the host adds to an update that was made, with network.normalize_observations: moments, from
 * a batch in its memory, and behind them the target network. */
void rm_updates_add_moments(struct rm_updates *updates, const struct rm_batch *batch, double part);

/* Numbers of the update that these figures were copied after; not yet judged: by this norm. */
struct rm_trainer_result rm_updates_result(const struct rm_update_figures *figures,
                                           double grad_norm);

/* Whether the gradient is to be looked through, and does so. */
void rm_updates_look(struct rm_updates *updates, uint64_t number, bool skipped);

/* One device's part of trainer.h's functions of the same names. */
void rm_updates_set(struct rm_updates *updates, const struct rm_trainer_settings *settings);
void rm_updates_load(struct rm_updates *updates, const float *params);
void rm_updates_guarded(struct rm_updates *updates, struct rm_guard *guard);
void rm_updates_restored(struct rm_updates *updates);
void rm_updates_state(struct rm_updates *updates, struct rm_state *state);

extern const struct rm_update_ops rm_dqn_updates, rm_r2d2_updates, rm_sac_updates;

/* Trainers of such updates, by the backend. */
int rm_updates_at_once_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                              const struct rm_trainer_spec *spec, struct rm_error *error);
int rm_updates_staged_create(struct rm_trainer **trainer, const struct rm_update_ops *ops,
                             const struct rm_trainer_spec *spec, struct rm_error *error);

#endif
