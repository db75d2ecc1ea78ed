/* Operations on rows, cut into fixed groups of rows (or of columns, for sums over rows). */
#include "learner/backend/cpu.h"
#include "learner/backend/pieces.h"

#include <string.h>

#define ROWS_PER_TILE 32u

struct rows_work {
    const struct rm_kernels *k;
    const float *x, *y, *z, *w, *v;
    float *out, *out2, *out3;
    uint32_t rows, n, q, tiles;
    uint32_t per_tile;
};

/* --- layer norm ------------------------------------------------------------------------------ */

static void layer_norm_tile(void *work, uint32_t index)
{
    const struct rows_work *w = work;
    const struct rm_piece s = rm_piece(w->rows, ROWS_PER_TILE, index);
    size_t at = (size_t)s.from * w->n;
    w->k->layer_norm(w->x + at, w->y, w->z, s.n, w->n, w->out + at, w->out2 + s.from,
                     w->out3 + s.from);
}

void rm_cpu_layer_norm(struct rm_backend *b, const float *x, const float *gamma, const float *beta,
                       uint32_t rows, uint32_t n, float *y, float *mean, float *rstd)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct rows_work w = {.k = cpu->kernels,
                          .x = x,
                          .y = gamma,
                          .z = beta,
                          .out = y,
                          .out2 = mean,
                          .out3 = rstd,
                          .rows = rows,
                          .n = n};
    rm_cpu_run(cpu, layer_norm_tile, &w, rm_pieces(rows, ROWS_PER_TILE), (double)rows * n);
}

#define LAYER_NORM_COLUMNS 64u

/* Parameters first, because their gradients read x; dx never is x here. Then rows. */
static void layer_norm_dp_tile(void *work, uint32_t index)
{
    const struct rows_work *w = work;
    const struct rm_piece s = rm_piece(w->n, LAYER_NORM_COLUMNS, index);
    w->k->layer_norm_dp(w->x, w->z, w->w, w->v, w->rows, w->n, s.from, s.from + s.n, w->out2,
                        w->out3);
}

static void layer_norm_dx_tile(void *work, uint32_t index)
{
    const struct rows_work *w = work;
    const struct rm_piece s = rm_piece(w->rows, ROWS_PER_TILE, index);
    size_t at = (size_t)s.from * w->n;
    w->k->layer_norm_dx(w->x + at, w->y, w->z + s.from, w->w + s.from, w->v + at, s.n, w->n,
                        w->out + at);
}

void rm_cpu_layer_norm_dx(struct rm_backend *b, const float *x, const float *gamma,
                          const float *mean, const float *rstd, const float *dy, uint32_t rows,
                          uint32_t n, float *dx, float *dgamma, float *dbeta)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct rows_work w = {.k = cpu->kernels,
                          .x = x,
                          .y = gamma,
                          .z = mean,
                          .w = rstd,
                          .v = dy,
                          .out = dx,
                          .out2 = dgamma,
                          .out3 = dbeta,
                          .rows = rows,
                          .n = n};
    rm_cpu_run(cpu, layer_norm_dp_tile, &w, rm_pieces(n, LAYER_NORM_COLUMNS), (double)rows * n);
    if (dx)
        rm_cpu_run(cpu, layer_norm_dx_tile, &w, rm_pieces(rows, ROWS_PER_TILE), (double)rows * n);
}

/* --- quantiles ------------------------------------------------------------------------------- */

static void cosines_tile(void *work, uint32_t index)
{
    const struct rows_work *w = work;
    const struct rm_piece s = rm_piece(w->rows, ROWS_PER_TILE, index);
    w->k->cosines(w->x + s.from, s.n, w->n, w->out + (size_t)s.from * w->n);
}

void rm_cpu_cosines(struct rm_backend *b, const float *tau, size_t rows, uint32_t n, float *c)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct rows_work w = {.k = cpu->kernels, .x = tau, .out = c, .rows = (uint32_t)rows, .n = n};
    rm_cpu_run(cpu, cosines_tile, &w, rm_pieces(w.rows, ROWS_PER_TILE), 2.0 * (double)rows * n);
}

static void broadcast_tile(void *work, uint32_t index)
{
    const struct rows_work *w = work;
    const struct rm_piece s = rm_piece(w->rows, w->per_tile, index);
    size_t x_at = (size_t)s.from * w->n, z_at = x_at * w->q;
    w->k->broadcast_mul(w->x + x_at, w->y + z_at, s.n, w->q, w->n, w->out + z_at);
}

