/* GPUs that cost learners their process: tallied by UUID, put on the board at the limit. */
#include "daemon/quarantine.h"

#include "tests/support/unit.h"

#define FIRST  "GPU-00000000-0000-0000-0000-000000000001"
#define SECOND "GPU-00000000-0000-0000-0000-000000000002"

static void devices_are_tallied_apart(void **state)
{
    struct rm_quarantine q = {0};
    struct rm_board_run run = {0};
    uint32_t faults;
    (void)state;
    assert_false(rm_quarantine_fault(&q, &run, FIRST, 2, &faults));
    assert_int_equal(faults, 1);
    assert_false(rm_quarantine_fault(&q, &run, SECOND, 2, &faults));
    assert_int_equal(faults, 1);
    assert_int_equal(run.quarantined, 0);
    assert_true(rm_quarantine_fault(&q, &run, SECOND, 2, &faults));
    assert_int_equal(run.quarantined, 1);
    assert_string_equal(run.quarantine[0], SECOND);
    assert_true(rm_quarantine_fault(&q, &run, FIRST, 2, &faults));
    assert_int_equal(run.quarantined, 2);
    assert_string_equal(run.quarantine[1], FIRST);
}

static void a_device_is_put_there_once(void **state)
{
    struct rm_quarantine q = {0};
    struct rm_board_run run = {0};
    uint32_t faults;
    (void)state;
    assert_true(rm_quarantine_fault(&q, &run, FIRST, 1, &faults));
    assert_false(rm_quarantine_fault(&q, &run, FIRST, 1, &faults));
    assert_int_equal(faults, 2);
    assert_int_equal(run.quarantined, 1);
}

static void a_learner_on_the_cpu_has_no_device(void **state)
{
    struct rm_quarantine q = {0};
    struct rm_board_run run = {0};
    uint32_t faults = 7;
    (void)state;
    assert_false(rm_quarantine_fault(&q, &run, "cpu", 1, &faults));
    assert_false(rm_quarantine_fault(&q, &run, "", 1, &faults));
    assert_int_equal(faults, 0);
    assert_int_equal(run.quarantined, 0);
    assert_int_equal(q.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_tallied_apart),
        cmocka_unit_test(a_device_is_put_there_once),
        cmocka_unit_test(a_learner_on_the_cpu_has_no_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
