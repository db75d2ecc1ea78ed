/* Fully connected layers, in row-major order. cublasLt sees the transposes, so no matrix is
 * transposed in memory. */
#include "learner/backend/cuda/formats.h"
#include "learner/backend/cuda/map.h"
#include "learner/backend/cuda/math.h"
#include "learner/backend/cuda/ops.h"
#include "learner/backend/cuda/product.h"
#include "learner/backend/cuda/sums.h"

#include <errno.h>

namespace
{

/* --- 16 bits --------------------------------------------------------------------------------- */

struct alignas(16) eight {
    uint16_t bits[8];
};

/* Eight numbers of a row at a time. */
template <class As>
struct reducing {
    const float *x;
    uint32_t columns;
    eight *to;
    __device__ void at(size_t r, uint32_t i) const
    {
        const float *from = x + r * columns;
        eight v;
#pragma unroll
        for (uint32_t k = 0; k < 8; k++)
            v.bits[k] = i * 8 + k < columns ? As::from_float(from[i * 8 + k]) : (uint16_t)0;
        to[r * ((columns + 7) / 8) + i] = v;
    }
};

/* --- what the library's epilogues lack ------------------------------------------------------- */

struct biasing {
    const float *bias;
    enum rm_activation act;
    uint32_t n;
    float *y;
    __device__ void at(size_t r, uint32_t i) const
    {
        y[r * n + i] = rm_activated(act, y[r * n + i] + bias[i]);
    }
};

/* The matrix itself, or a copy in 16 bits. */
struct rm_cuda_operand operand_of(struct rm_cuda *c, enum rm_cuda_scratch which, const float *x,
                                  size_t rows, uint32_t columns)
{
    if (!rm_cuda_reduced(c->spec.compute))
        return {x, columns, false};
    const uint32_t stride = rm_cuda_reduced_stride(columns);
    void *to = rm_cuda_scratch(c, which, rows * stride * sizeof(uint16_t));
    if (to)
        rm_cuda_reduce(c, x, rows, columns, to);
    return {to, stride, false};
}

struct rm_cuda_operand turned(struct rm_cuda_operand x)
{
    x.turned = true;
    return x;
}

size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

} // namespace

void rm_cuda_reduce(struct rm_cuda *c, const float *x, size_t rows, uint32_t columns, void *to)
{
    eight *out = static_cast<eight *>(to);
    const uint32_t eights = (columns + 7) / 8;
    rm_in_halves(c->spec.compute, [&](auto format) {
        rm_map(c, "reduce", reducing<decltype(format)>{x, columns, out}, rows, eights);
    });
}

/* Reserves scratch; the first call makes the plans, before anything is captured. */
int rm_cuda_reserve(struct rm_backend *b, uint32_t batch, uint32_t in, uint32_t out, bool training)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!rm_cuda_reduced(c->spec.compute))
        return 0;
    const size_t wide_in = rm_cuda_reduced_stride(in), wide_out = rm_cuda_reduced_stride(out);
    size_t first = 0, second = batch * wide_in;
    if (training) {
        first = larger(out * wide_in, batch * wide_in); /* W or x */
        second = larger(second, batch * wide_out);      /* x or dy */
    }
    return (!first || rm_cuda_scratch_reserve(c, RM_SCRATCH_A, first * sizeof(uint16_t))) &&
                   rm_cuda_scratch_reserve(c, RM_SCRATCH_B, second * sizeof(uint16_t))
               ? 0
               : -ENOMEM;
}

/* Products that take floats need no packing. */
size_t rm_cuda_packed_floats(struct rm_backend *b, uint32_t out, uint32_t in)
{
    const size_t stride = rm_cuda_reduced_stride(in);
    return rm_cuda_reduced(rm_cuda_of(b)->spec.compute) ? (out * stride + 1) / 2 : 0;
}

void rm_cuda_pack(struct rm_backend *b, const float *w, uint32_t out, uint32_t in, float *wt)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (rm_cuda_reduced(c->spec.compute))
        rm_cuda_reduce(c, w, out, in, wt);
}

#define COLUMNS_MOST (32768u * 16u)

uint32_t rm_cuda_product_part(const struct rm_cuda_product *whole, uint32_t at,
                              struct rm_cuda_product *part)
{
    const size_t element = rm_cuda_reduced(whole->compute) ? sizeof(uint16_t) : sizeof(float);
    const size_t result = whole->d_reduced ? element : sizeof(float);
    const uint32_t n = whole->n - at < COLUMNS_MOST ? whole->n - at : COLUMNS_MOST;
    *part = *whole;
    part->n = n;
    part->b.at = static_cast<const char *>(whole->b.at) +
                 (size_t)at * (whole->b.turned ? 1 : whole->b.stride) * element;
    part->d = reinterpret_cast<float *>(reinterpret_cast<char *>(whole->d) +
                                        (size_t)at * whole->d_stride * result);
    return at + n;
}

