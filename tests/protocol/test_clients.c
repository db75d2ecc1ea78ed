/* Two hundred clients at once, most of them bad: one asks for much and reads nothing, some read
 * late, some stop in the middle of a line, some leave in the middle of an answer. The others get
 * every answer, in order; who reads nothing is given up, and nobody else is; those who read late
 * have lost nothing that fits into a socket; nobody is left behind in the end. What is lost by whom
 * when more stands, and when who is given up: tests/unit/daemon/test_control. How long the daemon's
 * loop was away at most is printed, not judged: that is a matter of the machine. */
#include "tests/support/daemon.h"
#include "tests/support/fake_worker.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { GOOD = 80, LATE = 40, HALF = 40, LEAVING = 39, ROUNDS = 10, CHANGES = 50 };

static struct rm_test_daemon d;
static int good[GOOD], late[LATE], half[HALF], leaving[LEAVING];

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

/* Its answers are more than the sockets take. */
static int ask_and_never_read(void)
{
    static const char line[] = "{\"execute\":\"query-schema\"}\n";
    const int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    for (int i = 0; i < 200; i++)
        assert_int_equal(rm_test_send(fd, line, sizeof line - 1), 0);
    return fd;
}

static void subscribe(void)
{
    connect_all(late, LATE);
    for (int i = 0; i < LATE; i++)
        json_decref(rm_test_ask(late[i], "events", NULL));
}

/* The n-th change: an event for whoever subscribed. */
static void change(int fd, int n)
{
    char arguments[64];
    snprintf(arguments, sizeof arguments, "{\"key\":\"publish.interval\",\"value\":%d}", 100 + n);
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

/* Every change is there, in order, and nothing is said to be lost. */
static void changes_are_all_read(int fd)
{
    for (int i = 0; i < CHANGES;) {
        json_t *event = rm_test_read(fd);
        assert_non_null(event);
        assert_int_equal(json_integer_value(json_object_get(event, "lost")), 0);
        const char *after = json_string_value(rm_test_path(event, "data.after"));
        if (after)
            assert_int_equal(atoi(after), 100 + i++);
        json_decref(event);
    }
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
    assert_true(places_before > 2 + GOOD + LATE + HALF + LEAVING);
    const int deaf = ask_and_never_read();
    connect_all(good, GOOD);
    subscribe();
    connect_all(half, HALF);
    connect_all(leaving, LEAVING);
    for (int i = 0; i < HALF; i++)
        assert_int_equal(rm_test_send(half[i], first, sizeof first - 1), 0);
    assert_int_equal(status_number(driver, "control.clients"), 2 + GOOD + LATE + HALF + LEAVING);
    assert_int_equal(status_number(driver, "control.refusals"), 0);
    assert_int_equal(places(), places_before);
    for (int round = 0; round < ROUNDS; round++) {
        leave_in_the_middle(round);
        good_ones_are_answered(round);
    }
    for (int i = 0; i < CHANGES; i++)
        change(driver, i);
    good_ones_are_answered(ROUNDS);

    /* However long that took: the one that reads nothing is given up, all the others are kept. */
    assert_true(rm_test_until_at_least(driver, "control.slow_closed", 1));
    assert_int_equal(status_number(driver, "control.slow_closed"), 1);
    assert_int_equal(status_number(driver, "control.events_lost"), 0);
    assert_int_equal(status_number(driver, "control.clients"), 1 + GOOD + LATE + HALF + LEAVING);
    for (int i = 0; i < LATE; i++)
        changes_are_all_read(late[i]);
    int answers = 0;
    for (json_t *answer; (answer = rm_test_read(deaf)) != NULL; answers++)
        json_decref(answer);
    printf(
        "  %d answers had left for the one that was given up; longest turn of the daemon's loop: "
        "%.3f ms (%.3f ms of work) in %.0f turns\n",
        answers, status_number(driver, "loop.stall_max_ms"),
        status_number(driver, "loop.work_max_ms"), status_number(driver, "loop.turns"));
    assert_true(answers < 200);
    close(deaf);

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
    for (int i = 0; i < LATE; i++)
        close(late[i]);
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
