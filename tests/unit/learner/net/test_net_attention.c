/* Attention, means over tokens and pointer scores of the backend against sums in double, and their
 * gradients against differences of those. */
#include "tests/support/levels.h"
#include "tests/support/reference_sequence.h"

#include "shm/base/rng.h"
#include "tests/support/effort.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPSILON 1e-6

static struct rm_backend *backend_of(void **state)
{
    return ((struct level_state *)*state)->backend;
}

/* Floats between -size and size, and the same in double. */
static float *draw(size_t n, uint32_t seed, float size, double **copy)
{
    struct rm_rng rng = rm_rng_at(seed, RM_STREAM_TEST, 0, 0);
    float *p = malloc((n + 1) * sizeof *p);
    double *d = malloc((n + 1) * sizeof *d);
    for (size_t i = 0; i < n; i++)
        d[i] = p[i] = size * (2 * rm_rng_float(&rng) - 1);
    if (copy)
        *copy = d;
    else
        free(d);
    return p;
}

static void expect_near(const char *what, size_t at, double got, double want, double absolute)
{
    if (!(fabs(got - want) <= absolute + 1e-3 * fabs(want)))
        fail_msg("%s: element %zu is %.9g, not %.9g", what, at, got, want);
}

struct attention_case {
    uint32_t rows, heads, width;
    bool causal;
    uint32_t stride; /* of the gradients that are looked at */
    uint32_t queries;
    double rate; /* of dropout */
};

/* Its sights and what dropout leaves of each weight, computed once. */
struct sight {
    uint8_t *sees;
    float *kept;
};

static double attention_loss(const struct attention_case *c, const struct sight *sight,
                             const double *qkv, const double *d_o, double *o)
{
    size_t units = (size_t)c->heads * c->width;
    double sum = 0;
    reference_attention(qkv, sight->sees, sight->kept, c->rows, c->heads, units, o);
    for (size_t i = 0; i < c->rows * units; i++)
        sum += o[i] * d_o[i];
    return sum;
}

static struct sight sight_of(const struct attention_case *c, const struct rm_attention *a)
{
    const size_t n = c->rows;
    struct sight s = {malloc(n * n), malloc(c->heads * n * n * sizeof(float))};
    reference_see(NULL, n, c->causal, c->queries, s.sees);
    for (uint32_t h = 0; h < c->heads; h++)
        for (uint32_t r = 0; r < n; r++)
            for (uint32_t k = 0; k < n; k++)
                s.kept[(h * n + r) * n + k] =
                    rm_dropout_kept(rm_attention_row_key(&a->dropout, 0, h, r), k, a->dropout.below,
                                    a->dropout.scale);
    return s;
}

static void one_attention(struct rm_backend *b, const struct attention_case *c)
{
    uint32_t units = c->heads * c->width, spans[] = {0, c->rows};
    size_t n = (size_t)c->rows * units;
    double *qkv_d, *d_o_d, *o_d = malloc(n * sizeof *o_d);
    float *qkv = draw(3 * n, 1, 2, &qkv_d), *d_o = draw(n, 2, 1, &d_o_d);
    float *o = malloc(n * sizeof *o), *d_qkv = malloc(3 * n * sizeof *d_qkv);
    float *stats = malloc(2 * sizeof *stats * c->rows * c->heads);
    for (size_t i = 0; i < 3 * n; i++)
        d_qkv[i] = NAN;
    const struct rm_attention a = {.spans = spans,
                                   .batch = 1,
                                   .heads = c->heads,
                                   .units = units,
                                   .causal = c->causal,
                                   .rows = spans[1],
                                   .queries = c->queries,
                                   .dropout = rm_dropout_of(3, RM_STREAM_DROPOUT, 4, 5, c->rate)};
    const struct sight sight = sight_of(c, &a);
    b->ops->attention(b, &a, qkv, o, stats);
    b->ops->attention_dx(b, &a, qkv, o, stats, d_o, d_qkv);
    attention_loss(c, &sight, qkv_d, d_o_d, o_d);
    for (size_t i = 0; i < n; i++)
        if (!(fabs(o[i] - o_d[i]) <= 1e-5 + 1.3e-6 * fabs(o_d[i])))
            fail_msg("%u rows, width %u: output %zu is %.9g, not %.9g", c->rows, c->width, i, o[i],
                     o_d[i]);
    for (size_t i = 0; i < 3 * n; i++)
        if (!isfinite(d_qkv[i]))
            fail_msg("%u rows, width %u: gradient %zu is %g", c->rows, c->width, i, d_qkv[i]);
    for (size_t i = 0; i < 3 * n; i += c->stride * rm_test_effort(1, 3)) {
        double at = qkv_d[i];
        qkv_d[i] = at + EPSILON;
        double above = attention_loss(c, &sight, qkv_d, d_o_d, o_d);
        qkv_d[i] = at - EPSILON;
        double below = attention_loss(c, &sight, qkv_d, d_o_d, o_d);
        qkv_d[i] = at;
        expect_near("attention", i, d_qkv[i], (above - below) / (2 * EPSILON), 1e-5);
    }
    free(sight.sees);
    free(sight.kept);
    free(qkv_d);
    free(d_o_d);
    free(o_d);
    free(qkv);
    free(d_o);
    free(o);
    free(d_qkv);
    free(stats);
}

