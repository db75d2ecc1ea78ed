/* Graphs, a sample at a time: the functions of graph.h over all of its nodes and columns. */
#include "learner/backend/isa_parts.h"

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

void RM_ISA_NAME(graph_attention)(const struct rm_graph_attention *a, uint32_t sample,
                                  const float *qkv, float *stats, float *o)
{
    const struct rm_graph_sample s = rm_graph_sample(&a->graph, sample);
    for (uint32_t node = 0; node < s.nodes; node++)
        for (uint32_t head = 0; head < a->heads; head++)
            rm_graph_score(a, (size_t)s.first + node, head, qkv, stats);
    for (uint32_t node = 0; node < s.nodes; node++)
        for (uint32_t head = 0; head < a->heads; head++)
            rm_graph_attend(a, &s, node, head, qkv, 0, a->units / a->heads, stats, o);
}

void RM_ISA_NAME(graph_attention_dx)(const struct rm_graph_attention *a, uint32_t sample,
                                     const float *qkv, const float *o, const float *stats,
                                     const float *d_o, float *d_source, float *d_qkv,
                                     float *d_score)
{
    const struct rm_graph_sample s = rm_graph_sample(&a->graph, sample);
    for (uint32_t head = 0; head < a->heads; head++)
        rm_graph_attend_back(a, &s, head, qkv, o, stats, d_o, d_source, d_qkv, d_score);
}
