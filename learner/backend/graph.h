/* graph: edges between the rows of a sample, and what runs over them, for both backends.
 *
 * Edges are compressed sparse rows and stand as floats in the sample's row of the network's input:
 * nodes + 1 numbers that say where each node's edges begin, then the node that each edge comes
 * from. A number that is none of these makes no edge, so no world's numbers lead out of a sample.
 *
 * Functions work on one node, or on one sample where gradients meet, and on a range of columns: the
 * CPU gives all of them, a device one to a thread. Sums have one order. */
#ifndef RM_LEARNER_BACKEND_GRAPH_H
#define RM_LEARNER_BACKEND_GRAPH_H

#include "shm/base/both.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>

struct rm_graph {
    const float *x;        /* (batch, width): rows of the network's input */
    const uint32_t *spans; /* (batch + 1): rows of sample i are spans[i] to spans[i + 1] */
    uint32_t width;
    uint32_t edges_at, edges_most; /* where the edges' numbers begin in a row, and how many fit */
    uint32_t own_at;               /* number of the node that is picked out */
    uint32_t batch;
    uint32_t rows; /* as in rm_spans */
};

/* Attention of Velickovic et al. (2018), with queries, keys and values of their own: the score of
 * an edge is LeakyReLU(<first half, query of its target> + <second half, key of its source>). A row
 * of qkv has queries, keys and values of `units` each, heads side by side. */
struct rm_graph_attention {
    struct rm_graph graph;
    const float *score; /* (heads, 2 units / heads) */
    uint32_t heads, units;
};

#define RM_GRAPH_SLOPE 0.2f /* of LeakyReLU below 0 */

/* The nodes of a sample: its first row and how many. */
struct rm_graph_sample {
    uint32_t index, first, nodes;
};

struct rm_graph_edges {
    const float *from; /* sources of all edges of the sample */
    uint32_t begin, end;
};

RM_BOTH struct rm_graph_sample rm_graph_sample(const struct rm_graph *g, uint32_t index)
{
    struct rm_graph_sample s;
    s.index = index;
    s.first = g->spans[index] - g->spans[0];
    s.nodes = g->spans[index + 1] - g->spans[index];
    return s;
}

/* A whole number, or one beyond all that there can be. */
RM_BOTH uint32_t rm_graph_number(float x)
{
    return x >= 0.0f && x < 16777216.0f ? (uint32_t)x : 16777216u;
}

RM_BOTH struct rm_graph_edges rm_graph_edges(const struct rm_graph *g,
                                             const struct rm_graph_sample *s, uint32_t node)
{
    const float *numbers = g->x + (size_t)s->index * g->width + g->edges_at;
    const uint32_t starts = s->nodes + 1,
                   most = g->edges_most > starts ? g->edges_most - starts : 0;
    struct rm_graph_edges e;
    e.from = numbers + (most ? starts : 0);
    e.end = most ? rm_graph_number(numbers[node + 1]) : 0;
    e.end = e.end < most ? e.end : most;
    e.begin = most ? rm_graph_number(numbers[node]) : 0;
    e.begin = e.begin < e.end ? e.begin : e.end;
    return e;
}

/* The node that an edge comes from; s->nodes or more: the edge is none. */
RM_BOTH uint32_t rm_graph_source(const struct rm_graph_edges *e, uint32_t edge)
{
    return rm_graph_number(e->from[edge]);
}

RM_BOTH float rm_graph_share(const struct rm_graph_sample *s, const struct rm_graph_edges *e)
{
    uint32_t degree = 0;
    for (uint32_t k = e->begin; k < e->end; k++)
        degree += rm_graph_source(e, k) < s->nodes;
    return degree ? 1.0f / (float)degree : 0.0f;
}

/* The node whose number stands at own_at; s->nodes: there is none. */
RM_BOTH uint32_t rm_graph_own(const struct rm_graph *g, const struct rm_graph_sample *s)
{
    const uint32_t own = rm_graph_number(g->x[(size_t)s->index * g->width + g->own_at]);
    return own < s->nodes ? own : s->nodes;
}

/* y += factor x, in columns [from, to). */
RM_BOTH void rm_graph_add(float *__restrict__ y, float factor, const float *__restrict__ x,
                          uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        y[i] += factor * x[i];
}

/* y(rows, 2 n): a node's row of x(rows, n), then the mean over the nodes its edges come from, 0
 * without edges. Columns [from, to) of both. */
