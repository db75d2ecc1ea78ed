/* device_policy: what an actor-critic learner does on a device beside the network: values and
 * advantages of a rollout, its minibatches, their loss with its gradient, and when to stop. The
 * CPU's gae.h, vtrace.h, value_head.h, policy_loss.h and minibatch.h, whose equations these are,
 * with the numbers of one rollout in device memory from its beginning to its end.
 *
 * All pointers are device memory but where said. What an update needs is read from device memory,
 * so that one captured update serves all minibatches of all rollouts: buffers are those of the
 * largest, and rows beyond the last of a smaller one repeat it with weight 0, which changes
 * nothing.
 *
 * What kernels are given by value has no holes: they look like numbers.
 *
 * Sums have one order that depends on shapes alone. A rollout's scans are bit for bit the CPU's. */
#ifndef RM_LEARNER_BACKEND_DEVICE_POLICY_H
#define RM_LEARNER_BACKEND_DEVICE_POLICY_H

#include "learner/backend/policy_loss.h"
#include "learner/backend/vtrace.h"
#include "learner/backend/device.h"

#include <stdbool.h>
#include <stdint.h>

/* How far learning from a rollout is. `samples` to `parts`, and `epochs`, come with the rollout,
 * the rest is cleared with it. */
struct rm_device_passes {
    uint32_t samples; /* rows of the rollout that are samples */
    uint32_t entries; /* of a pass's order: samples, or lanes where networks are recurrent */
    uint32_t parts;   /* minibatches of a pass */
    uint32_t pass, part;
    uint32_t batch;                /* samples of the minibatch in hand */
    float mean, scale;             /* of its advantages: (A - mean) * scale */
    float whole_mean, whole_scale; /* of the rollout's */
    uint32_t epochs; /* passes that there are orders for; after the last, updates do nothing */
    uint32_t unused;
    double seen; /* samples of all minibatches, of skipped ones too */
    double pass_kl, pass_samples;
    double kl; /* of the last whole pass, a mean */
    double explained_variance;
};

/* value_head.h's state. Plain: mean 0, deviation 1, and `follow` of rm_device_returns is 0. */
struct rm_device_value_head {
    double mean, deviation, second;
    uint64_t updates;
};

enum rm_device_follow { RM_FOLLOW_NOTHING = 0, RM_FOLLOW_MOMENTS, RM_FOLLOW_AVERAGED };

/* What devices that have rows of their own know of them, to be added up among all of them
 * (device_collective.h): (count, RM_DEVICE_SLOT) doubles, of which a device fills its own line and
 * clears the others. Where `at` is NULL one device has all rows. */
#define RM_DEVICE_SLOT 8u
struct rm_device_slots {
    double *at;
    uint32_t own, count;
};

/* A pass over the rollout's rows: what came out of the network becomes values and ln pi(a). */
struct rm_device_values {
    const float *out; /* (rows, outputs) */
    uint32_t rows, outputs;
    const struct rm_device_value_head *head;
    float *value; /* (rows) in the rewards' units */
    /* And of the first `answered` rows, where logp is not NULL: */
    uint32_t answered, unused;
    struct rm_categorical distribution;
    const uint8_t *mask;   /* (answered, actions) or NULL */
    const int32_t *action; /* (answered, choices) */
    float *logp;           /* (answered) */
};

/* After the scan: statistics of returns, PopArt's step, then values and returns in the network's
 * units, and how advantages are normalised over the rollout. With slots, passes->parts becomes so
 * few that each device has a sample for each minibatch. */
struct rm_device_returns {
    uint32_t rows;      /* steps * lanes */
    uint32_t normalise; /* over the rollout; else whole_scale is 1 / deviation */
    enum rm_device_follow follow;
    uint32_t weights;       /* of the value's last product */
    const uint32_t *sample; /* (rows) the first passes->samples are rows that are samples */
    const float *advantage; /* (rows) */
    float *value, *target;  /* (rows) */
    double beta_least;
    float *weight, *bias; /* in the parameters */
    struct rm_device_value_head *head;
    struct rm_device_passes *passes;
    struct rm_device_figures *figures; /* the report's sums are cleared; `stop` is set where there
                                          is no sample, else cleared too */
    struct rm_device_slots slots;
};

