/* Tiles of products in registers: see product.h. */
#include "learner/backend/product.h"
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

/* A tile is so many vectors of columns by so many rows: as many sums as leave registers for a row
 * of A and a number of B. Each row of A is then loaded once for all of its rows, and there are more
 * than enough chains to hide the latency of an addition. */
#define VECTORS (RM_PRODUCT_PANEL / VEC_FLOATS)
#if defined(__AVX2__)
#define ROWS 6u
#else
#define ROWS 2u
#endif

#define INLINED static inline __attribute__((always_inline))

#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 8")
#endif

/* Where C is read and written, and what of the last vector is C's. */
struct place {
    float *c;
    size_t ldc;
    const float *bias;
    vec_mask last;
    bool add, relu;
};

/* Vector i of `vectors`; `whole`: the last one is C's too. */
INLINED vec load_part(const float *at, const uint32_t i, const uint32_t vectors, const bool whole,
                      vec_mask last)
{
    return i + 1 < vectors || whole ? vec_load(at + i * VEC_FLOATS)
                                    : vec_load_first(at + i * VEC_FLOATS, last);
}

/* Sums become what C is to be: the second of vec_max's where either is NaN. */
INLINED void finish(const struct place *to, vec (*sum)[VECTORS], const uint32_t rows,
                    const uint32_t vectors, const bool whole)
{
    if (to->bias) {
        UNROLLED
        for (uint32_t i = 0; i < vectors; i++) {
            const vec bias = load_part(to->bias, i, vectors, whole, to->last);
            UNROLLED
            for (uint32_t j = 0; j < rows; j++)
                sum[j][i] = vec_add(sum[j][i], bias);
        }
    }
    if (to->relu) {
        UNROLLED
        for (uint32_t j = 0; j < rows; j++) {
            UNROLLED
            for (uint32_t i = 0; i < vectors; i++)
                sum[j][i] = vec_max(vec_zero(), sum[j][i]);
        }
    }
    UNROLLED
    for (uint32_t j = 0; j < rows; j++) {
        UNROLLED
        for (uint32_t i = 0; i < vectors; i++) {
            float *at = to->c + j * to->ldc + i * VEC_FLOATS;
            if (i + 1 < vectors || whole)
                vec_store(at, sum[j][i]);
            else
                vec_store_first(at, sum[j][i], to->last);
        }
    }
}

/* Numbers of rows and vectors are constants where this is inlined, and the sums stay in registers.
 */
INLINED void tile(const struct rm_product *p, const struct place *to, const float *b,
                  const uint32_t rows, const uint32_t vectors, const bool columns, const bool whole)
{
    const size_t lda = p->lda, ldb = p->ldb;
    const float *a = p->a;
    vec sum[ROWS][VECTORS];
    UNROLLED
    for (uint32_t j = 0; j < rows; j++) {
        UNROLLED
        for (uint32_t i = 0; i < vectors; i++)
            sum[j][i] =
                to->add ? load_part(to->c + j * to->ldc, i, vectors, whole, to->last) : vec_zero();
    }
    for (uint32_t k = p->k; k; k--, a += lda, b += columns ? ldb : 1) {
        vec x[VECTORS];
        UNROLLED
        for (uint32_t i = 0; i < vectors; i++)
            x[i] = load_part(a, i, vectors, whole, to->last);
        UNROLLED
        for (uint32_t j = 0; j < rows; j++) {
            const vec y = vec_all(b[columns ? j : j * ldb]);
            UNROLLED
            for (uint32_t i = 0; i < vectors; i++)
                sum[j][i] = vec_fma(x[i], y, sum[j][i]);
        }
    }
    finish(to, sum, rows, vectors, whole);
}

INLINED void some_rows(const struct rm_product *p, const struct place *to, const float *b,
                       uint32_t rows, const uint32_t vectors, const bool columns, const bool whole)
{
    switch (rows) {
#if defined(__AVX2__)
    case 6:
        tile(p, to, b, 6, vectors, columns, whole);
        break;
    case 5:
        tile(p, to, b, 5, vectors, columns, whole);
        break;
    case 4:
        tile(p, to, b, 4, vectors, columns, whole);
        break;
    case 3:
        tile(p, to, b, 3, vectors, columns, whole);
        break;
#endif
    case 2:
        tile(p, to, b, 2, vectors, columns, whole);
        break;
    default:
        tile(p, to, b, 1, vectors, columns, whole);
    }
}

/* Full tiles; the last two share what is left, since a thin one has too few chains. */
INLINED void panel(const struct rm_product *p, const uint32_t vectors, const bool columns,
                   const bool whole)
{
    struct place to = {.c = p->c,
                       .ldc = p->ldc,
                       .bias = p->bias,
                       .last = vec_first(p->m - (vectors - 1) * VEC_FLOATS),
                       .add = p->add,
                       .relu = p->relu};
    const size_t step = columns ? 1 : p->ldb;
    const float *b = p->b;
    for (uint32_t left = p->n, rows; left; left -= rows) {
        rows = left <= ROWS ? left : left < 2 * ROWS ? (left + 1) / 2 : ROWS;
        some_rows(p, &to, b, rows, vectors, columns, whole);
        b += rows * step;
        to.c += rows * to.ldc;
    }
}

/* Masks cost nothing on AVX-512, so that every panel there may have one. */
#if defined(__AVX512F__)
#define WHOLE_TOO(vectors, columns) panel_##vectors##_##columns##_false
#else
#define WHOLE_TOO(vectors, columns) panel_##vectors##_##columns##_true
#endif

#define PANEL(vectors, columns, whole)                                                             \
    static void panel_##vectors##_##columns##_##whole(const struct rm_product *p)                  \
    {                                                                                              \
        panel(p, vectors, columns, whole);                                                         \
    }
#if defined(__AVX512F__)
#define PANELS(vectors) PANEL(vectors, false, false) PANEL(vectors, true, false)
#else
#define PANELS(vectors)                                                                            \
    PANEL(vectors, false, false)                                                                   \
    PANEL(vectors, true, false)                                                                    \
    PANEL(vectors, false, true)                                                                    \
    PANEL(vectors, true, true)
#endif
#define ENTRY(vectors)                                                                             \
    {                                                                                              \
        {panel_##vectors##_false_false, WHOLE_TOO(vectors, false)},                                \
        {                                                                                          \
            panel_##vectors##_true_false, WHOLE_TOO(vectors, true)                                 \
        }                                                                                          \
    }

PANELS(1)
PANELS(2)
#if RM_PRODUCT_PANEL > 16 || !defined(__AVX2__)
PANELS(3)
PANELS(4)
#endif

/* By vectors, B's form, and whether the last vector is whole. */
static void (*const panels[VECTORS][2][2])(const struct rm_product *) = {
    ENTRY(1),
    ENTRY(2),
#if RM_PRODUCT_PANEL > 16 || !defined(__AVX2__)
    ENTRY(3),
    ENTRY(4),
#endif
};

void RM_ISA_NAME(product)(const struct rm_product *p)
{
    const uint32_t vectors = (p->m + VEC_FLOATS - 1) / VEC_FLOATS;
    panels[vectors - 1][p->columns][p->m % VEC_FLOATS == 0](p);
}
