/* A step's products with its weights: packed once per change of parameters, with noise in noisy
 * layers (Fortunato et al., 2018). */
#include "learner/net/parts.h"

bool rm_net_product_buffers(struct rm_net_workspace *w, const struct rm_net_product *m, size_t rows,
                            struct rm_net_product_buffers *b)
{
    const struct rm_backend_ops *ops = w->backend->ops;
    size_t weights = (size_t)m->in * m->out, packed = ops->packed_floats(w->backend, m->out, m->in);
    size_t packed_dx =
        w->training && ops->packed_dx_floats ? ops->packed_dx_floats(w->backend, m->out, m->in) : 0;
    bool noisy = m->noisy, factorised = noisy && w->net->config.noise == RM_NOISE_FACTORISED;
    return rm_workspace_want(w, packed > 0, &b->packed, packed) &&
           rm_workspace_want(w, noisy, &b->noisy_w, weights) &&
           rm_workspace_want(w, noisy, &b->noisy_b, m->out) &&
           rm_workspace_want(w, noisy && packed, &b->noisy_packed, packed) &&
           rm_workspace_want(w, packed_dx > 0, &b->packed_dx, packed_dx) &&
           rm_workspace_want(w, factorised, &b->eps_w, weights) &&
           rm_workspace_want(w, factorised, &b->eps_b, m->out) &&
           ops->reserve(w->backend, (uint32_t)rows, m->in, m->out, w->training) == 0;
}

/* Sets the packed weights and the bias of this pass, with or without noise. */
void rm_net_product_ready(const struct rm_pass *p, const struct rm_net_product *m,
                          struct rm_net_product_buffers *b)
{
    size_t weights = (size_t)m->in * m->out;
    const bool noisy = m->noisy && p->input->noise;
    b->fresh_dx &= !noisy && !b->last_noisy;
    b->last_noisy = noisy;
    if (!noisy) {
        if (b->packed && !b->fresh && b->images.channels)
            p->ops->compact_pack(p->b, p->params + m->weight, m->out, &b->images, b->packed);
        else if (b->packed && !b->fresh)
            p->ops->pack(p->b, p->params + m->weight, m->out, m->in, b->packed);
        b->fresh = true;
        b->now_packed = b->packed ? b->packed : p->params + m->weight;
        b->now_bias = p->params + m->bias;
        return;
    }
    const float *eps = p->input->noise + m->noise;
    b->last_eps_w = eps;
    b->last_eps_b = eps + weights;
    if (b->eps_w) {
        p->ops->noisy_factors(p->b, eps, m->in, m->out, b->eps_w, b->eps_b);
        b->last_eps_w = b->eps_w;
        b->last_eps_b = b->eps_b;
    }
    p->ops->noisy_weights(p->b, p->params + m->weight, p->params + m->sigma_weight, b->last_eps_w,
                          weights, b->noisy_w);
    p->ops->noisy_weights(p->b, p->params + m->bias, p->params + m->sigma_bias, b->last_eps_b,
                          m->out, b->noisy_b);
    if (b->noisy_packed)
        p->ops->pack(p->b, b->noisy_w, m->out, m->in, b->noisy_packed);
    b->now_packed = b->noisy_packed ? b->noisy_packed : b->noisy_w;
    b->now_bias = b->noisy_b;
}

static struct rm_image_rows images_of(const struct rm_net_product_buffers *b, size_t rows)
{
    struct rm_image_rows images = b->images;
    images.batch = (uint32_t)rows;
    return images;
}

void rm_net_product_forward(const struct rm_pass *p, const struct rm_net_product *m,
                            const struct rm_net_product_buffers *b, const float *x, size_t rows,
                            enum rm_activation act, float *y)
{
    const struct rm_image_rows images = images_of(b, rows);
    if (images.channels)
        p->ops->compact_linear(p->b, x, &images, b->now_packed, b->now_bias, m->out, act, y);
    else
        p->ops->linear(p->b, x, b->now_packed, b->now_bias, (uint32_t)rows, m->in, m->out, act, y);
}

/* dmu = dw, dsigma = dw eps; without noise dsigma is zero. */
static void sigma_gradients(const struct rm_pass *p, const struct rm_net_product *m,
                            const struct rm_net_product_buffers *b)
{
    size_t weights = (size_t)m->in * m->out;
    float *dw = p->grads + m->sigma_weight, *db = p->grads + m->sigma_bias;
    if (b->last_noisy) {
        p->ops->multiply(p->b, p->grads + m->weight, b->last_eps_w, weights, dw);
        p->ops->multiply(p->b, p->grads + m->bias, b->last_eps_b, m->out, db);
    } else {
        p->ops->fill(p->b, 0.0f, weights, dw);
        p->ops->fill(p->b, 0.0f, m->out, db);
    }
}

void rm_net_product_backward(const struct rm_pass *p, const struct rm_net_product *m,
                             struct rm_net_product_buffers *b, const float *x, const float *dy,
                             size_t rows, float *dx)
{
    const struct rm_image_rows images = images_of(b, rows);
    if (p->input->action_only) {
        if (dx && !images.channels)
            rm_net_product_dx(p, m, b, dy, rows, dx);
        return;
    }
    if (images.channels) {
        p->ops->compact_linear_dw(p->b, dy, x, &images, m->out, p->grads + m->weight,
                                  p->grads + m->bias);
        if (dx)
            p->ops->compact_linear_dx(p->b, dy, p->params + m->weight, &images, m->out, dx);
        return;
    }
    p->ops->linear_dw(p->b, dy, x, (uint32_t)rows, m->in, m->out, p->grads + m->weight,
                      p->grads + m->bias);
    if (m->noisy)
        sigma_gradients(p, m, b);
    if (dx)
        rm_net_product_dx(p, m, b, dy, rows, dx);
}

/* The first gradient of an input packs the weights, because many products need none. */
void rm_net_product_dx(const struct rm_pass *p, const struct rm_net_product *m,
                       struct rm_net_product_buffers *b, const float *dy, size_t rows, float *dx)
{
    const float *weights = b->last_noisy ? b->noisy_w : p->params + m->weight;
    if (!b->packed_dx) {
        p->ops->linear_dx(p->b, dy, weights, (uint32_t)rows, m->in, m->out, dx);
        return;
    }
    if (!b->fresh_dx)
        p->ops->pack_dx(p->b, weights, m->out, m->in, b->packed_dx);
    b->fresh_dx = true;
    p->ops->linear_dx_packed(p->b, dy, b->packed_dx, (uint32_t)rows, m->in, m->out, dx);
}

void rm_net_product_backward_more(const struct rm_pass *p, const struct rm_net_product *m,
                                  struct rm_net_product_buffers *b, const float *x, const float *dy,
                                  size_t rows, bool biases, float *dx)
{
    p->ops->linear_dw_add(p->b, dy, x, (uint32_t)rows, m->in, m->out, p->grads + m->weight,
                          biases ? p->grads + m->bias : NULL);
    if (dx)
        rm_net_product_dx(p, m, b, dy, rows, dx);
}

void rm_step_through_activation(const struct rm_pass *p, const struct rm_step *s,
                                const struct rm_step_buffers *b, float *dy)
{
    if (s->act != RM_ACT_NONE)
        p->ops->activate_dx(p->b, s->act, b->pre, b->y, dy,
                            rm_rows_of(p, &s->out) * s->out.features, dy);
}
