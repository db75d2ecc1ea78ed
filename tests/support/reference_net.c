#include "tests/support/reference_net.h"

#include "learner/backend/dropout.h"
#include "tests/support/reference_sequence.h"
#include "tests/support/reference_graph.h"
#include "tests/support/reference_history.h"
#include "tests/support/reference_tokens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double root(double x)
{
    return x < 0 ? -sqrt(-x) : sqrt(x);
}

static void linear(struct reference_walk *w, const char *layer, size_t out, bool noisy)
{
    size_t in = w->rows.width;
    double *weight = reference_floats(out * in), *bias = reference_floats(out);
    memcpy(weight, reference_tensor(w, layer, "weight"), out * in * sizeof *weight);
    memcpy(bias, reference_tensor(w, layer, "bias"), out * sizeof *bias);
    if (noisy && w->input->noise) {
        const double *sw = reference_tensor(w, layer, "sigma_weight"),
                     *sb = reference_tensor(w, layer, "sigma_bias");
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
    reference_replace(w, reference_product(&w->rows, weight, bias, out));
    free(weight);
    free(bias);
}

static void cosine_embedding(struct reference_walk *w, const char *layer, size_t cosines)
{
    size_t q = w->input->quantiles, n = w->rows.width, many = w->rows.count * q;
    struct reference_rows c = {
        .v = reference_floats(many * cosines), .count = many, .width = cosines};
    for (size_t r = 0; r < many; r++)
        for (size_t i = 0; i < cosines; i++)
            c.v[r * cosines + i] = cos(M_PI * (double)(i + 1) * w->input->tau[r]);
    struct reference_rows phi = reference_product(&c, reference_tensor(w, layer, "weight"),
                                                  reference_tensor(w, layer, "bias"), n);
    for (size_t r = 0; r < many; r++)
        for (size_t i = 0; i < n; i++) {
            double *p = &phi.v[r * n + i];
            *p = (*p > 0 ? *p : 0) * w->rows.v[r / q * n + i];
        }
    free(c.v);
    reference_replace(w, phi);
}

static void layer_norm(struct reference_walk *w, const char *layer)
{
    const double *gamma = reference_tensor(w, layer, "weight"),
                 *beta = reference_tensor(w, layer, "bias");
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

static void activation(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    (void)name;
    for (size_t i = 0; i < w->rows.count * w->rows.width; i++)
        w->rows.v[i] = activated(c->type, w->rows.v[i]);
}

static void duel(struct reference_walk *w, size_t actions, size_t k)
{
    struct reference_rows q = {.v = reference_floats(w->rows.count * actions * k),
                               .count = w->rows.count,
                               .width = actions * k};
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
    reference_replace(w, q);
}

/* --- recurrent layers ------------------------------------------------------------------------ */

static void recur(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    const struct reference_input *in = w->input;
    char ih[48], hh[48];
    snprintf(ih, sizeof ih, "%s.ih", name);
    snprintf(hh, sizeof hh, "%s.hh", name);
    const struct reference_cell cell = {w->rows.width,
                                        c->units,
                                        reference_tensor(w, ih, "weight"),
                                        reference_tensor(w, hh, "weight"),
                                        reference_tensor(w, ih, "bias"),
                                        reference_tensor(w, hh, "bias")};
    bool lstm = c->type == RM_LAYER_LSTM;
    size_t n = c->units, steps = in->steps ? in->steps : 1, lanes = w->rows.count / steps;
    size_t stride = rm_net_state_count(w->net), mine = lstm ? 2 * n : n;
    struct reference_rows y = {
        .v = reference_floats(w->rows.count * n), .count = w->rows.count, .width = n};
    double *state = reference_floats(mine);
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
    reference_replace(w, y);
}

/* Sums of rows of tables: groups of numbers, which are in tokens already. */
static void relate(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    const double *table = reference_tensor(w, name, "weight");
    const double *first = c->first_codes ? reference_tensor(w, name, "first") : table;
    size_t n = c->units, tokens = 1; /* in a row */
    if (!w->rows.tokens)
        tokens = w->shape->dims > 1 ? w->shape->dim[0] : w->rows.width / c->columns;
    size_t numbers = w->rows.width / tokens;
    struct reference_rows y = {.count = w->rows.count * tokens,
                               .width = n,
                               .tokens = w->rows.tokens ? w->rows.tokens : tokens};
    y.v = reference_floats(y.count * n);
    for (size_t r = 0; r < y.count; r++)
        for (size_t j = 0; j < numbers; j++) {
            size_t code = (size_t)w->rows.v[r * numbers + j], column = j % c->columns;
            double sign = c->difference && column + 1 == c->columns ? -1 : 1;
            for (size_t i = 0; i < n && code; i++)
                y.v[r * n + i] += sign * (column ? table : first)[code * n + i];
        }
    reference_replace(w, y);
    if (w->embedded.v == NULL)
        w->embedded = reference_copy(&w->rows);
}

/* Sums of rows of the table, one for each of the last numbers of the observation's shape. */
static void embedding(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    if (c->columns) {
        relate(w, c, name);
        return;
    }
    const double *table = reference_tensor(w, name, "weight");
    uint32_t dims = w->shape->dims;
    size_t numbers = dims > 1 ? w->shape->dim[dims - 1] : 1, tokens = w->rows.width / numbers;
    struct reference_rows y = {.count = w->rows.count * tokens,
                               .width = c->units,
                               .tokens = w->rows.tokens ? w->rows.tokens : tokens};
    y.v = reference_floats(y.count * y.width);
    for (size_t r = 0; r < y.count; r++)
        for (size_t j = 0; j < numbers; j++) {
            double code = w->rows.v[r * numbers + j] - w->shape->low;
            double codes = c->codes ? c->codes : w->shape->high - w->shape->low + 1;
            size_t row = code >= 0 && code < codes ? (size_t)code : 0; /* outside: the first */
            for (size_t i = 0; i < y.width; i++)
                y.v[r * y.width + i] += table[row * y.width + i];
        }
    reference_replace(w, y);
}

static double pixel(const struct reference_rows *x, size_t r, size_t channel, long y, long x_at)
{
    const size_t *image = x->image;
    if (y < 0 || x_at < 0 || y >= (long)image[1] || x_at >= (long)image[2])
        return 0;
    return x->v[r * x->width + (channel * image[1] + (size_t)y) * image[2] + (size_t)x_at];
}

static void conv2d(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    const double *weight = reference_tensor(w, name, "weight"),
                 *bias = reference_tensor(w, name, "bias");
    const struct reference_rows *x = &w->rows;
    size_t k = c->kernel;
    struct reference_rows y = {.count = x->count, .image = {c->units}};
    for (int d = 1; d < 3; d++)
        y.image[d] = (x->image[d] + 2 * c->padding - k) / c->stride + 1;
    y.width = y.image[0] * y.image[1] * y.image[2];
    y.v = reference_floats(y.count * y.width);
    for (size_t i = 0; i < y.count * y.width; i++) {
        size_t r = i / y.width, o = i / y.image[2] / y.image[1] % y.image[0];
        long top = (long)(i / y.image[2] % y.image[1] * c->stride) - (long)c->padding;
        long left = (long)(i % y.image[2] * c->stride) - (long)c->padding;
        y.v[i] = bias[o];
        for (size_t j = 0; j < x->image[0] * k * k; j++)
            y.v[i] += weight[o * x->image[0] * k * k + j] *
                      pixel(x, r, j / k / k, top + (long)(j / k % k), left + (long)(j % k));
    }
    reference_replace(w, y);
}

static void residual(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    const struct reference_rows *then = &w->before[w->layer - c->span];
    (void)name;
    for (size_t i = 0; i < w->rows.count * w->rows.width; i++)
        w->rows.v[i] += then->v[i];
}

/* Whether the last attention is before layer `layer`. */
static bool behind_attention(const struct rm_network_config *c, uint32_t layer)
{
    uint32_t last = c->layer_count;
    for (uint32_t i = 0; i < c->layer_count; i++)
        if (c->layers[i].type == RM_LAYER_ATTENTION)
            last = i;
    return last < layer;
}

static void dropout(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    const uint32_t number =
        w->first_number + w->layer + (strncmp(name, "value_", 6) == 0 ? RM_LAYERS_MAX : 0);
    const struct rm_dropout d = rm_dropout_of(w->input->dropout_seed, RM_STREAM_DROPOUT, number,
                                              w->input->dropout_update, c->rate);
    const bool history = w->shape->history.queries > 0;
    const bool last = history && behind_attention(w->config, w->layer);
    const size_t n = w->rows.count * w->rows.width, state = w->rows.width * w->tokens;
    const size_t asked = w->rows.width * w->shape->history.queries;
    for (size_t i = 0, at = 0; i < n && w->input->dropout_update; i++) {
        if (history && i % state == 0)
            at = i; /* a history's draws are those of its rows without padding */
        if (last && i % state == state - asked)
            at = i / state * asked; /* or of its queries */
        const size_t draw = history ? at : i;
        at += !history || w->valid[i / w->rows.width];
        w->rows.v[i] *=
            rm_dropout_kept(rm_dropout_part(&d, 0), (uint32_t)draw, d.below, 1) / (1 - c->rate);
    }
}

/* --- layers by type -------------------------------------------------------------------------- */

static void any_linear(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    linear(w, name, c->units, c->type == RM_LAYER_NOISY_LINEAR);
}

static void any_cosine(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    cosine_embedding(w, name, c->cosines);
}

static void any_layer_norm(struct reference_walk *w, const struct rm_layer_config *c,
                           const char *name)
{
    (void)c;
    layer_norm(w, name);
}

typedef void (*layer_fn)(struct reference_walk *w, const struct rm_layer_config *c,
                         const char *name);

/* clang-format off */
static const layer_fn layer_of[RM_LAYER_TYPE_COUNT] = {
    [RM_LAYER_LINEAR] = any_linear,
    [RM_LAYER_NOISY_LINEAR] = any_linear,
    [RM_LAYER_COSINE_EMBEDDING] = any_cosine,
    [RM_LAYER_LAYER_NORM] = any_layer_norm,
    [RM_LAYER_MEAN_POOL] = reference_mean_pool,
    [RM_LAYER_ATTENTION] = reference_attend,
    [RM_LAYER_POSITION] = reference_place,
    [RM_LAYER_POINTER] = reference_point,
    [RM_LAYER_ONE_HOT] = reference_one_hot,
    [RM_LAYER_MESSAGE_PASSING] = reference_pass_messages,
    [RM_LAYER_GRAPH_ATTENTION] = reference_attend_edges,
    [RM_LAYER_GRAPH_POOL] = reference_pool_graph,
    [RM_LAYER_EMBEDDING] = embedding,
    [RM_LAYER_CONV2D] = conv2d,
    [RM_LAYER_RESIDUAL] = residual,
    [RM_LAYER_DROPOUT] = dropout,
    [RM_LAYER_HISTORY] = reference_history,
    [RM_LAYER_GRU] = recur,
    [RM_LAYER_LSTM] = recur,
};
/* clang-format on */

/* Numbers behind those of each row: (count, width), or the same ones in every row. */
static void append(struct reference_walk *w, const double *v, size_t width, bool same)
{
    const size_t own = w->rows.width;
    struct reference_rows all = {.v = reference_floats(w->rows.count * (own + width)),
                                 .count = w->rows.count,
                                 .width = own + width};
    for (size_t r = 0; r < all.count; r++) {
        memcpy(all.v + r * all.width, w->rows.v + r * own, own * sizeof *all.v);
        memcpy(all.v + r * all.width + own, v + (same ? 0 : r * width), width * sizeof *all.v);
    }
    reference_replace(w, all);
}

/* Of values of real actions: before the first linear layer, or the head. */
static void add_action(struct reference_walk *w)
{
    if (w->shape->acts && !w->acted)
        append(w, w->input->action, w->shape->acts, false);
    w->acted = true;
}

void reference_layers(struct reference_walk *w, const struct rm_layer_config *layers,
                      uint32_t count, const char *list)
{
    for (w->layer = 0; w->layer < count; w->layer++) {
        const struct rm_layer_config *c = &layers[w->layer];
        char name[80];
        snprintf(name, sizeof name, "%s.%u", list, w->layer);
        if (c->type == RM_LAYER_LINEAR && strncmp(list, "inputs.", 7) != 0)
            add_action(w);
        w->before[w->layer] = reference_copy(&w->rows);
        (layer_of[c->type] ? layer_of[c->type] : activation)(w, c, name);
    }
    for (uint32_t l = 0; l < count; l++)
        free(w->before[l].v);
}

void reference_image(const uint32_t *dim, uint32_t dims, size_t image[3])
{
    size_t at = 0;
    if (dims != 2 && dims != 3)
        return;
    if (dims == 2)
        image[at++] = 1;
    for (uint32_t d = 0; d < dims; d++)
        image[at++] = dim[d];
}

static struct reference_rows cut(struct reference_walk *w, struct reference_rows x)
{
    if (w->config->input_count)
        return reference_inputs(w, x);
    reference_cut_tokens(w, &x);
    return x;
}

static struct reference_rows input_rows(struct reference_walk *w)
{
    size_t n = w->shape->inputs, floats = (size_t)w->input->batch * n;
    struct reference_rows x = {.v = reference_floats(floats), .count = w->input->batch, .width = n};
    if (w->combined.v) {
        free(x.v);
        return reference_copy(&w->combined);
    }
    reference_image(w->shape->dim, w->shape->dims, x.image);
    memcpy(x.v, w->input->x, floats * sizeof(double));
    if (!w->config->normalize_observations)
        return cut(w, x);
    const double *mean = reference_tensor(w, "normalizer", "mean"),
                 *scale = reference_tensor(w, "normalizer", "scale");
    double bound = w->config->observation_clip;
    for (size_t i = 0; i < floats; i++) {
        double z = (x.v[i] - mean[i % n]) * scale[i % n];
        x.v[i] = z > bound ? bound : z < -bound ? -bound : z;
    }
    return cut(w, x);
}

void reference_forward(const struct rm_network_config *config, const struct rm_net_shape *shape,
                       const struct rm_net *net, const double *params,
                       const struct reference_input *input, double *out)
{
    struct reference_walk w = {
        .config = config, .shape = shape, .net = net, .params = params, .input = input};
    w.rows = input_rows(&w);
    reference_layers(&w, config->layers, config->layer_count, "layers");
    struct reference_rows trunk = reference_copy(&w.rows);
    size_t k = shape->outputs_per_action;
    bool value = shape->head == RM_HEAD_ACTOR_CRITIC;
    bool points = reference_has_layer(config, RM_LAYER_POINTER, false);
    if (!points) {
        if (shape->history.queries)
            reference_queries(&w);
        else
            reference_flatten(&w);
        add_action(&w);
        linear(&w, "head",
               (shape->actions + (config->dueling ? 1 : 0)) * k + shape->history.types +
                   (shape->deviation_of_state ? 2 : 1) * shape->reals,
               config->noisy_head);
    }
    if (shape->reals && !shape->deviation_of_state)
        append(&w, reference_tensor(&w, "head", "log_deviation"), shape->reals, true);
    if (config->dueling)
        duel(&w, shape->actions, k);
    if (value) {
        struct reference_rows logits = w.rows;
        w.rows = trunk;
        if (points)
            reference_replace(&w, reference_copy(&w.items));
        if (points && config->trunk != RM_TRUNK_SEPARATE)
            reference_keep_first(&w);
        if (config->trunk == RM_TRUNK_SEPARATE) {
            bool own = config->value_layer_count > 0;
            reference_replace(&w, w.embedded.v ? reference_copy(&w.embedded) : input_rows(&w));
            if (points && !reference_looks_across(config, true))
                reference_keep_first(&w);
            reference_layers(&w, own ? config->value_layers : config->layers,
                             own ? config->value_layer_count : config->layer_count, "value_layers");
        }
        reference_flatten(&w);
        linear(&w, "value_head", 1, config->noisy_head);
        trunk = w.rows;
        w.rows = logits;
        append(&w, trunk.v, 1, false);
    }
    free(trunk.v);
    free(w.items.v);
    free(w.embedded.v);
    free(w.combined.v);
    free(w.valid);
    memcpy(out, w.rows.v, w.rows.count * w.rows.width * sizeof *out);
    free(w.rows.v);
}
