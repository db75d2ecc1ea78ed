/* Graphs, a sample at a time: the functions of graph.h over all of its nodes and columns. Attention
 * goes over the nodes once, with all heads of a row, since rows lie side by side in memory. */
#include "learner/backend/isa_math.h"
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

#include <math.h>

void RM_ISA_NAME(graph_mean)(const struct rm_graph *g, uint32_t sample, const float *x, uint32_t n,
                             float *y)
{
    const struct rm_graph_sample s = rm_graph_sample(g, sample);
    for (uint32_t node = 0; node < s.nodes; node++)
        rm_graph_mean(g, &s, node, x, n, 0, n, y);
}

void RM_ISA_NAME(graph_mean_dx)(const struct rm_graph *g, uint32_t sample, const float *dy,
                                uint32_t n, float *dx)
{
    const struct rm_graph_sample s = rm_graph_sample(g, sample);
    rm_graph_mean_back(g, &s, dy, n, 0, n, dx);
}

/* --- attention ------------------------------------------------------------------------------- */

enum { EDGES = 16, HEADS_MAX = 64, REGISTERS = RM_LANES / VEC_FLOATS };

static inline float dot(const float *x, const float *y, uint32_t n)
{
    vec some[REGISTERS];
    uint32_t i = 0;
    for (uint32_t k = 0; k < REGISTERS; k++)
        some[k] = vec_zero();
    for (; i + RM_LANES <= n; i += RM_LANES)
        for (uint32_t k = 0, at = i; k < REGISTERS; k++, at += VEC_FLOATS)
            some[k] = vec_fma(vec_load(x + at), vec_load(y + at), some[k]);
    for (uint32_t half = REGISTERS / 2; half; half /= 2)
        for (uint32_t k = 0; k < half; k++)
            some[k] = vec_add(some[k], some[k + half]);
    float sum = vec_sum(some[0]);
    for (; i < n; i++)
        sum = RM_FMA(x[i], y[i], sum);
    return sum;
}

/* y += factor x */
static inline void add(float *y, float factor, const float *x, uint32_t n)
{
    const vec all = vec_all(factor);
    uint32_t i = 0;
    for (; i + VEC_FLOATS <= n; i += VEC_FLOATS)
        vec_store(y + i, vec_fma(all, vec_load(x + i), vec_load(y + i)));
    for (; i < n; i++)
        y[i] = RM_FMA(factor, x[i], y[i]);
}

/* y = factor x */
static inline void scale(float *y, float factor, const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        y[i] = factor * x[i];
}

/* Rows that edges lead to are read in no order that a processor foresees. */
static inline void prefetch(const float *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 64 / sizeof *x)
        __builtin_prefetch(x + i, 0, 2);
}

/* Some edges to a node, and their scores, (count, heads). */
struct edges {
    uint32_t count, next; /* next: the first edge after these */
    uint32_t source[EDGES];
    float z[EDGES * HEADS_MAX];    /* before LeakyReLU */
    float part[EDGES * HEADS_MAX]; /* exp(score - largest); see weigh() */
};

/* The next edges; none: false. `first`: the sample's stats. */
static bool find(const struct rm_graph_attention *a, const struct rm_graph_sample *s,
                 const struct rm_graph_edges *all, const float *first, const float *own,
                 struct edges *e)
{
    const uint32_t heads = a->heads;
    for (e->count = 0; e->count < EDGES && e->next < all->end; e->next++) {
        const uint32_t source = rm_graph_source(all, e->next);
        e->source[e->count] = source;
        e->count += source < s->nodes;
    }
    for (uint32_t i = 0; i < e->count; i++) {
        const float *from = first + (size_t)e->source[i] * heads * RM_GRAPH_STATS;
        for (uint32_t h = 0; h < heads; h++)
            e->z[i * heads + h] = own[h * RM_GRAPH_STATS + RM_GRAPH_TARGET] +
                                  from[h * RM_GRAPH_STATS + RM_GRAPH_SOURCE];
    }
    return e->count > 0;
}

