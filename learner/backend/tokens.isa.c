/* Means over the rows of a sample, and products of one row with the others. */
#include "learner/backend/isa_parts.h"
#include "learner/backend/isa_vector.h"

void RM_ISA_NAME(span_mean)(const float *x, uint32_t rows, uint32_t n, float *y)
{
    const float share = rows ? 1.0f / (float)rows : 0.0f;
    for (uint32_t i = 0; i < n; i++)
        y[i] = 0.0f;
    for (uint32_t r = 0; r < rows; r++, x += n)
        for (uint32_t i = 0; i < n; i++)
            y[i] += x[i];
    for (uint32_t i = 0; i < n; i++)
        y[i] *= share;
}

void RM_ISA_NAME(span_mean_dx)(const float *dy, uint32_t rows, uint32_t n, float *dx)
{
    const float share = rows ? 1.0f / (float)rows : 0.0f;
    for (uint32_t r = 0; r < rows; r++, dx += n)
        for (uint32_t i = 0; i < n; i++)
            dx[i] = share * dy[i];
}

void RM_ISA_NAME(span_dots)(const float *x, const float *from, uint32_t rows, uint32_t n,
                            float scale, float *y)
{
    const uint32_t whole = n / VEC_FLOATS * VEC_FLOATS;
    for (uint32_t r = 0; r < rows; r++, from += n) {
        vec sum = vec_zero();
        float rest = 0.0f;
        for (uint32_t i = 0; i < whole; i += VEC_FLOATS)
            sum = vec_fma(vec_load(x + i), vec_load(from + i), sum);
        for (uint32_t i = whole; i < n; i++)
            rest = RM_FMA(x[i], from[i], rest);
        y[r] = scale * (vec_sum(sum) + rest);
    }
}

void RM_ISA_NAME(span_dots_dx)(const float *d, const float *x, const float *from, uint32_t rows,
                               uint32_t n, float *dx, float *d_from)
{
    for (uint32_t r = 0; r < rows; r++, from += n, d_from += n) {
        const float dr = d[r];
        for (uint32_t i = 0; i < n; i++) {
            dx[i] = RM_FMA(dr, from[i], dx[i]);
            d_from[i] = dr * x[i];
        }
    }
}
