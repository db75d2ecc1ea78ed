/* The executable: its command line, and a learner as a process of its own that shares a session
 * with the test, which acts for it: stopped, killed and restarted, and at its run's end.
 */
#include "actor/actor.h"
#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/file.h"
#include "tests/support/program.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FDS_MAX = 64, SPARE = 200 };

static struct rm_session session;
static struct rm_actor *actor;
static struct rm_duty acting;
static char folder[64];

static int exit_code(const char *first, const char *second, const char *third, const char *fourth)
{
    static struct rm_program program;
    const char *const argv[] = {"ringmaster-learner", first, second, third, fourth, NULL};
    assert_int_equal(rm_program_run(&program, argv), 0);
    return program.code;
}

static void the_command_line_is_checked(void **state)
{
    (void)state;
    assert_int_equal(exit_code("--help", NULL, NULL, NULL), RM_EXIT_OK);
    assert_int_equal(exit_code("--version", NULL, NULL, NULL), RM_EXIT_OK);
    assert_int_equal(exit_code(NULL, NULL, NULL, NULL), RM_EXIT_USAGE);
    assert_int_equal(exit_code("--nonsense", NULL, NULL, NULL), RM_EXIT_USAGE);
    assert_int_equal(exit_code("--policy", "0", NULL, NULL), RM_EXIT_USAGE);
    assert_int_equal(exit_code("--policy", "one", "--run-directory", "/tmp"), RM_EXIT_USAGE);
    assert_int_equal(exit_code("--policy", "-1", "--run-directory", "/tmp"), RM_EXIT_USAGE);
    /* No descriptors: nobody started it. */
    assert_int_equal(exit_code("--policy", "0", "--run-directory", "/tmp"), RM_EXIT_NEVER);
}

/* With the session's descriptors from RM_FD_BOARD on, as a supervisor starts it. */
static pid_t start(const char *policy)
{
    char program[PATH_MAX];
    rm_program_path(program, sizeof program, "ringmaster-learner");
    fflush(NULL);
    const pid_t child = fork();
    if (child != 0)
        return child;
    int fds[FDS_MAX];
    const uint32_t n = rm_session_fds(&session, fds, FDS_MAX);
    for (uint32_t i = 0; i < n; i++)
        fds[i] = fcntl(fds[i], F_DUPFD, SPARE);
    for (uint32_t i = 0; i < n; i++)
        dup2(fds[i], RM_FD_BOARD + (int)i);
    close_range(RM_FD_BOARD + n, ~0u, 0);
    execl(program, program, "--policy", policy, "--run-directory", folder, (char *)NULL);
    _exit(127);
}

static int status_of(pid_t child)
{
    int status;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void open_session_of(uint64_t steps, unsigned agents, const char *processes)
{
    struct rm_error error = {""};
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"process\", \"seed\": 1,"
             " \"world\": {\"name\": \"count\", \"options\": {\"agents\": %u}},"
             " \"policy\": {\"map\": \"independent\"}, \"learner\": {\"processes\": \"%s\"},"
             " \"run\": {\"steps\": %llu}, \"actor\": {\"count\": 1, \"worlds\": 4},"
             " \"limiter\": {\"updates_per_step\": 0.25, \"slack_updates\": 4},"
             " \"sample\": {\"batch\": 8, \"min_fill\": 64}, \"publish\": {\"interval\": 5},"
             " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 4}]}}",
             agents, processes, (unsigned long long)steps);
    strcpy(folder, "/tmp/rm-process-XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(rm_test_session(&session, json), 0);
    assert_int_equal(rm_actor_create(&actor, &session, 0, &acting, &error), 0);
}

static void open_session(uint64_t steps)
{
    open_session_of(steps, 1, "each");
}

static void close_session(void)
{
    rm_actor_destroy(actor);
    rm_session_close(&session);
    rm_file_remove_all(folder);
}

static uint64_t updates(void)
{
    return RM_PEEK(&session.board.policies[0].updates);
}

/* Acts, without ever waiting for long, until the learner has made `wanted` updates or the actor is
 * done. False when nothing came of it for a minute: then the learner sleeps for ever. */
static bool act_until(uint64_t wanted)
{
    const uint64_t give_up = rm_now_ns() + 60 * RM_NS_PER_S;
    while (updates() < wanted && rm_now_ns() < give_up) {
        const int rc = rm_test_turn(&acting);
        if (rc == RM_DUTY_DONE) {
            RM_RAISE(&acting.slot->state, RM_WORKER_DONE);
            rm_session_wake_all(&session);
            return true;
        }
        if (rc == 0)
            usleep(200); /* blocked by the limiter, which the learner moves */
    }
    return updates() >= wanted;
}

/* As ps and top show it. */
static void check_name(pid_t child, const char *wanted)
{
    char path[64], name[32] = "";
    snprintf(path, sizeof path, "/proc/%d/comm", (int)child);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(name, sizeof name, file));
    fclose(file);
    name[strcspn(name, "\n")] = '\0';
    assert_string_equal(name, wanted);
}

static bool policy_written(void)
{
    char path[128];
    snprintf(path, sizeof path, "%s/policies/agent_0.safetensors", folder);
    return access(path, R_OK) == 0;
}

static void a_run_comes_to_its_end(void **state)
{
    (void)state;
    open_session(2000);
    const pid_t child = start("0");
    assert_true(act_until(UINT64_MAX));
    assert_int_equal(status_of(child), RM_EXIT_OK);
    assert_int_equal(RM_PEEK(&session.board.workers[1].state), RM_WORKER_DONE);
    const uint64_t owed = RM_PEEK(&session.board.policies[0].limiter.inserted) / 4;
    assert_true(updates() >= owed && updates() <= owed + 4);
    assert_int_equal(rm_weights_latest(&session.weights[0]).updates, updates());
    assert_true(policy_written());
    close_session();
}

static void a_signal_stops_it_and_its_policy_stays(void **state)
{
    (void)state;
    open_session(0);
    const pid_t child = start("0");
    assert_true(act_until(20));
    check_name(child, "rm-learner-0");
    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(status_of(child), RM_EXIT_OK);
    assert_true(policy_written());
    close_session();
}

static void that_of_all_policies_says_so(void **state)
{
    (void)state;
    open_session_of(0, 2, "one");
    const pid_t child = start("all");
    assert_true(act_until(20));
    check_name(child, "rm-learners");
    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(status_of(child), RM_EXIT_OK);
    close_session();
}

static void killed_it_is_followed_by_another(void **state)
{
    (void)state;
    open_session(0);
    for (uint64_t wanted = 50; wanted <= 200; wanted += 50) {
        const pid_t child = start("0");
        const uint64_t version = rm_weights_latest(&session.weights[0]).version;
        assert_true(act_until(wanted));
        assert_int_equal(kill(child, SIGKILL), 0);
        assert_int_equal(status_of(child), 128 + SIGKILL);
        assert_true(rm_weights_latest(&session.weights[0]).version > version);
    }
    assert_false(policy_written());
    close_session();
}

static void a_policy_that_is_not_there_is_refused(void **state)
{
    (void)state;
    open_session(0);
    assert_int_equal(status_of(start("1")), RM_EXIT_USAGE);
    close_session();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_line_is_checked),
        cmocka_unit_test(a_run_comes_to_its_end),
        cmocka_unit_test(a_signal_stops_it_and_its_policy_stays),
        cmocka_unit_test(that_of_all_policies_says_so),
        cmocka_unit_test(killed_it_is_followed_by_another),
        cmocka_unit_test(a_policy_that_is_not_there_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