static void weigh(struct edges *e, uint32_t heads, const float *own)
{
    const uint32_t n = e->count * heads;
    for (uint32_t i = 0; i < n; i += heads)
        for (uint32_t h = 0; h < heads; h++)
            e->part[i + h] = rm_graph_leaky(e->z[i + h]) - own[h * RM_GRAPH_STATS + RM_GRAPH_MOST];
    for (uint32_t i = 0; i < n; i++)
        e->part[i] = exp_of(e->part[i]);
}

/* o(rows, units) of a node: sums of values weighted by the softmax over its edges, 0 without
 * edges. */
static void attend(const struct rm_graph_attention *a, const struct rm_graph_sample *s,
                   uint32_t node, const float *qkv, float *stats, float *o)
{
    const struct rm_graph_edges all = rm_graph_edges(&a->graph, s, node);
    const uint32_t heads = a->heads, width = a->units / heads;
    float *first = stats + (size_t)s->first * heads * RM_GRAPH_STATS;
    float *own = first + (size_t)node * heads * RM_GRAPH_STATS;
    const float *v = qkv + ((size_t)s->first * 3 + 2) * a->units;
    float *y = o + ((size_t)s->first + node) * a->units, sum[HEADS_MAX] = {0};
    struct edges e = {.next = all.begin};
    for (uint32_t i = 0; i < a->units; i++)
        y[i] = 0.0f;
    for (uint32_t h = 0; h < heads; h++)
        own[h * RM_GRAPH_STATS + RM_GRAPH_MOST] = -INFINITY;
    while (find(a, s, &all, first, own, &e))
        for (uint32_t i = 0; i < e.count; i++)
            for (uint32_t h = 0; h < heads; h++) {
                float *most = own + h * RM_GRAPH_STATS + RM_GRAPH_MOST;
                const float score = rm_graph_leaky(e.z[i * heads + h]);
                *most = score > *most ? score : *most;
            }
    for (e.next = all.begin; find(a, s, &all, first, own, &e);) {
        weigh(&e, heads, own);
        for (uint32_t i = 0; i < e.count; i++)
            for (uint32_t h = 0; h < heads; h++) {
                const float part = e.part[i * heads + h];
                sum[h] += part;
                add(y + (size_t)h * width, part,
                    v + (size_t)e.source[i] * 3 * a->units + (size_t)h * width, width);
            }
    }
    for (uint32_t h = 0; h < heads; h++) {
        const float share = sum[h] > 0.0f ? 1.0f / sum[h] : 0.0f;
        own[h * RM_GRAPH_STATS + RM_GRAPH_SHARE] = share;
        scale(y + (size_t)h * width, share, y + (size_t)h * width, width);
    }
}

void RM_ISA_NAME(graph_attention)(const struct rm_graph_attention *a, uint32_t sample,
                                  const float *qkv, float *stats, float *o)
{
    const struct rm_graph_sample s = rm_graph_sample(&a->graph, sample);
    const uint32_t heads = a->heads, width = a->units / heads;
    for (uint32_t node = 0; node < s.nodes; node++)
        for (uint32_t h = 0; h < heads; h++) {
            const size_t row = (size_t)s.first + node;
            const float *q = qkv + row * 3 * a->units + (size_t)h * width;
            const float *score = a->score + (size_t)h * 2 * width;
            float *to = stats + (row * heads + h) * RM_GRAPH_STATS;
            to[RM_GRAPH_TARGET] = dot(score, q, width);
            to[RM_GRAPH_SOURCE] = dot(score + width, q + a->units, width);
        }
    for (uint32_t node = 0; node < s.nodes; node++)
        attend(a, &s, node, qkv, stats, o);
}

/* What the gradients of a sample are made of, from its first row on. */
struct back {
    const struct rm_graph_attention *a;
    struct rm_graph_sample s;
    uint32_t width; /* of a head */
    const float *qkv, *o, *d_o, *first;
    float *d_from, *d_qkv, *d_score; /* d_from(rows, heads) */
};

/* Gradients of a node's output: all of its query's, its edges' part of those of values, and of
 * d_from. */
