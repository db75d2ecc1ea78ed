/* What single kernels of a device make of the hardware: convolutions and the linear layer of the
 * Goodhart grid's network (docs/gpu.md) in bf16, skipped where there is no device.
 * scripts/gpu-check runs it.
 *
 * cuda.bf16            TFLOP/s of a product of two matrices of 8192 by 8192 by the library
 * cuda.memory          GB/s of a copy within the device, both ways counted
 * cuda.LAYER.results, cuda.LAYER.gradients (of images), cuda.LAYER.weights (gradients of)
 *                      TFLOP/s; ceiling: cuda.bf16; baseline: the plain way (im2col, float32
 * between layers); the note has microseconds, and the least traffic as a part of cuda.memory */
#include "learner/backend/device.h"
#include "learner/backend/plugin.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"
#include "shm/base/float_word.h"
#include "shm/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 5, BLOCK = 1 << 20, OUT = 512 };

/* $RM_BENCH_UPDATES: little of everything, to see whether it runs. */
static uint32_t batch = 24576, side = 8192, times = 10;
static size_t copied = (size_t)1 << 30;
static double flops_most, bytes_most; /* a second */

static void fail(const struct rm_error *error)
{
    fprintf(stderr, "bench_cuda_kernels: %s\n", error->text);
    exit(1);
}

static struct rm_backend *open_backend(const struct rm_backend_plugin *plugin, bool plain)
{
    const struct rm_device_spec spec = {.compute = RM_COMPUTE_BF16, .threads = 1, .plain = plain};
    struct rm_backend *b;
    struct rm_error error = {""};
    if (plugin->create(&b, &spec, &error))
        fail(&error);
    return b;
}

static void finish(struct rm_backend *b)
{
    struct rm_error error = {""};
    b->ops->finish(b);
    if (b->ops->failed(b, &error))
        fail(&error);
}

static float *device_floats(struct rm_backend *b, size_t floats)
{
    float *p = b->ops->alloc(b, floats ? floats : 1);
    struct rm_error error = {""};
    if (!p) {
        snprintf(error.text, sizeof error.text, "%s", b->device->shortage(b));
        fail(&error);
    }
    return p;
}

/* A word of random numbers around 1: a float, or two in bf16. */
static uint32_t word_of(struct rm_rng *rng, bool compact)
{
    const uint32_t bits = (uint32_t)rm_word_of_float(rm_rng_float(rng) - 0.5f);
    return compact ? (bits & 0xffff0000u) | (bits >> 16 ^ 1u) : bits;
}

/* The same block again and again: equal numbers would cost less power than any others. */
static float *random_numbers(struct rm_backend *b, size_t floats, bool compact)
{
    static uint32_t block[BLOCK];
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, compact, 0);
    float *p = device_floats(b, floats);
    const size_t first = floats < BLOCK ? floats : BLOCK;
    for (size_t i = 0; i < first; i++)
        block[i] = word_of(&rng, compact);
    b->ops->upload(b, p, (const float *)(const void *)block, first);
    for (size_t at = first, n; at < floats; at += n) {
        n = floats - at < first ? floats - at : first;
        b->ops->copy(b, p + at, p, n * sizeof *p);
    }
    finish(b);
    return p;
}

/* Seconds of one call, as the median of RUNS. */
static double seconds_of(struct rm_backend *b, void (*call)(struct rm_backend *b, void *of),
                         void *of, double values[RUNS])
{
    for (int r = -1; r < RUNS; r++) { /* the first makes plans and memory */
        const uint64_t start = rm_now_ns();
        for (uint32_t i = 0; i < times; i++)
            call(b, of);
        finish(b);
        if (r >= 0)
            values[r] = (double)(rm_now_ns() - start) / times / 1e9;
    }
    return rm_bench_median(values, RUNS);
}

/* --- ceilings --------------------------------------------------------------------------------- */

struct operands {
    float *x, *w, *bias, *y;
};

static void multiply(struct rm_backend *b, void *of)
{
    const struct operands *o = of;
    b->ops->linear(b, o->x, o->w, o->bias, side, side, side, RM_ACT_NONE, o->y);
}

static void copy(struct rm_backend *b, void *of)
{
    const struct operands *o = of;
    b->ops->copy(b, o->y, o->x, copied);
}

static void release(struct rm_backend *b, struct operands *o)
{
    float *all[] = {o->x, o->w, o->bias, o->y};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            b->ops->release(b, all[i]);
}

