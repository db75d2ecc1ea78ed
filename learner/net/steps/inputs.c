/* Several observations: each goes through layers of its own (network.inputs), then the results
 * become one: numbers side by side, or tokens one after another (network.combine). A group makes
 * one result of some of them, which goes through the group's layers. An input row has the
 * observations in order; a step cuts each out of it. */
#include "config/schema.h"
#include "config/traits.h"
#include "learner/net/steps/steps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert(RM_TOKEN_PIECES_MAX == RM_INPUTS_MAX, "a piece for each input");

/* --- cutting --------------------------------------------------------------------------------- */

static void slice(const struct rm_pass *p, const struct rm_step *s, const struct rm_rows *rows)
{
    p->ops->split(p->b, rows->x + s->at, rm_rows_of(p, &s->out), s->out.features,
                  s->in.features - s->out.features, rows->y, NULL);
}

/* The gradient of an observation is not needed. */
static void no_gradient(const struct rm_pass *p, const struct rm_step *s,
                        const struct rm_rows *rows)
{
    (void)p;
    (void)s;
    (void)rows;
}

const struct rm_step_ops rm_slice_step = {
    .name = "slice", .by_row = true, .forward = slice, .backward = no_gradient};

/* c->place becomes `words` numbers of the input row, from `at` on. */
static void cut(struct rm_compiler *c, struct rm_net_place row, uint32_t at, uint32_t words)
{
    c->place = row;
    if (words < row.form.features)
        rm_compile_step(c, RM_STEP_SLICE, (struct rm_row_form){.features = words, .tokens = 1})
            ->at = at;
}

/* --- an input -------------------------------------------------------------------------------- */

/* Tokens of an observation, 0: it has none. They are needed where its own layers or those behind
 * all look across them; and where codes are counted, since those behind the count are none. */
static uint32_t tokens_of(const struct rm_compiler *c, const struct rm_net_observation *of,
                          const struct rm_layer_config *layers, uint32_t count)
{
    const bool all = rm_network_combine(&c->net->config, c->input->group) == RM_COMBINE_TOKENS;
    const bool image = count && layers[0].type == RM_LAYER_CONV2D;
    uint32_t tokens = 0;
    if (!all && !rm_compile_looks_across(layers, count) && !(of->counts && c->codes))
        return 0;
    if (c->codes)
        tokens = rm_tokens_of_codes(&layers[0], of);
    else if (!image && (of->dims > 1 || (of->dims == 1 && of->counts)))
        tokens = of->dim[0];
    return tokens && of->words % tokens == 0 && (!of->counts || tokens % of->counts == 0) ? tokens
                                                                                          : 0;
}

/* The layers of c->input. */
static int add_layers(struct rm_compiler *c)
{
    const struct rm_input_config *input = c->input;
    c->first_number = 2 * RM_LAYERS_MAX + input->first;
    const int code =
        rm_compile_layers(c, c->net->config.input_layers + input->first, input->layer_count);
    c->input = NULL;
    c->first_number = 0;
    c->codes = false;
    return code;
}

static int add_input(struct rm_compiler *c, const struct rm_input_config *input,
                     struct rm_net_place row)
{
    const struct rm_layer_config *layers = c->net->config.input_layers + input->first;
    c->input = input;
    c->codes = input->layer_count && layers[0].type == RM_LAYER_EMBEDDING;
    const uint32_t tokens = tokens_of(c, &c->now, layers, input->layer_count);
    if (tokens) {
        const struct rm_token_set set = rm_compile_set(c, &c->now, tokens);
        cut(c, row, c->now.at + c->now.counts, c->now.words);
        rm_compile_tokens(c, &set);
    } else {
        cut(c, row, c->now.at, c->now.counts + c->now.words);
        c->place.form = rm_compile_form(&c->now);
    }
    return add_layers(c);
}

/* --- several of them ------------------------------------------------------------------------- */

/* What the layers of an input have made, and the index of its observation, of a group the first. */
struct made {
    struct rm_net_place place;
    uint32_t order;
};

/* All numbers of c->place side by side. */
static void flatten(struct rm_compiler *c)
{
    rm_compile_spread(c);
    const struct rm_row_form form = c->place.form;
    c->place.form = (struct rm_row_form){.features = form.features * form.tokens, .tokens = 1};
}

static void join(struct rm_compiler *c, struct rm_net_place right)
{
    const struct rm_row_form form = {.features = c->place.form.features + right.form.features,
                                     .tokens = 1};
    struct rm_step *s = rm_compile_step(c, RM_STEP_JOIN, form);
    s->other = right.at;
    s->trains = s->trains || rm_compile_trains(c->net, right.at);
}

/* The pieces of an input's tokens; what has none is one token. */
static void add_pieces(const struct rm_net *net, const struct rm_row_form *form,
                       struct rm_token_set *set)
{
    static const struct rm_token_set none = {.tokens = 1, .pieces = 1, .piece = {{.tokens = 1}}};
    const struct rm_token_set *own = form->padded ? &net->sets[form->padded - 1] : &none;
    for (uint32_t i = 0; i < own->pieces; i++)
        set->piece[set->pieces++] = own->piece[i];
    set->tokens += own->tokens;
}

