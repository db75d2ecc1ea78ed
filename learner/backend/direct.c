#include "learner/backend/direct.h"

#include "learner/backend/bf16.h"
#include "learner/backend/cpu.h"

#include <string.h>

/* Images are cut into at most this many tasks, each with its own buffers. */
#define SLOTS 16u

/* One task's memory. */
struct bench {
    float *spread; /* (rows with padding, places of a row, kernel * channels) */
    float *turned; /* (places, channels) of the input */
    float *result; /* (places, channels) of the result, or of dy */
};

struct layout { /* floats, each rounded up to a cache line */
    size_t spread, turned, result, bench;
    size_t slot;  /* gradients of weights (ky, out, kx, in), then of biases */
    size_t turns; /* weights for the gradient of x, followed by the rounded ones */
};

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t weights_of(const struct rm_conv *c)
{
    return (size_t)c->kernel * c->kernel * c->channels * c->out_channels;
}

/* Whether all three products are in bf16. */
static bool takes_bf16(const struct rm_cpu *cpu, const struct rm_conv *c)
{
    return rm_bf16_takes(cpu, c->kernel * c->kernel * c->channels, c->out_channels);
}

/* Weights of one row of the kernel, (kernel * from, to), rounded. */
static size_t rounded_row(const struct rm_conv *c, uint32_t from, uint32_t to)
{
    return rm_rounded(rm_bf16_rounded_floats(c->kernel * from, to));
}

/* Rounds the weights of all rows of the kernel, to the memory after them. */
static void round_rows(const struct rm_conv *c, uint32_t from, uint32_t to, float *wt)
{
    const uint32_t k = c->kernel * from;
    float *at = wt + rm_rounded(weights_of(c));
    for (uint32_t ky = 0; ky < c->kernel; ky++, at += rounded_row(c, from, to))
        rm_bf16_round_matrix(wt + (size_t)ky * k * to, k, to, at);
}

/* Rows of the forward pass or of the gradient of x, whichever are larger. */
static struct layout layout_of(const struct rm_cpu *cpu, const struct rm_conv *c)
{
    uint32_t back = c->kernel - 1 - c->padding, pixels = c->height * c->width;
    size_t fore = (size_t)(c->height + 2 * c->padding) * c->out_width * c->kernel * c->channels;
    size_t aft = (size_t)(c->out_height + 2 * back) * c->width * c->kernel * c->out_channels;
    size_t in = (size_t)pixels * c->channels, out = (size_t)rm_conv_places(c) * c->out_channels;
    struct layout l = {.spread = rm_rounded(larger(fore, aft)),
                       .turned = rm_rounded(larger(in, out)),
                       .result = rm_rounded(larger(in, out)),
                       .slot = rm_rounded(weights_of(c)) + rm_rounded(c->out_channels),
                       .turns = rm_rounded(weights_of(c))};
    if (takes_bf16(cpu, c))
        l.turns += c->kernel * rounded_row(c, c->out_channels, c->channels);
    l.bench = l.spread + l.turned + l.result;
    return l;
}

size_t rm_direct_scratch_floats(const struct rm_cpu *cpu, const struct rm_conv *c, bool training)
{
    struct layout l = layout_of(cpu, c);
    return SLOTS * l.bench + (training ? SLOTS * l.slot + l.turns : 0);
}

static struct bench bench_of(const struct layout *l, float *scratch, uint32_t slot)
{
    float *at = scratch + slot * l->bench;
    return (struct bench){at, at + l->spread, at + l->spread + l->turned};
}

bool rm_direct_suits(const struct rm_conv *c)
{
    return c->stride == 1 && c->padding < c->kernel;
}

size_t rm_direct_packed_floats(const struct rm_cpu *cpu, const struct rm_conv *c)
{
    if (!takes_bf16(cpu, c))
        return weights_of(c);
    return rm_rounded(weights_of(c)) + c->kernel * rounded_row(c, c->channels, c->out_channels);
}

/* (out, in, ky, kx) to (ky, kx, in, out) */
void rm_direct_pack(const struct rm_cpu *cpu, const struct rm_conv *c, const float *w, float *wt)
{
    const uint32_t k = c->kernel;
    float *to = wt;
    for (uint32_t ky = 0; ky < k; ky++)
        for (uint32_t kx = 0; kx < k; kx++)
            for (uint32_t i = 0; i < c->channels; i++)
                for (uint32_t o = 0; o < c->out_channels; o++)
                    *to++ = w[(((size_t)o * c->channels + i) * k + ky) * k + kx];
    if (takes_bf16(cpu, c))
        round_rows(c, c->channels, c->out_channels, wt);
}