/* The next minibatch: rows [n part / parts, n (part + 1) / parts) of the pass's order. Where
 * devices share it, each takes entries [n share / shares, n (share + 1) / shares) of its n; how
 * many samples it has, and their moments, are those of all of it. */
struct rm_device_take {
    const uint32_t *order; /* (epochs, stride) */
    uint32_t stride;
    uint32_t share, shares; /* shares: 0 and 1 are one */
    uint32_t most;          /* entries of the largest share of one */
    uint32_t whole;         /* entries of the largest minibatch */
    uint32_t steps, lanes; /* recurrent: entries are lanes, each with all its steps; else 1 and 1 */
    uint32_t first_flag;   /* the flag that begins an episode */
    uint32_t normalise;    /* advantages over the minibatch; else passes->whole_* */
    uint32_t knobs_stride;
    const float *valid;   /* of the rollout's rows */
    const uint8_t *flags; /* recurrent: of the rollout's rows, RM_FLAG_*; else NULL */
    const float *advantage;
    const struct rm_device_knobs *knobs_of; /* (epochs, knobs_stride) of each update */
    /* Made: */
    uint32_t *index;  /* (steps, most) rows of the rollout */
    float *weight;    /* (steps, most) 1: a sample; 0: none */
    uint32_t *entry;  /* (most) recurrent: lanes; else NULL */
    uint8_t *restart; /* (steps, most) recurrent; else NULL */
    struct rm_device_knobs *knobs;
    struct rm_device_passes *passes;
    struct rm_device_slots slots;
};

/* Loss and gradient of the minibatch in hand. Of `loss`: index is take's, and advantage_mean,
 * advantage_scale, scale and entropy_coefficient are passed over: they are on the device. */
struct rm_device_policy_loss {
    struct rm_policy_loss loss;
    uint32_t rows, unused; /* rows: of the batch */
    const float *weight;   /* take's */
    const float *out;      /* (rows, outputs) */
    float *d_out;          /* (rows, outputs) */
    float *part;           /* (RM_SUM_COUNT, rows) room */
    double *own;           /* (RM_SUM_COUNT) NULL: one device has all rows; else sums over this
                              one's, to be added up among all */
    const struct rm_device_knobs *knobs;
    struct rm_device_passes *passes;
    struct rm_device_figures *figures; /* last_loss, now_sums (enum rm_policy_sum), now_samples */
};

struct rm_device_policy_ops {
    void (*values)(struct rm_backend *b, const struct rm_device_values *values);
    /* gae.h; vtrace.h with ratio = exp(logp_now - logp_then), `vtrace->ratio` passed over. */
    void (*gae)(struct rm_backend *b, const struct rm_rollout_rows *rows, float lambda,
                float *advantage, float *target);
    void (*vtrace)(struct rm_backend *b, const struct rm_rollout_rows *rows,
                   const struct rm_vtrace *vtrace, const float *logp_now, const float *logp_then,
                   float *advantage, float *target);
    /* out[i] = flags[i] & first_flag */
    void (*restarts)(struct rm_backend *b, const uint8_t *flags, uint32_t first_flag, size_t n,
                     uint8_t *out);
    void (*returns)(struct rm_backend *b, const struct rm_device_returns *returns);
    void (*take)(struct rm_backend *b, const struct rm_device_take *take);
    void (*loss)(struct rm_backend *b, const struct rm_device_policy_loss *loss);
    /* The rest of these three, where slots, or sums, were added up in between: what of it is of all
     * devices' rows. The gradient is there before. */
    void (*returned)(struct rm_backend *b, const struct rm_device_returns *returns);
    void (*taken)(struct rm_backend *b, const struct rm_device_take *take);
    void (*lost)(struct rm_backend *b, const struct rm_device_policy_loss *loss);
    /* After the optimizer's step: books the minibatch unless it was skipped, goes to the next one,
     * and sets figures->stop after a pass whose KL is above target_kl (0: none), or after the last.
     */
    void (*passed)(struct rm_backend *b, double target_kl, struct rm_device_passes *passes,
                   struct rm_device_figures *figures);
};

#endif
