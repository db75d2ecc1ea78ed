/* Products in bf16 on the CPU: what is rounded and how, products of rounded numbers against double,
 * operations and networks against float32, and what a host without the instruction does. */
#include "learner/backend/bf16_kernels.h"
#include "learner/backend/kernels.h"
#include "shm/base/float_word.h"
#include "tests/support/net_parity.h"
#include "tests/support/op_cases.h"
#include "tests/support/random_net.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rm_backend *plain, *rounded;

static int open_backends(void **state)
{
    struct rm_error error;
    (void)state;
    assert_int_equal(rm_backend_cpu_create(&plain, 1, "auto", &error), 0);
    return rm_backend_cpu_create_for(&rounded, 1, "auto", RM_COMPUTE_BF16, &error);
}

static int close_backends(void **state)
{
    (void)state;
    rm_backend_destroy(plain);
    rm_backend_destroy(rounded);
    return 0;
}

/* --- rounding -------------------------------------------------------------------------------- */

/* To the nearest, ties to even, in the upper half of a float's bits. */
static uint16_t nearest(float x)
{
    const uint32_t bits = (uint32_t)rm_word_of_float(x), kept = bits >> 16, rest = bits & 0xffff;
    if (isnan(x))
        return (uint16_t)(kept | 0x40);
    if ((bits & 0x7f800000) == 0) /* denormal */
        return (uint16_t)(kept & 0x8000);
    return (uint16_t)(kept + (rest > 0x8000 || (rest == 0x8000 && kept % 2)));
}

static double rounded_of(float x)
{
    return rm_float_of_word((int32_t)((uint32_t)nearest(x) << 16));
}

/* Numbers that ties, carries and what is no number fall among. */
static float drawn(struct rm_rng *rng)
{
    static const uint32_t special[] = {0x3f808000, 0x3f818000, 0x3f808001, 0x3f817fff,
                                       0x3fffffff, 0x7f7fffff, 0x7f800000, 0xff800000,
                                       0x7f800001, 0x7fc00000, 0x00000001, 0x807fffff,
                                       0x00800000, 0x80000000, 0x7f7f8000, 0xbf7f8000};
    const uint32_t which = rm_rng_below(rng, 32);
    if (which < sizeof special / sizeof *special)
        return rm_float_of_word((int32_t)special[which]);
    return ldexpf(rm_rng_float(rng) - 0.5f, (int)rm_rng_below(rng, 60) - 30);
}

#define WIDTH 150u
#define ROWS  7u

static void rounds_to_the_nearest(void **state)
{
    float x[ROWS][WIDTH];
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    (void)state;
    for (uint32_t n = 1; n <= WIDTH; n++) {
        uint32_t words[(ROWS + 1) * (WIDTH / 2)], columns[(ROWS + 1) / 2][WIDTH + 16];
        const size_t ld = (n + 1) / 2;
        for (uint32_t i = 0; i < ROWS * WIDTH; i++)
            x[i / WIDTH][i % WIDTH] = drawn(&rng);
        memset(words, 0xaa, sizeof words);
        rm_bf16_round(x[0], WIDTH, ROWS, n, words, ld);
        rm_bf16_round_columns(x[0], WIDTH, ROWS, n, columns[0], WIDTH + 16);
        for (uint32_t r = 0; r < ROWS; r++)
            for (uint32_t i = 0; i < n; i++) {
                const uint32_t want = nearest(x[r][i]);
                const uint32_t word = words[r * ld + i / 2];
                const uint32_t other = columns[r / 2][i];
                assert_int_equal(word >> 16 * (i % 2) & 0xffff, want);
                assert_int_equal(other >> 16 * (r % 2) & 0xffff, want);
                if (i + 1 == n && n % 2)
                    assert_int_equal(word >> 16, 0);
                if (r + 1 == ROWS)
                    assert_int_equal(other >> 16, 0);
            }
        assert_int_equal(words[ROWS * ld], 0xaaaaaaaa); /* and not a word more */
    }
}

/* --- products -------------------------------------------------------------------------------- */

static float *normals(uint32_t a, size_t n)
{
    float *p = plain->ops->alloc(plain, n + 1);
    assert_non_null(p);
    plain->ops->normals(plain, 7, RM_STREAM_TEST, a, 0, n, p);
    return p;
}

