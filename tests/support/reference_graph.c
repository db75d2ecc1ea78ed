/* Layers over the edges of a graph in reference_net, by their definition: every edge of every node
 * is looked up in what the world showed. */
#include "tests/support/reference_graph.h"

#include "tests/support/reference_tokens.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double *part_of(const struct reference_walk *w, const char *suffix, size_t state,
                             size_t *words)
{
    char name[96];
    uint32_t o = 0;
    snprintf(name, sizeof name, "%s%s", w->observed, suffix);
    while (strcmp(w->whole->observation[o].name, name) != 0)
        o++;
    *words = w->whole->observation[o].words;
    return w->input->x + state * w->whole->inputs + w->whole->observation[o].at +
           w->whole->observation[o].counts;
}

static size_t nodes_of(const struct reference_walk *w, size_t state)
{
    size_t nodes = 0;
    while (nodes < w->tokens && w->valid[state * w->tokens + nodes])
        nodes++;
    return nodes;
}

/* Sources of the edges to a node, at most `most`; returns how many. */
static size_t sources_of(const struct reference_walk *w, size_t state, size_t node, size_t *source,
                         size_t most)
{
    const size_t nodes = nodes_of(w, state);
    size_t words, count = 0;
    const double *edges = part_of(w, "_edges", state, &words);
    if (words <= nodes + 1 || node >= nodes)
        return 0;
    for (double k = edges[node]; k < edges[node + 1] && k < (double)(words - nodes - 1); k++) {
        const double from = edges[nodes + 1 + (size_t)k];
        if (from >= 0 && from < (double)nodes && count < most)
            source[count++] = (size_t)from;
    }
    return count;
}

enum { MOST = 64 };

void reference_one_hot(struct reference_walk *w, const struct rm_layer_config *c, const char *name)
{
    const size_t n = w->rows.width, rest = n - 1, wide = rest + c->codes;
    struct reference_rows y = {
        reference_floats(w->rows.count * wide), w->rows.count, wide, w->rows.tokens, {0}};
    (void)name;
    for (size_t r = 0; r < y.count; r++) {
        const double *x = w->rows.v + r * n;
        for (size_t i = 0, to = 0; i < n; i++)
            if (i != c->column)
                y.v[r * wide + to++] = x[i];
        for (uint32_t code = 0; code < c->codes; code++)
            y.v[r * wide + rest + code] = x[c->column] == code ? 1 : 0;
    }
    reference_replace(w, y);
}

void reference_pass_messages(struct reference_walk *w, const struct rm_layer_config *c,
                             const char *name)
{
    const size_t n = w->rows.width;
    struct reference_rows x = {
        reference_floats(w->rows.count * 2 * n), w->rows.count, 2 * n, w->rows.tokens, {0}};
    for (size_t r = 0; r < x.count; r++) {
        size_t source[MOST];
        const size_t state = r / w->tokens;
        const size_t count = sources_of(w, state, r % w->tokens, source, MOST);
        memcpy(x.v + r * 2 * n, w->rows.v + r * n, n * sizeof *x.v);
        for (size_t k = 0; k < count; k++)
            for (size_t i = 0; i < n; i++)
                x.v[(2 * r + 1) * n + i] +=
                    w->rows.v[(state * w->tokens + source[k]) * n + i] / (double)count;
    }
    struct reference_rows y = reference_product(&x, reference_tensor(w, name, "weight"),
                                                reference_tensor(w, name, "bias"), c->units);
    free(x.v);
    reference_replace(w, y);
}

static double score_of(const double *score, const double *target, const double *source,
                       size_t width)
{
    double z = 0;
    for (size_t i = 0; i < width; i++)
        z += score[i] * target[i] + score[width + i] * source[i];
    return z > 0 ? z : 0.2 * z;
}

void reference_attend_edges(struct reference_walk *w, const struct rm_layer_config *c,
                            const char *name)
{
    const size_t n = w->rows.width, units = c->units ? c->units : n, width = units / c->heads;
    char in[96], out[96];
    snprintf(in, sizeof in, "%s.qkv", name);
    snprintf(out, sizeof out, "%s.out", name);
    const double *score = reference_tensor(w, name, "score");
    struct reference_rows qkv = reference_product(&w->rows, reference_tensor(w, in, "weight"),
                                                  reference_tensor(w, in, "bias"), 3 * units);
    struct reference_rows o = {
        reference_floats(w->rows.count * units), w->rows.count, units, w->rows.tokens, {0}};
    for (size_t r = 0; r < o.count; r++) {
        size_t source[MOST];
        const size_t first = r / w->tokens * w->tokens;
        const size_t count = sources_of(w, r / w->tokens, r % w->tokens, source, MOST);
        for (size_t h = 0; h < c->heads; h++) {
            const double *a = score + h * 2 * width, *q = qkv.v + r * 3 * units + h * width;
            double sum = 0;
            for (size_t k = 0; k < count; k++) {
                const double *from = qkv.v + (first + source[k]) * 3 * units + h * width;
                sum += exp(score_of(a, q, from + units, width));
            }
            for (size_t k = 0; k < count; k++) {
                const double *from = qkv.v + (first + source[k]) * 3 * units + h * width;
                const double part = exp(score_of(a, q, from + units, width)) / sum;
                for (size_t i = 0; i < width; i++)
                    o.v[r * units + h * width + i] += part * from[2 * units + i];
            }
        }
    }
    free(qkv.v);
    reference_replace(w, o);
    reference_replace(w, reference_product(&w->rows, reference_tensor(w, out, "weight"),
                                           reference_tensor(w, out, "bias"), n));
}

void reference_pool_graph(struct reference_walk *w, const struct rm_layer_config *c,
                          const char *name)
{
    const size_t n = w->rows.width, states = w->rows.count / w->tokens;
    struct reference_rows nodes = reference_copy(&w->rows);
    struct reference_rows y = {
        .v = reference_floats(states * 2 * n), .count = states, .width = 2 * n};
    reference_mean_pool(w, c, name);
    for (size_t s = 0; s < states; s++) {
        size_t words;
        const double own = *part_of(w, "_node", s, &words);
        if (nodes_of(w, s) > 0)
            memcpy(y.v + s * 2 * n, w->rows.v + s * n, n * sizeof *y.v);
        if (own >= 0 && own < (double)nodes_of(w, s))
            memcpy(y.v + (2 * s + 1) * n, nodes.v + (s * w->tokens + (size_t)own) * n,
                   n * sizeof *y.v);
    }
    free(nodes.v);
    reference_replace(w, y);
}
