/* actor_critic_device: the actor-critic learner whose network is on a device. Its two files:
 * actor_critic_graphs.c is what is put on the device's stream, once, to be captured;
 * actor_critic_device.c sends rollouts, launches, and asks what came of them.
 *
 * A rollout crosses once, in one copy (rollout_rows.h). Three graphs are all that follows: its
 * values; its advantages and returns; and one minibatch, launched once for each. Which minibatch
 * that is the device counts itself, so nothing is sent in between and nobody waits. Results come
 * back once, when the rollout is over.
 *
 * Once a rollout the host does what is a matter of a few numbers: it scales rewards and counts
 * observations (both before they are sent), draws the orders of all passes, and writes what the
 * normaliser has found into the parameters.
 *
 * Rollouts that are made on the device (native_worlds.h) are there already, with their orders.
 *
 * WARM-UP. Before they are captured all operations are made once, on a rollout without a sample:
 * then no update is made and no running mean is moved, so nothing needs to be put back but the
 * recurrent states of the value's own layers, which begin as zeros again. */
#ifndef RM_LEARNER_ALGO_ACTOR_CRITIC_DEVICE_H
#define RM_LEARNER_ALGO_ACTOR_CRITIC_DEVICE_H

#include "learner/algo/actor_critic_private.h"
#include "learner/backend/device_policy.h"

/* Rows of one forward pass over a rollout. */
#define RM_DEVICE_FORWARD_ROWS 8192u

/* Sent with a rollout: passes, then (epochs, parts) knobs, then (epochs, entries) orders. */
struct rm_device_sent {
    struct rm_device_passes *passes;
    struct rm_device_knobs *knobs;
    uint32_t *order;
    size_t bytes, knobs_at, order_at;
};

/* What comes back, in pinned memory. */
struct rm_device_told {
    struct rm_device_passes passes;
    struct rm_device_value_head head;
    struct rm_device_figures figures;
    uint32_t stop[2]; /* after every other pass: see marks */
};

struct rm_device_actor_critic {
    struct rm_actor_critic ac; /* first */
    uint32_t most;             /* entries of the largest minibatch */
    uint32_t batch;            /* rows of it: most, or steps * most of recurrent networks */
    uint32_t entries;          /* of a pass at most */
    uint32_t floats, own;      /* of a lane's recurrent state, and the value's own of these */

    struct rm_device_sent here, there; /* pinned, and on the device */
    struct rm_device_told *told;
    struct rm_device_mark *over, *passed[2];
    struct rm_device_graph *values, *returns, *minibatch;

    /* The device's. Of the rollout: */
    float *value, *advantage, *target, *logp;
    struct rm_device_value_head *head;
    float *first;     /* (lanes, floats) states before the rollout, where the value has own ones */
    float *now;       /* (lanes, floats) after it */
    float *value_now; /* (lanes, own) the same, for the next rollout */
    uint8_t *restart; /* (steps + 1, lanes) */
    /* Of a minibatch: */
    uint32_t *index, *entry;
    float *weight, *part, *d_out, *state;
    uint8_t *restarts; /* (steps, most) */
    struct rm_device_knobs *knobs;

    struct rm_device_figures *figures; /* the optimizer's */
    uint64_t made, skipped;            /* when last told */
    uint64_t launched;                 /* minibatches of the rollout */
    double learning_rate;              /* of the rollout's latest update */
};

static inline struct rm_device_actor_critic *rm_device_actor_critic_of(struct rm_actor_critic *ac)
{
    return (struct rm_device_actor_critic *)ac;
}

/* Where the orders of passes are, for rollouts that are made on the device and know them alone. */
struct rm_device_sent rm_device_actor_critic_there(struct rm_actor_critic *ac);

/* actor_critic_graphs.c. Puts one of the three on the stream. */
void rm_device_put_values(struct rm_device_actor_critic *d);
void rm_device_put_returns(struct rm_device_actor_critic *d);
void rm_device_put_minibatch(struct rm_device_actor_critic *d);

/* A minibatch outside of its graph, waiting between gradient and step to look through both
 * (debug.check_finite). */
void rm_device_watch_minibatch(struct rm_device_actor_critic *d, uint64_t update);

#endif
