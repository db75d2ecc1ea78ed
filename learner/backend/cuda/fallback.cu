/* Products for which the library has no algorithm: supported formats and alignments differ between
 * devices and versions, so this kernel accepts any. It is rarely used, and not fast. */
#include "learner/backend/cuda/formats.h"
#include "learner/backend/cuda/product.h"

namespace
{

#define SIDE 16u

/* Number (row, column) of op(X), of a column-major X. */
template <class From>
__device__ float number(const struct rm_cuda_operand &x, uint32_t row, uint32_t column)
{
    const typename From::type *of = static_cast<const typename From::type *>(x.at);
    return From::to_float(x.turned ? of[(size_t)row * x.stride + column]
                                   : of[(size_t)column * x.stride + row]);
}

/* A tile of D, SIDE by SIDE, one number for each thread; sums over k are one chain. */
template <class From>
__global__ void multiply_tiles(struct rm_cuda_product p)
{
    RM_SHARED(float, a); /* (SIDE, SIDE + 1): k, m; then of b: n, k */
    float *b = a + SIDE * (SIDE + 1);
    const uint32_t m0 = blockIdx.x * SIDE, n0 = blockIdx.y * SIDE;
    const uint32_t x = threadIdx.x, y = threadIdx.y;
    float sum = 0.0f;
    for (uint32_t k0 = 0; k0 < p.k; k0 += SIDE) {
        a[y * (SIDE + 1) + x] =
            m0 + x < p.m && k0 + y < p.k ? number<From>(p.a, m0 + x, k0 + y) : 0.0f;
        b[y * (SIDE + 1) + x] =
            n0 + y < p.n && k0 + x < p.k ? number<From>(p.b, k0 + x, n0 + y) : 0.0f;
        __syncthreads();
        for (uint32_t k = 0; k < SIDE; k++)
            sum = fmaf(a[k * (SIDE + 1) + x], b[y * (SIDE + 1) + k], sum);
        __syncthreads();
    }
    if (m0 + x >= p.m || n0 + y >= p.n)
        return;
    const size_t at = (size_t)(n0 + y) * p.d_stride + m0 + x;
    if (p.d_reduced) {
        typename From::type *to = reinterpret_cast<typename From::type *>(p.d) + at;
        *to = From::from_float(p.add ? From::to_float(*to) + sum : sum);
    } else {
        p.d[at] = p.add ? p.d[at] + sum : sum;
    }
}

} // namespace

void rm_cuda_fallback_product(struct rm_cuda *c, const struct rm_cuda_product *p)
{
    const size_t shared = 2 * SIDE * (SIDE + 1) * sizeof(float);
    const dim3 grid((p->m + SIDE - 1) / SIDE, (p->n + SIDE - 1) / SIDE), block(SIDE, SIDE);
    rm_in_format(p->compute, [&](auto format) {
        RM_RUN_SHARED(c, multiply_tiles<decltype(format)>, grid, block, shared, *p);
    });
}
