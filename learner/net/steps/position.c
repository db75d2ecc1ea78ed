/* Learned positions (Gehring et al., 2017): a table has a row for every place of an observation,
 * and each token gets the row of its place added. Attention alone cannot tell the order of tokens.
 * Padding counts as a place, so a token's place does not depend on the number of other tokens. */
#include "learner/net/steps/steps.h"

int rm_compile_position(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    const struct rm_row_form form = c->place.form;
    const uint32_t codes = layer->codes ? layer->codes : form.tokens;
    if (!form.padded)
        return rm_compile_refuse(c, "needs tokens: observations of (tokens, features), or an "
                                    "embedding before it");
    if (form.queries)
        return rm_compile_refuse(c, "a history has positions already");
    if (codes < form.tokens)
        return rm_compile_refuse(c, "a table of %u codes is too small for %u tokens", codes,
                                 form.tokens);
    struct rm_step *s = rm_compile_step(c, RM_STEP_POSITION, form);
    s->layer.codes = codes;
    s->weight = rm_compile_tensor(c, "weight", RM_TENSOR_TRAINED | RM_TENSOR_TABLE, 2,
                                  (const uint32_t[]){codes, form.features});
    return 0;
}

/* Rows of a table by their places, as an embedding of these. */
static struct rm_embedding places_of(const struct rm_pass *p, const struct rm_step *s)
{
    return (struct rm_embedding){.rows = (uint32_t)rm_rows_of(p, &s->in),
                                 .numbers = 1,
                                 .codes = s->layer.codes,
                                 .units = s->in.features};
}

static const int32_t *codes_of(const struct rm_pass *p, const struct rm_step *s)
{
    return (const int32_t *)(const void *)rm_slots_of(p, &s->in);
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_embedding e = places_of(p, s);
    p->ops->embed(p->b, &e, codes_of(p, s), p->params + s->weight, rows->y);
    p->ops->add(p->b, rows->x, rows->y, (size_t)e.rows * e.units, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const struct rm_embedding e = places_of(p, s);
    p->ops->embed_dw(p->b, &e, codes_of(p, s), rows->dy, p->grads + s->weight);
    if (rows->dx)
        rm_copy_floats(p, rows->dx, rows->dy, (size_t)e.rows * e.units);
}

static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    (void)net;
    rm_init_fill_normal(params + s->weight, (size_t)s->layer.codes * s->in.features,
                        s->layer.deviation > 0 ? s->layer.deviation : 0.02, rng);
}

const struct rm_step_ops rm_position_step = {
    .name = "position", .by_state = true, .forward = forward, .backward = backward, .init = init};
