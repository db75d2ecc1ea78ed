/* The emulation of tensor cores, of copies that are waited for later and of barriers of some of the
 * threads: what right kernels compute in every order, and that wrong ones are found. */
#include "tests/cuda/probes/run.h"
#include "tests/support/unit.h"

static void check_products(const char *name)
{
    float out[PROBE_OUT];
    probe_everywhere(name, out);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++) {
            int sum = 0;
            for (int k = 0; k < 16; k++)
                sum += ((m * 16 + k) * 7 % 13 - 6) * ((k * 8 + n) * 5 % 11 - 4);
            assert_true(out[m * 8 + n] == (float)sum);
            assert_true(out[128 + m * 8 + n] == (float)sum);
        }
}

static void products_are_right(void **state)
{
    (void)state;
    check_products("products_bf16");
    check_products("products_fp16");
}

static void copies_are_there_once_waited_for(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("copied_later", out);
    for (int i = 0; i < 128; i++) {
        assert_true(out[i] == (float)(127 - i));
        assert_true(out[128 + i] == (float)(255 - i));
    }
    assert_true(probe_depends_on_setting("copied_too_late"));
}

static void some_threads_meet(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("some_threads", out);
    for (int t = 0; t < 128; t++) {
        const int rounds = 3 + 2 * (t / 64), other = (t % 64 + 33) % 64;
        const int sum = rounds * other + rounds * (rounds - 1) / 2;
        assert_true(out[t] == (float)sum);
    }
    assert_true(probe_depends_on_setting("halves_without_barriers"));
}

static void wrong_use_is_an_error(void **state)
{
    (void)state;
    probe_fails("wrong_halves", LAUNCH_FAILURE, "wrong_halves", "barrier");
    probe_fails("matrix_beside", LAUNCH_FAILURE, "matrix_beside", "multiple of 16 bytes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(products_are_right, probes_fresh),
        cmocka_unit_test_setup(copies_are_there_once_waited_for, probes_fresh),
        cmocka_unit_test_setup(some_threads_meet, probes_fresh),
        cmocka_unit_test_setup(wrong_use_is_an_error, probes_fresh),
    };
    probes_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
