/* trig.h against the C library, in long double: to the last place but one. */
#include "actor/worlds/builtin/trig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void test_small(void **unused)
{
    (void)unused;
    double worst = 0;
    for (int i = -100000; i <= 100000; i++) {
        double x = i * (M_PI_4 / 100000);
        double s = fabs((double)(rm_sin_small(x) - sinl(x)));
        double c = fabs((double)(rm_cos_small(x) - cosl(x)));
        worst = fmax(worst, fmax(s, c));
        /* relative too, near 0 */
        assert_true(s <= 2.3e-16 * fabs(x));
    }
    assert_true(worst < 1.7e-16);
}

static void test_any(void **unused)
{
    (void)unused;
    static const double ranges[] = {4, 40, 1000, 1e5};
    for (int r = 0; r < 4; r++) {
        double worst = 0;
        for (int i = -50000; i <= 50000; i++) {
            double x = i * (ranges[r] / 50000), s, c;
            rm_sincos(x, &s, &c);
            worst = fmax(worst, fabs((double)(s - sinl(x))));
            worst = fmax(worst, fabs((double)(c - cosl(x))));
        }
        if (!(worst < 1.7e-16))
            fail_msg("off by %g for |x| <= %g", worst, ranges[r]);
    }
}

static void test_quadrants(void **unused)
{
    (void)unused;
    for (int k = -9; k <= 9; k++) {
        double s, c;
        rm_sincos(k * M_PI_2, &s, &c);
        assert_float_equal(s, sin(k * M_PI_2), 1e-15);
        assert_float_equal(c, cos(k * M_PI_2), 1e-15);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_any),
        cmocka_unit_test(test_quadrants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