static void broadcast_dx_tile(void *work, uint32_t index)
{
    const struct rows_work *w = work;
    const struct rm_piece s = rm_piece(w->rows, w->per_tile, index);
    size_t x_at = (size_t)s.from * w->n, z_at = x_at * w->q;
    w->k->broadcast_mul_dx(w->x + x_at, w->y + z_at, w->z + z_at, s.n, w->q, w->n, w->out + x_at,
                           w->out2 + z_at);
}

void rm_cpu_broadcast_mul(struct rm_backend *b, const float *x, const float *phi, uint32_t batch,
                          uint32_t q, uint32_t n, float *z)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct rows_work w = {.k = cpu->kernels,
                          .x = x,
                          .y = phi,
                          .out = z,
                          .rows = batch,
                          .n = n,
                          .q = q,
                          .per_tile = q < ROWS_PER_TILE ? ROWS_PER_TILE / q : 1};
    rm_cpu_run(cpu, broadcast_tile, &w, rm_pieces(batch, w.per_tile), (double)batch * q * n);
}

void rm_cpu_broadcast_mul_dx(struct rm_backend *b, const float *x, const float *phi,
                             const float *dz, uint32_t batch, uint32_t q, uint32_t n, float *dx,
                             float *dphi)
{
    struct rm_cpu *cpu = rm_cpu_of(b);
    struct rows_work w = {.k = cpu->kernels,
                          .x = x,
                          .y = phi,
                          .z = dz,
                          .out = dx,
                          .out2 = dphi,
                          .rows = batch,
                          .n = n,
                          .q = q,
                          .per_tile = q < ROWS_PER_TILE ? ROWS_PER_TILE / q : 1};
    rm_cpu_run(cpu, broadcast_dx_tile, &w, rm_pieces(batch, w.per_tile), (double)batch * q * n);
}

/* --- heads and noise ------------------------------------------------------------------------- */

void rm_cpu_dueling(struct rm_backend *b, const float *in, uint32_t rows, uint32_t actions,
                    uint32_t k, float *q)
{
    rm_cpu_of(b)->kernels->dueling(in, rows, actions, k, q);
}

void rm_cpu_dueling_dx(struct rm_backend *b, const float *dq, uint32_t rows, uint32_t actions,
                       uint32_t k, float *din)
{
    rm_cpu_of(b)->kernels->dueling_dx(dq, rows, actions, k, din);
}

void rm_cpu_noisy_factors(struct rm_backend *b, const float *eps, uint32_t in, uint32_t out,
                          float *eps_w, float *eps_b)
{
    const struct rm_kernels *k = rm_cpu_of(b)->kernels;
    k->signed_root(eps + in, out, eps_b);
    k->noisy_outer(eps, eps + in, in, 0, out, eps_w);
}

/* --- rows moved about ------------------------------------------------------------------------ */

/* Only copies, which the speed of memory limits, not the number of threads. */
void rm_cpu_gather(struct rm_backend *b, const void *x, const uint32_t *index, uint32_t rows,
                   uint32_t n, void *y)
{
    const size_t bytes = n * sizeof(float);
    (void)b;
    for (uint32_t r = 0; r < rows; r++)
        memcpy((char *)y + r * bytes, (const char *)x + index[r] * bytes, bytes);
}

void rm_cpu_normalize(struct rm_backend *b, const float *x, const float *mean, const float *scale,
                      float bound, size_t rows, uint32_t n, float *y)
{
    rm_cpu_of(b)->kernels->normalize(x, mean, scale, bound, rows, n, y);
}

void rm_cpu_join(struct rm_backend *b, const float *x, const float *y, size_t rows, uint32_t n,
                 uint32_t m, float *z)
{
    (void)b;
    for (size_t r = 0; r < rows; r++, x += n, y += m, z += n + m) {
        memcpy(z, x, n * sizeof *z);
        memcpy(z + n, y, m * sizeof *z);
    }
}

void rm_cpu_split(struct rm_backend *b, const float *z, size_t rows, uint32_t n, uint32_t m,
                  float *x, float *y)
{
    const size_t width = (size_t)n + m;
    (void)b;
    for (size_t r = 0; x && r < rows; r++)
        memcpy(x + r * n, z + r * width, n * sizeof *z);
    for (size_t r = 0; y && r < rows; r++)
        memcpy(y + r * m, z + r * width + n, m * sizeof *z);
}
