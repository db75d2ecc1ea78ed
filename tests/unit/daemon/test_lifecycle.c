/* How whole runs end, with pretended workers, and what they leave. */
#include "tests/support/fake_run.h"
#include "tests/support/fake_worker.h"
#include "tests/support/unit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct rm_test_daemon d;

static int teardown(void **state)
{
    (void)state;
    rm_test_run_remove(&d);
    return 0;
}

static size_t columns_of(const char *line)
{
    size_t n = 1;
    for (; *line && *line != '\n'; line++)
        n += *line == ',';
    return n;
}

static void a_run_ends_with_its_tables_and_files(void **state)
{
    (void)state;
    static const char *const arguments[] = {"--foreground", "--set",
                                            "limiter.updates_per_step=0.3333333333333333", NULL};
    assert_int_equal(rm_test_run_home(&d, "whole", 2000, ",\"evaluation\":{\"final_episodes\":9}"),
                     0);
    rm_test_run_start(&d, arguments);
    rm_test_run_ends(&d, 0);
    rm_test_run_says(&d, "first 100");
    rm_test_run_says(&d, "agent_0");
    rm_test_run_says(&d, "greedy score 42 +- 0.5 over 9 episodes");
    rm_test_run_says(&d, "run directory: ");
    assert_null(strstr(rm_test_daemon_output(&d), "\033")); /* not a terminal */

    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_string_equal(json_string_value(rm_test_path(summary, "state")), "done");
    assert_true(json_integer_value(rm_test_path(summary, "progress.steps")) >= 2000);
    assert_int_equal(json_integer_value(rm_test_path(summary, "evaluation.episodes")), 9);
    assert_non_null(rm_test_path(summary, "workers.0.phases.waiting"));
    json_decref(summary);

    json_t *config = json_loads(rm_test_daemon_file(&d, "config.json"), 0, NULL);
    assert_string_equal(json_string_value(rm_test_path(config, "name")), "whole");
    assert_int_equal(json_integer_value(rm_test_path(config, "run.steps")), 2000);
    /* Every digit: running it again does the same. */
    assert_true(json_number_value(rm_test_path(config, "limiter.updates_per_step")) ==
                0.3333333333333333);
    json_decref(config);

    const char *csv = rm_test_daemon_file(&d, "metrics.csv");
    assert_int_equal(strncmp(csv, "time_s,steps,steps_per_s,", 25), 0);
    size_t columns = columns_of(csv), rows = 0;
    for (const char *line = strchr(csv, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        assert_int_equal(columns_of(line + 1), columns);
        rows++;
    }
    assert_true(rows >= 1);
    assert_non_null(strstr(rm_test_daemon_file(&d, "log.txt"), "stopping: finished"));
}

static void a_worker_that_gives_up_fails_the_run(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "never", 0, ""), 0);
    setenv("RM_FAKE", "learner:never", 1);
    rm_test_run_start(&d, NULL);
    rm_test_run_ends(&d, 1);
    rm_test_run_says(&d, "learner-agent_0: exited with 125: made to give up");
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_string_equal(json_string_value(rm_test_path(summary, "state")), "failed");
    assert_non_null(strstr(json_string_value(rm_test_path(summary, "reason")), "give up"));
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.2.generation")), 1);
    json_decref(summary);
}

static void a_worker_that_keeps_dying_fails_the_run(void **state)
{
    (void)state;
    assert_int_equal(
        rm_test_run_home(&d, "dying", 0,
                         ",\"supervisor\":{\"deaths_max\":3,\"respawn_floor_s\":0.01}"),
        0);
    setenv("RM_FAKE", "actor:exit=4", 1);
    static const char *const arguments[] = {"--foreground", NULL};
    rm_test_run_start(&d, arguments);
    rm_test_run_ends(&d, 1);
    rm_test_run_says(&d, "died 3 times within");
    rm_test_run_says(&d, "died 3 times, the last time: exited with 4");
}

