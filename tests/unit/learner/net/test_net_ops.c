/* The backend's operations that no network test looks at closely: optimizer, sums, elementary
 * functions over their whole range, what happens to NaN. */
#include "tests/support/levels.h"

#include "shm/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_backend *backend_of(void **state)
{
    return ((struct level_state *)*state)->backend;
}

static void adam_against_double(void **state)
{
    struct rm_backend *b = backend_of(state);
    enum { N = 10007, STEPS = 200 };
    static float p[N], m[N], v[N], g[N];
    static double pd[N], md[N], vd[N];
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    for (int i = 0; i < N; i++) {
        pd[i] = p[i] = rm_rng_float(&rng) - 0.5f;
        m[i] = v[i] = 0;
        md[i] = vd[i] = 0;
    }
    const double lr = 2.5e-4, b1 = 0.9, b2 = 0.999, eps = 1e-8;
    for (int t = 1; t <= STEPS; t++) {
        for (int i = 0; i < N; i++)
            g[i] = (rm_rng_float(&rng) - 0.4f) * (i % 7 == 0 ? 1e-6f : 1.0f);
        struct rm_adam adam = {(float)lr, (float)b1, (float)b2, (float)eps, (uint64_t)t, 0};
        b->ops->adam(b, &adam, 0.25f, g, N, p, m, v);
        for (int i = 0; i < N; i++) {
            double d = 0.25 * g[i];
            md[i] = b1 * md[i] + (1 - b1) * d;
            vd[i] = b2 * vd[i] + (1 - b2) * d * d;
            pd[i] -= lr * (md[i] / (1 - pow(b1, t))) / (sqrt(vd[i] / (1 - pow(b2, t))) + eps);
        }
    }
    double error = 0, size = 0;
    for (int i = 0; i < N; i++) {
        error += (p[i] - pd[i]) * (p[i] - pd[i]);
        size += pd[i] * pd[i];
    }
    assert_true(sqrt(error / size) < 1e-5);
}

static void lerp_moves(void **state)
{
    struct rm_backend *b = backend_of(state);
    float p[3] = {1, 2, -4}, t[3] = {0, 2, 4};
    b->ops->lerp(b, 0.25f, p, 3, t);
    assert_true(t[0] == 0.25f && t[1] == 2 && t[2] == 2);
    b->ops->lerp(b, 1.0f, p, 3, t);
    assert_memory_equal(p, t, sizeof p);
}

/* Adds to a sum with the rounding errors that it left (Kahan 1965). */
static void add(double *sum, double *rest, double value)
{
    const double corrected = value - *rest, next = *sum + corrected;
    *rest = (next - *sum) - corrected;
    *sum = next;
}

static void sums(void **state)
{
    struct rm_backend *b = backend_of(state);
    size_t n = 1000003;
    float *x = b->ops->alloc(b, n), *y = b->ops->alloc(b, n);
    b->ops->normals(b, 1, RM_STREAM_TEST, 0, 0, n, x);
    b->ops->normals(b, 1, RM_STREAM_TEST, 1, 0, n, y);
    double squares = 0, squares_rest = 0, differences = 0, differences_rest = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)x[i] - y[i];
        add(&squares, &squares_rest, (double)x[i] * x[i]);
        add(&differences, &differences_rest, d * d);
    }
    assert_true(fabs(b->ops->sum_squares(b, x, n) / squares - 1) < 1e-13);
    double change[2];
    b->ops->change(b, y, x, n, change);
    assert_true(fabs(change[0] / differences - 1) < 1e-13 && fabs(change[1] / squares - 1) < 1e-13);
    assert_true(b->ops->sum_squares(b, x, 0) == 0);
    x[n - 1] = NAN;
    assert_false(isfinite(b->ops->sum_squares(b, x, n)));
    x[n - 1] = 0;
    x[5] = -INFINITY;
    assert_false(isfinite(b->ops->sum_squares(b, x, n)));
    x[5] = 3e38f; /* its square is no float */
    assert_true(isfinite(b->ops->sum_squares(b, x, n)));
    b->ops->release(b, x);
    b->ops->release(b, y);
}

static double exact(enum rm_activation act, double x)
{
    if (act == RM_ACT_RELU)
        return x > 0 ? x : 0;
    if (act == RM_ACT_TANH)
        return tanh(x);
    return 0.5 * x * erfc(-x * M_SQRT1_2);
}

static double exact_slope(enum rm_activation act, double x)
{
    if (act == RM_ACT_RELU)
        return x > 0;
    if (act == RM_ACT_TANH)
        return 1 - tanh(x) * tanh(x);
    return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) / sqrt(2 * M_PI);
}

