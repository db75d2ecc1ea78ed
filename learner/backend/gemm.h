/* gemm: matrix products on libxsmm's just-in-time kernels, cut into fixed tiles.
 *
 * In libxsmm's column-major terms a row-major product of B rows is C(m, B) = A(m, k) X(k, B): m
 * runs along a row, so rows are columns. Tiles are 64 by 32 whatever the batch and the threads.
 * Rows that do not fill a tile are done in powers of two. libxsmm's AVX-512 kernels split the chain
 * over k when m <= 16 and there are few rows; above 16 every kernel of one (m, k) adds in the same
 * order, so no tile is made that thin (callers keep m <= 16 away, or do not mind: the gradient of
 * the weights).
 *
 * Kernels are compiled on first use of a shape, which allocates; plan() does it ahead. */
#ifndef RM_LEARNER_BACKEND_GEMM_H
#define RM_LEARNER_BACKEND_GEMM_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rm_gemm_kind {
    RM_GEMM_ROWS = 0, /* C(m, rows) = A(m, k) X(k, rows): forward, and gradient of the input */
    RM_GEMM_OUTER,    /* C(m, n) = A(m, k) Y(n, k)^T: gradient of the weights, k = rows */
};

#define RM_GEMM_TILE_M 64u
#define RM_GEMM_TILE_N 32u

struct rm_gemm;      /* the plans of one backend */
struct rm_gemm_plan; /* the kernels of one shape; lives as long as the rm_gemm */

struct rm_gemm_tile {
    uint32_t m0, m, n0, n;
};

/* isa: "x86-64-v2" and so on. libxsmm compiles for one level per process at a time: -EBUSY if
 * another is in use. */
int rm_gemm_create(struct rm_gemm **gemm, const char *isa, struct rm_error *error);
void rm_gemm_destroy(struct rm_gemm *gemm);

/* NULL only when out of memory. For RM_GEMM_ROWS n is ignored. */
const struct rm_gemm_plan *rm_gemm_plan(struct rm_gemm *gemm, enum rm_gemm_kind kind, uint32_t m,
                                        uint32_t n, uint32_t k);

uint32_t rm_gemm_tiles(const struct rm_gemm_plan *plan, uint32_t n);
struct rm_gemm_tile rm_gemm_tile(const struct rm_gemm_plan *plan, uint32_t n, uint32_t index);

/* One tile. a: (m, k) with m contiguous. b: rows of k (ROWS), or rows of n (OUTER). c: rows of m.
 */
void rm_gemm_run(const struct rm_gemm_plan *plan, const struct rm_gemm_tile *tile, const float *a,
                 const float *b, float *c);

#endif
