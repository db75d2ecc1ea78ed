/* Activations. An activation right after a product is part of the product's step. */
#include "learner/net/steps/steps.h"

static const enum rm_activation activations[RM_LAYER_TYPE_COUNT] = {
    [RM_LAYER_RELU] = RM_ACT_RELU,       [RM_LAYER_TANH] = RM_ACT_TANH,
    [RM_LAYER_GELU] = RM_ACT_GELU,       [RM_LAYER_SILU] = RM_ACT_SILU,
    [RM_LAYER_ELU] = RM_ACT_ELU,         [RM_LAYER_LEAKY_RELU] = RM_ACT_LEAKY_RELU,
    [RM_LAYER_SIGMOID] = RM_ACT_SIGMOID,
};

int rm_compile_activation(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    struct rm_step *last = rm_compile_fusable(c);
    if (last && rm_step_ops[last->kind]->pre)
        last->act = activations[layer->type];
    else
        rm_compile_step(c, RM_STEP_ACTIVATE, c->place.form)->act = activations[layer->type];
    return 0;
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    p->ops->activate(p->b, s->act, rows->x, rm_rows_of(p, &s->out) * s->out.features, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    if (rows->dx)
        p->ops->activate_dx(p->b, s->act, rows->x, rows->y, rows->dy,
                            rm_rows_of(p, &s->out) * s->out.features, rows->dx);
}

const struct rm_step_ops rm_activate_step = {
    .name = "activate", .by_row = true, .forward = forward, .backward = backward};