static void attention_of_every_size(void **state)
{
    static const struct attention_case cases[] = {
        {1, 1, 4, false, 1, 0, 0},      {1, 2, 16, true, 1, 0, 0},
        {2, 3, 5, true, 1, 0, 0},       {7, 4, 16, false, 1, 0, 0},
        {23, 1, 33, true, 7, 0, 0},     {24, 2, 8, true, 3, 0, 0},
        {64, 1, 16, false, 31, 0, 0},   {65, 2, 16, true, 37, 0, 0},
        {66, 1, 24, false, 37, 0, 0},   {130, 2, 32, true, 997, 0, 0},
        {131, 1, 64, false, 997, 0, 0}, {200, 1, 256, true, 20011, 0, 0},
        {9, 2, 4, true, 1, 1, 0},       {9, 1, 5, true, 1, 4, 0.3},
        {160, 2, 16, true, 397, 80, 0}, {242, 1, 16, true, 397, 80, 0},
        {90, 1, 8, true, 11, 3, 0.1},   {70, 2, 8, false, 31, 0, 0.5},
        {8, 1, 4, true, 1, 8, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        one_attention(backend_of(state), &cases[i]);
}

/* A sample's rows give the same bits alone and among others, and on several threads. */
static void samples_do_not_meet(void **state)
{
    struct level_state *level = *state;
    enum { BATCH = 9, HEADS = 2, UNITS = 48 };
    const uint32_t spans[BATCH + 1] = {0, 1, 1, 70, 75, 203, 204, 210, 300, 303};
    size_t n = (size_t)spans[BATCH] * UNITS;
    float *qkv = draw(3 * n, 3, 1, NULL), *d_o = draw(n, 4, 1, NULL);
    float *o[2], *d[2], *stats = malloc(2 * sizeof *stats * HEADS * spans[BATCH]);
    for (int i = 0; i < 2; i++) {
        o[i] = malloc(n * sizeof(float));
        d[i] = malloc(3 * n * sizeof(float));
    }
    struct rm_backend *three;
    struct rm_error error;
    assert_int_equal(rm_backend_cpu_create(&three, 3, level->isa, &error), 0);
    struct rm_attention a = {.spans = spans,
                             .batch = BATCH,
                             .heads = HEADS,
                             .units = UNITS,
                             .causal = true,
                             .rows = spans[BATCH]};
    three->ops->attention(three, &a, qkv, o[0], stats);
    three->ops->attention_dx(three, &a, qkv, o[0], stats, d_o, d[0]);
    for (uint32_t i = 0; i < BATCH; i++) {
        size_t at = (size_t)spans[i] * UNITS;
        a.spans = spans + i;
        a.batch = 1;
        a.rows = spans[i + 1] - spans[i];
        const struct rm_backend_ops *ops = level->backend->ops;
        ops->attention(level->backend, &a, qkv + 3 * at, o[1] + at, stats);
        ops->attention_dx(level->backend, &a, qkv + 3 * at, o[1] + at, stats, d_o + at,
                          d[1] + 3 * at);
    }
    assert_memory_equal(o[0], o[1], n * sizeof(float));
    assert_memory_equal(d[0], d[1], 3 * n * sizeof(float));
    rm_backend_destroy(three);
    free(qkv);
    free(d_o);
    free(stats);
    for (int i = 0; i < 2; i++) {
        free(o[i]);
        free(d[i]);
    }
}

/* Scores beyond what an exponential can take, and a NaN, which must show in its sample alone. */
static void attention_at_the_edges(void **state)
{
    struct rm_backend *b = backend_of(state);
    enum { ROWS = 3, UNITS = 4 };
    float qkv[2 * ROWS][3 * UNITS] = {{0}}, o[2 * ROWS][UNITS], stats[2 * ROWS][2];
    const uint32_t spans[] = {0, ROWS, 2 * ROWS};
    const struct rm_attention a = {
        .spans = spans, .batch = 2, .heads = 1, .units = UNITS, .rows = spans[2]};
    for (int r = 0; r < 2 * ROWS; r++) {
        qkv[r][0] = 1e4f;                             /* query */
        qkv[r][UNITS] = r % ROWS == 1 ? 1e4f : -1e4f; /* key */
        qkv[r][2 * UNITS] = (float)(r + 1);           /* value */
    }
    b->ops->attention(b, &a, qkv[0], o[0], stats[0]);
    for (int r = 0; r < ROWS; r++)
        assert_true(o[r][0] == 2.0f && o[ROWS + r][0] == 5.0f);
    qkv[1][UNITS + 2] = NAN;
    b->ops->attention(b, &a, qkv[0], o[0], stats[0]);
    for (int r = 0; r < ROWS; r++)
        assert_true(isnan(o[r][0]) && o[ROWS + r][0] == 5.0f);
}

/* Two samples: three rows at places 0, 2 and 5, and one row alone. */
static void pointer_scores(void **state)
{
    struct rm_backend *b = backend_of(state);
    enum { ROWS = 4, UNITS = 37, OUTPUTS = 5 };
    const uint32_t spans[] = {0, 3, 4}, slots[] = {0, 2, 5, 0};
    const struct rm_pointer p = {spans, slots, 2, UNITS, OUTPUTS, 0.25f, spans[2]};
    double *xd;
    float *x = draw(ROWS * UNITS, 5, 1, &xd), *dy = draw(2 * OUTPUTS, 6, 1, NULL);
    float y[2 * OUTPUTS], dx[ROWS * UNITS];
    b->ops->pointer(b, &p, x, y);
    b->ops->pointer_dx(b, &p, x, dy, dx);
    double want[2 * OUTPUTS] = {0}, dwant[ROWS * UNITS] = {0};
    for (int i = 0; i < UNITS; i++)
        for (int r = 1; r < 3; r++) {
            want[slots[r] - 1] += 0.25 * xd[i] * xd[r * UNITS + i];
            dwant[i] += 0.25 * dy[slots[r] - 1] * xd[r * UNITS + i];
            dwant[r * UNITS + i] += 0.25 * dy[slots[r] - 1] * xd[i];
        }
    for (int i = 0; i < 2 * OUTPUTS; i++)
        expect_near("score", (size_t)i, y[i], want[i], 1e-5);
    assert_true(y[0] == 0 && y[OUTPUTS] == 0 && y[2 * OUTPUTS - 1] == 0);
    for (int i = 0; i < ROWS * UNITS; i++)
        expect_near("gradient of scores", (size_t)i, dx[i], dwant[i], 1e-5);
    free(x);
    free(xd);
    free(dy);
}

static void means(void **state)
{
    struct rm_backend *b = backend_of(state);
    enum { UNITS = 3 };
    const uint32_t spans[] = {2, 4, 4, 5}; /* as seen from the middle of a longer list */
    const float x[3][UNITS] = {{1, 2, 3}, {3, 6, 1}, {7, 8, 9}},
                dy[3][UNITS] = {{2, 4, 6}, {1}, {5}};
    float y[3][UNITS], dx[3][UNITS];
    const struct rm_spans of = {.spans = spans, .batch = 3, .rows = 3};
    b->ops->span_one(b, &of, x[0], UNITS, true, y[0]);
    b->ops->span_one_dx(b, &of, dy[0], UNITS, true, dx[0]);
    const float want[3][UNITS] = {{2, 4, 2}, {0, 0, 0}, {7, 8, 9}};
    const float dwant[3][UNITS] = {{1, 2, 3}, {1, 2, 3}, {5, 0, 0}};
    assert_memory_equal(y, want, sizeof want);
    assert_memory_equal(dx, dwant, sizeof dwant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_of_every_size),
        cmocka_unit_test(samples_do_not_meet),
        cmocka_unit_test(attention_at_the_edges),
        cmocka_unit_test(pointer_scores),
        cmocka_unit_test(means),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
