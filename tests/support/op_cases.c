/* Operations on flat arrays and rows, products, draws, optimizers. */
#include "tests/support/op_cases.h"

#include <math.h>
#include <stdlib.h>

/* Rows of n, so many that the array has about r->most elements at most. */
static uint32_t rows_for(struct op_run *r, size_t n)
{
    const size_t most = r->most / (n ? n : 1);
    return op_size(r, most < 1 ? 1 : most < 2100 ? (uint32_t)most : 2100);
}

static size_t flat(struct op_run *r)
{
    return op_size(r, r->most < 4100 ? (uint32_t)r->most : 4100) * (op_below(r, 2) ? 1u : 3u);
}

/* An array of results may be one of the operands. */
static float *or_in_place(struct op_run *r, float *x, size_t n, double scale)
{
    if (op_below(r, 3))
        return op_out(r, n, scale);
    op_compare(r, x, scale);
    return x;
}

static void fill(struct op_run *r)
{
    const size_t n = flat(r);
    r->b->ops->fill(r->b, 1.5f, n, op_out(r, n, 1.0));
}

/* --- products -------------------------------------------------------------------------------- */

struct layer {
    uint32_t batch, in, out;
};

static struct layer layer(struct op_run *r)
{
    struct layer l = {.in = op_size(r, 300), .out = op_size(r, 300)};
    l.batch = rows_for(r, l.in > l.out ? l.in : l.out);
    while ((size_t)l.batch * l.in * l.out > r->most * 64 && l.batch > 1)
        l.batch /= 2;
    while ((size_t)l.batch * l.in * l.out > r->most * 64)
        l.in = (l.in + 1) / 2;
    return l;
}

/* W packed, or as it is. */
static const float *packed(struct op_run *r, const float *w, uint32_t out, uint32_t in)
{
    const size_t floats = r->b->ops->packed_floats(r->b, out, in);
    float *to = op_in(r, floats, 0.0f);
    if (!floats)
        return w;
    r->b->ops->pack(r->b, w, out, in, to);
    return to;
}

static void linear(struct op_run *r)
{
    const struct layer l = layer(r);
    const enum rm_activation act = (enum rm_activation)op_below(r, RM_ACT_COUNT);
    const float *x = op_in(r, (size_t)l.batch * l.in, 1.0f);
    const float *w = op_in(r, (size_t)l.out * l.in, 1.0f / sqrtf((float)l.in));
    const float *bias = op_in(r, l.out, 0.5f);
    float *y = op_out(r, (size_t)l.batch * l.out, 1.0);
    struct rm_rng at = r->rng; /* packing has lengths of the backend's own */
    if (r->b->ops->reserve(r->b, l.batch, l.in, l.out, false))
        r->failed = true;
    const float *wt = packed(r, w, l.out, l.in);
    r->b->ops->linear(r->b, x, wt, bias, l.batch, l.in, l.out, act, y);
    r->rng = at;
}

static void linear_dx(struct op_run *r)
{
    const struct layer l = layer(r);
    const float *dy = op_in(r, (size_t)l.batch * l.out, 1.0f);
    const float *w = op_in(r, (size_t)l.out * l.in, 1.0f);
    float *dx = op_out(r, (size_t)l.batch * l.in, sqrt(l.out));
    r->b->ops->linear_dx(r->b, dy, w, l.batch, l.in, l.out, dx);
}

static void linear_dw(struct op_run *r)
{
    const struct layer l = layer(r);
    const float *dy = op_in(r, (size_t)l.batch * l.out, 1.0f);
    const float *x = op_in(r, (size_t)l.batch * l.in, 1.0f);
    float *dw = op_out(r, (size_t)l.out * l.in, sqrt(l.batch));
    float *db = op_out(r, l.out, sqrt(l.batch));
    r->b->ops->linear_dw(r->b, dy, x, l.batch, l.in, l.out, dw, db);
}

