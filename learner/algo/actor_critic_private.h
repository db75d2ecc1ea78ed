/* actor_critic_private: shared by the two files of the actor-critic learner.
 *
 *   actor_critic.c      the updates of a rollout: pieces, made of operations that every backend has
 *   actor_critic_run.c  runs the pieces
 *
 * On the CPU a piece is complete when its function returns. On a device the pieces are recorded in
 * three graphs: values, returns and minibatch. The graph of a minibatch is launched once for each
 * minibatch. The device counts the minibatches, so the host neither sends data nor waits between
 * them. The host gets the results once a rollout.
 *
 * SEVERAL DEVICES (learner.devices). Each device has its own networks, optimizer and value head,
 * which stay equal to the bit. Each device has the whole rollout with its advantages and returns,
 * learns from its share of each minibatch (struct rm_next_minibatch), and computes the moments of
 * the whole minibatch. The devices add up their gradients and their sums of the loss before the
 * norm is computed. So an update on several devices equals an update on one, except for the
 * rounding of sums. If the rows of the forward pass for values are independent, the devices share
 * that pass, too.
 *
 * ROLLOUTS MADE ON THE DEVICES stay there (`apart`). Each device learns from its own worlds' rows,
 * and a minibatch is the union of the devices' parts. The devices also add up their numbers of rows
 * and the moments. Results and checkpoints come from the first device. A change from outside is
 * made on the first device and copied to the others. */
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

/* The results of a rollout, in host memory. */
struct rm_rollout_results {
    struct rm_rollout_passes passes;
    struct rm_value_head_state head;
    struct rm_update_figures figures;
    uint32_t stop[2]; /* rm_update_figures.stop after the latest even and odd pass */
};

/* The parts of learning from a rollout. On a device each part is one graph. */
enum rm_rollout_part {
    RM_ROLLOUT_VALUES = 0,
    RM_ROLLOUT_RETURNS,
    RM_ROLLOUT_MINIBATCH,
    RM_ROLLOUT_PARTS
};

struct rm_actor_critic {
    struct rm_updates u;              /* first */
    const struct rm_rollout *rollout; /* read its arrays by RM_ROLLOUT_THERE() */
    struct rm_rollout copy; /* on devices after the first: copy of the first device's rollout */
    bool apart;             /* one of several devices, with rollouts from its own worlds */
    bool off_policy;        /* appo, vtrace: advantages by V-trace (vtrace.h) */
    bool recurrent;
    float clip;      /* bound of |ratio - 1|; 0: plain policy gradient */
    uint32_t epochs; /* passes over a rollout */

    struct rm_net_workspace *value_space;
    struct rm_value_head value_head;
    struct rm_reward_scale reward_scale;
    uint8_t *lane;                     /* (lanes): enum rm_reward_lane */
    uint32_t *lanes;                   /* (lanes): 0, 1, 2 ... */
    struct rm_minibatches minibatches; /* their entries are samples; recurrent: lanes */

    uint32_t whole;              /* entries of the largest minibatch */
    uint32_t most;               /* entries of the largest share of a minibatch */
    uint32_t batch;              /* rows of the largest share */
    uint32_t rows;               /* rows of the current batch */
    uint32_t entries;            /* maximum entries of a pass */
    uint32_t floats, own_floats; /* floats of a lane's recurrent state; the last own_floats are the
                                    state of the value's own layers */

    /* The input in host memory and in the backend's memory, which may be the same block. */
    struct rm_rollout_input here, there;

    /* Arrays of the rollout, in the backend's memory: */
    float *value;              /* (steps + 1, lanes) */
    float *advantage, *target; /* (steps, lanes) */
    float *logp; /* (steps, lanes) off_policy: ln pi(a) of the policy before the first update of the
                    rollout; else NULL */
    struct rm_value_head_state *head;
    float *first;     /* (lanes, floats) recurrent states before the rollout, if the value has its
                         own recurrent layers */
    float *now;       /* (lanes, floats) recurrent states during the pass that computes values */
    float *value_now; /* (lanes, own_floats) the value's states after the rollout, for the next */
    uint8_t *restart; /* (steps + 1, lanes) 1: the row begins an episode */
    /* Arrays of the current minibatch, in the backend's memory: */
    uint32_t *index;   /* (batch) the rollout's rows that form the batch */
    uint32_t *entry;   /* (most) the batch's lanes */
    float *state;      /* (most, floats) recurrent states of these lanes before the rollout */
    uint8_t *restarts; /* (batch) 1: the row begins an episode */
    struct rm_update_knobs *knobs;
    float *weight, *part; /* of rm_next_minibatch and rm_minibatch_loss; NULL: not needed */
    double *sums;         /* (RM_SUM_COUNT) of the loss; NULL: one device */
    double *slots;        /* (replicas, RM_DEVICE_SLOT); NULL unless `apart` */

    uint64_t number;              /* of the rollout: keys the order of its entries */
    uint32_t pass, part_of_pass;  /* the pass, and its minibatch, that the host puts next */
    uint64_t begun;               /* minibatches of this rollout that were started */
    uint64_t known;               /* updates of this rollout whose results the host has */
    bool stopped;                 /* no further update: the KL bound was reached, or a rollback */
    struct rm_phase_clock *clock; /* of the current call; NULL: not measured */
    uint64_t made, skipped;       /* updates of all rollouts whose results are known */
    double seen;                  /* samples of this rollout's updates whose results are known */
    double learning_rate;         /* of the latest update */
    struct rm_actor_critic_figures figures; /* sums over this rollout's samples */
    double samples;                         /* their number */

    /* The list of all devices, the first included. Only the first device has the list. */
    uint32_t count;
    struct rm_updates *all[RM_DEVICE_MEMBERS];
    struct rm_rollout_results *results;
    struct rm_queue_mark *over, *passed[2]; /* after the rollout; after the latest even, odd pass */
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
    void (*sum)(struct rm_updates *updates); /* with rm_record_sum() */
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
