/* When a run with a foreign world counts as standing still. */
#include "daemon/standstill.h"

#include "shm/atomic.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <string.h>

#define HEARTBEAT_NS 2000000000u
#define TICK_NS      (HEARTBEAT_NS / RM_SUPERVISOR_LOOKS)

static struct rm_session session;
static struct rm_supervisor supervisor;
static struct rm_standstill standstill;
static char why[256];

static struct rm_board_worker *worker(uint32_t i)
{
    return &session.board.workers[i];
}

static int setup(void **state)
{
    (void)state;
    memset(&supervisor, 0, sizeof supervisor);
    memset(&standstill, 0, sizeof standstill);
    if (rm_test_session(&session,
                        "{\"name\":\"x\",\"world\":{\"name\":\"count\"},"
                        "\"actor\":{\"count\":2,\"worlds\":2},"
                        "\"algorithm\":{\"name\":\"dqn\"},"
                        "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":4}]}}") < 0)
        return -1;
    strcpy(session.experiment.world.library, "/a/foreign/world.so");
    supervisor.count = session.objects.workers;
    supervisor.limits.heartbeat_ns = HEARTBEAT_NS;
    for (uint32_t i = 0; i < session.objects.workers; i++) {
        supervisor.workers[i].state = RM_SUPERVISED_UP;
        RM_RAISE(&worker(i)->state, RM_WORKER_WAITING);
    }
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rm_session_close(&session);
    return 0;
}

/* Looks once a tick, for ten times the silence that a worker may have; every worker whose bit is in
 * `looking` falls asleep once a tick, as it does that looks for work and finds none. */
static bool stands(uint32_t looking)
{
    for (uint64_t now = TICK_NS; now < 10ull * HEARTBEAT_NS; now += TICK_NS) {
        if (rm_standstill_look(&standstill, &session, &supervisor, true, now, why, sizeof why))
            return true;
        for (uint32_t i = 0; i < session.objects.workers; i++)
            RM_ADD_OWN(&worker(i)->sleeps, looking >> i & 1);
    }
    return false;
}

static void workers_that_all_wait_stand_still(void **state)
{
    (void)state;
    assert_true(stands(0));
    assert_string_equal(why, "the board was damaged by one of actor-0 to actor-1: all workers "
                             "wait, and none makes a turn");
}

static void one_that_looks_for_work_in_vain_is_waiting(void **state)
{
    (void)state;
    RM_RAISE(&worker(0)->state, RM_WORKER_BUSY);
    assert_true(stands(1));
}

/* SIGSTOP in step(), or a long update: the supervisor's heartbeat decides. */
static void one_in_a_turn_is_no_standstill(void **state)
{
    (void)state;
    RM_RAISE(&worker(0)->state, RM_WORKER_BUSY);
    assert_false(stands(~1u));
}

/* Stopped in its sleep and woken: it is silent, asked for its report, and killed. */
static void one_that_is_being_killed_is_no_standstill(void **state)
{
    (void)state;
    supervisor.workers[1].hung = true;
    assert_false(stands(0));
}

static void one_that_works_is_no_standstill(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        RM_ADD_OWN(&worker(2)->turns, 1);
        assert_false(rm_standstill_look(&standstill, &session, &supervisor, true,
                                        (uint64_t)(i + 1) * 2 * HEARTBEAT_NS, why, sizeof why));
    }
}

static void a_run_without_a_foreign_world_is_not_checked(void **state)
{
    (void)state;
    session.experiment.world.library[0] = '\0';
    assert_false(stands(0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(workers_that_all_wait_stand_still), TEST(one_that_looks_for_work_in_vain_is_waiting),
        TEST(one_in_a_turn_is_no_standstill),    TEST(one_that_is_being_killed_is_no_standstill),
        TEST(one_that_works_is_no_standstill),   TEST(a_run_without_a_foreign_world_is_not_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
