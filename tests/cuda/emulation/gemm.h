/* gemm: products of matrices on the host, for the double of cublasLt. */
#ifndef RM_TESTS_CUDA_EMULATION_GEMM_H
#define RM_TESTS_CUDA_EMULATION_GEMM_H

#include <stddef.h>

namespace rm_emulated
{
/* One element at a time: row i, column j of op(A). */
struct matrix {
    const void *at;
    float (*read)(const void *at, size_t index);
    size_t row_step, column_step; /* in elements */
};

/* out(m, n), column-major and packed, = a(m, k) b(k, n), in float; sums over k in pieces of 256,
 * whatever m and n. */
void multiply(const matrix &a, const matrix &b, size_t m, size_t n, size_t k, float *out);
} // namespace rm_emulated

#endif
