/* The supervisor's table with an invented clock: no process, no sleep. */
#include "daemon/supervisor.h"

#include "shm/base/clock.h"
#include "shm/duty.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define S  RM_NS_PER_S
#define MS RM_NS_PER_MS

/* What the supervisor did. */
static struct {
    int spawns, terms, asks, kills, changes;
    int next_pid; /* > 0, or the errno that spawn() fails with */
    uint64_t generation;
    enum rm_supervised last;
} did;

static struct rm_supervisor supervisor;

static int fake_spawn(void *user, uint32_t index, uint64_t generation, struct rm_error *error)
{
    (void)user, (void)index;
    did.spawns++;
    did.generation = generation;
    return did.next_pid > 0 ? did.next_pid++ : rm_fail(error, did.next_pid, "no such luck");
}

static void fake_kill(void *user, uint32_t index, int pid, int number)
{
    (void)user, (void)index;
    assert_true(pid > 0);
    did.terms += number == SIGTERM;
    did.asks += number == SIGQUIT;
    did.kills += number == SIGKILL;
}

static void fake_changed(void *user, uint32_t index, enum rm_supervised before,
                         const struct rm_supervised_worker *worker)
{
    (void)user, (void)index, (void)before;
    did.last = worker->state;
    did.changes++;
}

static const struct rm_supervisor_ops ops = {fake_spawn, fake_kill, fake_changed};

static const struct rm_supervisor_limits limits = {
    .heartbeat_ns = 10 * S,
    .start_ns = 60 * S,
    .report_ns = 4 * S,
    .respawn_floor_ns = 200 * MS,
    .backoff_max_ns = 5 * S,
    .deaths_window_ns = 60 * S,
    .stop_grace_ns = 3 * S,
    .deaths_max = 6,
};

static int setup(void **state)
{
    (void)state;
    memset(&did, 0, sizeof did);
    did.next_pid = 100;
    return rm_supervisor_init(&supervisor, 2, &limits, &ops, NULL, NULL);
}

static struct rm_supervised_worker *w(void)
{
    return &supervisor.workers[0];
}

static void die(int number, int64_t status, uint64_t now)
{
    struct rm_exit_report report = {.status = status, .signal = number};
    rm_supervisor_exited(&supervisor, 0, &report, "", now);
}

static void bring_up(uint64_t now)
{
    rm_supervisor_start(&supervisor, 0, now);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_WAITING, 0, now);
    assert_int_equal(w()->state, RM_SUPERVISED_UP);
}

static void a_worker_comes_up_and_finishes(void **state)
{
    (void)state;
    rm_supervisor_start(&supervisor, 0, 1 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_STARTING);
    assert_int_equal(w()->generation, 1);
    assert_int_equal(w()->pid, 100);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_STARTING, 0, 1 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_STARTING);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 1 * S, 1 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_UP);
    assert_int_equal(rm_supervisor_due(&supervisor), 0);
    struct rm_exit_report done = {.done = true};
    rm_supervisor_exited(&supervisor, 0, &done, "", 2 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_DOWN);
    assert_true(w()->finished);
    assert_int_equal(w()->pid, 0);
    assert_int_equal(rm_supervisor_alive(&supervisor), 0);
    assert_int_equal(did.spawns, 1);
}

static void after_an_absence_workers_have_a_new_grace(void **state)
{
    (void)state;
    bring_up(10 * S);
    /* Everybody was frozen from 15 s to 80 s: its last word is of 14 s. */
    assert_true(rm_supervisor_away(&supervisor, 65 * S, 80 * S));
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 14 * S, 80 * S);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 14 * S, 90 * S);
    assert_int_equal(did.asks + did.kills, 0);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 14 * S, 91 * S);
    assert_int_equal(did.asks, 1); /* one that hangs is still found */
}

static void a_short_absence_is_no_excuse(void **state)
{
    (void)state;
    bring_up(10 * S);
    for (uint64_t now = 12 * S; now <= 20 * S; now += 2 * S) {
        assert_false(rm_supervisor_away(&supervisor, 2 * S, now));
        rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 10 * S, now);
    }
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 10 * S, 21 * S);
    assert_int_equal(did.asks, 1);
}

