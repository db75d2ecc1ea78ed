/* The executable: its command line, and an actor and an evaluator as processes of their own that
 * share a session with the test. */
#include "shm/atomic.h"
#include "shm/duty.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { FDS_MAX = 64, SPARE = 200 };

static char program[PATH_MAX];
static struct rm_session session;

/* build/tests/unit/actor/test_x -> build/bin/ringmaster-actor */
static void find_program(void)
{
    char self[PATH_MAX - 64] = "", *folder = self;

    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0)
        return;
    for (int up = 0; up < 4; up++)
        folder = dirname(folder);
    snprintf(program, sizeof program, "%s/bin/ringmaster-actor", folder);
}

/* Starts the program with the session's descriptors from RM_FD_BOARD on, as a supervisor does. */
static pid_t start(bool with_session, char *const *arguments)
{
    char *argv[8] = {program};

    for (int i = 0; arguments[i]; i++)
        argv[i + 1] = arguments[i];
    fflush(NULL);
    pid_t child = fork();
    if (child != 0)
        return child;
    int fds[FDS_MAX];
    uint32_t n = with_session ? rm_session_fds(&session, fds, FDS_MAX) : 0;
    for (uint32_t i = 0; i < n; i++)
        fds[i] = fcntl(fds[i], F_DUPFD, SPARE);
    for (uint32_t i = 0; i < n; i++)
        dup2(fds[i], RM_FD_BOARD + (int)i);
    close_range(RM_FD_BOARD + n, ~0u, 0);
    int null = open("/dev/null", O_WRONLY);
    dup2(null, 1);
    if (!with_session)
        dup2(null, 2);
    execv(program, argv);
    _exit(127);
}
#define START(with_session, ...) start(with_session, (char *[]){__VA_ARGS__, NULL})

static int status_of(pid_t child)
{
    int status;

    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void the_command_line_is_checked(void **state)
{
    (void)state;
    assert_int_equal(status_of(START(false, "--help")), RM_EXIT_OK);
    assert_int_equal(status_of(START(false, "--version")), RM_EXIT_OK);
    assert_int_equal(status_of(START(false, "--nonsense")), RM_EXIT_USAGE);
    assert_int_equal(status_of(start(false, (char *[]){NULL})), RM_EXIT_USAGE);
    assert_int_equal(status_of(START(false, "--actor", "0", "--evaluator")), RM_EXIT_USAGE);
    assert_int_equal(status_of(START(false, "--actor", "zero")), RM_EXIT_USAGE);
    assert_int_equal(status_of(START(false, "--actor", "-1")), RM_EXIT_USAGE);
    assert_int_equal(status_of(START(false, "--actor", "0", "more")), RM_EXIT_USAGE);
    /* no descriptors: nobody started it */
    int status = status_of(START(false, "--actor", "0"));
    assert_true(status == RM_EXIT_FAILED || status == RM_EXIT_NEVER);
}

static void open_session(const char *world)
{
    char json[1024];

    snprintf(json, sizeof json,
             "{\"name\": \"process\", \"seed\": 1, \"world\": %s, \"run\": {\"steps\": 3000},"
             " \"actor\": {\"count\": 2, \"worlds\": 3}, \"limiter\": {\"updates_per_step\": 0},"
             " \"sample\": {\"batch\": 8, \"min_fill\": 8},"
             " \"evaluation\": {\"episodes\": 6, \"worlds\": 2},"
             " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 4}]}}",
             world);
    assert_int_equal(rm_test_session(&session, json), 0);
}

static void actors_do_their_share_and_leave(void **state)
{
    pid_t child[2];

    (void)state;
    open_session("{\"name\": \"count\"}");
    child[0] = START(true, "--actor", "0");
    child[1] = START(true, "--actor", "1");
    /* They sleep until there are weights to act with. */
    rm_test_publish_random(&session, 1, 0);
    rm_session_wake_all(&session);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(status_of(child[i]), RM_EXIT_OK);
        assert_int_equal(RM_PEEK(&session.board.workers[i].state), RM_WORKER_DONE);
        assert_true(RM_PEEK(&session.board.workers[i].steps) >= (i ? 1000 : 2000));
    }
    assert_true(rm_ring_committed(&session.rings[1]) >= 1000);
    assert_int_equal(status_of(START(true, "--actor", "2")), RM_EXIT_USAGE);
    rm_session_close(&session);
}

static void a_signal_stops_an_actor(void **state)
{
    (void)state;
    open_session("{\"name\": \"count\"}");
    pid_t child = START(true, "--actor", "0");
    /* No weights: it must be asleep before long, and still heed the signal. */
    while (RM_PEEK(&session.board.workers[0].state) != RM_WORKER_WAITING)
        usleep(1000);
    assert_int_equal(kill(child, SIGTERM), 0);
    assert_int_equal(status_of(child), RM_EXIT_OK);
    rm_session_close(&session);
}

static void a_broken_world_fails_its_actor(void **state)
{
    (void)state;
    open_session("{\"name\": \"count\", \"options\": {\"nan_step\": 20, \"fault_world\": 2}}");
    rm_test_publish_random(&session, 1, 0);
    assert_int_equal(status_of(START(true, "--actor", "1")), RM_EXIT_FAILED);
    assert_int_equal(RM_PEEK(&session.board.workers[1].state), RM_WORKER_FAILED);
    assert_non_null(strstr(session.board.workers[1].error, "world 2 (count)"));
    assert_non_null(strstr(session.board.workers[1].error, "step 20"));
    rm_session_close(&session);
}

static void an_evaluator_answers_and_stops(void **state)
{
    (void)state;
    open_session("{\"name\": \"count\", \"options\": {\"length\": 3}}");
    uint32_t worker = rm_worker_evaluator(&session.objects);
    pid_t child = START(true, "--evaluator");
    rm_test_publish_action(&session, 0, 1, 0, 0);
    RM_RAISE(&session.board.run->evaluate_request, 1);
    struct rm_wake wake = rm_session_wake(&session, worker);
    while (RM_SEE(&session.board.run->evaluations) == 0) {
        rm_wake_signal(&wake);
        usleep(1000);
    }
    assert_int_equal(RM_PEEK(&session.board.run->eval_episodes), 6);
    double mean = RM_PEEK(&session.board.run->eval_score_mean);
    assert_true(mean > 0.979 && mean < 0.981);
    RM_POKE(&session.board.run->stop, 1);
    rm_wake_force(&wake);
    assert_int_equal(status_of(child), RM_EXIT_OK);
    rm_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_command_line_is_checked),
        cmocka_unit_test(actors_do_their_share_and_leave),
        cmocka_unit_test(a_signal_stops_an_actor),
        cmocka_unit_test(a_broken_world_fails_its_actor),
        cmocka_unit_test(an_evaluator_answers_and_stops),
    };

    find_program();
    if (access(program, X_OK) < 0) {
        printf("skipped: %s is not built\n", program);
        return 77;
    }
    alarm(900); /* a child that never ends must not hold the suite */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
