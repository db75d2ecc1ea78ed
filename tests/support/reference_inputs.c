/* Several observations in reference_net: each through its own layers, then combined, first in
 * groups and then all. */
#include "config/traits.h"
#include "tests/support/reference_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The index of an input's observation, of a group that of its first. */
static uint32_t order_of(const struct reference_walk *w, uint32_t input)
{
    const struct rm_input_config *inputs = w->config->inputs;
    uint32_t order = 0;
    if (!inputs[input].is_group) {
        while (strcmp(w->shape->observation[order].name, inputs[input].name) != 0)
            order++;
        return order;
    }
    order = UINT32_MAX;
    for (uint32_t i = 0; i < w->config->input_count; i++)
        if (inputs[i].group == input + 1 && order_of(w, i) < order)
            order = order_of(w, i);
    return order;
}

/* Tokens of an observation, 0: none. */
static size_t tokens_of(const struct reference_walk *s, const struct rm_net_observation *o)
{
    const struct rm_network_config *c = s->config;
    const enum rm_layer_type first = c->layer_count ? c->layers[0].type : RM_LAYER_TYPE_COUNT;
    const bool codes = first == RM_LAYER_EMBEDDING;
    if (c->combine != RM_COMBINE_TOKENS && !reference_looks_across(c, false) &&
        !(codes && o->counts))
        return 0;
    return (codes || o->dims > 1 || (o->dims == 1 && o->counts)) && first != RM_LAYER_CONV2D
               ? o->dim[0]
               : 0;
}

/* Which tokens are there: by what was seen, before it was normalised. */
static uint8_t *find(const struct reference_walk *w, const struct rm_net_observation *o,
                     size_t tokens)
{
    const size_t n = o->words / tokens, states = w->input->batch;
    uint8_t *valid = calloc(states, tokens);
    for (size_t s = 0; s < states; s++)
        for (size_t t = 0; t < tokens; t++) {
            const double *row = w->input->x + s * w->shape->inputs + o->at;
            const size_t of_frame = o->counts ? tokens / o->counts : tokens;
            uint8_t *there = &valid[s * tokens + t];
            if (o->counts) {
                *there = (double)(t % of_frame * n) < row[t / of_frame] * o->item;
                continue;
            }
            for (size_t i = 0; i < n; i++)
                *there |= row[t * n + i] != 0;
        }
    return valid;
}

static struct rm_network_config config; /* as if the layers of an input were the network */
static struct rm_net_shape shape;       /* of its observation */

static void walk_layers(struct reference_walk *w, struct reference_walk *s,
                        const struct rm_input_config *input)
{
    char list[80];
    s->noise_used = w->noise_used;
    s->state_used = w->state_used;
    s->first_number = 2 * RM_LAYERS_MAX + input->first;
    snprintf(list, sizeof list, "inputs.%s", input->name);
    reference_layers(s, config.layers, config.layer_count, list);
    w->noise_used = s->noise_used;
    w->state_used = s->state_used;
    free(s->embedded.v);
}

static void use_layers(const struct reference_walk *w, struct reference_walk *s,
                       const struct rm_input_config *input)
{
    config = *w->config;
    config.layer_count = input->layer_count;
    memcpy(config.layers, config.input_layers + input->first,
           input->layer_count * sizeof *config.layers);
    config.value_layer_count = 0;
    config.combine = rm_network_combine(w->config, input->group);
    shape = (struct rm_net_shape){.dims = 0};
    *s = *w;
    s->whole = w->shape;
    s->config = &config;
    s->shape = &shape;
    s->embedded = (struct reference_rows){0};
}

/* One observation through its layers. */
static void walk_input(struct reference_walk *w, const struct reference_rows *x,
                       const struct rm_net_observation *o, struct reference_walk *s)
{
    const struct rm_input_config *input = rm_network_input(w->config, o->name);
    use_layers(w, s, input);
    shape = (struct rm_net_shape){.dims = o->dims, .low = o->low, .high = o->high};
    memcpy(shape.dim, o->dim, sizeof shape.dim);
    s->observed = o->name;
    s->tokens = tokens_of(s, o);
    const size_t skipped = s->tokens ? o->counts : 0, n = o->counts - skipped + o->words;
    s->rows =
        (struct reference_rows){.v = reference_floats(x->count * n), .count = x->count, .width = n};
    for (size_t r = 0; r < x->count; r++)
        memcpy(s->rows.v + r * n, x->v + r * x->width + o->at + skipped, n * sizeof(double));
    reference_image(o->dim, o->dims, s->rows.image);
    s->valid = s->tokens ? find(w, o, s->tokens) : NULL;
    if (s->tokens)
        s->rows =
            (struct reference_rows){s->rows.v, x->count * s->tokens, n / s->tokens, s->tokens, {0}};
    walk_layers(w, s, input);
}

