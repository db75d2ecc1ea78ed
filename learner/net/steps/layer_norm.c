/* Layer norm (Ba et al., 2016): each row to mean 0 and deviation 1, then scale and shift. */
#include "learner/net/steps/steps.h"

enum kept { MEAN, RSTD };

int rm_compile_layer_norm(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    (void)layer;
    struct rm_step *s = rm_compile_step(c, RM_STEP_LAYER_NORM, c->place.form);
    s->weight = rm_compile_vector(c, "weight", s->out.features);
    s->bias = rm_compile_vector(c, "bias", s->out.features);
    return 0;
}

static bool buffers(struct rm_net_workspace *w, const struct rm_step *s, struct rm_step_buffers *b)
{
    size_t rows = rm_workspace_rows_held(w, s, &s->out);
    return rm_workspace_want(w, true, &b->kept[MEAN], rows) &&
           rm_workspace_want(w, true, &b->kept[RSTD], rows);
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    size_t at = rm_kept_at(p, &s->out);
    p->ops->layer_norm(p->b, rows->x, p->params + s->weight, p->params + s->bias,
                       (uint32_t)rm_rows_of(p, &s->out), s->out.features, rows->y,
                       rows->own->kept[MEAN] + at, rows->own->kept[RSTD] + at);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    p->ops->layer_norm_dx(p->b, rows->x, p->params + s->weight, rows->own->kept[MEAN],
                          rows->own->kept[RSTD], rows->dy, (uint32_t)rm_rows_of(p, &s->out),
                          s->out.features, rows->dx, p->grads + s->weight, p->grads + s->bias);
}

static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    (void)net;
    (void)rng;
    rm_init_fill(params + s->weight, s->out.features, 1.0);
    rm_init_fill(params + s->bias, s->out.features, 0.0);
}

const struct rm_step_ops rm_layer_norm_step = {.name = "layer_norm",
                                               .by_row = true,
                                               .buffers = buffers,
                                               .forward = forward,
                                               .backward = backward,
                                               .init = init};
