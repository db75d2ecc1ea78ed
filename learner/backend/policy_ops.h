/* policy_ops: the operations of actor-critic algorithms, which every backend has
 * (learner/algo/learning.h): values and advantages of a rollout, its minibatches, their loss with
 * its gradient, and the end of learning from a rollout. The equations are in learner/backend/gae.h,
 * vtrace.h, policy_loss.h and learner/algo/value_head.h.
 *
 * Pointers are to the backend's memory, except where a comment names another. An update reads its
 * input from there when it runs, so that one captured update serves all minibatches of all
 * rollouts. On a device the buffers have the size of the largest minibatch; rows beyond the last
 * row of a smaller one repeat that row with weight 0, which changes nothing. The CPU's batch has
 * the minibatch's own rows.
 *
 * Structs that are passed to kernels by value have no padding, because checkers would read it.
 *
 * Sums have one order that depends on shapes alone. Scans give the same bits on both backends. */
#ifndef RM_LEARNER_BACKEND_POLICY_OPS_H
#define RM_LEARNER_BACKEND_POLICY_OPS_H

#include "learner/backend/policy_loss.h"
#include "learner/backend/vtrace.h"
#include "learner/backend/device.h"
#include "shm/base/both.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The progress of learning from a rollout. `samples` to `parts`, and `epochs`, are set with the
 * rollout; the other members are then 0. */
struct rm_rollout_passes {
    uint32_t samples; /* rows of the rollout that are samples */
    uint32_t entries; /* of a pass's order: samples, or lanes where networks are recurrent */
    uint32_t parts;   /* minibatches of a pass */
    uint32_t pass, part;
    uint32_t batch;                /* samples of the current minibatch */
    float mean, scale;             /* of its advantages: (A - mean) * scale */
    float whole_mean, whole_scale; /* of the rollout's */
    uint32_t epochs;               /* passes with an order; after the last, updates do nothing */
    uint32_t value_error;          /* of the current minibatch, with of_means */
    double seen;                   /* samples of all minibatches, including skipped ones */
    double pass_kl, pass_samples;
    double kl; /* of the last whole pass, a mean */
    double explained_variance;
};

/* The value is mean + deviation * output (value_head.h). A plain head follows nothing: mean 0 and
 * deviation 1, always. */
struct rm_value_head_state {
    double mean, deviation;
    double second;    /* nu */
    uint64_t updates; /* k - 1 of the next update */
};

enum rm_value_follow { RM_FOLLOW_NOTHING = 0, RM_FOLLOW_MOMENTS, RM_FOLLOW_AVERAGED };

/* How the head follows the returns of a rollout. */
struct rm_value_head_step {
    enum rm_value_follow follow;
    uint32_t weights; /* of the value's last product */
    double beta_least;
    float *weight, *bias; /* in the parameters */
    struct rm_value_head_state *state;
};

/* Numbers of devices that have rows of their own, to be added up among the devices
 * (device_collective.h): (count, RM_DEVICE_SLOT) doubles, of which a device fills its own line and
 * clears the others. `at` NULL: one device has all rows. */
#define RM_DEVICE_SLOT 8u
struct rm_device_slots {
    double *at;
    uint32_t own, count;
};

/* A pass over the rollout's rows: values and ln pi(a) from the network's output. */
struct rm_policy_values {
    const float *out; /* (rows, outputs) */
    uint32_t rows, outputs;
    const struct rm_value_head_state *head;
    float *value; /* (rows) in the rewards' units */
    /* For the first `answered` rows, unless logp is NULL: */
    uint32_t answered, unused;
    struct rm_categorical distribution;
    struct rm_gaussian gaussian;
    const uint8_t *mask;   /* (answered, actions) or NULL */
    const int32_t *action; /* (answered, words) */
    float *logp;           /* (answered) */
};

/* After the scan: statistics of returns, PopArt's step, then conversion of values and returns to
 * the network's units, and the normalisation of advantages over the rollout. With slots, lowers
 * passes->parts until each device has a sample for each minibatch. */