/* Sums of `n` products of rounded numbers, x and w so far apart. */
static void close_to(const char *what, float got, const float *x, size_t x_apart, const float *w,
                     size_t w_apart, uint32_t n, double start)
{
    double sum = start, size = fabs(start);
    for (uint32_t k = 0; k < n; k++) {
        const double product = rounded_of(x[k * x_apart]) * rounded_of(w[k * w_apart]);
        sum += product;
        size += fabs(product);
    }
    if (!(fabs(got - sum) <= 3e-7 * size + 1e-30))
        fail_msg("%s of %u: %.9g, not %.9g", what, n, (double)got, sum);
}

static const struct shape {
    uint32_t rows, in, out;
} shapes[] = {{1, 17, 17},   {2, 18, 64},    {3, 64, 65},   {5, 33, 79},
              {6, 128, 512}, {7, 255, 100},  {31, 257, 70}, {32, 513, 48},
              {33, 96, 257}, {65, 300, 300}, {257, 40, 33}, {129, 129, 130}};

static void products_of_rounded_numbers(void **state)
{
    const struct rm_backend_ops *ops = rounded->ops;
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const struct shape s = shapes[i];
        const size_t weights = (size_t)s.in * s.out;
        float *x = normals(1, (size_t)s.rows * s.in), *dy = normals(2, (size_t)s.rows * s.out);
        float *w = normals(3, weights), *bias = normals(4, s.out), *db = normals(5, s.out);
        float *y = normals(6, (size_t)s.rows * s.out), *dx = normals(7, (size_t)s.rows * s.in);
        float *dw = normals(8, weights), *had = normals(8, weights), *again = normals(9, weights);
        float *wt = normals(10, ops->packed_floats(rounded, s.out, s.in));
        float *wt_dx = normals(11, ops->packed_dx_floats(rounded, s.out, s.in));
        float *same = normals(12, (size_t)s.rows * s.in);
        assert_int_equal(ops->reserve(rounded, s.rows, s.in, s.out, true), 0);
        ops->pack(rounded, w, s.out, s.in, wt);
        ops->linear(rounded, x, wt, bias, s.rows, s.in, s.out, RM_ACT_NONE, y);
        ops->linear_dx(rounded, dy, w, s.rows, s.in, s.out, dx);
        ops->pack_dx(rounded, w, s.out, s.in, wt_dx);
        ops->linear_dx_packed(rounded, dy, wt_dx, s.rows, s.in, s.out, same);
        assert_memory_equal(dx, same, sizeof *dx * s.rows * s.in);
        ops->linear_dw_add(rounded, dy, x, s.rows, s.in, s.out, dw, NULL);
        ops->linear_dw(rounded, dy, x, s.rows, s.in, s.out, again, db);
        for (uint32_t r = 0; r < s.rows; r++) {
            for (uint32_t o = 0; o < s.out; o++)
                close_to("y", y[(size_t)r * s.out + o], x + (size_t)r * s.in, 1,
                         w + (size_t)o * s.in, 1, s.in, bias[o]);
            for (uint32_t k = 0; k < s.in; k++)
                close_to("dx", dx[(size_t)r * s.in + k], dy + (size_t)r * s.out, 1, w + k, s.in,
                         s.out, 0.0);
        }
        for (uint32_t o = 0; o < s.out; o++)
            for (uint32_t k = 0; k < s.in; k++) {
                const size_t at = (size_t)o * s.in + k;
                close_to("dw", dw[at], x + k, s.in, dy + o, s.out, s.rows, had[at]);
                close_to("dw", again[at], x + k, s.in, dy + o, s.out, s.rows, 0.0);
            }
        float *owned[] = {x, dy, w, bias, db, y, dx, dw, had, again, wt, wt_dx, same};
        for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
            plain->ops->release(plain, owned[k]);
    }
}