RM_BOTH void rm_graph_mean(const struct rm_graph *g, const struct rm_graph_sample *s, uint32_t node,
                           const float *x, uint32_t n, uint32_t from, uint32_t to, float *y)
{
    const struct rm_graph_edges e = rm_graph_edges(g, s, node);
    const float share = rm_graph_share(s, &e), *rows = x + (size_t)s->first * n;
    float *own = y + ((size_t)s->first + node) * 2 * n, *mean = own + n;
    for (uint32_t i = from; i < to; i++) {
        own[i] = rows[(size_t)node * n + i];
        mean[i] = 0.0f;
    }
    for (uint32_t k = e.begin; k < e.end; k++) {
        const uint32_t source = rm_graph_source(&e, k);
        if (source < s->nodes)
            rm_graph_add(mean, 1.0f, rows + (size_t)source * n, from, to);
    }
    for (uint32_t i = from; i < to; i++)
        mean[i] *= share;
}

/* The gradient, for all nodes of a sample. */
RM_BOTH void rm_graph_mean_back(const struct rm_graph *g, const struct rm_graph_sample *s,
                                const float *dy, uint32_t n, uint32_t from, uint32_t to, float *dx)
{
    const float *d_rows = dy + (size_t)s->first * 2 * n;
    float *rows = dx + (size_t)s->first * n;
    for (uint32_t node = 0; node < s->nodes; node++)
        for (uint32_t i = from; i < to; i++)
            rows[(size_t)node * n + i] = d_rows[(size_t)node * 2 * n + i];
    for (uint32_t node = 0; node < s->nodes; node++) {
        const struct rm_graph_edges e = rm_graph_edges(g, s, node);
        const float share = rm_graph_share(s, &e), *mean = d_rows + ((size_t)node * 2 + 1) * n;
        for (uint32_t k = e.begin; k < e.end; k++) {
            const uint32_t source = rm_graph_source(&e, k);
            if (source < s->nodes)
                rm_graph_add(rows + (size_t)source * n, share, mean, from, to);
        }
    }
}

/* --- attention ------------------------------------------------------------------------------- */

/* What the forward pass leaves for each row and head: (rows, heads, RM_GRAPH_STATS). */
enum {
    RM_GRAPH_TARGET, /* a row's part of the scores of edges to it */
    RM_GRAPH_SOURCE, /* and from it */
    RM_GRAPH_MOST,   /* the largest score of edges to it */
    RM_GRAPH_SHARE,  /* 1 / the sum of exp(score - largest) */
    RM_GRAPH_STATS
};

RM_BOTH float rm_graph_dot(const float *x, const float *y, uint32_t n)
{
    float some[8] = {0}, sum = 0.0f;
    uint32_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (uint32_t j = 0; j < 8; j++)
            some[j] += x[i + j] * y[i + j];
    for (; i < n; i++)
        sum += x[i] * y[i];
    return sum + (((some[0] + some[4]) + (some[2] + some[6])) +
                  ((some[1] + some[5]) + (some[3] + some[7])));
}

RM_BOTH float rm_graph_leaky(float z)
{
    return z > 0.0f ? z : RM_GRAPH_SLOPE * z;
}

/* Both parts of a row's scores. */
RM_BOTH void rm_graph_score(const struct rm_graph_attention *a, size_t row, uint32_t head,
                            const float *qkv, float *stats)
{
    const uint32_t width = a->units / a->heads;
    const float *q = qkv + row * 3 * a->units + (size_t)head * width, *k = q + a->units;
    const float *score = a->score + (size_t)head * 2 * width;
    float *to = stats + (row * a->heads + head) * RM_GRAPH_STATS;
    to[RM_GRAPH_TARGET] = rm_graph_dot(score, q, width);
    to[RM_GRAPH_SOURCE] = rm_graph_dot(score + width, k, width);
}

/* o(rows, units): sums of values weighted by the softmax over a node's edges, 0 without edges.
 * Columns [from, to) of one head. */
