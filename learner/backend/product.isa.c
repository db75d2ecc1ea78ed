/* Tiles of products in registers: see product.h. */
#include "learner/backend/product.h"
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

/* A tile has VECTORS vectors of columns and so many rows that its sums leave registers for a row of
 * A and a number of B. Each row of A is then loaded once for all of its rows, and there are more
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

/* The tile's position in C, and the mask of the last vector. */
struct place {
    float *c;
    float *sums;
    size_t ldc;
    const float *bias;
    vec_mask last, rows; /* rows: of a tile, for the sums of columns */
    bool add, relu;
};

/* Vector i of `vectors`; `whole`: the last one is C's too. */
INLINED vec load_part(const float *at, const uint32_t i, const uint32_t vectors, const bool whole,
                      vec_mask last)
{
    return i + 1 < vectors || whole ? vec_load(at + i * VEC_FLOATS)
                                    : vec_load_first(at + i * VEC_FLOATS, last);
}

/* Turns sums into C's values: vec_max returns its second argument if either is NaN. */
INLINED void finish(const struct place *to, vec (*sum)[VECTORS], const uint32_t rows,
                    const uint32_t vectors, const bool whole)
{
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

/* The form of B, and whether its columns are added up: by whole vectors, of which the first numbers
 * count, while there are columns for them, since no register is left for a mask. */
enum form { ROW_FORM, COLUMN_FORM, SUMMED_FORM, SUMMED_END };

#define SUMMED(form) ((form) == SUMMED_FORM || (form) == SUMMED_END)

/* Numbers of rows and vectors are constants where this is inlined, and the sums stay in registers.
 */
INLINED void tile(const struct rm_product *p, const struct place *to, const float *b,
                  const uint32_t rows, const uint32_t vectors, const enum form form,
                  const bool whole)
{
    const bool columns = form != ROW_FORM;
    const size_t lda = p->lda, ldb = p->ldb;
    const float *a = p->a;
    vec total = SUMMED(form) && to->add ? vec_load_first(to->sums, to->rows) : vec_zero();
    vec sum[ROWS][VECTORS], start[VECTORS];
    UNROLLED
    for (uint32_t i = 0; i < vectors; i++)
        start[i] = to->bias ? load_part(to->bias, i, vectors, whole, to->last) : vec_zero();
    UNROLLED
    for (uint32_t j = 0; j < rows; j++) {
        UNROLLED
        for (uint32_t i = 0; i < vectors; i++)
            sum[j][i] =
                to->add ? load_part(to->c + j * to->ldc, i, vectors, whole, to->last) : start[i];
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
        if (form == SUMMED_FORM)
            total = vec_add(total, vec_load(b));
        if (form == SUMMED_END)
            total = vec_add(total, vec_load_first(b, to->rows));
    }
    if (SUMMED(form))
        vec_store_first(to->sums, total, to->rows);
    finish(to, sum, rows, vectors, whole);
}

INLINED void some_rows(const struct rm_product *p, const struct place *to, const float *b,
                       uint32_t rows, const uint32_t vectors, const enum form form,
                       const bool whole)
{
    switch (rows) {
#if defined(__AVX2__)
    case 6:
        tile(p, to, b, 6, vectors, form, whole);
        break;
    case 5:
        tile(p, to, b, 5, vectors, form, whole);
        break;
    case 4:
        tile(p, to, b, 4, vectors, form, whole);
        break;
    case 3:
        tile(p, to, b, 3, vectors, form, whole);
        break;
#endif
    case 2:
        tile(p, to, b, 2, vectors, form, whole);
        break;
    default:
        tile(p, to, b, 1, vectors, form, whole);
    }
}

/* Full tiles; the last two share what is left, since a thin one has too few chains. */
INLINED void panel(const struct rm_product *p, const uint32_t vectors, const enum form form,
                   const bool whole)
{
    struct place to = {.c = p->c,
                       .sums = p->sums,
                       .ldc = p->ldc,
                       .bias = p->bias,
                       .last = vec_first(p->m - (vectors - 1) * VEC_FLOATS),
                       .add = p->add,
                       .relu = p->relu};
    const size_t step = form != ROW_FORM ? 1 : p->ldb;
    const float *b = p->b;
    for (uint32_t left = p->n, rows; left; left -= rows) {
        rows = left <= ROWS ? left : left < 2 * ROWS ? (left + 1) / 2 : ROWS;
        if (form == SUMMED_FORM)
            to.rows = vec_first(rows);
        if (form == SUMMED_FORM && left < VEC_FLOATS)
            some_rows(p, &to, b, rows, vectors, SUMMED_END, whole);
        else
            some_rows(p, &to, b, rows, vectors, form, whole);
        b += rows * step;
        if (form == SUMMED_FORM)
            to.sums += rows;
        to.c += rows * to.ldc;
    }
}

#define PANEL(vectors, form, whole)                                                                \
    static void panel_##vectors##_##form##_##whole(const struct rm_product *p)                     \
    {                                                                                              \
        panel(p, vectors, form, whole);                                                            \
    }

/* Masks cost nothing on AVX-512, so that every panel there may have one. */
#if defined(__AVX512F__)
#define BOTH(vectors, form) PANEL(vectors, form, false)
#define NAMES(vectors, form)                                                                       \
    {                                                                                              \
        panel_##vectors##_##form##_false, panel_##vectors##_##form##_false                         \
    }
#else
#define BOTH(vectors, form) PANEL(vectors, form, false) PANEL(vectors, form, true)
#define NAMES(vectors, form)                                                                       \
    {                                                                                              \
        panel_##vectors##_##form##_false, panel_##vectors##_##form##_true                          \
    }
#endif
#define PANELS(vectors)                                                                            \
    BOTH(vectors, ROW_FORM) BOTH(vectors, COLUMN_FORM) BOTH(vectors, SUMMED_FORM)
#define ENTRY(vectors)                                                                             \
    {                                                                                              \
        NAMES(vectors, ROW_FORM), NAMES(vectors, COLUMN_FORM), NAMES(vectors, SUMMED_FORM)         \
    }

PANELS(1)
PANELS(2)
#if RM_PRODUCT_PANEL > 16 || !defined(__AVX2__)
PANELS(3)
PANELS(4)
#endif

/* By vectors, form, and whether the last vector is whole. */
static void (*const panels[VECTORS][3][2])(const struct rm_product *) = {
    ENTRY(1),
    ENTRY(2),
#if RM_PRODUCT_PANEL > 16 || !defined(__AVX2__)
    ENTRY(3),
    ENTRY(4),
#endif
};

/* A single row has too few chains and waits for weights, so it takes more panels at once, with all
 * of k. */
#define ALONE (RM_PRODUCT_ALONE / VEC_FLOATS)

void RM_ISA_NAME(product_alone)(const struct rm_product *p, size_t step)
{
    const float *a = p->a;
    vec sum[ALONE];
    UNROLLED
    for (uint32_t i = 0; i < ALONE; i++)
        sum[i] = p->add    ? vec_load(p->c + i * VEC_FLOATS)
                 : p->bias ? vec_load(p->bias + i * VEC_FLOATS)
                           : vec_zero();
    for (uint32_t k = 0; k < p->k; k++, a += p->lda) {
        const vec y = vec_all(p->b[k]);
        UNROLLED
        for (uint32_t i = 0; i < ALONE; i++) {
            const float *at = a + i / VECTORS * step + i % VECTORS * VEC_FLOATS;
            sum[i] = vec_fma(vec_load(at), y, sum[i]);
        }
    }
    UNROLLED
    for (uint32_t i = 0; i < ALONE; i++)
        vec_store(p->c + i * VEC_FLOATS, p->relu ? vec_max(vec_zero(), sum[i]) : sum[i]);
}

void RM_ISA_NAME(product)(const struct rm_product *p)
{
    const uint32_t vectors = (p->m + VEC_FLOATS - 1) / VEC_FLOATS;
    const enum form form = !p->columns ? ROW_FORM : p->sums ? SUMMED_FORM : COLUMN_FORM;
    panels[vectors - 1][form][p->m % VEC_FLOATS == 0](p);
}
