/* Two hundred clients at once, most of them bad: some never read, some stop in the middle of a
 * line, some leave in the middle of an answer. The others get every answer, in order; what the slow
 * ones lose is counted, and each of them is told; nobody is left behind in the end. How long the
 * daemon's loop was away at most is printed, not judged: that is a matter of the machine. */
#include "tests/support/daemon.h"
#include "tests/support/fake_worker.h"
#include "tests/support/unit.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GOOD = 80, SLOW = 40, HALF = 40, LEAVING = 40, ROUNDS = 10, SETS_MAX = 20000 };

static struct rm_test_daemon d;
static int good[GOOD], slow[SLOW], half[HALF], leaving[LEAVING];

static int start(void **state)
{
    (void)state;
    static const char config[] =
        "{\"name\":\"x\",\"run\":{\"steps\":0},\"world\":{\"name\":\"count\"},"
        "\"algorithm\":{\"name\":\"dqn\"},"
        "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"relu\"}]}}";
    if (rm_test_daemon_home(&d, "clients", config) < 0)
        return -1;
    return rm_test_daemon_start(&d, NULL, true, 0);
}

static int end(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

static double status_number(int fd, const char *path)
{
    char full[64];
    snprintf(full, sizeof full, "return.%s", path);
    json_t *reply = rm_test_ask(fd, "status", NULL);
    const double value = json_number_value(rm_test_path(reply, full));
    json_decref(reply);
    return value;
}

static void connect_all(int *fds, int n)
{
    for (int i = 0; i < n; i++)
        assert_true((fds[i] = rm_test_connect(&d)) >= 0);
}

static void subscribe_and_never_read(void)
{
    const int small = 4096;
    connect_all(slow, SLOW);
    for (int i = 0; i < SLOW; i++) {
        setsockopt(slow[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        json_decref(rm_test_ask(slow[i], "events", NULL));
    }
}

/* An event for whoever subscribed. */
static void change_something(int fd)
{
    static int interval = 1;
    char arguments[64];
    snprintf(arguments, sizeof arguments, "{\"key\":\"publish.interval\",\"value\":%d}",
             1 + interval++ % 50);
    json_t *reply = rm_test_ask(fd, "set", arguments);
    assert_non_null(json_object_get(reply, "return"));
    json_decref(reply);
}

static void leave_in_the_middle(int round)
{
    static const char lines[] = "{\"execute\":\"status\"}\n{\"execute\":\"query-schema\"}\n"
                                "{\"execute\":\"metrics\"}\n{\"execute\":\"sta";
    for (int i = 0; i < LEAVING; i++) {
        assert_int_equal(rm_test_send(leaving[i], lines, sizeof lines - 1), 0);
        if ((i + round) % 2)
            shutdown(leaving[i], SHUT_RD);
        close(leaving[i]);
        assert_true((leaving[i] = rm_test_connect(&d)) >= 0);
    }
}

static void good_ones_are_answered(int round)
{
    char line[64];
    for (int i = 0; i < GOOD; i++) {
        const int n =
            snprintf(line, sizeof line, "{\"execute\":\"status\",\"id\":%d}\n", round * GOOD + i);
        assert_int_equal(rm_test_send(good[i], line, (size_t)n), 0);
    }
    for (int i = 0; i < GOOD; i++) {
        json_t *reply = rm_test_read(good[i]);
        assert_int_equal(json_integer_value(json_object_get(reply, "id")), round * GOOD + i);
        assert_non_null(json_object_get(reply, "return"));
        json_decref(reply);
    }
}

/* Reads on until it is told how many events it lost; 0 when it was closed. */
static double told(int fd, int driver)
{
    for (int i = 0; i < 50000; i++) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (poll(&ready, 1, 20) == 0)
            change_something(driver); /* drained: the next one says it */
        json_t *event = rm_test_read(fd);
        if (!event)
            return 0;
        const double lost = json_number_value(json_object_get(event, "lost"));
        json_decref(event);
        if (lost > 0)
            return lost;
    }
    fail_msg("never told");
    return 0;
}

/* Places in the daemon's table of open files: when it has threads and the table grows, it waits for
 * the kernel. */
static long places(void)
{
    char path[64], line[128];
    long n = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)d.pid);
    FILE *file = fopen(path, "r");
    while (file && n == 0 && fgets(line, sizeof line, file))
        sscanf(line, "FDSize: %ld", &n);
    if (file)
        fclose(file);
    return n;
}

