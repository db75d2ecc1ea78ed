/* Buffers: all allocated here, at once. */
#include "learner/net/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OWNED_MAX (RM_STEPS_MAX * 12 + 8)

static float *take(struct rm_net_workspace *w, size_t floats)
{
    if (w->owned_count == OWNED_MAX)
        return NULL;
    float *p = w->backend->ops->alloc(w->backend, floats);
    if (p) {
        w->owned[w->owned_count++] = p;
        w->floats += floats;
    }
    return p;
}

static size_t rows_of(const struct rm_net_workspace *w, const struct rm_step *s)
{
    bool many = s->per_quantile || s->kind == RM_STEP_COSINE;
    return (size_t)w->max_batch * (many ? w->max_quantiles : 1);
}

/* Rows of a step's result that exist at a time: without training, those of one group. */
static size_t rows_held(const struct rm_net_workspace *w, const struct rm_step *s)
{
    size_t rows = rows_of(w, s), group = (size_t)RM_GROUP_ROWS * w->backend->threads;
    bool whole = w->net->uses_quantiles && !s->per_quantile && s->kind != RM_STEP_COSINE;
    if (w->training || whole)
        return rows;
    group = group > w->max_quantiles ? group : w->max_quantiles;
    return rows < group ? rows : group;
}

/* Sets *p to a buffer, if asked for. False when there is no memory. */
static bool want(struct rm_net_workspace *w, bool needed, float **p, size_t floats)
{
    if (!needed)
        return true;
    *p = take(w, floats);
    return *p != NULL;
}

static bool take_weights(struct rm_net_workspace *w, const struct rm_step *s,
                         struct rm_step_buffers *b)
{
    const struct rm_backend_ops *ops = w->backend->ops;
    uint32_t in = rm_step_weight_inputs(s);
    size_t weights = (size_t)in * s->out, packed = ops->packed_floats(w->backend, s->out, in);
    bool factorised = s->noisy && w->net->config.noise == RM_NOISE_FACTORISED;
    return want(w, true, &b->packed, packed) && want(w, s->noisy, &b->noisy_w, weights) &&
           want(w, s->noisy, &b->noisy_b, s->out) && want(w, s->noisy, &b->noisy_packed, packed) &&
           want(w, factorised, &b->eps_w, weights) && want(w, factorised, &b->eps_b, s->out) &&
           ops->reserve(w->backend, (uint32_t)rows_of(w, s), in, s->out, w->training) == 0;
}

static bool take_step(struct rm_net_workspace *w, const struct rm_step *s,
                      struct rm_step_buffers *b)
{
    size_t rows = rows_of(w, s), floats = rows * s->out, held = rows_held(w, s);
    bool norm = s->kind == RM_STEP_LAYER_NORM, cosine = s->kind == RM_STEP_COSINE;
    bool product = s->kind == RM_STEP_LINEAR || cosine;
    bool pre = w->training && s->kind == RM_STEP_LINEAR && s->act == RM_ACT_GELU;
    return (!product || take_weights(w, s, b)) && want(w, w->training, &b->y, floats) &&
           want(w, pre, &b->pre, floats) && want(w, norm, &b->mean, rows) &&
           want(w, norm, &b->rstd, rows) && want(w, cosine, &b->cosines, held * s->cosines) &&
           want(w, cosine, &b->phi, held * s->out);
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool take_all(struct rm_net_workspace *w)
{
    const struct rm_net *net = w->net;
    size_t widest = 0, phi = 0, states = 0, result = 0;
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        if (!take_step(w, s, &w->steps[i]))
            return false;
        widest = larger(widest, rows_held(w, s) * larger(s->out, s->in));
        result = rows_of(w, s) * s->out;
        if (s->kind == RM_STEP_COSINE) {
            phi = rows_of(w, s) * s->out;
            states = (size_t)w->max_batch * s->in;
        }
    }
    if (w->training)
        return want(w, true, &w->gradients[0], widest) && want(w, true, &w->gradients[1], widest) &&
               want(w, phi > 0, &w->phi_gradient, phi);
    return want(w, true, &w->turns[0], widest) && want(w, true, &w->turns[1], widest) &&
           want(w, states > 0, &w->states, states) && want(w, true, &w->result, result);
}

int rm_net_workspace_create(struct rm_net_workspace **out, const struct rm_net *net,
                            struct rm_backend *backend, uint32_t max_batch, uint32_t max_quantiles,
                            bool training, struct rm_error *error)
{
    *out = NULL;
    if (max_batch == 0 || (net->uses_quantiles && max_quantiles == 0) ||
        (uint64_t)max_batch * (max_quantiles ? max_quantiles : 1) > (1u << 30))
        return rm_fail(error, -EINVAL,
                       "network: buffers for %u rows of %u quantiles; each at least 1, together at "
                       "most 2^30",
                       max_batch, max_quantiles);
    struct rm_net_workspace *w = calloc(1, sizeof *w);
    if (!w)
        return rm_fail(error, -ENOMEM, "network: out of memory");
    w->net = net;
    w->backend = backend;
    w->max_batch = max_batch;
    w->max_quantiles = net->uses_quantiles ? max_quantiles : 1;
    w->training = training;
    w->owned = calloc(OWNED_MAX, sizeof *w->owned);
    if (!w->owned || !take_all(w)) {
        size_t bytes = rm_net_workspace_bytes(w);
        rm_net_workspace_destroy(w);
        return rm_fail(error, -ENOMEM,
                       "network: no memory for buffers of %u rows, after %zu bytes of them",
                       max_batch, bytes);
    }
    *out = w;
    return 0;
}

void rm_net_workspace_destroy(struct rm_net_workspace *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->owned_count; i++)
        w->backend->ops->release(w->backend, w->owned[i]);
    free(w->owned);
    free(w);
}

size_t rm_net_workspace_bytes(const struct rm_net_workspace *w)
{
    return w->floats * sizeof(float);
}

void rm_net_prepare(struct rm_net_workspace *w, const float *params)
{
    (void)params; /* packed when first used: a noisy pass needs no packed means */
    for (uint32_t i = 0; i < w->net->step_count; i++)
        w->steps[i].packed_fresh = false;
}
