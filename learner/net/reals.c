#include "learner/net/reals.h"

#include "learner/net/init_kernels.h"
#include "shm/base/rng.h"

#define AT_A_TIME 64u

bool rm_deviation_of_state(const struct rm_experiment *experiment)
{
    return experiment->network.deviation == RM_DEVIATION_AUTO
               ? experiment->algorithm.name == RM_ALGORITHM_SAC
               : experiment->network.deviation == RM_DEVIATION_STATE;
}

bool rm_bounds_by_tanh(const struct rm_experiment *experiment)
{
    return experiment->algorithm.bound == RM_BOUND_AUTO
               ? experiment->algorithm.name == RM_ALGORITHM_SAC
               : experiment->algorithm.bound == RM_BOUND_TANH;
}

static const float *means_of(const struct rm_reals_rows *r, uint32_t i)
{
    return r->out + i * r->stride + r->choices->actions;
}

static int32_t *words_of(const struct rm_reals_rows *r, uint32_t i)
{
    return r->action + (size_t)i * r->choices->words + r->choices->choices;
}

static void draw_row(const struct rm_gaussian *g, const float *means, struct rm_rng *rng,
                     int32_t *word)
{
    uint32_t random[4 * AT_A_TIME];
    double normal[AT_A_TIME];
    for (uint32_t from = 0, n; from < g->reals; from += n) {
        n = g->reals - from < AT_A_TIME ? g->reals - from : AT_A_TIME;
        rm_rng_fill_u32(rng, random, 4 * n);
        rm_init_kernels()->normals(random, n, normal);
        for (uint32_t k = 0; k < n; k++) {
            const float deviation = expf(rm_log_deviation(means[g->reals + from + k]));
            word[from + k] = rm_word_of_float(means[from + k] + deviation * (float)normal[k]);
        }
    }
}

void rm_reals_draw(const struct rm_reals_rows *r, uint64_t seed, uint64_t step,
                   const uint32_t *lane, float *logp)
{
    for (uint32_t i = 0; r->gaussian->reals && i < r->n; i++) {
        struct rm_rng rng = rm_rng_at(seed, RM_STREAM_ACT_REAL, lane[i], step);
        draw_row(r->gaussian, means_of(r, i), &rng, words_of(r, i));
        if (logp)
            logp[i] += rm_gaussian_logp(r->gaussian, means_of(r, i), words_of(r, i));
    }
}

void rm_reals_greedy(const struct rm_reals_rows *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->gaussian->reals; k++)
            words_of(r, i)[k] = rm_word_of_float(means_of(r, i)[k]);
}

void rm_reals_explore(const struct rm_gaussian *g, uint64_t seed, uint64_t step, uint32_t lane,
                      int32_t *word)
{
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_EXPLORE, lane, step);
    for (uint32_t k = 0; k < g->reals; k++) {
        const float uniform = 2 * rm_rng_float(&rng) - 1;
        /* tanh of it is to be uniform: from -1 on there is none. */
        word[k] = rm_word_of_float(g->tanh ? atanhf(0.999999f * uniform) : uniform);
    }
}
