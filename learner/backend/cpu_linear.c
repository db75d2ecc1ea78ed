/* Matrix products of the CPU backend: choice of the kernel and cut into tiles. Every element is one
 * chain over k (product.h), so the cut may depend on the number of threads. */
#include "learner/backend/bf16.h"
#include "learner/backend/cpu.h"
#include "learner/backend/pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A tile of rows by weights: enough rows to make the loading of weights cheap, and few enough that
 * they stay in the first- or second-level cache and that all threads get tiles. */
#define TILE_ROWS    48u
#define ROWS_ALONE   96u /* with one thread */
#define TILE_COLUMNS 128u

/* Cuts of the columns of a gradient of weights are multiples of this. */
#define OUTER_COLUMNS 64u

struct product {
    struct rm_cpu *cpu;
    const float *a, *b, *bias, *x, *dy;
    float *c, *sums;
    uint32_t rows, in, out, product_tiles;
    uint32_t m, k; /* rows by weights: numbers of a result and of a row */
    uint32_t tile_rows;
    uint32_t width, height; /* a tile of the gradient of weights */
    enum rm_activation act;
    bool panels; /* a is packed, as results need it; gradients of x may do without */
    bool add;    /* to c and to sums */
    bool bf16;   /* computed by bf16.h */
};

static double cost_of(uint32_t rows, uint32_t in, uint32_t out)
{
    return (double)rows * in * out / 16.0;
}

/* False: no memory. */
static bool room_for_floats(struct rm_cpu *cpu, size_t floats)
{
    if (floats <= cpu->panel_floats)
        return true;
    float *panels = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
    if (!panels)
        return false;
    free(cpu->panels);
    cpu->panels = panels;
    cpu->panel_floats = floats;
    return true;
}

/* The gradient of the weights of a layer with few inputs is computed transposed, so that vectors
 * run along its outputs. */
static bool turned(uint32_t in, uint32_t out)
{
    return in < 16 && in < out;
}

int rm_cpu_reserve(struct rm_backend *b, uint32_t batch, uint32_t in, uint32_t out, bool training)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    if (!training || in <= RM_NARROW_MAX)
        return 0;
    size_t floats = 0;
    if (rm_bf16_takes(cpu, in, out))
        floats = rm_bf16_packed_dx_floats(out, in);
    else if (rm_product_wants_panels(cpu->kernels, batch, in, out))
        floats = rm_product_panel_floats(in, out);
    return room_for_floats(cpu, floats) ? 0 : -ENOMEM;
}

size_t rm_cpu_packed_floats(struct rm_backend *b, uint32_t out, uint32_t in)
{
    if (rm_bf16_takes(rm_cpu_of(b), in, out))
        return rm_bf16_packed_floats(out, in);
    if (out <= RM_NARROW_MAX)
        return (size_t)out * ((in + RM_NARROW_PAD - 1) / RM_NARROW_PAD * RM_NARROW_PAD);
    return rm_product_panel_floats(out, in);
}

static void pack_panel(void *work, uint32_t index)
{
    const struct product *p = work;
    const struct rm_kernels *kernels = p->cpu->kernels;
    const struct rm_product_panel t = rm_product_panel(kernels, p->out, p->in, index);
    kernels->transpose(p->a + (size_t)t.m0 * p->in, t.m, p->in, p->c + t.offset, t.stride);
}

/* Wide layers: W^T in panels. Narrow ones: W with its rows padded. */
void rm_cpu_pack(struct rm_backend *b, const float *w, uint32_t out, uint32_t in, float *wt)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    if (rm_bf16_takes(cpu, in, out)) {
        rm_bf16_pack(cpu, w, out, in, wt);
        return;
    }
    if (out <= RM_NARROW_MAX) {
        cpu->kernels->narrow_pack(w, in, out, wt);
        return;
    }
    struct product p = {.cpu = cpu, .a = w, .c = wt, .in = in, .out = out};
    rm_cpu_run(cpu, pack_panel, &p, rm_product_panels(cpu->kernels, out), (double)in * out);
}

/* Applies the activation to some columns of rows of m. */
static void activate(const struct rm_kernels *kernels, enum rm_activation act, uint32_t rows,
                     uint32_t columns, uint32_t m, float *c)
{
    if (columns == m) {
        kernels->activate(act, c, (size_t)rows * m, c);
        return;
    }
    for (uint32_t r = 0; r < rows; r++, c += m)
        kernels->activate(act, c, columns, c);
}

/* Rows by weights: some rows by some columns; the loop over columns is the inner one, so that rows
 * stay in the cache. */
