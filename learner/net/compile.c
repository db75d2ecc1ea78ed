/* Compiles a configuration to steps and an arena. */
#include "config/schema.h"
#include "config/traits.h"
#include "learner/net/parts.h"
#include "learner/net/steps/steps.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- parts of layers ------------------------------------------------------------------------- */

static void name_list(const struct rm_compiler *c, char *name, size_t bytes)
{
    const bool value = c->value && c->net->config.value_layer_count;
    size_t used = 0;
    if (!c->input)
        snprintf(name, bytes, "network.%s", value ? "value_layers" : "layers");
    else
        used = rm_network_input_path(&c->net->config, c->input, name, bytes);
    if (c->input && c->input->is_group && used < bytes)
        snprintf(name + used, bytes - used, ".layers");
}

int rm_compile_refuse(struct rm_compiler *c, const char *format, ...)
{
    char what[RM_ERROR_TEXT / 2], list[RM_KEY_PATH_MAX];
    va_list words;
    va_start(words, format);
    vsnprintf(what, sizeof what, format, words);
    va_end(words);
    if (c->layer >= c->layer_count)
        return rm_fail(c->error, -EINVAL, "network: %s", what);
    enum rm_layer_type type = c->layers[c->layer].type;
    name_list(c, list, sizeof list);
    return rm_fail(c->error, -EINVAL, "%s[%u]: %s: %s", list, c->layer,
                   (unsigned)type < RM_LAYER_TYPE_COUNT ? rm_layer_rows[type].type : "?", what);
}

bool rm_compile_trains(const struct rm_net *net, uint32_t step)
{
    return step < net->step_count && net->steps[step].trains;
}

struct rm_step *rm_compile_step(struct rm_compiler *c, enum rm_step_kind kind,
                                struct rm_row_form out)
{
    struct rm_net *net = c->net;
    struct rm_step *s = &net->steps[net->step_count];
    *s = (struct rm_step){.kind = kind,
                          .from = c->place.at,
                          .other = RM_FROM_NOTHING,
                          .in = c->place.form,
                          .out = out,
                          .value = c->value,
                          .trains = rm_compile_trains(net, c->place.at),
                          .weight = RM_NO_OFFSET,
                          .bias = RM_NO_OFFSET};
    s->number = c->first_number + c->layer + (c->value ? RM_LAYERS_MAX : 0);
    if (c->layer < c->layer_count)
        s->layer = c->layers[c->layer];
    c->place = (struct rm_net_place){net->step_count++, out};
    return s;
}

size_t rm_compile_tensor(struct rm_compiler *c, const char *part, uint32_t flags, uint32_t dims,
                         const uint32_t *shape)
{
    struct rm_net *net = c->net;
    struct rm_net_tensor *t = &net->tensors[net->tensor_count++];
    *t = (struct rm_net_tensor){.dims = dims, .flags = flags, .offset = net->param_count};
    const char *value = c->value ? "value_" : "";
    if (c->input)
        snprintf(t->name, sizeof t->name, "inputs.%s.%u.%s", c->input->name, c->layer, part);
    else if (c->layer < c->layer_count)
        snprintf(t->name, sizeof t->name, "%slayers.%u.%s", value, c->layer, part);
    else
        snprintf(t->name, sizeof t->name, "%shead.%s", value, part);
    size_t floats = 1;
    for (uint32_t d = 0; d < 4; d++) {
        t->shape[d] = d < dims ? shape[d] : 1;
        floats *= t->shape[d];
    }
    net->param_count += floats;
    if (flags & RM_TENSOR_TRAINED && net->step_count)
        net->steps[net->step_count - 1].trains = true;
    return t->offset;
}

size_t rm_compile_vector(struct rm_compiler *c, const char *part, uint32_t n)
{
    return rm_compile_tensor(c, part, RM_TENSOR_TRAINED, 1, &n);
}