static struct rm_conv conv(struct op_run *r, uint32_t *batch)
{
    struct rm_conv c = {.channels = op_size(r, op_below(r, 3) ? 9 : 70),
                        .height = 1 + op_below(r, 11),
                        .width = 1 + op_below(r, 11),
                        .stride = 1 + op_below(r, 3),
                        .padding = op_below(r, 3),
                        .out_channels = op_size(r, op_below(r, 3) ? 40 : 130)};
    const uint32_t smaller = c.height < c.width ? c.height : c.width;
    const uint32_t most = smaller + 2 * c.padding;
    c.kernel = 1 + op_below(r, most < 5 ? most : 5);
    c.out_height = (c.height + 2 * c.padding - c.kernel) / c.stride + 1;
    c.out_width = (c.width + 2 * c.padding - c.kernel) / c.stride + 1;
    *batch = op_size(r, 40);
    while (*batch > 1 && ((size_t)*batch * c.out_height * c.out_width * c.out_channels > r->most ||
                          (size_t)*batch * c.height * c.width * c.channels > r->most))
        *batch /= 2;
    return c;
}

static size_t patch(const struct rm_conv *c)
{
    return (size_t)c->channels * c->kernel * c->kernel;
}

static size_t images_in(const struct rm_conv *c, uint32_t batch)
{
    return (size_t)batch * c->channels * c->height * c->width;
}

static size_t images_out(const struct rm_conv *c, uint32_t batch)
{
    return (size_t)batch * c->out_channels * c->out_height * c->out_width;
}

/* Before everything else: there are backends that need none. */
static float *scratch(struct op_run *r, const struct rm_conv *c, uint32_t batch)
{
    struct rm_rng at = r->rng;
    float *p = op_in(r, r->b->ops->conv2d_scratch_floats(r->b, c, true), 0.0f);
    if (r->b->ops->conv2d_reserve(r->b, c, batch, true))
        r->failed = true;
    r->rng = at;
    return p;
}

static void conv2d(struct op_run *r)
{
    uint32_t batch;
    const struct rm_conv c = conv(r, &batch);
    const enum rm_activation act = (enum rm_activation)op_below(r, RM_ACT_COUNT);
    const size_t floats = r->b->ops->conv2d_packed_floats(r->b, &c);
    const float *x = op_in(r, images_in(&c, batch), 1.0f), *bias = op_in(r, c.out_channels, 0.5f);
    const float *w = op_in(r, c.out_channels * patch(&c), 1.0f / sqrtf((float)patch(&c)));
    float *y = op_out(r, images_out(&c, batch), 1.0), *some = scratch(r, &c, batch);
    float *wt = op_in(r, floats, 0.0f);
    if (floats)
        r->b->ops->conv2d_pack(r->b, &c, w, wt);
    r->b->ops->conv2d(r->b, &c, x, floats ? wt : w, bias, batch, act, y, some);
}

static void conv2d_dx(struct op_run *r)
{
    uint32_t batch;
    const struct rm_conv c = conv(r, &batch);
    const float *dy = op_in(r, images_out(&c, batch), 1.0f);
    const float *w = op_in(r, c.out_channels * patch(&c), 1.0f);
    float *dx = op_out(r, images_in(&c, batch), sqrt(c.out_channels * c.kernel));
    r->b->ops->conv2d_dx(r->b, &c, dy, w, batch, dx, scratch(r, &c, batch));
}

static void conv2d_dw(struct op_run *r)
{
    uint32_t batch;
    const struct rm_conv c = conv(r, &batch);
    const double sums = sqrt((double)batch * c.out_height * c.out_width);
    const float *dy = op_in(r, images_out(&c, batch), 1.0f);
    const float *x = op_in(r, images_in(&c, batch), 1.0f);
    float *dw = op_out(r, c.out_channels * patch(&c), sums), *db = op_out(r, c.out_channels, sums);
    r->b->ops->conv2d_dw(r->b, &c, dy, x, batch, dw, db, scratch(r, &c, batch));
}

