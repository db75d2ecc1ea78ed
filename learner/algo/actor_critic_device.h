/* actor_critic_device: the actor-critic learner whose network is on a device, or on several. Its
 * files: actor_critic_buffers.c is what one device has; actor_critic_recorded.c puts several
 * together and captures; actor_critic_graphs.c and actor_critic_minibatch.c are what is put on the
 * devices' streams, once, to be captured; actor_critic_device.c sends rollouts, launches, and asks
 * what came of them.
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
 * SEVERAL DEVICES (learner.devices) each have networks, optimizer and value head, which stay equal
 * to the bit. Every device has the whole rollout, its advantages and returns, and learns from its
 * share of each minibatch (rm_device_take); a minibatch's moments are made of all of it everywhere,
 * and gradients and sums of the loss are added up among the devices before the norm is taken. So an
 * update is that of one device, but for the rounding of sums. Where values are made by a forward
 * pass over rows that do not depend on each other, each device makes its share of those too.
 * Rollouts that are made on the devices stay there: each device learns from its own worlds' rows, a
 * minibatch is its part of each, and what is needed of all rows (how many, their moments) is added
 * up as well. What is told, saved and looked at is the first device's; what changes it from outside
 * changes the others after it.
 *
 * WARM-UP. Before they are captured all operations are made once, on a rollout without a sample:
 * then no update is made and no running mean is moved, so nothing needs to be put back but the
 * recurrent states of the value's own layers, which begin as zeros again. */
#ifndef RM_LEARNER_ALGO_ACTOR_CRITIC_DEVICE_H
#define RM_LEARNER_ALGO_ACTOR_CRITIC_DEVICE_H

#include "learner/algo/actor_critic_private.h"
#include "learner/backend/device_collective.h"
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

enum rm_device_recording {
    RM_DEVICE_VALUES = 0,
    RM_DEVICE_RETURNS,
    RM_DEVICE_MINIBATCH,
    RM_DEVICE_RECORDINGS
};

struct rm_device_actor_critic {
    struct rm_actor_critic ac; /* first */
    /* Which of how many devices it is. The first has the list, of itself and the others; the
     * others' lists are of themselves. */
    uint32_t number, of, count;
    struct rm_device_actor_critic *all[RM_DEVICE_MEMBERS];
    bool apart;             /* one of several, whose rollouts are its own worlds' */
    struct rm_rollout copy; /* of the first device's rollout as it lies here, where it is another */

    uint32_t whole;              /* entries of the largest minibatch */
    uint32_t most;               /* of the largest share of one */
    uint32_t batch;              /* rows of it: most, or steps * most of recurrent networks */
    uint32_t entries;            /* of a pass at most */
    uint32_t floats, own_floats; /* of a lane's recurrent state, and the value's own of these */

    struct rm_device_sent here, there; /* pinned, and on the device */
    struct rm_device_told *told;
    struct rm_device_mark *over, *passed[2];
    struct rm_device_graph *graphs[RM_DEVICE_RECORDINGS];

    /* The device's. Of the rollout: */
    float *value, *advantage, *target, *logp;
    struct rm_device_value_head *head;
    float *first;     /* (lanes, floats) states before the rollout, where the value has own ones */
    float *now;       /* (lanes, floats) after it */
    float *value_now; /* (lanes, own_floats) the same, for the next rollout */
    uint8_t *restart; /* (steps + 1, lanes) */
    /* Of a minibatch: */
    uint32_t *index, *entry;
    float *weight, *part, *d_out, *state;
    double *sums;      /* (RM_SUM_COUNT) of the loss, where devices are several */
    double *slots;     /* (of, RM_DEVICE_SLOT) where they are apart */
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

/* For tests: device `i`'s. */
struct rm_actor_critic *rm_device_actor_critic_replica(struct rm_actor_critic *ac, uint32_t i);

/* actor_critic_device.c. Members of struct rm_actor_critic_ops that look at one device. */
void rm_device_renewed(struct rm_actor_critic *ac);
void rm_device_value_state(struct rm_actor_critic *ac, struct rm_state *state);

/* actor_critic_buffers.c. What one device has; unmake() takes a part of it too. */
int rm_device_make_buffers(struct rm_device_actor_critic *d, struct rm_error *error);
void rm_device_unmake_buffers(struct rm_device_actor_critic *d);

/* actor_critic_recorded.c, for the first device. The others, with their buffers; and the graphs of
 * all. */
int rm_device_make_others(struct rm_device_actor_critic *d, struct rm_error *error);
int rm_device_record(struct rm_device_actor_critic *d, struct rm_error *error);
void rm_device_unmake_others(struct rm_device_actor_critic *d);
/* Makes the others equal to it, through the host: by what a checkpoint would have. */
void rm_device_make_equal(struct rm_device_actor_critic *d);

/* For the two that put: the table, where something of the rollout lies on this device, and where it
 * lays what it knows of rows of its own. */
static inline const struct rm_device_policy_ops *
rm_device_policies(const struct rm_device_actor_critic *d)
{
    return d->ac.backend->device->policies;
}
#define RM_ROLLOUT_THERE(member) rm_rollout_there(r, r->member)
static inline struct rm_device_slots rm_device_slots_of(const struct rm_device_actor_critic *d)
{
    return (struct rm_device_slots){d->slots, d->number, d->of};
}

/* actor_critic_minibatch.c. A minibatch on one device, in pieces: which rows it has; up to the
 * gradient, which is added up; and from its norm on. */
void rm_device_put_take(struct rm_device_actor_critic *d);
void rm_device_put_gradient(struct rm_device_actor_critic *d);
void rm_device_sum_gradient(struct rm_device_actor_critic *d);
void rm_device_put_move(struct rm_device_actor_critic *d);

/* actor_critic_graphs.c. Puts one of them on the streams of all devices. */
void rm_device_put(struct rm_device_actor_critic *d, enum rm_device_recording which);

/* A minibatch outside of its graph, waiting between gradient and step to look through both
 * (debug.check_finite). */
void rm_device_watch_minibatch(struct rm_device_actor_critic *d, uint64_t update);

#endif
