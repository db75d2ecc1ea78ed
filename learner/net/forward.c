#include "learner/net/parts.h"

struct pass {
    struct rm_net_workspace *w;
    struct rm_backend *b;
    const struct rm_backend_ops *ops;
    const float *params;
    const struct rm_net_input *input;
};

/* Weights of a product for this pass, packed, and its bias: as they are, or with noise. */
static void weights_of(const struct pass *p, const struct rm_step *s, struct rm_step_buffers *buf,
                       const float **packed, const float **bias)
{
    uint32_t in = rm_step_weight_inputs(s);
    size_t weights = (size_t)in * s->out;
    buf->last_noisy = s->noisy && p->input->noise;
    if (!buf->last_noisy) {
        if (!buf->packed_fresh)
            p->ops->pack(p->b, p->params + s->weight, s->out, in, buf->packed);
        buf->packed_fresh = true;
        *packed = buf->packed;
        *bias = p->params + s->bias;
        return;
    }
    const float *eps = p->input->noise + s->noise;
    buf->last_eps_w = eps;
    buf->last_eps_b = eps + weights;
    if (buf->eps_w) {
        p->ops->noisy_factors(p->b, eps, in, s->out, buf->eps_w, buf->eps_b);
        buf->last_eps_w = buf->eps_w;
        buf->last_eps_b = buf->eps_b;
    }
    p->ops->noisy_weights(p->b, p->params + s->weight, p->params + s->sigma_weight, buf->last_eps_w,
                          weights, buf->noisy_w);
    p->ops->noisy_weights(p->b, p->params + s->bias, p->params + s->sigma_bias, buf->last_eps_b,
                          s->out, buf->noisy_b);
    p->ops->pack(p->b, buf->noisy_w, s->out, in, buf->noisy_packed);
    *packed = buf->noisy_packed;
    *bias = buf->noisy_b;
}

static void forward_linear(const struct pass *p, const struct rm_step *s,
                           struct rm_step_buffers *buf, uint32_t rows, const float *x, float *y)
{
    const float *packed, *bias;
    weights_of(p, s, buf, &packed, &bias);
    if (!buf->pre) {
        p->ops->linear(p->b, x, packed, bias, rows, s->in, s->out, s->act, y);
        return;
    }
    p->ops->linear(p->b, x, packed, bias, rows, s->in, s->out, RM_ACT_NONE, buf->pre);
    p->ops->activate(p->b, s->act, buf->pre, (size_t)rows * s->out, y);
}

static void forward_cosine(const struct pass *p, const struct rm_step *s,
                           struct rm_step_buffers *buf, const float *x, float *y)
{
    const struct rm_net_input *in = p->input;
    const float *packed, *bias;
    uint32_t rows = in->batch * in->quantiles;
    weights_of(p, s, buf, &packed, &bias);
    p->ops->cosines(p->b, in->tau, rows, s->cosines, buf->cosines);
    p->ops->linear(p->b, buf->cosines, packed, bias, rows, s->cosines, s->out, RM_ACT_RELU,
                   buf->phi);
    p->ops->broadcast_mul(p->b, x, buf->phi, in->batch, in->quantiles, s->out, y);
}

const float *rm_net_forward(struct rm_net_workspace *w, const float *params,
                            const struct rm_net_input *input)
{
    const struct pass p = {w, w->backend, w->backend->ops, params, input};
    const struct rm_net *net = w->net;
    const float *x = input->x;
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        struct rm_step_buffers *buf = &w->steps[i];
        uint32_t rows = input->batch * (s->per_quantile ? input->quantiles : 1);
        float *y = w->training ? buf->y : w->turns[i & 1];
        switch (s->kind) {
        case RM_STEP_LINEAR:
            forward_linear(&p, s, buf, rows, x, y);
            break;
        case RM_STEP_ACTIVATE:
            p.ops->activate(p.b, s->act, x, (size_t)rows * s->out, y);
            break;
        case RM_STEP_LAYER_NORM:
            p.ops->layer_norm(p.b, x, params + s->weight, params + s->bias, rows, s->out, y,
                              buf->mean, buf->rstd);
            break;
        case RM_STEP_COSINE:
            forward_cosine(&p, s, buf, x, y);
            break;
        case RM_STEP_DUELING:
            p.ops->dueling(p.b, x, rows, net->shape.actions, net->shape.outputs_per_action, y);
            break;
        }
        x = y;
    }
    return x;
}
