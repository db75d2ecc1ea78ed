/* kill -9 of a worker while it arrives at the end of a round: the supervisor settles what the dead
 * one left, its successor arrives if it had not, and the round advances exactly once. */
#include "tests/crash/fault_build.h"
#include "tests/crash/victim.h"
#include "tests/support/crew.h"
#include "tests/support/unit.h"

#include "shm/round.c"

static const struct {
    const char *name;
    bool arrived; /* does its arrival count when it dies there? */
} sites[] = {
    {"round.arrive.before", false},
    {"round.arrive.stored", true},
    {"round.advance.before", true},
};

static int last_to_arrive(void *arg)
{
    return rm_round_arrive(arg, 0) ? 0 : 1;
}

static void the_last_one_dies_at_every_site(void **state)
{
    (void)state;
    struct rm_round *round = rm_crew_memory(sizeof *round);
    rm_round_init(round, 3);
    uint64_t expected = 1;
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++)
        for (int settled = 0; settled < 2; settled++) {
            assert_false(rm_round_arrive(round, 1));
            assert_false(rm_round_arrive(round, 2));
            assert_int_equal(victim_wait(victim_start(last_to_arrive, round, sites[i].name, 1)),
                             VICTIM_KILLED);
            assert_int_equal(rm_round_current(round), expected);
            /* The supervisor, or a successor that was faster. */
            if (settled)
                assert_int_equal(rm_round_settle(round), sites[i].arrived);
            if (!settled || !sites[i].arrived)
                assert_int_equal(victim_wait(victim_start(last_to_arrive, round, NULL, 0)), 0);
            assert_int_equal(rm_round_current(round), ++expected);
            assert_false(rm_round_settle(round));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_one_dies_at_every_site)};
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