/* The same for the gradient of x: (out, in, ky, kx) to (ky, kx, out, in), last of ky, kx first. */
static void pack_turned(const struct rm_conv *c, const float *w, float *wt)
{
    const uint32_t k = c->kernel;
    for (uint32_t ky = k; ky-- > 0;)
        for (uint32_t kx = k; kx-- > 0;)
            for (uint32_t o = 0; o < c->out_channels; o++)
                for (uint32_t i = 0; i < c->channels; i++)
                    *wt++ = w[(((size_t)o * c->channels + i) * k + ky) * k + kx];
}

/* Conversion of an image to its spread form: `padding` zeros around, `out_width` positions in a
 * row. */
struct spread {
    uint32_t channels, height, width, kernel, padding, out_width;
};

/* Neighbours [from, to) of position x are inside the image; the others are zeros. */
static void spread_place(const struct spread *s, const float *row, uint32_t x, float *to)
{
    const uint32_t n = s->channels;
    int64_t left = (int64_t)x - s->padding, from = left < 0 ? -left : 0, end = s->width - left;
    end = end < s->kernel ? end : s->kernel;
    memset(to, 0, (size_t)from * n * sizeof *to);
    memcpy(to + (size_t)from * n, row + (size_t)(left + from) * n,
           (size_t)(end - from) * n * sizeof *to);
    memset(to + (size_t)end * n, 0, (size_t)(s->kernel - end) * n * sizeof *to);
}

static void spread_image(const struct rm_kernels *kernels, const struct spread *s, const float *x,
                         const struct bench *b)
{
    const uint32_t n = s->channels;
    const size_t place = (size_t)s->kernel * n, row = place * s->out_width;
    float *to = b->spread;
    kernels->transpose(x, n, s->height * s->width, b->turned, n);
    memset(to, 0, s->padding * row * sizeof *to);
    to += s->padding * row;
    for (uint32_t y = 0; y < s->height; y++)
        for (uint32_t i = 0; i < s->out_width; i++, to += place)
            spread_place(s, b->turned + (size_t)y * s->width * n, i, to);
    memset(to, 0, s->padding * row * sizeof *to);
}

struct work {
    struct rm_cpu *cpu;
    struct rm_conv conv;
    struct layout layout;
    struct spread spread;
    const float *x, *dy, *wt, *bias;
    float *out, *scratch, *slots;
    uint32_t batch, tasks;
    uint32_t to, places; /* channels and places of `out` */
    enum rm_activation act;
    bool bf16;
};

static uint32_t first_of(const struct work *w, uint32_t task)
{
    return (uint32_t)((uint64_t)task * w->batch / w->tasks);
}

/* Adds up the products of all rows of the kernel: from b->spread to b->result, (places, to). */
static void convolve(const struct work *w, uint32_t places, uint32_t to, const struct bench *b)
{
    const struct spread *s = &w->spread;
    const uint32_t wide = s->kernel * s->channels;
    const size_t row = (size_t)wide * s->out_width;
    const float *at = w->wt + rm_rounded(weights_of(&w->conv));
    for (uint32_t ky = 0; ky < s->kernel; ky++)
        if (w->bf16)
            rm_bf16_multiply(b->spread + ky * row, at + ky * rounded_row(&w->conv, s->channels, to),
                             places, wide, to, ky > 0, b->result);
        else
            rm_product(w->cpu->kernels, &(struct rm_product){.a = w->wt + (size_t)ky * wide * to,
                                                             .b = b->spread + ky * row,
                                                             .c = b->result,
                                                             .lda = to,
                                                             .ldb = wide,
                                                             .ldc = to,
                                                             .n = places,
                                                             .m = to,
                                                             .k = wide,
                                                             .add = ky > 0});
}

/* Images of w->x to w->out; without a bias, gradients of results to those of images. */
static void rows_task(void *user, uint32_t task)
{
    const struct work *w = user;
    const struct rm_kernels *kernels = w->cpu->kernels;
    const struct bench b = bench_of(&w->layout, w->scratch, task);
    const size_t in = (size_t)w->spread.channels * w->spread.height * w->spread.width;
    const uint32_t n = w->to, places = w->places;
    for (uint32_t i = first_of(w, task); i < first_of(w, task + 1); i++) {
        spread_image(kernels, &w->spread, w->x + i * in, &b);
        convolve(w, places, n, &b);
        if (w->bias)
            kernels->bias_act(b.result, n, places, n, w->bias, w->act, b.result, n);
        kernels->transpose(b.result, places, n, w->out + (size_t)i * n * places, places);
    }
}