RM_BOTH void rm_graph_attend(const struct rm_graph_attention *a, const struct rm_graph_sample *s,
                             uint32_t node, uint32_t head, const float *qkv, uint32_t from,
                             uint32_t to, float *stats, float *o)
{
    const struct rm_graph_edges e = rm_graph_edges(&a->graph, s, node);
    const uint32_t width = a->units / a->heads;
    const size_t step = (size_t)a->heads * RM_GRAPH_STATS;
    float *first = stats + s->first * step + (size_t)head * RM_GRAPH_STATS;
    float *own = first + node * step, most = -INFINITY, sum = 0.0f;
    const float *v = qkv + ((size_t)s->first * 3 + 2) * a->units + (size_t)head * width;
    float *y = o + ((size_t)s->first + node) * a->units + (size_t)head * width;
    for (uint32_t i = from; i < to; i++)
        y[i] = 0.0f;
    for (uint32_t k = e.begin; k < e.end; k++) {
        const uint32_t source = rm_graph_source(&e, k);
        if (source < s->nodes)
            most = fmaxf(most, rm_graph_leaky(own[RM_GRAPH_TARGET] +
                                              first[source * step + RM_GRAPH_SOURCE]));
    }
    for (uint32_t k = e.begin; k < e.end; k++) {
        const uint32_t source = rm_graph_source(&e, k);
        if (source >= s->nodes)
            continue;
        const float z = own[RM_GRAPH_TARGET] + first[source * step + RM_GRAPH_SOURCE];
        const float part = expf(rm_graph_leaky(z) - most);
        sum += part;
        rm_graph_add(y, part, v + (size_t)source * 3 * a->units, from, to);
    }
    const float share = sum > 0.0f ? 1.0f / sum : 0.0f;
    for (uint32_t i = from; i < to; i++)
        y[i] *= share;
    if (from == 0) {
        own[RM_GRAPH_MOST] = most;
        own[RM_GRAPH_SHARE] = share;
    }
}

/* Gradients of one head of a sample: d_qkv, and the sample's part of the score's, (heads, 2 units /
 * heads). d_source(rows, heads) is scratch. */
RM_BOTH void rm_graph_attend_back(const struct rm_graph_attention *a,
                                  const struct rm_graph_sample *s, uint32_t head, const float *qkv,
                                  const float *o, const float *stats, const float *d_o,
                                  float *d_source, float *d_qkv, float *d_score)
{
    const uint32_t width = a->units / a->heads;
    const size_t each = (size_t)3 * a->units, column = (size_t)head * width;
    const size_t step = (size_t)a->heads * RM_GRAPH_STATS;
    const float *q = qkv + s->first * each + column, *k = q + a->units, *v = k + a->units;
    const float *first = stats + s->first * step + (size_t)head * RM_GRAPH_STATS;
    const float *score = a->score + 2 * column;
    float *d_q = d_qkv + s->first * each + column, *d_k = d_q + a->units, *d_v = d_k + a->units;
    float *d_from = d_source + (size_t)s->first * a->heads + head;
    float *d_target = d_score + (size_t)s->index * 2 * a->units + 2 * column;
    for (uint32_t i = 0; i < 2 * width; i++)
        d_target[i] = 0.0f;
    for (uint32_t node = 0; node < s->nodes; node++) {
        d_from[(size_t)node * a->heads] = 0.0f;
        for (uint32_t i = 0; i < width; i++)
            d_v[node * each + i] = 0.0f;
    }
    for (uint32_t node = 0; node < s->nodes; node++) {
        const struct rm_graph_edges e = rm_graph_edges(&a->graph, s, node);
        const size_t at = ((size_t)s->first + node) * a->units + column;
        const float *own = first + node * step, made = rm_graph_dot(d_o + at, o + at, width);
        float d = 0.0f;
        for (uint32_t edge = e.begin; edge < e.end; edge++) {
            const uint32_t source = rm_graph_source(&e, edge);
            if (source >= s->nodes)
                continue;
            const float z = own[RM_GRAPH_TARGET] + first[source * step + RM_GRAPH_SOURCE];
            const float part = expf(rm_graph_leaky(z) - own[RM_GRAPH_MOST]) * own[RM_GRAPH_SHARE];
            const float through = rm_graph_dot(d_o + at, v + source * each, width) - made;
            const float d_z = part * through * (z > 0.0f ? 1.0f : RM_GRAPH_SLOPE);
            d += d_z;
            d_from[(size_t)source * a->heads] += d_z;
            rm_graph_add(d_v + source * each, part, d_o + at, 0, width);
        }
        for (uint32_t i = 0; i < width; i++)
            d_q[node * each + i] = d * score[i];
        rm_graph_add(d_target, d, q + node * each, 0, width);
    }
    for (uint32_t node = 0; node < s->nodes; node++) {
        const float d = d_from[(size_t)node * a->heads];
        for (uint32_t i = 0; i < width; i++)
            d_k[node * each + i] = d * score[width + i];
        rm_graph_add(d_target + width, d, k + node * each, 0, width);
    }
}

#endif
