#include "learner/backend/product.h"

#include "learner/backend/kernels.h"
#include "learner/backend/pieces.h"

#include <string.h>

/* Size of the buffer for panels that are packed during a product, if that pays: a panel of the
 * smaller levels. */
enum { PACKED_PANEL = 16, PACKED_DEPTH = 256 };

/* Vectors of half a cache line: a row of A that begins within one costs two lines every second
 * time. And rows that lie a large power of two apart share a few places of the caches, so that a
 * panel of them is gone when the next rows of C want it; packing pays with enough of those. */
bool rm_product_wants_panels(const struct rm_kernels *kernels, uint32_t n, uint32_t m, uint32_t k)
{
    if (kernels->product_panel > PACKED_PANEL)
        return m % 64 == 0 && n >= 512 && (size_t)m * k >= 49152;
    return n >= 192 && (m % 8 != 0 || (m % 64 == 0 && (size_t)m * k >= 8192));
}

uint32_t rm_product_panels(const struct rm_kernels *kernels, uint32_t m)
{
    return (m + kernels->product_panel - 1) / kernels->product_panel;
}

size_t rm_product_panel_floats(uint32_t m, uint32_t k)
{
    return (size_t)rm_pad_columns(m) * k;
}

struct rm_product_panel rm_product_panel(const struct rm_kernels *kernels, uint32_t m, uint32_t k,
                                         uint32_t index)
{
    const uint32_t m0 = index * kernels->product_panel;
    const uint32_t columns = rm_least(m - m0, kernels->product_panel);
    return (struct rm_product_panel){m0, columns, rm_pad_columns(columns), (size_t)m0 * k};
}

static void pack_rows(const float *a, size_t lda, uint32_t m, uint32_t k, uint32_t stride,
                      float *to)
{
    if (m == stride) {
        for (uint32_t i = 0; i < k; i++, a += lda, to += stride)
            for (uint32_t j = 0; j < m; j += 16)
                memcpy(to + j, a + j, 16 * sizeof *a); /* a few moves, no call */
        return;
    }
    for (uint32_t i = 0; i < k; i++, a += lda, to += stride) {
        memcpy(to, a, m * sizeof *a);
        for (uint32_t j = m; j < stride; j++)
            to[j] = 0.0f;
    }
}

void rm_product_pack(const struct rm_kernels *kernels, const float *a, uint32_t m, uint32_t k,
                     float *panels)
{
    for (uint32_t i = 0; i < rm_product_panels(kernels, m); i++) {
        const struct rm_product_panel p = rm_product_panel(kernels, m, k, i);
        pack_rows(a + p.m0, m, p.m, k, p.stride, panels + p.offset);
    }
}

/* Rows of A that lie a power of two apart share a few places of the first cache, and a panel of
 * them is gone when the next rows of C want it. */
static bool pays_to_pack(const struct rm_kernels *kernels, const struct rm_product *p)
{
    if (p->panels || kernels->product_panel > PACKED_PANEL || p->n < 128)
        return false;
    return p->lda % 8 != 0 || (p->lda >= 128 && p->k >= 128) ||
           (p->lda >= 64 && p->n >= 192 && p->k >= 512);
}

/* The part of the product from column m0 and row k0 of A on. */
static struct rm_product part_of(const struct rm_kernels *kernels, const struct rm_product *p,
                                 uint32_t m0, uint32_t k0)
{
    struct rm_product q = *p;
    q.m = rm_least(p->m - m0, kernels->product_panel);
    q.k = rm_least(p->k - k0, kernels->product_depth);
    if (p->panels) {
        q.lda = rm_pad_columns(q.m);
        q.a += (size_t)m0 * p->k + k0 * q.lda;
    } else {
        q.a += k0 * p->lda + m0;
    }
    q.b += p->columns ? k0 * p->ldb : k0;
    q.c += m0;
    q.sums = m0 == 0 ? p->sums : NULL;
    q.bias = p->bias && k0 == 0 ? p->bias + m0 : NULL;
    q.relu = p->relu && k0 + q.k == p->k;
    q.add = p->add || k0 > 0;
    return q;
}

static void run(const struct rm_kernels *kernels, const struct rm_product *p, uint32_t m0,
                uint32_t k0)
{
    const struct rm_product q = part_of(kernels, p, m0, k0);
    kernels->product(&q);
}

static void pack_and_run(const struct rm_kernels *kernels, const struct rm_product *p, uint32_t m0,
                         uint32_t k0)
{
    _Alignas(64) float packed[PACKED_PANEL * PACKED_DEPTH];
    struct rm_product q = part_of(kernels, p, m0, k0);
    pack_rows(q.a, p->lda, q.m, q.k, PACKED_PANEL, packed);
    q.a = packed;
    q.lda = PACKED_PANEL;
    kernels->product(&q);
}

/* Computes columns of a single row. Returns their number. */
static uint32_t run_alone(const struct rm_kernels *kernels, const struct rm_product *p)
{
    uint32_t m = 0;
    for (; m + kernels->product_columns <= p->m; m += kernels->product_columns) {
        struct rm_product q = *p;
        q.a += p->panels ? (size_t)m * p->k : m;
        q.lda = p->panels ? kernels->product_panel : p->lda;
        q.c += m;
        q.bias = p->bias ? p->bias + m : NULL;
        kernels->product_alone(&q, p->panels ? (size_t)kernels->product_panel * p->k
                                             : kernels->product_panel);
    }
    return m;
}

/* All of k at once, from column m0 on. Most products are of this form, so the loop is short. */
static void run_panels(const struct rm_kernels *kernels, const struct rm_product *p, uint32_t m0)
{
    const uint32_t panel = kernels->product_panel;
    const size_t step = p->panels ? (size_t)panel * p->k : panel;
    struct rm_product q = part_of(kernels, p, m0, 0);
    for (uint32_t m = m0;; m += panel) {
        kernels->product(&q);
        if (p->m - m <= panel)
            return;
        q.m = rm_least(p->m - m - panel, panel);
        if (p->panels)
            q.lda = rm_pad_columns(q.m);
        q.a += step;
        q.c += panel;
        q.sums = NULL;
        if (q.bias)
            q.bias += panel;
    }
}

void rm_product(const struct rm_kernels *kernels, const struct rm_product *p)
{
    const uint32_t panel = kernels->product_panel, depth = kernels->product_depth;
    const uint32_t first = p->n == 1 && !p->columns ? run_alone(kernels, p) : 0;
    const bool packs = pays_to_pack(kernels, p);
    void (*part)(const struct rm_kernels *, const struct rm_product *, uint32_t, uint32_t) =
        packs ? pack_and_run : run;
    if (!packs && p->k <= depth) {
        if (first < p->m)
            run_panels(kernels, p, first);
        return;
    }
    if (p->columns) {
        for (uint32_t k = 0; k < p->k; k += depth)
            for (uint32_t m = 0; m < p->m; m += panel)
                part(kernels, p, m, k);
        return;
    }
    for (uint32_t m = first; m < p->m; m += panel)
        for (uint32_t k = 0; k < p->k; k += depth)
            part(kernels, p, m, k);
}