uint32_t rm_compile_product(struct rm_compiler *c, struct rm_step *s, const char *prefix,
                            uint32_t in, uint32_t out, bool noisy)
{
    struct rm_net *net = c->net;
    struct rm_net_product *m = &s->product[s->product_count];
    char part[32];
    *m = (struct rm_net_product){.in = in,
                                 .out = out,
                                 .noisy = noisy,
                                 .gain = net->config.gain,
                                 .sigma_weight = RM_NO_OFFSET,
                                 .sigma_bias = RM_NO_OFFSET,
                                 .noise = RM_NO_OFFSET};
    snprintf(part, sizeof part, "%sweight", prefix);
    m->weight = rm_compile_tensor(c, part, RM_TENSOR_TRAINED | RM_TENSOR_MATRIX, 2,
                                  (const uint32_t[]){out, in});
    snprintf(part, sizeof part, "%sbias", prefix);
    m->bias = rm_compile_vector(c, part, out);
    if (noisy) {
        m->noise = net->noise_count;
        net->noise_count +=
            net->config.noise == RM_NOISE_FACTORISED ? (size_t)in + out : (size_t)in * out + out;
    }
    return s->product_count++;
}

void rm_compile_state(struct rm_compiler *c, struct rm_step *s, uint32_t floats)
{
    struct rm_net *net = c->net;
    s->state = net->act_state + net->value_state;
    *(c->value ? &net->value_state : &net->act_state) += floats;
}

struct rm_step *rm_compile_fusable(struct rm_compiler *c)
{
    struct rm_net *net = c->net;
    if (c->place.at >= net->step_count || c->layer == 0 || c->kept[c->layer])
        return NULL; /* what a list reads may have other readers */
    struct rm_step *s = &net->steps[c->place.at];
    return s->act == RM_ACT_NONE && s->value == c->value ? s : NULL;
}

bool rm_compile_reads_input(const struct rm_compiler *c)
{
    if (c->place.at == RM_FROM_INPUT)
        return true;
    const enum rm_step_kind kind = c->net->steps[c->place.at].kind;
    return kind == RM_STEP_TOKENS || kind == RM_STEP_SLICE;
}

/* A network of values of real actions gets the action where image or tokens have become one vector
 * and a later layer can use both: before the first linear layer, or the head. */
static void put_action(struct rm_compiler *c)
{
    const bool vector = c->place.form.tokens == 1 && !c->place.form.padded;
    if (!c->net->shape.acts || c->acted || c->input || !vector)
        return;
    c->acted = true;
    rm_compile_action(c);
}

/* --- heads ----------------------------------------------------------------------------------- */

/* Of a history, a head for each query. */
static int add_head(struct rm_compiler *c, uint32_t units, bool noisy, double gain)
{
    if (c->place.form.queries)
        rm_compile_queries(c);
    else
        rm_compile_spread(c);
    struct rm_row_form flat = c->place.form; /* tokens side by side */
    const bool queries = c->net->shape.history.queries > 0;
    if (!queries && (uint64_t)flat.features * flat.tokens > (1u << 24))
        return rm_compile_refuse(
            c, "%u tokens of %u features are too many for a head; put a mean_pool before it",
            flat.tokens, flat.features);
    flat.features *= queries ? 1 : flat.tokens;
    flat.tokens = queries ? flat.tokens : 1;
    c->place.form = flat;
    put_action(c);
    flat = c->place.form;
    struct rm_step *s = rm_compile_step(c, RM_STEP_LINEAR, rm_vector_form(flat, units));
    s->layer = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = units};
    s->product[rm_compile_product(c, s, "", flat.features, units, noisy)].gain = gain;
    return 0;
}

bool rm_compile_ends_in_pointer(const struct rm_network_config *config)
{
    return config->layer_count && config->layers[config->layer_count - 1].type == RM_LAYER_POINTER;
}

/* The head with advantages and values is one product of (actions + 1) * k outputs. */
static int add_action_head(struct rm_compiler *c)
{
    struct rm_net *net = c->net;
    const struct rm_network_config *config = &net->config;
    const uint32_t reals = net->shape.reals, k = net->shape.outputs_per_action;
    const uint32_t made = net->shape.deviation_of_state ? 2 * reals : reals;
    uint32_t outputs = net->shape.actions * k + made + net->shape.history.types;
    bool values = net->shape.head == RM_HEAD_VALUES, dueling = config->dueling;
    if (dueling && !values)
        return rm_compile_refuse(c, "network.head.dueling is for values of actions; this algorithm "
                                    "learns probabilities");
    bool pointer = rm_compile_ends_in_pointer(config);
    if (pointer && reals)
        return rm_compile_refuse(c, "a pointer scores only discrete actions, but agents choose "
                                    "real numbers too; use another last layer");
    if (pointer && (dueling || config->noisy_head))
        return rm_compile_refuse(c, "a pointer scores actions itself; network.head.dueling and "
                                    "network.head.noisy must be false");
    int code = pointer ? 0
                       : add_head(c, dueling ? outputs + k : outputs, config->noisy_head,
                                  values ? config->value_gain : config->policy_gain);
    if (!code && dueling)
        rm_compile_step(c, RM_STEP_DUELING, rm_vector_form(c->place.form, outputs));
    if (!code && reals && !net->shape.deviation_of_state) {
        rm_compile_deviation(c);
        outputs += reals;
    }
    net->act_outputs = outputs * c->place.form.tokens;
    net->act_result = c->place.at;
    return code;
}

