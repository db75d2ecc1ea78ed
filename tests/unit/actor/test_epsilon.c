#include "actor/epsilon.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void linear_decay_meets_both_ends(void **state)
{
    struct rm_epsilon e = {.start = 1, .end = 0.1, .span = 1000, .decay = RM_DECAY_LINEAR};

    (void)state;
    assert_true(rm_epsilon_at(&e, 0) == 1);
    assert_true(fabs(rm_epsilon_at(&e, 500) - 0.55) < 1e-12);
    assert_true(rm_epsilon_at(&e, 1000) == 0.1);
    assert_true(rm_epsilon_at(&e, UINT64_MAX) == 0.1);
}

static void exponential_decay_stops_at_the_end(void **state)
{
    /* the treasure hunt's: 1.0 * 0.999^k, .368 after 1000 epochs */
    struct rm_epsilon e = {.start = 1, .end = 0, .factor = 0.999, .decay = RM_DECAY_EXPONENTIAL};
    double rate = 1;

    (void)state;
    for (int k = 0; k < 1000; k++) {
        assert_true(fabs(rm_epsilon_at(&e, (uint64_t)k) - rate) < 1e-12);
        rate *= 0.999;
    }
    assert_true(fabs(rm_epsilon_at(&e, 1000) - 0.368) < 5e-4);
    e.end = 0.05;
    assert_true(rm_epsilon_at(&e, 1000000) == 0.05);
    /* A rate that grows: the factor of 1 or less never takes it past its end either. */
    e.start = 0.01;
    assert_true(rm_epsilon_at(&e, 0) <= 0.05);
}

static void bounds_cover_never_and_always(void **state)
{
    (void)state;
    assert_true(rm_epsilon_bound(0) == 0);
    assert_true(rm_epsilon_bound(-1) == 0);
    assert_true(rm_epsilon_bound(NAN) == 0);
    assert_true(rm_epsilon_bound(1) == UINT64_C(1) << 32);
    assert_true(rm_epsilon_bound(7) == UINT64_C(1) << 32);
    assert_true(rm_epsilon_bound(0.25) == UINT64_C(1) << 30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_decay_meets_both_ends),
        cmocka_unit_test(exponential_decay_stops_at_the_end),
        cmocka_unit_test(bounds_cover_never_and_always),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