static void activations_everywhere(void **state)
{
    struct rm_backend *b = backend_of(state);
    enum { N = 200001, MIDDLE = N / 2 };
    static float x[N], y[N], one[N], dx[N];
    for (int i = 0; i < N; i++) {
        x[i] = (float)(i - MIDDLE) * 1e-3f * (i % 3 == 0 ? 1e-4f : 1.0f); /* -100 to 100 */
        one[i] = 1;
    }
    for (enum rm_activation act = RM_ACT_RELU; act <= RM_ACT_GELU; act++) {
        b->ops->activate(b, act, x, N, y);
        b->ops->activate_dx(b, act, x, y, one, N, dx);
        for (int i = 0; i < N; i++) {
            double want = exact(act, x[i]), slope = exact_slope(act, x[i]);
            if (fabs(y[i] - want) > 1e-6 + 3e-7 * fabs(want))
                fail_msg("activation %d of %g is %.9g, not %.9g", act, x[i], y[i], want);
            if (x[i] != 0 && fabs(dx[i] - slope) > 2e-6)
                fail_msg("slope %d of %g is %.9g, not %.9g", act, x[i], dx[i], slope);
        }
        float odd[4] = {NAN, INFINITY, 3e38f, -3e38f}, z[4];
        b->ops->activate(b, act, odd, 4, z);
        assert_true(isnan(z[0]));
        if (act == RM_ACT_TANH) { /* as far from its limit as anywhere, and never beyond */
            assert_true(z[1] <= 1 && z[1] >= 1 - 3e-7f);
            assert_true(z[2] == z[1] && z[3] == -z[1]);
            continue;
        }
        assert_true(z[1] == INFINITY && z[2] == 3e38f && z[3] == 0);
    }
}

static void cosines_are_exact(void **state)
{
    struct rm_backend *b = backend_of(state);
    enum { ROWS = 1001, COSINES = 200 };
    static float tau[ROWS], c[ROWS * COSINES];
    for (int r = 0; r < ROWS; r++)
        tau[r] = (float)r / (ROWS - 1);
    b->ops->cosines(b, tau, ROWS, COSINES, c);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < COSINES; i++)
            if (fabs(c[r * COSINES + i] - cos(M_PI * (i + 1) * tau[r])) > 2e-7)
                fail_msg("cos(pi %d %g) is %.9g", i + 1, tau[r], c[r * COSINES + i]);
}

/* A NaN anywhere in a row shows in that row's outputs: an update gone wrong must not look healthy.
 */
static void nan_shows(void **state)
{
    struct rm_backend *b = backend_of(state);
    enum { ROWS = 3, IN = 40, OUT = 33 };
    static float x[ROWS * IN], w[OUT * IN], packed[(OUT + 15) * (IN + 15)], bias[OUT],
        y[ROWS * OUT];
    for (int i = 0; i < OUT * IN; i++)
        w[i] = 0.01f * (float)(i % 13 - 6);
    x[IN + 7] = NAN;
    b->ops->pack(b, w, OUT, IN, packed);
    b->ops->linear(b, x, packed, bias, ROWS, IN, OUT, RM_ACT_RELU, y);
    for (int i = 0; i < OUT; i++) {
        assert_true(isnan(y[OUT + i]));
        assert_true(y[i] == 0 && y[2 * OUT + i] == 0);
    }
}

struct tables {
    struct rm_backend *b;
    struct rm_relations e;
    uint32_t rows; /* tokens */
    size_t total, floats;
    int32_t *codes;
    float *dy, *whole, *found;
    struct rm_touched touched;
};

static struct rm_touched empty_list(const struct tables *t)
{
    const struct rm_touched list = {.units = t->e.units,
                                    .total = (uint32_t)t->total,
                                    .rows = calloc(t->total + 1, sizeof(uint32_t)),
                                    .has = calloc(t->total + 1, sizeof(bool))};
    list.has[t->total] = true;
    return list;
}

/* Numbers below the tables and beyond them, too. */
static void draw(struct tables *t, uint32_t turn)
{
    const size_t numbers = (size_t)t->rows * t->e.numbers;
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 0, turn);
    for (size_t i = 0; i < numbers; i++) {
        const bool first = i % t->e.columns == 0 && t->e.first_codes;
        t->codes[i] = (int32_t)rm_rng_below(&rng, (first ? t->e.first_codes : t->e.codes) + 2) - 1;
    }
    t->b->ops->normals(t->b, 3, RM_STREAM_TEST, 1, turn, (size_t)t->rows * t->e.units, t->dy);
}

/* The same if two lists come with the parts, as of two slots. */
static void expect_listed_before(struct tables *t, struct rm_token_part *parts)
{
    const uint32_t count = t->touched.count;
    uint32_t *rows = calloc(count, sizeof *rows);
    struct rm_touched list[2];
    memcpy(rows, t->touched.rows, count * sizeof *rows);
    for (int i = 0; i < 2; i++) {
        list[i] = empty_list(t);
        t->b->ops->list_touched(t->b, &t->e, &parts[i], &list[i]);
        parts[i].listed = list[i].rows;
        parts[i].listed_count = list[i].count;
    }
    t->b->ops->relate_touched(t->b, &t->e, parts, 2, &t->touched, t->found);
    assert_memory_equal(t->whole, t->found, t->floats * sizeof *t->found);
    assert_int_equal(t->touched.count, count);
    assert_memory_equal(t->touched.rows, rows, count * sizeof *rows);
    for (int i = 0; i < 2; i++) {
        free(list[i].rows);
        free(list[i].has);
    }
    free(rows);
}

