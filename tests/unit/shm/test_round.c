/* shm/round: exactly one arrival completes a round; arriving twice, leaving, coming back. */
#include "tests/support/unit.h"

#include "shm/round.h"

static struct rm_round barrier;

static void last_one_advances(void **state)
{
    (void)state;
    rm_round_init(&barrier, 3);
    for (uint64_t r = 1; r < 50; r++) {
        assert_int_equal(rm_round_current(&barrier), r);
        assert_false(rm_round_arrive(&barrier, r % 3));
        assert_false(rm_round_arrive(&barrier, r % 3)); /* twice counts once */
        assert_false(rm_round_arrive(&barrier, (r + 1) % 3));
        assert_int_equal(rm_round_current(&barrier), r);
        assert_true(rm_round_arrive(&barrier, (r + 2) % 3));
    }
}

static void one_alone_always_advances(void **state)
{
    (void)state;
    rm_round_init(&barrier, 1);
    for (uint64_t r = 1; r < 10; r++)
        assert_true(rm_round_arrive(&barrier, 0));
    assert_int_equal(rm_round_current(&barrier), 10);
}

static void who_left_is_not_waited_for(void **state)
{
    (void)state;
    rm_round_init(&barrier, 3);
    assert_false(rm_round_leave(&barrier, 0));
    assert_false(rm_round_arrive(&barrier, 1));
    assert_true(rm_round_arrive(&barrier, 2));
    assert_false(rm_round_arrive(&barrier, 0)); /* gone for good */
    assert_false(rm_round_arrive(&barrier, 1));
    assert_true(rm_round_leave(&barrier, 2)); /* leaving can complete a round */
    assert_int_equal(rm_round_current(&barrier), 3);
    assert_true(rm_round_arrive(&barrier, 1));
    assert_true(rm_round_arrive(&barrier, 1));
}

static void who_died_after_arriving_completes_it_when_back(void **state)
{
    (void)state;
    rm_round_init(&barrier, 2);
    assert_false(rm_round_arrive(&barrier, 0));
    /* 1 stored its arrival and died before it looked at the others. */
    barrier.arrived[1] = 1;
    assert_true(rm_round_arrive(&barrier, 1));
    assert_int_equal(rm_round_current(&barrier), 2);
}

static void settling_advances_what_is_complete_and_arrives_for_nobody(void **state)
{
    (void)state;
    rm_round_init(&barrier, 2);
    assert_false(rm_round_arrive(&barrier, 0));
    assert_false(rm_round_settle(&barrier)); /* 1 died before it arrived: still waited for */
    assert_int_equal(rm_round_current(&barrier), 1);
    barrier.arrived[1] = 1; /* 1 died between arriving and advancing */
    assert_true(rm_round_settle(&barrier));
    assert_int_equal(rm_round_current(&barrier), 2);
    assert_false(rm_round_settle(&barrier));
    assert_int_equal(rm_round_current(&barrier), 2);
}

static void who_left_last_leaves_the_round_and_all_come_back_to_it(void **state)
{
    (void)state;
    rm_round_init(&barrier, 2);
    assert_false(rm_round_arrive(&barrier, 0));
    assert_true(rm_round_arrive(&barrier, 1));
    assert_false(rm_round_left(&barrier, 0));
    assert_false(rm_round_leave(&barrier, 0));
    assert_true(rm_round_left(&barrier, 0));
    assert_false(rm_round_leave(&barrier, 1));
    assert_false(rm_round_settle(&barrier));
    assert_int_equal(rm_round_current(&barrier), 2);
    rm_round_come_back(&barrier, 0, false);
    rm_round_come_back(&barrier, 1, true);
    assert_false(rm_round_left(&barrier, 0));
    assert_false(rm_round_arrive(&barrier, 1)); /* it has done its share already */
    assert_true(rm_round_arrive(&barrier, 0));
    assert_int_equal(rm_round_current(&barrier), 3);
    rm_round_come_back(&barrier, 0, false); /* it never left */
    assert_false(rm_round_arrive(&barrier, 1));
    assert_true(rm_round_arrive(&barrier, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_one_advances),
        cmocka_unit_test(one_alone_always_advances),
        cmocka_unit_test(who_left_is_not_waited_for),
        cmocka_unit_test(who_died_after_arriving_completes_it_when_back),
        cmocka_unit_test(who_left_last_leaves_the_round_and_all_come_back_to_it),
        cmocka_unit_test(settling_advances_what_is_complete_and_arrives_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
