/* Tokens: rows of an observation. If a network has layers that read across tokens, padding has no
 * rows from the start: after `tokens` or an embedding only rows of other tokens exist, sample by
 * sample (see spans.c). This file: removing padding, mean, the first token of each sample, scores
 * against it, and tokens side by side again. */
#include "learner/net/steps/steps.h"

#include <math.h>

static struct rm_row_form state_form(const struct rm_row_form *like, uint32_t features)
{
    struct rm_row_form form = rm_vector_form(*like, features);
    form.tokens = 1;
    form.padded = form.queries = 0;
    return form;
}

/* Tokens of an observation: each number; for a shape (.., m), each m numbers; with columns, the
 * elements of the first dimension, or each group if there is one dimension. */
uint32_t rm_tokens_of_codes(const struct rm_layer_config *layer,
                            const struct rm_net_observation *of)
{
    if (layer->columns)
        return of->dims > 1 ? of->dim[0] : of->words / layer->columns;
    uint32_t last = of->dims > 1 && of->dims <= 4 ? of->dim[of->dims - 1] : 1;
    return last && of->words % last == 0 ? of->words / last : of->words;
}

/* --- removing padding ------------------------------------------------------------------------ */

/* Turns (tokens, features) side by side into rows. */
void rm_compile_tokens(struct rm_compiler *c, const struct rm_token_set *set)
{
    struct rm_net *net = c->net;
    struct rm_row_form out = {.features =
                                  c->place.form.features * c->place.form.tokens / set->tokens,
                              .tokens = set->tokens,
                              .padded = net->set_count + 1};
    net->sets[net->set_count++] = *set;
    rm_compile_step(c, RM_STEP_TOKENS, out);
}

static void leave_out(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_spans of = rm_span_rows(p, &s->out);
    p->ops->spread_dx(p->b, &of, rows->x, s->out.features, rows->y);
}

/* The gradients of an observation and of its moments are not needed. */
static void leave_out_back(const struct rm_pass *p, const struct rm_step *s,
                           const struct rm_rows *rows)
{
    const struct rm_spans of = rm_span_rows(p, &s->out);
    if (rows->dx)
        p->ops->spread(p->b, &of, rows->dy, s->out.features, rows->dx);
}

const struct rm_step_ops rm_tokens_step = {
    .name = "tokens", .by_state = true, .forward = leave_out, .backward = leave_out_back};

/* --- side by side again, zeros for padding --------------------------------------------------- */

void rm_compile_spread(struct rm_compiler *c)
{
    const struct rm_row_form in = c->place.form;
    if (in.padded)
        rm_compile_step(c, RM_STEP_SPREAD, state_form(&in, in.features * in.tokens));
}

static void spread(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_spans of = rm_span_rows(p, &s->in);
    p->ops->spread(p->b, &of, rows->x, s->in.features, rows->y);
}

static void spread_back(const struct rm_pass *p, const struct rm_step *s,
                        const struct rm_rows *rows)
{
    const struct rm_spans of = rm_span_rows(p, &s->in);
    if (rows->dx)
        p->ops->spread_dx(p->b, &of, rows->dy, s->in.features, rows->dx);
}

const struct rm_step_ops rm_spread_step = {
    .name = "spread", .by_state = true, .forward = spread, .backward = spread_back};

/* --- the mean, or the first ------------------------------------------------------------------ */

int rm_compile_mean_pool(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    (void)layer;
    if (!c->place.form.padded)
        return rm_compile_refuse(c, "needs tokens: observations of (tokens, features), or an "
                                    "embedding before it");
    rm_compile_step(c, RM_STEP_MEAN_POOL, state_form(&c->place.form, c->place.form.features));
    return 0;
}

/* The first token of each sample, which is never padding if there is a pointer. */
void rm_compile_first(struct rm_compiler *c)
{
    rm_compile_step(c, RM_STEP_FIRST, state_form(&c->place.form, c->place.form.features));
}

static void one(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_spans of = rm_span_rows(p, &s->in);
    p->ops->span_one(p->b, &of, rows->x, s->out.features, s->kind == RM_STEP_MEAN_POOL, rows->y);
}

