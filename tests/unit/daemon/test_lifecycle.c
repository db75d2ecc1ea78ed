/* Whole runs of the daemon with pretended workers: how they end, what they leave, what is refused.
 */
#include "tests/support/daemon.h"
#include "tests/support/fake_worker.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static struct rm_test_daemon d;

/* A run of `steps` with more JSON members. */
static int home(const char *name, unsigned steps, const char *more)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"run\":{\"steps\":%u},\"world\":{\"name\":\"count\"},"
             "\"actor\":{\"count\":2,\"worlds\":4},\"algorithm\":{\"name\":\"dqn\"},"
             "\"metrics\":{\"interval_s\":0.1},"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"relu\"}]}%s}",
             steps, more);
    unsetenv("RM_FAKE");
    return rm_test_daemon_home(&d, name, config);
}

static int teardown(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    unsetenv("RM_FAKE");
    return 0;
}

static void start(const char *const *arguments)
{
    assert_int_equal(rm_test_daemon_start(&d, arguments, true, 0), 0);
}

static void ends_with(int code)
{
    int rc = rm_test_daemon_wait(&d, 30);
    if (rc != code)
        print_error("exit code %d, not %d:\n%s\n%s\n", rc, code, rm_test_daemon_output(&d),
                    rm_test_daemon_file(&d, "log.txt"));
    assert_int_equal(rc, code);
    assert_int_not_equal(access(d.socket, F_OK), 0);
}

static void output_has(const char *text)
{
    if (!strstr(rm_test_daemon_output(&d), text))
        print_error("no \"%s\" in:\n%s\n", text, rm_test_daemon_output(&d));
    assert_non_null(strstr(rm_test_daemon_output(&d), text));
}

static pid_t pid_of(int fd, const char *path)
{
    json_t *status = rm_test_ask(fd, "status", NULL);
    pid_t pid = (pid_t)json_integer_value(rm_test_path(json_object_get(status, "return"), path));
    json_decref(status);
    return pid;
}

/* Processes whose parent was our daemon, by their descriptors being named after it: none may stay.
 */
static void all_gone(const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (int wait = 0; wait < 200 && rm_test_process_there(pids[i]); wait++)
            usleep(10000);
        assert_false(rm_test_process_there(pids[i]));
    }
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
    static const char *const arguments[] = {"--foreground", NULL};
    assert_int_equal(home("whole", 2000, ",\"evaluation\":{\"final_episodes\":9}"), 0);
    start(arguments);
    ends_with(0);
    output_has("agent            first 100");
    output_has("agent_0");
    output_has("greedy score 42.0 +- 0.5 over 9 episodes");
    output_has("time in percent");
    output_has("run directory: ");
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
    json_decref(config);

    const char *csv = rm_test_daemon_file(&d, "metrics.csv");
    assert_int_equal(strncmp(csv, "time_s,steps,score_last,", 24), 0);
    size_t columns = columns_of(csv), rows = 0;
    for (const char *line = strchr(csv, '\n'); line && line[1]; line = strchr(line + 1, '\n')) {
        assert_int_equal(columns_of(line + 1), columns);
        rows++;
    }
    assert_true(rows >= 1);
    assert_non_null(strstr(rm_test_daemon_file(&d, "log.txt"), "stopping: finished"));
}

