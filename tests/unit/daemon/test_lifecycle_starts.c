/* Where runs start, and what is refused: then nothing was started. */
#include "tests/support/fake_run.h"
#include "tests/support/fake_worker.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rm_test_daemon d;

static int teardown(void **state)
{
    (void)state;
    rm_test_run_remove(&d);
    return 0;
}

static void a_second_daemon_of_the_name_is_refused(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "twice", 0, ""), 0);
    rm_test_run_start(&d, NULL);
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    struct rm_test_daemon second = d;
    assert_int_equal(rm_test_daemon_start(&second, NULL, true, 0), 0);
    assert_int_equal(rm_test_daemon_wait(&second, RM_TEST_PATIENCE_S), 3);
    char mention[64];
    snprintf(mention, sizeof mention, "already running: process %d", (int)d.pid);
    rm_test_run_says(&d, mention);
    /* The first one noticed nothing. */
    assert_true(rm_test_until_text(fd, "state", "running"));
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    rm_test_run_ends(&d, 0);
}

/* Nothing was started: no run directory, no socket. */
static void refused(int code, const char *mention)
{
    char runs[160];
    rm_test_run_ends(&d, code);
    rm_test_run_says(&d, mention);
    snprintf(runs, sizeof runs, "%s/runs", d.home);
    assert_int_not_equal(access(runs, F_OK), 0);
}

static void wrong_configurations_start_nothing(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "wrong", 0, ",\"sample\":{\"bacth\":3}"), 0);
    rm_test_run_start(&d, NULL);
    refused(2, "batch");
    rm_test_daemon_end(&d);
    static const char *const bad_name[] = {"--name", "../up", NULL};
    assert_int_equal(rm_test_run_home(&d, "name", 0, ""), 0);
    rm_test_run_start(&d, bad_name);
    refused(2, "../up");
    rm_test_daemon_end(&d);
    static const char *const bad_override[] = {"--set", "world.name=nowhere", NULL};
    assert_int_equal(rm_test_run_home(&d, "world", 0, ""), 0);
    rm_test_run_start(&d, bad_override);
    refused(2, "nowhere");
    rm_test_daemon_end(&d);
    static const char *const bad_option[] = {"--frob", NULL};
    assert_int_equal(rm_test_run_home(&d, "option", 0, ""), 0);
    rm_test_run_start(&d, bad_option);
    refused(2, "--help");
}

static void checking_starts_nothing(void **state)
{
    (void)state;
    static const char *const check[] = {"--check", NULL};
    assert_int_equal(rm_test_run_home(&d, "check", 0, ""), 0);
    rm_test_run_start(&d, check);
    refused(0, "config.json: fine");
}

/* The shared memory file system is full: here, no file may be larger than 64 KiB. */
static void no_room_for_shared_memory_is_refused(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "full", 0, ""), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, true, 65536), 0);
    refused(4, "ringmasterd: ");
}

static void more_memory_than_there_is_is_refused(void **state)
{
    (void)state;
    static const char *const arguments[] = {"--set", "ring.capacity=68719476736", NULL};
    assert_int_equal(rm_test_run_home(&d, "huge", 0, ""), 0);
    rm_test_run_start(&d, arguments);
    int code = rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S);
    assert_true(code == 2 || code == 4);
    rm_test_run_says(&d, "ring.capacity");
    assert_int_not_equal(access(d.socket, F_OK), 0);
}

static void places_that_cannot_be_are_refused(void **state)
{
    (void)state;
    char below_a_file[160];
    assert_int_equal(rm_test_run_home(&d, "place", 0, ""), 0);
    snprintf(below_a_file, sizeof below_a_file, "%s/config.json/runs", d.home);
    const char *const arguments[] = {"--run-directory", below_a_file, NULL};
    rm_test_run_start(&d, arguments);
    refused(4, "run.directory");
    rm_test_daemon_end(&d);

    /* A file that is not a socket stays where it is. */
    char file[96];
    assert_int_equal(rm_test_run_home(&d, "notsocket", 0, ""), 0);
    snprintf(file, sizeof file, "%s/config.json", d.home);
    const char *const not_socket[] = {"--socket", file, NULL};
    rm_test_run_start(&d, not_socket);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 4);
    rm_test_run_says(&d, "is not a socket");
    assert_int_equal(access(file, F_OK), 0);
}

static void the_socket_has_its_mode_and_place(void **state)
{
    (void)state;
    char own_socket[80];
    struct stat st;
    assert_int_equal(rm_test_run_home(&d, "mode", 0, ""), 0);
    snprintf(own_socket, sizeof own_socket, "%s/here.sock", d.home);
    const char *const arguments[] = {"--socket", own_socket, NULL};
    snprintf(d.socket, sizeof d.socket, "%s", own_socket);
    rm_test_run_start(&d, arguments);
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_int_equal(stat(own_socket, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0660);
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    rm_test_run_ends(&d, 0);
}

static void missing_programs_fail_the_run(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "missing", 0, ""), 0);
    setenv("RINGMASTER_LIBEXEC", "/nonexistent", 1);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    unsetenv("RINGMASTER_LIBEXEC");
    rm_test_run_ends(&d, 1);
    rm_test_run_says(&d, "/nonexistent/ringmaster-actor");
}

/* Actors come up, then there is no learner: they are stopped again, and nobody else is started. */
static void one_missing_program_stops_the_others(void **state)
{
    (void)state;
    char libexec[96], self[512] = "", link[160];
    assert_int_equal(rm_test_run_home(&d, "partial", 0, ""), 0);
    snprintf(libexec, sizeof libexec, "%s/some", d.home);
    snprintf(link, sizeof link, "%s/ringmaster-actor", libexec);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_int_equal(mkdir(libexec, 0755), 0);
    assert_int_equal(symlink(self, link), 0);
    setenv("RINGMASTER_LIBEXEC", libexec, 1);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    unsetenv("RINGMASTER_LIBEXEC");
    rm_test_run_ends(&d, 1);
    rm_test_run_says(&d, "ringmaster-learner");
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.0.generation")), 1);
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.3.generation")), 0);
    json_decref(summary);
}

#define T(f) cmocka_unit_test_teardown(f, teardown)

int main(int argc, char **argv)
{
    int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {
        T(a_second_daemon_of_the_name_is_refused),
        T(wrong_configurations_start_nothing),
        T(checking_starts_nothing),
        T(no_room_for_shared_memory_is_refused),
        T(more_memory_than_there_is_is_refused),
        T(places_that_cannot_be_are_refused),
        T(the_socket_has_its_mode_and_place),
        T(missing_programs_fail_the_run),
        T(one_missing_program_stops_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