/* An input's tokens, or its numbers as one, behind those of others. */
static void add_tokens(struct reference_walk *w, struct reference_walk *s, size_t states)
{
    if (!s->rows.tokens || !s->valid) {
        reference_flatten(s);
        s->rows.tokens = s->tokens = 1;
        free(s->valid);
        s->valid = memset(malloc(states), 1, states);
    }
    const size_t before = w->tokens, own = s->tokens, all = before + own, n = s->rows.width;
    struct reference_rows y = {
        .v = reference_floats(states * all * n), .count = states * all, .width = n, .tokens = all};
    uint8_t *valid = calloc(states, all);
    for (size_t i = 0; i < states; i++) {
        if (before && w->rows.v) {
            memcpy(y.v + i * all * n, w->rows.v + i * before * n, before * n * sizeof *y.v);
            memcpy(valid + i * all, w->valid + i * before, before);
        }
        memcpy(valid + i * all + before, s->valid + i * own, own);
        for (size_t t = 0; t < own; t++)
            if (s->valid[i * own + t])
                memcpy(y.v + (i * all + before + t) * n, s->rows.v + (i * own + t) * n,
                       n * sizeof *y.v);
    }
    free(w->valid);
    w->valid = valid;
    w->tokens = all;
    reference_replace(w, y);
}

static void add_numbers(struct reference_walk *w, struct reference_walk *s, size_t states)
{
    reference_flatten(s);
    const size_t before = w->rows.v ? w->rows.width : 0, n = s->rows.width;
    struct reference_rows y = {
        .v = reference_floats(states * (before + n)), .count = states, .width = before + n};
    for (size_t i = 0; i < states; i++) {
        if (before)
            memcpy(y.v + i * y.width, w->rows.v + i * before, before * sizeof *y.v);
        memcpy(y.v + i * y.width + before, s->rows.v + i * n, n * sizeof *y.v);
    }
    reference_replace(w, y);
}

/* The inputs of a group, counted from 1, or with 0 those in none, become the rows of `to`. */
static void combine(const struct reference_walk *w, struct reference_walk *to, uint32_t group,
                    struct reference_walk *made, size_t states)
{
    const bool tokens = rm_network_combine(w->config, group) == RM_COMBINE_TOKENS;
    to->rows = (struct reference_rows){.v = NULL};
    to->valid = NULL;
    to->tokens = 0;
    for (uint32_t o = 0; o < w->shape->observations; o++)
        for (uint32_t i = 0; i < w->config->input_count; i++) {
            if (w->config->inputs[i].group != group || order_of(w, i) != o)
                continue;
            (tokens ? add_tokens : add_numbers)(to, &made[i], states);
            free(made[i].rows.v);
            free(made[i].valid);
        }
}

struct reference_rows reference_inputs(struct reference_walk *w, struct reference_rows x)
{
    struct reference_walk *made = calloc(RM_INPUTS_MAX, sizeof *made);
    const size_t states = x.count;
    for (uint32_t o = 0; o < w->shape->observations; o++) {
        const char *name = w->shape->observation[o].name;
        const struct rm_input_config *input = rm_network_input(w->config, name);
        if (!rm_network_is_of_graph(w->config, name))
            walk_input(w, &x, &w->shape->observation[o], &made[input - w->config->inputs]);
    }
    for (uint32_t i = w->config->input_count; i-- > 0;) {
        if (!w->config->inputs[i].is_group)
            continue;
        use_layers(w, &made[i], &w->config->inputs[i]);
        combine(w, &made[i], i + 1, made, states);
        walk_layers(w, &made[i], &w->config->inputs[i]);
    }
    combine(w, w, 0, made, states);
    for (size_t i = 0; w->valid && i < states; i++)
        if (reference_has_layer(w->config, RM_LAYER_POINTER, false))
            w->valid[i * w->tokens] = 1;
    free(made);
    free(x.v);
    w->combined = reference_copy(&w->rows);
    return w->rows;
}