/* --- elementwise ----------------------------------------------------------------------------- */

static void activate(struct op_run *r)
{
    const size_t n = flat(r);
    float *x = op_in(r, n, 3.0f), *y = or_in_place(r, x, n, 1.0);
    r->b->ops->activate(r->b, (enum rm_activation)op_below(r, RM_ACT_COUNT), x, n, y);
}

static void activate_dx(struct op_run *r)
{
    const size_t n = flat(r);
    const enum rm_activation act = (enum rm_activation)op_below(r, RM_ACT_COUNT);
    const float *x = op_in(r, n, 3.0f);
    float *y = op_out(r, n, 1.0), *dy = op_in(r, n, 1.0f), *dx = or_in_place(r, dy, n, 1.0);
    const bool input = act == RM_ACT_GELU || act == RM_ACT_SILU;
    r->b->ops->activate(r->b, act, x, n, y);
    r->b->ops->activate_dx(r->b, act, input ? x : NULL, y, dy, n, dx);
}

static void multiply(struct op_run *r)
{
    const size_t n = flat(r);
    float *x = op_in(r, n, 1.0f), *y = op_in(r, n, 1.0f), *z = or_in_place(r, x, n, 1.0);
    r->b->ops->multiply(r->b, x, y, n, z);
}

static void add(struct op_run *r)
{
    const size_t n = flat(r);
    float *x = op_in(r, n, 1.0f), *y = op_in(r, n, 1.0f), *z = or_in_place(r, y, n, 1.0);
    r->b->ops->add(r->b, x, y, n, z);
}

static void combine(struct op_run *r)
{
    const size_t n = flat(r);
    float *x = op_in(r, n, 1.0f), *y = op_in(r, n, 1.0f), *out = or_in_place(r, x, n, 1.0);
    r->b->ops->combine(r->b, 0.3f, x, -1.7f, y, n, out);
}

static void lerp(struct op_run *r)
{
    const size_t n = flat(r);
    const float *params = op_in(r, n, 1.0f);
    r->b->ops->lerp(r->b, 0.25f, params, n, op_inout(r, n, 1.0f));
}

static void sum_parts(struct op_run *r)
{
    const size_t n = flat(r), stride = n + op_below(r, 40);
    const uint32_t count = 1 + op_below(r, 9);
    const float *parts = op_in(r, count * stride, 1.0f);
    r->b->ops->sum_parts(r->b, parts, count, stride, n, op_out(r, n, 1.0));
}

static void noisy_weights(struct op_run *r)
{
    const size_t n = flat(r);
    const float *mu = op_in(r, n, 1.0f), *sigma = op_in(r, n, 1.0f), *eps = op_in(r, n, 1.0f);
    r->b->ops->noisy_weights(r->b, mu, sigma, eps, n, op_out(r, n, 1.0));
}

static void noisy_factors(struct op_run *r)
{
    const uint32_t in = op_size(r, 300), out = rows_for(r, in);
    const float *eps = op_in(r, (size_t)in + out, 1.0f);
    float *w = op_out(r, (size_t)in * out, 1.0), *b = op_out(r, out, 1.0);
    r->b->ops->noisy_factors(r->b, eps, in, out, w, b);
}

/* --- draws ----------------------------------------------------------------------------------- */

static void normals(struct op_run *r)
{
    const size_t n = flat(r);
    const uint32_t a = op_below(r, 100);
    const uint64_t c = ((uint64_t)rm_rng_u32(&r->rng) << 32) + 7;
    r->b->ops->normals(r->b, 5, RM_STREAM_NOISE, a, c, n, op_out(r, n, 1.0));
}

static void uniforms(struct op_run *r)
{
    const size_t n = flat(r);
    r->b->ops->uniforms(r->b, 6, RM_STREAM_TAU, op_below(r, 9), 3, n, op_out(r, n, 1.0));
}

