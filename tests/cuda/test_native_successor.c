/* The learner of a run whose worlds are on the device dies: its successor goes on from what it
 * published last, with the optimizer of the newest checkpoint. Real processes, on the emulation. */
#include "tests/support/batch.h"
#include "tests/support/daemon.h"
#include "tests/support/kills.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rm_test_daemon d;

static int teardown(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

static int begin(void)
{
    static const char config[] =
        "{\"name\":\"x\",\"seed\":3,\"run\":{\"steps\":0},\"world\":{\"name\":\"cartpole\"},"
        "\"actor\":{\"worlds\":8,\"device\":\"cuda\"},\"learner\":{\"device\":\"cuda:0\"},"
        "\"algorithm\":{\"name\":\"ppo\",\"epochs\":2,\"minibatches\":2},\"rollout\":{\"steps\":8},"
        "\"network\":{\"trunk\":\"shared\",\"layers\":[{\"type\":\"linear\",\"units\":8},"
        "{\"type\":\"tanh\"}]},\"checkpoint\":{\"interval_s\":0},"
        "\"evaluation\":{\"interval\":0,\"final_episodes\":0},"
        "\"supervisor\":{\"respawn_floor_s\":0.01}}";
    assert_int_equal(rm_test_daemon_home(&d, "native", config), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    const int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", 12));
    return fd;
}

/* And trains on. */
static void kill_the_learner(int fd)
{
    json_t *status = rm_test_status(fd);
    const double updates = json_number_value(rm_test_path(status, "policies.0.updates"));
    assert_string_equal(json_string_value(rm_test_path(status, "workers.0.role")), "learner");
    json_decref(status);
    rm_test_kill_worker(fd, 0);
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", updates + 12));
}

static void a_successor_takes_up_the_optimizer(void **state)
{
    (void)state;
    const int fd = begin();
    kill_the_learner(fd); /* before there is a checkpoint */
    assert_true(
        rm_test_until_file(&d, "log.txt", "lost, its unpublished state starts from scratch"));
    assert_null(strstr(rm_test_daemon_file(&d, "log.txt"), "the optimizer is that of the newest"));
    json_decref(rm_test_ask(fd, "checkpoint", NULL));
    assert_true(rm_test_until_file(&d, "log.txt", "checkpoint 1: step "));
    kill_the_learner(fd);
    assert_true(rm_test_until_file(&d, "log.txt",
                                   "lost, its unpublished state is that of the newest checkpoint"));
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_successor_takes_up_the_optimizer, teardown),
    };
    setenv("RINGMASTER_CUDA_PLUGIN", rm_test_build_path("lib/emulated/ringmaster-cuda.so"), 1);
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