static void a_second_daemon_of_the_name_is_refused(void **state)
{
    (void)state;
    assert_int_equal(home("twice", 0, ""), 0);
    start(NULL);
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    struct rm_test_daemon second = d;
    assert_int_equal(rm_test_daemon_start(&second, NULL, true, 0), 0);
    assert_int_equal(rm_test_daemon_wait(&second, 20), 3);
    char mention[64];
    snprintf(mention, sizeof mention, "already running: process %d", (int)d.pid);
    output_has(mention);
    /* The first one noticed nothing. */
    assert_true(rm_test_until_text(fd, "state", "running"));
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    ends_with(0);
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

/* Starts, notes the processes of all workers and the sweeper, and kills the daemon. */
static void start_and_kill(const char *name, bool kill_sweeper)
{
    pid_t pids[5];
    assert_int_equal(home(name, 0, ""), 0);
    start(NULL);
    int fd = rm_test_connect(&d);
    assert_true(rm_test_until_text(fd, "state", "running"));
    for (int i = 0; i < 4; i++) {
        char path[32];
        snprintf(path, sizeof path, "workers.%d.pid", i);
        pids[i] = pid_of(fd, path);
        assert_true(pids[i] > 0);
    }
    pids[4] = sweeper_pid();
    assert_true(pids[4] > 0);
    if (kill_sweeper)
        kill(pids[4], SIGKILL);
    kill(d.pid, SIGKILL);
    assert_int_equal(rm_test_daemon_wait(&d, 10), 128 + SIGKILL);
    close(fd);
    all_gone(pids, 5);
}

static void start_again_and_stop(void)
{
    start(NULL);
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    ends_with(0);
    assert_int_equal(access(d.socket, F_OK), -1);
    assert_int_equal(sweeper_pid(), 0);
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

static void signals_stop_in_good_order(void **state)
{
    (void)state;
    static const int numbers[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(home("signals", 0, ""), 0);
        start(NULL);
        int fd = rm_test_connect(&d);
        assert_true(rm_test_until_text(fd, "state", "running"));
        close(fd);
        kill(d.pid, numbers[i]);
        kill(d.pid, numbers[i]); /* at once again: the same request */
        ends_with(0);
        rm_test_daemon_end(&d);
    }
}

static void deaf_workers_are_killed_after_the_grace(void **state)
{
    (void)state;
    assert_int_equal(home("deaf", 0, ",\"supervisor\":{\"stop_grace_s\":0.3}"), 0);
    setenv("RM_FAKE", "actor:deaf,learner:deaf", 1);
    start(NULL);
    int fd = rm_test_connect(&d);
    assert_true(rm_test_until_text(fd, "state", "running"));
    pid_t pid = pid_of(fd, "workers.0.pid");
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    ends_with(0);
    all_gone(&pid, 1);
}

static void a_second_interrupt_kills(void **state)
{
    (void)state;
    assert_int_equal(home("impatient", 0, ",\"supervisor\":{\"stop_grace_s\":300}"), 0);
    setenv("RM_FAKE", "actor:deaf", 1);
    start(NULL);
    int fd = rm_test_connect(&d);
    assert_true(rm_test_until_text(fd, "state", "running"));
    pid_t pid = pid_of(fd, "workers.0.pid");
    kill(d.pid, SIGINT);
    usleep(600000); /* longer than what counts as one request */
    kill(d.pid, SIGINT);
    close(fd);
    ends_with(130);
    all_gone(&pid, 1);
}

static void a_worker_that_gives_up_fails_the_run(void **state)
{
    (void)state;
    assert_int_equal(home("never", 0, ""), 0);
    setenv("RM_FAKE", "learner:never", 1);
    start(NULL);
    ends_with(1);
    output_has("learner-agent_0: exited with 125: made to give up");
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
        home("dying", 0, ",\"supervisor\":{\"deaths_max\":3,\"respawn_floor_s\":0.01}"), 0);
    setenv("RM_FAKE", "actor:exit=4", 1);
    start(NULL);
    ends_with(1);
    output_has("died 3 times within");
    output_has("exited with 4");
}

static void a_hung_worker_is_replaced_and_the_run_ends(void **state)
{
    (void)state;
    assert_int_equal(
        home("hung", 3000,
             ",\"supervisor\":{\"heartbeat_s\":1},\"evaluation\":{\"final_episodes\":1}"),
        0);
    setenv("RM_FAKE", "actor:hang,actor:once", 1);
    start(NULL);
    ends_with(0);
    assert_non_null(strstr(rm_test_daemon_file(&d, "log.txt"), "killed after silence"));
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.0.generation")), 2);
    json_decref(summary);
}

static void missing_programs_fail_the_run(void **state)
{
    (void)state;
    assert_int_equal(home("missing", 0, ""), 0);
    setenv("RINGMASTER_LIBEXEC", "/nonexistent", 1);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    unsetenv("RINGMASTER_LIBEXEC");
    ends_with(1);
    output_has("/nonexistent/ringmaster-actor");
}

/* Actors come up, then there is no learner: they are stopped again, and nobody else is started. */
static void one_missing_program_stops_the_others(void **state)
{
    (void)state;
    char libexec[96], self[512] = "", link[160];
    assert_int_equal(home("partial", 0, ""), 0);
    snprintf(libexec, sizeof libexec, "%s/some", d.home);
    snprintf(link, sizeof link, "%s/ringmaster-actor", libexec);
    assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    assert_int_equal(mkdir(libexec, 0755), 0);
    assert_int_equal(symlink(self, link), 0);
    setenv("RINGMASTER_LIBEXEC", libexec, 1);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    unsetenv("RINGMASTER_LIBEXEC");
    ends_with(1);
    output_has("ringmaster-learner");
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.0.generation")), 1);
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.3.generation")), 0);
    json_decref(summary);
}

/* The service manager's side of the notification socket: it reads as it comes, since senders wait
 * when a few datagrams are not read. */
struct told {
    int fd;
    char all[16384];
};

static void *listen_to_service(void *user)
{
    struct told *told = user;
    char one[1024];
    for (ssize_t n; (n = recv(told->fd, one, sizeof one - 1, 0)) > 0;) {
        one[n] = '\0';
        if (!strcmp(one, "end"))
            break;
        size_t used = strlen(told->all);
        snprintf(told->all + used, sizeof told->all - used, "%s\n", one);
    }
    return NULL;
}

static void the_service_manager_is_told(void **state)
{
    (void)state;
#ifndef RM_HAVE_SYSTEMD
    skip();
#endif
    static struct told told;
    pthread_t listener;
    char path[96];
    const char *all = told.all;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    assert_int_equal(home("service", 2000, ",\"evaluation\":{\"final_episodes\":1}"), 0);
    snprintf(path, sizeof path, "%s/notify", d.home);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    told = (struct told){.fd = fd};
    assert_int_equal(pthread_create(&listener, NULL, listen_to_service, &told), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    start(NULL);
    unsetenv("NOTIFY_SOCKET");
    ends_with(0);
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

/* Nothing was started: no run directory, no socket. */
static void refused(int code, const char *mention)
{
    char runs[160];
    ends_with(code);
    output_has(mention);
    snprintf(runs, sizeof runs, "%s/runs", d.home);
    assert_int_not_equal(access(runs, F_OK), 0);
}

static void wrong_configurations_start_nothing(void **state)
{
    (void)state;
    assert_int_equal(home("wrong", 0, ",\"sample\":{\"bacth\":3}"), 0);
    start(NULL);
    refused(2, "batch");
    rm_test_daemon_end(&d);
    static const char *const bad_name[] = {"--name", "../up", NULL};
    assert_int_equal(home("name", 0, ""), 0);
    start(bad_name);
    refused(2, "../up");
    rm_test_daemon_end(&d);
    static const char *const bad_override[] = {"--set", "world.name=nowhere", NULL};
    assert_int_equal(home("world", 0, ""), 0);
    start(bad_override);
    refused(2, "nowhere");
    rm_test_daemon_end(&d);
    static const char *const bad_option[] = {"--frob", NULL};
    assert_int_equal(home("option", 0, ""), 0);
    start(bad_option);
    refused(2, "--help");
}

static void checking_starts_nothing(void **state)
{
    (void)state;
    static const char *const check[] = {"--check", NULL};
    assert_int_equal(home("check", 0, ""), 0);
    start(check);
    refused(0, "config.json: fine");
}

/* The shared memory file system is full: here, no file may be larger than 64 KiB. */
static void no_room_for_shared_memory_is_refused(void **state)
{
    (void)state;
    assert_int_equal(home("full", 0, ""), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, true, 65536), 0);
    refused(4, "ringmasterd: ");
}

static void more_memory_than_there_is_is_refused(void **state)
{
    (void)state;
    static const char *const arguments[] = {"--set", "ring.capacity=68719476736", NULL};
    assert_int_equal(home("huge", 0, ""), 0);
    start(arguments);
    int code = rm_test_daemon_wait(&d, 30);
    assert_true(code == 2 || code == 4);
    output_has("ring.capacity");
    assert_int_not_equal(access(d.socket, F_OK), 0);
}

static void places_that_cannot_be_are_refused(void **state)
{
    (void)state;
    char below_a_file[160];
    assert_int_equal(home("place", 0, ""), 0);
    snprintf(below_a_file, sizeof below_a_file, "%s/config.json/runs", d.home);
    const char *const arguments[] = {"--run-directory", below_a_file, NULL};
    start(arguments);
    refused(4, "run.directory");
    rm_test_daemon_end(&d);

    /* A file that is not a socket stays where it is. */
    char file[96];
    assert_int_equal(home("notsocket", 0, ""), 0);
    snprintf(file, sizeof file, "%s/config.json", d.home);
    const char *const not_socket[] = {"--socket", file, NULL};
    start(not_socket);
    assert_int_equal(rm_test_daemon_wait(&d, 20), 4);
    output_has("is not a socket");
    assert_int_equal(access(file, F_OK), 0);
}

/* The evaluator dies in the final evaluation: the new one plays it. */
static void a_final_evaluation_survives_its_evaluator(void **state)
{
    (void)state;
    assert_int_equal(home("final", 1500, ",\"evaluation\":{\"final_episodes\":5}"), 0);
    setenv("RM_FAKE", "evaluator:exit=3,evaluator:once", 1);
    start(NULL);
    ends_with(0);
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_int_equal(json_integer_value(rm_test_path(summary, "evaluation.episodes")), 5);
    assert_int_equal(json_integer_value(rm_test_path(summary, "workers.3.deaths")), 1);
    json_decref(summary);
}

/* An evaluation by interval ends where the final one is waited for: it is not taken for it. */
static void the_final_evaluation_is_as_long_as_it_should_be(void **state)
{
    (void)state;
    assert_int_equal(home("long", 1500, ",\"evaluation\":{\"final_episodes\":5}"), 0);
    setenv("RM_FAKE", "evaluator:short", 1);
    start(NULL);
    ends_with(0);
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_int_equal(json_integer_value(rm_test_path(summary, "evaluation.episodes")), 5);
    assert_int_equal(json_integer_value(rm_test_path(summary, "evaluation.count")), 2);
    json_decref(summary);
}

static void the_socket_has_its_mode_and_place(void **state)
{
    (void)state;
    char elsewhere[80];
    struct stat st;
    assert_int_equal(home("mode", 0, ""), 0);
    snprintf(elsewhere, sizeof elsewhere, "%s/here.sock", d.home);
    const char *const arguments[] = {"--socket", elsewhere, NULL};
    snprintf(d.socket, sizeof d.socket, "%s", elsewhere);
    start(arguments);
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_int_equal(stat(elsewhere, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0660);
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    ends_with(0);
}

#define T(f) cmocka_unit_test_teardown(f, teardown)

int main(int argc, char **argv)
{
    int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {
        T(a_run_ends_with_its_tables_and_files),
        T(a_second_daemon_of_the_name_is_refused),
        T(a_killed_daemon_leaves_nothing),
        T(what_nobody_swept_is_no_obstacle),
        T(signals_stop_in_good_order),
        T(deaf_workers_are_killed_after_the_grace),
        T(a_second_interrupt_kills),
        T(a_worker_that_gives_up_fails_the_run),
        T(a_worker_that_keeps_dying_fails_the_run),
        T(a_hung_worker_is_replaced_and_the_run_ends),
        T(missing_programs_fail_the_run),
        T(one_missing_program_stops_the_others),
        T(the_service_manager_is_told),
        T(wrong_configurations_start_nothing),
        T(checking_starts_nothing),
        T(no_room_for_shared_memory_is_refused),
        T(more_memory_than_there_is_is_refused),
        T(places_that_cannot_be_are_refused),
        T(a_final_evaluation_survives_its_evaluator),
        T(the_final_evaluation_is_as_long_as_it_should_be),
        T(the_socket_has_its_mode_and_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
