/* product: matrix products by cublasLt. A plan (descriptors, layouts and the algorithm that the
 * library's heuristics prefer) is made at the first product of its kind, and kept. The algorithm
 * depends on shapes, alignments and device alone, and the workspace is the stream's own, so results
 * are the same to the bit in every run. */
#ifndef RM_LEARNER_BACKEND_CUDA_PRODUCT_H
#define RM_LEARNER_BACKEND_CUDA_PRODUCT_H

#include "learner/backend/cuda/cuda.h"

/* D(m, n) = op(A) op(B) (+ D), column-major as cublasLt has it: a row-major matrix (rows, columns)
 * is a column-major one (columns, rows) of the same memory. */
struct rm_cuda_operand {
    const void *at; /* float, or 16 bits, by `compute` */
    uint32_t stride;
    bool turned; /* op() transposes */
};

struct rm_cuda_product {
    uint32_t m, n, k;
    struct rm_cuda_operand a, b;
    float *d;
    uint32_t d_stride;
    bool d_reduced; /* D has numbers of 16 bits, like A and B */
    enum rm_compute compute;
    cublasLtEpilogue_t epilogue;
    float *bias; /* read or written by the epilogue; NULL: none */
    bool add;    /* to D */
};

/* False: the library has no algorithm for this shape and epilogue (call again with a smaller
 * epilogue), or there was an error, which is kept. */
bool rm_cuda_run_product(struct rm_cuda *c, const struct rm_cuda_product *p);

/* The same, with kernels for parts that the library lacks; fallback.cu if it has no such product at
 * all. D^T = act(.. + bias), one bias for each of m. */
void rm_cuda_product_biased(struct rm_cuda *c, struct rm_cuda_product p, const float *bias,
                            enum rm_activation act);
/* Also sums(n): B's, over k. Returns whether the library computed them; if not, the caller must. */
bool rm_cuda_product_summed(struct rm_cuda *c, struct rm_cuda_product p, float *sums);
void rm_cuda_product_plain(struct rm_cuda *c, struct rm_cuda_product p);

/* Limits the columns of D of one launch, because of the maximum grid. Makes *part the product of
 * those from `at` on, and returns the first column of the next part. */
uint32_t rm_cuda_product_part(const struct rm_cuda_product *whole, uint32_t at,
                              struct rm_cuda_product *part);

/* Without the library: any shape, format and alignment, up to a maximum of columns; no epilogue. */
void rm_cuda_fallback_product(struct rm_cuda *c, const struct rm_cuda_product *p);

/* Creates library handle, workspace and the device memory below. False: an error, which is kept. */
bool rm_cuda_products_create(struct rm_cuda *c);
void rm_cuda_products_destroy(struct rm_cuda *c);

/* Device memory that operations use while they run. When it grows, the old memory stays until the
 * end, because captured updates may use it. */
enum rm_cuda_scratch {
    RM_SCRATCH_A = 0, /* operands in 16 bits */
    RM_SCRATCH_B,
    RM_SCRATCH_PATCHES, /* of convolutions */
    RM_SCRATCH_RESULTS,
    RM_SCRATCH_PARTS, /* sums of parts of the rows */
    RM_SCRATCH_COUNT
};
/* Reserves memory for later operations. False: no memory (shortage()). */
bool rm_cuda_scratch_reserve(struct rm_cuda *c, enum rm_cuda_scratch which, size_t bytes);
/* In an operation: the reserved memory. NULL, and an error that is kept: there is too little, and
 * none can be allocated or a capture is open. */
void *rm_cuda_scratch(struct rm_cuda *c, enum rm_cuda_scratch which, size_t bytes);

static inline bool rm_cuda_reduced(enum rm_compute compute)
{
    return compute == RM_COMPUTE_BF16 || compute == RM_COMPUTE_FP16;
}

/* Numbers from one row to the next of a matrix in 16 bits: rows begin at multiples of 16 bytes. */
static inline uint32_t rm_cuda_reduced_stride(uint32_t columns)
{
    return (columns + 7) / 8 * 8;
}

/* to(rows, stride) = x(rows, columns) in 16 bits, followed by zeros in each row. */
void rm_cuda_reduce(struct rm_cuda *c, const float *x, size_t rows, uint32_t columns, void *to);

/* to(images, columns, stride) from x(images, rows, columns): transposes each image; zeros follow in
 * each row. */
void rm_cuda_turn(struct rm_cuda *c, const float *x, uint32_t images, uint32_t rows,
                  uint32_t columns, uint32_t stride, enum rm_compute format, void *to);

#endif
