/* The double of cublasLt, and the 16-bit formats. */
#include "tests/cuda/probes/run.h"
#include "tests/support/unit.h"

static void products_are_right(void **state)
{
    float out[PROBE_OUT];
    int n = 0;
    (void)state;
    probe_everywhere("products", out);
    for (; out[n] >= 0; n++)
        if (!(out[n] < 5e-6f))
            fail_msg("trial %d: error %g", n, (double)out[n]);
    assert_int_equal(n, 14);
}

/* TF32 has ten bits of mantissa: errors that float has not, and not larger than these allow. */
static void tf32_rounds_what_goes_in(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("tf32", out);
    assert_true(out[0] > 2e-5f && out[0] < 1e-3f);
    assert_true(out[1] < 1e-5f);
}

static void what_the_library_refuses_is_refused(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    assert_int_equal(probe("wrong_products", out), 0);
    assert_int_equal((int)out[0], 0);
    assert_int_equal((int)out[1], 3);
    assert_int_equal((int)out[2], 0);
    assert_int_equal((int)out[3], 7); /* invalid value */
    assert_int_equal((int)out[4], 7);
    assert_int_equal((int)out[5], 7);
    assert_int_equal((int)out[6], 7);
    assert_int_equal((int)out[7], 0);
    assert_int_equal((int)out[8], 7);
    assert_int_equal((int)out[9], 1);
    probe_fails("product_in_place", ILLEGAL_ADDRESS, "cublasLtMatmul", "D overlaps A");
}

static void halves_round_to_even(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    assert_int_equal(probe("halves", out), 0);
    assert_int_equal((int)out[0], 0);
}

int main(void)
{
    probes_open();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(products_are_right, probes_fresh),
        cmocka_unit_test_setup(tf32_rounds_what_goes_in, probes_fresh),
        cmocka_unit_test_setup(what_the_library_refuses_is_refused, probes_fresh),
        cmocka_unit_test_setup(halves_round_to_even, probes_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
