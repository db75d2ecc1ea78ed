/* kill -9 of every kind of worker while a real run trains: the others go on, the dead one is back,
 * the run reaches its end, and what the board counts fits together. */
#include "tests/support/daemon.h"
#include "tests/support/kills.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define STEPS 24000 /* the last kill is in the first tenth of them */
#define BATCH 64
#define ROUND 64 /* updates of a round: 64 steps of 8 worlds, one in eight */

static struct rm_test_daemon d;
static const char *priorities = "uniform";
static const char *learners = "each";
static int agents = 1;

/* A sanitizer's build, much slower, is given fewer: the run must only outlast the kills. */
static int run_steps(void)
{
    const char *text = getenv("RM_TEST_STEPS");
    int steps = text ? (int)strtol(text, NULL, 10) : 0;
    return steps > 0 ? steps : STEPS;
}

static int home(const char *name, const char *mode)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":3,\"mode\":\"%s\",\"run\":{\"steps\":%d},"
             "\"world\":{\"name\":\"count\",\"options\":{\"agents\":%d}},"
             "\"learner\":{\"processes\":\"%s\"},\"actor\":{\"count\":2,\"worlds\":4},"
             "\"ring\":{\"capacity\":4096},\"priority\":{\"kind\":\"%s\"},"
             "\"sample\":{\"batch\":%d,\"n_step\":2,\"min_fill\":256},"
             "\"limiter\":{\"updates_per_step\":0.125},\"algorithm\":{\"name\":\"dqn\"},"
             "\"publish\":{\"interval\":4},"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":256},{\"type\":\"relu\"},"
             "{\"type\":\"linear\",\"units\":256},{\"type\":\"relu\"}]},"
             "\"evaluation\":{\"episodes\":8,\"final_episodes\":16,\"worlds\":4},"
             "\"supervisor\":{\"deaths_max\":50}}",
             mode, run_steps(), agents, learners, priorities, BATCH);
    return rm_test_daemon_home(&d, name, config);
}