/* Of products: each is close to the exact sums. */
static void both_instructions(void **state)
{
    static _Alignas(64) uint32_t a[48 * 64], b[40 * 48];
    static float x[40 * 96], w[96 * 64], bias[64], c[40 * 64];
    struct rm_rng rng = rm_rng_at(2, RM_STREAM_TEST, 0, 0);
    (void)state;
    if (!rm_bf16_tiles())
        print_message("one of them: this processor has no AMX\n");
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        w[i] = rm_rng_float(&rng) - 0.5f;
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        x[i] = rm_rng_float(&rng) - 0.5f;
    for (uint32_t i = 0; i < 400; i++) {
        const uint32_t rows = 1 + rm_rng_below(&rng, 40), columns = 1 + rm_rng_below(&rng, 64);
        const uint32_t n = 1 + rm_rng_below(&rng, 96);
        struct rm_bf16_part part = {.a = a,
                                    .b = b,
                                    .c = c,
                                    .bias = i % 3 ? NULL : bias,
                                    .lda = 64,
                                    .ldb = 48,
                                    .ldc = 64,
                                    .rows = rows,
                                    .columns = columns,
                                    .pairs = (n + 1) / 2,
                                    .add = i % 3 == 1,
                                    .tiles = i % 2 && rm_bf16_tiles()};
        memset(a, 0, sizeof a);
        memset(b, 0, sizeof b);
        rm_bf16_round(x, 96, rows, n, b, 48);
        rm_bf16_round_columns(w, 64, n, columns, a, 64);
        for (uint32_t k = 0; k < 64; k++)
            bias[k] = c[k] = (float)k / 64;
        for (uint32_t k = 64; k < sizeof c / sizeof *c; k++)
            c[k] = c[k % 64];
        rm_bf16_rows(&part);
        for (uint32_t k = 0; k < sizeof c / sizeof *c; k++) {
            const uint32_t r = k / 64, o = k % 64;
            if (r < rows && o < columns)
                close_to("c", c[k], x + (size_t)r * 96, 1, w + o, 64, n,
                         i % 3 < 2 ? o / 64.0 : 0.0);
            else
                assert_true(c[k] == (float)o / 64); /* nothing beside it is written */
        }
    }
}

/* Everything but products is what it is in float32, to the bit. */
static void operations(const struct op_case *cases, size_t count)
{
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++) {
        const struct op_result r = op_check(&cases[i], plain, rounded, 8, 20000, i + 1);
        const double allowed = cases[i].product ? op_tolerance(&cases[i], RM_COMPUTE_BF16) : 0.0;
        if (!r.failed && r.deviation <= allowed)
            continue;
        print_error("%s: deviates by %g%s\n", cases[i].name, r.deviation,
                    r.failed ? ", failed" : "");
        wrong++;
    }
    assert_int_equal(wrong, 0);
}

static void operations_beside_float32(void **state)
{
    (void)state;
    operations(op_cases, op_case_count);
    operations(op_sequence_cases, op_sequence_case_count);
}