static void rows_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    const struct rm_kernels *kernels = p->cpu->kernels;
    const uint32_t m = p->m, k = p->k;
    const uint32_t across = rm_pieces(m, TILE_COLUMNS), m0 = index % across * TILE_COLUMNS;
    const uint32_t row = index / across * p->tile_rows,
                   rows = rm_least(p->rows - row, p->tile_rows);
    const uint32_t columns = rm_least(m - m0, TILE_COLUMNS);
    float *c = p->c + (size_t)row * m + m0;
    rm_product(kernels, &(struct rm_product){.a = p->a + (p->panels ? (size_t)m0 * k : m0),
                                             .b = p->b + (size_t)row * k,
                                             .bias = p->bias ? p->bias + m0 : NULL,
                                             .c = c,
                                             .lda = m,
                                             .ldb = k,
                                             .ldc = m,
                                             .n = rows,
                                             .m = columns,
                                             .k = k,
                                             .panels = p->panels,
                                             .relu = p->act == RM_ACT_RELU});
    if (p->act != RM_ACT_NONE && p->act != RM_ACT_RELU)
        activate(kernels, p->act, rows, columns, m, c);
}

static void narrow_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    const struct rm_kernels *kernels = p->cpu->kernels;
    const uint32_t from = index * TILE_ROWS, n = rm_least(p->rows - from, TILE_ROWS);
    const float *b = p->b + (size_t)from * p->k;
    float *c = p->c + (size_t)from * p->m;
    if (p->panels)
        kernels->narrow(b, p->a, p->bias, n, p->in, p->out, p->act, c);
    else
        kernels->narrow_dx(b, p->a, n, p->in, p->out, c);
}

static void run_rows(struct product *p)
{
    const double cost = cost_of(p->rows, p->in, p->out);
    if (p->m <= RM_NARROW_MAX) {
        rm_cpu_run(p->cpu, narrow_tile, p, rm_pieces(p->rows, TILE_ROWS), cost);
        return;
    }
    p->tile_rows = rm_pool_threads(p->cpu->pool) == 1 ? ROWS_ALONE : TILE_ROWS;
    rm_cpu_run(p->cpu, rows_tile, p,
               rm_pieces(p->rows, p->tile_rows) * rm_pieces(p->m, TILE_COLUMNS), cost);
}

void rm_cpu_linear(struct rm_backend *b, const float *x, const float *wt, const float *bias,
                   uint32_t batch, uint32_t in, uint32_t out, enum rm_activation act, float *y)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct product p = {.cpu = cpu,
                        .a = wt,
                        .b = x,
                        .bias = bias,
                        .c = y,
                        .rows = batch,
                        .in = in,
                        .out = out,
                        .m = out,
                        .k = in,
                        .act = act,
                        .panels = true};
    if (rm_bf16_takes(cpu, in, out))
        rm_bf16_linear(cpu, x, wt, bias, batch, in, out, act, y);
    else
        run_rows(&p);
}

void rm_cpu_linear_dx(struct rm_backend *b, const float *dy, const float *w, uint32_t batch,
                      uint32_t in, uint32_t out, float *dx)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct product p = {.cpu = cpu,
                        .a = w,
                        .b = dy,
                        .c = dx,
                        .rows = batch,
                        .in = in,
                        .out = out,
                        .m = in,
                        .k = out};
    if (rm_bf16_takes(cpu, in, out) && room_for_floats(cpu, rm_bf16_packed_dx_floats(out, in))) {
        rm_bf16_pack_dx(cpu, w, out, in, cpu->panels);
        rm_bf16_linear_dx(cpu, dy, cpu->panels, batch, in, out, dx);
        return;
    }
    if (in > RM_NARROW_MAX && rm_product_wants_panels(cpu->kernels, batch, in, out) &&
        room_for_floats(cpu, rm_product_panel_floats(in, out))) {
        rm_product_pack(cpu->kernels, w, in, out, cpu->panels);
        p.a = cpu->panels;
        p.panels = true;
    }
    run_rows(&p);
}

size_t rm_cpu_packed_dx_floats(struct rm_backend *b, uint32_t out, uint32_t in)
{
    return rm_bf16_takes(rm_cpu_of(b), in, out) ? rm_bf16_packed_dx_floats(out, in) : 0;
}

void rm_cpu_pack_dx(struct rm_backend *b, const float *w, uint32_t out, uint32_t in, float *wt)
{
    if (rm_cpu_packed_dx_floats(b, out, in))
        rm_bf16_pack_dx(rm_cpu_of(b), w, out, in, wt);
}

void rm_cpu_linear_dx_packed(struct rm_backend *b, const float *dy, const float *wt, uint32_t batch,
                             uint32_t in, uint32_t out, float *dx)
{
    if (rm_cpu_packed_dx_floats(b, out, in))
        rm_bf16_linear_dx(rm_cpu_of(b), dy, wt, batch, in, out, dx);
}

