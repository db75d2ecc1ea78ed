/* clang-format off: the table keeps its lines */
/* Matrix products and the networks made of them, on one core.
 *
 * gemm.forward.ROWSxINxOUT, gemm.input_gradient..., gemm.weight_gradient...
 *                    the treasure hunt's products and the narrow ones at the ends of small networks
 *                    (bench_gemm.c has wide ones); bias and ReLU included forward, the sums for the
 *                    biases in the weights' gradient. Ceiling: the core's FMA peak.
 * iqn.kernels        all computation of an update of treasurehunt's learner except its loss, batch
 *                    64 by 12 quantiles: three noisy forward passes, one backward, norm, Adam, soft
 *                    update; then the time of each operation, one a line.
 * net.act            rows a second of a 4-64-64-2 network, for 64 and 256 rows.
 * noise.normals      normals a second. */
/* clang-format on */
#include "learner/net/net.h"
#include "scripts/bench/report.h"
#include "shm/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS = 9 };

static struct rm_backend *backend;
static const struct rm_backend_ops *real;

static double seconds_since(uint64_t start)
{
    return (double)(rm_now_ns() - start) * 1e-9;
}

static float *numbers(size_t n)
{
    float *p = real->alloc(backend, n);
    if (!p)
        exit(1);
    real->uniforms(backend, 1, RM_STREAM_TEST, 0, 0, n, p);
    for (size_t i = 0; i < n; i++)
        p[i] -= 0.5f;
    return p;
}

/* --- products -------------------------------------------------------------------------------- */

struct product {
    uint32_t rows, in, out;
    float *x, *w, *packed, *bias, *y, *dw, *dx, *db;
};

static void run_forward(struct product *p)
{
    real->linear(backend, p->x, p->packed, p->bias, p->rows, p->in, p->out, RM_ACT_RELU, p->y);
}

static void run_dx(struct product *p)
{
    real->linear_dx(backend, p->y, p->w, p->rows, p->in, p->out, p->dx);
}

static void run_dw(struct product *p)
{
    real->linear_dw(backend, p->y, p->x, p->rows, p->in, p->out, p->dw, p->db);
}

static const struct {
    const char *name;
    void (*run)(struct product *p);
} kinds[] = {
    {"gemm.forward", run_forward},
    {"gemm.input_gradient", run_dx},
    {"gemm.weight_gradient", run_dw},
};

static const uint32_t shapes[][3] = {{768, 250, 250}, {64, 625, 250}, {768, 64, 250},
                                     {768, 250, 5},   {256, 4, 64},   {256, 11, 64},
                                     {256, 64, 2},    {256, 64, 1},   {1, 625, 250}};

static void bench_product(const char *name, void (*run)(struct product *p), struct product *p)
{
    double flops = 2.0 * p->rows * p->in * p->out, values[RUNS];
    uint32_t repeat = (uint32_t)(2e8 / flops) + 1;
    double peak = rm_bench_fma_gflops();
    for (int r = -1; r < RUNS; r++) {
        uint64_t start = rm_now_ns();
        for (uint32_t i = 0; i < repeat; i++)
            run(p);
        double g = flops * repeat / seconds_since(start) * 1e-9;
        if (r >= 0)
            values[r] = g;
    }
    rm_bench_report(&(struct rm_bench_result){name, "GFLOP/s", values, RUNS, peak, 0, NULL});
}

static void bench_products(int argc, char **argv)
{
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
            struct product p = {.rows = shapes[s][0], .in = shapes[s][1], .out = shapes[s][2]};
            char name[96];
            snprintf(name, sizeof name, "%s.%ux%ux%u", kinds[k].name, p.rows, p.in, p.out);
            if (!rm_bench_wanted(argc, argv, name))
                continue;
            size_t w = (size_t)p.in * p.out;
            float *all[] = {p.x = numbers((size_t)p.rows * p.in),
                            p.w = numbers(w),
                            p.packed = numbers(real->packed_floats(backend, p.out, p.in)),
                            p.bias = numbers(p.out),
                            p.y = numbers((size_t)p.rows * p.out),
                            p.dw = numbers(w),
                            p.dx = numbers((size_t)p.rows * p.in),
                            p.db = numbers(p.out)};
            real->pack(backend, p.w, p.out, p.in, p.packed);
            bench_product(name, kinds[k].run, &p);
            for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                real->release(backend, all[i]);
        }
}

