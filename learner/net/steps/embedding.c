/* Whole numbers to rows of a table. An observation of n numbers is n tokens; one of (.., n, m) is
 * tokens of m numbers, whose rows are added up.
 *
 * With columns, the numbers of a token form groups, such as (relation, head, tail). The first
 * column may have a table of its own, and the last may be subtracted, as in the translation from
 * head to tail of Bordes et al. (2013). Then a number that is 0 adds nothing. */
#include "learner/net/steps/steps.h"

#include <math.h>
#include <string.h>

#define CODES_MAX (1u << 24)

/* Number of the world's codes; 0 if its bounds do not say. */
static uint32_t codes_of(const struct rm_net_observation *of)
{
    double codes = of->high - of->low + 1;
    return codes >= 1 && codes <= CODES_MAX && floor(codes) == codes ? (uint32_t)codes : 0;
}

static int32_t lowest(const struct rm_net_observation *of)
{
    return fabs(of->low) < CODES_MAX ? (int32_t)floor(of->low) : 0;
}

int rm_compile_embedding(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    struct rm_net *net = c->net;
    const struct rm_net_observation *of = &c->now;
    uint32_t codes = layer->codes ? layer->codes : codes_of(of);
    if (net->config.normalize_observations)
        return rm_compile_refuse(c, "takes whole numbers as they are; "
                                    "network.normalize_observations must be off");
    if (c->input ? c->input->is_group : net->shape.observations > 0)
        return rm_compile_refuse(c, "reads the numbers of one observation, but the world has "
                                    "several; put it first in the list of an observation");
    if (c->layer > 0 || !rm_compile_reads_input(c))
        return rm_compile_refuse(c, "must be the first layer: it takes the observation's numbers");
    if (c->value && !c->codes)
        return rm_compile_refuse(c, "network.layers must begin with an embedding too, because both "
                                    "read the same observation");
    if (layer->units == 0 || layer->units > RM_UNITS_MAX)
        return rm_compile_refuse(c, "units must be from 1 to %u", RM_UNITS_MAX);
    if (codes == 0 || codes > CODES_MAX)
        return rm_compile_refuse(
            c,
            "the world's numbers go from %g to %g, which gives no size of a table; give \"codes\"",
            of->low, of->high);
    /* In groups the largest number may be of the first column. */
    if (codes < codes_of(of) && layer->first_codes < codes_of(of))
        return rm_compile_refuse(
            c, "the world's numbers go from %g to %g; a table of %u codes is too small", of->low,
            of->high, codes);
    uint32_t tokens = rm_tokens_of_codes(layer, of), columns = layer->columns;
    if (columns && (tokens == 0 || of->words % tokens || of->words / tokens % columns))
        return rm_compile_refuse(c, "%u numbers cannot be divided into groups of %u", of->words,
                                 columns);
    if (columns && of->low < 0)
        return rm_compile_refuse(c, "groups need numbers from 0 on; the world's begin at %g",
                                 of->low);
    if (!columns && (layer->first_codes || layer->difference))
        return rm_compile_refuse(c, "first_codes and difference are for groups; give \"columns\"");
    struct rm_row_form out = {
        .features = layer->units, .tokens = tokens, .padded = c->place.form.padded};
    c->codes = net->takes_codes = true;
    struct rm_step *s = rm_compile_step(c, RM_STEP_EMBEDDING, out);
    s->layer.codes = codes;
    s->lowest = lowest(of);
    if (layer->first_codes)
        s->bias = rm_compile_tensor(c, "first", RM_TENSOR_TRAINED | RM_TENSOR_TABLE, 2,
                                    (const uint32_t[]){layer->first_codes, layer->units});
    s->weight = rm_compile_tensor(c, "weight", RM_TENSOR_TRAINED | RM_TENSOR_TABLE, 2,
                                  (const uint32_t[]){codes, layer->units});
    return 0;
}

/* What a step's input has for each token that it makes. */
static uint32_t numbers_of(const struct rm_step *s)
{
    return s->in.features * s->in.tokens / s->out.tokens;
}

static struct rm_embedding shape_of(const struct rm_pass *p, const struct rm_step *s)
{
    return (struct rm_embedding){.rows = (uint32_t)rm_rows_of(p, &s->out),
                                 .numbers = numbers_of(s),
                                 .codes = s->layer.codes,
                                 .units = s->out.features,
                                 .lowest = s->lowest};
}

/* The first column's table has the place of a bias. */
static struct rm_relations relations_of(const struct rm_step *s)
{
    return (struct rm_relations){.numbers = numbers_of(s),
                                 .columns = s->layer.columns,
                                 .codes = s->layer.codes,
                                 .first_codes = s->layer.first_codes,
                                 .units = s->out.features,
                                 .difference = s->layer.difference};
}

static void forward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const int32_t *codes = (const int32_t *)(const void *)rows->x;
    const struct rm_embedding e = shape_of(p, s);
    const struct rm_relations r = relations_of(s);
    if (s->layer.columns)
        p->ops->relate(p->b, &r, codes, r.first_codes ? p->params + s->bias : NULL,
                       p->params + s->weight, e.rows, rows->y);
    else
        p->ops->embed(p->b, &e, codes, p->params + s->weight, rows->y);
}

/* Other gradients than those of the last pass are not known: all of their rows are cleared. */
void rm_embedding_touched(const struct rm_pass *p, const struct rm_step *s,
                          const struct rm_token_part *parts, uint32_t count)
{
    const struct rm_relations r = relations_of(s);
    struct rm_net_workspace *w = p->w;
    struct rm_touched *t = &w->touched;
    float *tables = p->grads + w->touched_at;
    if (w->touched_grads != p->grads) {
        p->ops->fill(p->b, 0.0f, (size_t)t->total * t->units, tables);
        rm_touched_forget(t);
    }
    w->touched_grads = p->grads;
    p->ops->relate_touched(p->b, &r, parts, count, t, tables);
}

void rm_embedding_list(struct rm_backend *b, const struct rm_step *s,
                       const struct rm_token_part *part, struct rm_touched *touched)
{
    const struct rm_relations r = relations_of(s);
    b->ops->list_touched(b, &r, part, touched);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    const int32_t *codes = (const int32_t *)(const void *)rows->x;
    const struct rm_embedding e = shape_of(p, s);
    const struct rm_relations r = relations_of(s);
    if (p->w->touched.rows)
        rm_embedding_touched(
            p, s, &(struct rm_token_part){.codes = codes, .dy = rows->dy, .rows = e.rows}, 1);
    else if (s->layer.columns)
        p->ops->relate_dw(p->b, &r, codes, rows->dy, e.rows,
                          r.first_codes ? p->grads + s->bias : NULL, p->grads + s->weight);
    else
        p->ops->embed_dw(p->b, &e, codes, rows->dy, p->grads + s->weight);
}

static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    const size_t features = s->out.features;
    const double deviation = s->layer.deviation > 0 ? s->layer.deviation : 1;
    (void)net;
    rm_init_fill_normal(params + s->weight, s->layer.codes * features, deviation, rng);
    rm_init_fill_normal(params + s->bias, s->layer.first_codes * features, deviation, rng);
}

const struct rm_step_ops rm_embedding_step = {
    .name = "embedding", .by_row = true, .forward = forward, .backward = backward, .init = init};
