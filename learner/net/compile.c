/* From a configuration to steps and an arena. */
#include "config/schema.h"
#include "learner/net/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UNITS_MAX 65536u

struct compiler {
    struct rm_net *net;
    struct rm_error *error;
    uint32_t features; /* of the rows so far */
    bool per_quantile;
    uint32_t layer; /* being compiled; layer_count = the head */
};

static int refuse(struct compiler *c, const char *what)
{
    uint32_t i = c->layer;
    if (i >= c->net->config.layer_count)
        return rm_fail(c->error, -EINVAL, "network: %s", what);
    enum rm_layer_type type = c->net->config.layers[i].type;
    return rm_fail(c->error, -EINVAL, "network.layers[%u]: %s: %s", i,
                   (unsigned)type < RM_LAYER_TYPE_COUNT ? rm_layer_rows[type].type : "?", what);
}

static struct rm_step *add_step(struct compiler *c, enum rm_step_kind kind, uint32_t out)
{
    struct rm_step *s = &c->net->steps[c->net->step_count++];
    *s = (struct rm_step){.kind = kind,
                          .in = c->features,
                          .out = out,
                          .per_quantile = c->per_quantile,
                          .weight = RM_NO_OFFSET,
                          .bias = RM_NO_OFFSET,
                          .sigma_weight = RM_NO_OFFSET,
                          .sigma_bias = RM_NO_OFFSET,
                          .noise = RM_NO_OFFSET};
    c->features = out;
    return s;
}

static size_t add_tensor(struct compiler *c, const char *part, uint32_t dims, uint32_t rows,
                         uint32_t columns)
{
    struct rm_net *net = c->net;
    struct rm_net_tensor *t = &net->tensors[net->tensor_count++];
    if (c->layer < net->config.layer_count)
        snprintf(t->name, sizeof t->name, "layers.%u.%s", c->layer, part);
    else
        snprintf(t->name, sizeof t->name, "head.%s", part);
    t->dims = dims;
    t->shape[0] = rows;
    t->shape[1] = columns;
    t->offset = net->param_count;
    t->flags = RM_TENSOR_TRAINED | (dims > 1 ? RM_TENSOR_MATRIX : 0);
    net->param_count += (size_t)rows * columns;
    return t->offset;
}

static int add_linear(struct compiler *c, uint32_t units, bool noisy)
{
    if (units == 0 || units > UNITS_MAX)
        return refuse(c, "units must be from 1 to 65536");
    struct rm_step *s = add_step(c, RM_STEP_LINEAR, units);
    s->noisy = noisy;
    s->weight = add_tensor(c, "weight", 2, units, s->in);
    s->bias = add_tensor(c, "bias", 1, units, 1);
    if (noisy) {
        s->noise = c->net->noise_count;
        c->net->noise_count += c->net->config.noise == RM_NOISE_FACTORISED
                                   ? (size_t)s->in + units
                                   : (size_t)s->in * units + units;
    }
    return 0;
}

static int add_cosine(struct compiler *c, uint32_t cosines)
{
    if (c->net->uses_quantiles)
        return refuse(c, "a second cosine_embedding; a network takes one set of quantiles");
    if (cosines == 0 || cosines > UNITS_MAX)
        return refuse(c, "cosines must be from 1 to 65536 (the paper's is 64)");
    if (c->net->shape.outputs_per_action != 1)
        return refuse(c, "a cosine_embedding needs one output per action: quantiles come from its "
                         "input, not from the head (algorithm iqn)");
    struct rm_step *s = add_step(c, RM_STEP_COSINE, c->features);
    s->cosines = cosines;
    s->weight = add_tensor(c, "weight", 2, s->out, cosines);
    s->bias = add_tensor(c, "bias", 1, s->out, 1);
    c->net->uses_quantiles = true;
    c->per_quantile = true;
    return 0;
}

/* An activation joins the product before it, if that has none yet. */
static int add_activation(struct compiler *c, enum rm_activation act)
{
    struct rm_net *net = c->net;
    struct rm_step *last = net->step_count ? &net->steps[net->step_count - 1] : NULL;
    if (last && last->kind == RM_STEP_LINEAR && last->act == RM_ACT_NONE)
        last->act = act;
    else
        add_step(c, RM_STEP_ACTIVATE, c->features)->act = act;
    return 0;
}

static int add_layer_norm(struct compiler *c)
{
    struct rm_step *s = add_step(c, RM_STEP_LAYER_NORM, c->features);
    s->weight = add_tensor(c, "weight", 1, s->out, 1);
    s->bias = add_tensor(c, "bias", 1, s->out, 1);
    return 0;
}

static int add_layer(struct compiler *c, const struct rm_layer_config *layer)
{
    switch (layer->type) {
    case RM_LAYER_LINEAR:
        return add_linear(c, layer->units, false);
    case RM_LAYER_NOISY_LINEAR:
        return add_linear(c, layer->units, true);
    case RM_LAYER_RELU:
        return add_activation(c, RM_ACT_RELU);
    case RM_LAYER_TANH:
        return add_activation(c, RM_ACT_TANH);
    case RM_LAYER_GELU:
        return add_activation(c, RM_ACT_GELU);
    case RM_LAYER_LAYER_NORM:
        return add_layer_norm(c);
    case RM_LAYER_COSINE_EMBEDDING:
        return add_cosine(c, layer->cosines);
    default:
        return refuse(c, "unknown type");
    }
}

