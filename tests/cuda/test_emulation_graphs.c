/* The emulation of captures and graphs. */
#include "tests/cuda/probes/run.h"
#include "tests/support/unit.h"

#include <string.h>

static void a_graph_repeats_what_was_captured(void **state)
{
    float out[PROBE_OUT];
    uint32_t word;
    (void)state;
    probe_everywhere("captured", out);
    assert_true(out[0] == 7 && out[63] == 7); /* 1, 3, 7 */
    memcpy(&word, &out[64], sizeof word);
    assert_int_equal(word, 0x01010101);
    assert_true(out[96] == 0);
    assert_true(out[128] == 7 && out[191] == 7);
}

static void nothing_runs_while_it_is_captured(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("only_captured", out);
    assert_true(out[0] == 0);
}

static void streams_fork_and_join_in_a_capture(void **state)
{
    float out[PROBE_OUT];
    (void)state;
    probe_everywhere("forked", out);
    assert_true(out[0] == 7 && out[127] == 16);
    assert_int_equal(probe("unjoined", out), CAPTURE_UNJOINED);
}

static void illegal_calls_end_a_capture(void **state)
{
    static const struct {
        const char *name;
        int error;
    } calls[] = {
        {"allocates_in_capture", CAPTURE_UNSUPPORTED},
        {"frees_in_capture", CAPTURE_UNSUPPORTED},
        {"waits_in_capture", CAPTURE_UNSUPPORTED},
        {"waits_for_all_in_capture", CAPTURE_UNSUPPORTED},
        {"queries_in_capture", CAPTURE_UNSUPPORTED},
        {"copies_at_once_in_capture", CAPTURE_UNSUPPORTED},
        {"follows_outside_in_capture", CAPTURE_ISOLATION},
    };
    float out[PROBE_OUT];
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        assert_int_equal(probe(calls[i].name, out), CAPTURE_INVALIDATED);
        assert_int_equal((int)out[0], calls[i].error);
    }
    assert_int_equal(probe("nothing_in_capture", out), 0);
}

static void launches_of_graphs_are_counted(void **state)
{
    struct rm_emulated_counts n;
    float out[PROBE_OUT];
    (void)state;
    assert_int_equal(probe("captured", out), 0);
    probes.counts(&n);
    assert_int_equal(n.graph_launches, 3);
    assert_int_equal(n.graph_nodes, 9);
    assert_int_equal(n.launches, 0);
    assert_int_equal(n.graphs + n.streams, 0);
    assert_int_equal(probes.reset(), 0);
}

int main(void)
{
    probes_open();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_graph_repeats_what_was_captured, probes_fresh),
        cmocka_unit_test_setup(nothing_runs_while_it_is_captured, probes_fresh),
        cmocka_unit_test_setup(streams_fork_and_join_in_a_capture, probes_fresh),
        cmocka_unit_test_setup(illegal_calls_end_a_capture, probes_fresh),
        cmocka_unit_test_setup(launches_of_graphs_are_counted, probes_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
