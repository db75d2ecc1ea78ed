/* Gram-Schmidt on a matrix of normals, one block of rows at a time: the projection of a block onto
 * the earlier rows is a product of matrices. One pass suffices if a row loses little of its length;
 * if it loses much, the rest has lost as many digits, and a second pass follows ("twice is enough",
 * Giraud et al., 2005). */
#include "learner/net/orthogonal.h"

#include "learner/net/init_kernels.h"
#include "learner/net/parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define BLOCK_ROWS 32u

/* Minimum fraction of a row's square that must be left after one pass. */
#define ENOUGH 0.5

struct matrix {
    double *v, *scratch;
    size_t length, stride; /* padded with zeros */
    uint32_t count;
};

static double *row_of(const struct matrix *m, uint32_t row)
{
    return m->v + row * m->stride;
}

/* Whether any of these rows has lost too much since its square was computed. */
static bool lost(const struct rm_init_kernels *k, const struct matrix *m, uint32_t first,
                 uint32_t end, const double *before)
{
    for (uint32_t a = first; a < end; a++)
        if (k->square(row_of(m, a), m->length) < ENOUGH * before[a - first])
            return true;
    return false;
}

static void clear_of_earlier(const struct rm_init_kernels *k, const struct matrix *m,
                             uint32_t first, uint32_t end)
{
    const uint32_t rows = (end - first + RM_INIT_ROWS - 1) / RM_INIT_ROWS * RM_INIT_ROWS;
    double before[BLOCK_ROWS];
    for (uint32_t a = first; a < end; a++)
        before[a - first] = k->square(row_of(m, a), m->length);
    k->project(row_of(m, first), rows, m->v, first, m->length, m->stride, m->scratch);
    if (lost(k, m, first, end, before))
        k->project(row_of(m, first), rows, m->v, first, m->length, m->stride, m->scratch);
}

/* Projects within a block; it has few rows, so always twice. */
static void clear_of_block(const struct rm_init_kernels *k, const struct matrix *m, uint32_t first,
                           uint32_t row)
{
    double *x = row_of(m, row);
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t b = first; b < row; b++)
            k->project_one(x, row_of(m, b), m->length);
    const double scale = 1.0 / sqrt(k->square(x, m->length));
    for (size_t i = 0; i < m->length; i++)
        x[i] *= scale;
}

static void orthonormalise(const struct matrix *m)
{
    const struct rm_init_kernels *k = rm_init_kernels();
    for (uint32_t first = 0; first < m->count; first += BLOCK_ROWS) {
        const uint32_t left = m->count - first;
        const uint32_t end = first + (left < BLOCK_ROWS ? left : BLOCK_ROWS);
        if (first)
            clear_of_earlier(k, m, first, end);
        for (uint32_t a = first; a < end; a++)
            clear_of_block(k, m, first, a);
    }
}

int rm_orthogonal(float *p, uint32_t rows, uint32_t cols, double gain, struct rm_rng *rng)
{
    const bool wide = rows < cols;
    const uint32_t length = wide ? cols : rows;
    struct matrix m = {.count = wide ? rows : cols};
    m.length = (length + RM_INIT_LANES - 1) / RM_INIT_LANES * RM_INIT_LANES;
    m.stride = m.length + RM_INIT_LANES; /* rows a power of two apart would share cache lines */
    m.v = calloc((m.count + RM_INIT_ROWS) * m.stride, sizeof *m.v);
    m.scratch = calloc((size_t)BLOCK_ROWS * m.count + 1, sizeof *m.scratch);
    if (!m.v || !m.scratch) {
        free(m.v);
        free(m.scratch);
        return -ENOMEM;
    }
    for (uint32_t a = 0; a < m.count; a++)
        rm_init_normals(row_of(&m, a), length, rng);
    orthonormalise(&m);
    for (uint32_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < cols; c++)
            p[(size_t)r * cols + c] = (float)(gain * (wide ? row_of(&m, r)[c] : row_of(&m, c)[r]));
    free(m.v);
    free(m.scratch);
    return 0;
}