/* --- layers ---------------------------------------------------------------------------------- */

/* Marks the layers whose inputs a residual will add. */
static void mark_kept(struct rm_compiler *c)
{
    memset(c->kept, 0, sizeof c->kept);
    for (uint32_t i = 0; i < c->layer_count; i++)
        if (c->layers[i].type == RM_LAYER_RESIDUAL && c->layers[i].span <= i)
            c->kept[i - c->layers[i].span] = true;
}

int rm_compile_layers(struct rm_compiler *c, const struct rm_layer_config *layers, uint32_t count)
{
    int code = 0;
    c->layers = layers;
    c->layer_count = count;
    mark_kept(c);
    for (c->layer = 0; !code && c->layer < count; c->layer++) {
        const struct rm_layer_config *layer = &layers[c->layer];
        if (layer->type == RM_LAYER_LINEAR)
            put_action(c);
        rm_compile_fn compile =
            (unsigned)layer->type < RM_LAYER_TYPE_COUNT ? rm_layer_compile[layer->type] : NULL;
        c->before[c->layer] = c->place;
        if (c->codes && rm_compile_reads_input(c) && layer->type != RM_LAYER_EMBEDDING)
            return rm_compile_refuse(c, "must be an embedding: network.layers begins with one, and "
                                        "both read the same observation");
        code = compile ? compile(c, layer) : rm_compile_refuse(c, "unknown type");
        if (code)
            break;
    }
    return code;
}

bool rm_compile_looks_across(const struct rm_layer_config *layers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (layers[i].type == RM_LAYER_ATTENTION || layers[i].type == RM_LAYER_MEAN_POOL ||
            layers[i].type == RM_LAYER_POSITION || layers[i].type == RM_LAYER_POINTER ||
            layers[i].type == RM_LAYER_HISTORY || rm_layer_needs_edges(layers[i].type))
            return true;
    return false;
}

struct rm_token_set rm_compile_set(const struct rm_compiler *c, const struct rm_net_observation *of,
                                   uint32_t tokens)
{
    return (struct rm_token_set){.tokens = tokens,
                                 .width = c->net->shape.inputs,
                                 .pieces = 1,
                                 .piece = {{.tokens = tokens,
                                            .at = of->at + of->counts,
                                            .numbers = of->words / tokens,
                                            .codes = c->codes,
                                            .counts = of->counts,
                                            .counts_at = of->at,
                                            .item = of->item}}};
}

/* If layers read across tokens, padding has no rows from the start. An embedding says how integers
 * form tokens; other observations have one token for each row. */
static void add_tokens(struct rm_compiler *c)
{
    struct rm_net *net = c->net;
    const struct rm_network_config *config = &net->config;
    const struct rm_net_observation *of = &c->now;
    uint32_t tokens = 0;
    if (!rm_compile_looks_across(config->layers, config->layer_count) &&
        !rm_compile_looks_across(config->value_layers, config->value_layer_count))
        return;
    if (config->layer_count && config->layers[0].type == RM_LAYER_EMBEDDING)
        tokens = rm_tokens_of_codes(&config->layers[0], of);
    else if (of->dims > 1)
        tokens = of->dim[0];
    if (tokens == 0 || of->words % tokens)
        return; /* the layer that needs tokens reports the error */
    struct rm_token_set set = rm_compile_set(c, of, tokens);
    set.keeps_first = rm_compile_ends_in_pointer(config);
    rm_compile_tokens(c, &set);
}

