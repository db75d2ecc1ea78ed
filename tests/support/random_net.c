#include "tests/support/random_net.h"

#include "shm/base/rng.h"

#include <stdio.h>
#include <string.h>

struct drawing {
    struct rm_rng rng;
    struct rm_layer_config *layers;
    uint32_t *count;
    uint32_t width; /* of the rows so far; 0: an image */
};

static uint32_t within(struct drawing *d, uint32_t least, uint32_t most)
{
    return least + rm_rng_below(&d->rng, most - least + 1);
}

static bool chance(struct drawing *d, uint32_t of_ten)
{
    return rm_rng_below(&d->rng, 10) < of_ten;
}

static struct rm_layer_config *add(struct drawing *d, enum rm_layer_type type)
{
    struct rm_layer_config *layer = &d->layers[(*d->count)++];
    *layer = (struct rm_layer_config){.type = type};
    return layer;
}

static void add_activation(struct drawing *d)
{
    static const enum rm_layer_type types[] = {RM_LAYER_RELU,   RM_LAYER_TANH, RM_LAYER_GELU,
                                               RM_LAYER_SILU,   RM_LAYER_ELU,  RM_LAYER_LEAKY_RELU,
                                               RM_LAYER_SIGMOID};
    add(d, types[rm_rng_below(&d->rng, sizeof types / sizeof types[0])]);
}

static void add_linear(struct drawing *d, uint32_t units, bool noisy)
{
    add(d, noisy ? RM_LAYER_NOISY_LINEAR : RM_LAYER_LINEAR)->units = units;
    d->width = units;
}

/* Some layers that take rows to rows, each with what belongs to it. */
static void add_blocks(struct drawing *d, uint32_t blocks, bool noisy)
{
    for (uint32_t i = 0; i < blocks; i++) {
        switch (d->width ? rm_rng_below(&d->rng, 5) : 4) {
        case 0: /* a residual block */
            add_linear(d, d->width, noisy);
            add_activation(d);
            if (chance(d, 5)) {
                add_linear(d, d->width, false);
                add(d, RM_LAYER_RESIDUAL)->span = 3;
            } else {
                add(d, RM_LAYER_RESIDUAL)->span = 2;
            }
            break;
        case 1:
            add(d, RM_LAYER_LAYER_NORM);
            add_activation(d);
            break;
        case 2:
            add_linear(d, within(d, 5, 34), noisy);
            add_activation(d);
            add(d, RM_LAYER_DROPOUT)->rate = 0.1 * within(d, 1, 4);
            break;
        case 3:
            add_activation(d);
            break;
        default:
            add_linear(d, within(d, 5, 34), noisy && chance(d, 5));
            add_activation(d);
            break;
        }
    }
}

static void add_images(struct drawing *d, struct rm_net_shape *shape)
{
    uint32_t c = within(d, 1, 4), h = within(d, 4, 8), w = within(d, 4, 8),
             layers = within(d, 1, 3);
    shape->dims = c == 1 && chance(d, 5) ? 2 : 3;
    for (uint32_t i = 0; i < shape->dims; i++)
        shape->dim[i] = (const uint32_t[]){c, h, w}[i + 3 - shape->dims];
    shape->inputs = c * h * w;
    d->width = 0;
    for (uint32_t i = 0; i < layers; i++) {
        struct rm_layer_config *conv = add(d, RM_LAYER_CONV2D);
        conv->units = within(d, 2, 20);
        conv->kernel = within(d, 1, 3);
        conv->stride = within(d, 1, 2);
        conv->padding = within(d, 1, 2);
        if (chance(d, 8))
            add_activation(d);
        if (i > 0 && chance(d, 3))
            add(d, RM_LAYER_LAYER_NORM);
    }
    if (chance(d, 4)) { /* as large as it was, and added to it */
        struct rm_layer_config *conv = add(d, RM_LAYER_CONV2D);
        *conv = (struct rm_layer_config){.type = RM_LAYER_CONV2D, .kernel = 3, .stride = 1};
        for (uint32_t i = 0; i + 1 < *d->count; i++)
            if (d->layers[i].type == RM_LAYER_CONV2D)
                conv->units = d->layers[i].units;
        conv->padding = 1;
        add(d, RM_LAYER_RESIDUAL)->span = 1;
    }
}