static int teardown(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

/* Numbers of the end that must fit together, whoever died in between. In rounds a learner's
 * successor leaves what was left of the round that it finds: `lost` updates at most. */
static void consistent(double lost)
{
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_non_null(summary);
    assert_string_equal(json_string_value(rm_test_path(summary, "state")), "done");
    double steps = json_number_value(rm_test_path(summary, "progress.steps"));
    double env_steps = json_number_value(rm_test_path(summary, "policies.0.env_steps"));
    double updates = json_number_value(rm_test_path(summary, "policies.0.updates"));
    double samples = json_number_value(rm_test_path(summary, "policies.0.samples"));
    double published = json_number_value(rm_test_path(summary, "policies.0.published"));
    double evaluated = json_number_value(rm_test_path(summary, "policies.0.evaluated_version"));
    assert_true(steps >= run_steps());
    /* Two counters of the same steps, and a death may fall between them: one row a death. */
    assert_true(fabs(env_steps - steps) <= 4.0 * 4);
    assert_true(samples >= BATCH * updates && samples <= BATCH * (updates + 8));
    if (fabs(updates - 0.125 * env_steps) >= 0.02 * updates + 50 + lost)
        print_error("%.0f updates of %.0f steps\n", updates, env_steps);
    assert_true(fabs(updates - 0.125 * env_steps) < 0.02 * updates + 50 + lost);
    assert_true(published >= 1 && published <= updates + 4);
    assert_true(evaluated == published);
    assert_true(json_number_value(rm_test_path(summary, "score.last")) > 0);
    assert_int_equal(json_integer_value(rm_test_path(summary, "evaluation.episodes")), 16);
    json_decref(summary);
}

static void kill_these(const char *name, const char *mode, const unsigned *victims, size_t n)
{
    assert_int_equal(home(name, mode), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", 20));
    double lost = 0;
    for (size_t i = 0; i < n; i++) {
        rm_test_kill_worker(fd, victims[i]);
        if (mode[0] != 'f' && (victims[i] == 2 || victims[i] == 4))
            lost += ROUND;
    }
    int code = rm_test_until_end(&d, fd);
    if (code < 0) {
        json_t *stuck = rm_test_status(fd);
        char *text = json_dumps(stuck, JSON_INDENT(1));
        fprintf(stderr, "stuck:\n%s\n", text);
        free(text);
        json_decref(stuck);
    }
    close(fd);
    assert_int_equal(code, 0);
    consistent(lost);
}

/* Actors 0 and 1, the learner, the evaluator; in sequential mode all of them in process 4. */
static const unsigned everybody[] = {0, 2, 3, 1, 2};
static const unsigned the_one[] = {4, 4};

static void a_free_run_survives(void **state)
{
    (void)state;
    kill_these("free", "free", everybody, 5);
}

static void a_lockstep_run_survives(void **state)
{
    (void)state;
    kill_these("lockstep", "lockstep", everybody, 5);
}

/* The learner's successors find the tree of sums as it was left, in the middle of whatever. */
static void a_run_with_priorities_survives(void **state)
{
    (void)state;
    static const unsigned victims[] = {2, 2, 0, 2};
    priorities = "proportional";
    kill_these("priorities", "free", victims, 4);
    rm_test_daemon_end(&d);
    kill_these("priorities-too", "lockstep", victims, 4);
    priorities = "uniform";
}

/* Two policies, workers 2 and 3, both in the process of 2; the evaluator is 4. */
static void learners_in_one_process_survive(void **state)
{
    (void)state;
    static const unsigned victims[] = {2, 0, 2, 4};
    learners = "one";
    agents = 2;
    kill_these("one", "free", victims, 4);
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_non_null(summary);
    assert_true(json_number_value(rm_test_path(summary, "policies.1.updates")) > 20);
    json_decref(summary);
    rm_test_daemon_end(&d);
    kill_these("one-too", "lockstep", victims, 3);
    learners = "each";
    agents = 1;
}

static void a_sequential_run_survives(void **state)
{
    (void)state;
    kill_these("sequential", "sequential", the_one, 2);
}

/* Stopped by a signal, a worker neither works nor dies: asleep or busy, it is found by its silence.
 */
static void a_frozen_worker_is_replaced(void **state)
{
    (void)state;
    assert_int_equal(home("frozen", "lockstep"), 0);
    const char *const arguments[] = {"--set", "supervisor.heartbeat_s=1", NULL};
    setenv("RINGMASTER_GDB", "", 1); /* which would get ten seconds to read its stacks */
    assert_int_equal(rm_test_daemon_start(&d, arguments, false, 0), 0);
    unsetenv("RINGMASTER_GDB");
    int fd = rm_test_connect(&d);
    assert_true(rm_test_until_at_least(fd, "progress.steps", 1));
    for (unsigned victim = 0; victim < 3; victim += 2) { /* an actor, the learner */
        char path[48];
        snprintf(path, sizeof path, "workers.%u.pid", victim);
        json_t *before = rm_test_status(fd);
        pid_t pid = (pid_t)json_integer_value(rm_test_path(before, path));
        json_decref(before);
        assert_true(pid > 0);
        assert_int_equal(kill(pid, SIGSTOP), 0);
        snprintf(path, sizeof path, "workers.%u.generation", victim);
        assert_true(rm_test_until_at_least(fd, path, 2));
        assert_false(rm_test_process_there(pid));
    }
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_free_run_survives, teardown),
        cmocka_unit_test_teardown(a_lockstep_run_survives, teardown),
        cmocka_unit_test_teardown(a_run_with_priorities_survives, teardown),
        cmocka_unit_test_teardown(learners_in_one_process_survive, teardown),
        cmocka_unit_test_teardown(a_sequential_run_survives, teardown),
        cmocka_unit_test_teardown(a_frozen_worker_is_replaced, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
