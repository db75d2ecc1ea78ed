#include "tests/support/reference_net.h"

#include "tests/support/reference_sequence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    double *v; /* (count, width) */
    size_t count, width;
    size_t tokens;   /* rows of a state, 0: one */
    size_t image[3]; /* channels, height, width; zeros if it is none */
};

struct walk {
    const struct rm_network_config *config;
    const struct rm_net_shape *shape;
    const struct rm_net *net;
    const double *params;
    const struct reference_input *input;
    size_t noise_used;
    struct rows rows;
    uint32_t layer;
    size_t state_used;    /* floats of a lane's row of states */
    uint8_t *valid;       /* of each token of the input; NULL: the network has none */
    size_t tokens;        /* of a state */
    struct rows items;    /* what went into a pointer */
    struct rows embedded; /* what the policy's embedding of groups gave, for the value too */
    struct rows before[RM_LAYERS_MAX]; /* what went into each layer */
};

static const double *tensor(const struct walk *w, const char *layer, const char *part)
{
    char name[80];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    const struct rm_net_tensor *all;
    size_t n = rm_net_tensors(w->net, &all);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, name) == 0)
            return w->params + all[i].offset;
    fprintf(stderr, "no tensor %s\n", name);
    abort();
}

static double *make(size_t n)
{
    double *p = calloc(n ? n : 1, sizeof *p);
    if (!p)
        abort();
    return p;
}

static double root(double x)
{
    return x < 0 ? -sqrt(-x) : sqrt(x);
}

static struct rows product(const struct rows *x, const double *weight, const double *bias,
                           size_t out)
{
    struct rows y = {make(x->count * out), x->count, out, x->tokens, {0}};
    for (size_t r = 0; r < x->count; r++)
        for (size_t o = 0; o < out; o++) {
            double s = bias[o];
            for (size_t i = 0; i < x->width; i++)
                s += x->v[r * x->width + i] * weight[o * x->width + i];
            y.v[r * out + o] = s;
        }
    return y;
}

static void replace(struct walk *w, struct rows y)
{
    free(w->rows.v);
    w->rows = y;
}

static void linear(struct walk *w, const char *layer, size_t out, bool noisy)
{
    size_t in = w->rows.width;
    double *weight = make(out * in), *bias = make(out);
    memcpy(weight, tensor(w, layer, "weight"), out * in * sizeof *weight);
    memcpy(bias, tensor(w, layer, "bias"), out * sizeof *bias);
    if (noisy && w->input->noise) {
        const double *sw = tensor(w, layer, "sigma_weight"), *sb = tensor(w, layer, "sigma_bias");
        const double *e = w->input->noise + w->noise_used;
        bool factorised = w->config->noise == RM_NOISE_FACTORISED;
        for (size_t o = 0; o < out; o++) {
            for (size_t i = 0; i < in; i++)
                weight[o * in + i] +=
                    sw[o * in + i] * (factorised ? root(e[in + o]) * root(e[i]) : e[o * in + i]);
            bias[o] += sb[o] * (factorised ? root(e[in + o]) : e[out * in + o]);
        }
        w->noise_used += factorised ? in + out : in * out + out;
    }
    replace(w, product(&w->rows, weight, bias, out));
    free(weight);
    free(bias);
}

static void cosine_embedding(struct walk *w, const char *layer, size_t cosines)
{
    size_t q = w->input->quantiles, n = w->rows.width, many = w->rows.count * q;
    struct rows c = {.v = make(many * cosines), .count = many, .width = cosines};
    for (size_t r = 0; r < many; r++)
        for (size_t i = 0; i < cosines; i++)
            c.v[r * cosines + i] = cos(M_PI * (double)(i + 1) * w->input->tau[r]);
    struct rows phi = product(&c, tensor(w, layer, "weight"), tensor(w, layer, "bias"), n);
    for (size_t r = 0; r < many; r++)
        for (size_t i = 0; i < n; i++) {
            double *p = &phi.v[r * n + i];
            *p = (*p > 0 ? *p : 0) * w->rows.v[r / q * n + i];
        }
    free(c.v);
    replace(w, phi);
}

static void layer_norm(struct walk *w, const char *layer)
{
    const double *gamma = tensor(w, layer, "weight"), *beta = tensor(w, layer, "bias");
    size_t n = w->rows.width;
    for (size_t r = 0; r < w->rows.count; r++) {
        double *v = w->rows.v + r * n, mean = 0, var = 0;
        for (size_t i = 0; i < n; i++)
            mean += v[i] / (double)n;
        for (size_t i = 0; i < n; i++)
            var += (v[i] - mean) * (v[i] - mean) / (double)n;
        for (size_t i = 0; i < n; i++)
            v[i] = (v[i] - mean) / sqrt(var + 1e-5) * gamma[i] + beta[i];
    }
}

