/* Targets and loss of R2D2 over sequences (Kapturowski 2019, "Recurrent experience replay in
 * distributed reinforcement learning", 2.3 and appendix) on the CPU, as the CPU's
 * rm_sequence_ops. */
#include "learner/algo/learning.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* y = h(R + g h^-1(q_target(row t + m, a*))), where a* is the best legal action of `choose`. If no
 * transition starts at a place, y = 0. */
static void targets(struct rm_backend *backend, const struct rm_sequence_targets *in)
{
    const struct rm_batch *b = &in->batch;
    float *y = in->y;
    const size_t actions = b->actions;
    (void)backend;
    for (uint32_t t = 0; t < b->trace; t++)
        for (uint32_t i = 0; i < b->size; i++) {
            const size_t at = (size_t)t * b->size + i;
            const size_t row = (size_t)(t + b->ahead[at]) * b->size + i;
            const uint8_t *mask =
                b->mask ? b->mask + (row + (size_t)b->burn_in * b->size) * actions : NULL;
            double value = (double)b->ret[at];
            y[at] = 0;
            if (!b->valid[at])
                continue;
            if (b->discount[at] != 0) {
                const uint32_t best = rm_best_action(in->choose + row * actions, mask, b->actions);
                const double next = (double)in->value[row * actions + best];
                value += (double)b->discount[at] * (in->rescale ? rm_value_unscale(next) : next);
            }
            y[at] = (float)(in->rescale ? rm_value_rescale(value) : value);
        }
}

static uint64_t count(const struct rm_batch *b)
{
    uint64_t valid = 0;
    for (size_t i = 0; i < (size_t)b->trace * b->size; i++)
        valid += b->valid[i] != 0;
    return valid;
}

/* Huber loss of y - q(action), weighted by sequence, mean over valid transitions. */
static void loss(struct rm_backend *backend, const struct rm_sequence_loss *in)
{
    const struct rm_batch *b = &in->batch;
    const double scale = 1.0 / (double)count(b), kappa = (double)in->kappa;
    double loss = 0, q_mean = 0;
    (void)backend;
    memset(in->d_q, 0, (size_t)(b->trace + b->tail) * b->size * b->actions * sizeof *in->d_q);
    for (uint32_t i = 0; i < b->size; i++) {
        const double weight = b->weight ? (double)b->weight[i] : 1;
        double largest = 0, total = 0;
        uint32_t valid = 0;
        for (uint32_t t = 0; t < b->trace; t++) {
            const size_t at = (size_t)t * b->size + i;
            if (!b->valid[at])
                continue;
            const size_t taken = at * b->actions + (uint32_t)b->action[at];
            const double off = (double)in->y[at] - (double)in->q[taken];
            const double c = off < -kappa ? -kappa : off > kappa ? kappa : off;
            loss += weight * c * (off - 0.5 * c) * scale;
            q_mean += (double)in->q[taken] * scale;
            in->d_q[taken] = (float)(-weight * c * scale);
            largest = fabs(off) > largest ? fabs(off) : largest;
            total += fabs(off);
            valid++;
        }
        if (b->error)
            b->error[i] = (float)(in->max_share * largest +
                                  (1 - in->max_share) * (valid ? total / valid : 0));
    }
    rm_figures_begin(in->figures, loss, 1.0);
    in->figures->now_sums[RM_SUM_OF_Q] = in->rescale ? rm_value_unscale(q_mean) : q_mean;
}

static const struct rm_sequence_ops cpu_sequences = {.targets = targets, .loss = loss};

const struct rm_sequence_ops *rm_sequence_ops_of(const struct rm_backend *b)
{
    return b->device ? b->device->sequences : &cpu_sequences;
}
