#include "actor/acting.h"

#include "actor/worlds/plan.h"
#include "config/traits.h"
#include "learner/net/history.h"
#include "learner/net/reals.h"
#include "shm/base/rng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one forward pass: enough to fill the matrix kernels, few enough that a layer's
 * activations stay in the second-level cache. With quantiles every row stands for that many. */
#define CHUNK_ROWS          256u
#define CHUNK_STATE_ROWS    64u /* with a recurrent state, which has gates many times as wide */
#define CHUNK_QUANTILE_ROWS 512u
#define CHUNK_HISTORY_ROWS  32u /* of histories, each of which has many rows */

int rm_acting_create(struct rm_acting *acting, const struct rm_experiment *experiment,
                     const struct rm_policy_plan *policy, struct rm_backend *backend,
                     uint32_t quantiles, uint64_t seed, struct rm_error *error)
{
    *acting = (struct rm_acting){.backend = backend, .seed = seed};
    struct rm_net_shape shape = policy->shape;
    acting->types = shape.history.types;
    if (shape.history.queries)
        shape = rm_history_alone(shape);
    acting->inputs = shape.history.queries ? shape.inputs : policy->inputs;
    acting->actions = policy->actions;
    acting->outputs_per_action = rm_plan_outputs_per_action(experiment);
    int rc = rm_net_compile(&acting->net, &experiment->network, &shape, error);
    if (rc < 0)
        return rc;
    acting->quantiles = rm_net_uses_quantiles(acting->net) ? quantiles : 0;
    acting->draws = rm_algorithm_traits(experiment->algorithm.name)->policy;
    acting->distribution = rm_categorical_of(&policy->shape);
    acting->gaussian = (struct rm_gaussian){policy->reals, rm_bounds_by_tanh(experiment)};
    acting->state_floats = policy->state_floats;
    acting->chunk = acting->state_floats    ? CHUNK_STATE_ROWS
                    : shape.history.queries ? CHUNK_HISTORY_ROWS
                                            : CHUNK_ROWS;
    if (acting->quantiles) {
        acting->chunk = CHUNK_QUANTILE_ROWS / acting->quantiles;
        if (!acting->chunk)
            acting->chunk = 1;
    }
    rc = rm_net_workspace_create(&acting->workspace, acting->net, backend, acting->chunk,
                                 acting->quantiles, policy->values ? RM_NET_INFER : RM_NET_ACT,
                                 error);
    if (rc < 0) {
        rm_acting_destroy(acting);
        return rc;
    }
    acting->outputs = rm_net_workspace_outputs(acting->workspace);
    size_t draws = (size_t)acting->chunk * acting->quantiles;
    acting->params = backend->ops->alloc(backend, rm_plan_act_count(experiment, acting->net));
    acting->tau = draws ? backend->ops->alloc(backend, draws) : NULL;
    acting->value = calloc(acting->actions + 1, sizeof *acting->value);
    if (acting->draws)
        acting->word =
            calloc((size_t)acting->chunk * acting->distribution.words, sizeof *acting->word);
    if (!acting->params || (draws && !acting->tau) || !acting->value ||
        (acting->draws && !acting->word)) {
        rm_acting_destroy(acting);
        return rm_fail(error, -ENOMEM, "policy %s: no memory for %zu acting parameters",
                       policy->name, (size_t)policy->act_count);
    }
    return 0;
}

void rm_acting_destroy(struct rm_acting *acting)
{
    if (acting->params)
        acting->backend->ops->release(acting->backend, acting->params);
    if (acting->tau)
        acting->backend->ops->release(acting->backend, acting->tau);
    if (acting->noise)
        acting->backend->ops->release(acting->backend, acting->noise);
    free(acting->value);
    free(acting->word);
    if (acting->workspace)
        rm_net_workspace_destroy(acting->workspace);
    if (acting->net)
        rm_net_destroy(acting->net);
    *acting = (struct rm_acting){0};
}

int rm_acting_make_noisy(struct rm_acting *acting, uint32_t policy, struct rm_error *error)
{
    const size_t floats = rm_net_noise_count(acting->net);
    if (!floats)
        return 0;
    acting->noise = acting->backend->ops->alloc(acting->backend, floats);
    if (!acting->noise)
        return rm_fail(error, -ENOMEM, "no memory for %zu floats of noise", floats);
    acting->noise_policy = policy;
    return 0;
}

void rm_acting_draw_noise(struct rm_acting *acting, uint64_t step)
{
    struct rm_backend *b = acting->backend;
    if (acting->noise)
        b->ops->normals(b, acting->seed, RM_STREAM_ACT_NOISE, acting->noise_policy, step,
                        rm_net_noise_count(acting->net), acting->noise);
}