static double activated(enum rm_layer_type type, double x)
{
    switch (type) {
    case RM_LAYER_RELU:
        return x > 0 ? x : 0;
    case RM_LAYER_TANH:
        return tanh(x);
    case RM_LAYER_GELU:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    case RM_LAYER_SILU:
        return x / (1 + exp(-x));
    case RM_LAYER_ELU:
        return x > 0 ? x : expm1(x);
    case RM_LAYER_LEAKY_RELU:
        return x > 0 ? x : 0.01 * x;
    case RM_LAYER_SIGMOID:
        return 1 / (1 + exp(-x));
    default:
        fprintf(stderr, "no layer of type %d\n", (int)type);
        abort();
    }
}

static void activation(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    (void)name;
    for (size_t i = 0; i < w->rows.count * w->rows.width; i++)
        w->rows.v[i] = activated(c->type, w->rows.v[i]);
}

static void duel(struct walk *w, size_t actions, size_t k)
{
    struct rows q = {
        .v = make(w->rows.count * actions * k), .count = w->rows.count, .width = actions * k};
    for (size_t r = 0; r < q.count; r++) {
        const double *in = w->rows.v + r * (actions + 1) * k;
        for (size_t j = 0; j < k; j++) {
            double mean = 0;
            for (size_t a = 0; a < actions; a++)
                mean += in[a * k + j] / (double)actions;
            for (size_t a = 0; a < actions; a++)
                q.v[r * q.width + a * k + j] = in[actions * k + j] + in[a * k + j] - mean;
        }
    }
    replace(w, q);
}

/* --- tokens ---------------------------------------------------------------------------------- */

static struct rows copy_of(const struct rows *from)
{
    struct rows to = *from;
    to.v = make(from->count * from->width);
    memcpy(to.v, from->v, from->count * from->width * sizeof *to.v);
    return to;
}

static void mean_pool(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    (void)c;
    (void)name;
    size_t n = w->rows.width, states = w->rows.count / w->tokens;
    struct rows y = {.v = make(states * n), .count = states, .width = n};
    for (size_t s = 0; s < states; s++) {
        double count = 0;
        for (size_t t = 0; t < w->tokens; t++)
            count += w->valid[s * w->tokens + t];
        for (size_t t = 0; t < w->tokens; t++)
            for (size_t i = 0; i < n && w->valid[s * w->tokens + t]; i++)
                y.v[s * n + i] += w->rows.v[(s * w->tokens + t) * n + i] / count;
    }
    replace(w, y);
}

static void attention(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    char in[48], out[48];
    snprintf(in, sizeof in, "%s.qkv", name);
    snprintf(out, sizeof out, "%s.out", name);
    size_t width = w->rows.width, units = c->units ? c->units : width, count = w->rows.count;
    struct rows qkv = product(&w->rows, tensor(w, in, "weight"), tensor(w, in, "bias"), 3 * units);
    struct rows o = {make(count * units), count, units, w->rows.tokens, {0}};
    for (size_t r = 0; r < count; r += w->tokens)
        reference_attention(qkv.v + r * 3 * units, w->valid + r, w->tokens, c->heads, units,
                            c->causal, o.v + r * units);
    free(qkv.v);
    replace(w, o);
    replace(w, product(&w->rows, tensor(w, out, "weight"), tensor(w, out, "bias"), width));
}

/* The first token of each state, in the place of all. */
static void keep_first(struct walk *w)
{
    size_t n = w->rows.width, states = w->rows.count / w->tokens;
    struct rows y = {.v = make(states * n), .count = states, .width = n};
    for (size_t s = 0; s < states; s++)
        memcpy(y.v + s * n, w->rows.v + s * w->tokens * n, n * sizeof *y.v);
    replace(w, y);
}

static void pointer(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    w->items = copy_of(&w->rows);
    size_t n = c->units, states = w->rows.count / w->tokens, actions = w->tokens - 1;
    struct rows f = product(&w->rows, tensor(w, name, "weight"), tensor(w, name, "bias"), n);
    struct rows y = {.v = make(states * actions), .count = states, .width = actions};
    for (size_t s = 0; s < states; s++)
        for (size_t a = 0; a < actions; a++)
            for (size_t i = 0; i < n && w->valid[s * w->tokens + a + 1]; i++)
                y.v[s * actions + a] += f.v[s * w->tokens * n + i] *
                                        f.v[(s * w->tokens + a + 1) * n + i] / sqrt((double)n);
    free(f.v);
    replace(w, y);
}

