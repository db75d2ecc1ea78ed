/* What counts as a stall of the daemon's loop: its own doing, not that of others on the host. */
#include "tests/support/unit.h"

#include "daemon/stall.h"

#include <time.h>

#define MS UINT64_C(1000000)

static void a_turn_that_was_pushed_aside_is_its_work(void **state)
{
    (void)state;
    struct rm_stall s = {.turns = 0};
    rm_stall_count(
        &s, &(struct rm_stall_turn){
                .passed_ns = 90 * MS, .waited_ns = 40 * MS, .worked_ns = 2 * MS, .switches = 1});
    assert_int_equal(s.max_ns, 2 * MS);
    assert_int_equal(s.max_clock_ns, 50 * MS);
    assert_int_equal(s.slept, 0);
}

static void a_turn_that_slept_in_a_call_is_by_the_clock(void **state)
{
    (void)state;
    struct rm_stall s = {.turns = 0};
    rm_stall_count(
        &s, &(struct rm_stall_turn){
                .passed_ns = 90 * MS, .waited_ns = 40 * MS, .worked_ns = 2 * MS, .switches = 2});
    assert_int_equal(s.max_ns, 50 * MS);
    assert_int_equal(s.slept, 1);
    /* One that did not wait on the loop at all has no switch of its own. */
    rm_stall_count(
        &s, &(struct rm_stall_turn){.passed_ns = 60 * MS, .worked_ns = 1 * MS, .switches = 1});
    assert_int_equal(s.max_ns, 60 * MS);
    assert_int_equal(s.turns, 2);
    assert_int_equal(s.slept, 2);
}

static uint64_t until_ns;

static uint64_t clock_ns(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static void work(uv_timer_t *timer)
{
    (void)timer;
    until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 30 * MS;
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
        ;
}

static void sleep_in_a_call(uv_timer_t *timer)
{
    (void)timer;
    nanosleep(&(struct timespec){.tv_nsec = 40 * (long)MS}, NULL);
}

static void nothing(uv_timer_t *timer)
{
    (void)timer;
}

static void run_with(uv_timer_cb callback, struct rm_stall *stall)
{
    uv_loop_t loop;
    uv_timer_t timer;
    assert_int_equal(uv_loop_init(&loop), 0);
    rm_stall_watch(stall, &loop);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, nothing, 3600 * 1000, 0); /* a turn that begins the first counted one */
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_timer_start(&timer, callback, 20, 0); /* may be due already on a busy host */
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_timer_start(&timer, callback, 1000, 0); /* one more turn, which counts the last */
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_close((uv_handle_t *)&stall->turn, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void a_slow_callback_is_seen_on_a_loop(void **state)
{
    (void)state;
    struct rm_stall stall;
    run_with(work, &stall);
    assert_true(stall.max_ns >= 30 * MS && stall.max_worked_ns >= 30 * MS);
    run_with(sleep_in_a_call, &stall);
    assert_true(stall.max_ns >= 40 * MS && stall.max_worked_ns < 40 * MS);
    assert_true(stall.slept >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_turn_that_was_pushed_aside_is_its_work),
        cmocka_unit_test(a_turn_that_slept_in_a_call_is_by_the_clock),
        cmocka_unit_test(a_slow_callback_is_seen_on_a_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