void rm_acting_prepare(struct rm_acting *acting)
{
    rm_net_prepare(acting->workspace, acting->params);
}

/* First maximum among the legal actions. With none legal, 0: the error about the mask was reported
 * before. */
static int32_t first_maximum(const float *value, uint32_t actions, const uint8_t *mask)
{
    int32_t best = -1;
    for (uint32_t a = 0; a < actions; a++)
        if ((!mask || mask[a]) && (best < 0 || value[a] > value[best]))
            best = (int32_t)a;
    return best < 0 ? 0 : best;
}

static void pick_plain(const struct rm_acting *acting, const float *out, uint32_t n,
                       const uint8_t *mask, int32_t *action)
{
    uint32_t actions = acting->actions;
    if (!mask && actions == 2) {
        for (uint32_t i = 0; i < n; i++)
            action[i] = out[2 * i + 1] > out[2 * i];
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        action[i] = first_maximum(out + (size_t)i * actions, actions,
                                  mask ? mask + (size_t)i * actions : NULL);
}

/* out (n, actions, k): the value of an action is the mean of its k quantiles; the sum orders alike
 */
static void pick_quantile_heads(const struct rm_acting *acting, const float *out, uint32_t n,
                                const uint8_t *mask, int32_t *action)
{
    uint32_t actions = acting->actions, k = acting->outputs_per_action;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t a = 0; a < actions; a++) {
            const float *quantile = out + ((size_t)i * actions + a) * k;
            float sum = 0;
            for (uint32_t j = 0; j < k; j++)
                sum += quantile[j];
            acting->value[a] = sum;
        }
        action[i] = first_maximum(acting->value, actions, mask ? mask + (size_t)i * actions : NULL);
    }
}

/* out (n, quantiles, actions) */
static void pick_quantile_draws(const struct rm_acting *acting, const float *out, uint32_t n,
                                const uint8_t *mask, int32_t *action)
{
    uint32_t actions = acting->actions, q = acting->quantiles;
    for (uint32_t i = 0; i < n; i++) {
        const float *draw = out + (size_t)i * q * actions;
        for (uint32_t a = 0; a < actions; a++)
            acting->value[a] = draw[a];
        for (uint32_t j = 1; j < q; j++)
            for (uint32_t a = 0; a < actions; a++)
                acting->value[a] += draw[(size_t)j * actions + a];
        action[i] = first_maximum(acting->value, actions, mask ? mask + (size_t)i * actions : NULL);
    }
}

void rm_acting_greedy(struct rm_acting *acting, const float *x, uint32_t n, const uint32_t *lane,
                      uint64_t step, const uint8_t *mask, int32_t *action)
{
    for (uint32_t at = 0; at < n; at += acting->chunk) {
        uint32_t rows = n - at < acting->chunk ? n - at : acting->chunk;
        struct rm_net_input input = {
            .x = x + (size_t)at * acting->inputs, .batch = rows, .noise = acting->noise};
        if (acting->quantiles) {
            struct rm_backend *b = acting->backend;
            for (uint32_t i = 0; i < rows; i++)
                b->ops->uniforms(b, acting->seed, RM_STREAM_ACT, lane[at + i], step,
                                 acting->quantiles, acting->tau + (size_t)i * acting->quantiles);
            input.tau = acting->tau;
            input.quantiles = acting->quantiles;
        }
        const float *out = rm_net_forward(acting->workspace, acting->params, &input);
        acting->rows += rows;
        const uint8_t *legal = mask ? mask + (size_t)at * acting->actions : NULL;
        if (acting->quantiles)
            pick_quantile_draws(acting, out, rows, legal, action + at);
        else if (acting->outputs_per_action > 1)
            pick_quantile_heads(acting, out, rows, legal, action + at);
        else
            pick_plain(acting, out, rows, legal, action + at);
    }
}

/* One forward pass over rows [at, at + n). */
static const float *outputs_of(struct rm_acting *acting, const struct rm_acting_rows *r,
                               uint32_t at, uint32_t n)
{
    const size_t state = (size_t)at * acting->state_floats;
    const struct rm_net_input input = {
        /* A number of either kind has four bytes. */
        .x = (const float *)r->x + (size_t)at * acting->inputs,
        .batch = n,
        .noise = acting->noise,
        .state = r->state ? r->state + state : NULL,
        .next_state = r->next_state ? r->next_state + state : NULL,
        .cache = r->cache,
        .cache_lane = r->cache_lane + at,
    };
    const float *out = rm_net_forward(acting->workspace, acting->params, &input);
    acting->rows += n;
    for (uint32_t i = 0; r->types && i < n; i++)
        memcpy(r->types + (size_t)(at + i) * acting->types,
               out + ((size_t)i + 1) * acting->outputs - acting->types,
               acting->types * sizeof *out);
    return out;
}

