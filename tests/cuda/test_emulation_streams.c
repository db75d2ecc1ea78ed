/* The emulation of streams, events and memory: late as a device is, and what is wrong is found. */
#include "tests/cuda/probes/run.h"
#include "tests/support/unit.h"

#include <stdlib.h>

static bool counts_up(const float *out, int n)
{
    for (int i = 0; i < n; i++)
        if (out[i] != (float)i)
            return false;
    return true;
}

static void a_stream_that_waits_sees_the_copy(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("waits_for_the_copy", out);
    assert_true(counts_up(out, 64));
}

static void a_missing_wait_shows(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    assert_int_equal(probe("forgets_to_wait", out), 0);
    assert_false(counts_up(out, 64));
}

static void a_batch_written_before_it_was_copied_shows(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    assert_int_equal(probe("writes_the_batch_too_early", out), 0);
    assert_false(counts_up(out, 64));
}

static void queries_are_not_ready_at_first(void **state)
{
    (void)state;
    for (unsigned i = 0; probes_setting(i); i++) {
        float out[PROBE_OUT];
        assert_int_equal(probe("queries", out), 0);
        if (i < 2)
            assert_true(out[0] == NOT_READY);
        assert_true(out[1] == 0 && out[2] == 0);
        if (i < 2)
            assert_true(out[3] == NOT_READY && out[7] == NOT_READY);
        assert_true(out[4] == 0 && out[5] == 1 && out[6] == 0);
    }
}

static void the_null_stream_is_in_order_with_others(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("null_stream", out);
    assert_true(out[0] == 2 && out[31] == 2 && out[32] == 3 && out[63] == 3);
}

static void pageable_copies_are_staged_and_counted(void **state)
{
    struct rm_emulated_counts before, after;
    float out[PROBE_OUT];
    (void)state;
    probes.counts(&before);
    assert_int_equal(probe("pageable", out), 0);
    assert_true(counts_up(out, 64));
    probes.counts(&after);
    assert_int_equal(after.pageable - before.pageable, 2);
    assert_int_equal(after.synchronizations - before.synchronizations, 1);
    assert_int_equal(after.bytes_in, 256);
    assert_int_equal(after.bytes_out, 256);
}

static void kernels_read_pinned_and_registered_memory(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("pinned_to_kernel", out);
    assert_true(counts_up(out, 64));
    probe_everywhere("registered_to_kernel", out);
    assert_true(out[63] == 5);
}

static void wrong_pointers_are_errors(void **state)
{
    (void)state;
    probe_fails("host_pointer_to_kernel", ILLEGAL_ADDRESS, "kernel copied: pointer 1",
                "is not the device's");
#ifndef __clang__ /* which does not distinguish padding from words */
    probe_fails("host_pointer_within", ILLEGAL_ADDRESS, "kernel copied_by_parts: within",
                "is not the device's");
#endif
    probe_fails("freed_to_kernel", ILLEGAL_ADDRESS, "kernel copied: pointer 1", "was freed");
    probe_fails("copies_too_much", ILLEGAL_ADDRESS, "cudaMemcpyAsync: copy from", "260 bytes at");
    probe_fails("copies_the_wrong_way", ILLEGAL_ADDRESS, "copy to", "is not the device's");
    probe_fails("frees_twice", INVALID_VALUE, "cudaFree", "freed before");
}

static void the_host_cannot_touch_device_memory(void **state)
{
    (void)state;
    assert_true(probe_kills("host_reads_device"));
}

static void fresh_memory_is_not_zero(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    assert_int_equal(probe("fresh_memory", out), 0);
    assert_true(out[0] != out[0] && out[63] != out[63]);
    assert_true(probe_depends_on_setting("fresh_memory"));
}

static void memory_ends(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    assert_int_equal(probe("all_memory", out), 0);
    const float want[] = {1, 0, OUT_OF_MEMORY, OUT_OF_MEMORY, 0, 1};
    assert_memory_equal(out, want, sizeof want);
}

static void nothing_is_left_by_right_programs(void **state)
{
    static const char *const names[] = {"waits_for_the_copy", "queries",
                                        "null_stream",        "pageable",
                                        "pinned_to_kernel",   "registered_to_kernel"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct rm_emulated_counts n;
        float out[PROBE_OUT];
        assert_int_equal(probe(names[i], out), 0);
        probes.counts(&n);
        assert_int_equal(n.allocations, n.frees);
        assert_int_equal(n.host_allocations, n.host_frees);
        assert_int_equal(n.device_bytes + n.host_bytes + n.registrations, 0);
        assert_int_equal(n.streams + n.events + n.graphs + n.waiting, 0);
        assert_int_equal(probes.reset(), 0);
    }
}

int main(void)
{
    setenv("RM_EMULATED_MEMORY", "16777216", 1);
    probes_open();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_stream_that_waits_sees_the_copy, probes_fresh),
        cmocka_unit_test_setup(a_missing_wait_shows, probes_fresh),
        cmocka_unit_test_setup(a_batch_written_before_it_was_copied_shows, probes_fresh),
        cmocka_unit_test_setup(queries_are_not_ready_at_first, probes_fresh),
        cmocka_unit_test_setup(the_null_stream_is_in_order_with_others, probes_fresh),
        cmocka_unit_test_setup(pageable_copies_are_staged_and_counted, probes_fresh),
        cmocka_unit_test_setup(kernels_read_pinned_and_registered_memory, probes_fresh),
        cmocka_unit_test_setup(wrong_pointers_are_errors, probes_fresh),
        cmocka_unit_test_setup(the_host_cannot_touch_device_memory, probes_fresh),
        cmocka_unit_test_setup(fresh_memory_is_not_zero, probes_fresh),
        cmocka_unit_test_setup(memory_ends, probes_fresh),
        cmocka_unit_test_setup(nothing_is_left_by_right_programs, probes_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
