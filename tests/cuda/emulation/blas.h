/* blas: what the double of cublasLt is made of: descriptors, and a product as it is put on a
 * stream. */
#ifndef RM_TESTS_CUDA_EMULATION_BLAS_H
#define RM_TESTS_CUDA_EMULATION_BLAS_H

#include "cublasLt.h"
#include "state.h"

#define RM_BLAS_WORKSPACE 4096u          /* bytes that a product asks for, where it may */
#define RM_BLAS_COLUMNS   (65535u * 16u) /* of a product: tiles of 16 along a grid's second side */

struct rm_blas_handle {
    int device;
};

struct rm_blas_operation {
    cublasComputeType_t compute;
    cudaDataType_t scale;
    int32_t pointer_mode = CUBLASLT_POINTER_MODE_HOST;
    int32_t turn_a = CUBLAS_OP_N, turn_b = CUBLAS_OP_N, turn_c = CUBLAS_OP_N;
    uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    void *bias = nullptr, *aux = nullptr;
    int64_t bias_stride = 0, aux_ld = 0, aux_stride = 0;
    int32_t bias_type = -1, aux_type = -1;
};

struct rm_blas_layout {
    uint32_t type;
    int32_t order = CUBLASLT_ORDER_COL;
    uint64_t rows, columns;
    int64_t ld;
    int32_t batch = 1;
    int64_t stride = 0;
};

struct rm_blas_preference {
    uint32_t search = 0, reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
    uint64_t workspace = 0, implementations = ~0ull;
    uint32_t align[4] = {256, 256, 256, 256};
    float waves = 0;
};

namespace rm_emulated
{
struct product {
    rm_blas_operation op;
    rm_blas_layout la, lb, lc, ld;
    const void *a, *b, *c;
    void *d;
    const void *alpha_at, *beta_at; /* on the device, where the pointer mode says so */
    float alpha, beta;
    void *workspace;
    size_t workspace_bytes;
    int device;
    size_t m() const
    {
        return ld.rows;
    }
    size_t n() const
    {
        return ld.columns;
    }
    size_t k() const
    {
        return op.turn_a == CUBLAS_OP_N ? la.columns : la.rows;
    }
};

/* What the layouts have to agree about, and what the library has no algorithm for: "" if nothing.
 */
std::string wrong_shape(const product &p);
std::string unsupported(const product &p);

/* Computes it, now. */
void run(product p);
} // namespace rm_emulated

#endif
