/* The emulation of blocks: what right kernels compute in every order, and that each kind of wrong
 * one is found. */
#include "tests/cuda/probes/run.h"
#include "tests/support/unit.h"

#include <string.h>

/* --- right kernels -----------------------------------------------------------------------------
 */

static void reduces_over_warps_and_blocks(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("sums", out);
    for (int b = 0; b < 20; b++)
        assert_true(out[b] == (float)(127 * 64 + 128 * b));
}

/* The same in plain C: what each thread's votes and shuffles must give. */
static unsigned meeting_of(unsigned t)
{
    const unsigned warp = t / 32 * 32, lane = t % 32;
    unsigned ballot = 0;
    for (unsigned i = 0; i < 32; i++)
        ballot |= (unsigned)((warp + i) % 3 == 0) << i;
    unsigned v = ballot;
    v = v * 31 + (warp == 32 ? 1u : 0u) + 2u * (warp == 0 ? 1u : 0u);
    const unsigned from = warp + (t + 5) % 32;
    v = v * 31 + from * from;
    v = v * 31 + (warp + (lane ^ 9));
    v = v * 31 + (lane < 3 ? t : t - 3);
    v = v * 31 + (lane % 8 + 3 < 8 ? t + 3 : t);
    v = v * 31 + 13; /* of 64 threads, 1, 6, ... 61 */
    v = v * 31 + 1u + 0u;
    if (lane < 16)
        v = v * 31 + warp + 2;
    return v % 65521u;
}

static void votes_and_shuffles_are_right(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("meetings", out);
    for (unsigned t = 0; t < 64; t++)
        assert_int_equal((unsigned)out[t], meeting_of(t));
}

static void shared_memory_of_a_launch_is_right(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("turned", out);
    for (int i = 0; i < 1000; i++)
        assert_true(out[i] == (float)(999 - i));
}

static void places_have_three_dimensions(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("places", out);
    for (int b = 0; b < 12; b++)
        for (int t = 0; t < 60; t++)
            assert_true(out[b * 60 + t] == (float)(b * 100 + t));
}

static void atomics_add_up(void **state)
{
    float out[PROBE_OUT];
    uint32_t n[8];
    (void)state;
    probe_everywhere("counted", out);
    memcpy(n, out, sizeof n);
    assert_int_equal(n[0], 4 * 63 * 64 / 2);
    assert_int_equal(n[1], 63);
    assert_int_equal(n[2], 0);
    assert_int_equal(n[3], 2 * 256);
    assert_int_equal(n[4], 9);
    assert_int_equal(n[5], 512);
}

/* --- wrong kernels -----------------------------------------------------------------------------
 */

static void missing_barriers_show(void **state)
{
    (void)state;
    assert_true(probe_depends_on_setting("without_barrier"));
    assert_true(probe_depends_on_setting("without_second_barrier"));
}

static void blocks_that_rely_on_each_other_show(void **state)
{
    (void)state;
    assert_true(probe_depends_on_setting("between_blocks"));
}

static void uninitialised_shared_memory_shows(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    assert_int_equal(probe("uninitialised", out), 0);
    assert_true(out[31] == 1);
    assert_true(out[32] != out[32]); /* not a number */
    assert_true(probe_depends_on_setting("uninitialised"));
    assert_true(probe_depends_on_setting("uninitialised_dynamic"));
}

static void divergent_barriers_are_errors(void **state)
{
    (void)state;
    probe_fails("exits_before_barrier", LAUNCH_FAILURE, "exits_before_barrier",
                "thread (5,0,0) has ended");
    probe_fails("at_two_barriers", LAUNCH_FAILURE, "at_two_barriers", "__syncthreads");
}

static void divergent_warps_are_errors(void **state)
{
    (void)state;
    probe_fails("lane_stays_away", LAUNCH_FAILURE, "lane_stays_away", "thread (3,0,0) has ended");
    probe_fails("meets_elsewhere", LAUNCH_FAILURE, "meets_elsewhere", "meet at different places");
    probe_fails("beyond_the_warp", LAUNCH_FAILURE, "beyond_the_warp", "takes no part");
}

static void traps_are_errors(void **state)
{
    (void)state;
    probe_fails("trapped", LAUNCH_FAILURE, "trapped", "thread (2,0,0)");
}

static void launches_are_checked(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_fails("block_too_large", INVALID_CONFIGURATION, "places", "1025");
    probe_fails("grid_of_none", INVALID_CONFIGURATION, "places", "grid of 0");
    probe_fails("shared_too_large", INVALID_CONFIGURATION, "turned",
                "50000 bytes of shared memory");
    probes.reset();
    assert_int_equal(probe("shared_allowed", out), 0);
    assert_true(out[0] == 3);
}

/* Out of bounds: red zones show it afterwards; AddressSanitizer ends the process at once. */
static void writing_beyond_shared_memory_is_found(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    if (WITH_ASAN)
        assert_true(probe_kills("beyond_dynamic"));
    else {
        assert_int_equal(probe("beyond_dynamic", out), ILLEGAL_ADDRESS);
        assert_non_null(strstr(probes.complaint(), "outside of its shared memory"));
    }
}

static void writing_beyond_device_memory_is_found(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    if (WITH_ASAN)
        assert_true(probe_kills("beyond_device"));
    else {
        assert_int_equal(probe("beyond_device", out), ILLEGAL_ADDRESS);
        assert_non_null(strstr(probes.complaint(), "behind a piece"));
    }
}

/* Arrays that a kernel declares: the bounds are UndefinedBehaviorSanitizer's. */
static void writing_beyond_a_shared_array_is_found(void **state)
{
    (void)state;
    if (!WITH_ASAN) {
        print_message("skipped: needs a build with sanitizers (make asan)\n");
        skip();
    }
    assert_true(probe_kills("beyond_static"));
}

int main(void)
{
    probes_open();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(reduces_over_warps_and_blocks, probes_fresh),
        cmocka_unit_test_setup(votes_and_shuffles_are_right, probes_fresh),
        cmocka_unit_test_setup(shared_memory_of_a_launch_is_right, probes_fresh),
        cmocka_unit_test_setup(places_have_three_dimensions, probes_fresh),
        cmocka_unit_test_setup(atomics_add_up, probes_fresh),
        cmocka_unit_test_setup(missing_barriers_show, probes_fresh),
        cmocka_unit_test_setup(blocks_that_rely_on_each_other_show, probes_fresh),
        cmocka_unit_test_setup(uninitialised_shared_memory_shows, probes_fresh),
        cmocka_unit_test_setup(divergent_barriers_are_errors, probes_fresh),
        cmocka_unit_test_setup(divergent_warps_are_errors, probes_fresh),
        cmocka_unit_test_setup(traps_are_errors, probes_fresh),
        cmocka_unit_test_setup(launches_are_checked, probes_fresh),
        cmocka_unit_test_setup(writing_beyond_shared_memory_is_found, probes_fresh),
        cmocka_unit_test_setup(writing_beyond_device_memory_is_found, probes_fresh),
        cmocka_unit_test_setup(writing_beyond_a_shared_array_is_found, probes_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