static void dw_task(void *user, uint32_t task)
{
    const struct work *w = user;
    const struct rm_conv *c = &w->conv;
    const struct rm_kernels *kernels = w->cpu->kernels;
    const struct bench b = bench_of(&w->layout, w->scratch, task);
    const size_t in = (size_t)c->channels * c->height * c->width;
    const size_t row = (size_t)c->kernel * c->channels * c->out_width;
    const uint32_t n = c->out_channels, places = rm_conv_places(c), first = first_of(w, task);
    const uint32_t wide = c->kernel * c->channels;
    float *dw = w->slots + task * w->layout.slot, *db = dw + rm_rounded(weights_of(c));
    memset(db, 0, n * sizeof *db);
    for (uint32_t i = first; i < first_of(w, task + 1); i++) {
        const float *dy = w->dy + (size_t)i * n * places;
        spread_image(kernels, &w->spread, w->x + i * in, &b);
        kernels->transpose(dy, n, places, b.result, n);
        for (uint32_t ky = 0; ky < c->kernel; ky++) {
            float *to = dw + (size_t)ky * wide * n;
            if (!w->bf16)
                rm_product(kernels, &(struct rm_product){.a = b.spread + ky * row,
                                                         .b = b.result,
                                                         .c = to,
                                                         .lda = wide,
                                                         .ldb = n,
                                                         .ldc = wide,
                                                         .n = n,
                                                         .m = wide,
                                                         .k = places,
                                                         .columns = true,
                                                         .add = i > first});
            for (uint32_t tile = 0; w->bf16 && tile < rm_bf16_dw_tiles(wide, n); tile++)
                rm_bf16_dw_tile(b.result, b.spread + ky * row, places, wide, n, i > first, to,
                                tile);
        }
        kernels->column_sums(b.result, places, n, 0, n, b.turned);
        for (uint32_t o = 0; o < n; o++)
            db[o] += b.turned[o];
    }
}

static void start(struct work *w, struct rm_cpu *cpu, const struct rm_conv *c, uint32_t batch,
                  float *scratch, bool back)
{
    w->cpu = cpu;
    w->conv = *c;
    w->layout = layout_of(cpu, c);
    w->bf16 = takes_bf16(cpu, c);
    w->batch = batch;
    w->tasks = batch < SLOTS ? batch : SLOTS;
    w->scratch = scratch;
    w->to = back ? c->channels : c->out_channels;
    w->places = back ? c->height * c->width : rm_conv_places(c);
    w->spread = back ? (struct spread){c->out_channels,
                                       c->out_height,
                                       c->out_width,
                                       c->kernel,
                                       c->kernel - 1 - c->padding,
                                       c->width}
                     : (struct spread){c->channels, c->height,  c->width,
                                       c->kernel,   c->padding, c->out_width};
}

static double cost_of(const struct rm_conv *c, uint32_t batch)
{
    return (double)weights_of(c) * rm_conv_places(c) * batch / 16.0;
}

void rm_direct_forward(struct rm_cpu *cpu, const struct rm_conv *c, const float *x, const float *wt,
                       const float *bias, uint32_t batch, enum rm_activation act, float *y,
                       float *scratch)
{
    struct work w = {.x = x, .wt = wt, .bias = bias, .act = act, .out = y};
    start(&w, cpu, c, batch, scratch, false);
    rm_cpu_run(cpu, rows_task, &w, w.tasks, cost_of(c, batch));
}

void rm_direct_dx(struct rm_cpu *cpu, const struct rm_conv *c, const float *dy, const float *w_,
                  uint32_t batch, float *dx, float *scratch)
{
    struct work w = {.x = dy, .out = dx};
    start(&w, cpu, c, batch, scratch, true);
    float *wt = scratch + SLOTS * (w.layout.bench + w.layout.slot);
    pack_turned(c, w_, wt);
    if (w.bf16)
        round_rows(c, c->out_channels, c->channels, wt);
    w.wt = wt;
    rm_cpu_run(cpu, rows_task, &w, w.tasks, cost_of(c, batch));
}

void rm_direct_dw(struct rm_cpu *cpu, const struct rm_conv *c, const float *dy, const float *x,
                  uint32_t batch, float *dw, float *db, float *scratch)
{
    struct work w = {.x = x, .dy = dy};
    start(&w, cpu, c, batch, scratch, false);
    const uint32_t k = c->kernel;
    float *sum = scratch + SLOTS * (w.layout.bench + w.layout.slot);
    w.slots = scratch + SLOTS * w.layout.bench;
    rm_cpu_run(cpu, dw_task, &w, w.tasks, cost_of(c, batch));
    rm_cpu_sum_parts(&cpu->backend, w.slots + rm_rounded(weights_of(c)), w.tasks, w.layout.slot,
                     c->out_channels, db);
    rm_cpu_sum_parts(&cpu->backend, w.slots, w.tasks, w.layout.slot, weights_of(c), sum);
    for (uint32_t ky = 0; ky < k; ky++) /* (ky, out, kx, in) to (out, in, ky, kx) */
        for (uint32_t o = 0; o < c->out_channels; o++)
            for (uint32_t kx = 0; kx < k; kx++)
                for (uint32_t i = 0; i < c->channels; i++)
                    dw[(((size_t)o * c->channels + i) * k + ky) * k + kx] = *sum++;
}
