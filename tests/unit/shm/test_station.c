/* Stations: every phase of work belongs to one station. */
#include "shm/station.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* Stations that have the phase of a role. */
static int stations_with(enum rm_role role, enum rm_phase phase)
{
    int n = 0;
    for (int s = 0; s < RM_STATION_COUNT; s++)
        n += rm_station_phases((enum rm_station)s, role) >> phase & 1;
    return n;
}

static void every_phase_of_work_has_one_station(void **state)
{
    static const enum rm_phase acting[] = {RM_PHASE_OTHER, RM_PHASE_ENVIRONMENT, RM_PHASE_INFERENCE,
                                           RM_PHASE_RING};
    static const enum rm_phase learning[] = {
        RM_PHASE_OTHER,    RM_PHASE_SAMPLING,  RM_PHASE_UPLOAD, RM_PHASE_FORWARD,
        RM_PHASE_BACKWARD, RM_PHASE_OPTIMIZER, RM_PHASE_PUBLISH};
    (void)state;
    for (size_t i = 0; i < sizeof acting / sizeof acting[0]; i++)
        assert_int_equal(stations_with(RM_ROLE_ACTOR, acting[i]), 1);
    for (size_t i = 0; i < sizeof learning / sizeof learning[0]; i++)
        assert_int_equal(stations_with(RM_ROLE_LEARNER, learning[i]), 1);
    assert_int_equal(stations_with(RM_ROLE_EVALUATOR, RM_PHASE_INFERENCE), 1);
}

static void nobody_works_while_waiting(void **state)
{
    (void)state;
    for (int r = 0; r < RM_ROLE_COUNT; r++)
        assert_int_equal(stations_with((enum rm_role)r, RM_PHASE_WAITING), 0);
}

static void names_are_different(void **state)
{
    (void)state;
    for (int s = 0; s < RM_STATION_COUNT; s++)
        for (int t = 0; t < s; t++)
            assert_string_not_equal(rm_station_name((enum rm_station)s),
                                    rm_station_name((enum rm_station)t));
    assert_string_equal(rm_station_name(RM_STATION_COUNT), "unknown");
    assert_int_equal(rm_station_phases(RM_STATION_HOST, RM_ROLE_ACTOR), 0);
    assert_int_equal(rm_station_phases(RM_STATION_COUNT, RM_ROLE_ACTOR), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_phase_of_work_has_one_station),
        cmocka_unit_test(nobody_works_while_waiting),
        cmocka_unit_test(names_are_different),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