static void add_normalizer(struct rm_compiler *c)
{
    struct rm_net *net = c->net;
    static const char *const parts[] = {"mean", "scale"};
    size_t *const at[] = {&net->input_mean, &net->input_scale};
    for (size_t i = 0; i < 2; i++) {
        *at[i] = rm_compile_tensor(c, parts[i], 0, 1, &net->shape.inputs);
        snprintf(net->tensors[net->tensor_count - 1].name, sizeof net->tensors[0].name,
                 "normalizer.%s", parts[i]);
    }
    rm_compile_step(c, RM_STEP_NORMALIZE, c->place.form);
}

/* A separate value trunk without an embedding reads the policy's embedding. */
static bool shares_embedding(const struct rm_network_config *config)
{
    return config->layer_count > 1 && config->layers[0].type == RM_LAYER_EMBEDDING &&
           config->value_layer_count && config->value_layers[0].type != RM_LAYER_EMBEDDING;
}

/* Adds the state value and joins it with the logits. `input`: the rows that the first layer read;
 * `trunk`: those that the last layer made. */
static int add_value(struct rm_compiler *c, struct rm_net_place input, struct rm_net_place trunk)
{
    struct rm_net *net = c->net;
    const struct rm_network_config *config = &net->config;
    const struct rm_net_place logits = c->place;
    int code = 0;
    c->value = true;
    c->place = trunk;
    if (rm_compile_ends_in_pointer(config)) /* the pointer's input */
        c->place = c->before[config->layer_count - 1];
    if (config->trunk == RM_TRUNK_SEPARATE) {
        c->place = input;
        if (shares_embedding(config))
            c->place = c->before[1];
    }
    if (rm_compile_ends_in_pointer(config) &&
        !rm_compile_looks_across(config->value_layers, config->value_layer_count))
        rm_compile_first(c);
    if (config->trunk == RM_TRUNK_SEPARATE) {
        code = config->value_layer_count
                   ? rm_compile_layers(c, config->value_layers, config->value_layer_count)
                   : rm_compile_layers(c, config->layers, config->layer_count);
    }
    if (!code)
        code = add_head(c, 1, config->noisy_head, config->value_gain);
    if (code)
        return code;
    net->value_result = c->place.at;
    struct rm_row_form out = logits.form;
    out.features += 1;
    c->place = logits;
    struct rm_step *join = rm_compile_step(c, RM_STEP_JOIN, out);
    join->other = net->value_result;
    join->trains = true;
    return 0;
}

/* Adds sigmas last, because acting without noise needs none. Finds the layer's name by its
 * weight. */
static void add_sigmas(struct rm_net *net)
{
    for (uint32_t i = 0; i < net->step_count; i++)
        for (uint32_t j = 0; j < net->steps[i].product_count; j++) {
            struct rm_net_product *m = &net->steps[i].product[j];
            if (!m->noisy)
                continue;
            size_t mu = 0;
            while (net->tensors[mu].offset != m->weight)
                mu++;
            for (size_t part = 0; part < 2; part++) {
                const struct rm_net_tensor of = net->tensors[mu + part];
                struct rm_net_tensor *t = &net->tensors[net->tensor_count++];
                *t = of;
                const char *dot = strrchr(of.name, '.');
                snprintf(t->name, sizeof t->name, "%.*s.sigma_%s", (int)(dot - of.name), of.name,
                         dot + 1);
                t->flags = RM_TENSOR_TRAINED;
                t->offset = net->param_count;
                *(part ? &m->sigma_bias : &m->sigma_weight) = t->offset;
                net->param_count += (size_t)t->shape[0] * t->shape[1];
            }
        }
}

static int check_shape(const struct rm_net *net, struct rm_error *error)
{
    const struct rm_net_shape *s = &net->shape;
    const struct rm_network_config *config = &net->config;
    if (s->inputs == 0 || s->inputs > (1u << 24))
        return rm_fail(error, -EINVAL, "network: %u input features; 1 to 2^24 are possible",
                       s->inputs);
    if (s->actions + s->reals == 0 || s->outputs_per_action == 0 ||
        (uint64_t)(s->actions + 1) * s->outputs_per_action + 2 * (uint64_t)s->reals > RM_UNITS_MAX)
        return rm_fail(error, -EINVAL,
                       "network: %u actions of %u outputs; each at least 1, together below 65536",
                       s->actions, s->outputs_per_action);
    if (config->layer_count > RM_LAYERS_MAX || config->value_layer_count > RM_LAYERS_MAX) {
        bool value = config->layer_count <= RM_LAYERS_MAX;
        return rm_fail(error, -EINVAL, "network.%s: %u layers; at most %u are possible",
                       value ? "value_layers" : "layers",
                       value ? config->value_layer_count : config->layer_count, RM_LAYERS_MAX);
    }
    return 0;
}