struct rm_policy_returns {
    uint32_t rows;          /* steps * lanes */
    uint32_t normalise;     /* over the rollout; else whole_scale is 1 / deviation */
    const uint32_t *sample; /* (rows) the first passes->samples entries are the samples' rows */
    const float *valid;     /* (rows) */
    const float *advantage; /* (rows) */
    float *value, *target;  /* (rows) */
    float *room;            /* (rows) scratch of the CPU */
    struct rm_value_head_step head;
    struct rm_rollout_passes *passes;
    struct rm_update_figures *figures; /* the report's sums are cleared; `stop` is set if there is
                                          no sample, else cleared */
    struct rm_device_slots slots;
};

/* The next minibatch: rows [n part / parts, n (part + 1) / parts) of the pass's order. If devices
 * share it, each takes entries [n share / shares, n (share + 1) / shares) of its n entries; the
 * number of samples and their moments are those of the whole minibatch. */
struct rm_minibatch_take {
    const uint32_t *order; /* (epochs, stride) */
    uint32_t stride;
    uint32_t share, shares; /* shares 0 or 1: not shared */
    uint32_t most;          /* entries of the largest share of one */
    uint32_t whole;         /* entries of the largest minibatch */
    uint32_t steps, lanes; /* recurrent: entries are lanes, each with all its steps; else 1 and 1 */
    uint32_t first_flag;   /* the flag that begins an episode */
    uint32_t normalise;    /* advantages over the minibatch; else passes->whole_* */
    uint32_t knobs_stride;
    const float *valid;   /* of the rollout's rows */
    const uint8_t *flags; /* recurrent: of the rollout's rows, RM_FLAG_*; else NULL */
    const float *advantage;
    const struct rm_update_knobs *knobs_of; /* (epochs, knobs_stride) of each update */
    /* Results: */
    uint32_t *index;  /* (steps, most) rows of the rollout */
    float *weight;    /* (steps, most) 1: a sample; 0: none. A device's */
    uint32_t *entry;  /* (most) recurrent: lanes; else NULL */
    uint8_t *restart; /* (steps, most) recurrent; else NULL */
    struct rm_update_knobs *knobs;
    struct rm_rollout_passes *passes;
    struct rm_device_slots slots;
};

/* Loss and gradient of the current minibatch, or of some of its rows. In `loss`, index is take's;
 * advantage_mean, advantage_scale, scale and entropy_coefficient are ignored, because passes and
 * knobs have them. */
struct rm_minibatch_loss {
    struct rm_policy_loss loss;
    uint32_t first, rows; /* of the batch; a device is given all */
    uint32_t of_means;    /* the error that counts is passes->value_error, which on the CPU is
                             set before, and which a device finds itself */
    uint32_t unused;
    double value_coefficient; /* loss.value_coefficient before it was rounded */
    const float *out;         /* (rows, outputs) */
    float *d_out;             /* (rows, outputs) */
    /* A device's: */
    const float *weight; /* take's */
    float *part;         /* (RM_SUM_COUNT, rows) room */
    double *own;         /* (RM_SUM_COUNT) sums over this device's rows, to be added up among the
                            devices; NULL: one device has all rows */
    const struct rm_update_knobs *knobs;
    struct rm_rollout_passes *passes;
    struct rm_update_figures *figures; /* last_loss, now_sums (enum rm_policy_sum), now_samples */
};

struct rm_policy_ops {
    void (*values)(struct rm_backend *b, const struct rm_policy_values *values);
    /* gae.h; vtrace.h with ratio = exp(logp_now - logp_then) in place of vtrace->ratio. */
    void (*gae)(struct rm_backend *b, const struct rm_rollout_rows *rows, float lambda,
                float *advantage, float *target);
    void (*vtrace)(struct rm_backend *b, const struct rm_rollout_rows *rows,
                   const struct rm_vtrace *vtrace, const float *logp_now, const float *logp_then,
                   float *advantage, float *target);
    /* out[i] = flags[i] & first_flag */
    void (*restarts)(struct rm_backend *b, const uint8_t *flags, uint32_t first_flag, size_t n,
                     uint8_t *out);
    void (*returns)(struct rm_backend *b, const struct rm_policy_returns *returns);
    /* Returns the number of rows of the batch; on a device, of the largest batch. */
    uint32_t (*take)(struct rm_backend *b, const struct rm_minibatch_take *take);
    /* For rm_net_learn(): the CPU adds the numbers of now_sums to sums[], from [1] on; a device
     * sets now_sums. */
    void (*loss)(struct rm_backend *b, const struct rm_minibatch_loss *loss, double *sums);
    /* The numbers of all rows: last_loss and now_samples. */
    void (*lost)(struct rm_backend *b, const struct rm_minibatch_loss *loss);
    /* A device's: the second halves of returns() and take(), after the slots were added up. */
    void (*returned)(struct rm_backend *b, const struct rm_policy_returns *returns);
    void (*taken)(struct rm_backend *b, const struct rm_minibatch_take *take);
    /* After the optimizer's step: rm_passes_book(). */
    void (*passed)(struct rm_backend *b, double target_kl, struct rm_rollout_passes *passes,
                   struct rm_update_figures *figures);
};

