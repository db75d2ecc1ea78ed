/* A checkpoint whose files are whole, and whose shared state cannot be loaded all the same: the one
 * before it is taken, and where there is none the start is refused. Nothing stays open. */
#include "daemon/resume.h"

#include "actor/worlds/plan.h"
#include "config/config.h"
#include "daemon/daemon.h"
#include "daemon/running.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char text[] = "{\"name\":\"x\",\"world\":{\"name\":\"count\"},"
                           "\"actor\":{\"count\":2,\"worlds\":2},\"algorithm\":{\"name\":\"dqn\"},"
                           "\"ring\":{\"capacity\":64},\"sample\":{\"batch\":4,\"min_fill\":8},"
                           "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":4}]}}";

static struct rm_test_daemon home;
static struct rm_experiment experiment;
static struct rm_plan plan;
static struct rm_run_directory run;
static char file[128], runs[128], socket_path[128];

/* A home with a run that has no checkpoint yet. */
static int setup(void **state)
{
    struct rm_error error = {""};
    struct rm_run_lock lock = {.fd = -1};
    (void)state;
    if (rm_test_daemon_home(&home, "resume", text) < 0)
        return -1;
    snprintf(file, sizeof file, "%s/config.json", home.home);
    snprintf(runs, sizeof runs, "%s/runs", home.home);
    snprintf(socket_path, sizeof socket_path, "%s/place/x.sock", home.home);
    if (rm_config_load(&experiment, file, NULL, 0, &error) < 0 ||
        rm_plan_make(&plan, &experiment, &error) < 0 ||
        rm_run_directory_create(&run, runs, "x", &lock, &error) < 0) {
        print_error("%s\n", error.text);
        return -1;
    }
    snprintf(experiment.run.directory, sizeof experiment.run.directory, "%s", runs);
    rm_run_lock_leave(&lock);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rm_test_daemon_end(&home);
    return 0;
}

static unsigned open_files(void)
{
    unsigned n = 0;
    DIR *fds = opendir("/proc/self/fd");
    while (fds && readdir(fds))
        n++;
    if (fds)
        closedir(fds);
    return n;
}

static void spoil(const struct rm_state *state, const char *name)
{
    for (size_t i = 0; i < rm_state_count(state); i++)
        if (strcmp(rm_state_at(state, i)->name, name) == 0) {
            memset(rm_state_at(state, i)->data, 0x5a, rm_state_at(state, i)->bytes);
            return;
        }
    fail_msg("%s: no such part", name);
}

/* One whose manifest says `step` and whose board says `counted`. `part` is overwritten, if not
 * NULL, before the file is written and its hash taken. */
static void make(uint64_t number, uint64_t step, uint64_t counted, const char *part)
{
    static struct rm_session session;
    char folder[RM_SESSION_PATH_MAX], path[RM_SESSION_PATH_MAX];
    struct rm_error error = {""};
    struct rm_state *state;
    struct rm_checkpoint_facts facts = {
        .run = "x", .number = number, .step = step, .config = rm_config_to_json(&experiment)};
    assert_int_equal(rm_session_create(&session, &experiment, &plan, &error), 0);
    RM_POKE(&session.board.workers[0].steps, counted);
    assert_int_equal(rm_state_create(&state, &error), 0);
    rm_session_state(&session, state);
    assert_int_equal(rm_state_end(state, &error), 0);
    if (part)
        spoil(state, part);
    assert_int_equal(rm_checkpoint_begin(run.path, number, &error), 0);
    assert_int_equal(rm_session_checkpoint_folder(run.path, number, true, folder, &error), 0);
    assert_int_equal(rm_session_checkpoint_file(folder, "shared", 0, "state", path, &error), 0);
    assert_int_equal(rm_state_write(state, path, RM_STATE_ALL, &error), 0);
    if (rm_checkpoint_seal(run.path, &facts, NULL, &error))
        fail_msg("%s", error.text);
    rm_checkpoint_facts_free(&facts);
    rm_state_destroy(state);
    rm_session_close(&session);
}

static void the_one_before_it_is_taken(void **state)
{
    static struct rm_daemon daemon;
    struct rm_error error = {""};
    (void)state;
    make(1, 100, 100, NULL);
    make(2, 200, 200, "ring1.committed");
    make(3, 300, 250, NULL);
    daemon = (struct rm_daemon){.resumed = {.when = RM_RESUME_MAY,
                                            .directory = &daemon.directory,
                                            .lock = &daemon.run_lock},
                                .run_lock = {.fd = -1}};
    const unsigned files = open_files();
    assert_int_equal(rm_resume_find(&daemon.resumed, &experiment, &error), 0);
    assert_non_null(strstr(daemon.resumed.from, "/checkpoints/000003"));
    if (rm_daemon_open_session(&daemon, &experiment, &plan, &error))
        fail_msg("%s", error.text);
    assert_non_null(strstr(daemon.resumed.from, "/checkpoints/000001"));
    assert_string_equal(daemon.directory.path, run.path);
    assert_int_equal(daemon.resumed.step, 100);
    assert_int_equal(rm_session_steps(&daemon.session), 100);
    assert_non_null(strstr(daemon.resumed.passed_over, "/000003: its board says step 250"));
    assert_non_null(strstr(daemon.resumed.passed_over, "/000002: ring of actor 1, policy 0"));
    assert_non_null(strstr(daemon.resumed.passed_over, "contradict each other"));
    rm_session_close(&daemon.session);
    rm_run_lock_leave(&daemon.run_lock);
    assert_int_equal(open_files(), files);
}

static void where_there_is_none_nothing_is_started(void **state)
{
    const struct rm_daemon_options options = {
        .file = file, .run_directory = runs, .socket = socket_path, .resume = RM_RESUME_MAY};
    (void)state;
    make(1, 100, 100, "ring0.committed");
    for (int time = 0; time < 2; time++) { /* the first one may open what stays open */
        const unsigned files = open_files();
        struct rm_error error = {""};
        assert_int_equal(rm_daemon_run(&options, &error), RM_DAEMON_USAGE);
        assert_non_null(strstr(error.text, "no checkpoint of"));
        assert_non_null(strstr(error.text, "--fresh"));
        assert_non_null(strstr(error.text, "/000001: ring of actor 0, policy 0"));
        assert_int_equal(access(socket_path, F_OK), -1);
        if (time)
            assert_int_equal(open_files(), files);
    }
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_one_before_it_is_taken),
        T(where_there_is_none_nothing_is_started),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
