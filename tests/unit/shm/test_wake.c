/* shm/wake: who makes a system call when, and that no signal is lost or left over for ever. */
#include "tests/support/unit.h"

#include "shm/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define MS      1000000ull
#define LONG_NS (240000 * MS) /* as good as for ever, but a broken test ends */

static struct rm_wake_word word;
static struct rm_wake wake;

static int setup(void **state)
{
    struct rm_error error;
    (void)state;
    memset(&word, 0, sizeof word);
    wake = (struct rm_wake){.word = &word, .fd = rm_wake_create_fd(&error)};
    return wake.fd < 0;
}

static int teardown(void **state)
{
    (void)state;
    return close(wake.fd);
}

static void signal_to_the_awake_costs_nothing(void **state)
{
    (void)state;
    assert_false(rm_wake_signal(&wake));
    assert_int_equal(word.signals, 0);
    rm_wake_prepare(&wake);
    rm_wake_cancel(&wake);
    assert_false(rm_wake_signal(&wake));
    assert_int_equal(word.signals, 0);
    rm_wake_prepare(&wake);
    assert_int_equal(rm_wake_wait(&wake, MS), 0); /* nothing was left behind */
}

static void signal_between_prepare_and_wait_is_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        rm_wake_prepare(&wake);
        assert_true(rm_wake_signal(&wake));
        assert_false(rm_wake_signal(&wake)); /* one call is enough */
        assert_int_equal(rm_wake_wait(&wake, LONG_NS), 1);
        assert_false(rm_wake_signal(&wake));
    }
    assert_int_equal(word.signals, 1000);
}

static void cancelled_signal_is_at_most_one_wake_up_too_many(void **state)
{
    (void)state;
    rm_wake_prepare(&wake);
    assert_true(rm_wake_signal(&wake));
    rm_wake_cancel(&wake);
    rm_wake_prepare(&wake);
    assert_int_equal(rm_wake_wait(&wake, LONG_NS), 1);
    rm_wake_prepare(&wake);
    assert_int_equal(rm_wake_wait(&wake, MS), 0);
    /* After a time-out it is awake. */
    assert_false(rm_wake_signal(&wake));
}

static void a_late_mark_does_not_hide_a_new_sleep(void **state)
{
    (void)state;
    /* A restarted sleeper finds the word as the dead one left it: asleep. */
    rm_wake_prepare(&wake);
    rm_wake_prepare(&wake);
    assert_true(rm_wake_signal(&wake));
    assert_int_equal(rm_wake_wait(&wake, LONG_NS), 1);
    word.sleeping = UINT32_MAX; /* tickets wrap */
    rm_wake_prepare(&wake);
    assert_true(rm_wake_signal(&wake));
    assert_int_equal(rm_wake_wait(&wake, LONG_NS), 1);
    assert_false(rm_wake_signal(&wake));
}

static void force_wakes_even_before_prepare(void **state)
{
    (void)state;
    errno = 77;
    rm_wake_force(&wake);
    assert_int_equal(errno, 77);
    assert_int_equal(word.signals, 1);
    rm_wake_prepare(&wake);
    assert_int_equal(rm_wake_wait(&wake, LONG_NS), 1);
}

static void on_signal(int number)
{
    (void)number;
}

static void *interrupt(void *arg)
{
    pthread_t *sleeper = arg;
    /* Until it is caught asleep: a signal just before would be handled before the wait. */
    for (int i = 0; i < 20000; i++) {
        pthread_kill(*sleeper, SIGUSR1);
        usleep(10000);
        if (word.threshold)
            break;
    }
    return NULL;
}

static void handlers_interrupt(void **state)
{
    (void)state;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t self = pthread_self(), other;
    assert_int_equal(pthread_create(&other, NULL, interrupt, &self), 0);
    rm_wake_prepare(&wake);
    int rc = rm_wake_wait(&wake, LONG_NS);
    word.threshold = 1;
    pthread_join(other, NULL);
    assert_int_equal(rc, -EINTR);
    assert_false(rm_wake_signal(&wake)); /* awake again */
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(signal_to_the_awake_costs_nothing),
        TEST(signal_between_prepare_and_wait_is_kept),
        TEST(cancelled_signal_is_at_most_one_wake_up_too_many),
        TEST(a_late_mark_does_not_hide_a_new_sleep),
        TEST(force_wakes_even_before_prepare),
        TEST(handlers_interrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
