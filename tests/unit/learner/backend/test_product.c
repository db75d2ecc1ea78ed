/* Products against one chain of multiply-adds for every element, to the bit: for every shape of
 * tile's end, either form of B, packed or not, alone, added, with
 * bias and ReLU; and sums over columns. Nothing outside of
 * C is written, and nothing outside of A, B and the bias is read. */
#include "learner/backend/kernels.h"
#include "learner/backend/product.h"
#include "shm/base/float_word.h"
#include "shm/base/rng.h"
#include "tests/support/effort.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 1 << 19, MARGIN = 3 };

/* Numbers that end where memory does, so that a read or write past them is caught. */
struct ending {
    char *map;
    size_t bytes;
};

static struct ending make_ending(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct ending e = {NULL, MOST * sizeof(float) + page};
    e.map = mmap(NULL, e.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                 /* cppcheck-suppress invalidFunctionArg ; -1 is for no file */
                 -1, 0);
    assert_true(e.map != MAP_FAILED);
    assert_int_equal(mprotect(e.map + e.bytes - page, page, PROT_NONE), 0);
    e.bytes -= page;
    return e;
}

static float *last_of(const struct ending *e, size_t floats)
{
    assert_true(floats <= MOST);
    return (float *)(void *)(e->map + e->bytes) - floats;
}

static void fill(float *x, size_t n, uint32_t a)
{
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, a, 0);
    for (size_t i = 0; i < n; i++)
        x[i] = rm_rng_float(&rng) - 0.5f;
}

struct scene {
    const struct rm_kernels *kernels;
    struct ending a, b, bias, sums, c;
    bool fused;
};

static float chain(const struct scene *s, const struct rm_product *p, const float *a, float from,
                   uint32_t j, uint32_t i)
{
    float sum = from;
    for (uint32_t k = 0; k < p->k; k++) {
        const float y = p->b[p->columns ? k * p->ldb + j : j * p->ldb + k], x = a[k * p->lda + i];
        if (s->fused) {
            sum = fmaf(x, y, sum);
        } else {
            volatile float product = x * y;
            sum = product + sum;
        }
    }
    return p->relu && sum < 0.0f ? 0.0f : sum;
}

static float column(const struct rm_product *p, float from, uint32_t j)
{
    volatile float sum = from;
    for (uint32_t k = 0; k < p->k; k++)
        sum = sum + p->b[k * p->ldb + j];
    return sum;
}

static void compare(const struct scene *s, uint32_t n, uint32_t m, uint32_t k, uint32_t form)
{
    struct rm_product p = {.n = n,
                           .m = m,
                           .k = k,
                           .columns = form & 1,
                           .panels = form & 2,
                           .add = form & 4,
                           .relu = form & 8};
    const uint32_t wider = form & 16 ? MARGIN : 0; /* rows are those of wider matrices */
    p.lda = m + wider;
    p.ldb = (p.columns ? n : k) + wider;
    p.ldc = m + wider;
    const size_t b_rows = p.columns ? k : n, b_width = p.columns ? n : k;
    float *a = last_of(&s->a, (k - 1) * p.lda + m),
          *b = last_of(&s->b, (b_rows - 1) * p.ldb + b_width);
    float *c = last_of(&s->c, (n - 1) * p.ldc + m), *bias = last_of(&s->bias, m);
    float *sums = last_of(&s->sums, n), summed[256];
    float *had = malloc(((n - 1) * p.ldc + m) * sizeof *had), *packed = NULL;
    assert_non_null(had);
    fill(a, (k - 1) * p.lda + m, 1 + n);
    fill(b, (b_rows - 1) * p.ldb + b_width, 2 + m);
    fill(c, (n - 1) * p.ldc + m, 3 + k);
    fill(bias, m, 4);
    memcpy(had, c, ((n - 1) * p.ldc + m) * sizeof *had);
    p.a = a;
    p.b = b;
    p.c = c;
    p.bias = p.add ? NULL : bias;
    p.sums = p.columns && (n + m) % 2 ? sums : NULL;
    fill(sums, n, 5);
    memcpy(summed, sums, n * sizeof *sums);
    if (p.panels) {
        packed = aligned_alloc(64, (rm_product_panel_floats(m, k) * sizeof *packed + 63) / 64 * 64);
        assert_non_null(packed);
        assert_int_equal(p.lda, m);
        rm_product_pack(s->kernels, a, m, k, packed);
        p.a = packed;
    }
    rm_product(s->kernels, &p);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t i = 0; i < p.ldc && j * p.ldc + i < (n - 1) * p.ldc + m; i++) {
            const size_t at = j * p.ldc + i;
            const float want = i < m ? chain(s, &p, a, p.add ? had[at] : bias[i], j, i) : had[at];
            if (rm_word_of_float(c[at]) != rm_word_of_float(want))
                fail_msg("%s, %ux%ux%u, form %u: (%u, %u) is %a, wants %a", s->kernels->isa, n, m,
                         k, form, j, i, (double)c[at], (double)want);
        }
    for (uint32_t j = 0; j < n; j++) {
        const float want = p.sums ? column(&p, p.add ? summed[j] : 0.0f, j) : summed[j];
        if (rm_word_of_float(sums[j]) != rm_word_of_float(want))
            fail_msg("%s, %ux%ux%u, form %u: sum %u is %a, wants %a", s->kernels->isa, n, m, k,
                     form, j, (double)sums[j], (double)want);
    }
    free(packed);
    free(had);
}