static void what_is_due_waits_for_who_was_away(void **state)
{
    (void)state;
    bring_up(10 * S);
    rm_supervisor_stop(&supervisor, 0, 11 * S); /* to be killed at 14 s */
    rm_supervisor_away(&supervisor, 1 * S, 13 * S);
    rm_supervisor_tick(&supervisor, 14 * S);
    assert_int_equal(did.kills, 0);
    rm_supervisor_tick(&supervisor, 15 * S);
    assert_int_equal(did.kills, 1);
}

static void starting_twice_makes_one_process(void **state)
{
    (void)state;
    rm_supervisor_start(&supervisor, 0, 1 * S);
    rm_supervisor_start(&supervisor, 0, 1 * S);
    assert_int_equal(did.spawns, 1);
}

static void a_killed_worker_is_back_at_once(void **state)
{
    (void)state;
    bring_up(10 * S);
    die(SIGKILL, 0, 20 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_BACKING_OFF);
    assert_int_equal(w()->pid, 0);
    assert_string_equal(w()->reason, "ended by signal 9 (Killed)");
    /* Long after its start there is nothing to wait for. */
    assert_true(rm_supervisor_due(&supervisor) <= 20 * S);
    rm_supervisor_tick(&supervisor, 20 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_STARTING);
    assert_int_equal(did.generation, 2);
    /* The second death within the window doubles the floor. */
    die(SIGKILL, 0, 20 * S + 50 * MS);
    assert_int_equal(rm_supervisor_due(&supervisor), 20 * S + 450 * MS);
    rm_supervisor_tick(&supervisor, 20 * S + 449 * MS);
    assert_int_equal(did.spawns, 2);
    rm_supervisor_tick(&supervisor, 20 * S + 450 * MS);
    assert_int_equal(did.spawns, 3);
    assert_int_equal(w()->generation, 3);
}

static void a_death_right_after_the_start_waits_for_the_floor(void **state)
{
    (void)state;
    bring_up(10 * S);
    die(0, 1, 10 * S + 20 * MS);
    assert_int_equal(rm_supervisor_due(&supervisor), 10 * S + 200 * MS);
    assert_string_equal(w()->reason, "exited with 1");
}

static void delays_double_up_to_the_limit(void **state)
{
    (void)state;
    struct rm_supervised_worker worker = {.started_ns = 0};
    const uint64_t expected_ms[] = {0, 400, 800, 1600, 3200, 5000, 5000};
    for (size_t i = 0; i < sizeof expected_ms / sizeof expected_ms[0]; i++) {
        worker.died_ns[i] = 100 * S;
        worker.deaths = i + 1;
        assert_int_equal(rm_supervisor_backoff(&limits, &worker, 100 * S), expected_ms[i] * MS);
    }
    /* A quiet window later all is forgiven. */
    assert_int_equal(rm_supervisor_backoff(&limits, &worker, 161 * S), 0);
}

static void too_many_deaths_fail_it(void **state)
{
    (void)state;
    uint64_t now = 100 * S;
    bring_up(now);
    for (uint32_t i = 0; i < limits.deaths_max; i++) {
        now += 1 * S;
        struct rm_exit_report report = {.status = 1};
        rm_supervisor_exited(&supervisor, 0, &report, "no world", now);
        if (i + 1 < limits.deaths_max) {
            assert_int_equal(w()->state, RM_SUPERVISED_BACKING_OFF);
            now = rm_supervisor_due(&supervisor);
            rm_supervisor_tick(&supervisor, now);
            assert_int_equal(w()->state, RM_SUPERVISED_STARTING);
        }
    }
    assert_int_equal(w()->state, RM_SUPERVISED_FAILED);
    assert_string_equal(w()->reason, "exited with 1: no world");
    assert_string_equal(
        w()->failure,
        "died 6 times within 60 s (supervisor.deaths_max); the last time: exited with 1: no world");
    rm_supervisor_tick(&supervisor, now + 1000 * S);
    rm_supervisor_start(&supervisor, 0, now);
    assert_int_equal(did.spawns, limits.deaths_max);
}