/* --- an update, timed by operation ----------------------------------------------------------- */

#define TIMED_OPS(X)                                                                               \
    X(pack, (struct rm_backend * b, const float *w, uint32_t o, uint32_t i, float *t),             \
      (b, w, o, i, t))                                                                             \
    X(linear,                                                                                      \
      (struct rm_backend * b, const float *x, const float *w, const float *c, uint32_t n,          \
       uint32_t i, uint32_t o, enum rm_activation a, float *y),                                    \
      (b, x, w, c, n, i, o, a, y))                                                                 \
    X(linear_dx,                                                                                   \
      (struct rm_backend * b, const float *y, const float *w, uint32_t n, uint32_t i, uint32_t o,  \
       float *x),                                                                                  \
      (b, y, w, n, i, o, x))                                                                       \
    X(linear_dw,                                                                                   \
      (struct rm_backend * b, const float *y, const float *x, uint32_t n, uint32_t i, uint32_t o,  \
       float *w, float *c),                                                                        \
      (b, y, x, n, i, o, w, c))                                                                    \
    X(activate_dx,                                                                                 \
      (struct rm_backend * b, enum rm_activation a, const float *x, const float *y,                \
       const float *d, size_t n, float *e),                                                        \
      (b, a, x, y, d, n, e))                                                                       \
    X(cosines, (struct rm_backend * b, const float *t, size_t r, uint32_t n, float *c),            \
      (b, t, r, n, c))                                                                             \
    X(broadcast_mul,                                                                               \
      (struct rm_backend * b, const float *x, const float *p, uint32_t n, uint32_t q, uint32_t k,  \
       float *z),                                                                                  \
      (b, x, p, n, q, k, z))                                                                       \
    X(broadcast_mul_dx,                                                                            \
      (struct rm_backend * b, const float *x, const float *p, const float *z, uint32_t n,          \
       uint32_t q, uint32_t k, float *d, float *e),                                                \
      (b, x, p, z, n, q, k, d, e))                                                                 \
    X(noisy_weights,                                                                               \
      (struct rm_backend * b, const float *m, const float *s, const float *e, size_t n, float *w), \
      (b, m, s, e, n, w))                                                                          \
    X(multiply, (struct rm_backend * b, const float *x, const float *y, size_t n, float *z),       \
      (b, x, y, n, z))                                                                             \
    X(dueling,                                                                                     \
      (struct rm_backend * b, const float *x, uint32_t r, uint32_t a, uint32_t k, float *q),       \
      (b, x, r, a, k, q))                                                                          \
    X(dueling_dx,                                                                                  \
      (struct rm_backend * b, const float *q, uint32_t r, uint32_t a, uint32_t k, float *d),       \
      (b, q, r, a, k, d))                                                                          \
    X(normals,                                                                                     \
      (struct rm_backend * b, uint64_t k, uint32_t s, uint32_t a, uint64_t c, size_t n, float *o), \
      (b, k, s, a, c, n, o))                                                                       \
    X(adam,                                                                                        \
      (struct rm_backend * b, const struct rm_adam *a, float s, const float *g, size_t n,          \
       float *p, float *m, float *v),                                                              \
      (b, a, s, g, n, p, m, v))                                                                    \
    X(lerp, (struct rm_backend * b, float t, const float *p, size_t n, float *q), (b, t, p, n, q))

#define INDEX(name, params, args) OP_##name,
enum { TIMED_OPS(INDEX) OP_sum_squares, OP_COUNT };
#define NAME(name, params, args) #name,
static const char *const op_names[] = {TIMED_OPS(NAME) "sum_squares"};
static double op_seconds[OP_COUNT];

