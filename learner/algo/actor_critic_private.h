/* actor_critic_private: what the two files of the actor-critic learner share.
 *
 *   actor_critic.c      what a rollout's updates are: pieces, of operations that every backend has
 *   actor_critic_run.c  how they run. On the CPU a piece is over when the call returns. On a device
 *                       pieces are recorded in three graphs: values, returns, and one minibatch,
 *                       launched once for each. The device counts which minibatch it is, so the
 * host sends nothing in between and does not wait; results come back once a rollout.
 *
 * SEVERAL DEVICES (learner.devices) each have networks, optimizer and value head, which stay equal
 * to the bit. Every device has the whole rollout, its advantages and returns, and learns from its
 * share of each minibatch (struct rm_minibatch_take); a minibatch's moments are made of all of it
 * everywhere, and gradients and sums of the loss are added up among the devices before the norm is
 * taken. So an update is that of one device, but for the rounding of sums. Where values are made by
 * a forward pass over rows that do not depend on each other, each device makes its share of those
 * too. Rollouts that are made on the devices stay there: each device learns from its own worlds'
 * rows, a minibatch is its part of each, and what is needed of all rows (how many, their moments)
 * is added up as well. What is told, saved and looked at is the first device's; what changes it
 * from outside changes the others after it. */
#ifndef RM_LEARNER_ALGO_ACTOR_CRITIC_PRIVATE_H
#define RM_LEARNER_ALGO_ACTOR_CRITIC_PRIVATE_H

#include "learner/algo/actor_critic.h"
#include "learner/algo/minibatch.h"
#include "learner/algo/reward_scale.h"
#include "learner/algo/updates.h"
#include "learner/algo/value_head.h"
#include "learner/backend/device_collective.h"

/* What the host says of a rollout: passes, then (epochs, parts) knobs, then (epochs, entries)
 * orders, in one block. */
struct rm_rollout_said {
    struct rm_rollout_passes *passes;
    struct rm_update_knobs *knobs;
    uint32_t *order;
    size_t bytes, knobs_at, order_at;
};

/* What comes back of it, in pinned memory. */
struct rm_rollout_told {
    struct rm_rollout_passes passes;
    struct rm_value_head_state head;
    struct rm_update_figures figures;
    uint32_t stop[2]; /* after every other pass */
};

/* What is put, and recorded, as a whole. */
enum rm_rollout_part {
    RM_ROLLOUT_VALUES = 0,
    RM_ROLLOUT_RETURNS,
    RM_ROLLOUT_MINIBATCH,
    RM_ROLLOUT_PARTS
};

struct rm_actor_critic {
    struct rm_updates u;              /* first */
    const struct rm_rollout *rollout; /* the backend's side of it: RM_ROLLOUT_THERE() */
    struct rm_rollout copy;           /* of the first device's rollout as it lies on this one */
    bool apart;                       /* one of several, whose rollouts are its own worlds' */
    bool off_policy;                  /* V-trace */
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
    uint32_t most;               /* of the largest share of one */
    uint32_t batch;              /* rows of that */
    uint32_t rows;               /* of the batch in hand; on a device always the largest */
    uint32_t entries;            /* of a pass at most */
    uint32_t floats, own_floats; /* of a lane's recurrent state; the value's own, its last */

    struct rm_rollout_said here, there; /* there: the backend's memory; the CPU's are the same */

    /* The backend's memory. Of the rollout: */
    float *value;              /* (steps + 1, lanes) */
    float *advantage, *target; /* (steps, lanes) */
    float *logp; /* (steps, lanes) V-trace: of the policy at the rollout's start; else NULL */
    struct rm_value_head_state *head;
    float *first;     /* (lanes, floats) states before the rollout, where the value has own ones */
    float *now;       /* (lanes, floats) of the pass over it */
    float *value_now; /* (lanes, own_floats) after it, for the next rollout */
    uint8_t *restart; /* (steps + 1, lanes) */
    /* Of a minibatch: */
    uint32_t *index;   /* (batch) rows of the rollout */
    uint32_t *entry;   /* (most) lanes */
    float *state;      /* (most, floats) */
    uint8_t *restarts; /* (batch) */
    struct rm_update_knobs *knobs;
    float *weight, *part; /* a device's: of rm_minibatch_take and rm_minibatch_loss */
    double *sums;         /* (RM_SUM_COUNT) of the loss, where devices are several */
    double *slots;        /* (replicas, RM_DEVICE_SLOT) where they are apart */

    uint64_t number;
    uint32_t pass, part_of_pass;
    uint64_t begun;                         /* minibatches of the rollout, and of these */
    uint64_t known;                         /* updates whose results the host has */
    bool stopped;                           /* by kl, or from outside */
    struct rm_phase_clock *clock;           /* of the current call; NULL: not measured */
    uint64_t made, skipped;                 /* of all rollouts, as far as known */
    double seen;                            /* samples of the rollout, likewise */
    double learning_rate;                   /* of the latest update */
    struct rm_actor_critic_figures figures; /* sums, until they are asked for */
    double samples;                         /* that these sums are over */

    /* Devices; the first has the list, of itself and the others, and the others have none. */
    uint32_t count;
    struct rm_updates *all[RM_DEVICE_MEMBERS];
    struct rm_rollout_told *told;
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

/* Pieces of each part, in order; between them several devices add up what `sum` puts (NULL: nothing
 * of it is all devices'). Nothing here waits, sends or asks. */
struct rm_rollout_piece {
    void (*put)(struct rm_actor_critic *ac);
    void (*sum)(struct rm_actor_critic *ac);
};

enum rm_minibatch_piece {
    RM_PIECE_TAKE = 0,
    RM_PIECE_GRADIENT,
    RM_PIECE_LOST,
    RM_PIECE_STEP,
    RM_ROLLOUT_PIECES
};
extern const struct rm_rollout_piece rm_rollout_pieces[RM_ROLLOUT_PARTS][RM_ROLLOUT_PIECES];

/* Of one device, but for what all have in common. */
void rm_actor_critic_free(struct rm_actor_critic *ac);
void rm_actor_critic_parts(struct rm_actor_critic *ac, struct rm_state *state);

#endif
