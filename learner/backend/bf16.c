#include "learner/backend/bf16.h"

#include "learner/backend/bf16_kernels.h"
#include "learner/backend/cpu.h"
#include "learner/backend/pieces.h"

#include <string.h>

/* Rows of a tile, and its maximum columns: rounded numbers serve the whole tile. */
#define TILE_ROWS    32u
#define TILE_COLUMNS 256u

/* The part of k for which a panel stays in the first-level cache. */
#define PART       256u
#define PART_WORDS (PART / 2)

/* A tile of the gradient of the weights, and rows at a time: rounded numbers fit the second-level
 * cache. */
#define OUTER      128u
#define OUTER_ROWS 128u

/* Zeros end a k alone, and where k is cut, no group of its sum is. */
_Static_assert(PART_WORDS % RM_BF16_DEPTH == 0 && OUTER_ROWS / 2 % RM_BF16_DEPTH == 0,
               "whole groups");

static uint32_t words_of(uint32_t n)
{
    return (n + 1) / 2;
}

/* Words of k in memory: zeros from words_of(k) on. */
static uint32_t depth_of(uint32_t k)
{
    return rm_pieces(words_of(k), RM_BF16_DEPTH) * RM_BF16_DEPTH;
}

static double cost_of(uint32_t rows, uint32_t in, uint32_t out)
{
    return (double)rows * in * out / 16.0;
}

bool rm_bf16_takes(const struct rm_cpu *cpu, uint32_t in, uint32_t out)
{
    return cpu->bf16 && in > RM_NARROW_MAX && out > RM_NARROW_MAX;
}

/* --- weights --------------------------------------------------------------------------------- */

/* Words are stored as floats, but never computed with as floats. */
static uint32_t *words_in(float *packed)
{
    return (uint32_t *)(void *)packed;
}

static const uint32_t *words_at(const float *packed)
{
    return (const uint32_t *)(const void *)packed;
}

/* A panel of up to RM_BF16_PANEL columns from m0 on has depth_of(k) rows of rm_pad_columns(columns)
 * words; panels before it are whole. */
static size_t panel_at(uint32_t m0, uint32_t k)
{
    return (size_t)m0 * depth_of(k);
}

/* Zeros the last rows of a panel with so many columns. */
static void end_panel(float *panel, uint32_t k, uint32_t columns)
{
    const size_t wide = rm_pad_columns(columns);
    memset(panel + wide * words_of(k), 0, (depth_of(k) - words_of(k)) * wide * sizeof *panel);
}

/* Panel `index` of a matrix (k, m). */
static void round_panel(const float *a, uint32_t k, uint32_t m, uint32_t index, float *rounded)
{
    const uint32_t m0 = index * RM_BF16_PANEL, columns = rm_least(m - m0, RM_BF16_PANEL);
    float *to = rounded + panel_at(m0, k);
    rm_bf16_round_columns(a + m0, m, k, columns, words_in(to), rm_pad_columns(columns));
    end_panel(to, k, columns);
}

size_t rm_bf16_rounded_floats(uint32_t k, uint32_t m)
{
    return (size_t)rm_pad_columns(m) * depth_of(k);
}

void rm_bf16_round_matrix(const float *a, uint32_t k, uint32_t m, float *rounded)
{
    for (uint32_t i = 0; i < rm_pieces(m, RM_BF16_PANEL); i++)
        round_panel(a, k, m, i, rounded);
}

struct packing {
    struct rm_cpu *cpu;
    const float *w;
    float *to;
    uint32_t out, in;
};

static void pack_panel(void *work, uint32_t index)
{
    const struct packing *p = work;
    const uint32_t m0 = index * RM_BF16_PANEL, m = rm_least(p->out - m0, RM_BF16_PANEL);
    float *to = p->to + panel_at(m0, p->in);
    _Alignas(64) float rounded[RM_BF16_PANEL * PART_WORDS];
    for (uint32_t k = 0; k < p->in; k += PART) {
        const uint32_t n = rm_least(p->in - k, PART), words = words_of(n);
        rm_bf16_round(p->w + (size_t)m0 * p->in + k, p->in, m, n, words_in(rounded), words);
        p->cpu->kernels->transpose(rounded, m, words, to + (size_t)k / 2 * rm_pad_columns(m),
                                   rm_pad_columns(m));
    }
    end_panel(to, p->in, m);
}