void rm_cuda_product_plain(struct rm_cuda *c, struct rm_cuda_product p)
{
    struct rm_cuda_product part;
    p.epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    p.bias = NULL;
    for (uint32_t at = 0; at < p.n;) {
        at = rm_cuda_product_part(&p, at, &part);
        if (!rm_cuda_run_product(c, &part) && rm_cuda_ready(c))
            rm_cuda_fallback_product(c, &part);
    }
}

/* Epilogues access a bias in units of 16 bytes, whatever its length; without this check the device
 * is lost. */
static bool fit_for_epilogue(const float *bias)
{
    return (uintptr_t)bias % 16 == 0;
}

void rm_cuda_product_biased(struct rm_cuda *c, struct rm_cuda_product p, const float *bias,
                            enum rm_activation act)
{
    struct rm_cuda_product part;
    p.epilogue = act == RM_ACT_RELU ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS;
    p.bias = const_cast<float *>(bias);
    for (uint32_t at = 0; at < p.n;) {
        at = rm_cuda_product_part(&p, at, &part);
        if (fit_for_epilogue(bias) && rm_cuda_run_product(c, &part)) {
            if (act != RM_ACT_NONE && act != RM_ACT_RELU)
                rm_cuda_activate(&c->backend, act, part.d, (size_t)part.n * p.m, part.d);
            continue;
        }
        rm_cuda_product_plain(c, part);
        rm_map(c, "bias", biasing{bias, act, p.m, part.d}, (size_t)part.n, p.m);
    }
}

bool rm_cuda_product_summed(struct rm_cuda *c, struct rm_cuda_product p, float *sums)
{
    p.epilogue = CUBLASLT_EPILOGUE_BGRADB;
    p.bias = sums;
    if (rm_cuda_reduced(p.compute) && fit_for_epilogue(sums) && rm_cuda_run_product(c, &p))
        return true;
    rm_cuda_product_plain(c, p);
    return false;
}

/* y^T = op(W) x^T */
void rm_cuda_linear(struct rm_backend *b, const float *x, const float *wt, const float *bias,
                    uint32_t batch, uint32_t in, uint32_t out, enum rm_activation act, float *y)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!batch || !out)
        return;
    const uint32_t stride = rm_cuda_reduced(c->spec.compute) ? rm_cuda_reduced_stride(in) : in;
    const struct rm_cuda_product p = {.m = out,
                                      .n = batch,
                                      .k = in,
                                      .a = {wt, stride, true},
                                      .b = operand_of(c, RM_SCRATCH_B, x, batch, in),
                                      .d = y,
                                      .d_stride = out,
                                      .compute = c->spec.compute};
    rm_cuda_product_biased(c, p, bias, act);
}

/* dx^T = W^T dy^T */
void rm_cuda_linear_dx(struct rm_backend *b, const float *dy, const float *w, uint32_t batch,
                       uint32_t in, uint32_t out, float *dx)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!batch || !in)
        return;
    const struct rm_cuda_product p = {.m = in,
                                      .n = batch,
                                      .k = out,
                                      .a = operand_of(c, RM_SCRATCH_A, w, out, in),
                                      .b = operand_of(c, RM_SCRATCH_B, dy, batch, out),
                                      .d = dx,
                                      .d_stride = in,
                                      .compute = c->spec.compute};
    rm_cuda_product_plain(c, p);
}

/* dW^T = x^T dy, with the sums over dy's rows if the library can compute them too. */
void rm_cuda_linear_dw(struct rm_backend *b, const float *dy, const float *x, uint32_t batch,
                       uint32_t in, uint32_t out, float *dw, float *db)
{
    struct rm_cuda *c = rm_cuda_of(b);
    if (!batch) {
        rm_cuda_fill(b, 0.0f, (size_t)in * out, dw);
        rm_cuda_fill(b, 0.0f, out, db);
        return;
    }
    const struct rm_cuda_product p = {.m = in,
                                      .n = out,
                                      .k = batch,
                                      .a = operand_of(c, RM_SCRATCH_A, x, batch, in),
                                      .b = turned(operand_of(c, RM_SCRATCH_B, dy, batch, out)),
                                      .d = dw,
                                      .d_stride = in,
                                      .compute = c->spec.compute};
    if (!rm_cuda_product_summed(c, p, db))
        rm_cuda_column_sums(c, dy, batch, out, db);
}