/* Advantages and values are one product of (actions + 1) * k outputs. */
static int add_head(struct compiler *c)
{
    const struct rm_net *net = c->net;
    uint32_t k = net->shape.outputs_per_action, actions = net->shape.actions;
    uint32_t outputs = actions * k;
    int code = add_linear(c, net->config.dueling ? outputs + k : outputs, net->config.noisy_head);
    if (!code && net->config.dueling)
        add_step(c, RM_STEP_DUELING, outputs);
    c->net->outputs = outputs;
    return code;
}

/* Sigmas last: what acts without noise needs none of them. The layer's name is found again by its
 * weight. */
static void add_sigmas(struct rm_net *net)
{
    net->act_count = net->param_count;
    for (uint32_t i = 0; i < net->step_count; i++) {
        struct rm_step *s = &net->steps[i];
        if (!s->noisy)
            continue;
        size_t mu = 0;
        while (net->tensors[mu].offset != s->weight)
            mu++;
        for (size_t part = 0; part < 2; part++) {
            const struct rm_net_tensor of = net->tensors[mu + part];
            struct rm_net_tensor *t = &net->tensors[net->tensor_count++];
            *t = of;
            const char *dot = strrchr(of.name, '.');
            snprintf(t->name, sizeof t->name, "%.*s.sigma_%s", (int)(dot - of.name), of.name,
                     dot + 1);
            t->offset = net->param_count;
            *(part ? &s->sigma_bias : &s->sigma_weight) = t->offset;
            net->param_count += (size_t)t->shape[0] * t->shape[1];
        }
    }
}

static int check_shape(const struct rm_net *net, struct rm_error *error)
{
    const struct rm_net_shape *s = &net->shape;
    if (s->inputs == 0 || s->inputs > (1u << 24))
        return rm_fail(error, -EINVAL, "network: %u input features; 1 to 2^24 are possible",
                       s->inputs);
    if (s->actions == 0 || s->outputs_per_action == 0 ||
        (uint64_t)(s->actions + 1) * s->outputs_per_action > UNITS_MAX)
        return rm_fail(error, -EINVAL,
                       "network: %u actions of %u outputs; each at least 1, together below 65536",
                       s->actions, s->outputs_per_action);
    if (net->config.layer_count > RM_LAYERS_MAX)
        return rm_fail(error, -EINVAL, "network.layers: %u layers; at most %u are possible",
                       net->config.layer_count, RM_LAYERS_MAX);
    return 0;
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
    struct compiler c = {.net = net, .error = error, .features = shape->inputs};
    int code = check_shape(net, error);
    for (; !code && c.layer < config->layer_count; c.layer++)
        code = add_layer(&c, &config->layers[c.layer]);
    if (!code)
        code = add_head(&c);
    if (code) {
        free(net);
        return code;
    }
    add_sigmas(net);
    *out = net;
    return 0;
}

void rm_net_destroy(struct rm_net *net)
{
    free(net);
}

size_t rm_net_param_count(const struct rm_net *net)
{
    return net->param_count;
}

size_t rm_net_act_count(const struct rm_net *net)
{
    return net->act_count;
}

size_t rm_net_noise_count(const struct rm_net *net)
{
    return net->noise_count;
}

uint32_t rm_net_inputs(const struct rm_net *net)
{
    return net->shape.inputs;
}

uint32_t rm_net_outputs(const struct rm_net *net)
{
    return net->outputs;
}

bool rm_net_takes_codes(const struct rm_net *net)
{
    (void)net;
    return false;
}

bool rm_net_is_recurrent(const struct rm_net *net)
{
    return rm_net_state_count(net) > 0;
}

uint32_t rm_net_state_count(const struct rm_net *net)
{
    (void)net;
    return 0;
}

uint32_t rm_net_value_state_count(const struct rm_net *net)
{
    (void)net;
    return 0;
}

bool rm_net_uses_quantiles(const struct rm_net *net)
{
    return net->uses_quantiles;
}

size_t rm_net_tensors(const struct rm_net *net, const struct rm_net_tensor **tensors)
{
    *tensors = net->tensors;
    return net->tensor_count;
}

double rm_net_forward_flops(const struct rm_net *net, uint32_t batch, uint32_t quantiles)
{
    double flops = 0.0;
    for (uint32_t i = 0; i < net->step_count; i++) {
        const struct rm_step *s = &net->steps[i];
        double rows = batch;
        if (s->per_quantile || s->kind == RM_STEP_COSINE)
            rows *= quantiles;
        if (s->kind == RM_STEP_LINEAR || s->kind == RM_STEP_COSINE)
            flops += 2.0 * rows * rm_step_weight_inputs(s) * s->out;
    }
    return flops;
}
