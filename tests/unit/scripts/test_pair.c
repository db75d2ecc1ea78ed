/* scripts/bench/pair.h: processes of a benchmark begin together, and none waits for one that has
 * died. */
#include "scripts/bench/pair.h"
#include "tests/support/unit.h"

static struct scene {
    struct rm_pair_gate gate;
    uint64_t began[3];
} * scene;

/* They stay on any core. */
void rm_bench_pin(int core)
{
    (void)core;
}

static int first(void *arg)
{
    (void)arg;
    scene->began[0] = rm_pair_wait(&scene->gate);
    return 0;
}

static int second(void *arg)
{
    (void)arg;
    scene->began[1] = rm_pair_wait(&scene->gate);
    return 0;
}

static int fails_at_once(void *arg)
{
    (void)arg;
    return 3;
}

static int dies_at_once(void *arg)
{
    (void)arg;
    return raise(SIGKILL);
}

static int dies_later(void *arg)
{
    (void)arg;
    rm_pair_wait(&scene->gate);
    return raise(SIGKILL);
}

/* It waits for the one that has died. */
static int stays(void *arg)
{
    (void)arg;
    rm_pair_wait(&scene->gate);
    for (;;)
        pause();
    return 0;
}

static void all_begin_at_one_time(void **state)
{
    static int (*const members[])(void *) = {first, second};
    (void)state;
    rm_pair_run(&scene->gate, 2, members, NULL);
    assert_true(scene->began[0] > 0);
    assert_int_equal(scene->began[0], scene->began[1]);
}

/* In a process of its own, which ends. The alarm of a member, after 60 s, is not waited for. */
static void nobody_waits_for_a_dead_one(void **state)
{
    static int (*const members[][2])(void *) = {
        {stays, fails_at_once}, {fails_at_once, stays}, {dies_at_once, stays}, {stays, dies_later}};
    (void)state;
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        int status;
        fflush(NULL);
        const pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
            alarm(55);
            rm_pair_run(&scene->gate, 2, members[i], NULL);
            _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_begin_at_one_time),
        cmocka_unit_test(nobody_waits_for_a_dead_one),
    };
    scene = rm_pair_memory(sizeof *scene);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
