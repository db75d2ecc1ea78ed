#include "learner/backend/direct_plan.h"

#include "learner/backend/direct.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TILE_M 64u
#define TILE_N 32u

struct rm_direct {
    struct rm_direct_plan **plans;
    uint32_t count;
};

int rm_direct_create(struct rm_direct **direct)
{
    *direct = calloc(1, sizeof **direct);
    return *direct ? 0 : -ENOMEM;
}

void rm_direct_destroy(struct rm_direct *direct)
{
    if (!direct)
        return;
    for (uint32_t i = 0; i < direct->count; i++)
        free(direct->plans[i]);
    free(direct->plans);
    free(direct);
}

bool rm_direct_suits(const struct rm_conv *c)
{
    return c->stride == 1 && c->padding < c->kernel;
}

/* Tiles of about equal size, at most `most`. */
static uint32_t tile_of(uint32_t n, uint32_t most)
{
    uint32_t tiles = (n + most - 1) / most;
    return (n + tiles - 1) / tiles;
}

static uint32_t last_of(uint32_t n, uint32_t tile)
{
    return n % tile ? n % tile : tile;
}

static struct rm_direct_product product(uint32_t m, uint32_t n, uint32_t k, uint32_t lda,
                                        uint32_t ldb, uint32_t ldc, bool outer)
{
    struct rm_direct_product p = {.m = m,
                                  .n = n,
                                  .k = k,
                                  .tile_m = m < TILE_M ? m : TILE_M,
                                  .tile_n = tile_of(n, TILE_N),
                                  .lda = (int)lda,
                                  .ldb = (int)ldb,
                                  .ldc = (int)ldc,
                                  .outer = outer};
    const float one = 1.0f;
    int flags = outer ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
    int prefetch = LIBXSMM_GEMM_PREFETCH_NONE;
    for (int adds = 0; adds < 2; adds++)
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < 2; j++) {
                const float beta = (float)adds;
                int rows = (int)(i ? last_of(m, p.tile_m) : p.tile_m);
                int columns = (int)(j ? last_of(n, p.tile_n) : p.tile_n);
                p.kernel[adds][i][j] = libxsmm_smmdispatch(rows, columns, (int)k, &p.lda, &p.ldb,
                                                           &p.ldc, &one, &beta, &flags, &prefetch);
            }
    return p;
}

static struct rm_direct_plan *make_plan(const struct rm_conv *c)
{
    struct rm_direct_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return NULL;
    uint32_t in = c->channels, out = c->out_channels;
    uint32_t places = c->out_height * c->out_width, wide = c->kernel * in, back = c->kernel * out;
    plan->conv = *c;
    plan->forward = product(out, places, wide, out, wide, out, false);
    plan->dx = product(in, c->height * c->width, back, in, back, in, false);
    plan->dw = product(wide, out, places, wide, out, wide, true);
    return plan;
}

static bool same(const struct rm_conv *a, const struct rm_conv *b)
{
    return a->channels == b->channels && a->height == b->height && a->width == b->width &&
           a->kernel == b->kernel && a->stride == b->stride && a->padding == b->padding &&
           a->out_channels == b->out_channels;
}

const struct rm_direct_plan *rm_direct_plan(struct rm_direct *direct, const struct rm_conv *c)
{
    for (uint32_t i = 0; i < direct->count; i++)
        if (same(&direct->plans[i]->conv, c))
            return direct->plans[i];
    struct rm_direct_plan **more =
        reallocarray(direct->plans, direct->count + 1, sizeof(struct rm_direct_plan *));
    if (!more)
        return NULL;
    direct->plans = more;
    more[direct->count] = make_plan(c);
    return more[direct->count] ? more[direct->count++] : NULL;
}

/* The same where libxsmm has no kernel. */
static void run_plainly(const struct rm_direct_product *p, bool adds, uint32_t m, uint32_t n,
                        const float *a, const float *b, float *c)
{
    for (uint32_t j = 0; j < n; j++, c += p->ldc) {
        if (!adds)
            memset(c, 0, m * sizeof *c);
        for (uint32_t k = 0; k < p->k; k++) {
            float x =
                p->outer ? b[(size_t)k * (size_t)p->ldb + j] : b[(size_t)j * (size_t)p->ldb + k];
            for (uint32_t i = 0; i < m; i++)
                c[i] += a[(size_t)k * (size_t)p->lda + i] * x;
        }
    }
}

void rm_direct_product(const struct rm_direct_product *p, bool adds, const float *a, const float *b,
                       float *c)
{
    for (uint32_t i = 0; i < p->m; i += p->tile_m)
        for (uint32_t j = 0; j < p->n; j += p->tile_n) {
            bool last_i = i + p->tile_m >= p->m, last_j = j + p->tile_n >= p->n;
            libxsmm_smmfunction kernel = p->kernel[adds][last_i][last_j];
            const float *bj = b + (p->outer ? j : (size_t)j * (size_t)p->ldb);
            float *cj = c + (size_t)j * (size_t)p->ldc + i;
            if (kernel)
                kernel(a + i, bj, cj);
            else
                run_plainly(p, adds, last_i ? p->m - i : p->tile_m, last_j ? p->n - j : p->tile_n,
                            a + i, bj, cj);
        }
}