static void pack_dx_panel(void *work, uint32_t index)
{
    const struct packing *p = work;
    round_panel(p->w, p->out, p->in, index, p->to);
}

size_t rm_bf16_packed_floats(uint32_t out, uint32_t in)
{
    return rm_bf16_rounded_floats(in, out);
}

size_t rm_bf16_packed_dx_floats(uint32_t out, uint32_t in)
{
    return rm_bf16_rounded_floats(out, in);
}

void rm_bf16_pack(struct rm_cpu *cpu, const float *w, uint32_t out, uint32_t in, float *wt)
{
    struct packing p = {cpu, w, wt, out, in};
    rm_cpu_run(cpu, pack_panel, &p, rm_pieces(out, RM_BF16_PANEL), (double)in * out);
}

void rm_bf16_pack_dx(struct rm_cpu *cpu, const float *w, uint32_t out, uint32_t in, float *wt)
{
    struct packing p = {cpu, w, wt, out, in};
    rm_cpu_run(cpu, pack_dx_panel, &p, rm_pieces(in, RM_BF16_PANEL), (double)in * out);
}

/* --- rows by weights ------------------------------------------------------------------------- */

struct product { /* y(rows, m) = act(x(rows, k) W + bias) */
    struct rm_cpu *cpu;
    const float *x, *packed, *bias;
    float *y;
    uint32_t rows, k, m;
    enum rm_activation act;
    bool add; /* to y */
};

/* Columns [from, to) of some rows, with k from k0 on. */
static void add_part(const struct product *p, struct rm_bf16_part part, uint32_t k0, uint32_t from,
                     uint32_t to, float *y)
{
    const uint32_t *packed = words_at(p->packed);
    for (uint32_t m0 = from; m0 < to; m0 += RM_BF16_PANEL) {
        part.columns = rm_least(to - m0, RM_BF16_PANEL);
        part.lda = rm_pad_columns(part.columns);
        part.a = packed + panel_at(m0, p->k) + (size_t)k0 / 2 * part.lda;
        part.c = y + m0;
        part.bias = p->bias ? p->bias + m0 : NULL;
        rm_bf16_rows(&part);
    }
}

static void product_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    const uint32_t row_tiles = rm_pieces(p->rows, TILE_ROWS);
    const uint32_t row = index % row_tiles * TILE_ROWS, rows = rm_least(p->rows - row, TILE_ROWS);
    const uint32_t from = index / row_tiles * TILE_COLUMNS;
    const uint32_t columns = rm_least(p->m - from, TILE_COLUMNS);
    const float *x = p->x + (size_t)row * p->k;
    float *y = p->y + (size_t)row * p->m;
    _Alignas(64) uint32_t words[TILE_ROWS * PART_WORDS];
    for (uint32_t k = 0; k < p->k; k += PART) {
        const uint32_t n = rm_least(p->k - k, PART);
        const struct rm_bf16_part part = {.b = words,
                                          .ldb = depth_of(n),
                                          .ldc = p->m,
                                          .rows = rows,
                                          .pairs = words_of(n),
                                          .add = p->add || k > 0,
                                          .tiles = rm_bf16_tiles()};
        rm_bf16_round(x + k, p->k, rows, n, words, part.ldb);
        for (uint32_t r = 0; r < rows && part.pairs < part.ldb; r++)
            memset(words + r * part.ldb + part.pairs, 0, (part.ldb - part.pairs) * sizeof *words);
        add_part(p, part, k, from, from + columns, y);
    }
    rm_bf16_release_tiles();
    for (uint32_t r = 0; r < rows && p->act != RM_ACT_NONE; r++) {
        float *at = y + (size_t)r * p->m + from;
        p->cpu->kernels->activate(p->act, at, columns, at);
    }
}