static void attend_back(const struct back *b, uint32_t node)
{
    const struct rm_graph_attention *a = b->a;
    const struct rm_graph_edges all = rm_graph_edges(&a->graph, &b->s, node);
    const uint32_t heads = a->heads, width = b->width, each = 3 * a->units;
    const float *own = b->first + (size_t)node * heads * RM_GRAPH_STATS;
    const float *d_o = b->d_o + (size_t)node * a->units, *o = b->o + (size_t)node * a->units;
    float made[HEADS_MAX], d[HEADS_MAX];
    struct edges e = {.next = all.begin};
    for (uint32_t h = 0; h < heads; h++) {
        made[h] = dot(d_o + (size_t)h * width, o + (size_t)h * width, width);
        d[h] = 0.0f;
    }
    while (find(a, &b->s, &all, b->first, own, &e)) {
        weigh(&e, heads, own);
        for (uint32_t i = 0; i < e.count; i++) {
            const size_t v = (size_t)e.source[i] * each + 2 * (size_t)a->units;
            float *d_from = b->d_from + (size_t)e.source[i] * heads;
            for (uint32_t h = 0; h < heads; h++) {
                const size_t at = (size_t)h * width;
                const float part = e.part[i * heads + h] * own[h * RM_GRAPH_STATS + RM_GRAPH_SHARE];
                const float through = dot(d_o + at, b->qkv + v + at, width) - made[h];
                const float slope = e.z[i * heads + h] > 0.0f ? 1.0f : RM_GRAPH_SLOPE;
                const float d_z = part * through * slope;
                d[h] += d_z;
                d_from[h] += d_z;
                add(b->d_qkv + v + at, part, d_o + at, width);
            }
        }
    }
    for (uint32_t h = 0; h < heads; h++) {
        const size_t at = (size_t)node * each + (size_t)h * width, score = (size_t)h * 2 * width;
        scale(b->d_qkv + at, d[h], a->score + score, width);
        add(b->d_score + score, d[h], b->qkv + at, width);
    }
}

/* Gradients of a node's key, after those of all outputs. */
static void key_back(const struct back *b, uint32_t node)
{
    const struct rm_graph_attention *a = b->a;
    const uint32_t width = a->units / a->heads;
    for (uint32_t h = 0; h < a->heads; h++) {
        const size_t at = ((size_t)node * 3 + 1) * a->units + (size_t)h * width;
        const size_t score = (size_t)h * 2 * width + width;
        const float d = b->d_from[(size_t)node * a->heads + h];
        scale(b->d_qkv + at, d, a->score + score, width);
        add(b->d_score + score, d, b->qkv + at, width);
    }
}

void RM_ISA_NAME(graph_attention_dx)(const struct rm_graph_attention *a, uint32_t sample,
                                     const float *qkv, const float *o, const float *stats,
                                     const float *d_o, float *d_source, float *d_qkv,
                                     float *d_score)
{
    const struct rm_graph_sample s = rm_graph_sample(&a->graph, sample);
    const size_t first = s.first;
    const struct back b = {.a = a,
                           .s = s,
                           .width = a->units / a->heads,
                           .qkv = qkv + first * 3 * a->units,
                           .o = o + first * a->units,
                           .d_o = d_o + first * a->units,
                           .first = stats + first * a->heads * RM_GRAPH_STATS,
                           .d_from = d_source + first * a->heads,
                           .d_qkv = d_qkv + first * 3 * a->units,
                           .d_score = d_score + (size_t)sample * 2 * a->units};
    for (uint32_t i = 0; i < 2 * a->units; i++)
        b.d_score[i] = 0.0f;
    for (uint32_t node = 0; node < s.nodes; node++) {
        prefetch(b.qkv + (size_t)node * 3 * a->units, 3 * a->units);
        float *d_v = b.d_qkv + ((size_t)node * 3 + 2) * a->units;
        for (uint32_t i = 0; i < a->units; i++)
            d_v[i] = 0.0f;
        for (uint32_t h = 0; h < a->heads; h++)
            b.d_from[(size_t)node * a->heads + h] = 0.0f;
    }
    for (uint32_t node = 0; node < s.nodes; node++)
        attend_back(&b, node);
    for (uint32_t node = 0; node < s.nodes; node++)
        key_back(&b, node);
}
