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
        const uint32_t own = rm_graph_own(&g, &s);
        y[sample * n + i] = own < s.nodes ? x[((size_t)s.first + own) * n + i] : 0.0f;
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
        const bool own = sample_of(g, r, &s) && r - s.first == rm_graph_own(&g, &s);
        dx[r * n + i] = own ? dy[(size_t)s.index * n + i] : 0.0f;
    }
};

struct scoring {
    struct rm_graph_attention a;
    const float *qkv;
    float *stats;
    __device__ void at(size_t r, uint32_t head) const
    {
        rm_graph_score(&a, r, head, qkv, stats);
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
            rm_graph_attend(&a, &s, (uint32_t)(r - s.first), i / width, qkv, column, column + 1,
                            stats, o);
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
        rm_graph_attend_back(&a, &s, head, qkv, o, stats, d_o, d_source, d_qkv, d_score);
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