/* Tokens side by side, zeros for padding. */
static void flatten(struct walk *w)
{
    struct rows *x = &w->rows;
    if (!x->tokens)
        return;
    for (size_t r = 0; r < x->count; r++)
        for (size_t i = 0; i < x->width && w->valid && !w->valid[r]; i++)
            x->v[r * x->width + i] = 0;
    x->count /= x->tokens;
    x->width *= x->tokens;
    x->tokens = 0;
}

static bool has_layer(const struct rm_network_config *c, enum rm_layer_type type, bool value)
{
    uint32_t count = value ? c->value_layer_count : c->layer_count;
    for (uint32_t i = 0; i < count; i++)
        if ((value ? c->value_layers : c->layers)[i].type == type)
            return true;
    return false;
}

static bool looks_across(const struct rm_network_config *c, bool value)
{
    return has_layer(c, RM_LAYER_ATTENTION, value) || has_layer(c, RM_LAYER_MEAN_POOL, value) ||
           has_layer(c, RM_LAYER_POINTER, value);
}

/* Rows of tokens, and which of them are padding. */
static void cut_tokens(struct walk *w, struct rows *x)
{
    if (!looks_across(w->config, false) && !looks_across(w->config, true))
        return;
    size_t tokens = w->tokens = w->shape->dim[0], n = x->width / tokens;
    *x = (struct rows){x->v, x->count * tokens, n, tokens, {0}};
    if (w->valid)
        return;
    w->valid = calloc(x->count, 1);
    for (size_t i = 0; i < x->count * n; i++)
        w->valid[i / n] |= w->input->x[i] != 0;
    for (size_t r = 0; r < x->count && has_layer(w->config, RM_LAYER_POINTER, false); r += tokens)
        w->valid[r] = 1;
}

/* --- recurrent layers ------------------------------------------------------------------------ */

static void recur(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    const struct reference_input *in = w->input;
    char ih[48], hh[48];
    snprintf(ih, sizeof ih, "%s.ih", name);
    snprintf(hh, sizeof hh, "%s.hh", name);
    const struct reference_cell cell = {w->rows.width,           c->units,
                                        tensor(w, ih, "weight"), tensor(w, hh, "weight"),
                                        tensor(w, ih, "bias"),   tensor(w, hh, "bias")};
    bool lstm = c->type == RM_LAYER_LSTM;
    size_t n = c->units, steps = in->steps ? in->steps : 1, lanes = w->rows.count / steps;
    size_t stride = rm_net_state_count(w->net), mine = lstm ? 2 * n : n;
    struct rows y = {.v = make(w->rows.count * n), .count = w->rows.count, .width = n};
    double *state = make(mine);
    for (size_t lane = 0; lane < lanes; lane++) {
        for (size_t i = 0; i < mine; i++)
            state[i] = in->state ? in->state[lane * stride + w->state_used + i] : 0;
        for (size_t row = lane; row < y.count; row += lanes) {
            if (in->restart && in->restart[row])
                memset(state, 0, mine * sizeof *state);
            if (lstm)
                reference_lstm(&cell, w->rows.v + row * w->rows.width, state, state + n);
            else
                reference_gru(&cell, w->rows.v + row * w->rows.width, state);
            memcpy(y.v + row * n, state, n * sizeof *state);
        }
        if (in->next_state)
            memcpy(in->next_state + lane * stride + w->state_used, state, mine * sizeof *state);
    }
    w->state_used += mine;
    free(state);
    replace(w, y);
}

/* Sums of rows of tables: groups of numbers, which are in tokens already. */
static void relate(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    const double *table = tensor(w, name, "weight");
    const double *first = c->first_codes ? tensor(w, name, "first") : table;
    size_t numbers = w->rows.width, n = c->units;
    struct rows y = {
        .v = make(w->rows.count * n), .count = w->rows.count, .width = n, .tokens = w->rows.tokens};
    for (size_t r = 0; r < y.count; r++)
        for (size_t j = 0; j < numbers; j++) {
            size_t code = (size_t)w->rows.v[r * numbers + j], column = j % c->columns;
            double sign = c->difference && column + 1 == c->columns ? -1 : 1;
            for (size_t i = 0; i < n && code; i++)
                y.v[r * n + i] += sign * (column ? table : first)[code * n + i];
        }
    replace(w, y);
    if (w->embedded.v == NULL)
        w->embedded = copy_of(&w->rows);
}

