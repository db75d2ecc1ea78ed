/* graph: the edges between a sample's rows, and functions over them, for both backends.
 *
 * Edges are compressed sparse rows, as floats in the sample's row of the network's input: first
 * nodes + 1 numbers that say where each node's edges begin, then the source node of each edge. An
 * edge whose source is not a node of the sample is ignored, so a world's numbers cannot make the
 * functions read outside of the sample.
 *
 * Functions work on a range of columns of one node, or of one sample if gradients of several nodes
 * are added up. The CPU passes all columns, a device one column for each thread. Sums are added
 * up in a fixed order. */
#ifndef RM_LEARNER_BACKEND_GRAPH_H
#define RM_LEARNER_BACKEND_GRAPH_H

#include "shm/base/both.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_graph {
    const float *x;        /* (batch, width): rows of the network's input */
    const uint32_t *spans; /* (batch + 1): rows of sample i are spans[i] to spans[i + 1] */
    uint32_t width;
    uint32_t edges_at, edges_most; /* first number of the edges in a row, and their maximum count */
    uint32_t own_at;               /* position in a row of the number of the sample's own node */
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

/* x as a whole number; 16777216, which is larger than any valid number, if x is out of range. */
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

/* The source node of an edge; s->nodes or more: ignore the edge. */
RM_BOTH uint32_t rm_graph_source(const struct rm_graph_edges *e, uint32_t edge)
{
    return rm_graph_number(e->from[edge]);
}

/* 1 / the number of a node's edges that count; 0 without edges. */
RM_BOTH float rm_graph_share(const struct rm_graph_sample *s, const struct rm_graph_edges *e)
{
    uint32_t degree = 0;
    for (uint32_t k = e->begin; k < e->end; k++)
        degree += rm_graph_source(e, k) < s->nodes;
    return degree ? 1.0f / (float)degree : 0.0f;
}

/* The sample's own node; s->nodes: it has none. */
RM_BOTH uint32_t rm_graph_own(const struct rm_graph *g, const struct rm_graph_sample *s)
{
    const uint32_t own = rm_graph_number(g->x[(size_t)s->index * g->width + g->own_at]);
    return own < s->nodes ? own : s->nodes;
}

/* y(batch, n): the row of x(rows, n) of a sample's own node, 0 without one. Columns [from, to). */
RM_BOTH void rm_graph_pick(const struct rm_graph *g, const struct rm_graph_sample *s,
                           const float *x, uint32_t n, uint32_t from, uint32_t to, float *y)
{
    const uint32_t own = rm_graph_own(g, s);
    for (uint32_t i = from; i < to; i++)
        y[(size_t)s->index * n + i] = own < s->nodes ? x[((size_t)s->first + own) * n + i] : 0.0f;
}

/* The gradient of rm_graph_pick(), for one node. */
RM_BOTH void rm_graph_pick_back(const struct rm_graph *g, const struct rm_graph_sample *s,
                                uint32_t node, const float *dy, uint32_t n, uint32_t from,
                                uint32_t to, float *dx)
{
    const bool own = node == rm_graph_own(g, s);
    for (uint32_t i = from; i < to; i++)
        dx[((size_t)s->first + node) * n + i] = own ? dy[(size_t)s->index * n + i] : 0.0f;
}

/* y += factor x, in columns [from, to). */
RM_BOTH void rm_graph_add(float *__restrict__ y, float factor, const float *__restrict__ x,
                          uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        y[i] += factor * x[i];
}

/* y(rows, 2 n): a node's row of x(rows, n), then the mean over the sources of its edges, 0 without
 * edges. Columns [from, to) of both. */
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

/* The gradient of rm_graph_mean(), for all nodes of a sample. */
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

/* Numbers that the forward pass stores for the backward pass: (rows, heads, RM_GRAPH_STATS). */
enum {
    RM_GRAPH_TARGET, /* a row's part of the scores of edges to it */
    RM_GRAPH_SOURCE, /* a row's part of the scores of edges from it */
    RM_GRAPH_MOST,   /* the largest score of edges to it */
    RM_GRAPH_SHARE,  /* 1 / the sum of exp(score - largest) */
    RM_GRAPH_STATS
};

RM_BOTH float rm_graph_leaky(float z)
{
    return z > 0.0f ? z : RM_GRAPH_SLOPE * z;
}

#endif
