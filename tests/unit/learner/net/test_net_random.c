/* The backend's normals and uniforms: distribution, and that element i depends on nothing but the
 * stream and i. */
#include "tests/support/levels.h"

#include "learner/backend/kernels.h"
#include "shm/base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define N ((size_t)1 << 22)

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov and Smirnov's distance times sqrt n; above 1.95 in one of 1,000 fair samples. */
static double kolmogorov(float *sorted, size_t n, double (*cdf)(double))
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        double f = cdf(sorted[i]), low = f - (double)i / (double)n,
               high = (double)(i + 1) / (double)n - f;
        most = fmax(most, fmax(low, high));
    }
    return most * sqrt((double)n);
}

static double normal_cdf(double x)
{
    return 0.5 * erfc(-x * M_SQRT1_2);
}

static double uniform_cdf(double x)
{
    return x;
}

static void normal_distribution(void **state)
{
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    float *x = b->ops->alloc(b, N);
    b->ops->normals(b, 5, RM_STREAM_TEST, 1, 2, N, x);
    double moment[5] = {0}, lagged = 0;
    size_t beyond3 = 0, beyond4 = 0;
    for (size_t i = 0; i < N; i++) {
        assert_true(isfinite(x[i]) && fabsf(x[i]) < 7);
        double p = 1;
        for (int k = 1; k <= 4; k++)
            moment[k] += (p *= x[i]) / (double)N;
        beyond3 += fabsf(x[i]) > 3;
        beyond4 += fabsf(x[i]) > 4;
        if (i >= 16) /* cosine and sine of one draw stand 16 apart */
            lagged += (double)x[i] * x[i - 16] / (double)N;
    }
    /* Each within five standard errors of the moment's estimate. */
    double unit = 5 / sqrt((double)N);
    assert_true(fabs(moment[1]) < unit);
    assert_true(fabs(moment[2] - 1) < unit * sqrt(2));
    assert_true(fabs(moment[3]) < unit * sqrt(15));
    assert_true(fabs(moment[4] - 3) < unit * sqrt(96));
    assert_true(fabs(lagged) < unit);
    double expect3 = 2 * normal_cdf(-3) * (double)N, expect4 = 2 * normal_cdf(-4) * (double)N;
    assert_true(fabs((double)beyond3 - expect3) < 5 * sqrt(expect3));
    assert_true(fabs((double)beyond4 - expect4) < 5 * sqrt(expect4));
    qsort(x, N / 4, sizeof *x, by_value);
    assert_true(kolmogorov(x, N / 4, normal_cdf) < 1.95);
    b->ops->release(b, x);
}

/* Of fair samples one in twenty is above 1.36: eight or more of forty happen once in 1,500 times.
 */
static void uniform_distribution(void **state)
{
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    enum { SAMPLES = 40, EACH = 1 << 16 };
    float *x = b->ops->alloc(b, EACH);
    int above = 0;
    for (uint32_t s = 0; s < SAMPLES; s++) {
        b->ops->uniforms(b, 5, RM_STREAM_TEST, s, 2, EACH, x);
        for (size_t i = 0; i < EACH; i++)
            assert_true(x[i] >= 0 && x[i] < 1);
        qsort(x, EACH, sizeof *x, by_value);
        above += kolmogorov(x, EACH, uniform_cdf) > 1.36;
    }
    assert_true(above < 8);
    b->ops->release(b, x);
}

/* Under the mixing of key and stream it is Philox as the rest of the program has it. */
static void words_are_philox(void **state)
{
    const char *isa = ((struct level_state *)*state)->isa;
    const struct rm_kernels *all[] = {&rm_isa_v2_kernels, &rm_isa_v3_kernels, &rm_isa_v4_kernels};
    for (size_t level = 0; level < 3; level++) {
        if (strcmp(all[level]->isa, isa) != 0)
            continue;
        float got[RM_RANDOM_GROUP];
        all[level]->uniforms(0x0123456789abcdefu, 77, 0xfedcba9876543210u, 3, 1, got);
        for (uint32_t lane = 0; lane < 16; lane++) {
            uint32_t words[4], counter[4] = {3 * 16 + lane, 77, 0x76543210u, 0xfedcba98u};
            rm_philox(0x0123456789abcdefu, counter, words);
            for (int w = 0; w < 4; w++)
                assert_true(got[w * 16 + lane] == rm_float_from_u32(words[w]));
        }
    }
}

static void elements_stand_alone(void **state)
{
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    enum { MOST = 20000 };
    float *all = b->ops->alloc(b, MOST), *some = b->ops->alloc(b, MOST + 1);
    b->ops->normals(b, 5, RM_STREAM_NOISE, 1, 2, MOST, all);
    static const size_t counts[] = {0, 1, 63, 64, 65, 8191, 8192, 8193, 19999};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        some[counts[i]] = 123;
        b->ops->normals(b, 5, RM_STREAM_NOISE, 1, 2, counts[i], some);
        assert_memory_equal(some, all, counts[i] * sizeof *all);
        assert_true(some[counts[i]] == 123);
    }
    b->ops->release(b, all);
    b->ops->release(b, some);
}

static void streams_differ(void **state)
{
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    enum { STREAMS = 7, EACH = 256 };
    float x[STREAMS][EACH];
    b->ops->normals(b, 5, RM_STREAM_NOISE, 1, 2, EACH, x[0]);
    b->ops->normals(b, 6, RM_STREAM_NOISE, 1, 2, EACH, x[1]);
    b->ops->normals(b, 5, RM_STREAM_TAU, 1, 2, EACH, x[2]);
    b->ops->normals(b, 5, RM_STREAM_NOISE, 2, 2, EACH, x[3]);
    b->ops->normals(b, 5, RM_STREAM_NOISE, 1, 3, EACH, x[4]);
    b->ops->normals(b, 5, RM_STREAM_NOISE, 1, 2 + (1ull << 32), EACH, x[5]);
    b->ops->normals(b, 5ull << 32, RM_STREAM_NOISE, 1, 2, EACH, x[6]);
    for (int i = 0; i < STREAMS; i++)
        for (int j = 0; j < i; j++) {
            int equal = 0;
            for (int k = 0; k < EACH; k++)
                equal += x[i][k] == x[j][k];
            assert_true(equal < 3);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_distribution), cmocka_unit_test(uniform_distribution),
        cmocka_unit_test(words_are_philox),    cmocka_unit_test(elements_stand_alone),
        cmocka_unit_test(streams_differ),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
