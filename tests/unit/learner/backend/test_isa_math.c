/* The elementary functions of kernels against libm, to the errors that isa_math.h and series.h
 * state: once with fused multiply-adds, as from x86-64-v3 on, and once without, as below. */
#include "tests/support/unit.h"

#include "learner/backend/isa.h"
#include "learner/backend/isa_math.h"

#include <math.h>

#undef RM_FMA
#define RM_FMA(a, b, c) fmaf(a, b, c)
#undef RM_LEARNER_BACKEND_ISA_MATH_H
#undef RM_LEARNER_BACKEND_SERIES_H
#define abs_of            fused_abs_of
#define with_sign_of      fused_with_sign_of
#define exp_of            fused_exp_of
#define tanh_of           fused_tanh_of
#define erf_of            fused_erf_of
#define rm_log_of         fused_log_of
#define rm_sincos_of_turn fused_sincos_of_turn
#define rm_cos_pi         fused_cos_pi
#include "learner/backend/isa_math.h"
#undef exp_of
#undef tanh_of
#undef erf_of
#undef rm_log_of

struct function {
    const char *name;
    float (*plain)(float), (*fused)(float);
    double (*exact)(double);
    float from, to;
    double ulp, relative, absolute; /* bounds; 0: none is stated */
};

static const struct function functions[] = {
    {"exp", exp_of, fused_exp_of, exp, -87, 88, 2, 0, 0},
    {"tanh", tanh_of, fused_tanh_of, tanh, -8, 8, 7, 4e-7, 0},
    {"erf", erf_of, fused_erf_of, erf, -6, 6, 0, 0, 3e-7},
    {"ln", rm_log_of, fused_log_of, log, 1.2e-38f, 3e38f, 2, 0, 0},
};

/* The difference between neighbouring floats at the size of x. */
static double spacing(double x)
{
    const float size = fabsf((float)x);
    return (double)nextafterf(size, INFINITY) - (double)size;
}

static void check(const struct function *f, float (*computed)(float), const char *how)
{
    enum { POINTS = 1000003 };
    for (int i = 0; i <= POINTS; i++) {
        const double part = (double)i / POINTS, from = (double)f->from, to = (double)f->to;
        const float x = (float)(from > 0 ? from * pow(to / from, part) : from + part * (to - from));
        const double want = f->exact((double)x), off = fabs((double)computed(x) - want);
        if ((f->ulp != 0 && off > f->ulp * spacing(want)) ||
            (f->relative != 0 && off > f->relative * fabs(want)) ||
            (f->absolute != 0 && off > f->absolute))
            fail_msg("%s(%.9g), %s: %.9g, not %.9g", f->name, (double)x, how, (double)computed(x),
                     want);
    }
}

static void errors_are_as_stated(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        check(&functions[i], functions[i].plain, "without FMA");
        check(&functions[i], functions[i].fused, "with FMA");
    }
}

static void ends_of_the_ranges(void **state)
{
    (void)state;
    assert_true(exp_of(-87.1f) == 0 && fused_exp_of(-INFINITY) == 0 && isnan(exp_of(NAN)));
    float x = 7;
    while (x < 9) {
        assert_true(tanh_of(x) <= 1 && fused_tanh_of(x) <= 1 && tanh_of(-x) >= -1);
        x = nextafterf(x, 9);
    }
    assert_true(tanh_of(INFINITY) == tanh_of(8) && fused_tanh_of(-3e38f) == fused_tanh_of(-8));
    assert_true(isnan(tanh_of(NAN)) && isnan(fused_erf_of(NAN)) && erf_of(-INFINITY) == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_as_stated),
        cmocka_unit_test(ends_of_the_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