static void deaths_far_apart_do_not_fail_it(void **state)
{
    (void)state;
    uint64_t now = 100 * S;
    bring_up(now);
    for (uint32_t i = 0; i < 3 * RM_DEATHS_REMEMBERED; i++) {
        now += 15 * S; /* 4 or 5 in a window of 60 s */
        die(SIGSEGV, 0, now);
        now = rm_supervisor_due(&supervisor);
        rm_supervisor_tick(&supervisor, now);
        assert_int_equal(w()->state, RM_SUPERVISED_STARTING);
    }
    assert_int_equal(w()->deaths, 3 * RM_DEATHS_REMEMBERED);
    assert_int_equal(w()->generation, 3 * RM_DEATHS_REMEMBERED + 1);
}

static void exit_never_is_not_restarted(void **state)
{
    (void)state;
    bring_up(10 * S);
    struct rm_exit_report report = {.status = RM_EXIT_NEVER};
    rm_supervisor_exited(&supervisor, 0, &report, "the library is gone", 11 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_FAILED);
    assert_string_equal(w()->reason, "exited with 125: the library is gone");
    assert_string_equal(w()->failure, w()->reason);
    assert_int_equal(did.spawns, 1);
}

static void a_missing_program_fails_at_once(void **state)
{
    (void)state;
    did.next_pid = -ENOENT;
    rm_supervisor_start(&supervisor, 0, 10 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_FAILED);
    assert_string_equal(w()->reason, "could not be started: no such luck");
    assert_int_equal(did.changes, 1); /* one report, of the outcome */
    assert_int_equal(did.last, RM_SUPERVISED_FAILED);
}

/* It is being replaced, by an upgrade. */
static void a_program_that_was_there_is_looked_for_again(void **state)
{
    (void)state;
    bring_up(10 * S);
    struct rm_exit_report report = {.signal = 9};
    rm_supervisor_exited(&supervisor, 0, &report, "", 11 * S);
    did.next_pid = -ENOENT;
    rm_supervisor_tick(&supervisor, rm_supervisor_due(&supervisor));
    assert_int_equal(w()->state, RM_SUPERVISED_BACKING_OFF);
    did.next_pid = 7;
    rm_supervisor_tick(&supervisor, rm_supervisor_due(&supervisor));
    assert_int_equal(w()->state, RM_SUPERVISED_STARTING);
    assert_int_equal(w()->pid, 7);
}

static void a_shortage_of_processes_is_tried_again(void **state)
{
    (void)state;
    did.next_pid = -EAGAIN;
    rm_supervisor_start(&supervisor, 0, 10 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_BACKING_OFF);
    did.next_pid = 7;
    rm_supervisor_tick(&supervisor, rm_supervisor_due(&supervisor));
    assert_int_equal(w()->state, RM_SUPERVISED_STARTING);
    assert_int_equal(w()->pid, 7);
}

static void only_a_busy_worker_hangs(void **state)
{
    (void)state;
    bring_up(100 * S);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 105 * S, 115 * S);
    assert_int_equal(did.asks, 0); /* exactly at the limit */
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_WAITING, 105 * S, 500 * S);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_DONE, 105 * S, 500 * S);
    assert_int_equal(did.asks, 0);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 105 * S, 115 * S + 1);
    assert_int_equal(did.asks, 1);
    assert_int_equal(did.kills, 0);
    /* Asked once, to say where it is and to die; then killed once. */
    assert_int_equal(rm_supervisor_due(&supervisor), 119 * S + 1);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 105 * S, 118 * S);
    rm_supervisor_tick(&supervisor, 119 * S);
    assert_int_equal(did.kills, 0);
    rm_supervisor_tick(&supervisor, 119 * S + 1);
    assert_int_equal(did.kills, 1);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 105 * S, 120 * S);
    assert_int_equal(rm_supervisor_due(&supervisor), 0);
    assert_int_equal(did.asks, 1);
    assert_int_equal(did.kills, 1);
    die(SIGKILL, 0, 121 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_BACKING_OFF);
    assert_string_equal(w()->reason, "killed after more than 10.0 s without a heartbeat");
    rm_supervisor_tick(&supervisor, rm_supervisor_due(&supervisor));
    assert_int_equal(did.generation, 2);
}

