/* product: matrix products in float32, with a kernel for each instruction set.
 *
 * C(n, m) = B A, or C += B A, row-major: n rows of m columns. A is (k, m), with vectors along its
 * rows. B is (n, k), the rows that go into a layer, or for gradients of weights (k, n), whose
 * columns are multiplied by columns of A. A kernel keeps a tile of C in registers, as wide as a
 * panel of columns, for all of k, or for `depth` of k if a panel would not stay in the cache.
 *
 * Every element of C is one chain of multiply-adds over k, in order, even where k is cut. So the
 * bits of a result do not depend on tiles, threads, or the batch that a row is in. (Without FMA,
 * below x86-64-v3, each link rounds twice.) */
#ifndef RM_LEARNER_BACKEND_PRODUCT_H
#define RM_LEARNER_BACKEND_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rm_kernels;

struct rm_product {
    const float *a, *b;
    const float *bias;    /* start values of every row, (m), or NULL */
    float *sums;          /* columns: n sums over B's columns, each one chain, or NULL */
    float *c;             /* not the memory of a or b */
    size_t lda, ldb, ldc; /* floats between rows */
    uint32_t n, m, k;
    bool columns; /* B is (k, n) */
    bool panels;  /* A is packed (rm_product_panels); lda is ignored */
    bool add;     /* to C and to sums; bias must be NULL */
    bool relu;    /* of the result; NaN stays NaN */
};

/* The whole product, in the calling thread. */
void rm_product(const struct rm_kernels *kernels, const struct rm_product *p);

/* Whether packing A(k, m) before the product makes it faster for n rows of B. */
bool rm_product_wants_panels(const struct rm_kernels *kernels, uint32_t n, uint32_t m, uint32_t k);

/* Panels of A(k, m): one for every kernels->product_panel columns. The panel from column m0 on
 * begins at m0 * k and has k rows of `stride` floats: its columns, rounded up to a multiple
 * of 16. */
uint32_t rm_product_panels(const struct rm_kernels *kernels, uint32_t m);
size_t rm_product_panel_floats(uint32_t m, uint32_t k);

struct rm_product_panel {
    uint32_t m0, m, stride;
    size_t offset; /* floats */
};
struct rm_product_panel rm_product_panel(const struct rm_kernels *kernels, uint32_t m, uint32_t k,
                                         uint32_t index);
/* Packs A, k rows of m floats, into panels. */
void rm_product_pack(const struct rm_kernels *kernels, const float *a, uint32_t m, uint32_t k,
                     float *panels);

#endif