static const struct rm_kernels *const levels[] = {&rm_isa_v2_kernels, &rm_isa_v3_kernels,
                                                  &rm_isa_v4_kernels};

static bool is_here(size_t level)
{
    struct rm_backend *b;
    struct rm_error ignored;
    if (rm_backend_cpu_create(&b, 1, levels[level]->isa, &ignored))
        return false;
    rm_backend_destroy(b);
    return true;
}

typedef void (*look_fn)(const struct scene *s);

static void on_levels(look_fn look)
{
    struct scene s;
    struct ending *all[] = {&s.a, &s.b, &s.bias, &s.sums, &s.c};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        *all[i] = make_ending();
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        s.kernels = levels[l];
        s.fused = l > 0;
        if (is_here(l))
            look(&s);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        munmap(all[i]->map, all[i]->bytes + (size_t)sysconf(_SC_PAGESIZE));
}

/* Packed matrices have no wider ones around them. */
static bool makes_sense(uint32_t form)
{
    return !((form & 2) && (form & 16));
}

static void small(const struct scene *s)
{
    static const uint32_t depths[] = {1, 2, 7};
    const uint32_t step = rm_test_effort(1, 3);
    for (uint32_t form = 0; form < 32; form++)
        for (uint32_t n = 1; n <= 14 && makes_sense(form); n += step)
            for (uint32_t m = 1; m <= 70; m += m < 18 ? step : 15)
                for (size_t k = 0; k < sizeof depths / sizeof depths[0]; k++)
                    compare(s, n, m, depths[k], form);
}

static void every_small_shape(void **state)
{
    (void)state;
    on_levels(small);
}

/* More than one panel, more than is taken of k at once, and rows that are packed on the way. */
static void large(const struct scene *s)
{
    static const uint32_t shapes[][3] = {{50, 250, 64},  {128, 128, 300}, {130, 136, 520},
                                         {17, 131, 600}, {1, 250, 625},   {200, 64, 1025},
                                         {64, 256, 256}};
    for (uint32_t form = 0; form < 32; form++)
        for (size_t i = form % rm_test_effort(1, 4);
             i < sizeof shapes / sizeof shapes[0] && makes_sense(form); i += rm_test_effort(1, 4))
            compare(s, shapes[i][0], shapes[i][1], shapes[i][2], form);
}

static void large_shapes(void **state)
{
    (void)state;
    on_levels(large);
}

/* A broken update must show: a NaN goes through ReLU. */
static void with_nan(const struct scene *s)
{
    for (uint32_t m = 1; m <= 65; m += 16) {
        float *a = last_of(&s->a, m), *b = last_of(&s->b, 1), *c = last_of(&s->c, m);
        fill(a, m, 1);
        a[m - 1] = NAN;
        b[0] = 1.0f;
        rm_product(s->kernels, &(struct rm_product){.a = a,
                                                    .b = b,
                                                    .c = c,
                                                    .lda = m,
                                                    .ldb = 1,
                                                    .ldc = m,
                                                    .n = 1,
                                                    .m = m,
                                                    .k = 1,
                                                    .relu = true});
        assert_true(isnan(c[m - 1]));
        for (uint32_t i = 0; i + 1 < m; i++)
            assert_true(c[i] >= 0.0f);
    }
}

static void nan_goes_through(void **state)
{
    (void)state;
    on_levels(with_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_small_shape),
                                       cmocka_unit_test(large_shapes),
                                       cmocka_unit_test(nan_goes_through)};
    return cmocka_run_group_tests_name("product", tests, NULL, NULL);
}
