/* actor_critic_private: shared by the two files of the actor-critic learner.
 *
 *   actor_critic.c      the updates of a rollout: pieces, made of operations that every backend has
 *   actor_critic_run.c  runs the pieces
 *
 * On the CPU a piece is complete when its function returns. On a device the pieces are recorded in
 * three graphs: values, returns, and one minibatch, which is launched once for each minibatch. The
 * device counts the minibatches, so the host sends nothing and does not wait between minibatches.
 * Results return once a rollout.
 *
 * SEVERAL DEVICES (learner.devices). Each device has networks, optimizer and value head, which stay
 * equal to the bit. Each device has the whole rollout with its advantages and returns, and learns
 * from its share of each minibatch (struct rm_next_minibatch). Each device computes the moments of
 * the whole minibatch. Gradients and sums of the loss are added up among the devices before the
 * norm. So an update on several devices equals an update on one, except for the rounding of sums.
 * If a forward pass over independent rows computes the values, each device computes its share of
 * the values, too.
 *
 * Rollouts that are made on the devices stay there: each device learns from its own worlds' rows, a
 * minibatch is the union of the devices' parts, and the number of all rows and their moments are
 * added up, too. Results and checkpoints come from the first device. A change from outside is made
 * on the first device and copied to the others. */
#ifndef RM_LEARNER_ALGO_ACTOR_CRITIC_PRIVATE_H
#define RM_LEARNER_ALGO_ACTOR_CRITIC_PRIVATE_H

#include "learner/algo/actor_critic.h"
#include "learner/algo/minibatch.h"
#include "learner/algo/reward_scale.h"
#include "learner/algo/updates.h"
#include "learner/algo/value_head.h"
#include "learner/backend/device_collective.h"

/* The host's input to a rollout, in one block: passes, (epochs, parts) knobs, (epochs, entries)
 * orders. */
struct rm_rollout_input {
    struct rm_rollout_passes *passes;
    struct rm_update_knobs *knobs;
    uint32_t *order;
    size_t bytes, knobs_at, order_at;
};

/* The results of a rollout, in pinned memory. */
struct rm_rollout_results {
    struct rm_rollout_passes passes;
    struct rm_value_head_state head;
    struct rm_update_figures figures;
    uint32_t stop[2]; /* after every other pass */
};

/* A part is put, and recorded in a graph, as a whole. */
enum rm_rollout_part {
    RM_ROLLOUT_VALUES = 0,
    RM_ROLLOUT_RETURNS,
    RM_ROLLOUT_MINIBATCH,
    RM_ROLLOUT_PARTS
};

struct rm_actor_critic {
    struct rm_updates u;              /* first */
    const struct rm_rollout *rollout; /* its arrays by RM_ROLLOUT_THERE() */
    struct rm_rollout copy; /* on another device: this device's copy of the first's rollout */
    bool apart;             /* one of several devices; its rollouts come from its own worlds */
    bool off_policy;        /* V-trace */
    bool recurrent;
    float clip; /* of the ratio; 0: plain policy gradient */
    uint32_t epochs;

    struct rm_net_workspace *value_space;
    struct rm_value_head value_head;
    struct rm_reward_scale reward_scale;
    uint8_t *lane;                     /* (lanes): enum rm_reward_lane */
    uint32_t *lanes;                   /* (lanes): 0, 1, 2 ... */
    struct rm_minibatches minibatches; /* of samples; recurrent: of lanes */

    uint32_t whole;              /* entries of the largest minibatch */
    uint32_t most;               /* entries of the largest share of a minibatch */
    uint32_t batch;              /* rows of the largest share */
    uint32_t rows;               /* rows of the current batch; on a device always `batch` */
    uint32_t entries;            /* most entries of a pass */
    uint32_t floats, own_floats; /* floats of a lane's recurrent state; the last own_floats are the
                                    state of the value's own layers */

    struct rm_rollout_input here, there; /* there: backend memory; on the CPU both are the same */

    /* The backend's memory. Of the rollout: */
    float *value;              /* (steps + 1, lanes) */
    float *advantage, *target; /* (steps, lanes) */
    float *logp; /* (steps, lanes) V-trace: of the policy at the rollout's start; else NULL */
    struct rm_value_head_state *head;
    float *first;     /* (lanes, floats) states before the rollout, where the value has own ones */
    float *now;       /* (lanes, floats) of the pass over it */
    float *value_now; /* (lanes, own_floats) states after the rollout, for the next one */
    uint8_t *restart; /* (steps + 1, lanes) */
    /* Of a minibatch: */
    uint32_t *index;   /* (batch) rows of the rollout */
    uint32_t *entry;   /* (most) lanes */
    float *state;      /* (most, floats) */
    uint8_t *restarts; /* (batch) */
    struct rm_update_knobs *knobs;
    float *weight, *part; /* on a device: buffers of rm_next_minibatch and rm_minibatch_loss */
    double *sums;         /* (RM_SUM_COUNT) of the loss, where devices are several */
    double *slots;        /* (replicas, RM_DEVICE_SLOT) where they are apart */

    uint64_t number;
    uint32_t pass, part_of_pass;
    uint64_t begun;               /* minibatches of the rollout that were begun */
    uint64_t known;               /* updates whose results the host has */
    bool stopped;                 /* by kl, or by a rollback */
    struct rm_phase_clock *clock; /* of the current call; NULL: not measured */
    uint64_t made, skipped;       /* updates of all rollouts whose results are known */
    double seen;                  /* samples of the rollout's updates whose results are known */
    double learning_rate;         /* of the latest update */
    struct rm_actor_critic_figures figures; /* sums over `samples` */
    double samples;

    /* The list of all devices, the first included. Only the first device has the list. */
    uint32_t count;
    struct rm_updates *all[RM_DEVICE_MEMBERS];
    struct rm_rollout_results *results;
    struct rm_device_mark *over, *passed[2];
    struct rm_device_graph *graphs[RM_ROLLOUT_PARTS];
};

static inline struct rm_actor_critic *rm_actor_critic_of(struct rm_updates *updates)
{
    return (struct rm_actor_critic *)updates;
}

#define RM_ROLLOUT_THERE(member) rm_rollout_there(r, r->member)

/* --- actor_critic.c -------------------------------------------------------------------------- */

extern const struct rm_update_ops rm_actor_critic_updates;

/* The pieces of each part, in order. After a piece, several devices add up what `sum` puts (NULL:
 * nothing). A piece neither waits nor copies to or from the host. */
struct rm_rollout_piece {
    void (*put)(struct rm_actor_critic *ac);
    void (*sum)(struct rm_actor_critic *ac);
};

enum rm_minibatch_piece {
    RM_PIECE_ROWS = 0,
    RM_PIECE_GRADIENT,
    RM_PIECE_LOSS,
    RM_PIECE_STEP,
    RM_ROLLOUT_PIECES
};
extern const struct rm_rollout_piece rm_rollout_pieces[RM_ROLLOUT_PARTS][RM_ROLLOUT_PIECES];

/* Frees one device's memory, except for that of its rm_updates. */
void rm_actor_critic_free(struct rm_actor_critic *ac);
void rm_actor_critic_parts(struct rm_actor_critic *ac, struct rm_state *state);

#endif
