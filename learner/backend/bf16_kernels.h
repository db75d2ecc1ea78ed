/* bf16_kernels: products of numbers rounded to bfloat16 (8 bits of exponent, 7 of mantissa) with
 * sums in float32, by AMX's TDPBF16PS where rm_bf16_tiles(), else by AVX512_BF16's VDPBF16PS, and
 * the roundings that the products need. Call them only if rm_bf16_supported().
 *
 * The instructions add the products of two neighbours to a sum, so operands are words of two
 * numbers, the one with even k in the lower half. If k is odd, the last number has a zero beside
 * it. The instructions take denormal numbers as zeros, and so does the rounding, to the nearest,
 * ties to even.
 *
 * Pointers need no alignment. No function allocates or uses threads. */
#ifndef RM_LEARNER_BACKEND_BF16_KERNELS_H
#define RM_LEARNER_BACKEND_BF16_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum columns of a panel. */
#define RM_BF16_PANEL 64u
/* rows() takes so many pairs at a time: operands have zeros up to a multiple of it. */
#define RM_BF16_DEPTH 16u

/* C(rows, columns) = start + B A, `pairs` words long. */
struct rm_bf16_part {
    const uint32_t *a; /* (pairs, lda): columns rounded up to 16 of them are read */
    const uint32_t *b; /* rows(): (rows, ldb); columns(): (pairs, ldb) */
    float *c;          /* (rows, ldc) */
    const float *bias; /* (columns) what every row starts with; NULL: zeros, or `add` */
    size_t lda, ldb, ldc;
    uint32_t rows, columns, pairs; /* columns: at most RM_BF16_PANEL */
    bool add;                      /* to c */
    bool tiles;                    /* rows(): by AMX, if rm_bf16_tiles() */
};

bool rm_bf16_supported(void);
/* Whether this process may use AMX, which does many times as many operations a cycle as FMA. */
bool rm_bf16_tiles(void);
/* Call it after products in this thread: other code of the process may use tiles, too, and what
 * they hold is saved whenever the thread loses its core. */
void rm_bf16_release_tiles(void);

/* Every element is added up in the order of the pairs, independent of other rows and columns: one
 * by one, with tiles RM_BF16_DEPTH pairs and then their sum. */
void rm_bf16_rows(const struct rm_bf16_part *part);
void rm_bf16_columns(const struct rm_bf16_part *part);

/* to(rows, ld) = words of neighbours in rows of n floats, `stride` apart. */
void rm_bf16_round(const float *x, size_t stride, uint32_t rows, uint32_t n, uint32_t *to,
                   size_t ld);
/* to(rows / 2 rounded up, ld) = words of neighbours in columns; zeros up to n rounded up to 16. */
void rm_bf16_round_columns(const float *x, size_t stride, uint32_t rows, uint32_t n, uint32_t *to,
                           size_t ld);

#endif