/* Whole numbers, one or several to a token; `more` tokens, or as many as drawn if 0. */
static void add_codes(struct drawing *d, struct rm_net_shape *shape, uint32_t tokens, bool zero)
{
    uint32_t numbers = within(d, 1, 3);
    tokens = tokens ? tokens : within(d, 2, 6);
    uint32_t columns = zero && chance(d, 4) ? within(d, 2, 3) : 0;
    shape->dims = columns ? 3 : numbers > 1 ? 2 : 1;
    shape->dim[0] = tokens;
    shape->dim[1] = numbers > 1 || columns ? numbers : 0;
    shape->dim[2] = columns;
    shape->inputs = tokens * numbers * (columns ? columns : 1);
    shape->low = zero ? 0 : (double)within(d, 0, 8) - 4;
    shape->high = shape->low + within(d, 1, 30);
    add(d, RM_LAYER_EMBEDDING)->units = d->width = within(d, 4, 20);
    if (chance(d, 3) || columns)
        d->layers[0].codes = 40;
    d->layers[0].columns = columns;
    d->layers[0].first_codes = columns && chance(d, 5) ? 35 : 0;
    d->layers[0].difference = columns && chance(d, 5);
}

static void add_tokens(struct drawing *d, struct rm_net_shape *shape, uint32_t tokens)
{
    shape->dims = 2;
    shape->dim[0] = tokens;
    shape->dim[1] = d->width = within(d, 3, 9);
    shape->inputs = tokens * d->width;
}

static void add_attention(struct drawing *d)
{
    if (chance(d, 5))
        add(d, RM_LAYER_POSITION);
    struct rm_layer_config *a = add(d, RM_LAYER_ATTENTION);
    a->heads = within(d, 1, 3);
    a->units = a->heads * within(d, 2, 6);
    a->causal = chance(d, 4);
    if (chance(d, 6))
        add(d, RM_LAYER_RESIDUAL)->span = 1;
    if (chance(d, 5))
        add(d, RM_LAYER_LAYER_NORM);
}

static void draw_head(struct drawing *d, struct named_net *of, bool value_layers)
{
    struct rm_network_config *c = &of->config;
    switch (rm_rng_below(&d->rng, 4)) {
    case 0:
        of->shape.head = RM_HEAD_LOGITS;
        break;
    case 1:
        c->dueling = chance(d, 5);
        of->shape.outputs_per_action = within(d, 1, 4);
        break;
    default:
        of->shape.head = RM_HEAD_ACTOR_CRITIC;
        c->trunk = chance(d, 4) ? RM_TRUNK_SHARED : RM_TRUNK_SEPARATE;
        if (value_layers && c->trunk == RM_TRUNK_SEPARATE && chance(d, 5)) {
            struct drawing own = {.rng = d->rng,
                                  .layers = c->value_layers,
                                  .count = &c->value_layer_count,
                                  .width = of->shape.inputs};
            add_blocks(&own, within(&own, 1, 3), of->noise);
            d->rng = own.rng;
        }
        break;
    }
}

static void draw_vector(struct drawing *d, struct named_net *of)
{
    of->shape.inputs = d->width = within(d, 2, 24);
    of->noise = chance(d, 4);
    of->config.noisy_head = of->noise && chance(d, 5);
    of->config.normalize_observations = chance(d, 4);
    add_blocks(d, within(d, 1, 4), of->noise);
    draw_head(d, of, true);
}

static void draw_critic(struct drawing *d, struct named_net *of)
{
    draw_vector(d, of);
    of->config.dueling = false;
    of->shape.outputs_per_action = 1;
    of->shape.head = RM_HEAD_ACTOR_CRITIC;
}

static void draw_image(struct drawing *d, struct named_net *of)
{
    add_images(d, &of->shape);
    add_blocks(d, within(d, 0, 2), false);
    draw_head(d, of, false);
}

static void draw_codes(struct drawing *d, struct named_net *of)
{
    add_codes(d, &of->shape, 0, false);
    add_blocks(d, within(d, 0, 2), false);
    draw_head(d, of, false);
}

static void draw_tokens(struct drawing *d, struct named_net *of)
{
    uint32_t tokens = within(d, 2, 6);
    if (chance(d, 5))
        add_codes(d, &of->shape, tokens, true);
    else
        add_tokens(d, &of->shape, tokens);
    add_linear(d, within(d, 4, 20), false);
    add_attention(d);
    if (chance(d, 5))
        add_attention(d);
    if (chance(d, 6))
        add(d, RM_LAYER_MEAN_POOL);
    draw_head(d, of, false);
}

