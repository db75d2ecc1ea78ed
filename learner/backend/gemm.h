/* gemm: matrix products on libxsmm's just-in-time kernels, cut into fixed tiles.
 *
 * In libxsmm's column-major terms a row-major product of B rows is C(m, B) = A(m, k) X(k, B): m
 * runs along a row, so rows are columns. Tiles are 64 by 32 whatever the batch and the threads.
 * Rows that do not fill a tile are done in powers of two. libxsmm's AVX-512 kernels split the chain
 * over k when m <= 16 and there are few rows; above 16 every kernel of one (m, k) adds in the same
 * order, so no tile is made that thin (callers keep m <= 16 away, or do not mind: the gradient of
 * the weights).
 *
 * libxsmm's AVX2 kernels lose a third of their speed on widths that are no multiple of 8. Such an A
 * is taken in panels below AVX-512, one for each 64 of m, padded to a multiple of 16 with zeros,
 * and a tile of C that is wider than C has room for goes to a buffer of the caller's. FORWARD has
 * panels always, since weights are transposed into something anyway. DW goes through its rows in
 * parts of a fixed size that stay in the cache, and through the rest in powers of two.
 *
 * Kernels are compiled on first use of a shape, which allocates; plan() does it ahead. */
#ifndef RM_LEARNER_BACKEND_GEMM_H
#define RM_LEARNER_BACKEND_GEMM_H

#include "shm/base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rm_gemm_kind {
    RM_GEMM_FORWARD = 0, /* C(m, rows) = A(m, k) X(k, rows), A in panels by the caller */
    RM_GEMM_DX,          /* the same, A (k rows of m) put into panels by rm_gemm_load */
    RM_GEMM_DW,          /* C(m, n) = A(m, k) Y(n, k)^T, k = rows; A loaded likewise */
    RM_GEMM_DW_TURNED,   /* the same; all tiles go to buffers, for the caller to transpose */
};

#define RM_GEMM_TILE_M 64u
#define RM_GEMM_TILE_N 32u

struct rm_gemm; /* the plans of one backend; looking one up that exists is safe in any thread */
struct rm_gemm_plan; /* the kernels of one shape; lives as long as the rm_gemm */

struct rm_gemm_tile {
    uint32_t stretch; /* which 64 of m */
    uint32_t m0, m, n0, n;
    uint32_t ldc; /* floats between rows of c */
    bool direct;  /* c is the result itself, else a buffer of a whole tile to copy from */
};

struct rm_gemm_panel {
    uint32_t m0, m, stride; /* stride: m padded to a multiple of 16 */
    size_t offset;          /* floats */
};

/* isa: "x86-64-v2" and so on. libxsmm compiles for one level per process at a time: -EBUSY if
 * another is in use. */
int rm_gemm_create(struct rm_gemm **gemm, const char *isa, struct rm_error *error);
void rm_gemm_destroy(struct rm_gemm *gemm);

/* NULL only when out of memory. n matters to RM_GEMM_DW alone, and k, its rows, only for what is
 * compiled: all numbers of rows have the same plan and share its few kernels. The k given here is
 * that of the calls that follow. */
const struct rm_gemm_plan *rm_gemm_plan(struct rm_gemm *gemm, enum rm_gemm_kind kind, uint32_t m,
                                        uint32_t n, uint32_t k);
/* The same of kind DW, for any number of rows up to k: after it, threads may ask for those at the
 * same time, since rm_gemm_plan() then changes nothing. */
const struct rm_gemm_plan *rm_gemm_plan_up_to(struct rm_gemm *gemm, enum rm_gemm_kind kind,
                                              uint32_t m, uint32_t n, uint32_t k);

uint32_t rm_gemm_tiles(const struct rm_gemm_plan *plan, uint32_t n);
struct rm_gemm_tile rm_gemm_tile(const struct rm_gemm_plan *plan, uint32_t n, uint32_t index);

/* Panels of FORWARD: each has k rows of `stride` floats; all take rm_gemm_panel_floats. */
uint32_t rm_gemm_panels(const struct rm_gemm_plan *plan);
struct rm_gemm_panel rm_gemm_panel(const struct rm_gemm_plan *plan, uint32_t index);
size_t rm_gemm_panel_floats(uint32_t m, uint32_t k);

/* Takes A(m, k), k rows of m floats, for the tiles that follow. DX and DW. Returns what to give
 * them: `a` itself, or `panels`, which then were filled and must have rm_gemm_load_floats(). */
size_t rm_gemm_load_floats(const struct rm_gemm_plan *plan, uint32_t k);
const float *rm_gemm_load(const struct rm_gemm_plan *plan, uint32_t k, const float *a,
                          float *panels);

/* One tile; DW: `add` adds it to what is in c. a: panels (FORWARD), or what rm_gemm_load returned.
 * b: rows of k, or rows of n (DW). c: where (n0, m0) of the result is, or a buffer: see `direct`.
 */
void rm_gemm_run(const struct rm_gemm_plan *plan, const struct rm_gemm_tile *tile, uint32_t k,
                 const float *a, const float *b, bool add, float *c);

#endif