/* An observation of (channels, height, width) is an image; of (height, width), one of one channel.
 */
struct rm_row_form rm_compile_form(const struct rm_net_observation *of)
{
    struct rm_row_form form = {.features = of->counts + of->words, .tokens = 1};
    uint64_t all = 1;
    for (uint32_t d = 0; d < of->dims && d < 4; d++)
        all *= of->dim[d];
    if (all == form.features && (of->dims == 2 || of->dims == 3)) {
        const uint32_t *dim = of->dim + (of->dims - 2);
        form.channels = of->dims == 3 ? of->dim[0] : 1;
        form.height = dim[0];
        form.width = dim[1];
    }
    return form;
}

/* An input row as one observation. */
static struct rm_net_observation whole_row(const struct rm_net_shape *shape)
{
    struct rm_net_observation row = {
        .words = shape->inputs, .dims = shape->dims, .low = shape->low, .high = shape->high};
    memcpy(row.dim, shape->dim, sizeof row.dim);
    return row;
}

/* Whether a network of histories has a form that its head takes: a row for each query. */
static int check_history(struct rm_compiler *c)
{
    const struct rm_net_shape *shape = &c->net->shape;
    if (!shape->history.queries)
        return 0;
    const bool first = c->net->config.layer_count && !c->net->config.input_count &&
                       c->net->config.layers[0].type == RM_LAYER_HISTORY;
    const struct rm_row_form *form = &c->place.form;
    if (!first || (!form->queries && form->tokens != shape->history.queries))
        return rm_fail(c->error, -EINVAL,
                       "network.layers: the input is packed histories; the first layer must be a "
                       "history, and no layer may put its tokens together");
    if (shape->head != RM_HEAD_LOGITS || shape->outputs_per_action != 1 || shape->reals)
        return rm_fail(c->error, -EINVAL,
                       "network: a history is for logits of discrete actions and types");
    return 0;
}

static uint32_t prefix_of(const struct rm_net *net)
{
    uint32_t prefix = 0;
    while (net->uses_quantiles && net->steps[prefix].kind != RM_STEP_COSINE)
        prefix++;
    return prefix;
}

int rm_net_compile(struct rm_net **out, const struct rm_network_config *config,
                   const struct rm_net_shape *shape, struct rm_error *error)
{
    *out = NULL;
    struct rm_net *net = calloc(1, sizeof *net);
    if (!net)
        return rm_fail(error, -ENOMEM, "network: out of memory");
    net->config = *config;
    net->shape = *shape;
    net->input_mean = net->input_scale = RM_NO_OFFSET;
    net->value_result = RM_FROM_NOTHING;
    struct rm_compiler c = {.net = net, .error = error};
    c.now = whole_row(shape);
    c.place = (struct rm_net_place){RM_FROM_INPUT, rm_compile_form(&c.now)};
    int code = check_shape(net, error);
    if (!code && config->normalize_observations)
        add_normalizer(&c);
    if (!code && config->input_count) {
        code = rm_compile_inputs(&c);
    } else if (!code) {
        c.codes = config->layer_count && config->layers[0].type == RM_LAYER_EMBEDDING;
        add_tokens(&c);
        c.codes = false;
    }
    const struct rm_net_place input = c.place;
    if (!code)
        code = rm_compile_layers(&c, config->layers, config->layer_count);
    const struct rm_net_place trunk = c.place;
    if (!code)
        code = check_history(&c);
    if (!code)
        code = add_action_head(&c);
    net->act_count = net->param_count;
    if (!code && shape->head == RM_HEAD_ACTOR_CRITIC)
        code = add_value(&c, input, trunk);
    if (code) {
        free(net);
        return code;
    }
    net->result = c.place.at;
    net->outputs = c.place.form.features * c.place.form.tokens;
    net->prefix = prefix_of(net);
    add_sigmas(net);
    *out = net;
    return 0;
}

void rm_net_destroy(struct rm_net *net)
{
    free(net);
}
