/* Matrix products of the CPU backend: which kernel, cut how, and what happens to a tile while it is
 * still in the cache. */
#include "learner/backend/bf16.h"
#include "learner/backend/cpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct product {
    struct rm_cpu *cpu;
    const struct rm_gemm_plan *plan;
    const float *a, *b, *bias, *x, *dy;
    float *c, *sums;
    uint32_t rows, in, out, product_tiles;
    enum rm_activation act;
    bool add;  /* to what is in c and in sums */
    bool bf16; /* by bf16.h, without a plan */
};

static double cost_of(uint32_t rows, uint32_t in, uint32_t out)
{
    return (double)rows * in * out / 16.0;
}

/* False when there is no memory. */
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

/* Room for what `plan` loads. */
static bool room_for(struct rm_cpu *cpu, const struct rm_gemm_plan *plan, uint32_t k)
{
    return room_for_floats(cpu, rm_gemm_load_floats(plan, k));
}

static const float *load(struct rm_cpu *cpu, const struct rm_gemm_plan *plan, uint32_t k,
                         const float *a)
{
    return room_for(cpu, plan, k) ? rm_gemm_load(plan, k, a, cpu->panels) : a;
}

/* The gradient of the weights of a layer with few inputs is made the other way round, so that
 * vectors run along its outputs. */
static bool turned(uint32_t in, uint32_t out)
{
    return in < 16 && in < out;
}

static const struct rm_gemm_plan *dw_plan(struct rm_gemm *gemm, uint32_t batch, uint32_t in,
                                          uint32_t out)
{
    return turned(in, out) ? rm_gemm_plan(gemm, RM_GEMM_DW_TURNED, out, in, batch)
                           : rm_gemm_plan(gemm, RM_GEMM_DW, in, out, batch);
}

static const struct rm_gemm_plan *dw_plan_up_to(struct rm_gemm *gemm, uint32_t batch, uint32_t in,
                                                uint32_t out)
{
    return turned(in, out) ? rm_gemm_plan_up_to(gemm, RM_GEMM_DW_TURNED, out, in, batch)
                           : rm_gemm_plan_up_to(gemm, RM_GEMM_DW, in, out, batch);
}

int rm_cpu_reserve(struct rm_backend *b, uint32_t batch, uint32_t in, uint32_t out, bool training)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    if (rm_bf16_takes(cpu, in, out))
        return !training || room_for_floats(cpu, rm_bf16_packed_dx_floats(out, in)) ? 0 : -ENOMEM;
    if (out > RM_NARROW_MAX && !rm_gemm_plan(cpu->gemm, RM_GEMM_FORWARD, out, 0, in))
        return -ENOMEM;
    if (!training)
        return 0;
    const struct rm_gemm_plan *dw = dw_plan_up_to(cpu->gemm, batch, in, out);
    if (!dw || !room_for(cpu, dw, batch))
        return -ENOMEM;
    if (in <= RM_NARROW_MAX)
        return 0;
    const struct rm_gemm_plan *dx = rm_gemm_plan(cpu->gemm, RM_GEMM_DX, in, 0, out);
    return dx && room_for(cpu, dx, out) ? 0 : -ENOMEM;
}

size_t rm_cpu_packed_floats(struct rm_backend *b, uint32_t out, uint32_t in)
{
    if (rm_bf16_takes(rm_cpu_of(b), in, out))
        return rm_bf16_packed_floats(out, in);
    if (out <= RM_NARROW_MAX)
        return (size_t)out * ((in + RM_NARROW_PAD - 1) / RM_NARROW_PAD * RM_NARROW_PAD);
    return rm_gemm_panel_floats(out, in);
}

static void pack_panel(void *work, uint32_t index)
{
    const struct product *p = work;
    struct rm_gemm_panel t = rm_gemm_panel(p->plan, index);
    p->cpu->kernels->transpose(p->a + (size_t)t.m0 * p->in, t.m, p->in, p->c + t.offset, t.stride);
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
    p.plan = rm_gemm_plan(cpu->gemm, RM_GEMM_FORWARD, out, 0, in);
    rm_cpu_run(cpu, pack_panel, &p, rm_gemm_panels(p.plan), (double)in * out);
}

static void forward_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    struct rm_gemm_tile t = rm_gemm_tile(p->plan, p->rows, index);
    _Alignas(64) float buffer[RM_GEMM_TILE_M * RM_GEMM_TILE_N];
    float *to = p->c + (size_t)t.n0 * p->out + t.m0, *c = t.direct ? to : buffer;
    rm_gemm_run(p->plan, &t, p->in, p->a, p->b, false, c);
    p->cpu->kernels->bias_act(c, t.ldc, t.n, t.m, p->bias + t.m0, p->act, to, p->out);
}

static void narrow_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    uint32_t from = index * RM_GEMM_TILE_N;
    uint32_t n = p->rows - from < RM_GEMM_TILE_N ? p->rows - from : RM_GEMM_TILE_N;
    p->cpu->kernels->narrow(p->b + (size_t)from * p->in, p->a, p->bias, n, p->in, p->out, p->act,
                            p->c + (size_t)from * p->out);
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
                        .act = act};
    if (rm_bf16_takes(cpu, in, out)) {
        rm_bf16_linear(cpu, x, wt, bias, batch, in, out, act, y);
        return;
    }
    if (out <= RM_NARROW_MAX) {
        uint32_t tiles = (batch + RM_GEMM_TILE_N - 1) / RM_GEMM_TILE_N;
        rm_cpu_run(cpu, narrow_tile, &p, tiles, cost_of(batch, in, out));
        return;
    }
    p.plan = rm_gemm_plan(cpu->gemm, RM_GEMM_FORWARD, out, 0, in);
    rm_cpu_run(cpu, forward_tile, &p, rm_gemm_tiles(p.plan, batch), cost_of(batch, in, out));
}