/* All rows against the listed ones: gradients, their squares, and a step of each. */
static void expect_same(struct tables *t)
{
    const struct rm_backend_ops *ops = t->b->ops;
    const struct rm_adam adam = {1e-2f, 0.9f, 0.99f, 1e-8f, 3, 0};
    float *mine[3], *all[3];
    t->b->ops->relate_dw(t->b, &t->e, t->codes, t->dy, t->rows, t->whole,
                         t->whole + (size_t)t->e.first_codes * t->e.units);
    const uint32_t half = t->rows / 2;
    struct rm_token_part parts[] = {{.codes = t->codes, .dy = t->dy, .rows = half},
                                    {.codes = t->codes + (size_t)half * t->e.numbers,
                                     .dy = t->dy + (size_t)half * t->e.units,
                                     .rows = t->rows - half}};
    ops->relate_touched(t->b, &t->e, parts, 2, &t->touched, t->found);
    assert_memory_equal(t->whole, t->found, t->floats * sizeof *t->found);
    expect_listed_before(t, parts);
    assert_true(t->touched.count > 0 && t->touched.count < t->total);
    const double squares = ops->sum_squares(t->b, t->whole, t->floats);
    assert_true(fabs(ops->touched_squares(t->b, &t->touched, t->found) / squares - 1) < 1e-12);
    for (int i = 0; i < 3; i++) {
        mine[i] = ops->alloc(t->b, t->floats);
        all[i] = ops->alloc(t->b, t->floats);
        ops->normals(t->b, 4, RM_STREAM_TEST, (uint32_t)i, 0, t->floats, mine[i]);
        for (size_t k = 0; k < t->floats; k++)
            all[i][k] = mine[i][k] = fabsf(mine[i][k]);
    }
    ops->adam(t->b, &adam, 0.5f, t->whole, t->floats, all[0], all[1], all[2]);
    float *kept = ops->alloc(t->b, t->floats);
    for (int i = 0; i < 3; i++) { /* what has no gradient stays as it was */
        memcpy(kept, mine[i], t->floats * sizeof *kept);
        for (size_t row = 0; row < t->total; row++)
            if (ops->sum_squares(t->b, t->whole + row * t->e.units, t->e.units) == 0)
                memcpy(all[i] + row * t->e.units, kept + row * t->e.units,
                       t->e.units * sizeof *kept);
    }
    ops->touched_adam(t->b, &adam, 0.5f, &t->touched, t->found, mine[0], mine[1], mine[2]);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(mine[i], all[i], t->floats * sizeof *kept);
        ops->release(t->b, mine[i]);
        ops->release(t->b, all[i]);
    }
    ops->release(t->b, kept);
}

/* Enough rows for several threads, and once for several rounds of their sums. */
static void touched_rows_are_all_that_count(void **state)
{
    static const struct {
        struct rm_relations e;
        uint32_t rows;
    } cases[] = {
        {{.numbers = 3, .columns = 3, .codes = 40, .first_codes = 9, .units = 5}, 4},
        {{.numbers = 6, .columns = 2, .codes = 900, .units = 40, .difference = true}, 150},
        {{.numbers = 18, .columns = 3, .codes = 4000, .first_codes = 20, .units = 64}, 90},
        {{.numbers = 6, .columns = 3, .codes = 300, .units = 1500, .difference = true}, 20},
        {{.numbers = 1, .columns = 1, .codes = 120000, .units = 2}, 110000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tables t = {.e = cases[i].e, .rows = cases[i].rows};
        struct rm_error error;
        assert_int_equal(
            rm_backend_cpu_create(&t.b, 3, ((struct level_state *)*state)->isa, &error), 0);
        t.total = t.e.first_codes + t.e.codes;
        t.floats = t.total * t.e.units;
        t.codes = calloc((size_t)t.rows * t.e.numbers, sizeof *t.codes);
        t.dy = t.b->ops->alloc(t.b, (size_t)t.rows * t.e.units);
        t.whole = t.b->ops->alloc(t.b, t.floats);
        t.found = t.b->ops->alloc(t.b, t.floats);
        t.touched = empty_list(&t);
        for (uint32_t turn = 0; turn < 3; turn++) {
            draw(&t, turn);
            expect_same(&t);
        }
        float *owned[] = {t.dy, t.whole, t.found};
        for (size_t k = 0; k < 3; k++)
            t.b->ops->release(t.b, owned[k]);
        free(t.codes);
        free(t.touched.rows);
        free(t.touched.has);
        rm_backend_destroy(t.b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam_against_double),
        cmocka_unit_test(lerp_moves),
        cmocka_unit_test(sums),
        cmocka_unit_test(touched_rows_are_all_that_count),
        cmocka_unit_test(activations_everywhere),
        cmocka_unit_test(cosines_are_exact),
        cmocka_unit_test(nan_shows),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
