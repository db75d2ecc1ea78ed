/* Real actions: appends the logarithms of a policy's deviations to its means, and the action to the
 * features that a network of values computes from the observation. */
#include "learner/net/steps/steps.h"

#include <math.h>

/* --- deviations that are parameters ---------------------------------------------------------- */

enum kept { REPEATED, D_REPEATED, ZEROS, MEAN, RSTD, D_ZEROS };

void rm_compile_deviation(struct rm_compiler *c)
{
    struct rm_row_form out = c->place.form;
    const uint32_t reals = c->net->shape.reals;
    out.features += reals;
    struct rm_step *s = rm_compile_step(c, RM_STEP_DEVIATION, out);
    s->bias = rm_compile_vector(c, "log_deviation", reals);
}

static bool deviation_buffers(struct rm_net_workspace *w, const struct rm_step *s,
                              struct rm_step_buffers *b)
{
    const size_t rows = rm_workspace_rows_held(w, s, &s->out), reals = w->net->shape.reals;
    return rm_workspace_want(w, true, &b->kept[REPEATED], rows * reals) &&
           rm_workspace_want(w, w->training, &b->kept[D_REPEATED], rows * reals) &&
           rm_workspace_want(w, true, &b->kept[ZEROS], reals) &&
           rm_workspace_want(w, true, &b->kept[MEAN], rows) &&
           rm_workspace_want(w, true, &b->kept[RSTD], rows) &&
           rm_workspace_want(w, w->training, &b->kept[D_ZEROS], reals);
}

/* A layer norm whose scale is zero is its shift alone, in every row, and the gradient of that is
 * the sum over rows: so no backend needs an operation for it. What it normalises is the head's
 * result, which has as many numbers or more. */
static void deviate(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const uint32_t reals = p->w->net->shape.reals;
    const size_t n = rm_rows_of(p, &s->out), at = rm_kept_at(p, &s->out);
    p->ops->layer_norm(p->b, rows->x, b->kept[ZEROS], p->params + s->bias, (uint32_t)n, reals,
                       b->kept[REPEATED] + at * reals, b->kept[MEAN] + at, b->kept[RSTD] + at);
    p->ops->join(p->b, rows->x, b->kept[REPEATED] + at * reals, n, s->in.features, reals, rows->y);
}

static void deviate_back(const struct rm_pass *p, const struct rm_step *s,
                         const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const uint32_t reals = p->w->net->shape.reals;
    const size_t n = rm_rows_of(p, &s->out);
    p->ops->split(p->b, rows->dy, n, s->in.features, reals, rows->dx, b->kept[D_REPEATED]);
    p->ops->layer_norm_dx(p->b, rows->x, b->kept[ZEROS], b->kept[MEAN], b->kept[RSTD],
                          b->kept[D_REPEATED], (uint32_t)n, reals, NULL, b->kept[D_ZEROS],
                          p->grads + s->bias);
}

static void deviation_init(const struct rm_net *net, const struct rm_step *s, float *params,
                           struct rm_rng *rng)
{
    (void)rng;
    rm_init_fill(params + s->bias, net->shape.reals, log(net->config.first_deviation));
}

const struct rm_step_ops rm_deviation_step = {.name = "deviation",
                                              .by_row = true,
                                              .buffers = deviation_buffers,
                                              .forward = deviate,
                                              .backward = deviate_back,
                                              .init = deviation_init};

/* --- the action as an input ------------------------------------------------------------------ */

void rm_compile_action(struct rm_compiler *c)
{
    struct rm_step *s =
        rm_compile_step(c, RM_STEP_ACTION,
                        rm_vector_form(c->place.form, c->place.form.features + c->net->shape.acts));
    s->trains = true; /* its own gradient is asked for */
}

static void act(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const uint32_t acts = p->w->net->shape.acts;
    p->ops->join(p->b, rows->x, p->input->action + (size_t)p->first * acts, rm_rows_of(p, &s->out),
                 s->in.features, acts, rows->y);
}

static void act_back(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    if (rows->dx || p->input->d_action)
        p->ops->split(p->b, rows->dy, rm_rows_of(p, &s->out), s->in.features, p->w->net->shape.acts,
                      rows->dx, p->input->d_action);
}

const struct rm_step_ops rm_action_step = {.name = "action", .forward = act, .backward = act_back};