/* Rows [at, at + n), from what the network says of them. */
static struct rm_reals_rows reals_of(const struct rm_acting *acting, const struct rm_acting_rows *r,
                                     uint32_t at, uint32_t n, const float *out)
{
    return (struct rm_reals_rows){
        .gaussian = &acting->gaussian,
        .choices = &acting->distribution,
        .out = out,
        .stride = acting->outputs,
        .n = n,
        .action = r->action + (size_t)at * acting->distribution.words,
    };
}

void rm_acting_draw(struct rm_acting *acting, const struct rm_acting_rows *r)
{
    const struct rm_categorical *c = &acting->distribution;
    for (uint32_t at = 0; at < r->n; at += acting->chunk) {
        const uint32_t n = r->n - at < acting->chunk ? r->n - at : acting->chunk;
        const float *logits = outputs_of(acting, r, at, n);
        rm_categorical_words(c, acting->seed, r->step, r->lane + at, n, acting->word);
        rm_categorical_draw(c, logits, acting->outputs,
                            r->mask ? r->mask + (size_t)at * c->actions : NULL, n, acting->word,
                            r->action + (size_t)at * c->words, r->logp ? r->logp + at : NULL);
        const struct rm_reals_rows reals = reals_of(acting, r, at, n, logits);
        rm_reals_draw(&reals, acting->seed, r->step, r->lane + at, r->logp ? r->logp + at : NULL);
        for (uint32_t i = 0; r->value && i < n; i++)
            r->value[at + i] = logits[((size_t)i + 1) * acting->outputs - 1];
    }
}

void rm_acting_likeliest(struct rm_acting *acting, const struct rm_acting_rows *r)
{
    const struct rm_categorical *c = &acting->distribution;
    for (uint32_t at = 0; at < r->n; at += acting->chunk) {
        const uint32_t n = r->n - at < acting->chunk ? r->n - at : acting->chunk;
        const float *out = outputs_of(acting, r, at, n);
        rm_categorical_greedy(c, out, acting->outputs,
                              r->mask ? r->mask + (size_t)at * c->actions : NULL, n,
                              r->action + (size_t)at * c->words);
        if (r->logp)
            rm_categorical_logp(c, out, acting->outputs,
                                r->mask ? r->mask + (size_t)at * c->actions : NULL, n,
                                r->action + (size_t)at * c->words, r->logp + at);
        const struct rm_reals_rows reals = reals_of(acting, r, at, n, out);
        rm_reals_greedy(&reals);
    }
}

void rm_acting_best(struct rm_acting *acting, const struct rm_acting_rows *r)
{
    for (uint32_t at = 0; at < r->n; at += acting->chunk) {
        const uint32_t n = r->n - at < acting->chunk ? r->n - at : acting->chunk;
        pick_plain(acting, outputs_of(acting, r, at, n), n,
                   r->mask ? r->mask + (size_t)at * acting->actions : NULL, r->action + at);
    }
}

/* word < bound <= 2^32: uniform over `actions`, or over the legal ones. */
static int32_t explore_one(uint32_t word, uint64_t bound, uint32_t actions, const uint8_t *mask)
{
    uint32_t choices = actions;
    if (mask) {
        choices = 0;
        for (uint32_t a = 0; a < actions; a++)
            choices += mask[a] != 0;
    }
    uint32_t pick = (uint32_t)((uint64_t)word * choices / bound);
    if (!mask)
        return (int32_t)pick;
    for (uint32_t a = 0; a < actions; a++)
        if (mask[a] && pick-- == 0)
            return (int32_t)a;
    return 0;
}

uint32_t rm_acting_explore(uint64_t seed, uint32_t first_lane, uint32_t n, uint64_t step,
                           const uint64_t *bound, uint32_t actions, const uint8_t *mask,
                           int32_t *action)
{
    uint32_t explorers = 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t lane = first_lane + i;
        struct rm_rng rng = rm_rng_at(seed, RM_STREAM_EXPLORE, lane / 4, step);
        uint32_t word[4];
        for (uint32_t j = 0; j < 4; j++)
            word[j] = rm_rng_u32(&rng);
        for (uint32_t j = lane % 4; j < 4 && i < n; j++, i++) {
            action[i] = -1;
            if (word[j] >= bound[i])
                continue;
            action[i] =
                explore_one(word[j], bound[i], actions, mask ? mask + (size_t)i * actions : NULL);
            explorers++;
        }
    }
    return explorers;
}
