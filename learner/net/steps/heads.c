/* Steps around the layers: dueling, logits joined with the value, normalised inputs. */
#include "learner/net/steps/steps.h"

/* --- dueling --------------------------------------------------------------------------------- */

static void duel(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_net_shape *shape = &p->w->net->shape;
    p->ops->dueling(p->b, rows->x, (uint32_t)rm_rows_of(p, &s->out), shape->actions,
                    shape->outputs_per_action, rows->y);
}

static void duel_back(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_net_shape *shape = &p->w->net->shape;
    p->ops->dueling_dx(p->b, rows->dy, (uint32_t)rm_rows_of(p, &s->out), shape->actions,
                       shape->outputs_per_action, rows->dx);
}

const struct rm_step_ops rm_dueling_step = {
    .name = "dueling", .by_row = true, .forward = duel, .backward = duel_back};

/* --- side by side ---------------------------------------------------------------------------- */

static void join(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    uint32_t left = s->in.features;
    p->ops->join(p->b, rows->x, rows->other, rm_rows_of(p, &s->out), left, s->out.features - left,
                 rows->y);
}

static void split(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    uint32_t left = s->in.features;
    if (!rows->dx && !rows->d_other)
        return;
    p->ops->split(p->b, rows->dy, rm_rows_of(p, &s->out), left, s->out.features - left, rows->dx,
                  rows->d_other);
}

const struct rm_step_ops rm_join_step = {
    .name = "join", .by_row = true, .forward = join, .backward = split};

/* --- normalised inputs ----------------------------------------------------------------------- */

static void normalize(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_net *net = p->w->net;
    p->ops->normalize(p->b, rows->x, p->params + net->input_mean, p->params + net->input_scale,
                      (float)net->config.observation_clip, rm_rows_of(p, &s->out), s->out.features,
                      rows->y);
}

/* Gradients do not move the moments: theirs are zeros, so that the arena's gradient is complete. */
static void normalize_back(const struct rm_pass *p, const struct rm_step *s,
                           const struct rm_rows *rows)
{
    const struct rm_net *net = p->w->net;
    (void)rows;
    p->ops->fill(p->b, 0.0f, s->out.features, p->grads + net->input_mean);
    p->ops->fill(p->b, 0.0f, s->out.features, p->grads + net->input_scale);
}

static void normalize_init(const struct rm_net *net, const struct rm_step *s, float *params,
                           struct rm_rng *rng)
{
    (void)rng;
    rm_init_fill(params + net->input_mean, s->out.features, 0.0);
    rm_init_fill(params + net->input_scale, s->out.features, 1.0);
}

const struct rm_step_ops rm_normalize_step = {.name = "normalize",
                                              .by_row = true,
                                              .forward = normalize,
                                              .backward = normalize_back,
                                              .init = normalize_init};