static void dropout(struct op_run *r)
{
    const size_t n = flat(r), first = op_below(r, 300) + (op_below(r, 2) ? 4294967200u : 0);
    const struct rm_dropout d = rm_dropout_of(7, RM_STREAM_DROPOUT, 2, 9, 0.1 * op_below(r, 9));
    float *x = op_in(r, n, 1.0f), *y = or_in_place(r, x, n, 1.0);
    r->b->ops->dropout(r->b, &d, first, n, x, y);
}

/* --- sums to the host ------------------------------------------------------------------------ */

static void sum_squares(struct op_run *r)
{
    const size_t n = flat(r);
    const float sum = (float)r->b->ops->sum_squares(r->b, op_in(r, n, 1.0f), n);
    op_compare(r, op_words(r, &sum, 1), 1.0);
}

static void change(struct op_run *r)
{
    const size_t n = 6 * flat(r); /* more than a device's blocks take in one go */
    const float *x = op_in(r, n, 1.0f), *y = op_in(r, n, 1.0f);
    double out[2] = {0}, *there = op_words(r, out, 4);
    r->b->ops->change(r->b, x, y, n, there);
    r->b->ops->download(r->b, (float *)(void *)out, (float *)(void *)there, 4);
    const float sums[2] = {(float)out[0], (float)out[1]};
    op_compare(r, op_words(r, sums, 2), 1.0);
}

/* --- copies ---------------------------------------------------------------------------------- */

/* x to y and, but for its first number, to z; from y over the host to w. */
static void copies(struct op_run *r)
{
    const struct rm_backend_ops *ops = r->b->ops;
    const size_t n = flat(r), bytes = n * sizeof(float);
    const float *x = op_in(r, n, 1.0f);
    float *y = op_out(r, n, 1.0), *z = op_out(r, n, 1.0), *w = op_out(r, n, 1.0);
    struct rm_queue_mark *mark = NULL;
    void *host = ops->alloc_host(r->b, bytes, NULL);
    if (!host || ops->mark_create(r->b, &mark, NULL)) {
        r->failed = true;
        return;
    }
    ops->copy(r->b, y, x, bytes);
    ops->copy(r->b, z, y, bytes);
    ops->clear(r->b, z, sizeof *z);
    ops->mark(r->b, RM_QUEUE_COMPUTE, mark);
    ops->follow(r->b, RM_QUEUE_OUT, mark);
    ops->copy_out(r->b, RM_QUEUE_OUT, host, y, bytes);
    ops->mark(r->b, RM_QUEUE_OUT, mark);
    ops->wait(r->b, mark);
    r->failed = r->failed || !ops->passed(r->b, mark) || ops->failed(r->b, NULL);
    ops->copy_in(r->b, RM_QUEUE_COMPUTE, w, host, bytes);
    ops->finish(r->b);
    ops->mark_destroy(r->b, mark);
    ops->release_host(r->b, host);
}

/* The numbers of an update are keyed by the count of earlier ones, wherever that is. */
static void keyed_draws(struct op_run *r)
{
    const size_t n = flat(r);
    const uint64_t before = op_below(r, 1000), times = 1 + op_below(r, 3);
    const uint64_t *there = op_words(r, &before, 2);
    float *x = op_out(r, n, 1.0), *y = op_out(r, n, 1.0);
    r->b->ops->uniforms(r->b, 7, RM_STREAM_TEST, 1, r->b->ops->draws(r->b, there, times) + 1, n, x);
    r->b->ops->uniforms(r->b, 7, RM_STREAM_TEST, 1, r->b->ops->draws(r->b, NULL, 0) + 1, n, y);
}

/* --- rows ------------------------------------------------------------------------------------ */

