/* Dropout (Srivastava et al., 2014), scaled in training. Whether a number is dropped is a function
 * of (seed, update, layer, position in the batch), so the backward pass repeats the draws of the
 * forward pass, and the cut of the rows does not matter. */
#include "learner/net/steps/steps.h"

int rm_compile_dropout(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    if (!(layer->rate >= 0 && layer->rate < 1))
        return rm_compile_refuse(c, "rate must be from 0 to below 1");
    rm_compile_step(c, RM_STEP_DROPOUT, c->place.form);
    return 0;
}

/* y = x with some numbers dropped. */
static void drop(const struct rm_pass *p, const struct rm_step *s, const float *x, float *y)
{
    const struct rm_net_input *in = p->input;
    const struct rm_dropout d = rm_dropout_of(in->dropout_seed, RM_STREAM_DROPOUT, s->number,
                                              in->dropout_update, s->layer.rate);
    const size_t n = rm_rows_of(p, &s->out) * s->out.features;
    const size_t state =
        (size_t)s->out.tokens * (s->out.per_quantile ? in->quantiles : 1) * s->out.features;
    const uint32_t first = p->first + in->rows_before;
    if (!in->dropout_update || p->w->use == RM_NET_ACT) {
        rm_copy_floats(p, y, x, n);
    } else if (s->out.queries) { /* a history's draws do not depend on the length of others */
        const struct rm_spans of = rm_span_rows(p, &s->out);
        p->ops->span_dropout(p->b, &d, &of, first, s->out.features, x, y);
    } else {
        p->ops->dropout(p->b, &d, first * state, n, x, y);
    }
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    drop(p, s, rows->x, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    if (rows->dx)
        drop(p, s, rows->dy, rows->dx);
}

const struct rm_step_ops rm_dropout_step = {
    .name = "dropout", .forward = forward, .backward = backward};
