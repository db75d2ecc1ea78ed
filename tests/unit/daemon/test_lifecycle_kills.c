/* Runs that are killed or stopped, with pretended workers: nothing of them stays. */
#include "tests/support/fake_run.h"
#include "tests/support/fake_worker.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rm_test_daemon d;

static int teardown(void **state)
{
    (void)state;
    rm_test_run_remove(&d);
    return 0;
}

/* The process that sweeps up behind the daemon: its command line ends in the socket's path. */
static pid_t sweeper_pid(void)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;
    assert_non_null(proc);
    while (!found && (entry = readdir(proc))) {
        char path[64], text[512] = "";
        snprintf(path, sizeof path, "/proc/%.20s/cmdline", entry->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        size_t n = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        const char *option = memmem(text, n, "--sweep", sizeof "--sweep");
        if (option && strcmp(option + sizeof "--sweep", d.socket) == 0)
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    closedir(proc);
    return found;
}

/* A process needs time to end after a signal or when its parent has died. */
static void sweeper_ends(void)
{
    for (int wait = 0; wait < 1000 && sweeper_pid(); wait++)
        usleep(10000);
    assert_int_equal(sweeper_pid(), 0);
}

/* Starts, notes the processes of all workers and the sweeper, and kills the daemon. */
static void start_and_kill(const char *name, bool kill_sweeper)
{
    pid_t pids[5];
    assert_int_equal(rm_test_run_home(&d, name, 0, ""), 0);
    rm_test_run_start(&d, NULL);
    int fd = rm_test_connect(&d);
    assert_true(rm_test_until_text(fd, "state", "running"));
    for (int i = 0; i < 4; i++) {
        char path[32];
        snprintf(path, sizeof path, "workers.%d.pid", i);
        pids[i] = rm_test_run_pid(fd, path);
        assert_true(pids[i] > 0);
    }
    pids[4] = sweeper_pid();
    assert_true(pids[4] > 0);
    if (kill_sweeper)
        kill(pids[4], SIGKILL);
    kill(d.pid, SIGKILL);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 128 + SIGKILL);
    close(fd);
    rm_test_run_all_gone(pids, 5);
}

static void start_again_and_stop(void)
{
    rm_test_run_start(&d, NULL);
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    rm_test_run_ends(&d, 0);
    assert_int_equal(access(d.socket, F_OK), -1);
    sweeper_ends();
}

static void a_killed_daemon_leaves_nothing(void **state)
{
    (void)state;
    char lock[128];
    start_and_kill("killed", false);
    snprintf(lock, sizeof lock, "%s.lock", d.socket);
    assert_int_equal(access(d.socket, F_OK), -1);
    assert_int_equal(access(lock, F_OK), -1);
    start_again_and_stop();
}

static void what_nobody_swept_is_no_obstacle(void **state)
{
    (void)state;
    start_and_kill("unswept", true);
    assert_int_equal(access(d.socket, F_OK), 0); /* a name, with nobody behind it */
    start_again_and_stop();
}

/* Whoever kills a daemon and starts another in its place does not wait for the sweeper. */
static void the_next_one_waits_for_the_sweeper(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "next", 0, ""), 0);
    for (int i = 0; i < 5; i++) {
        rm_test_run_start(&d, NULL);
        int fd = rm_test_connect(&d);
        assert_true(rm_test_until_text(fd, "state", "running"));
        close(fd);
        kill(d.pid, SIGKILL);
        assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 128 + SIGKILL);
    }
    start_again_and_stop();
}

static void signals_stop_in_good_order(void **state)
{
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(rm_test_run_home(&d, "signals", 0, ""), 0);
        rm_test_run_start(&d, NULL);
        int fd = rm_test_connect(&d);
        assert_true(rm_test_until_text(fd, "state", "running"));
        close(fd);
        kill(d.pid, numbers[i]);
        kill(d.pid, numbers[i]); /* at once again: the same request */
        rm_test_run_ends(&d, 0);
        rm_test_daemon_end(&d);
    }
}

static void deaf_workers_are_killed_after_the_grace(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "deaf", 0, ",\"supervisor\":{\"stop_grace_s\":0.3}"), 0);
    setenv("RM_FAKE", "actor:deaf,learner:deaf", 1);
    rm_test_run_start(&d, NULL);
    int fd = rm_test_connect(&d);
    assert_true(rm_test_until_text(fd, "state", "running"));
    pid_t pid = rm_test_run_pid(fd, "workers.0.pid");
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    rm_test_run_ends(&d, 0);
    rm_test_run_all_gone(&pid, 1);
}

static void a_second_interrupt_kills(void **state)
{
    (void)state;
    assert_int_equal(rm_test_run_home(&d, "impatient", 0, ",\"supervisor\":{\"stop_grace_s\":300}"),
                     0);
    setenv("RM_FAKE", "actor:deaf", 1);
    rm_test_run_start(&d, NULL);
    int fd = rm_test_connect(&d);
    assert_true(rm_test_until_text(fd, "state", "running"));
    pid_t pid = rm_test_run_pid(fd, "workers.0.pid");
    kill(d.pid, SIGINT);
    assert_true(rm_test_until_text(fd, "state", "stopping")); /* the first signal is handled */
    usleep(600000);                                           /* two in less count as one */
    assert_true(rm_test_process_there(pid));
    kill(d.pid, SIGINT);
    close(fd);
    rm_test_run_ends(&d, 130);
    rm_test_run_all_gone(&pid, 1);
}

#define T(f) cmocka_unit_test_teardown(f, teardown)

int main(int argc, char **argv)
{
    int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {
        T(a_killed_daemon_leaves_nothing),          T(what_nobody_swept_is_no_obstacle),
        T(the_next_one_waits_for_the_sweeper),      T(signals_stop_in_good_order),
        T(deaf_workers_are_killed_after_the_grace), T(a_second_interrupt_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
