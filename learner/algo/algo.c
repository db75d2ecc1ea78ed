#include "learner/algo/algo.h"

#include <assert.h>

/* DQN and QR-DQN: (batch, actions * quantiles). */
static struct rm_value_layout layout_actions(uint32_t actions, uint32_t quantiles)
{
    return (struct rm_value_layout){actions, quantiles, (size_t)actions * quantiles, quantiles, 1};
}

/* IQN: (batch, quantiles, actions). */
static struct rm_value_layout layout_quantiles(uint32_t actions, uint32_t quantiles)
{
    return (struct rm_value_layout){actions, quantiles, (size_t)actions * quantiles, 1, actions};
}

static const struct rm_algo algorithms[] = {
    [RM_ALGORITHM_DQN] = {"dqn", false, false, RM_LOSS_HUBER, layout_actions},
    [RM_ALGORITHM_QR_DQN] = {"qr-dqn", false, true, RM_LOSS_QUANTILE_HUBER, layout_actions},
    [RM_ALGORITHM_IQN] = {"iqn", true, false, RM_LOSS_QUANTILE_HUBER, layout_quantiles},
};
static_assert(sizeof algorithms / sizeof *algorithms == RM_ALGORITHM_IQN + 1,
              "a row for every algorithm");

const struct rm_algo *rm_algo_of(enum rm_algorithm name)
{
    return (size_t)name < sizeof algorithms / sizeof *algorithms ? &algorithms[name] : NULL;
}

void rm_algo_midpoints(uint32_t batch, uint32_t n, float *tau)
{
    for (uint32_t b = 0; b < batch; b++)
        for (uint32_t i = 0; i < n; i++)
            tau[(size_t)b * n + i] = (float)((2.0 * i + 1.0) / (2.0 * n));
}

void rm_algo_greedy(const float *q, const struct rm_value_layout *layout, uint32_t batch,
                    const uint8_t *mask, int32_t *action)
{
    for (uint32_t b = 0; b < batch; b++, q += layout->sample) {
        const uint8_t *legal = mask ? mask + (size_t)b * layout->actions : NULL;
        bool any = false;
        for (uint32_t a = 0; legal && a < layout->actions; a++)
            any |= legal[a] != 0;
        int32_t best = -1;
        double best_value = 0;
        for (uint32_t a = 0; a < layout->actions; a++) {
            if (any && !legal[a])
                continue;
            const double value = rm_value_mean(q, layout, a);
            if (best < 0 || value > best_value) {
                best = (int32_t)a;
                best_value = value;
            }
        }
        action[b] = best;
    }
}

void rm_algo_targets(const float *q, const struct rm_value_layout *layout, uint32_t batch,
                     const int32_t *action, const float *ret, const float *discount, float *y)
{
    for (uint32_t b = 0; b < batch; b++, y += layout->quantiles) {
        const float *row = q + b * layout->sample + (size_t)action[b] * layout->action;
        for (uint32_t j = 0; j < layout->quantiles; j++)
            y[j] = discount[b] == 0 ? ret[b] : ret[b] + discount[b] * row[j * layout->quantile];
    }
}

double rm_algo_mean_q(const float *q, const struct rm_value_layout *layout, uint32_t batch,
                      const int32_t *action)
{
    double sum = 0;
    for (uint32_t b = 0; b < batch; b++)
        sum += rm_value_mean(q + b * layout->sample, layout, (uint32_t)action[b]);
    return sum / batch;
}
