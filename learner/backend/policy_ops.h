/* policy_ops: the operations of actor-critic algorithms, which every backend has
 * (learner/algo/learning.h): values and advantages of a rollout, its minibatches, their loss with
 * its gradient, and the end of learning from a rollout. The equations are in learner/backend/gae.h,
 * vtrace.h, policy_loss.h and learner/algo/value_head.h.
 *
 * Pointers are to the backend's memory, except where a comment names another. An update reads its
 * input from that memory when it runs, so one captured update serves all minibatches of all
 * rollouts. On a device the buffers have the size of the largest minibatch. A smaller minibatch is
 * filled up with copies of its last row, whose weight is 0, so that they change nothing. On the CPU
 * a batch has exactly the minibatch's rows.
 *
 * Structs that are passed to kernels by value have no padding, because memory checkers would report
 * it as uninitialised.
 *
 * The order of each sum depends on shapes alone. Scans give the same bits on both backends. */
#ifndef RM_LEARNER_BACKEND_POLICY_OPS_H
#define RM_LEARNER_BACKEND_POLICY_OPS_H

#include "learner/backend/policy_loss.h"
#include "learner/backend/vtrace.h"
#include "learner/backend/device.h"
#include "shm/base/both.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The progress of learning from a rollout. A new rollout sets samples, entries, parts and epochs,
 * and sets all other members to 0. */
struct rm_rollout_passes {
    uint32_t samples;    /* rows of the rollout that are samples */
    uint32_t entries;    /* of one pass: samples, or lanes if the network is recurrent */
    uint32_t parts;      /* minibatches of a pass */
    uint32_t pass, part; /* numbers of the current pass and minibatch, from 0 */
    uint32_t batch;      /* samples of the current minibatch */
    float mean, scale;   /* the current minibatch uses the advantages (A - mean) * scale */
    float whole_mean, whole_scale; /* the same over the whole rollout */
    uint32_t epochs;               /* passes of a rollout; after the last, updates do nothing */
    uint32_t value_error;          /* enum rm_value_error of the current minibatch, if
                                      rm_minibatch_loss.of_means */
    double seen;                   /* samples of all minibatches, including skipped ones */
    double pass_kl, pass_samples;  /* sums over the current pass */
    double kl;                     /* mean over the last complete pass */
    double explained_variance;
};

/* The value is mean + deviation * output (value_head.h). A plain head always has mean 0 and
 * deviation 1. */
struct rm_value_head_state {
    double mean, deviation;
    double second;    /* mean of the squared returns: nu of value_head.h */
    uint64_t updates; /* made so far: k - 1 for the next one */
};

enum rm_value_follow { RM_FOLLOW_NOTHING = 0, RM_FOLLOW_MOMENTS, RM_FOLLOW_AVERAGED };

/* How the head's mean and deviation follow the returns of a rollout. */
struct rm_value_head_step {
    enum rm_value_follow follow;
    uint32_t weights;     /* number of weights of the value's last product */
    double beta_least;    /* least rate at which the statistics follow */
    float *weight, *bias; /* of that product, in the parameters */
    struct rm_value_head_state *state;
};

/* Numbers that several devices, each with its own rows, add up (device_collective.h): (count,
 * RM_DEVICE_SLOT) doubles. A device fills its own line and clears the others. `at` NULL: one device
 * has all rows. */
