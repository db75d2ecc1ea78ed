/* A number of each row becomes zeros and a one: y = (the other numbers, [x == 0], [x == 1], ..). */
#include "learner/net/steps/steps.h"

int rm_compile_one_hot(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    const struct rm_row_form form = c->place.form;
    if (layer->column >= form.features)
        return rm_compile_refuse(c, "column %u of %u numbers, which are counted from 0",
                                 layer->column, form.features);
    if (layer->codes == 0 || form.features - 1 + layer->codes > RM_UNITS_MAX)
        return rm_compile_refuse(c, "rows of %u numbers; at most %u are possible",
                                 form.features - 1 + layer->codes, RM_UNITS_MAX);
    if (rm_compile_trains(c->net, c->place.at))
        return rm_compile_refuse(c, "reads the world's numbers: no layer with parameters may stand "
                                    "before it");
    rm_compile_step(c, RM_STEP_ONE_HOT, rm_vector_form(form, form.features - 1 + layer->codes));
    return 0;
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    p->ops->one_hot(p->b, rows->x, rm_rows_of(p, &s->out), s->in.features, s->layer.column,
                    s->layer.codes, rows->y);
}

/* What it reads is not trained. */
static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    (void)p;
    (void)s;
    (void)rows;
}

const struct rm_step_ops rm_one_hot_step = {
    .name = "one_hot", .by_row = true, .forward = forward, .backward = backward};
