/* Operations on graphs, in tiles of whole samples, because the gradients of a sample's nodes are
 * added up. */
#include "learner/backend/cpu.h"
#include "learner/backend/graph.h"

#include <string.h>

void rm_cpu_one_hot(struct rm_backend *b, const float *x, size_t rows, uint32_t n, uint32_t column,
                    uint32_t codes, float *y)
{
    (void)b; /* as rm_cpu_spread */
    for (size_t r = 0; r < rows; r++, x += n, y += n - 1 + codes) {
        const float code = x[column];
        memcpy(y, x, column * sizeof *y);
        memcpy(y + column, x + column + 1, (n - 1 - column) * sizeof *y);
        for (uint32_t c = 0; c < codes; c++)
            y[n - 1 + c] = code == (float)c;
    }
}

struct graph_work {
    const struct rm_kernels *k;
    const struct rm_graph *g;
    const struct rm_graph_attention *a;
    const float *x, *o, *dy;
    float *y, *stats, *dx, *d_source, *d_score;
    uint32_t n;
};

static void run(struct rm_backend *b, struct graph_work *w, rm_pool_fn fn, uint32_t n)
{
    const struct rm_graph *g = w->g;
    struct rm_cpu *cpu = rm_cpu_of(b);
    w->k = cpu->kernels;
    w->n = n;
    rm_cpu_run(cpu, fn, w, g->batch, 8.0 * (g->spans[g->batch] - g->spans[0]) * n);
}

static void mean_tile(void *work, uint32_t index)
{
    const struct graph_work *w = work;
    if (w->dx)
        w->k->graph_mean_dx(w->g, index, w->dy, w->n, w->dx);
    else
        w->k->graph_mean(w->g, index, w->x, w->n, w->y);
}

void rm_cpu_graph_mean(struct rm_backend *b, const struct rm_graph *g, const float *x, uint32_t n,
                       float *y)
{
    struct graph_work w = {.g = g, .x = x, .y = y};
    run(b, &w, mean_tile, n);
}

void rm_cpu_graph_mean_dx(struct rm_backend *b, const struct rm_graph *g, const float *dy,
                          uint32_t n, float *dx)
{
    struct graph_work w = {.g = g, .dy = dy, .dx = dx};
    run(b, &w, mean_tile, n);
}

static void own_tile(void *work, uint32_t index)
{
    const struct graph_work *w = work;
    const struct rm_graph_sample s = rm_graph_sample(w->g, index);
    if (!w->dx)
        rm_graph_pick(w->g, &s, w->x, w->n, 0, w->n, w->y);
    for (uint32_t node = 0; w->dx && node < s.nodes; node++)
        rm_graph_pick_back(w->g, &s, node, w->dy, w->n, 0, w->n, w->dx);
}

void rm_cpu_graph_own(struct rm_backend *b, const struct rm_graph *g, const float *x, uint32_t n,
                      float *y)
{
    struct graph_work w = {.g = g, .x = x, .y = y};
    run(b, &w, own_tile, n);
}

void rm_cpu_graph_own_dx(struct rm_backend *b, const struct rm_graph *g, const float *dy,
                         uint32_t n, float *dx)
{
    struct graph_work w = {.g = g, .dy = dy, .dx = dx};
    run(b, &w, own_tile, n);
}

static void attention_tile(void *work, uint32_t index)
{
    const struct graph_work *w = work;
    if (w->dx)
        w->k->graph_attention_dx(w->a, index, w->x, w->o, w->stats, w->dy, w->d_source, w->dx,
                                 w->d_score);
    else
        w->k->graph_attention(w->a, index, w->x, w->stats, w->y);
}

void rm_cpu_graph_attention(struct rm_backend *b, const struct rm_graph_attention *a,
                            const float *qkv, float *stats, float *o)
{
    struct graph_work w = {.g = &a->graph, .a = a, .x = qkv, .stats = stats, .y = o};
    run(b, &w, attention_tile, a->units);
}

void rm_cpu_graph_attention_dx(struct rm_backend *b, const struct rm_graph_attention *a,
                               const float *qkv, const float *o, float *stats, const float *d_o,
                               float *d_source, float *d_qkv, float *d_score)
{
    struct graph_work w = {.g = &a->graph,
                           .a = a,
                           .x = qkv,
                           .o = o,
                           .stats = stats,
                           .dy = d_o,
                           .d_source = d_source,
                           .dx = d_qkv,
                           .d_score = d_score};
    run(b, &w, attention_tile, a->units);
}