static void draw_pointer(struct drawing *d, struct named_net *of)
{
    uint32_t tokens = of->shape.actions + 1;
    if (chance(d, 5))
        add_codes(d, &of->shape, tokens, true);
    else
        add_tokens(d, &of->shape, tokens);
    add_linear(d, within(d, 4, 20), false);
    add_activation(d);
    if (chance(d, 5))
        add_attention(d);
    add(d, RM_LAYER_POINTER)->units = within(d, 3, 12);
    if (chance(d, 7)) {
        of->shape.head = RM_HEAD_ACTOR_CRITIC;
        of->config.trunk = RM_TRUNK_SHARED;
    } else {
        of->shape.head = RM_HEAD_LOGITS;
    }
}

static void draw_recurrent(struct drawing *d, struct named_net *of)
{
    of->shape.inputs = d->width = within(d, 2, 12);
    of->batch = 12;
    of->config.normalize_observations = chance(d, 3);
    if (chance(d, 5))
        add_blocks(d, 1, false);
    add(d, chance(d, 5) ? RM_LAYER_GRU : RM_LAYER_LSTM)->units = d->width = within(d, 3, 20);
    if (chance(d, 4))
        add(d, chance(d, 5) ? RM_LAYER_GRU : RM_LAYER_LSTM)->units = d->width = within(d, 3, 12);
    if (chance(d, 5))
        add_blocks(d, 1, false);
    draw_head(d, of, false);
}

static void draw_quantiles(struct drawing *d, struct named_net *of)
{
    of->shape.inputs = d->width = within(d, 2, 24);
    of->noise = chance(d, 5);
    of->config.noisy_head = of->noise;
    of->config.dueling = chance(d, 5);
    of->quantiles = within(d, 1, 6);
    add_blocks(d, within(d, 0, 2), false);
    add(d, RM_LAYER_COSINE_EMBEDDING)->cosines = within(d, 3, 40);
    add_blocks(d, within(d, 0, 2), of->noise);
}

/* An input behind those that are there. */
static struct rm_input_config *add_input(struct rm_network_config *c, uint32_t group)
{
    struct rm_input_config *input = &c->inputs[c->input_count++];
    input->group = group;
    if (c->input_count > 1)
        input->first = input[-1].first + input[-1].layer_count;
    return input;
}

static struct drawing draw_layers(const struct drawing *d, struct rm_network_config *c,
                                  struct rm_input_config *input)
{
    return (struct drawing){
        .rng = d->rng, .layers = &c->input_layers[input->first], .count = &input->layer_count};
}

/* One observation of several, behind the others, and layers that make numbers of it, or tokens of
 * `width` numbers. Returns whether it is codes. */
static bool add_observation(struct drawing *d, struct named_net *of, uint32_t group, uint32_t width)
{
    struct rm_net_shape *row = &of->shape, own_row = {.inputs = 0};
    struct rm_net_observation *o = &row->observation[row->observations];
    struct rm_input_config *input = add_input(&of->config, group);
    struct drawing own = draw_layers(d, &of->config, input);
    const uint32_t kind = within(&own, width ? 1 : 0, 3);

    snprintf(o->name, sizeof o->name, "o%u", row->observations++);
    memcpy(input->name, o->name, sizeof input->name);
    if (kind == 0) {
        add_images(&own, &own_row);
    } else if (kind == 1) {
        own_row.dims = 1;
        own_row.inputs = own_row.dim[0] = own.width = within(&own, 1, 9);
        if (width || chance(&own, 5))
            add_linear(&own, width ? width : within(&own, 3, 12), false);
        if (!width && chance(&own, 4))
            add(&own, RM_LAYER_GRU)->units = within(&own, 3, 8);
    } else {
        if (kind == 2)
            add_codes(&own, &own_row, 0, false);
        else
            add_tokens(&own, &own_row, within(&own, 2, 5));
        o->counts = kind == 2 && own_row.dims == 3 ? 0 : within(&own, 0, 1);
        o->item = own_row.inputs / own_row.dim[0];
        add_linear(&own, width ? width : within(&own, 3, 12), false);
        if (!width)
            add(&own, RM_LAYER_MEAN_POOL);
    }
    if (chance(&own, 5))
        add_activation(&own);
    o->at = row->inputs;
    o->words = own_row.inputs;
    o->dims = own_row.dims;
    memcpy(o->dim, own_row.dim, sizeof o->dim);
    o->low = own_row.low;
    o->high = own_row.high;
    row->inputs += o->counts + o->words;
    d->rng = own.rng;
    return kind == 2;
}

