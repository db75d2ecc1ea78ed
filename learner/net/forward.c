/* Forward passes. Weights first, for all steps; then rows in groups small enough that what one step
 * writes is still in the cache when the next reads it. A row's result does not depend on its group.
 */
#include "learner/net/parts.h"

/* Rows that products take at a time: groups are whole multiples where they can be. */
#define GROUP_STEP 32u

struct pass {
    struct rm_net_workspace *w;
    struct rm_backend *b;
    const struct rm_backend_ops *ops;
    const float *params;
    const struct rm_net_input *input;
    uint32_t first, states; /* of the group */
};

/* The packed weights and the bias of a product for this pass: as they are, or with noise. */
static void take_weights(const struct pass *p, const struct rm_step *s, struct rm_step_buffers *buf)
{
    uint32_t in = rm_step_weight_inputs(s);
    size_t weights = (size_t)in * s->out;
    buf->last_noisy = s->noisy && p->input->noise;
    if (!buf->last_noisy) {
        if (!buf->packed_fresh)
            p->ops->pack(p->b, p->params + s->weight, s->out, in, buf->packed);
        buf->packed_fresh = true;
        buf->now_packed = buf->packed;
        buf->now_bias = p->params + s->bias;
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
    buf->now_packed = buf->noisy_packed;
    buf->now_bias = buf->noisy_b;
}

static void forward_linear(const struct pass *p, const struct rm_step *s,
                           const struct rm_step_buffers *buf, size_t at, uint32_t rows,
                           const float *x, float *y)
{
    if (!buf->pre) {
        p->ops->linear(p->b, x, buf->now_packed, buf->now_bias, rows, s->in, s->out, s->act, y);
        return;
    }
    float *pre = buf->pre + at * s->out;
    p->ops->linear(p->b, x, buf->now_packed, buf->now_bias, rows, s->in, s->out, RM_ACT_NONE, pre);
    p->ops->activate(p->b, s->act, pre, (size_t)rows * s->out, y);
}

static void forward_cosine(const struct pass *p, const struct rm_step *s,
                           const struct rm_step_buffers *buf, const float *x, float *y)
{
    uint32_t q = p->input->quantiles, rows = p->states * q;
    size_t at = (size_t)p->first * q, kept = p->w->training ? at : 0;
    float *cosines = buf->cosines + kept * s->cosines, *phi = buf->phi + kept * s->out;
    p->ops->cosines(p->b, p->input->tau + at, rows, s->cosines, cosines);
    p->ops->linear(p->b, cosines, buf->now_packed, buf->now_bias, rows, s->cosines, s->out,
                   RM_ACT_RELU, phi);
    p->ops->broadcast_mul(p->b, x, phi, p->states, q, s->out, y);
}

/* Where step i of this group goes: to its own buffer, in training; else the last to the result and
 * the others to two buffers in turn. */
static float *result_of(const struct pass *p, uint32_t i, size_t at)
{
    struct rm_net_workspace *w = p->w;
    const struct rm_step *s = &w->net->steps[i];
    if (w->training)
        return w->steps[i].y + at * s->out;
    if (i + 1 == w->net->step_count)
        return w->result + at * s->out;
    if (w->net->steps[i + 1].kind == RM_STEP_COSINE)
        return w->states; /* every group reads its part of it */
    return w->turns[i & 1];
}

/* Steps [from, to) of the group's states, from x. */
static const float *run_steps(const struct pass *p, uint32_t from, uint32_t to, const float *x)
{
    const struct rm_net *net = p->w->net;
    for (uint32_t i = from; i < to; i++) {
        const struct rm_step *s = &net->steps[i];
        const struct rm_step_buffers *buf = &p->w->steps[i];
        uint32_t q = s->per_quantile ? p->input->quantiles : 1, rows = p->states * q;
        size_t at = (size_t)p->first * q;
        size_t at_out = s->kind == RM_STEP_COSINE ? (size_t)p->first * p->input->quantiles : at;
        float *y = result_of(p, i, at_out);
        switch (s->kind) {
        case RM_STEP_LINEAR:
            forward_linear(p, s, buf, at, rows, x, y);
            break;
        case RM_STEP_ACTIVATE:
            p->ops->activate(p->b, s->act, x, (size_t)rows * s->out, y);
            break;
        case RM_STEP_LAYER_NORM:
            p->ops->layer_norm(p->b, x, p->params + s->weight, p->params + s->bias, rows, s->out, y,
                               buf->mean + at, buf->rstd + at);
            break;
        case RM_STEP_COSINE:
            forward_cosine(p, s, buf, x, y);
            break;
        case RM_STEP_DUELING:
            p->ops->dueling(p->b, x, rows, net->shape.actions, net->shape.outputs_per_action, y);
            break;
        }
        x = y;
    }
    return x;
}

uint32_t rm_net_group_states(const struct rm_net_workspace *w, uint32_t quantiles)
{
    uint32_t most = RM_GROUP_ROWS * w->backend->threads / quantiles, states = most;
    while (states && states * quantiles % GROUP_STEP)
        states--;
    if (!states)
        states = most ? most : 1;
    return states;
}

const float *rm_net_forward(struct rm_net_workspace *w, const float *params,
                            const struct rm_net_input *input)
{
    const struct rm_net *net = w->net;
    struct pass p = {w, w->backend, w->backend->ops, params, input, 0, input->batch};
    for (uint32_t i = 0; i < net->step_count; i++)
        if (net->steps[i].kind == RM_STEP_LINEAR || net->steps[i].kind == RM_STEP_COSINE)
            take_weights(&p, &net->steps[i], &w->steps[i]);
    uint32_t whole = 0; /* steps on states, before quantiles multiply the rows: all at once */
    while (net->uses_quantiles && net->steps[whole].kind != RM_STEP_COSINE)
        whole++;
    const float *x = run_steps(&p, 0, whole, input->x);
    size_t features = net->steps[whole].in;
    uint32_t group = rm_net_group_states(w, net->uses_quantiles ? input->quantiles : 1);
    for (p.first = 0; p.first < input->batch; p.first += group) {
        p.states = input->batch - p.first < group ? input->batch - p.first : group;
        run_steps(&p, whole, net->step_count, x + p.first * features);
    }
    return w->training ? w->steps[net->step_count - 1].y : w->result;
}
