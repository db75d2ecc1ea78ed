/* The runner: turns, sleeping, pausing, stopping, and the book-keeping of time. */
#include "shm/duty.h"

#include "shm/base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct probe {
    _Atomic int work; /* turns available */
    _Atomic int done; /* turns taken */
    int finish_after; /* then RM_DUTY_DONE */
    _Atomic int checkpoints;
    struct rm_phase_clock clock;
};

struct fixture {
    struct rm_board_view board;
    struct probe probe;
    struct rm_duty duty;
};

static int do_work(void *self, struct rm_error *error)
{
    struct probe *p = self;
    (void)error;

    if (p->done >= p->finish_after)
        return RM_DUTY_DONE;
    p->clock.waits = RM_WAIT_ROWS;
    if (p->work == 0)
        return 0;
    p->work--;
    p->done++;
    return 1;
}

static int set_up(void **state)
{
    static struct fixture f;
    struct rm_error error = {""};

    memset(&f, 0, sizeof f);
    if (rm_board_create(&f.board, 1, 1, 2, &error) < 0)
        return -1;
    f.probe.finish_after = 1000000;
    f.duty = (struct rm_duty){
        .self = &f.probe,
        .do_work = do_work,
        .run = f.board.run,
        .slot = &f.board.workers[0],
        .wake = {.word = &f.board.workers[0].wake, .fd = rm_wake_create_fd(&error)},
        .clock = &f.probe.clock,
    };
    rm_phase_start(&f.probe.clock, f.duty.slot);
    *state = &f;
    return f.duty.wake.fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    close(f->duty.wake.fd);
    rm_board_close(&f->board);
    return 0;
}

static void *run(void *arg)
{
    struct fixture *f = arg;
    struct rm_error error = {""};
    static int code;

    code = rm_duty_run(&f->duty, &error);
    return &code;
}

static void wait_for(struct fixture *f, enum rm_worker_state state)
{
    for (int i = 0; i < 240000 && f->duty.slot->state != state; i++)
        usleep(1000);
    assert_int_equal(f->duty.slot->state, state);
}

static void works_sleeps_and_wakes(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    void *result;

    f->probe.work = 3;
    f->probe.finish_after = 5;
    assert_int_equal(pthread_create(&thread, NULL, run, f), 0);
    wait_for(f, RM_WORKER_WAITING);
    assert_int_equal(f->probe.done, 3);
    f->probe.work = 2;
    /* Repeated until it wakes: the runner may be between its second look and its sleep. */
    rm_wake_force(&f->duty.wake);
    pthread_join(thread, &result);
    assert_int_equal(*(int *)result, RM_EXIT_OK);
    assert_int_equal(f->probe.done, 5);
    assert_int_equal(f->duty.slot->state, RM_WORKER_DONE);
    assert_int_equal(f->duty.slot->turns, 5);
    assert_true(f->duty.slot->sleeps >= 1);
    assert_true(f->duty.slot->heartbeat_ns > 0);
    assert_true(f->duty.slot->cpu_ns > 0);
    /* What it waited for adds up to the time that it waited. */
    uint64_t waited = 0;
    for (int w = 0; w < RM_WAIT_COUNT; w++)
        waited += f->duty.slot->wait_ns[w];
    assert_int_equal(waited, f->duty.slot->phase_ns[RM_PHASE_WAITING]);
    assert_true(f->duty.slot->wait_ns[RM_WAIT_ROWS] > 0);
}

static void pause_holds_and_stop_ends(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    void *result;

    f->board.run->pause = 1;
    f->probe.work = 7;
    assert_int_equal(pthread_create(&thread, NULL, run, f), 0);
    wait_for(f, RM_WORKER_WAITING);
    assert_int_equal(f->probe.done, 0);
    f->board.run->pause = 0;
    rm_wake_force(&f->duty.wake);
    for (int i = 0; i < 240000 && f->probe.done < 7; i++)
        usleep(1000);
    assert_int_equal(f->probe.done, 7);
    f->board.run->stop = 1;
    rm_wake_force(&f->duty.wake);
    pthread_join(thread, &result);
    assert_int_equal(*(int *)result, RM_EXIT_OK);
    assert_int_equal(f->duty.slot->state, RM_WORKER_NONE);
}