static void a_predecessors_heartbeat_is_not_held_against_it(void **state)
{
    (void)state;
    bring_up(100 * S);
    /* The heartbeat on the board is from before this process. */
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 50 * S, 105 * S);
    assert_int_equal(did.kills, 0);
    /* And one that is ahead of the clock reading is no silence. */
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 106 * S, 105 * S);
    assert_int_equal(did.kills, 0);
}

static void a_start_that_takes_too_long_is_killed(void **state)
{
    (void)state;
    rm_supervisor_start(&supervisor, 0, 10 * S);
    assert_int_equal(rm_supervisor_due(&supervisor), 70 * S);
    rm_supervisor_tick(&supervisor, 70 * S);
    assert_int_equal(did.asks, 1);
    assert_int_equal(did.kills, 0);
    /* It gets ready just then: no way back. */
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_BUSY, 71 * S, 71 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_STARTING);
    assert_int_equal(rm_supervisor_due(&supervisor), 74 * S);
    rm_supervisor_tick(&supervisor, 74 * S);
    assert_int_equal(did.kills, 1);
    die(SIGKILL, 0, 74 * S + MS);
    assert_int_equal(w()->state, RM_SUPERVISED_BACKING_OFF);
    assert_string_equal(w()->reason, "killed after more than 60.0 s without a heartbeat");
}

static void a_stop_does_not_hide_how_it_died(void **state)
{
    (void)state;
    bring_up(10 * S);
    die(SIGKILL, 0, 20 * S);
    rm_supervisor_tick(&supervisor, 20 * S);
    rm_supervisor_observe(&supervisor, 0, RM_WORKER_WAITING, 0, 20 * S);
    rm_supervisor_stop_all(&supervisor, 30 * S);
    die(0, RM_EXIT_OK, 30 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_DOWN);
    assert_int_equal(w()->deaths, 1);
    assert_string_equal(w()->reason, "ended by signal 9 (Killed)");
}

static void stopping_asks_first_and_kills_later(void **state)
{
    (void)state;
    bring_up(10 * S);
    rm_supervisor_stop_all(&supervisor, 20 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_STOPPING);
    assert_int_equal(did.terms, 1);
    assert_int_equal(rm_supervisor_alive(&supervisor), 1);
    rm_supervisor_tick(&supervisor, 22 * S);
    assert_int_equal(did.kills, 0);
    rm_supervisor_tick(&supervisor, 23 * S);
    assert_int_equal(did.kills, 1);
    assert_int_equal(rm_supervisor_due(&supervisor), 0);
    die(SIGKILL, 0, 23 * S);
    assert_int_equal(w()->state, RM_SUPERVISED_DOWN);
    assert_false(w()->finished);
    assert_int_equal(w()->deaths, 0); /* it was asked to go */
    rm_supervisor_tick(&supervisor, 1000 * S);
    assert_int_equal(did.spawns, 1);
}

static void a_stop_ends_a_backoff(void **state)
{
    (void)state;
    bring_up(10 * S);
    die(SIGKILL, 0, 10 * S + MS);
    rm_supervisor_stop_all(&supervisor, 10 * S + 2 * MS);
    assert_int_equal(w()->state, RM_SUPERVISED_DOWN);
    assert_int_equal(rm_supervisor_due(&supervisor), 0);
    rm_supervisor_tick(&supervisor, 100 * S);
    assert_int_equal(did.spawns, 1);
}

