/* Runs whose learner has several GPUs, on the emulation: what is chosen and said, what is refused,
 * and what is gone on without. */
#include "tests/support/batch.h"
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rm_test_daemon d;

static void home(const char *name, const char *learner)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":3,\"run\":{\"steps\":300},"
             "\"world\":{\"name\":\"cartpole\"},\"actor\":{\"count\":1,\"worlds\":4},"
             "\"ring\":{\"capacity\":4096},\"sample\":{\"batch\":64,\"min_fill\":128},"
             "\"limiter\":{\"updates_per_step\":0.05},\"algorithm\":{\"name\":\"dqn\"},"
             "\"learner\":{%s},"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":256},{\"type\":\"relu\"},"
             "{\"type\":\"linear\",\"units\":256},{\"type\":\"relu\"}]},"
             "\"evaluation\":{\"episodes\":2,\"final_episodes\":2,\"worlds\":2},"
             "\"supervisor\":{\"respawn_floor_s\":0.01,\"backoff_max_s\":0.05,\"deaths_max\":50}}",
             learner);
    assert_int_equal(rm_test_daemon_home(&d, name, config), 0);
}

/* Rollouts of 64 steps, and four updates of each. */
static void home_of_rollouts(const char *name, const char *actor, const char *learner)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":3,\"run\":{\"steps\":600},"
             "\"world\":{\"name\":\"cartpole\"},\"actor\":{%s\"worlds\":4},"
             "\"rollout\":{\"steps\":16},"
             "\"algorithm\":{\"name\":\"ppo\",\"epochs\":2,\"minibatches\":2},"
             "\"learner\":{%s},"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"tanh\"}]},"
             "\"evaluation\":{\"episodes\":2,\"final_episodes\":2,\"worlds\":2},"
             "\"supervisor\":{\"respawn_floor_s\":0.01,\"backoff_max_s\":0.05,\"deaths_max\":50}}",
             actor, learner);
    assert_int_equal(rm_test_daemon_home(&d, name, config), 0);
}

static int setup(void **state)
{
    (void)state;
    setenv("RM_EMULATED_DEVICES", "3", 1);
    setenv("RM_EMULATED_GUARD", "0", 1);
    setenv("RINGMASTER_NCCL", rm_test_build_path("lib/emulated/libnccl.so.2"), 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("RM_EMULATED_FAULT");
    rm_test_daemon_end(&d);
    return 0;
}

static int run_it(void)
{
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    return rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S);
}

static void said(const char *words)
{
    const char *log = rm_test_daemon_file(&d, "log.txt");
    if (!strstr(log, words))
        fail_msg("not said: %s\n%s", words, log);
}

static void several_train_together(void **state)
{
    (void)state;
    home("together", "\"device\":\"cuda:1\",\"devices\":2");
    assert_int_equal(run_it(), 0);
    said("learner of agent_0: cuda:1, Emulated device (GPU-");
    said(" with cuda:2 (NCCL): asked for");
}

/* "auto" takes what there is and shares the batch evenly: two of three. */
static void auto_takes_as_many_as_there_are(void **state)
{
    (void)state;
    home("auto", "\"device\":\"auto\",\"devices\":4");
    assert_int_equal(run_it(), 0);
    said("with cuda:1 (NCCL): an update is 25.8 Mflop; 2 of learner.devices 4");
}

static void devices_that_are_not_there_are_refused(void **state)
{
    (void)state;
    home("missing", "\"device\":\"cuda:2\",\"devices\":2");
    assert_int_equal(run_it(), 1);
    said("learner.device \"cuda:2\", learner.devices 2: of the 3 GPUs of this host only 0 come "
         "after it");
}

static void without_the_library_auto_takes_one(void **state)
{
    (void)state;
    setenv("RINGMASTER_NCCL", "/nowhere/libnccl.so.2", 1);
    home("alone", "\"device\":\"auto\",\"devices\":2");
    assert_int_equal(run_it(), 0);
    said("only one: several devices for one agent (learner.devices) need NCCL");
    rm_test_daemon_end(&d);
    home("refused", "\"device\":\"cuda:0\",\"devices\":2");
    assert_int_equal(run_it(), 1);
    said("/nowhere/libnccl.so.2");
}

/* NCCL tells of an error while the run goes on: the process ends as by any error of a device, and
 * the device that had it is the one that is counted. */
static void an_error_ends_the_process(void **state)
{
    (void)state;
    setenv("RM_EMULATED_FAULT", "ncclCommGetAsyncError:6@60", 1);
    home("error", "\"device\":\"auto\",\"devices\":2,\"device_faults\":1");
    assert_int_equal(run_it(), 0);
    said("exited with 70: CUDA error 999 (NCCL error 6");
    said("is no longer used");
}

static void rollouts_are_learned_from_together(void **state)
{
    (void)state;
    home_of_rollouts("rollouts", "\"count\":2,", "\"device\":\"cuda:0\",\"devices\":3");
    assert_int_equal(run_it(), 0);
    said(" with cuda:1, cuda:2 (NCCL): asked for");
}

static void worlds_are_shared(void **state)
{
    (void)state;
    home_of_rollouts("worlds", "\"device\":\"cuda\",", "\"device\":\"cuda:0\",\"devices\":2");
    assert_int_equal(run_it(), 0);
    said(" with cuda:1 (NCCL): asked for");
}

static unsigned times_said(const char *words)
{
    const char *log = rm_test_daemon_file(&d, "log.txt");
    unsigned n = 0;
    for (; (log = strstr(log, words)); log++)
        n++;
    return n;
}

/* A device is lost in the seventh of ten rollouts or so: all of them end, in one process, and
 * another one has them all again, which has less to do than it takes to get there. */
static void all_begin_again_together(void **state)
{
    static const char *const actors[] = {"\"count\":1,", "\"device\":\"cuda\","};
    static const char *const faults[] = {"cudaGraphLaunch:719@80", "cudaGraphLaunch:719@290"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        setenv("RM_EMULATED_FAULT", faults[i], 1);
        home_of_rollouts("again", actors[i], "\"device\":\"cuda:0\",\"devices\":2");
        assert_int_equal(run_it(), 0);
        said("exited with 70: CUDA error 719");
        assert_int_equal(times_said(" with cuda:1 (NCCL): asked for"), 2);
        assert_int_equal(times_said("continues from version"), 1);
        rm_test_daemon_end(&d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(several_train_together, setup, teardown),
        cmocka_unit_test_setup_teardown(auto_takes_as_many_as_there_are, setup, teardown),
        cmocka_unit_test_setup_teardown(devices_that_are_not_there_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(without_the_library_auto_takes_one, setup, teardown),
        cmocka_unit_test_setup_teardown(an_error_ends_the_process, setup, teardown),
        cmocka_unit_test_setup_teardown(rollouts_are_learned_from_together, setup, teardown),
        cmocka_unit_test_setup_teardown(worlds_are_shared, setup, teardown),
        cmocka_unit_test_setup_teardown(all_begin_again_together, setup, teardown),
    };
    setenv("RINGMASTER_CUDA_PLUGIN", rm_test_build_path("lib/emulated/ringmaster-cuda.so"), 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