/* --- of both sides --------------------------------------------------------------------------- */

/* The value v of the network's output z, and back. */
RM_BOTH float rm_value_of(const struct rm_value_head_state *state, float z)
{
    return (float)(state->mean + state->deviation * (double)z);
}

RM_BOTH float rm_value_target(const struct rm_value_head_state *state, float v)
{
    return (float)(((double)v - state->mean) / state->deviation);
}

#define RM_DEVIATION_LEAST 1e-4
#define RM_DEVIATION_MOST  1e6

RM_BOTH double rm_deviation_within_bounds(double x)
{
    return x < RM_DEVIATION_LEAST  ? RM_DEVIATION_LEAST
           : x > RM_DEVIATION_MOST ? RM_DEVIATION_MOST
                                   : x;
}

/* The head's state after returns with this mean, sum of squared deviations and count (value_head.h,
 * eq. 5 and 6); count is at least 1. */
RM_BOTH struct rm_value_head_state rm_value_head_next(const struct rm_value_head_step *step,
                                                      struct rm_value_head_state now, double mean,
                                                      double m2, double count)
{
    struct rm_value_head_state next = now;
    const double k = (double)now.updates + 1.0;
    const double beta = 1.0 / k > step->beta_least ? 1.0 / k : step->beta_least;
    next.mean += beta * (mean - next.mean);
    if (step->follow == RM_FOLLOW_MOMENTS) {
        next.second += beta * (m2 / count + mean * mean - next.second);
        const double variance = next.second - next.mean * next.mean;
        next.deviation =
            variance > 0 ? rm_deviation_within_bounds(sqrt(variance)) : RM_DEVIATION_LEAST;
    } else {
        const double s = rm_deviation_within_bounds(sqrt(count > 1 ? m2 / (count - 1) : 0.0));
        next.deviation = sqrt((1.0 - beta) * now.deviation * now.deviation + beta * s * s);
        next.second = next.deviation * next.deviation + next.mean * next.mean;
    }
    next.updates++;
    return next;
}

/* A range of a pass's order. */
struct rm_pass_part {
    uint32_t from, entries;
};

/* Minibatches after the last are empty, so the caller need not know their number. */
RM_BOTH bool rm_passes_over(const struct rm_rollout_passes *p)
{
    return p->pass >= p->epochs;
}

RM_BOTH struct rm_pass_part rm_passes_part(const struct rm_rollout_passes *p)
{
    const uint64_t n = rm_passes_over(p) ? 0 : p->entries, parts = p->parts ? p->parts : 1;
    const uint64_t part = p->part < parts ? p->part : parts;
    const uint64_t next = part < parts ? part + 1 : parts;
    const struct rm_pass_part at = {(uint32_t)(n * part / parts),
                                    (uint32_t)(n * next / parts - n * part / parts)};
    return at;
}

/* Books the minibatch unless it was skipped, and advances to the next one. Sets figures->stop after
 * a pass whose KL is above target_kl (0: no bound), or after the last pass. */
RM_BOTH void rm_passes_book(double target_kl, struct rm_rollout_passes *p,
                            struct rm_update_figures *figures)
{
    if (figures->stop)
        return;
    p->seen += p->batch;
    if (!figures->skip) {
        p->pass_kl += figures->now_sums[RM_SUM_KL];
        p->pass_samples += p->batch;
    }
    if (++p->part < p->parts)
        return;
    p->kl = p->pass_samples > 0 ? p->pass_kl / p->pass_samples : 0;
    p->pass_kl = p->pass_samples = 0;
    p->part = 0;
    p->pass++;
    if (rm_passes_over(p) || (target_kl > 0 && p->kl > target_kl))
        figures->stop = 1;
}

#endif