static void layer_norm(struct op_run *r)
{
    const uint32_t n = op_size(r, 4096), rows = rows_for(r, n);
    const float *x = op_in(r, (size_t)rows * n, 2.0f), *gamma = op_in(r, n, 1.0f);
    const float *beta = op_in(r, n, 1.0f);
    float *y = op_out(r, (size_t)rows * n, 1.0), *mean = op_out(r, rows, 1.0);
    /* Of rows of one or two numbers it may be anything up to 316: it amplifies what rounding left.
     */
    r->b->ops->layer_norm(r->b, x, gamma, beta, rows, n, y, mean, op_out(r, rows, 1.0));
}

static void layer_norm_dx(struct op_run *r)
{
    const uint32_t n = 3 + op_size(r, 4096), rows = rows_for(r, n);
    const float *x = op_in(r, (size_t)rows * n, 2.0f), *gamma = op_in(r, n, 1.0f);
    const float *beta = op_in(r, n, 1.0f), *dy = op_in(r, (size_t)rows * n, 1.0f);
    float *y = op_out(r, (size_t)rows * n, 1.0), *mean = op_out(r, rows, 1.0);
    float *rstd = op_out(r, rows, 1.0), *dx = op_out(r, (size_t)rows * n, 1.0);
    float *dgamma = op_out(r, n, sqrt(rows)), *dbeta = op_out(r, n, sqrt(rows));
    r->b->ops->layer_norm(r->b, x, gamma, beta, rows, n, y, mean, rstd);
    r->b->ops->layer_norm_dx(r->b, x, gamma, mean, rstd, dy, rows, n, dx, dgamma, dbeta);
}

static void cosines(struct op_run *r)
{
    const uint32_t n = op_size(r, 130), rows = rows_for(r, n);
    float *tau = op_out(r, rows, 1.0);
    r->b->ops->uniforms(r->b, 3, RM_STREAM_TAU, 1, 1, rows, tau);
    r->b->ops->cosines(r->b, tau, rows, n, op_out(r, (size_t)rows * n, 1.0));
}

struct broadcast {
    uint32_t batch, q, n;
};

static struct broadcast broadcast(struct op_run *r)
{
    struct broadcast s = {.q = op_size(r, 40), .n = op_size(r, 300)};
    s.batch = rows_for(r, (size_t)s.q * s.n);
    return s;
}

static void broadcast_mul(struct op_run *r)
{
    const struct broadcast s = broadcast(r);
    const size_t floats = (size_t)s.batch * s.q * s.n;
    const float *x = op_in(r, (size_t)s.batch * s.n, 1.0f), *phi = op_in(r, floats, 1.0f);
    r->b->ops->broadcast_mul(r->b, x, phi, s.batch, s.q, s.n, op_out(r, floats, 1.0));
}

static void broadcast_mul_dx(struct op_run *r)
{
    const struct broadcast s = broadcast(r);
    const size_t floats = (size_t)s.batch * s.q * s.n;
    const float *x = op_in(r, (size_t)s.batch * s.n, 1.0f), *phi = op_in(r, floats, 1.0f);
    const float *dz = op_in(r, floats, 1.0f);
    float *dx = op_out(r, (size_t)s.batch * s.n, sqrt(s.q)), *dphi = op_out(r, floats, 1.0);
    r->b->ops->broadcast_mul_dx(r->b, x, phi, dz, s.batch, s.q, s.n, dx, dphi);
}

static void gather(struct op_run *r)
{
    const uint32_t n = op_size(r, 300), all = op_size(r, 50), rows = rows_for(r, n);
    uint32_t *index = calloc(rows, sizeof *index);
    for (uint32_t i = 0; index && i < rows; i++)
        index[i] = op_below(r, all);
    const float *x = op_in(r, (size_t)all * n, 1.0f);
    if (index)
        r->b->ops->gather(r->b, x, op_words(r, index, rows), rows, n,
                          op_out(r, (size_t)rows * n, 1.0));
    free(index);
}

