/* kill -9 of every kind of worker while rollouts are made and trained on: nobody waits for ever for
 * rows or weights that died with somebody, and what the board counts fits together in the end. */
#include "tests/support/daemon.h"
#include "tests/support/kills.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define STEPS 24000

static struct rm_test_daemon d;

/* A sanitizer's build, much slower, is given fewer: the run must only outlast the kills. */
static int run_steps(void)
{
    const char *text = getenv("RM_TEST_STEPS");
    int steps = text ? (int)strtol(text, NULL, 10) : 0;
    return steps > 0 ? steps : STEPS;
}

/* A network that is large enough for the run to take some seconds. */
static int home(const char *name, const char *mode, const char *algorithm, int lag)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":3,\"mode\":\"%s\",\"run\":{\"steps\":%d},"
             "\"world\":{\"name\":\"count\",\"options\":{\"agents\":2}},"
             "\"actor\":{\"count\":2,\"worlds\":8},"
             "\"rollout\":{\"steps\":32,\"max_policy_lag\":%d},"
             "\"algorithm\":{\"name\":\"%s\",\"epochs\":4,\"minibatches\":2},"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":256},{\"type\":\"tanh\"},"
             "{\"type\":\"linear\",\"units\":256},{\"type\":\"tanh\"}]},"
             "\"evaluation\":{\"episodes\":8,\"final_episodes\":16,\"worlds\":4},"
             "\"supervisor\":{\"deaths_max\":50}}",
             mode, run_steps(), lag, algorithm);
    return rm_test_daemon_home(&d, name, config);
}

static int teardown(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

static double number(json_t *summary, const char *path)
{
    return json_number_value(rm_test_path(summary, path));
}

/* Numbers of the end that must fit together, whoever died in between. */
static void consistent(bool every_rollout)
{
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_non_null(summary);
    assert_string_equal(json_string_value(rm_test_path(summary, "state")), "done");
    assert_true(number(summary, "progress.steps") >= run_steps());
    for (int p = 0; p < 2; p++) {
        char path[64];
        snprintf(path, sizeof path, "policies.%d.published", p);
        const double published = number(summary, path);
        snprintf(path, sizeof path, "policies.%d.updates", p);
        const double updates = number(summary, path);
        snprintf(path, sizeof path, "policies.%d.evaluated_version", p);
        assert_true(number(summary, path) == published);
        snprintf(path, sizeof path, "policies.%d.rollout.count", p);
        assert_true(number(summary, path) > 0);
        snprintf(path, sizeof path, "policies.%d.rollout.entropy", p);
        assert_true(number(summary, path) > 0);
        snprintf(path, sizeof path, "policies.%d.epsilon", p);
        assert_true(json_is_null(rm_test_path(summary, path))); /* its actions are drawn */
        /* Eight updates a version; those that died with a learner come on top. */
        assert_true(updates >= 8 * (published - 1));
        assert_true(updates <= 8 * (published - 1) + 8 * 8);
        /* A rollout of 8 worlds and 32 steps has 256 rows, and somewhat fewer answers. */
        if (every_rollout)
            assert_true((published - 1) * 256 >= run_steps());
    }
    assert_true(number(summary, "score.last") > 0);
    json_decref(summary);
}

static void kill_these(const char *name, const char *mode, const char *algorithm, int lag,
                       const unsigned *victims, size_t n)
{
    assert_int_equal(home(name, mode, algorithm, lag), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", 20));
    for (size_t i = 0; i < n; i++)
        rm_test_kill_worker(fd, victims[i]);
    const int code = rm_test_until_end(&d, fd);
    if (code < 0) {
        json_t *stuck = rm_test_status(fd);
        char *text = json_dumps(stuck, JSON_INDENT(1));
        fprintf(stderr, "stuck:\n%s\n", text);
        free(text);
        json_decref(stuck);
    }
    close(fd);
    assert_int_equal(code, 0);
    consistent(algorithm[0] == 'p');
}

/* Actors 0 and 1, learners 2 and 3, the evaluator; in sequential mode all of them in process 5. */
static const unsigned everybody[] = {0, 2, 3, 1, 2};
static const unsigned the_one[] = {5, 5};

static void free_rollouts_survive(void **state)
{
    (void)state;
    kill_these("free", "free", "ppo", 0, everybody, 5);
}

static void rollouts_ahead_survive(void **state)
{
    (void)state;
    kill_these("ahead", "free", "ppo", 1, everybody, 5);
}

static void lockstep_rollouts_survive(void **state)
{
    (void)state;
    kill_these("lockstep", "lockstep", "ppo", 1, everybody, 5);
}

static void sequential_rollouts_survive(void **state)
{
    (void)state;
    kill_these("sequential", "sequential", "ppo", 0, the_one, 2);
}

static void asynchronous_rollouts_survive(void **state)
{
    (void)state;
    kill_these("asynchronous", "free", "appo", 0, everybody, 5);
}

static void rounds_of_rollouts_survive(void **state)
{
    (void)state;
    kill_these("rounds", "lockstep", "appo", 0, everybody, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(free_rollouts_survive, teardown),
        cmocka_unit_test_teardown(rollouts_ahead_survive, teardown),
        cmocka_unit_test_teardown(lockstep_rollouts_survive, teardown),
        cmocka_unit_test_teardown(sequential_rollouts_survive, teardown),
        cmocka_unit_test_teardown(asynchronous_rollouts_survive, teardown),
        cmocka_unit_test_teardown(rounds_of_rollouts_survive, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