static int count_checkpoint(void *self, uint64_t number)
{
    struct probe *p = self;
    (void)number;
    p->checkpoints++;
    return 1;
}

/* A world can write what its worker says of a checkpoint: it is said again, and not done again. */
static void who_holds_says_so_again(void **state)
{
    struct fixture *f = *state;
    _Atomic uint64_t *const held = &f->duty.slot->checkpoint_held;
    pthread_t thread;
    void *result;
    f->duty.look_ns = 1000000;
    f->duty.checkpoint = count_checkpoint;
    f->probe.work = 1 << 20;
    rm_duty_hold_all(f->board.run, 7);
    assert_int_equal(pthread_create(&thread, NULL, run, f), 0);
    for (uint64_t spoiled = 6; spoiled <= 9; spoiled++) {
        for (int i = 0; i < 240000 && *held != 7; i++)
            usleep(1000);
        assert_int_equal(*held, 7);
        *held = spoiled;
    }
    assert_int_equal(f->probe.checkpoints, 1);
    assert_int_equal(f->probe.done, 0);
    f->board.run->stop = 1;
    rm_wake_force(&f->duty.wake);
    pthread_join(thread, &result);
    assert_int_equal(*(int *)result, RM_EXIT_OK);
}

/* A world can lose the wake-up with which a pause ends, and say of a sleeper that it was woken. */
static void who_looks_by_itself_looks_while_paused(void **state)
{
    struct fixture *f = *state;
    pthread_t thread;
    f->duty.look_ns = 1000000;
    f->board.run->pause = 1;
    f->probe.work = f->probe.finish_after = 7;
    assert_int_equal(pthread_create(&thread, NULL, run, f), 0);
    wait_for(f, RM_WORKER_WAITING);
    const uint64_t beat = f->duty.slot->heartbeat_ns;
    for (int i = 0; i < 240000 && f->duty.slot->heartbeat_ns == beat; i++)
        usleep(1000);
    assert_true(f->duty.slot->heartbeat_ns > beat);
    assert_int_equal(f->probe.done, 0);
    f->board.run->pause = 0;
    pthread_join(thread, NULL);
    assert_int_equal(f->probe.done, 7);
}

/* A process as the daemon starts it, with SIGTERM held, which gets one before it has a handler:
 * of its parent, or of somebody else. Returns how many turns it took of the 10 that it has. */