static void a_hung_worker_is_replaced_and_the_run_ends(void **state)
{
    (void)state;
    assert_int_equal(
        rm_test_run_home(
            &d, "hung", 3000,
            ",\"supervisor\":{\"heartbeat_s\":1},\"evaluation\":{\"final_episodes\":1}"),
        0);
    setenv("RM_FAKE", "actor:hang,actor:once", 1);
    rm_test_run_start(&d, NULL);
    rm_test_run_ends(&d, 0);
    assert_non_null(strstr(rm_test_daemon_file(&d, "log.txt"), "without a heartbeat"));
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.0.generation")), 2);
    json_decref(summary);
}

/* The service manager's side of the notification socket: it reads as it comes, since senders wait
 * when a few datagrams are not read. */
struct notified {
    int fd;
    char all[16384];
};

static void *listen_to_service(void *user)
{
    struct notified *notified = user;
    char one[1024];
    for (ssize_t n; (n = recv(notified->fd, one, sizeof one - 1, 0)) > 0;) {
        one[n] = '\0';
        if (!strcmp(one, "end"))
            break;
        size_t used = strlen(notified->all);
        snprintf(notified->all + used, sizeof notified->all - used, "%s\n", one);
    }
    return NULL;
}

static void the_service_manager_is_notified(void **state)
{
    (void)state;
#ifndef RM_HAVE_SYSTEMD
    skip();
#endif
    static struct notified notified;
    pthread_t listener;
    char path[96];
    const char *all = notified.all;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_int_equal(
        rm_test_run_home(&d, "service", 2000, ",\"evaluation\":{\"final_episodes\":1}"), 0);
    snprintf(path, sizeof path, "%s/notify", d.home);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    notified = (struct notified){.fd = fd};
    assert_int_equal(pthread_create(&listener, NULL, listen_to_service, &notified), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    rm_test_run_start(&d, NULL);
    unsetenv("NOTIFY_SOCKET");
    rm_test_run_ends(&d, 0);
    int end = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(sendto(end, "end", 3, 0, (struct sockaddr *)&address, sizeof address), 3);
    pthread_join(listener, NULL);
    close(end);
    close(fd);
    const char *ready = strstr(all, "READY=1"), *stopping = strstr(all, "STOPPING=1");
    assert_non_null(ready);
    assert_non_null(stopping);
    assert_true(ready < stopping);
    assert_non_null(strstr(all, "STATUS=running"));
    /* What is to outlive the daemon was handed over, and taken back at the end. */
    const char *kept = strstr(all, "FDSTORE=1\nFDNAME=ringmaster.0");
    const char *forgotten = kept ? strstr(kept, "FDSTOREREMOVE=1\nFDNAME=ringmaster.0") : NULL;
    assert_non_null(kept);
    assert_non_null(forgotten);
}

/* The evaluator dies in the final evaluation: the new one plays it. */
static void a_final_evaluation_survives_its_evaluator(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "final", 1500, ",\"evaluation\":{\"final_episodes\":5}"),
                     0);
    setenv("RM_FAKE", "evaluator:exit=3,evaluator:once", 1);
    rm_test_run_start(&d, NULL);
    rm_test_run_ends(&d, 0);
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_int_equal(json_integer_value(rm_test_path(summary, "evaluation.episodes")), 5);
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.3.deaths")), 1);
    json_decref(summary);
}

/* An evaluation by interval ends where the final one is waited for: it is not taken for it. */
static void the_final_evaluation_is_as_long_as_it_should_be(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "long", 1500, ",\"evaluation\":{\"final_episodes\":5}"),
                     0);
    setenv("RM_FAKE", "evaluator:short", 1);
    rm_test_run_start(&d, NULL);
    rm_test_run_ends(&d, 0);
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_int_equal(json_integer_value(rm_test_path(summary, "evaluation.episodes")), 5);
    assert_int_equal(json_integer_value(rm_test_path(summary, "evaluation.count")), 2);
    json_decref(summary);
}

#define T(f) cmocka_unit_test_teardown(f, teardown)

int main(int argc, char **argv)
{
    int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {
        T(a_run_ends_with_its_tables_and_files),
        T(a_worker_that_gives_up_fails_the_run),
        T(a_worker_that_keeps_dying_fails_the_run),
        T(a_hung_worker_is_replaced_and_the_run_ends),
        T(the_service_manager_is_notified),
        T(a_final_evaluation_survives_its_evaluator),
        T(the_final_evaluation_is_as_long_as_it_should_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
