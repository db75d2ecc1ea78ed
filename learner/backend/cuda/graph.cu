/* Graphs: a thread for each number of a node's row; gradients, which meet in a sample's nodes, a
 * thread for each sample and column, or sample and head. */
#include "learner/backend/cuda/spans.h"

#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/ops.h"

namespace
{

struct one_hot {
    const float *x;
    float *y;
    uint32_t n, column, codes, unused;
    __device__ void at(size_t r, uint32_t i) const
    {
        const float *from = x + r * n;
        const uint32_t rest = n - 1;
        y[r * (rest + codes) + i] =
            i < rest ? from[i + (i >= column)] : (from[column] == (float)(i - rest) ? 1.0f : 0.0f);
    }
};

RM_INLINE bool sample_of(const struct rm_graph &g, size_t r, struct rm_graph_sample *s)
{
    const struct rm_span of = rm_span_of_row(g.spans, g.batch, r);
    *s = {of.sample, of.from, of.rows};
    return of.sample < g.batch;
}

struct mean_of_neighbours {
    struct rm_graph g;
    const float *x;
    float *y;
    uint64_t n;
    __device__ void at(size_t r, uint32_t i) const
    {
        struct rm_graph_sample s;
        if (sample_of(g, r, &s))
            rm_graph_mean(&g, &s, (uint32_t)(r - s.first), x, (uint32_t)n, i, i + 1, y);
        else
            y[r * 2 * n + i] = y[(r * 2 + 1) * n + i] = 0.0f;
    }
};

struct mean_of_neighbours_back {
    struct rm_graph g;
    const float *dy;
    float *dx;
    uint64_t n;
    __device__ void at(size_t sample, uint32_t i) const
    {
        const struct rm_graph_sample s = rm_graph_sample(&g, (uint32_t)sample);
        rm_graph_mean_back(&g, &s, dy, (uint32_t)n, i, i + 1, dx);
    }
};

struct own_node {
    struct rm_graph g;
    const float *x;
    float *y;
    uint64_t n;
    __device__ void at(size_t sample, uint32_t i) const
    {
        const struct rm_graph_sample s = rm_graph_sample(&g, (uint32_t)sample);
        rm_graph_pick(&g, &s, x, (uint32_t)n, i, i + 1, y);
    }
};

struct own_node_back {
    struct rm_graph g;
    const float *dy;
    float *dx;
    uint64_t n;
    __device__ void at(size_t r, uint32_t i) const
    {
        struct rm_graph_sample s;
        if (sample_of(g, r, &s))
            rm_graph_pick_back(&g, &s, (uint32_t)(r - s.first), dy, (uint32_t)n, i, i + 1, dx);
        else
            dx[r * n + i] = 0.0f;
    }
};

/* --- attention ------------------------------------------------------------------------------- */

RM_INLINE float dot_of(const float *x, const float *y, uint32_t n)
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

/* Both parts of a row's scores. */
RM_INLINE void score_row(const struct rm_graph_attention *a, size_t row, uint32_t head,
                         const float *qkv, float *stats)
{
    const uint32_t width = a->units / a->heads;
    const float *q = qkv + row * 3 * a->units + (size_t)head * width, *k = q + a->units;
    const float *score = a->score + (size_t)head * 2 * width;
    float *to = stats + (row * a->heads + head) * RM_GRAPH_STATS;
    to[RM_GRAPH_TARGET] = dot_of(score, q, width);
    to[RM_GRAPH_SOURCE] = dot_of(score + width, k, width);
}

/* o(rows, units): sums of values weighted by the softmax over a node's edges, 0 without edges.
 * Columns [from, to) of one head. */
RM_INLINE void attend(const struct rm_graph_attention *a, const struct rm_graph_sample *s,
                      uint32_t node, uint32_t head, const float *qkv, uint32_t from, uint32_t to,
                      float *stats, float *o)
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
RM_INLINE void attend_back(const struct rm_graph_attention *a, const struct rm_graph_sample *s,
                           uint32_t head, const float *qkv, const float *o, const float *stats,
                           const float *d_o, float *d_source, float *d_qkv, float *d_score)
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
        const float *own = first + node * step, made = dot_of(d_o + at, o + at, width);
        float d = 0.0f;
        for (uint32_t edge = e.begin; edge < e.end; edge++) {
            const uint32_t source = rm_graph_source(&e, edge);
            if (source >= s->nodes)
                continue;
            const float z = own[RM_GRAPH_TARGET] + first[source * step + RM_GRAPH_SOURCE];
            const float part = expf(rm_graph_leaky(z) - own[RM_GRAPH_MOST]) * own[RM_GRAPH_SHARE];
            const float through = dot_of(d_o + at, v + source * each, width) - made;
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

struct scoring {
    struct rm_graph_attention a;
    const float *qkv;
    float *stats;
    __device__ void at(size_t r, uint32_t head) const
    {
        score_row(&a, r, head, qkv, stats);
    }
};

struct attending {
    struct rm_graph_attention a;
    const float *qkv;
    float *stats, *o;
    __device__ void at(size_t r, uint32_t i) const
    {
        const uint32_t width = a.units / a.heads, column = i % width;
        struct rm_graph_sample s;
        if (sample_of(a.graph, r, &s))
            attend(&a, &s, (uint32_t)(r - s.first), i / width, qkv, column, column + 1, stats, o);
        else
            o[r * a.units + i] = 0.0f;
    }
};

struct attending_back {
    struct rm_graph_attention a;
    const float *qkv, *o, *stats, *d_o;
    float *d_source, *d_qkv, *d_score;
    __device__ void at(size_t sample, uint32_t head) const
    {
        const struct rm_graph_sample s = rm_graph_sample(&a.graph, (uint32_t)sample);
        attend_back(&a, &s, head, qkv, o, stats, d_o, d_source, d_qkv, d_score);
    }
};

/* Rows after the last sample's stay zeros. */
void clear(struct rm_cuda *c, float *x, size_t floats)
{
    if (rm_cuda_ready(c) && floats)
        RM_CUDA(c, cudaMemsetAsync(x, 0, floats * sizeof *x, rm_cuda_stream(c)));
}

} // namespace

void rm_cuda_one_hot(struct rm_backend *b, const float *x, size_t rows, uint32_t n, uint32_t column,
                     uint32_t codes, float *y)
{
    rm_map(rm_cuda_of(b), "one_hot", one_hot{x, y, n, column, codes, 0}, rows, n - 1 + codes);
}

void rm_cuda_graph_mean(struct rm_backend *b, const struct rm_graph *g, const float *x, uint32_t n,
                        float *y)
{
    rm_map(rm_cuda_of(b), "graph_mean", mean_of_neighbours{*g, x, y, n}, (size_t)g->rows, n);
}

void rm_cuda_graph_mean_dx(struct rm_backend *b, const struct rm_graph *g, const float *dy,
                           uint32_t n, float *dx)
{
    struct rm_cuda *c = rm_cuda_of(b);
    clear(c, dx, (size_t)g->rows * n);
    rm_map(c, "graph_mean_dx", mean_of_neighbours_back{*g, dy, dx, n}, (size_t)g->batch, n);
}

void rm_cuda_graph_own(struct rm_backend *b, const struct rm_graph *g, const float *x, uint32_t n,
                       float *y)
{
    rm_map(rm_cuda_of(b), "graph_own", own_node{*g, x, y, n}, (size_t)g->batch, n);
}

void rm_cuda_graph_own_dx(struct rm_backend *b, const struct rm_graph *g, const float *dy,
                          uint32_t n, float *dx)
{
    rm_map(rm_cuda_of(b), "graph_own_dx", own_node_back{*g, dy, dx, n}, (size_t)g->rows, n);
}

void rm_cuda_graph_attention(struct rm_backend *b, const struct rm_graph_attention *a,
                             const float *qkv, float *stats, float *o)
{
    struct rm_cuda *c = rm_cuda_of(b);
    const size_t rows = a->graph.rows;
    rm_map(c, "graph_attention scores", scoring{*a, qkv, stats}, rows, a->heads);
    rm_map(c, "graph_attention", attending{*a, qkv, stats, o}, rows, a->units);
}

void rm_cuda_graph_attention_dx(struct rm_backend *b, const struct rm_graph_attention *a,
                                const float *qkv, const float *o, float *stats, const float *d_o,
                                float *d_source, float *d_qkv, float *d_score)
{
    struct rm_cuda *c = rm_cuda_of(b);
    clear(c, d_qkv, (size_t)a->graph.rows * 3 * a->units);
    rm_map(c, "graph_attention_dx",
           attending_back{*a, qkv, o, stats, d_o, d_source, d_qkv, d_score}, (size_t)a->graph.batch,
           a->heads);
}