/* Runs a tile of C(width, n), sums of k products, and puts it where it belongs. */
static void plain_tile(const struct product *p, uint32_t n, uint32_t width, uint32_t k,
                       uint32_t index)
{
    struct rm_gemm_tile t = rm_gemm_tile(p->plan, n, index);
    _Alignas(64) float buffer[RM_GEMM_TILE_M * RM_GEMM_TILE_N];
    float *to = p->c + (size_t)t.n0 * width + t.m0;
    rm_gemm_run(p->plan, &t, k, p->a, p->b, p->add && t.direct, t.direct ? to : buffer);
    for (uint32_t j = 0; j < t.n && !t.direct; j++) {
        const float *from = buffer + (size_t)j * t.ldc;
        if (p->add)
            p->cpu->sequence->add(from, to + (size_t)j * width, t.m, to + (size_t)j * width);
        else
            memcpy(to + (size_t)j * width, from, t.m * sizeof *to);
    }
}

static void dx_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    plain_tile(p, p->rows, p->in, p->out, index);
}

static void narrow_dx_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    uint32_t from = index * RM_GEMM_TILE_N;
    uint32_t n = p->rows - from < RM_GEMM_TILE_N ? p->rows - from : RM_GEMM_TILE_N;
    p->cpu->kernels->narrow_dx(p->b + (size_t)from * p->out, p->a, n, p->in, p->out,
                               p->c + (size_t)from * p->in);
}

void rm_cpu_linear_dx(struct rm_backend *b, const float *dy, const float *w, uint32_t batch,
                      uint32_t in, uint32_t out, float *dx)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct product p = {.cpu = cpu, .a = w, .b = dy, .c = dx, .rows = batch, .in = in, .out = out};
    if (rm_bf16_takes(cpu, in, out) && room_for_floats(cpu, rm_bf16_packed_dx_floats(out, in))) {
        rm_bf16_pack_dx(cpu, w, out, in, cpu->panels);
        rm_bf16_linear_dx(cpu, dy, cpu->panels, batch, in, out, dx);
        return;
    }
    if (in <= RM_NARROW_MAX) {
        uint32_t tiles = (batch + RM_GEMM_TILE_N - 1) / RM_GEMM_TILE_N;
        rm_cpu_run(cpu, narrow_dx_tile, &p, tiles, cost_of(batch, in, out));
        return;
    }
    p.plan = rm_gemm_plan(cpu->gemm, RM_GEMM_DX, in, 0, out);
    p.a = load(cpu, p.plan, out, w);
    rm_cpu_run(cpu, dx_tile, &p, rm_gemm_tiles(p.plan, batch), cost_of(batch, in, out));
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

#define SUM_COLUMNS 64u

/* Runs a tile of C(in, out) and puts its transpose where it belongs. */
static void turned_tile(const struct product *p, uint32_t index)
{
    struct rm_gemm_tile t = rm_gemm_tile(p->plan, p->in, index);
    _Alignas(64) float buffer[RM_GEMM_TILE_M * RM_GEMM_TILE_N];
    float *to = p->c + (size_t)t.m0 * p->in + t.n0;
    rm_gemm_run(p->plan, &t, p->rows, p->a, p->b, false, buffer);
    for (uint32_t i = 0; i < t.m; i++, to += p->in)
        for (uint32_t j = 0; j < t.n; j++)
            to[j] = buffer[(size_t)j * t.ldc + i] + (p->add ? to[j] : 0.0f);
}

/* The products' tiles first, then the sums over columns. */
static void dw_tile(void *work, uint32_t index)
{
    const struct product *p = work;
    if (index < p->product_tiles) {
        if (p->bf16)
            rm_bf16_dw_tile(p->dy, p->x, p->rows, p->in, p->out, p->add, p->c, index);
        else if (turned(p->in, p->out))
            turned_tile(p, index);
        else
            plain_tile(p, p->out, p->in, p->rows, index);
        return;
    }
    uint32_t from = (index - p->product_tiles) * SUM_COLUMNS;
    uint32_t to = p->out - from < SUM_COLUMNS ? p->out : from + SUM_COLUMNS;
    float had[SUM_COLUMNS];
    if (p->add)
        memcpy(had, p->sums + from, (to - from) * sizeof *had);
    p->cpu->kernels->column_sums(p->dy, p->rows, p->out, from, to, p->sums);
    if (p->add)
        p->cpu->sequence->add(had, p->sums + from, to - from, p->sums + from);
}

static void linear_dw(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                      uint32_t in, uint32_t out, bool add, float *dw, float *db)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    bool turn = turned(in, out);
    struct product p = {.cpu = cpu,
                        .b = turn ? x : dy,
                        .x = x,
                        .dy = dy,
                        .c = dw,
                        .sums = db,
                        .rows = batch,
                        .in = in,
                        .out = out,
                        .add = add,
                        .bf16 = rm_bf16_takes(cpu, in, out)};
    if (p.bf16) {
        p.product_tiles = rm_bf16_dw_tiles(in, out);
    } else {
        p.plan = dw_plan(cpu->gemm, batch, in, out);
        p.a = load(cpu, p.plan, batch, turn ? dy : x);
        p.product_tiles = rm_gemm_tiles(p.plan, turn ? in : out);
    }
    uint32_t sums = db ? (out + SUM_COLUMNS - 1) / SUM_COLUMNS : 0;
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