static int turns_after(struct fixture *f, bool by_parent)
{
    int ready[2], go[2], status;
    char byte = 0;
    sigset_t held, before;
    const pid_t parent = getpid();
    struct rm_error error = {""};

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    f->probe.work = f->probe.finish_after = 10;
    sigemptyset(&held);
    sigaddset(&held, SIGTERM);
    sigprocmask(SIG_BLOCK, &held, &before);
    const pid_t pid = fork();
    if (pid == 0) {
        if (!by_parent)
            raise(SIGTERM); /* as a scheduler does that means the whole group */
        if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1 ||
            rm_duty_signals(&f->duty.wake, parent, &error) < 0 ||
            rm_duty_run(&f->duty, &error) != RM_EXIT_OK)
            _exit(99);
        _exit(f->probe.done);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_true(pid > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    if (by_parent)
        assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(go[i]);
    }
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_stop_that_came_too_early_counts(void **state)
{
    assert_int_equal(turns_after(*state, true), 0);
}

static void what_the_whole_group_got_is_the_daemons(void **state)
{
    assert_int_equal(turns_after(*state, false), 10);
}

static int fail_work(void *self, struct rm_error *error)
{
    (void)self;
    return rm_fail(error, -EIO, "world 3 broke at step 17");
}

static void failure_is_on_the_board(void **state)
{
    struct fixture *f = *state;
    struct rm_error error = {""};

    f->duty.do_work = fail_work;
    assert_int_equal(rm_duty_run(&f->duty, &error), RM_EXIT_FAILED);
    assert_int_equal(f->duty.slot->state, RM_WORKER_FAILED);
    assert_string_equal(f->duty.slot->error, "world 3 broke at step 17");
}

static void duties_take_turns(void **state)
{
    struct fixture *f = *state;
    struct rm_error error = {""};
    struct probe second = {.work = 4, .finish_after = 4};
    struct rm_duty duties[2] = {f->duty, f->duty};

    f->probe.work = 9;
    f->probe.finish_after = 9;
    duties[1].self = &second;
    duties[1].slot = &f->board.workers[1];
    duties[1].clock = NULL;
    assert_int_equal(rm_duty_run_in_turn(duties, 2, &error), RM_EXIT_OK);
    assert_int_equal(f->probe.done, 9);
    assert_int_equal(second.done, 4);
    assert_int_equal(f->board.workers[0].state, RM_WORKER_DONE);
    assert_int_equal(f->board.workers[1].state, RM_WORKER_DONE);
}

static void *run_both(void *arg)
{
    struct rm_error error = {""};
    static int code;

    code = rm_duty_run_in_turn(arg, 2, &error);
    return &code;
}

/* One is done and the other waits: the first stays done while the second sleeps for both. */
static void finished_duties_stay_done(void **state)
{
    struct fixture *f = *state;
    struct probe second = {.work = 2, .finish_after = 5};
    struct rm_duty duties[2] = {f->duty, f->duty};
    pthread_t thread;
    void *result;

    f->probe.work = 3;
    f->probe.finish_after = 3;
    duties[1].self = &second;
    duties[1].slot = &f->board.workers[1];
    duties[1].clock = NULL;
    assert_int_equal(pthread_create(&thread, NULL, run_both, duties), 0);
    for (int i = 0; i < 240000 && f->board.workers[1].state != RM_WORKER_WAITING; i++)
        usleep(1000);
    assert_int_equal(f->board.workers[1].state, RM_WORKER_WAITING);
    assert_int_equal(f->board.workers[0].state, RM_WORKER_DONE);
    second.work = 3;
    rm_wake_force(&f->duty.wake);
    pthread_join(thread, &result);
    assert_int_equal(*(int *)result, RM_EXIT_OK);
    assert_int_equal(second.done, 5);
    assert_int_equal(f->board.workers[0].state, RM_WORKER_DONE);
    assert_int_equal(f->board.workers[1].state, RM_WORKER_DONE);
}

static void time_goes_to_the_current_phase(void **state)
{
    struct fixture *f = *state;
    uint64_t start = rm_now_ns(), sum = 0;

    rm_phase_start(&f->probe.clock, f->duty.slot);
    assert_int_equal(rm_phase_enter(&f->probe.clock, RM_PHASE_SAMPLING), RM_PHASE_OTHER);
    usleep(3000);
    assert_int_equal(rm_phase_enter(&f->probe.clock, RM_PHASE_FORWARD), RM_PHASE_SAMPLING);
    assert_int_equal(rm_phase_enter(&f->probe.clock, RM_PHASE_OTHER), RM_PHASE_FORWARD);
    uint64_t all = rm_now_ns() - start;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        sum += f->duty.slot->phase_ns[p];
    assert_true(f->duty.slot->phase_ns[RM_PHASE_SAMPLING] >= 3000000);
    assert_true(sum <= all);
}

static void phases_that_are_lengthened_take_longer(void **state)
{
    struct fixture *f = *state;
    const struct rm_board_worker *slot = f->duty.slot;

    rm_phase_start(&f->probe.clock, f->duty.slot);
    rm_phase_lengthen(&f->probe.clock, 1u << RM_PHASE_FORWARD, 2);
    rm_phase_enter(&f->probe.clock, RM_PHASE_FORWARD);
    usleep(2000);
    rm_phase_enter(&f->probe.clock, RM_PHASE_BACKWARD);
    const uint64_t start = rm_now_ns();
    usleep(2000);
    rm_phase_enter(&f->probe.clock, RM_PHASE_OTHER);
    assert_true(slot->phase_ns[RM_PHASE_FORWARD] >= 6000000);
    assert_true(slot->phase_ns[RM_PHASE_BACKWARD] <= rm_now_ns() - start + 1000000);
}

/* The phase in which a trace begins leaves a mark, and so does each one until its end, with what is
 * waited for. At other times there are none. Of more than there is room for, the newest stay. */
static void phases_leave_marks_while_traced(void **state)
{
    struct fixture *f = *state;
    struct rm_board_worker *slot = f->duty.slot;
    const uint64_t start = rm_now_ns();

    rm_phase_start(&f->probe.clock, slot);
    rm_phase_enter(&f->probe.clock, RM_PHASE_SAMPLING);
    slot->trace_until_ns = start; /* over */
    rm_phase_enter(&f->probe.clock, RM_PHASE_FORWARD);
    assert_int_equal(slot->traced, 0);
    slot->trace_until_ns = UINT64_MAX;
    rm_phase_enter(&f->probe.clock, RM_PHASE_BACKWARD);
    f->probe.clock.waits = RM_WAIT_CREDIT;
    rm_phase_enter(&f->probe.clock, RM_PHASE_WAITING);
    assert_int_equal(slot->traced, 3);
    assert_int_equal(RM_TRACE_PHASE(slot->trace_mark[0]), RM_PHASE_FORWARD);
    assert_int_equal(RM_TRACE_PHASE(slot->trace_mark[1]), RM_PHASE_BACKWARD);
    assert_int_equal(RM_TRACE_PHASE(slot->trace_mark[2]), RM_PHASE_WAITING);
    assert_int_equal(RM_TRACE_WAIT(slot->trace_mark[2]), RM_WAIT_CREDIT);
    const uint64_t end = rm_now_ns(), first = RM_TRACE_NS(slot->trace_mark[0], end),
                   second = RM_TRACE_NS(slot->trace_mark[1], end);
    assert_true(start <= first && first <= second && second <= end);
    while (slot->traced <= RM_TRACE_MARKS)
        rm_phase_enter(&f->probe.clock, RM_PHASE_RING);
    assert_int_equal(RM_TRACE_PHASE(slot->trace_mark[0]), RM_PHASE_RING);
    assert_int_equal(RM_TRACE_PHASE(slot->trace_mark[1]), RM_PHASE_BACKWARD);
}

static uint64_t spent(const struct rm_board_worker *slot, enum rm_phase phase)
{
    return rm_board_spent_ns(slot, &slot->phase_ns[phase]);
}

/* Readers see the phase that a duty is in. It is added once, also when the process ended in it. */
static void time_of_the_phase_that_lasts_is_read(void **state)
{
    struct fixture *f = *state;
    struct rm_board_worker *slot = f->duty.slot;
    const _Atomic uint64_t *credit = &slot->wait_ns[RM_WAIT_CREDIT];

    assert_int_equal(spent(slot, RM_PHASE_WAITING), 0);
    rm_phase_start(&f->probe.clock, slot);
    f->probe.clock.waits = RM_WAIT_CREDIT;
    rm_phase_enter(&f->probe.clock, RM_PHASE_WAITING);
    const uint64_t start = rm_now_ns();
    usleep(3000);
    assert_int_equal(slot->phase_ns[RM_PHASE_WAITING], 0);
    assert_true(spent(slot, RM_PHASE_WAITING) >= 3000000);
    assert_true(rm_board_spent_ns(slot, credit) >= 3000000);
    assert_int_equal(rm_board_spent_ns(slot, &slot->wait_ns[RM_WAIT_PAUSE]), 0);
    assert_int_equal(spent(slot, RM_PHASE_RING), 0);
    const uint64_t before = spent(slot, RM_PHASE_WAITING);
    rm_phase_enter(&f->probe.clock, RM_PHASE_RING);
    const uint64_t waited = spent(slot, RM_PHASE_WAITING);
    assert_true(waited >= before && waited <= rm_now_ns() - start + 1000000);
    assert_int_equal(rm_board_spent_ns(slot, credit), waited);
    usleep(2000);
    rm_board_end_phase(slot);
    const uint64_t ring = spent(slot, RM_PHASE_RING);
    assert_true(ring >= 2000000);
    usleep(1000);
    assert_int_equal(spent(slot, RM_PHASE_RING), ring);
    rm_board_end_phase(slot);
    assert_int_equal(spent(slot, RM_PHASE_RING), ring);
}

/* While one thread changes phases others read sums that only grow and are never more than the time.
 */
static void *change_phases(void *clock)
{
    for (int i = 0; i < 200000; i++)
        rm_phase_enter(clock, i % 2 ? RM_PHASE_WAITING : RM_PHASE_RING);
    return NULL;
}

static void time_that_is_read_never_shrinks(void **state)
{
    struct fixture *f = *state;
    const struct rm_board_worker *slot = f->duty.slot;
    pthread_t thread;
    uint64_t before = 0, now = 0;

    const uint64_t start = rm_now_ns();
    rm_phase_start(&f->probe.clock, f->duty.slot);
    f->probe.clock.waits = RM_WAIT_ROWS;
    assert_int_equal(pthread_create(&thread, NULL, change_phases, &f->probe.clock), 0);
    do {
        now = spent(slot, RM_PHASE_WAITING);
        /* A worker that has no core while it changes the sums shows no phase. */
        assert_true(now + 100000000 >= before && now <= rm_now_ns() - start);
        before = now > before ? now : before;
    } while (pthread_tryjoin_np(thread, NULL) != 0);
    uint64_t sum = 0;
    for (int p = 0; p < RM_PHASE_COUNT; p++)
        sum += spent(slot, p);
    const uint64_t all = rm_now_ns() - start;
    assert_true(sum <= all && sum >= all - all / 100 - 5000000);
    assert_true(rm_board_spent_ns(slot, &slot->wait_ns[RM_WAIT_ROWS]) <=
                spent(slot, RM_PHASE_WAITING));
}

/* Of duties that have turns in one thread, one at a time has a phase. */
static void duties_in_turn_are_away_between_turns(void **state)
{
    struct fixture *f = *state;
    struct rm_error error = {""};
    struct rm_duty duties[2] = {f->duty, f->duty};
    struct probe other = {.work = 3, .finish_after = 3};

    f->probe.work = f->probe.finish_after = 3;
    duties[1].self = &other;
    duties[1].slot = &f->board.workers[1];
    duties[1].clock = &other.clock;
    rm_phase_start(&other.clock, duties[1].slot);
    for (int i = 0; i < 2; i++)
        duties[i].slot->trace_until_ns = UINT64_MAX;
    assert_int_equal(rm_duty_run_in_turn(duties, 2, &error), RM_EXIT_OK);
    uint64_t over = 0;
    const uint64_t now = rm_now_ns();
    for (uint64_t m = 3; m + 2 < duties[0].slot->traced; m += 3)
        for (int i = 0; i < 2; i++) {
            const _Atomic uint64_t *mark = &duties[i].slot->trace_mark[m];
            assert_int_not_equal(RM_TRACE_PHASE(mark[0]), RM_TRACE_AWAY);
            assert_int_equal(RM_TRACE_PHASE(mark[2]), RM_TRACE_AWAY);
            assert_true(RM_TRACE_NS(mark[0], now) >= over);
            over = RM_TRACE_NS(mark[2], now);
        }
    assert_int_equal(duties[0].slot->traced, duties[1].slot->traced);
    assert_true(duties[0].slot->traced >= 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(works_sleeps_and_wakes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_looks_by_itself_looks_while_paused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_holds_says_so_again, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pause_holds_and_stop_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_stop_that_came_too_early_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_the_whole_group_got_is_the_daemons, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failure_is_on_the_board, set_up, tear_down),
        cmocka_unit_test_setup_teardown(duties_take_turns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(finished_duties_stay_done, set_up, tear_down),
        cmocka_unit_test_setup_teardown(time_goes_to_the_current_phase, set_up, tear_down),
        cmocka_unit_test_setup_teardown(phases_that_are_lengthened_take_longer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(phases_leave_marks_while_traced, set_up, tear_down),
        cmocka_unit_test_setup_teardown(time_of_the_phase_that_lasts_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(time_that_is_read_never_shrinks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(duties_in_turn_are_away_between_turns, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