#define WRAP(name, params, args)                                                                   \
    static void timed_##name params                                                                \
    {                                                                                              \
        uint64_t start = rm_now_ns();                                                              \
        real->name args;                                                                           \
        op_seconds[OP_##name] += seconds_since(start);                                             \
    }
TIMED_OPS(WRAP)

static double timed_sum_squares(struct rm_backend *b, const float *x, size_t n)
{
    uint64_t start = rm_now_ns();
    double s = real->sum_squares(b, x, n);
    op_seconds[OP_sum_squares] += seconds_since(start);
    return s;
}

static const struct rm_network_config treasurehunt = {
    .layer_count = 5,
    .layers = {{.type = RM_LAYER_LINEAR, .units = 250, .cosines = 0},
               {.type = RM_LAYER_RELU, .units = 0, .cosines = 0},
               {.type = RM_LAYER_COSINE_EMBEDDING, .units = 0, .cosines = 64},
               {.type = RM_LAYER_NOISY_LINEAR, .units = 250, .cosines = 0},
               {.type = RM_LAYER_RELU, .units = 0, .cosines = 0}},
    .dueling = true,
    .noisy_head = true,
    .noise = RM_NOISE_INDEPENDENT,
    .sigma0 = 0.017};

static void bench_update(void)
{
    const uint32_t batch = 64, q = 12, updates = 20;
    const struct rm_net_shape shape = {.inputs = 625, .actions = 4, .outputs_per_action = 1};
    struct rm_net *net;
    struct rm_net_workspace *train, *act;
    struct rm_backend_ops ops = *real;
    struct rm_backend timed = *backend;
    struct rm_error error;
    timed.ops = &ops;
#define PUT(name, params, args) ops.name = timed_##name;
    TIMED_OPS(PUT)
    ops.sum_squares = timed_sum_squares;
    if (rm_net_compile(&net, &treasurehunt, &shape, &error) ||
        rm_net_workspace_create(&train, net, &timed, batch, q, true, &error) ||
        rm_net_workspace_create(&act, net, &timed, batch, q, false, &error)) {
        fprintf(stderr, "bench_net: %s\n", error.text);
        exit(1);
    }
    size_t n = rm_net_param_count(net), noise_n = rm_net_noise_count(net);
    float *params = numbers(n), *target = numbers(n), *grads = numbers(n), *m = numbers(n);
    float *v = numbers(n), *x = numbers((size_t)batch * 625), *tau = numbers((size_t)batch * q);
    float *noise = numbers(noise_n), *d_out = numbers((size_t)batch * q * 4);
    rm_net_init(net, params, rm_rng_at(1, RM_STREAM_INIT, 0, 0));
    rm_net_init(net, target, rm_rng_at(1, RM_STREAM_INIT, 1, 0));
    real->fill(backend, 0, n, m);
    real->fill(backend, 0, n, v);
    const struct rm_net_input input = {
        .x = x, .batch = batch, .tau = tau, .quantiles = q, .noise = noise};
    double flops = 5.0 * rm_net_forward_flops(net, batch, q) - 2.0 * batch * 625 * 250 -
                   2.0 * batch * q * 64 * 250; /* no gradient of the states, nor of the cosines */
    double peak = rm_bench_fma_gflops(), values[RUNS], total = 0;
    uint64_t step = 0;
    for (int r = -1; r < RUNS; r++) {
        if (r == 0)
            memset(op_seconds, 0, sizeof op_seconds);
        uint64_t start = rm_now_ns();
        for (uint32_t u = 0; u < updates; u++) {
            rm_net_prepare(train, params);
            rm_net_prepare(act, target);
            for (uint32_t pass = 0; pass < 3; pass++) {
                ops.normals(&timed, 1, RM_STREAM_NOISE, pass, step, noise_n, noise);
                if (pass == 1)
                    rm_net_forward(act, target, &input);
                else
                    rm_net_forward(train, params, &input);
            }
            rm_net_backward(train, params, &input, d_out, grads);
            float scale = ops.sum_squares(&timed, grads, n) > 1e30 ? 0.0f : 1e-3f;
            struct rm_adam adam = {1e-6f, 0.9f, 0.999f, 1e-8f, ++step, 0};
            ops.adam(&timed, &adam, scale, grads, n, params, m, v);
            ops.lerp(&timed, 0.001f, params, n, target);
        }
        double seconds = seconds_since(start);
        if (r < 0)
            continue;
        values[r] = flops * updates / seconds * 1e-9;
        total += seconds;
    }
    char note[96];
    snprintf(note, sizeof note, "%.0f MFLOP and %zu normals an update, %.2f ms", flops * 1e-6,
             3 * noise_n, total / (RUNS * updates) * 1e3);
    rm_bench_report(
        &(struct rm_bench_result){"iqn.kernels", "GFLOP/s", values, RUNS, peak, 0, note});
    for (size_t i = 0; i < OP_COUNT; i++) {
        printf("    %-18s %8.1f us an update %6.1f %%\n", op_names[i],
               op_seconds[i] / (RUNS * updates) * 1e6, op_seconds[i] / total * 100);
    }
    float *all[] = {params, target, grads, m, v, x, tau, noise, d_out};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        real->release(backend, all[i]);
    rm_net_workspace_destroy(train);
    rm_net_workspace_destroy(act);
    rm_net_destroy(net);
}

/* --- acting and noise ------------------------------------------------------------------------ */

static void bench_act(const char *name, uint32_t rows)
{
    const struct rm_network_config config = {
        .layer_count = 4,
        .layers = {{.type = RM_LAYER_LINEAR, .units = 64, .cosines = 0},
                   {.type = RM_LAYER_RELU, .units = 0, .cosines = 0},
                   {.type = RM_LAYER_LINEAR, .units = 64, .cosines = 0},
                   {.type = RM_LAYER_RELU, .units = 0, .cosines = 0}}};
    const struct rm_net_shape shape = {.inputs = 4, .actions = 2, .outputs_per_action = 1};
    struct rm_net *net;
    struct rm_net_workspace *w;
    struct rm_error error;
    if (rm_net_compile(&net, &config, &shape, &error) ||
        rm_net_workspace_create(&w, net, backend, rows, 0, false, &error)) {
        fprintf(stderr, "bench_net: %s\n", error.text);
        exit(1);
    }
    float *params = numbers(rm_net_param_count(net)), *x = numbers((size_t)rows * 4);
    const struct rm_net_input input = {.x = x, .batch = rows};
    double values[RUNS], ceiling = rm_bench_fma_gflops() * 1e3 / rm_net_forward_flops(net, 1, 0);
    const uint32_t repeat = 200000 / rows;
    rm_net_prepare(w, params);
    for (int r = -1; r < RUNS; r++) {
        uint64_t start = rm_now_ns();
        for (uint32_t i = 0; i < repeat; i++)
            rm_net_forward(w, params, &input);
        if (r >= 0)
            values[r] = (double)rows * repeat / seconds_since(start) * 1e-6;
        else
            seconds_since(start);
    }
    rm_bench_report(
        &(struct rm_bench_result){name, "Mrow/s", values, RUNS, ceiling, 0, "ceiling: FMA peak"});
    real->release(backend, params);
    real->release(backend, x);
    rm_net_workspace_destroy(w);
    rm_net_destroy(net);
}

static void bench_normals(void)
{
    const size_t n = 64005;
    float *out = numbers(n);
    double values[RUNS];
    for (int r = -1; r < RUNS; r++) {
        uint64_t start = rm_now_ns();
        for (uint64_t i = 0; i < 50; i++)
            real->normals(backend, 1, RM_STREAM_NOISE, 0, i, n, out);
        if (r >= 0)
            values[r] = 50.0 * (double)n / seconds_since(start) * 1e-9;
    }
    rm_bench_report(&(struct rm_bench_result){"noise.normals", "G/s", values, RUNS, 0, 0, NULL});
    real->release(backend, out);
}

int main(int argc, char **argv)
{
    struct rm_error error;
    const char *isa = getenv("RM_BENCH_ISA");
    rm_bench_pin(0);
    if (rm_backend_cpu_create(&backend, 1, isa ? isa : "auto", &error)) {
        fprintf(stderr, "bench_net: %s\n", error.text);
        return 1;
    }
    real = backend->ops;
    bench_products(argc, argv);
    if (rm_bench_wanted(argc, argv, "iqn.kernels"))
        bench_update();
    if (rm_bench_wanted(argc, argv, "net.act.64"))
        bench_act("net.act.64", 64);
    if (rm_bench_wanted(argc, argv, "net.act.256"))
        bench_act("net.act.256", 256);
    if (rm_bench_wanted(argc, argv, "noise.normals"))
        bench_normals();
    rm_backend_destroy(backend);
    return 0;
}