static void one_back(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_spans of = rm_span_rows(p, &s->in);
    if (rows->dx)
        p->ops->span_one_dx(p->b, &of, rows->dy, s->out.features, s->kind == RM_STEP_MEAN_POOL,
                            rows->dx);
}

const struct rm_step_ops rm_mean_pool_step = {
    .name = "mean_pool", .by_state = true, .forward = one, .backward = one_back};
const struct rm_step_ops rm_first_step = {
    .name = "first", .by_state = true, .forward = one, .backward = one_back};

/* --- pointer --------------------------------------------------------------------------------- */

enum kept { ITEMS, D_ITEMS };

/* Candidate i, token i + 1, scores <f(first), f(candidate)> / sqrt(units), where f is the layer's
 * product (Vinyals et al., 2015, with the dot product of Vaswani et al., 2017). Candidates that are
 * padding score 0: the mask of actions is to exclude them. */
int rm_compile_pointer(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    const struct rm_row_form form = c->place.form;
    uint32_t actions = c->net->shape.actions;
    if (c->layer + 1 != c->layer_count || c->value || c->input)
        return rm_compile_refuse(c, "must be the last layer of the policy or of the action values");
    if (!form.padded)
        return rm_compile_refuse(c, "needs tokens: observations of (tokens, features), or an "
                                    "embedding before it");
    if (form.tokens != actions + 1)
        return rm_compile_refuse(c,
                                 "%u tokens for %u actions; it needs one more than actions, the "
                                 "first for the state",
                                 form.tokens, actions);
    if (c->net->shape.outputs_per_action != 1)
        return rm_compile_refuse(c, "gives one score per action, no quantiles");
    if (layer->units == 0 || layer->units > RM_UNITS_MAX)
        return rm_compile_refuse(c, "units must be from 1 to %u", RM_UNITS_MAX);
    struct rm_step *s = rm_compile_step(c, RM_STEP_POINTER, state_form(&form, actions));
    rm_compile_product(c, s, "", form.features, layer->units, false);
    return 0;
}

static bool pointer_buffers(struct rm_net_workspace *w, const struct rm_step *s,
                            struct rm_step_buffers *b)
{
    size_t floats = rm_workspace_rows_held(w, s, &s->in) * s->product[0].out;
    return rm_workspace_want(w, true, &b->kept[ITEMS], floats) &&
           rm_workspace_want(w, w->training, &b->kept[D_ITEMS], floats);
}

static struct rm_pointer pointer_of(const struct rm_pass *p, const struct rm_step *s)
{
    uint32_t units = s->product[0].out;
    return (struct rm_pointer){.spans = rm_spans_of(p, &s->in),
                               .slots = rm_slots_of(p, &s->in),
                               .batch = p->states,
                               .units = units,
                               .outputs = s->out.features,
                               .scale = 1.0f / sqrtf((float)units),
                               .rows = (uint32_t)rm_rows_of(p, &s->in)};
}

static void point(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_pointer pointer = pointer_of(p, s);
    float *items = rows->own->kept[ITEMS] + rm_kept_at(p, &s->in) * pointer.units;
    rm_net_product_forward(p, &s->product[0], &rows->own->product[0], rows->x,
                           rm_rows_of(p, &s->in), RM_ACT_NONE, items);
    p->ops->pointer(p->b, &pointer, items, rows->y);
}

static void point_back(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    struct rm_step_buffers *b = rows->own;
    const struct rm_pointer pointer = pointer_of(p, s);
    p->ops->pointer_dx(p->b, &pointer, b->kept[ITEMS], rows->dy, b->kept[D_ITEMS]);
    rm_net_product_backward(p, &s->product[0], &b->product[0], rows->x, b->kept[D_ITEMS],
                            rm_rows_of(p, &s->in), rows->dx);
}

const struct rm_step_ops rm_pointer_step = {.name = "pointer",
                                            .by_state = true,
                                            .buffers = pointer_buffers,
                                            .forward = point,
                                            .backward = point_back};