#define RM_DEVICE_SLOT 8u
struct rm_device_slots {
    double *at;
    uint32_t own, count; /* index of this device's line; number of devices */
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

/* Runs after the scan: computes statistics of returns, makes PopArt's step, converts values and
 * returns to the network's units, and computes how advantages are normalised over the rollout. With
 * slots, also lowers passes->parts until each device has a sample for each minibatch. */
struct rm_policy_returns {
    uint32_t rows;          /* steps * lanes */
    uint32_t normalise;     /* 1: advantages, over the rollout; 0: whole_scale is 1 / deviation */
    const uint32_t *sample; /* (rows) rows of the samples in the first passes->samples entries */
    const float *valid;     /* (rows) */
    const float *advantage; /* (rows) */
    float *value, *target;  /* (rows) */
    float *room;            /* (rows) scratch of the CPU */
    struct rm_value_head_step head;
    struct rm_rollout_passes *passes;
    struct rm_update_figures *figures; /* clears the report's sums; sets `stop` to 1 if the rollout
                                          has no sample, else to 0 */
    struct rm_device_slots slots;
};

/* The next minibatch has the entries [n part / parts, n (part + 1) / parts) of the pass's n. If
 * several devices share a minibatch of n entries, a device has its entries [n share / shares,
 * n (share + 1) / shares). The number of samples and the moments are always those of the whole
 * minibatch. */
struct rm_next_minibatch {
    const uint32_t *order; /* (epochs, stride): the entries of each pass, in order */
    uint32_t stride;
    uint32_t share, shares; /* this device's number and how many share; shares 0 or 1: not shared */
    uint32_t most;          /* entries of the largest share of a minibatch */
    uint32_t whole;         /* entries of the largest minibatch */
    uint32_t steps, lanes;  /* recurrent: an entry is a lane with all its steps; else 1 and 1 */
    uint32_t first_flag;    /* RM_FLAG_FIRST: the row begins an episode */
    uint32_t normalise;     /* 1: advantages, over the minibatch; 0: by passes->whole_* */
    uint32_t knobs_stride;
    const float *valid;     /* (rows of the rollout) 1: a sample; 0: none */
    const uint8_t *flags;   /* (rows of the rollout) RM_FLAG_*; NULL unless recurrent */
    const float *advantage; /* (rows of the rollout) */
    const struct rm_update_knobs *knobs_of; /* (epochs, knobs_stride), one for each update */
    /* Results: */
    uint32_t *index;               /* (steps, most) the rollout's rows that form the batch */
    float *weight;                 /* (steps, most) 1: a sample; 0: none; with fills_up */
    uint32_t *entry;               /* (most) the batch's lanes; NULL unless recurrent */
    uint8_t *restart;              /* (steps, most) 1: an episode begins; NULL unless recurrent */
    struct rm_update_knobs *knobs; /* of this update */
    struct rm_rollout_passes *passes; /* batch, mean and scale are set */
    struct rm_device_slots slots;
};

/* Loss and gradient of the current minibatch, or of some of its rows. loss.index is that of
 * rm_next_minibatch. The operation ignores loss.advantage_mean, advantage_scale, scale and
 * entropy_coefficient, and uses those of `passes` and `knobs`. */
struct rm_minibatch_loss {
    struct rm_policy_loss loss;
    uint32_t first, rows; /* rows of the batch to compute; on a device always all */
    uint32_t of_means;    /* 1: passes->value_error says which error of the value counts. The CPU's
                             caller has set it by errors(); a device computes it. */
    uint32_t unused;
    double value_coefficient; /* loss.value_coefficient before it was rounded */
    const float *out;         /* (rows, outputs) */
    float *d_out;             /* (rows, outputs) */
    /* Only on a device: */
    const float *weight; /* that of rm_next_minibatch */
    float *part;         /* (RM_SUM_COUNT, rows) scratch */
    double *own;         /* (RM_SUM_COUNT) sums over this device's rows, which the devices add up;
                            NULL: one device has all rows */
    const struct rm_update_knobs *knobs;
    struct rm_rollout_passes *passes;
    struct rm_update_figures *figures; /* last_loss, now_sums (enum rm_policy_sum), now_samples */
};

struct rm_policy_ops {
    /* Rows of one forward pass over a rollout: of independent rows, of sequences. */
    uint32_t forward_rows, sequence_rows;
    /* Whether minibatch() fills batches up, and so needs `weight`, and loss() needs `part`. */
    bool fills_up;
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
    /* Computes the next minibatch. Returns the number of rows of the batch; on a device, of the
     * largest batch. */
    uint32_t (*minibatch)(struct rm_backend *b, const struct rm_next_minibatch *next);
    /* For rm_net_learn(): the CPU adds the numbers of now_sums to sums[], from [1] on; a device
     * sets now_sums. */
    void (*loss)(struct rm_backend *b, const struct rm_minibatch_loss *loss, double *sums);
    /* For rm_net_learn(), with loss->of_means: adds both errors of values to sums[0] and sums[1],
     * and sets the gradient to zeros. NULL in backends whose loss() has the whole minibatch. */
    void (*errors)(struct rm_backend *b, const struct rm_minibatch_loss *loss, double *sums);
    /* After loss() of all rows: sets last_loss and now_samples. */
    void (*loss_end)(struct rm_backend *b, const struct rm_minibatch_loss *loss);
    /* The second halves of returns() and minibatch(), after several devices have added up the
     * slots. NULL on the CPU. */
    void (*returns_end)(struct rm_backend *b, const struct rm_policy_returns *returns);
    void (*minibatch_end)(struct rm_backend *b, const struct rm_next_minibatch *next);
    /* rm_passes_book(), after the optimizer's step. */
    void (*book)(struct rm_backend *b, double target_kl, struct rm_rollout_passes *passes,
                 struct rm_update_figures *figures);
};

/* --- of both sides --------------------------------------------------------------------------- */

/* The value v of the network's output z; rm_value_target() is the inverse. */
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

/* A range of a pass's entries. */
struct rm_pass_part {
    uint32_t from, entries;
};

/* Whether all passes are done. Later minibatches are empty, so the caller need not know when. */
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

/* Counts the minibatch, adds its KL unless its update was skipped, and advances to the next one.
 * Sets figures->stop after a pass whose KL is above target_kl (0: no bound), and after the last
 * pass. */
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