/* The input of a group that stands at a place of the world's order; NULL: none. */
static const struct rm_input_config *member_at(const struct rm_network_config *config,
                                               uint32_t group, const struct made *made,
                                               uint32_t order)
{
    for (uint32_t i = group; i < config->input_count; i++)
        if (config->inputs[i].group == group && made[i].order == order)
            return &config->inputs[i];
    return NULL;
}

/* c->place becomes the inputs of a group, counted from 1, or with 0 those in no group. Returns the
 * place of the first in the world's order in *order. */
static int combine(struct rm_compiler *c, uint32_t group, const struct made *made, uint32_t *order)
{
    struct rm_net *net = c->net;
    const struct rm_network_config *config = &net->config;
    const bool tokens = rm_network_combine(config, group) == RM_COMBINE_TOKENS;
    struct rm_token_set set = {.width = net->shape.inputs,
                               .keeps_first = !group && rm_compile_ends_in_pointer(config)};
    const struct rm_input_config *first = NULL;
    struct rm_net_place joined = c->place;
    uint32_t width = 0;
    for (uint32_t o = 0; o < net->shape.observations; o++) {
        const struct rm_input_config *input = member_at(config, group, made, o);
        if (!input)
            continue;
        const struct rm_row_form form = made[input - config->inputs].place.form;
        c->place = made[input - config->inputs].place;
        flatten(c);
        const uint32_t own = form.padded ? form.features : c->place.form.features;
        if (tokens && first && own != width) {
            char path[RM_KEY_PATH_MAX] = "network";
            if (group)
                rm_network_input_path(config, &config->inputs[group - 1], path, sizeof path);
            return rm_fail(c->error, -EINVAL,
                           "%s.combine: tokens: those of %s have %u numbers, but those of %s have "
                           "%u; all must have the same width",
                           path, first->name, width, input->name, own);
        }
        add_pieces(net, &form, &set);
        width = own;
        if (first) {
            const struct rm_net_place right = c->place;
            c->place = joined;
            join(c, right);
        } else {
            first = input;
            *order = o;
        }
        joined = c->place;
    }
    c->place = joined;
    if (tokens)
        rm_compile_tokens(c, &set);
    return 0;
}

/* Groups one after another, those within others first. */
static int add_groups(struct rm_compiler *c, struct made *made)
{
    const struct rm_network_config *config = &c->net->config;
    int code = 0;
    for (uint32_t i = config->input_count; !code && i-- > 0;) {
        if (!config->inputs[i].is_group)
            continue;
        code = combine(c, i + 1, made, &made[i].order);
        c->input = &config->inputs[i];
        if (!code)
            code = add_layers(c);
        made[i].place = c->place;
    }
    return code;
}

static int check_names(const struct rm_compiler *c)
{
    const struct rm_network_config *config = &c->net->config;
    const struct rm_net_shape *shape = &c->net->shape;
    char names[RM_ERROR_TEXT / 2] = "";
    size_t used = 0;
    if (shape->observations == 0)
        return rm_fail(
            c->error, -EINVAL,
            "network.inputs: the world shows one observation, without a name; its layers "
            "are network.layers");
    for (uint32_t i = 0; i < shape->observations && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                 shape->observation[i].name);
    for (uint32_t i = 0; i < config->input_count; i++) {
        const struct rm_input_config *input = &config->inputs[i];
        char path[RM_KEY_PATH_MAX];
        uint32_t o = 0;
        while (o < shape->observations && strcmp(shape->observation[o].name, input->name) != 0)
            o++;
        rm_network_input_path(config, input, path, sizeof path);
        if (input->is_group && o < shape->observations)
            return rm_fail(c->error, -EINVAL,
                           "%s: is a group, but the world shows an observation of this name; "
                           "give the group another name",
                           path);
        if (!input->is_group && o == shape->observations)
            return rm_fail(c->error, -EINVAL,
                           "%s: the world shows no such observation; it shows %s", path, names);
        if (!input->is_group && rm_network_is_of_graph(config, input->name))
            return rm_fail(c->error, -EINVAL,
                           "%s: is part of a graph, whose nodes have the list; remove this list",
                           path);
    }
    for (uint32_t o = 0; o < shape->observations; o++)
        if (!rm_network_input(config, shape->observation[o].name) &&
            !rm_network_is_of_graph(config, shape->observation[o].name))
            return rm_fail(c->error, -EINVAL,
                           "network.inputs: has no layers for observation %s; an empty list takes "
                           "its numbers as they are",
                           shape->observation[o].name);
    return 0;
}

int rm_compile_inputs(struct rm_compiler *c)
{
    const struct rm_net_shape *shape = &c->net->shape;
    const struct rm_network_config *config = &c->net->config;
    struct made made[RM_INPUTS_MAX] = {{.order = 0}};
    const struct rm_net_place row = c->place;
    uint32_t first = 0;
    int code = check_names(c);
    for (uint32_t i = 0; !code && i < shape->observations; i++) {
        const struct rm_input_config *input = rm_network_input(config, shape->observation[i].name);
        if (!input) /* belongs to a graph, whose layers read it */
            continue;
        c->now = shape->observation[i];
        code = add_input(c, input, row);
        made[input - config->inputs] = (struct made){c->place, i};
    }
    if (!code)
        code = add_groups(c, made);
    return code ? code : combine(c, 0, made, &first);
}
