/* Several observations in reference_net: each through its own layers, then combined. */
#include "config/traits.h"
#include "tests/support/reference_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct rm_input_config *input_of(const struct rm_network_config *c, const char *name)
{
    uint32_t i = 0;
    while (strcmp(c->inputs[i].name, name) != 0)
        i++;
    return &c->inputs[i];
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

/* One observation through its layers. */
static void walk_input(struct reference_walk *w, const struct reference_rows *x,
                       const struct rm_net_observation *o, struct reference_walk *s,
                       struct rm_network_config *config, struct rm_net_shape *shape)
{
    const struct rm_input_config *input = input_of(w->config, o->name);
    char list[80];
    *config = *w->config;
    config->layer_count = input->layer_count;
    memcpy(config->layers, config->input_layers + input->first,
           input->layer_count * sizeof *config->layers);
    config->value_layer_count = 0;
    *shape = (struct rm_net_shape){.dims = o->dims, .low = o->low, .high = o->high};
    memcpy(shape->dim, o->dim, sizeof shape->dim);
    *s = *w;
    s->whole = w->shape;
    s->observed = o->name;
    s->config = config;
    s->shape = shape;
    s->embedded = (struct reference_rows){0};
    s->first_number = 2 * RM_LAYERS_MAX + input->first;
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
    snprintf(list, sizeof list, "inputs.%s", o->name);
    reference_layers(s, config->layers, config->layer_count, list);
    w->noise_used = s->noise_used;
    w->state_used = s->state_used;
    free(s->embedded.v);
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

struct reference_rows reference_inputs(struct reference_walk *w, struct reference_rows x)
{
    static struct rm_network_config config;
    static struct rm_net_shape shape;
    const bool tokens = w->config->combine == RM_COMBINE_TOKENS;
    const size_t states = x.count;
    w->rows = (struct reference_rows){.v = NULL};
    for (uint32_t o = 0; o < w->shape->observations; o++) {
        struct reference_walk s;
        if (rm_network_is_of_graph(w->config, w->shape->observation[o].name))
            continue;
        walk_input(w, &x, &w->shape->observation[o], &s, &config, &shape);
        (tokens ? add_tokens : add_numbers)(w, &s, states);
        free(s.rows.v);
        free(s.valid);
    }
    for (size_t i = 0; tokens && i < states; i++)
        if (reference_has_layer(w->config, RM_LAYER_POINTER, false))
            w->valid[i * w->tokens] = 1;
    free(x.v);
    w->combined = reference_copy(&w->rows);
    return w->rows;
}
