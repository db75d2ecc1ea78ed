/* gaussian: the distribution of real actions: independent normals, one for each number of an
 * action. For the policy every number has the bounds -1 and 1. Draws, rows and log-probabilities
 * have the normal's unbounded draw u. The bounded action is
 *
 *   clip   the nearest number of [-1, 1]; only the world sees it
 *   tanh   tanh(u): the density is that of tanh(u), ln N(u) - ln(1 - tanh(u)^2), where
 *          ln(1 - tanh(u)^2) = 2 (ln 2 - |u| - ln(1 + exp(-2 |u|)))
 *          (Haarnoja 2018, "Soft actor-critic algorithms and applications", appendix C)
 *
 * A network has `reals` means, then as many logarithms of deviations, which are clipped to -20 and
 * 2 and have no gradient beyond. Entropies are those of the normals, also with tanh, because the
 * entropy after tanh has no closed form.
 *
 * A row of an action has its choices first, then the reals, as floats in the bits of int32.
 * For host and device (shm/base/both.h). */
#ifndef RM_LEARNER_BACKEND_GAUSSIAN_H
#define RM_LEARNER_BACKEND_GAUSSIAN_H

#include "shm/base/both.h"
#include "shm/base/float_word.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct rm_gaussian {
    uint32_t reals; /* 0: there are none */
    uint32_t tanh;  /* 0: clip */
};

#define RM_LOG_DEVIATION_LEAST (-20.0f)
#define RM_LOG_DEVIATION_MOST  2.0f

RM_BOTH float rm_log_deviation(float out)
{
    const float above = out < RM_LOG_DEVIATION_LEAST ? RM_LOG_DEVIATION_LEAST : out;
    return above > RM_LOG_DEVIATION_MOST ? RM_LOG_DEVIATION_MOST : above;
}

/* The bounded action of a draw, in [-1, 1]. */
RM_BOTH float rm_gaussian_bounded(float drawn, uint32_t by_tanh)
{
    const float u = by_tanh ? tanhf(drawn) : drawn;
    const float above = u > -1.0f ? u : -1.0f; /* NaN becomes -1 */
    return above < 1.0f ? above : 1.0f;
}

/* ln(1 - tanh(u)^2) */
RM_BOTH float rm_log_squash(float u)
{
    const float size = fabsf(u);
    return 2.0f * (0.69314718f - size - log1pf(expf(-2.0f * size)));
}

/* ln of the density of one number. */
RM_BOTH float rm_gaussian_logp_one(float u, float mean, float log_deviation, uint32_t by_tanh)
{
    const float z = (u - mean) * expf(-log_deviation);
    const float logp = -0.5f * z * z - log_deviation - 0.91893853f;
    return by_tanh ? logp - rm_log_squash(u) : logp;
}

/* ln of the density of all numbers of an action. `out` begins at the means of the network's row,
 * `word` at the reals of the action's row. */
RM_BOTH float rm_gaussian_logp(const struct rm_gaussian *g, const float *out, const int32_t *word)
{
    float logp = 0.0f;
    for (uint32_t i = 0; i < g->reals; i++)
        logp += rm_gaussian_logp_one(rm_float_of_word(word[i]), out[i],
                                     rm_log_deviation(out[g->reals + i]), g->tanh);
    return logp;
}

RM_BOTH float rm_gaussian_entropy(const struct rm_gaussian *g, const float *out)
{
    float entropy = 0.0f;
    for (uint32_t i = 0; i < g->reals; i++)
        entropy += rm_log_deviation(out[g->reals + i]) + 1.4189385f;
    return entropy;
}

/* Writes the gradient of the (2 reals) outputs, given the gradients of ln pi(a) and of the
 * entropy. */
RM_BOTH void rm_gaussian_back(const struct rm_gaussian *g, const float *out, const int32_t *word,
                              float d_logp, float d_entropy, float *d_out)
{
    for (uint32_t i = 0; i < g->reals; i++) {
        const float given = out[g->reals + i], log_deviation = rm_log_deviation(given);
        const float inverse = expf(-log_deviation);
        const float z = (rm_float_of_word(word[i]) - out[i]) * inverse;
        d_out[i] = d_logp * z * inverse;
        d_out[g->reals + i] = given == log_deviation ? d_logp * (z * z - 1.0f) + d_entropy : 0.0f;
    }
}

#endif