/* A group, whose layers make numbers of its inputs, or tokens of `width` numbers. Returns the width
 * of its inputs if they are tokens, else 0. */
static uint32_t add_group(struct drawing *d, struct named_net *of, uint32_t group, uint32_t width)
{
    struct rm_network_config *c = &of->config;
    struct rm_input_config *input = add_input(c, group);
    struct drawing own = draw_layers(d, c, input);
    const uint32_t each = chance(&own, 6) ? within(&own, 4, 12) : 0;
    snprintf(input->name, sizeof input->name, "g%u", c->input_count);
    input->is_group = true;
    own.width = each;
    if (each) {
        input->combine = RM_COMBINE_TOKENS;
        add_attention(&own);
        if (chance(&own, 6))
            add(&own, RM_LAYER_MEAN_POOL);
    }
    if (width || chance(&own, 5))
        add_linear(&own, width ? width : within(&own, 3, 12), false);
    if (chance(&own, 5))
        add_activation(&own);
    d->rng = own.rng;
    return each;
}

static void draw_inputs(struct drawing *d, struct named_net *of)
{
    struct rm_network_config *c = &of->config;
    const uint32_t observations = within(d, 2, 4), width = chance(d, 4) ? within(d, 4, 12) : 0;
    struct rm_rng copy = d->rng;
    /* The second group may be in the first. Their number is drawn apart: without groups all other
     * draws are the same. */
    struct drawing apart = {.rng = rm_rng_at(4, RM_STREAM_TEST, rm_rng_below(&copy, 1 << 16), 2)};
    const uint32_t most = within(&apart, 0, 2);
    uint32_t widths[3] = {width};
    bool codes = false;
    of->batch = 12; /* whole steps, if an input remembers */
    for (uint32_t g = 1; g <= most; g++) {
        const uint32_t outer = g == 2 ? within(d, 0, 1) : 0;
        widths[g] = add_group(d, of, outer, widths[outer]);
    }
    for (uint32_t i = 0; i < observations || i < most; i++) { /* no group is empty */
        const uint32_t group = i < most ? most - i : most ? within(d, 0, most) : 0;
        codes |= add_observation(d, of, group, widths[group]);
    }
    d->width = width;
    if (width) {
        c->combine = RM_COMBINE_TOKENS;
        add_attention(d);
        if (chance(d, 6))
            add(d, RM_LAYER_MEAN_POOL);
    } else {
        c->normalize_observations = !codes && chance(d, 5);
        add_blocks(d, within(d, 1, 3), false);
    }
    draw_head(d, of, false);
}

static const struct {
    const char *name;
    void (*draw)(struct drawing *d, struct named_net *of);
} kinds[RANDOM_NET_KINDS] = {
    {"vector", draw_vector},       {"critic", draw_critic},      {"image", draw_image},
    {"codes", draw_codes},         {"tokens", draw_tokens},      {"pointer", draw_pointer},
    {"recurrent", draw_recurrent}, {"quantile", draw_quantiles}, {"inputs", draw_inputs}};

void random_net_draw(uint32_t number, struct random_net *net)
{
    struct named_net *of = &net->of;
    *net = (struct random_net){.of = {.name = net->name}};
    struct drawing d = {.rng = rm_rng_at(4, RM_STREAM_TEST, number, 1),
                        .layers = of->config.layers,
                        .count = &of->config.layer_count};
    snprintf(net->name, sizeof net->name, "random %u, %s", number,
             kinds[number % RANDOM_NET_KINDS].name);
    of->batch = within(&d, 3, 12);
    of->shape.actions = within(&d, 2, 6);
    of->shape.outputs_per_action = 1;
    of->config.noise = chance(&d, 5) ? RM_NOISE_FACTORISED : RM_NOISE_INDEPENDENT;
    of->config.sigma0 = 0.3;
    of->config.observation_clip = 1.5;
    kinds[number % RANDOM_NET_KINDS].draw(&d, of);
}