/* The product's operand is made bf16 within it; that is counted too, and is little beside it. */
static void measure_ceilings(struct rm_backend *b)
{
    const size_t n = (size_t)side * side;
    double values[RUNS];
    struct operands o = {.x = random_numbers(b, n, false),
                         .w = random_numbers(b, b->ops->packed_floats(b, side, side), true),
                         .bias = device_floats(b, side),
                         .y = device_floats(b, n)};
    seconds_of(b, multiply, &o, values);
    for (int r = 0; r < RUNS; r++)
        values[r] = 2.0 * (double)n * side / values[r] / 1e12;
    flops_most = rm_bench_median(values, RUNS) * 1e12;
    rm_bench_report(&(struct rm_bench_result){
        .name = "cuda.bf16", .unit = "TFLOP/s", .values = values, .runs = RUNS});
    release(b, &o);
    o = (struct operands){.x = random_numbers(b, copied / sizeof(float), false),
                          .y = device_floats(b, copied / sizeof(float))};
    seconds_of(b, copy, &o, values);
    for (int r = 0; r < RUNS; r++)
        values[r] = 2.0 * (double)copied / values[r] / 1e9;
    bytes_most = rm_bench_median(values, RUNS) * 1e9;
    rm_bench_report(&(struct rm_bench_result){
        .name = "cuda.memory", .unit = "GB/s", .values = values, .runs = RUNS});
    release(b, &o);
}

/* --- layers ----------------------------------------------------------------------------------- */

/* One layer on one backend; which way it goes is in `conv`, and in `images` of a linear one. */
struct layer {
    const char *name;
    struct rm_conv conv; /* out_channels 0: linear, `images` to OUT */
    struct rm_image_rows images;
    bool compact;
    float *x, *w, *packed, *bias, *y, *dy, *dx, *dw, *db, *scratch;
};

static size_t numbers_in(const struct layer *l)
{
    return (size_t)batch * l->conv.channels * l->conv.height * l->conv.width;
}

static size_t numbers_out(const struct layer *l)
{
    const struct rm_conv *c = &l->conv;
    return (size_t)batch * (c->out_channels ? c->out_channels * c->out_height * c->out_width : OUT);
}

static size_t weights_of(const struct layer *l)
{
    const struct rm_conv *c = &l->conv;
    return c->out_channels ? (size_t)c->out_channels * c->channels * c->kernel * c->kernel
                           : (size_t)OUT * c->channels * c->height * c->width;
}

static double flops_of(const struct layer *l)
{
    const struct rm_conv *c = &l->conv;
    return 2.0 * (double)weights_of(l) * batch *
           (c->out_channels ? c->out_height * c->out_width : 1);
}

static void results(struct rm_backend *b, void *of)
{
    const struct layer *l = of;
    const uint32_t in = l->images.channels * l->images.places;
    if (l->conv.out_channels)
        b->ops->conv2d(b, &l->conv, l->x, l->packed, l->bias, batch, RM_ACT_RELU, l->y, l->scratch);
    else if (l->compact)
        b->ops->compact_linear(b, l->x, &l->images, l->packed, l->bias, OUT, RM_ACT_RELU, l->y);
    else
        b->ops->linear(b, l->x, l->packed, l->bias, batch, in, OUT, RM_ACT_RELU, l->y);
}

static void gradients(struct rm_backend *b, void *of)
{
    const struct layer *l = of;
    const uint32_t in = l->images.channels * l->images.places;
    if (l->conv.out_channels)
        b->ops->conv2d_dx(b, &l->conv, l->dy, l->w, batch, l->dx, l->scratch);
    else if (l->compact)
        b->ops->compact_linear_dx(b, l->dy, l->w, &l->images, OUT, l->dx);
    else
        b->ops->linear_dx(b, l->dy, l->w, batch, in, OUT, l->dx);
}

static void weights(struct rm_backend *b, void *of)
{
    const struct layer *l = of;
    const uint32_t in = l->images.channels * l->images.places;
    if (l->conv.out_channels)
        b->ops->conv2d_dw(b, &l->conv, l->dy, l->x, batch, l->dw, l->db, l->scratch);
    else if (l->compact)
        b->ops->compact_linear_dw(b, l->dy, l->x, &l->images, OUT, l->dw, l->db);
    else
        b->ops->linear_dw(b, l->dy, l->x, batch, in, OUT, l->dw, l->db);
}