static uint32_t product_tiles(uint32_t rows, uint32_t m)
{
    return rm_pieces(rows, TILE_ROWS) * rm_pieces(m, TILE_COLUMNS);
}

static void run_product(struct product *p)
{
    rm_cpu_run(p->cpu, product_tile, p, product_tiles(p->rows, p->m), cost_of(p->rows, p->k, p->m));
}

void rm_bf16_multiply(const float *x, const float *rounded, uint32_t rows, uint32_t k, uint32_t m,
                      bool add, float *y)
{
    struct product p = {
        .x = x, .packed = rounded, .y = y, .rows = rows, .k = k, .m = m, .add = add};
    for (uint32_t i = 0; i < product_tiles(rows, m); i++)
        product_tile(&p, i);
}

void rm_bf16_linear(struct rm_cpu *cpu, const float *x, const float *wt, const float *bias,
                    uint32_t batch, uint32_t in, uint32_t out, enum rm_activation act, float *y)
{
    run_product(&(struct product){cpu, x, wt, bias, y, batch, in, out, act, false});
}

void rm_bf16_linear_dx(struct rm_cpu *cpu, const float *dy, const float *wt, uint32_t batch,
                       uint32_t in, uint32_t out, float *dx)
{
    run_product(&(struct product){cpu, dy, wt, NULL, dx, batch, out, in, RM_ACT_NONE, false});
}

/* --- gradients of weights -------------------------------------------------------------------- */

uint32_t rm_bf16_dw_tiles(uint32_t in, uint32_t out)
{
    return rm_pieces(in, OUTER) * rm_pieces(out, OUTER);
}

void rm_bf16_dw_tile(const float *dy, const float *x, uint32_t rows, uint32_t in, uint32_t out,
                     bool add, float *dw, uint32_t tile)
{
    const uint32_t i0 = tile % rm_pieces(in, OUTER) * OUTER,
                   o0 = tile / rm_pieces(in, OUTER) * OUTER;
    const uint32_t width = rm_least(in - i0, OUTER), height = rm_least(out - o0, OUTER);
    _Alignas(64) uint32_t xs[OUTER * OUTER_ROWS / 2], dys[OUTER * OUTER_ROWS / 2];
    _Alignas(64) float turned[OUTER * OUTER_ROWS / 2];
    float *to = dw + (size_t)o0 * in + i0;
    for (uint32_t row = 0; row < rows; row += OUTER_ROWS) {
        const uint32_t n = rm_least(rows - row, OUTER_ROWS);
        struct rm_bf16_part part = {.b = dys,
                                    .lda = OUTER,
                                    .ldb = OUTER,
                                    .ldc = in,
                                    .rows = height,
                                    .pairs = words_of(n),
                                    .add = add || row > 0,
                                    .tiles = rm_bf16_tiles()};
        rm_bf16_round_columns(x + (size_t)row * in + i0, in, n, width, xs, OUTER);
        rm_bf16_round_columns(dy + (size_t)row * out + o0, out, n, height, dys, OUTER);
        if (part.tiles) { /* which want the pairs of a row in a row */
            const uint32_t depth = depth_of(n), words = words_of(n);
            memset(xs + words * OUTER, 0, (depth - words) * OUTER * sizeof *xs);
            memset(dys + words * OUTER, 0, (depth - words) * OUTER * sizeof *dys);
            rm_isa_v4_kernels.transpose((const float *)(const void *)dys, depth, OUTER, turned,
                                        depth);
            part.b = words_at(turned);
            part.ldb = depth;
        }
        for (uint32_t i = 0; i < width; i += RM_BF16_PANEL) {
            part.a = xs + i;
            part.c = to + i;
            part.columns = rm_least(width - i, RM_BF16_PANEL);
            (part.tiles ? rm_bf16_rows : rm_bf16_columns)(&part);
        }
    }
    rm_bf16_release_tiles();
}
