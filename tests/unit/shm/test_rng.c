/* shm/base/rng: Philox against the known answers of its authors' library (Random123, kat_vectors:
 * philox4x32 with 10 rounds), and what rng.h promises of streams. */
#include "tests/support/unit.h"

#include "shm/base/rng.h"

#include <string.h>

static void known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof kat / sizeof kat[0]; i++) {
        uint32_t out[4], many[4];
        uint64_t key = (uint64_t)kat[i].key[1] << 32 | kat[i].key[0];
        rm_philox(key, kat[i].counter, out);
        assert_memory_equal(out, kat[i].answer, sizeof out);
        rm_philox_blocks(key, kat[i].counter, many, 1);
        assert_memory_equal(many, kat[i].answer, sizeof many);
    }
}

static void blocks_are_the_single_blocks(void **state)
{
    (void)state;
    enum { MOST = 70 };
    /* The running word wraps in the middle. */
    const uint32_t counter[4] = {0xffffffe0u, 1, 2, 3};
    for (uint32_t n = 0; n <= MOST; n++) {
        uint32_t many[4 * MOST + 1];
        memset(many, 0xa5, sizeof many);
        rm_philox_blocks(0x0123456789abcdefull, counter, many, n);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t at[4] = {counter[0] + i, 1, 2, 3}, one[4];
            rm_philox(0x0123456789abcdefull, at, one);
            assert_memory_equal(many + 4 * i, one, sizeof one);
        }
        assert_int_equal(many[4 * n], 0xa5a5a5a5u); /* nothing beyond */
    }
}

static void filling_is_drawing(void **state)
{
    (void)state;
    struct rm_rng one = rm_rng_at(5, RM_STREAM_TEST, 1, 2), many = one;
    static const uint32_t parts[] = {1, 2, 3, 64, 0, 5, 777, 4, 1};
    for (size_t p = 0; p < sizeof parts / sizeof parts[0]; p++) {
        uint32_t words[777];
        rm_rng_fill_u32(&many, words, parts[p]);
        for (uint32_t i = 0; i < parts[p]; i++)
            assert_int_equal(words[i], rm_rng_u32(&one));
    }
}

static void coordinates_separate_streams(void **state)
{
    (void)state;
    const struct rm_rng streams[] = {
        rm_rng_at(1, RM_STREAM_TEST, 1, 1),
        rm_rng_at(2, RM_STREAM_TEST, 1, 1),
        rm_rng_at(1, RM_STREAM_EVALUATE, 1, 1),
        rm_rng_at(1, RM_STREAM_TEST, 2, 1),
        rm_rng_at(1, RM_STREAM_TEST, 1, 2),
        rm_rng_at(1, RM_STREAM_TEST, 1, 1ull << 32),
        rm_rng_at(1, RM_STREAM_TEST, 1, 1 + (1ull << 32)),
    };
    enum { N = sizeof streams / sizeof streams[0], DRAWS = 64 };
    for (int a = 0; a < N; a++)
        for (int b = 0; b < N; b++) {
            struct rm_rng x = streams[a], y = streams[b];
            int same = 0;
            for (int i = 0; i < DRAWS; i++)
                same += rm_rng_u32(&x) == rm_rng_u32(&y);
            assert_int_equal(same, a == b ? DRAWS : 0);
        }
}

static void ranges_and_means(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 0, 0);
    enum { N = 200000 };
    double sum_float = 0, sum_double = 0;
    for (int i = 0; i < N; i++) {
        float f = rm_rng_float(&rng);
        double d = rm_rng_double(&rng);
        assert_true(f >= 0 && f < 1 && d >= 0 && d < 1);
        sum_float += (double)f;
        sum_double += d;
    }
    /* Six standard errors of a mean of N uniform draws, sqrt(1 / 12 N): about 0.0039. */
    assert_true(sum_float / N > 0.4961 && sum_float / N < 0.5039);
    assert_true(sum_double / N > 0.4961 && sum_double / N < 0.5039);
    assert_true(rm_float_from_u32(UINT32_MAX) < 1.0f);
}

static void below_is_uniform(void **state)
{
    (void)state;
    /* With 3 * 2^30 values, a draw without rejection would hit every third value twice as often. */
    static const uint32_t n = 3u << 30;
    struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 0, 0);
    enum { N = 60000 };
    int third[3] = {0}, by_seven[7] = {0};
    for (int i = 0; i < N; i++) {
        uint32_t draw = rm_rng_below(&rng, n);
        assert_true(draw < n);
        third[draw % 3]++;
        draw = rm_rng_below(&rng, 7);
        assert_true(draw < 7);
        by_seven[draw]++;
    }
    double chi = 0;
    for (int i = 0; i < 3; i++)
        chi += (third[i] - N / 3.0) * (third[i] - N / 3.0) / (N / 3.0);
    assert_true(chi < 20.0); /* p < 0.0001 at 2 degrees of freedom; one seed, always the same */
    chi = 0;
    for (int i = 0; i < 7; i++)
        chi += (by_seven[i] - N / 7.0) * (by_seven[i] - N / 7.0) / (N / 7.0);
    assert_true(chi < 28.0); /* 6 degrees of freedom */
    assert_int_equal(rm_rng_below(&rng, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),      cmocka_unit_test(blocks_are_the_single_blocks),
        cmocka_unit_test(filling_is_drawing), cmocka_unit_test(coordinates_separate_streams),
        cmocka_unit_test(ranges_and_means),   cmocka_unit_test(below_is_uniform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
