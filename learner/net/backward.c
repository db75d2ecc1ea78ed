#include "learner/net/parts.h"

struct pass {
    struct rm_net_workspace *w;
    struct rm_backend *b;
    const struct rm_backend_ops *ops;
    const float *params;
    const struct rm_net_input *input;
    float *grads;
};

/* dmu = dw, dsigma = dw eps; without noise sigma had no part. */
static void sigma_gradients(const struct pass *p, const struct rm_step *s,
                            const struct rm_step_buffers *buf)
{
    size_t weights = (size_t)s->in * s->out;
    float *dw = p->grads + s->sigma_weight, *db = p->grads + s->sigma_bias;
    if (buf->last_noisy) {
        p->ops->multiply(p->b, p->grads + s->weight, buf->last_eps_w, weights, dw);
        p->ops->multiply(p->b, p->grads + s->bias, buf->last_eps_b, s->out, db);
    } else {
        p->ops->fill(p->b, 0.0f, weights, dw);
        p->ops->fill(p->b, 0.0f, s->out, db);
    }
}

/* dy becomes the gradient before the activation, in place. */
static void through_activation(const struct pass *p, const struct rm_step *s,
                               const struct rm_step_buffers *buf, uint32_t rows, float *dy)
{
    if (s->act != RM_ACT_NONE)
        p->ops->activate_dx(p->b, s->act, buf->pre, buf->y, dy, (size_t)rows * s->out, dy);
}

/* own_dy is dy where it may be written to; needed by steps with an activation. */
static void backward_linear(const struct pass *p, const struct rm_step *s,
                            const struct rm_step_buffers *buf, uint32_t rows, const float *x,
                            const float *dy, float *own_dy, float *dx)
{
    through_activation(p, s, buf, rows, own_dy);
    p->ops->linear_dw(p->b, dy, x, rows, s->in, s->out, p->grads + s->weight, p->grads + s->bias);
    if (s->noisy)
        sigma_gradients(p, s, buf);
    const float *weights = buf->last_noisy ? buf->noisy_w : p->params + s->weight;
    if (dx)
        p->ops->linear_dx(p->b, dy, weights, rows, s->in, s->out, dx);
}

static void backward_cosine(const struct pass *p, const struct rm_step *s,
                            const struct rm_step_buffers *buf, const float *x, const float *dy,
                            float *dx)
{
    const struct rm_net_input *in = p->input;
    uint32_t rows = in->batch * in->quantiles;
    float *dphi = p->w->phi_gradient;
    p->ops->broadcast_mul_dx(p->b, x, buf->phi, dy, in->batch, in->quantiles, s->out, dx, dphi);
    p->ops->linear_dw(p->b, dphi, buf->cosines, rows, s->cosines, s->out, p->grads + s->weight,
                      p->grads + s->bias);
}

void rm_net_backward(struct rm_net_workspace *w, const float *params,
                     const struct rm_net_input *input, const float *d_out, float *grads)
{
    const struct pass p = {w, w->backend, w->backend->ops, params, input, grads};
    const struct rm_net *net = w->net;
    const float *dy = d_out;
    /* The last step is the head or dueling: neither writes to dy, which is the caller's there. */
    float *own_dy = NULL;
    for (uint32_t i = net->step_count; i-- > 0;) {
        const struct rm_step *s = &net->steps[i];
        const struct rm_step_buffers *buf = &w->steps[i];
        uint32_t rows = input->batch * (s->per_quantile ? input->quantiles : 1);
        const float *x = i ? w->steps[i - 1].y : input->x;
        float *dx = w->gradients[i & 1];
        switch (s->kind) {
        case RM_STEP_LINEAR:
            backward_linear(&p, s, buf, rows, x, dy, own_dy, i ? dx : NULL);
            break;
        case RM_STEP_ACTIVATE:
            p.ops->activate_dx(p.b, s->act, x, buf->y, dy, (size_t)rows * s->out, dx);
            break;
        case RM_STEP_LAYER_NORM:
            p.ops->layer_norm_dx(p.b, x, params + s->weight, buf->mean, buf->rstd, dy, rows, s->out,
                                 dx, grads + s->weight, grads + s->bias);
            break;
        case RM_STEP_COSINE:
            backward_cosine(&p, s, buf, x, dy, dx);
            break;
        case RM_STEP_DUELING:
            p.ops->dueling_dx(p.b, dy, rows, net->shape.actions, net->shape.outputs_per_action, dx);
            break;
        }
        dy = own_dy = dx;
    }
}
