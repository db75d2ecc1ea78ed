/* Whole numbers to rows of a table. An observation of n numbers is n tokens; one of (.., n, m) is
 * tokens of m numbers, whose rows are added up. */
#include "learner/net/steps/steps.h"

#include <math.h>

#define CODES_MAX (1u << 24)

/* How many codes the world has; 0 if its bounds do not say. */
static uint32_t codes_of(const struct rm_net_shape *shape)
{
    double codes = shape->high - shape->low + 1;
    return codes >= 1 && codes <= CODES_MAX && floor(codes) == codes ? (uint32_t)codes : 0;
}

static int32_t lowest(const struct rm_net_shape *shape)
{
    return fabs(shape->low) < CODES_MAX ? (int32_t)floor(shape->low) : 0;
}

int rm_compile_embedding(struct rm_compiler *c, const struct rm_layer_config *layer)
{
    struct rm_net *net = c->net;
    const struct rm_net_shape *shape = &net->shape;
    uint32_t codes = layer->codes ? layer->codes : codes_of(shape);
    if (net->config.normalize_observations)
        return rm_compile_refuse(c, "takes whole numbers as they are; "
                                    "network.normalize_observations must be off");
    if (c->layer > 0 || !rm_compile_reads_input(c))
        return rm_compile_refuse(c, "must be the first layer: it takes the observation's numbers");
    if (c->value && !net->takes_codes)
        return rm_compile_refuse(c, "network.layers begins with none, and both read the same "
                                    "observation");
    if (layer->units == 0 || layer->units > RM_UNITS_MAX)
        return rm_compile_refuse(c, "units must be from 1 to %u", RM_UNITS_MAX);
    if (codes == 0 || codes > CODES_MAX)
        return rm_compile_refuse(c,
                                 "the world's numbers go from %g to %g, which is no table; give "
                                 "\"codes\"",
                                 shape->low, shape->high);
    struct rm_row_form out = {.features = layer->units,
                              .tokens = rm_tokens_of_codes(shape),
                              .padded = net->input_tokens > 0};
    net->takes_codes = true;
    struct rm_step *s = rm_compile_step(c, RM_STEP_EMBEDDING, out);
    s->layer.codes = codes;
    s->weight = rm_compile_tensor(c, "weight", RM_TENSOR_TRAINED, 2,
                                  (const uint32_t[]){codes, layer->units});
    return 0;
}

static struct rm_embedding shape_of(const struct rm_pass *p, const struct rm_step *s)
{
    const struct rm_net_shape *shape = &p->w->net->shape;
    return (struct rm_embedding){.rows = (uint32_t)rm_rows_of(p, &s->out),
                                 .numbers = shape->inputs / s->out.tokens,
                                 .codes = s->layer.codes,
                                 .units = s->out.features,
                                 .lowest = lowest(shape)};
}

static void forward(const struct rm_pass *p, const struct rm_step *s, struct rm_step_buffers *b,
                    const struct rm_rows *rows)
{
    const struct rm_embedding e = shape_of(p, s);
    (void)b;
    p->ops->embed(p->b, &e, (const int32_t *)(const void *)rows->x, p->params + s->weight, rows->y);
}

static void backward(const struct rm_pass *p, const struct rm_step *s, struct rm_step_buffers *b,
                     const struct rm_rows *rows)
{
    const struct rm_embedding e = shape_of(p, s);
    (void)b;
    p->ops->embed_dw(p->b, &e, (const int32_t *)(const void *)rows->x, rows->dy,
                     p->grads + s->weight);
}

static void init(const struct rm_net *net, const struct rm_step *s, float *params,
                 struct rm_rng *rng)
{
    size_t n = (size_t)s->layer.codes * s->out.features;
    (void)net;
    for (size_t i = 0; i < n; i++)
        params[s->weight + i] = (float)rm_init_normal(rng);
}

const struct rm_step_ops rm_embedding_step = {
    .name = "embedding", .by_row = true, .forward = forward, .backward = backward, .init = init};