/* Sums of rows of the table, one for each of the last numbers of the observation's shape. */
static void embedding(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    if (c->columns) {
        relate(w, c, name);
        return;
    }
    const double *table = tensor(w, name, "weight");
    uint32_t dims = w->shape->dims;
    size_t numbers = dims > 1 ? w->shape->dim[dims - 1] : 1, tokens = w->rows.width / numbers;
    struct rows y = {.count = w->rows.count * tokens,
                     .width = c->units,
                     .tokens = w->rows.tokens ? w->rows.tokens : tokens};
    y.v = make(y.count * y.width);
    for (size_t r = 0; r < y.count; r++)
        for (size_t j = 0; j < numbers; j++) {
            double code = w->rows.v[r * numbers + j] - w->shape->low;
            double codes = c->codes ? c->codes : w->shape->high - w->shape->low + 1;
            size_t row = code >= 0 && code < codes ? (size_t)code : 0; /* outside: the first */
            for (size_t i = 0; i < y.width; i++)
                y.v[r * y.width + i] += table[row * y.width + i];
        }
    replace(w, y);
}

static double pixel(const struct rows *x, size_t r, size_t channel, long y, long x_at)
{
    const size_t *image = x->image;
    if (y < 0 || x_at < 0 || y >= (long)image[1] || x_at >= (long)image[2])
        return 0;
    return x->v[r * x->width + (channel * image[1] + (size_t)y) * image[2] + (size_t)x_at];
}

static void conv2d(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    const double *weight = tensor(w, name, "weight"), *bias = tensor(w, name, "bias");
    const struct rows *x = &w->rows;
    size_t k = c->kernel;
    struct rows y = {.count = x->count, .image = {c->units}};
    for (int d = 1; d < 3; d++)
        y.image[d] = (x->image[d] + 2 * c->padding - k) / c->stride + 1;
    y.width = y.image[0] * y.image[1] * y.image[2];
    y.v = make(y.count * y.width);
    for (size_t i = 0; i < y.count * y.width; i++) {
        size_t r = i / y.width, o = i / y.image[2] / y.image[1] % y.image[0];
        long top = (long)(i / y.image[2] % y.image[1] * c->stride) - (long)c->padding;
        long left = (long)(i % y.image[2] * c->stride) - (long)c->padding;
        y.v[i] = bias[o];
        for (size_t j = 0; j < x->image[0] * k * k; j++)
            y.v[i] += weight[o * x->image[0] * k * k + j] *
                      pixel(x, r, j / k / k, top + (long)(j / k % k), left + (long)(j % k));
    }
    replace(w, y);
}

static void residual(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    const struct rows *then = &w->before[w->layer - c->span];
    (void)name;
    for (size_t i = 0; i < w->rows.count * w->rows.width; i++)
        w->rows.v[i] += then->v[i];
}

static void dropout(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    size_t n = w->rows.count * w->rows.width;
    float *u = malloc((n + 1) * sizeof *u);
    uint32_t number = w->layer + (strncmp(name, "value_", 6) == 0 ? RM_LAYERS_MAX : 0);
    struct rm_backend *b = w->input->backend;
    b->ops->uniforms(b, w->input->dropout_seed, RM_STREAM_DROPOUT, number, w->input->dropout_update,
                     n, u);
    for (size_t i = 0; i < n && w->input->dropout_update; i++)
        w->rows.v[i] = (double)u[i] < (double)(float)c->rate ? 0 : w->rows.v[i] / (1 - c->rate);
    free(u);
}

/* --- layers by type -------------------------------------------------------------------------- */

static void any_linear(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    linear(w, name, c->units, c->type == RM_LAYER_NOISY_LINEAR);
}

static void any_cosine(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    cosine_embedding(w, name, c->cosines);
}

static void any_layer_norm(struct walk *w, const struct rm_layer_config *c, const char *name)
{
    (void)c;
    layer_norm(w, name);
}

typedef void (*layer_fn)(struct walk *w, const struct rm_layer_config *c, const char *name);

/* clang-format off */
static const layer_fn layer_of[RM_LAYER_TYPE_COUNT] = {
    [RM_LAYER_LINEAR] = any_linear,
    [RM_LAYER_NOISY_LINEAR] = any_linear,
    [RM_LAYER_COSINE_EMBEDDING] = any_cosine,
    [RM_LAYER_LAYER_NORM] = any_layer_norm,
    [RM_LAYER_MEAN_POOL] = mean_pool,
    [RM_LAYER_ATTENTION] = attention,
    [RM_LAYER_POINTER] = pointer,
    [RM_LAYER_EMBEDDING] = embedding,
    [RM_LAYER_CONV2D] = conv2d,
    [RM_LAYER_RESIDUAL] = residual,
    [RM_LAYER_DROPOUT] = dropout,
    [RM_LAYER_GRU] = recur,
    [RM_LAYER_LSTM] = recur,
};
/* clang-format on */

