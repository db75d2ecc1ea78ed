/* shm/limiter: the arithmetic of its bounds, and that rm_limiter_needed() says exactly when
 * sampling may go on. */
#include "tests/support/unit.h"

#include "shm/base/rng.h"
#include "shm/limiter.h"

#include <math.h>

static struct rm_limiter limiter;

static bool may_sample(uint64_t n)
{
    return rm_limiter_needed(&limiter, n) == 0;
}

static void bounds(void **state)
{
    (void)state;
    rm_limiter_init(&limiter, 2.0, -8.0, 8.0, 0);
    assert_true(rm_limiter_may_insert(&limiter, 4));
    assert_false(rm_limiter_may_insert(&limiter, 5)); /* 5 * 2 - 0 > 8 */
    assert_true(may_sample(8));
    assert_false(may_sample(9));
    rm_limiter_inserted(&limiter, 4);
    assert_false(rm_limiter_may_insert(&limiter, 1));
    assert_true(may_sample(16));
    assert_false(may_sample(17));
    rm_limiter_sampled(&limiter, 2);
    assert_true(rm_limiter_may_insert(&limiter, 1)); /* 5 * 2 - 2 = 8 */
    assert_false(rm_limiter_may_insert(&limiter, 2));
    assert_int_equal(limiter.inserted, 4); /* asking counts nothing */
    assert_int_equal(limiter.sampled, 2);
}

static void minimum_comes_first(void **state)
{
    (void)state;
    /* The error passes its maximum long before the minimum is there: inserting must go on, for
     * nobody may sample yet. */
    rm_limiter_init(&limiter, 1.0, -4.0, 4.0, 100);
    while (limiter.inserted < 100) {
        assert_true(rm_limiter_may_insert(&limiter, 1));
        assert_false(may_sample(1));
        assert_int_equal(rm_limiter_needed(&limiter, 1), 100);
        rm_limiter_inserted(&limiter, 1);
    }
    assert_false(rm_limiter_may_insert(&limiter, 1));
    assert_true(may_sample(1));
    assert_int_equal(rm_limiter_needed(&limiter, 1), 0);
    rm_limiter_sampled(&limiter, 97);
    assert_true(rm_limiter_may_insert(&limiter, 1));
}

static void zero_is_off(void **state)
{
    (void)state;
    rm_limiter_init(&limiter, 0.0, 0.0, 0.0, 10);
    assert_false(may_sample(1));
    assert_int_equal(rm_limiter_needed(&limiter, 1), 10);
    rm_limiter_inserted(&limiter, 10);
    assert_true(may_sample(UINT32_MAX));
    assert_true(rm_limiter_may_insert(&limiter, UINT32_MAX));
    assert_int_equal(rm_limiter_needed(&limiter, 1), 0);
}

static void needed_is_exact(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    for (int i = 0; i < 20000; i++) {
        double ratio = rm_rng_double(&rng) * (i % 2 ? 10 : 0.05) + 1e-4;
        double slack = rm_rng_double(&rng) * 1000;
        rm_limiter_init(&limiter, ratio, -slack, slack, rm_rng_below(&rng, 2000));
        rm_limiter_inserted(&limiter, rm_rng_below(&rng, 4000));
        rm_limiter_sampled(&limiter, rm_rng_below(&rng, 4000));
        uint64_t n = rm_rng_below(&rng, 600) + 1;
        uint64_t needed = rm_limiter_needed(&limiter, n);
        const double error = (double)limiter.inserted * ratio - (double)(limiter.sampled + n);
        assert_int_equal(needed == 0, limiter.inserted >= limiter.min_inserted && error >= -slack);
        if (needed == 0)
            continue;
        rm_limiter_inserted(&limiter, needed - 1 - limiter.inserted);
        assert_false(may_sample(n));
        rm_limiter_inserted(&limiter, 1);
        assert_true(may_sample(n));
    }
}

static void sides_in_turn_keep_the_ratio(void **state)
{
    (void)state;
    rm_limiter_init(&limiter, 0.25, -64.0, 64.0, 500);
    for (int i = 0; i < 100000; i++) {
        if (rm_limiter_may_insert(&limiter, 3))
            rm_limiter_inserted(&limiter, 3);
        if (may_sample(32))
            rm_limiter_sampled(&limiter, 32);
        double error = (double)limiter.inserted * 0.25 - (double)limiter.sampled;
        assert_true(limiter.inserted <= 503 || (error >= -64.0 && error <= 64.0));
    }
    assert_true(limiter.inserted > 200000); /* neither side starved the other */
}

/* Both sides until neither may go on without the other; returns what was sampled per insertion. */
static double pace(double slack)
{
    uint64_t inserted = limiter.inserted, sampled = limiter.sampled;
    for (int i = 0; i < 20000; i++) {
        const bool insert = rm_limiter_may_insert(&limiter, 4), sample = may_sample(32);
        assert_true(insert || sample);
        if (insert)
            rm_limiter_inserted(&limiter, 4);
        if (sample)
            rm_limiter_sampled(&limiter, 32);
    }
    assert_true(limiter.max_error - limiter.min_error == 2 * slack);
    return (double)(limiter.sampled - sampled) / (double)(limiter.inserted - inserted);
}

static void a_change_holds_from_now_on(void **state)
{
    (void)state;
    static const struct {
        double ratio, slack;
    } changes[] = {{8, 256}, {0.5, 64}, {0.5, 512}, {0, 64}, {2, 64}, {16, 4096}};
    rm_limiter_init(&limiter, 2, -64, 64, 500);
    assert_true(fabs(pace(64) - 2) < 0.1);
    double before = 64; /* the slack */
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        double ratio = changes[i].ratio, slack = changes[i].slack;
        uint64_t inserted = limiter.inserted, sampled = limiter.sampled;
        rm_limiter_change(&limiter, ratio, slack);
        if (ratio == 0) { /* off: the sides go as they like, one of them far ahead */
            rm_limiter_sampled(&limiter, 1000000);
            continue;
        }
        /* No more than both slacks and a batch before it is the other side's turn. */
        while (rm_limiter_may_insert(&limiter, 1))
            rm_limiter_inserted(&limiter, 1);
        assert_true((double)(limiter.inserted - inserted) * ratio <= before + slack + 32);
        assert_true(may_sample(32));
        while (may_sample(1))
            rm_limiter_sampled(&limiter, 1);
        assert_true((double)(limiter.sampled - sampled) <= 2 * (before + slack) + 32);
        assert_true(fabs(pace(slack) / ratio - 1) < 0.1);
        before = slack;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds),
        cmocka_unit_test(minimum_comes_first),
        cmocka_unit_test(zero_is_off),
        cmocka_unit_test(needed_is_exact),
        cmocka_unit_test(sides_in_turn_keep_the_ratio),
        cmocka_unit_test(a_change_holds_from_now_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
