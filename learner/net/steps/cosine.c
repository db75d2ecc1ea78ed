/* The cosine embedding of IQN (Dabney 2018b, eq. 4): z = x * ReLU(W cos(pi i tau) + b), i = 1...
 * After it there is a row per quantile. */
#include "learner/net/steps/steps.h"

enum kept { COSINES, PHI, PHI_GRADIENT, UNASKED };

int rm_compile_cosine(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    struct rm_net *net = c->net;
    if (c->input)
        return rm_compile_refuse(c, "multiplies the rows of all inputs; it belongs in "
                                    "network.layers");
    if (net->uses_quantiles)
        return rm_compile_refuse(c, "a network has at most one cosine_embedding");
    if (layer->cosines == 0 || layer->cosines > RM_UNITS_MAX)
        return rm_compile_refuse(c, "cosines must be from 1 to 65536 (the paper's is 64)");
    if (net->shape.outputs_per_action != 1)
        return rm_compile_refuse(c, "a cosine_embedding needs one output per action: quantiles "
                                    "come from its input, not from the head (algorithm iqn)");
    if (net->shape.head != RM_HEAD_VALUES)
        return rm_compile_refuse(c, "is for values of actions (algorithm iqn), not for "
                                    "probabilities");
    if (c->place.form.tokens > 1)
        return rm_compile_refuse(c, "needs one row of features per observation; these are tokens");
    struct rm_row_form out = rm_vector_form(c->place.form, c->place.form.features);
    out.per_quantile = true;
    struct rm_step *s = rm_compile_step(c, RM_STEP_COSINE, out);
    rm_compile_product(c, s, "", layer->cosines, out.features, false);
    net->uses_quantiles = true;
    return 0;
}

static bool buffers(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b)
{
    size_t rows = rm_workspace_rows_held(w, s, &s->out);
    return rm_workspace_want(w, true, &b->kept[COSINES], rows * s->product[0].in) &&
           rm_workspace_want(w, true, &b->kept[PHI], rows * s->out.features) &&
           rm_workspace_want(w, w->training, &b->kept[PHI_GRADIENT], rows * s->out.features) &&
           rm_workspace_want(w, w->training && !rm_step_needs_dx(w->net, s), &b->kept[UNASKED],
                             (size_t)w->max_batch * s->in.features);
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    uint32_t q = p->input->quantiles, n = s->product[0].in;
    size_t many = rm_rows_of(p, &s->out), kept = rm_kept_at(p, &s->out);
    float *cosines = b->kept[COSINES] + kept * n, *phi = b->kept[PHI] + kept * s->out.features;
    p->ops->cosines(p->b, p->input->tau + (size_t)p->first * q, many, n, cosines);
    rm_net_product_forward(p, &s->product[0], &b->product[0], cosines, many, RM_ACT_RELU, phi);
    p->ops->broadcast_mul(p->b, rows->x, phi, p->states, q, s->out.features, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    p->ops->broadcast_mul_dx(p->b, rows->x, b->kept[PHI], rows->dy, p->states, p->input->quantiles,
                             s->out.features, rows->dx ? rows->dx : b->kept[UNASKED],
                             b->kept[PHI_GRADIENT]);
    rm_net_product_backward(p, &s->product[0], &b->product[0], b->kept[COSINES],
                            b->kept[PHI_GRADIENT], rm_rows_of(p, &s->out), NULL);
}

const struct rm_step_ops rm_cosine_step = {
    .name = "cosine_embedding", .buffers = buffers, .forward = forward, .backward = backward};