static void normalize(struct op_run *r)
{
    const uint32_t n = op_size(r, 300), rows = rows_for(r, n);
    const float *x = op_in(r, (size_t)rows * n, 3.0f), *mean = op_in(r, n, 1.0f);
    const float *scale = op_in(r, n, 1.0f);
    r->b->ops->normalize(r->b, x, mean, scale, 2.5f, rows, n, op_out(r, (size_t)rows * n, 1.0));
}

static void join(struct op_run *r)
{
    const uint32_t n = op_size(r, 130), m = op_size(r, 130), rows = rows_for(r, n + m);
    const float *x = op_in(r, (size_t)rows * n, 1.0f), *y = op_in(r, (size_t)rows * m, 1.0f);
    r->b->ops->join(r->b, x, y, rows, n, m, op_out(r, (size_t)rows * (n + m), 1.0));
}

static void split(struct op_run *r)
{
    const uint32_t n = op_size(r, 130), m = op_size(r, 130), rows = rows_for(r, n + m);
    const float *z = op_in(r, (size_t)rows * (n + m), 1.0f);
    float *x = op_out(r, (size_t)rows * n, 1.0), *y = op_out(r, (size_t)rows * m, 1.0);
    const uint32_t which = op_below(r, 3);
    if (which == 1) /* what is not asked for is not written */
        op_compare(r, x, 0.0);
    if (which == 2)
        op_compare(r, y, 0.0);
    r->b->ops->split(r->b, z, rows, n, m, which == 1 ? NULL : x, which == 2 ? NULL : y);
}

static void dueling(struct op_run *r)
{
    const uint32_t actions = 1 + op_below(r, 20), k = op_size(r, 60);
    const uint32_t rows = rows_for(r, (size_t)(actions + 1) * k);
    const float *in = op_in(r, (size_t)rows * (actions + 1) * k, 1.0f);
    r->b->ops->dueling(r->b, in, rows, actions, k, op_out(r, (size_t)rows * actions * k, 1.0));
}

static void dueling_dx(struct op_run *r)
{
    const uint32_t actions = 1 + op_below(r, 20), k = op_size(r, 60);
    const uint32_t rows = rows_for(r, (size_t)(actions + 1) * k);
    const float *dq = op_in(r, (size_t)rows * actions * k, 1.0f);
    float *din = op_out(r, (size_t)rows * (actions + 1) * k, sqrt(actions));
    r->b->ops->dueling_dx(r->b, dq, rows, actions, k, din);
}

/* clang-format off */
const struct op_case op_cases[] = {
    {"fill", false, fill},
    {"linear", true, linear},
    {"linear_dx", true, linear_dx},
    {"linear_dw", true, linear_dw},
    {"conv2d", true, conv2d},
    {"conv2d_dx", true, conv2d_dx},
    {"conv2d_dw", true, conv2d_dw},
    {"activate", false, activate},
    {"activate_dx", false, activate_dx},
    {"multiply", false, multiply},
    {"add", false, add},
    {"combine", false, combine},
    {"lerp", false, lerp},
    {"sum_parts", false, sum_parts},
    {"noisy_weights", false, noisy_weights},
    {"noisy_factors", false, noisy_factors},
    {"normals", false, normals},
    {"uniforms", false, uniforms},
    {"dropout", false, dropout},
    {"sum_squares", false, sum_squares},
    {"change", false, change},
    {"copies", false, copies},
    {"draws", false, keyed_draws},
    {"layer_norm", false, layer_norm},
    {"layer_norm_dx", false, layer_norm_dx},
    {"cosines", false, cosines},
    {"broadcast_mul", false, broadcast_mul},
    {"broadcast_mul_dx", false, broadcast_mul_dx},
    {"gather", false, gather},
    {"normalize", false, normalize},
    {"join", false, join},
    {"split", false, split},
    {"dueling", false, dueling},
    {"dueling_dx", false, dueling_dx},
};
/* clang-format on */
const size_t op_case_count = sizeof op_cases / sizeof *op_cases;
