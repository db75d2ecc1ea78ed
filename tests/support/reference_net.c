#include "tests/support/reference_net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rows {
    double *v; /* (count, width) */
    size_t count, width;
};

struct walk {
    const struct rm_network_config *config;
    const struct rm_net *net;
    const double *params;
    const struct reference_input *input;
    size_t noise_used;
    struct rows rows;
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
    struct rows y = {make(x->count * out), x->count, out};
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
    struct rows c = {make(many * cosines), many, cosines};
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

static void activation(struct walk *w, enum rm_layer_type type)
{
    for (size_t i = 0; i < w->rows.count * w->rows.width; i++) {
        double *v = &w->rows.v[i], x = *v;
        if (type == RM_LAYER_RELU)
            *v = x > 0 ? x : 0;
        else if (type == RM_LAYER_TANH)
            *v = tanh(x);
        else
            *v = 0.5 * x * (1 + erf(x / sqrt(2)));
    }
}

static void duel(struct walk *w, size_t actions, size_t k)
{
    struct rows q = {make(w->rows.count * actions * k), w->rows.count, actions * k};
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

void reference_forward(const struct rm_network_config *config, const struct rm_net_shape *shape,
                       const struct rm_net *net, const double *params,
                       const struct reference_input *input, double *out)
{
    struct walk w = {.config = config, .net = net, .params = params, .input = input};
    size_t floats = (size_t)input->batch * shape->inputs;
    w.rows = (struct rows){make(floats), input->batch, shape->inputs};
    memcpy(w.rows.v, input->x, floats * sizeof(double));
    for (uint32_t l = 0; l < config->layer_count; l++) {
        const struct rm_layer_config *c = &config->layers[l];
        char name[32];
        snprintf(name, sizeof name, "layers.%u", l);
        if (c->type == RM_LAYER_LINEAR || c->type == RM_LAYER_NOISY_LINEAR)
            linear(&w, name, c->units, c->type == RM_LAYER_NOISY_LINEAR);
        else if (c->type == RM_LAYER_COSINE_EMBEDDING)
            cosine_embedding(&w, name, c->cosines);
        else if (c->type == RM_LAYER_LAYER_NORM)
            layer_norm(&w, name);
        else
            activation(&w, c->type);
    }
    size_t k = shape->outputs_per_action;
    linear(&w, "head", (shape->actions + (config->dueling ? 1 : 0)) * k, config->noisy_head);
    if (config->dueling)
        duel(&w, shape->actions, k);
    memcpy(out, w.rows.v, w.rows.count * w.rows.width * sizeof *out);
    free(w.rows.v);
}