static void leaving_without_being_done_is_a_death(void **state)
{
    (void)state;
    bring_up(10 * S);
    die(0, RM_EXIT_OK, 20 * S); /* somebody sent it SIGTERM */
    assert_int_equal(w()->state, RM_SUPERVISED_BACKING_OFF);
    assert_int_equal(w()->deaths, 1);
}

/* Whatever comes in whatever order: pid and state stay consistent, and a date is set where one is
 * waited for. */
static void no_order_of_events_breaks_it(void **state)
{
    for (uint32_t seed = 1; seed < 2000; seed++) {
        setup(state);
        uint32_t x = seed;
        uint64_t now = 100 * S;
        for (int i = 0; i < 60; i++) {
            x = x * 1664525u + 1013904223u;
            now += (x >> 8) % (2 * S);
            struct rm_exit_report report = {.status = (x >> 4) % 3 ? 1 : 0,
                                            .signal = (x >> 6) % 3 ? 0 : SIGKILL,
                                            .done = (x >> 9) & 1};
            switch ((x >> 16) % 6) {
            case 0:
                rm_supervisor_start(&supervisor, 0, now);
                break;
            case 1:
                if (w()->pid)
                    rm_supervisor_exited(&supervisor, 0, &report, "", now);
                break;
            case 2:
                rm_supervisor_observe(&supervisor, 0, (enum rm_worker_state)((x >> 20) % 6),
                                      now - (x >> 12) % (20 * S), now);
                break;
            case 3:
                rm_supervisor_tick(&supervisor, now);
                break;
            case 4:
                if ((x >> 24) % 8 == 0)
                    rm_supervisor_stop(&supervisor, 0, now);
                break;
            default:
                did.next_pid = (x >> 22) % 8 ? 100 + i : -EAGAIN;
                break;
            }
            bool process = w()->state == RM_SUPERVISED_STARTING || w()->state == RM_SUPERVISED_UP ||
                           w()->state == RM_SUPERVISED_STOPPING;
            assert_int_equal(process, w()->pid > 0);
            assert_true(w()->state < RM_SUPERVISED_COUNT);
            assert_true(w()->state != RM_SUPERVISED_BACKING_OFF || w()->due_ns > 0);
        }
    }
}

static void names_are_there(void **state)
{
    (void)state;
    assert_string_equal(rm_supervised_name(RM_SUPERVISED_BACKING_OFF), "backing off");
    assert_string_equal(rm_supervised_name((enum rm_supervised)99), "?");
}

static void too_many_workers_are_refused(void **state)
{
    (void)state;
    struct rm_error error = {.text = ""};
    assert_int_equal(
        rm_supervisor_init(&supervisor, RM_BOARD_WORKERS + 1, &limits, &ops, NULL, &error),
        -EINVAL);
    assert_non_null(strstr(error.text, "257"));
}

#define T(f) cmocka_unit_test_setup(f, setup)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_worker_comes_up_and_finishes),
        T(after_an_absence_workers_have_a_new_grace),
        T(a_short_absence_is_no_excuse),
        T(what_is_due_waits_for_who_was_away),
        T(starting_twice_makes_one_process),
        T(a_killed_worker_is_back_at_once),
        T(a_death_right_after_the_start_waits_for_the_floor),
        T(delays_double_up_to_the_limit),
        T(too_many_deaths_fail_it),
        T(deaths_far_apart_do_not_fail_it),
        T(exit_never_is_not_restarted),
        T(a_missing_program_fails_at_once),
        T(a_program_that_was_there_is_looked_for_again),
        T(a_shortage_of_processes_is_tried_again),
        T(only_a_busy_worker_hangs),
        T(a_predecessors_heartbeat_is_not_held_against_it),
        T(a_start_that_takes_too_long_is_killed),
        T(stopping_asks_first_and_kills_later),
        T(a_stop_does_not_hide_how_it_died),
        T(a_stop_ends_a_backoff),
        T(leaving_without_being_done_is_a_death),
        T(no_order_of_events_breaks_it),
        T(names_are_there),
        T(too_many_workers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
