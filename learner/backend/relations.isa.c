/* Sums of rows of tables, which groups of numbers select. */
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

#define WIDE 4u                 /* registers of a row at a time */
#define PART (32u / VEC_FLOATS) /* the same of the tables' gradients, whose tiles are narrow */

#define INLINE static inline __attribute__((always_inline))

INLINE bool in_first(const struct rm_relations *e, uint32_t column)
{
    return column == 0 && e->first_codes;
}

/* Whether this column's table has a row for number `code`: not for 0 or a number outside the
 * table. */
INLINE bool has_row(const struct rm_relations *e, uint32_t column, int32_t code)
{
    return code > 0 && (uint32_t)code < (in_first(e, column) ? e->first_codes : e->codes);
}

/* The row of number `code`. */
INLINE const float *row_of(const struct rm_relations *e, const float *first, const float *table,
                           uint32_t column, int32_t code)
{
    return (in_first(e, column) ? first : table) + (size_t)code * e->units;
}

INLINE float sign_of(const struct rm_relations *e, uint32_t column)
{
    return e->difference && column + 1 == e->columns ? -1.0f : 1.0f;
}

/* The numbers of a token without the zeros that most tokens end with. */
INLINE uint32_t numbers_of(const struct rm_relations *e, const int32_t *codes)
{
    uint32_t n = e->numbers;
    while (n && codes[n - 1] == 0)
        n--;
    return (n + e->columns - 1) / e->columns * e->columns;
}

INLINE void sum_some(const struct rm_relations *e, const int32_t *codes, uint32_t numbers,
                     const float *first, const float *table, uint32_t at, const uint32_t count,
                     float *y)
{
    vec sum[WIDE];
    for (uint32_t v = 0; v < count; v++)
        sum[v] = vec_zero();
    for (uint32_t j = 0; j < numbers; j += e->columns)
        for (uint32_t k = 0; k < e->columns; k++) {
            if (!has_row(e, k, codes[j + k]))
                continue;
            const float *row = row_of(e, first, table, k, codes[j + k]);
            vec sign = vec_set(sign_of(e, k));
            for (uint32_t v = 0; v < count; v++)
                sum[v] = vec_fma(sign, vec_load(row + at + v * VEC_FLOATS), sum[v]);
        }
    for (uint32_t v = 0; v < count; v++)
        vec_store(y + at + v * VEC_FLOATS, sum[v]);
}

void RM_ISA_NAME(relate)(const struct rm_relations *e, const int32_t *codes, const float *first,
                         const float *table, uint32_t rows, float *y)
{
    for (uint32_t r = 0; r < rows; r++, codes += e->numbers, y += e->units) {
        const uint32_t numbers = numbers_of(e, codes);
        uint32_t at = 0;
        for (; at + WIDE * VEC_FLOATS <= e->units; at += WIDE * VEC_FLOATS)
            sum_some(e, codes, numbers, first, table, at, WIDE, y);
        for (; at + VEC_FLOATS <= e->units; at += VEC_FLOATS)
            sum_some(e, codes, numbers, first, table, at, 1, y);
        for (; at < e->units; at++) {
            float sum = 0.0f;
            for (uint32_t j = 0; j < numbers; j++) {
                uint32_t k = j % e->columns;
                if (has_row(e, k, codes[j]))
                    sum = RM_FMA(sign_of(e, k), row_of(e, first, table, k, codes[j])[at], sum);
            }
            y[at] = sum;
        }
    }
}

/* Adds a row's gradient, from number `at` on, to the rows of the tables that it is a sum of. */
INLINE void add_some(const struct rm_relations *e, const int32_t *codes, uint32_t numbers,
                     const float *dy, uint32_t at, const uint32_t count, float *d_first,
                     float *d_table)
{
    vec part[PART];
    for (uint32_t v = 0; v < count; v++)
        part[v] = vec_load(dy + at + v * VEC_FLOATS);
    for (uint32_t j = 0; j < numbers; j += e->columns)
        for (uint32_t k = 0; k < e->columns; k++) {
            if (!has_row(e, k, codes[j + k]))
                continue;
            float *row =
                (in_first(e, k) ? d_first : d_table) + (size_t)codes[j + k] * e->units + at;
            const vec sign = vec_set(sign_of(e, k));
            for (uint32_t v = 0; v < count; v++, row += VEC_FLOATS)
                vec_store(row, vec_fma(sign, part[v], vec_load(row)));
        }
}

/* Rows ahead of which gradients are prefetched, because many are in another core's cache. */
#define AHEAD 16u

INLINE void prefetch(const float *dy, const int32_t *codes, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i += 16)
        __builtin_prefetch(dy + i);
    __builtin_prefetch(codes);
}

/* Columns [from, to) of the tables' gradients, rows in their order. */
void RM_ISA_NAME(relate_dw)(const struct rm_relations *e, const int32_t *codes, const float *dy,
                            uint32_t rows, uint32_t from, uint32_t to, float *d_first,
                            float *d_table)
{
    for (uint32_t r = 0; r < rows; r++, codes += e->numbers, dy += e->units) {
        const uint32_t numbers = numbers_of(e, codes);
        uint32_t at = from;
        if (r + AHEAD < rows)
            prefetch(dy + (size_t)AHEAD * e->units, codes + (size_t)AHEAD * e->numbers, from, to);
        for (; at + PART * VEC_FLOATS <= to; at += PART * VEC_FLOATS)
            add_some(e, codes, numbers, dy, at, PART, d_first, d_table);
        for (; at + VEC_FLOATS <= to; at += VEC_FLOATS)
            add_some(e, codes, numbers, dy, at, 1, d_first, d_table);
        for (uint32_t j = 0; j < numbers && at < to; j++) {
            const uint32_t k = j % e->columns;
            if (!has_row(e, k, codes[j]))
                continue;
            float *row = (in_first(e, k) ? d_first : d_table) + (size_t)codes[j] * e->units;
            for (uint32_t i = at; i < to; i++)
                row[i] = RM_FMA(sign_of(e, k), dy[i], row[i]);
        }
    }
}
