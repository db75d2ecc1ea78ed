/* Fully connected: y = act(x W^T + b), for each token if there are tokens. */
#include "learner/net/steps/steps.h"

int rm_compile_linear(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    if (layer->units == 0 || layer->units > RM_UNITS_MAX)
        return rm_compile_refuse(c, "units must be from 1 to %u", RM_UNITS_MAX);
    uint32_t in = c->place.form.features;
    struct rm_step *s =
        rm_compile_step(c, RM_STEP_LINEAR, rm_vector_form(c->place.form, layer->units));
    rm_compile_product(c, s, "", in, layer->units, layer->type == RM_LAYER_NOISY_LINEAR);
    return 0;
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const struct rm_net_product *m = &s->product[0];
    size_t n = rm_rows_of(p, &s->out);
    if (!b->pre) {
        rm_net_product_forward(p, m, &b->product[0], rows->x, n, s->act, rows->y);
        return;
    }
    float *pre = b->pre + rm_kept_at(p, &s->out) * s->out.features;
    rm_net_product_forward(p, m, &b->product[0], rows->x, n, RM_ACT_NONE, pre);
    p->ops->activate(p->b, s->act, pre, n * m->out, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    rm_step_through_activation(p, s, rows->own, rows->dy);
    rm_net_product_backward(p, &s->product[0], &rows->own->product[0], rows->x, rows->dy,
                            rm_rows_of(p, &s->out), rows->dx);
}

const struct rm_step_ops rm_linear_step = {
    .name = "linear", .by_row = true, .pre = true, .forward = forward, .backward = backward};