static void two_hundred_at_once(void **state)
{
    (void)state;
    static const char first[] = "{\"execute\":\"get\",\"arg",
                      rest[] = "uments\":{\"key\":\"seed\"}}\n";
    const int driver = rm_test_connect(&d);
    assert_true(driver >= 0);
    const long places_before = places();
    assert_true(places_before > 1 + GOOD + SLOW + HALF + LEAVING);
    connect_all(good, GOOD);
    subscribe_and_never_read();
    connect_all(half, HALF);
    connect_all(leaving, LEAVING);
    for (int i = 0; i < HALF; i++)
        assert_int_equal(rm_test_send(half[i], first, sizeof first - 1), 0);
    assert_int_equal(status_number(driver, "control.clients"), 1 + GOOD + SLOW + HALF + LEAVING);
    assert_int_equal(status_number(driver, "control.refusals"), 0);
    assert_int_equal(places(), places_before);
    for (int round = 0; round < ROUNDS; round++) {
        leave_in_the_middle(round);
        good_ones_are_answered(round);
    }
    /* All the slow ones get the same, so all begin to lose at about the same event. Where that many
     * take so long that nobody waits for them, they are given up. */
    bool enough = false;
    for (int i = 0; i < SETS_MAX && !enough; i++) {
        change_something(driver);
        enough = i % 100 == 0 && (status_number(driver, "control.events_lost") > 50 * SLOW ||
                                  status_number(driver, "control.slow_closed") == SLOW);
    }
    assert_true(enough);
    good_ones_are_answered(ROUNDS);

    double said = 0;
    int closed = 0;
    for (int i = 0; i < SLOW; i++) {
        const double lost = told(slow[i], driver);
        said += lost;
        closed += lost == 0;
    }
    const double lost = status_number(driver, "control.events_lost");
    const double given_up = status_number(driver, "control.slow_closed");
    printf("  %.0f events lost, %.0f of them said to %d slow clients; %.0f clients given up; "
           "longest turn of the daemon's loop: %.3f ms (%.3f ms of work) in %.0f turns\n",
           lost, said, SLOW - closed, given_up, status_number(driver, "loop.stall_max_ms"),
           status_number(driver, "loop.work_max_ms"), status_number(driver, "loop.turns"));
    assert_int_equal(closed, given_up);
    if (closed)
        assert_true(said <= lost);
    else
        assert_true(said == lost);

    /* The half lines were only waiting. */
    for (int i = 0; i < HALF; i++) {
        assert_int_equal(rm_test_send(half[i], rest, sizeof rest - 1), 0);
        json_t *reply = rm_test_read(half[i]);
        assert_non_null(rm_test_path(reply, "return.value"));
        json_decref(reply);
        close(half[i]);
    }
    for (int i = 0; i < GOOD; i++)
        close(good[i]);
    for (int i = 0; i < SLOW; i++)
        close(slow[i]);
    for (int i = 0; i < LEAVING; i++)
        close(leaving[i]);
    for (int i = 0; i < 20000 && status_number(driver, "control.clients") > 1; i++)
        usleep(10000);
    assert_int_equal(status_number(driver, "control.clients"), 1);
    close(driver);
}

int main(int argc, char **argv)
{
    const int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_hundred_at_once)};
    return cmocka_run_group_tests(tests, start, end);
}
