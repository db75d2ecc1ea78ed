#include "learner/algo/muon.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define ITERATIONS 5
#define COEFF_A    3.4445f
#define COEFF_B    (-4.7750f)
#define COEFF_C    2.0315f
#define TINY       1e-7
#define ADAM_RMS   0.2

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static size_t most(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Reserves for the products of one shape: X X^T or X^T X, whichever is smaller, its square, and the
 * product with X. */
static int reserve(struct rm_backend *b, uint32_t rows, uint32_t columns)
{
    const uint32_t k = least(rows, columns);
    int rc = b->ops->reserve(b, rows, columns, k, true);
    if (!rc)
        rc = b->ops->reserve(b, k, k, k, false);
    return rc;
}

int rm_muon_create(struct rm_muon *muon, struct rm_backend *backend, const uint32_t *rows,
                   const uint32_t *columns, uint32_t matrices, struct rm_error *error)
{
    size_t n = 0, k = 0, packed = 0;
    *muon = (struct rm_muon){.backend = backend};
    for (uint32_t i = 0; i < matrices; i++) {
        const uint32_t small = least(rows[i], columns[i]);
        n = most(n, (size_t)rows[i] * columns[i]);
        k = most(k, small);
        packed = most(packed, backend->ops->packed_floats(backend, small, columns[i]));
        packed = most(packed, backend->ops->packed_floats(backend, small, small));
        if (reserve(backend, rows[i], columns[i]))
            return rm_fail(error, -ENOMEM, "muon: no memory for products of %u x %u", rows[i],
                           columns[i]);
    }
    struct {
        float **at;
        size_t floats;
    } buffers[] = {{&muon->x, n},          {&muon->next, n},        {&muon->gram, k * k},
                   {&muon->square, k * k}, {&muon->packed, packed}, {&muon->zeros, k},
                   {&muon->sums, k}};
    for (size_t i = 0; matrices && i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i].floats &&
            !(*buffers[i].at = backend->ops->alloc(backend, buffers[i].floats)))
            return rm_fail(error, -ENOMEM, "muon: no memory for %zu floats", buffers[i].floats);
    return 0;
}

void rm_muon_destroy(struct rm_muon *muon)
{
    float *buffers[] = {muon->x,      muon->next,  muon->gram, muon->square,
                        muon->packed, muon->zeros, muon->sums};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        muon->backend->ops->release(muon->backend, buffers[i]);
    memset(muon, 0, sizeof *muon);
}

/* y(batch, out) = x(batch, in) w(out, in)^T */
static void product(struct rm_muon *muon, const float *x, const float *w, uint32_t batch,
                    uint32_t in, uint32_t out, float *y)
{
    struct rm_backend *b = muon->backend;
    const bool packs = b->ops->packed_floats(b, out, in) > 0;
    if (packs)
        b->ops->pack(b, w, out, in, muon->packed);
    b->ops->linear(b, x, packs ? muon->packed : w, muon->zeros, batch, in, out, RM_ACT_NONE, y);
}

/* X <- a X + (b A + c A A) X for wide X, with A = X X^T; for tall X the same from the other side,
 * where A = X^T X. */
static void iterate(struct rm_muon *muon, uint32_t rows, uint32_t columns)
{
    struct rm_backend *b = muon->backend;
    const uint32_t k = least(rows, columns);
    const size_t n = (size_t)rows * columns, kk = (size_t)k * k;
    const bool wide = rows <= columns;
    if (wide)
        product(muon, muon->x, muon->x, rows, columns, rows, muon->gram);
    else
        b->ops->linear_dw(b, muon->x, muon->x, rows, columns, columns, muon->gram, muon->sums);
    product(muon, muon->gram, muon->gram, k, k, k, muon->square); /* A is its own transpose */
    b->ops->combine(b, COEFF_B, muon->gram, COEFF_C, muon->square, kk, muon->gram);
    if (wide)
        b->ops->linear_dx(b, muon->gram, muon->x, rows, columns, rows, muon->next);
    else
        product(muon, muon->x, muon->gram, rows, columns, columns, muon->next);
    b->ops->combine(b, COEFF_A, muon->x, 1.0f, muon->next, n, muon->x);
}

void rm_muon_orthogonalise(struct rm_muon *muon, uint32_t rows, uint32_t columns)
{
    for (int i = 0; i < ITERATIONS; i++)
        iterate(muon, rows, columns);
}

float rm_muon_reach(uint32_t rows, uint32_t columns)
{
    return (float)(ADAM_RMS * sqrt(rows > columns ? rows : columns));
}

void rm_muon_apply(struct rm_muon *muon, const struct rm_muon_step *step, uint32_t rows,
                   uint32_t columns, const float *grads, float *w, float *m)
{
    struct rm_backend *b = muon->backend;
    const size_t n = (size_t)rows * columns;
    const float mu = step->momentum, fresh = (1.0f - mu) * step->scale;
    b->ops->combine(b, fresh, grads, mu, m, n, m);
    b->ops->combine(b, fresh, grads, mu, m, n, muon->x);
    const double norm = sqrt(b->ops->sum_squares(b, muon->x, n));
    b->ops->combine(b, (float)(1.0 / (norm + TINY)), muon->x, 0.0f, muon->x, n, muon->x);
    rm_muon_orthogonalise(muon, rows, columns);
    const double rate = step->learning_rate;
    const double reach = rate * ADAM_RMS * sqrt(rows > columns ? rows : columns);
    if (step->weight_decay > 0)
        b->ops->combine(b, (float)(-rate * step->weight_decay), w, 1.0f, w, n, w);
    b->ops->combine(b, 1.0f, w, (float)-reach, muon->x, n, w);
}
