/* Adds the input of the preceding layers (He et al., 2016). */
#include "learner/net/steps/steps.h"

static struct rm_net_place queries_of(struct rm_compiler *c, struct rm_net_place history)
{
    const struct rm_net_place now = c->place;
    c->place = history;
    rm_compile_queries(c);
    history = c->place;
    c->place = now;
    return history;
}

int rm_compile_residual(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    if (layer->span == 0 || layer->span > c->layer)
        return rm_compile_refuse(c, "cannot bridge %u layers; before it there are %u", layer->span,
                                 c->layer);
    struct rm_net_place from = c->before[c->layer - layer->span];
    const struct rm_row_form *now = &c->place.form, *then = &from.form;
    if (then->queries && !now->queries && now->tokens == then->queries)
        from = queries_of(c, from); /* over a history's last attention */
    if (c->codes && c->layer == layer->span && c->layers[0].type == RM_LAYER_EMBEDDING)
        return rm_compile_refuse(
            c, "cannot bridge an embedding: its input is codes, to which nothing can be added");
    if (now->per_quantile != then->per_quantile)
        return rm_compile_refuse(c, "cannot bridge a cosine_embedding, which multiplies the rows");
    if (now->features != then->features || now->tokens != then->tokens)
        return rm_compile_refuse(c,
                                 "adds what went into network layer %u, %u x %u numbers, to %u x "
                                 "%u; both must have the same shape",
                                 c->layer - layer->span, then->tokens, then->features, now->tokens,
                                 now->features);
    struct rm_step *s = rm_compile_step(c, RM_STEP_RESIDUAL, *now);
    s->other = from.at;
    s->trains |= from.at < c->net->step_count && c->net->steps[from.at].trains;
    return 0;
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    p->ops->add(p->b, rows->x, rows->other, rm_rows_of(p, &s->out) * s->out.features, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    size_t n = rm_rows_of(p, &s->out) * s->out.features;
    if (rows->dx)
        rm_copy_floats(p, rows->dx, rows->dy, n);
    if (rows->d_other)
        rm_copy_floats(p, rows->d_other, rows->dy, n);
}

const struct rm_step_ops rm_residual_step = {
    .name = "residual", .by_row = true, .forward = forward, .backward = backward};