static void walk_layers(struct walk *w, const struct rm_layer_config *layers, uint32_t count,
                        const char *list)
{
    for (w->layer = 0; w->layer < count; w->layer++) {
        const struct rm_layer_config *c = &layers[w->layer];
        char name[40];
        snprintf(name, sizeof name, "%s.%u", list, w->layer);
        w->before[w->layer] = copy_of(&w->rows);
        (layer_of[c->type] ? layer_of[c->type] : activation)(w, c, name);
    }
    for (uint32_t l = 0; l < count; l++)
        free(w->before[l].v);
}

static void image_of(const struct rm_net_shape *shape, size_t image[3])
{
    size_t at = 0;
    if (shape->dims != 2 && shape->dims != 3)
        return;
    if (shape->dims == 2)
        image[at++] = 1;
    for (uint32_t d = 0; d < shape->dims; d++)
        image[at++] = shape->dim[d];
}

static struct rows input_rows(struct walk *w)
{
    size_t n = w->shape->inputs, floats = (size_t)w->input->batch * n;
    struct rows x = {.v = make(floats), .count = w->input->batch, .width = n};
    image_of(w->shape, x.image);
    memcpy(x.v, w->input->x, floats * sizeof(double));
    if (!w->config->normalize_observations) {
        cut_tokens(w, &x);
        return x;
    }
    const double *mean = tensor(w, "normalizer", "mean"), *scale = tensor(w, "normalizer", "scale");
    double bound = w->config->observation_clip;
    for (size_t i = 0; i < floats; i++) {
        double z = (x.v[i] - mean[i % n]) * scale[i % n];
        x.v[i] = z > bound ? bound : z < -bound ? -bound : z;
    }
    cut_tokens(w, &x);
    return x;
}

/* Logits, then the value, in each row. */
static void append_value(struct walk *w, struct rows *value)
{
    struct rows all = {.v = make(w->rows.count * (w->rows.width + 1)),
                       .count = w->rows.count,
                       .width = w->rows.width + 1};
    for (size_t r = 0; r < all.count; r++) {
        memcpy(all.v + r * all.width, w->rows.v + r * w->rows.width, w->rows.width * sizeof *all.v);
        all.v[r * all.width + w->rows.width] = value->v[r];
    }
    replace(w, all);
}

void reference_forward(const struct rm_network_config *config, const struct rm_net_shape *shape,
                       const struct rm_net *net, const double *params,
                       const struct reference_input *input, double *out)
{
    struct walk w = {
        .config = config, .shape = shape, .net = net, .params = params, .input = input};
    w.rows = input_rows(&w);
    walk_layers(&w, config->layers, config->layer_count, "layers");
    struct rows trunk = copy_of(&w.rows);
    size_t k = shape->outputs_per_action;
    bool value = shape->head == RM_HEAD_ACTOR_CRITIC;
    bool points = has_layer(config, RM_LAYER_POINTER, false);
    if (!points) {
        flatten(&w);
        linear(&w, "head", (shape->actions + (config->dueling ? 1 : 0)) * k, config->noisy_head);
    }
    if (config->dueling)
        duel(&w, shape->actions, k);
    if (value) {
        struct rows logits = w.rows;
        w.rows = trunk;
        if (points)
            replace(&w, copy_of(&w.items));
        if (points && config->trunk != RM_TRUNK_SEPARATE)
            keep_first(&w);
        if (config->trunk == RM_TRUNK_SEPARATE) {
            bool own = config->value_layer_count > 0;
            replace(&w, w.embedded.v ? copy_of(&w.embedded) : input_rows(&w));
            if (points && !looks_across(config, true))
                keep_first(&w);
            walk_layers(&w, own ? config->value_layers : config->layers,
                        own ? config->value_layer_count : config->layer_count, "value_layers");
        }
        flatten(&w);
        linear(&w, "value_head", 1, config->noisy_head);
        trunk = w.rows;
        w.rows = logits;
        append_value(&w, &trunk);
    }
    free(trunk.v);
    free(w.items.v);
    free(w.embedded.v);
    free(w.valid);
    memcpy(out, w.rows.v, w.rows.count * w.rows.width * sizeof *out);
    free(w.rows.v);
}