/* Up to 16 inputs or outputs: float32 to the bit, packed or not. */
static void narrow_layers_are_float32(void **state)
{
    static const struct shape narrow[] = {{33, 4, 128}, {33, 16, 64}, {33, 128, 16}, {33, 200, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        const struct shape s = narrow[i];
        const size_t floats[] = {(size_t)s.rows * s.out, (size_t)s.rows * s.in,
                                 (size_t)s.in * s.out};
        float *x = normals(1, floats[1]), *dy = normals(2, floats[0]), *w = normals(3, floats[2]);
        float *bias = normals(4, s.out), *got[2][4];
        struct rm_backend *const both[] = {plain, rounded};
        for (size_t k = 0; k < 2; k++) {
            const struct rm_backend_ops *ops = both[k]->ops;
            float *wt = normals(5, ops->packed_floats(both[k], s.out, s.in));
            for (uint32_t j = 0; j < 4; j++)
                got[k][j] = normals(6 + j, j < 3 ? floats[j] : s.out);
            assert_int_equal(ops->packed_dx_floats(both[k], s.out, s.in), 0);
            ops->pack(both[k], w, s.out, s.in, wt);
            ops->linear(both[k], x, wt, bias, s.rows, s.in, s.out, RM_ACT_TANH, got[k][0]);
            ops->linear_dx(both[k], dy, w, s.rows, s.in, s.out, got[k][1]);
            ops->linear_dw(both[k], dy, x, s.rows, s.in, s.out, got[k][2], got[k][3]);
            plain->ops->release(plain, wt);
        }
        for (uint32_t j = 0; j < 4; j++) {
            assert_memory_equal(got[0][j], got[1][j], sizeof(float) * (j < 3 ? floats[j] : s.out));
            plain->ops->release(plain, got[0][j]);
            plain->ops->release(plain, got[1][j]);
        }
        float *owned[] = {x, dy, w, bias};
        for (size_t k = 0; k < 4; k++)
            plain->ops->release(plain, owned[k]);
    }
}

/* --- networks -------------------------------------------------------------------------------- */

static bool parity(const struct named_net *of, uint64_t seed, bool *differs)
{
    const struct net_parity r = net_check(of, plain, rounded, RM_COMPUTE_BF16, seed);
    *differs = *differs || r.gradient > 1e-4;
    if (!r.failed && r.captured && r.result <= r.result_allowed && r.gradient <= r.gradient_allowed)
        return true;
    print_error("%s: results deviate by %g of %g, gradients by %g of %g%s%s\n", of->name, r.result,
                r.result_allowed, r.gradient, r.gradient_allowed,
                r.captured ? "" : ", other bits the second time", r.failed ? ", failed" : "");
    return false;
}

static void networks_beside_float32(void **state)
{
    size_t wrong = 0;
    bool differs = false;
    (void)state;
    for (size_t i = 0; i < test_net_count; i++)
        wrong += !parity(&test_nets[i], i, &differs);
    for (uint32_t i = 0; i < 64; i++) {
        struct random_net net;
        random_net_draw(i, &net);
        wrong += !parity(&net.of, i, &differs);
    }
    assert_int_equal(wrong, 0);
    assert_true(differs); /* or nothing was rounded at all */
}

/* --- where there is none --------------------------------------------------------------------- */

/* Held to an older level a host computes as one of that level: in float32, and says so. */
static void float32_takes_its_place(void **state)
{
    static const char *const isas[] = {"x86-64-v2", "x86-64-v3"};
    (void)state;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        struct rm_backend *b;
        struct rm_error error;
        if (rm_backend_cpu_create_for(&b, 1, isas[i], RM_COMPUTE_BF16, &error))
            continue;
        assert_false(rm_backend_cpu_has_bf16(isas[i]));
        assert_null(strstr(b->description, "bf16"));
        assert_int_equal(b->ops->packed_dx_floats(b, 128, 128), 0);
        rm_backend_destroy(b);
    }
}

static void others_are_float32(void **state)
{
    static const enum rm_compute others[] = {RM_COMPUTE_FP32, RM_COMPUTE_TF32, RM_COMPUTE_FP16};
    struct rm_error error;
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct rm_backend *b;
        assert_int_equal(rm_backend_cpu_create_for(&b, 1, "auto", others[i], &error), 0);
        assert_int_equal(b->ops->packed_dx_floats(b, 128, 128), 0);
        rm_backend_destroy(b);
    }
}

static void description_tells(void **state)
{
    (void)state;
    assert_true(rm_backend_cpu_has_bf16("auto"));
    assert_non_null(strstr(rounded->description, "bf16 products"));
    assert_null(strstr(plain->description, "bf16"));
}

int main(void)
{
    const struct CMUnitTest everywhere[] = {
        cmocka_unit_test(float32_takes_its_place),
        cmocka_unit_test(others_are_float32),
    };
    const struct CMUnitTest with_it[] = {
        cmocka_unit_test(description_tells),           cmocka_unit_test(rounds_to_the_nearest),
        cmocka_unit_test(products_of_rounded_numbers), cmocka_unit_test(both_instructions),
        cmocka_unit_test(narrow_layers_are_float32),   cmocka_unit_test(operations_beside_float32),
        cmocka_unit_test(networks_beside_float32),
    };
    int failed = cmocka_run_group_tests(everywhere, NULL, NULL);
    if (failed || rm_backend_cpu_has_bf16("auto"))
        return failed + cmocka_run_group_tests(with_it, open_backends, close_backends);
    printf("skipped: there is no AVX512_BF16 here\n");
    return 77;
}