/* Tile `index` of the gradient of weights. */
static void outer_tile(const struct product *p, uint32_t index)
{
    const uint32_t down = rm_pieces(p->out, p->height);
    const uint32_t i0 = index / down * p->width, o0 = index % down * p->height;
    rm_product(p->cpu->kernels, &(struct rm_product){.a = p->x + i0,
                                                     .b = p->dy + o0,
                                                     .sums = i0 || !p->sums ? NULL : p->sums + o0,
                                                     .c = p->c + (size_t)o0 * p->in + i0,
                                                     .lda = p->in,
                                                     .ldb = p->out,
                                                     .ldc = p->in,
                                                     .n = rm_least(p->out - o0, p->height),
                                                     .m = rm_least(p->in - i0, p->width),
                                                     .k = p->rows,
                                                     .columns = true,
                                                     .add = p->add});
}

/* The same for few inputs: C(in, some of out), then copied to the transposed position. */
static void turned_tile(const struct product *p, uint32_t index)
{
    const uint32_t o0 = index * OUTER_COLUMNS, n = rm_least(p->out - o0, OUTER_COLUMNS);
    _Alignas(64) float buffer[RM_NARROW_MAX * OUTER_COLUMNS];
    float *to = p->c + (size_t)o0 * p->in;
    rm_product(p->cpu->kernels, &(struct rm_product){.a = p->dy + o0,
                                                     .b = p->x,
                                                     .c = buffer,
                                                     .lda = p->out,
                                                     .ldb = p->in,
                                                     .ldc = OUTER_COLUMNS,
                                                     .n = p->in,
                                                     .m = n,
                                                     .k = p->rows,
                                                     .columns = true});
    for (uint32_t o = 0; o < n; o++, to += p->in)
        for (uint32_t i = 0; i < p->in; i++)
            to[i] = buffer[i * OUTER_COLUMNS + o] + (p->add ? to[i] : 0.0f);
}

/* One tile for one thread, which is fastest; two for each of several threads, so that a late thread
 * has less to do. */
static void cut_outer(struct product *p)
{
    const uint32_t threads = rm_pool_threads(p->cpu->pool), wanted = 2 * threads;
    if (turned(p->in, p->out)) {
        p->product_tiles = rm_pieces(p->out, OUTER_COLUMNS);
        return;
    }
    if (threads == 1) {
        p->width = p->in;
        p->height = p->out;
        p->product_tiles = 1;
        return;
    }
    const uint32_t stretches = rm_pieces(p->in, OUTER_COLUMNS);
    const uint32_t across = rm_least(stretches, wanted), down = rm_pieces(wanted, across);
    p->width = rm_pieces(stretches, across) * OUTER_COLUMNS;
    p->height = rm_pieces(rm_pieces(p->out, 6), down) * 6; /* rows of a kernel's tile */
    p->product_tiles = rm_pieces(p->in, p->width) * rm_pieces(p->out, p->height);
}

#define SUM_COLUMNS 64u

/* First the products' tiles, then the column sums that those did not make. */
static void dw_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    if (index < p->product_tiles) {
        if (p->bf16)
            rm_bf16_dw_tile(p->dy, p->x, p->rows, p->in, p->out, p->add, p->c, index);
        else if (turned(p->in, p->out))
            turned_tile(p, index);
        else
            outer_tile(p, index);
        return;
    }
    uint32_t from = (index - p->product_tiles) * SUM_COLUMNS;
    uint32_t to = p->out - from < SUM_COLUMNS ? p->out : from + SUM_COLUMNS;
    float had[SUM_COLUMNS];
    if (p->add)
        memcpy(had, p->sums + from, (to - from) * sizeof *had);
    p->cpu->kernels->column_sums(p->dy, p->rows, p->out, from, to, p->sums);
    if (p->add)
        p->cpu->kernels->add(had, p->sums + from, to - from, p->sums + from);
}

static void linear_dw(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                      uint32_t in, uint32_t out, bool add, float *dw, float *db)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    if (batch == 0) { /* kernels that add up rows would write nothing */
        rm_cpu_fill(b, 0.0f, add ? 0 : (size_t)in * out, dw);
        rm_cpu_fill(b, 0.0f, add || !db ? 0 : out, db);
        return;
    }
    struct product p = {.cpu = cpu,
                        .x = x,
                        .dy = dy,
                        .c = dw,
                        .sums = db,
                        .rows = batch,
                        .in = in,
                        .out = out,
                        .add = add,
                        .bf16 = rm_bf16_takes(cpu, in, out)};
    if (p.bf16)
        p.product_tiles = rm_bf16_dw_tiles(in, out);
    else
        cut_outer(&p);
    const bool apart = db && (p.bf16 || turned(in, out));
    const uint32_t sums = apart ? rm_pieces(out, SUM_COLUMNS) : 0;
    rm_cpu_run(cpu, dw_tile, &p, p.product_tiles + sums, cost_of(batch, in, out));
}

void rm_cpu_linear_dw(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                      uint32_t in, uint32_t out, float *dw, float *db)
{
    linear_dw(b, dy, x, batch, in, out, false, dw, db);
}

void rm_cpu_linear_dw_add(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                          uint32_t in, uint32_t out, float *dw, float *db)
{
    linear_dw(b, dy, x, batch, in, out, true, dw, db);
}