static void open_layer(struct layer *l, struct rm_backend *b, bool compact_in, bool compact_out)
{
    const uint32_t in = l->conv.channels * l->conv.height * l->conv.width;
    l->images = (struct rm_image_rows){batch, l->conv.channels, l->conv.height * l->conv.width};
    l->conv.x_compact = l->compact = compact_in;
    l->conv.y_compact = compact_out;
    l->x = random_numbers(b, numbers_in(l) / (compact_in ? 2 : 1), compact_in);
    l->dy = random_numbers(b, numbers_out(l) / (compact_out ? 2 : 1), compact_out);
    l->w = random_numbers(b, weights_of(l), false);
    l->bias = random_numbers(b, OUT, false);
    l->y = device_floats(b, numbers_out(l));
    l->dx = device_floats(b, numbers_in(l));
    l->dw = device_floats(b, weights_of(l));
    l->db = device_floats(b, OUT);
    if (!l->conv.out_channels) {
        l->packed = device_floats(b, b->ops->packed_floats(b, OUT, in));
        if (compact_in)
            b->ops->compact_pack(b, l->w, OUT, &l->images, l->packed);
        else
            b->ops->pack(b, l->w, OUT, in, l->packed);
        return;
    }
    l->packed = device_floats(b, b->ops->conv2d_packed_floats(b, &l->conv));
    b->ops->conv2d_pack(b, &l->conv, l->w, l->packed);
    l->scratch = device_floats(b, b->ops->conv2d_scratch_floats(b, &l->conv, true));
}

static void close_layer(struct layer *l, struct rm_backend *b)
{
    float *all[] = {l->x, l->w, l->packed, l->bias, l->y, l->dy, l->dx, l->dw, l->db, l->scratch};
    finish(b);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i])
            b->ops->release(b, all[i]);
}

static const struct {
    const char *name;
    void (*call)(struct rm_backend *b, void *of);
} ways[] = {
    {"results", results},
    {"gradients", gradients},
    {"weights", weights},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Bytes that go through memory at least. */
static double bytes_of(const struct layer *l)
{
    return (double)numbers_in(l) * (l->conv.x_compact ? 2 : 4) +
           (double)numbers_out(l) * (l->conv.y_compact ? 2 : 4);
}

static void bench_layer(const struct layer *of, const struct rm_backend_plugin *plugin,
                        bool compact_in, bool compact_out)
{
    double values[WAYS][RUNS], plain[WAYS][RUNS], baseline[WAYS];
    struct layer l = *of;
    struct rm_backend *b = open_backend(plugin, true);
    open_layer(&l, b, false, false);
    for (int i = 0; i < WAYS; i++)
        baseline[i] = flops_of(&l) / seconds_of(b, ways[i].call, &l, plain[i]) / 1e12;
    close_layer(&l, b);
    rm_backend_destroy(b); /* with the memory of its patches */
    l = *of;
    b = open_backend(plugin, false);
    open_layer(&l, b, compact_in, compact_out);
    for (int i = 0; i < WAYS; i++) {
        const double s = seconds_of(b, ways[i].call, &l, values[i]);
        char name[64], note[96];
        snprintf(name, sizeof name, "cuda.%s.%s", l.name, ways[i].name);
        snprintf(note, sizeof note, "%.1f us, %.0f %% of cuda.memory; baseline: the plain way",
                 s * 1e6, 100.0 * bytes_of(&l) / s / bytes_most);
        for (int r = 0; r < RUNS; r++)
            values[i][r] = flops_of(&l) / values[i][r] / 1e12;
        rm_bench_report(&(struct rm_bench_result){.name = name,
                                                  .unit = "TFLOP/s",
                                                  .values = values[i],
                                                  .runs = RUNS,
                                                  .ceiling = flops_most / 1e12,
                                                  .baseline = baseline[i],
                                                  .note = note});
    }
    close_layer(&l, b);
    rm_backend_destroy(b);
}

int main(int argc, char **argv)
{
    static const struct {
        struct layer layer;
        bool compact_in, compact_out;
    } layers[] = {
        {{.name = "conv1", .conv = {6, 11, 11, 3, 1, 1, 32, 11, 11, false, false}}, false, true},
        {{.name = "conv2", .conv = {32, 11, 11, 3, 1, 1, 64, 11, 11, false, false}}, true, true},
        {{.name = "conv3", .conv = {64, 11, 11, 3, 1, 1, 64, 11, 11, false, false}}, true, true},
        {{.name = "linear", .conv = {.channels = 64, .height = 11, .width = 11}}, true, false},
    };
    const struct rm_backend_plugin *plugin;
    struct rm_device_info info;
    struct rm_error error = {""};
    uint32_t devices = 0;
    if (!rm_bench_wanted(argc, argv, "cuda.kernels"))
        return 0;
    if (getenv("RM_BENCH_UPDATES"))
        batch = 2, side = 64, times = 1, copied = 1 << 16;
    if (rm_plugin_open(&plugin, &error) || plugin->devices(&info, 1, &devices, &error) ||
        !devices) {
        printf("cuda.kernels: skipped: %s\n", error.text);
        return 77;
    }
    struct rm_backend *b = open_backend(plugin, false);
    printf("cuda.kernels: %s, %u images\n", b->description, batch);
    measure_ceilings(b);
    rm_backend_destroy(b);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        bench_layer(&layers[i].layer, plugin, layers[i].compact_in, layers[i].compact_out);
    return 0;
}
