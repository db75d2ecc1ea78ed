/* A GPU that fails in a real run, on the emulation. The learner ends with exit code 70 and a line
 * that names GPU and error, and is restarted. After repeated failures the GPU is not used any more:
 * "auto" uses the CPU, and a run that names the GPU ends with a message. A message also names what
 * is missing at the start. */
#include "tests/support/daemon.h"
#include "tests/support/batch.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rm_test_daemon d;

/* 64 x 65 k parameters: large enough for "auto". */
static void home(const char *name, const char *device)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":3,\"run\":{\"steps\":400},"
             "\"world\":{\"name\":\"cartpole\"},\"actor\":{\"count\":1,\"worlds\":4},"
             "\"ring\":{\"capacity\":4096},\"sample\":{\"batch\":64,\"min_fill\":128},"
             "\"limiter\":{\"updates_per_step\":0.05},\"algorithm\":{\"name\":\"dqn\"},"
             "\"learner\":{\"device\":\"%s\"},"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":256},{\"type\":\"relu\"},"
             "{\"type\":\"linear\",\"units\":256},{\"type\":\"relu\"}]},"
             "\"evaluation\":{\"episodes\":2,\"final_episodes\":2,\"worlds\":2},"
             "\"supervisor\":{\"respawn_floor_s\":0.01,\"backoff_max_s\":0.05,\"deaths_max\":50}}",
             device);
    assert_int_equal(rm_test_daemon_home(&d, name, config), 0);
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("RM_EMULATED_FAULT");
    unsetenv("RM_EMULATED_DEVICES");
    unsetenv("RM_EMULATED_MEMORY");
    unsetenv("RM_EMULATED_CAPABILITY");
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

static unsigned times_said(const char *words)
{
    unsigned n = 0;
    for (const char *at = rm_test_daemon_file(&d, "log.txt"); (at = strstr(at, words)); at++)
        n++;
    return n;
}

static void auto_trains_on_the_device(void **state)
{
    (void)state;
    home("auto", "auto");
    assert_int_equal(run_it(), 0);
    said("learner of agent_0: cuda:0, Emulated device (GPU-");
    said("an update is 25.8 Mflop");
    assert_int_equal(times_said("exited with 70"), 0);
}

/* Every process fails at its 40th graph; what it had published by then stays. */
static void a_device_that_goes_on_failing_is_left_alone(void **state)
{
    static const char *const errors[] = {"700", "719"};
    (void)state;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        char fault[64], words[64];
        snprintf(fault, sizeof fault, "cudaGraphLaunch:%s@8", errors[i]);
        snprintf(words, sizeof words, "exited with 70: CUDA error %s", errors[i]);
        setenv("RM_EMULATED_FAULT", fault, 1);
        home("quarantine", "auto");
        assert_int_equal(run_it(), 0);
        said(words);
        assert_int_equal(times_said(words), 3);
        said("failed 3 times (learner.device_faults) and is no longer used");
        said("learner of agent_0: cpu: every GPU of this host failed learner.device_faults times "
             "and is no longer used");
        rm_test_daemon_end(&d);
    }
}

static void one_asked_for_by_name_ends_the_run(void **state)
{
    (void)state;
    setenv("RM_EMULATED_FAULT", "cudaGraphLaunch:700@8", 1);
    home("named", "cuda:0");
    assert_int_equal(run_it(), 1);
    assert_int_equal(times_said("exited with 70"), 3);
    said("the run failed");
    said("failed learner.device_faults times and is no longer used");
}

static void what_is_missing_at_the_start_is_said(void **state)
{
    (void)state;
    setenv("RM_EMULATED_DEVICES", "0", 1);
    home("none", "auto");
    assert_int_equal(run_it(), 0);
    said("learner of agent_0: cpu: there is no CUDA device");
    rm_test_daemon_end(&d);

    home("none-named", "cuda:0");
    assert_int_equal(run_it(), 1);
    said("learner.device \"cuda:0\": there is no CUDA device");
    assert_int_equal(times_said("starting (generation 2"), 0);
    rm_test_daemon_end(&d);
    unsetenv("RM_EMULATED_DEVICES");

    setenv("RM_EMULATED_FAULT", "cudaGetDeviceCount:802@1", 1);
    home("not-ready", "auto");
    assert_int_equal(run_it(), 0);
    said("learner of agent_0: cpu: system not yet initialized");
}

static void devices_that_are_too_old_are_said(void **state)
{
    static const char words[] =
        "cuda:0 Emulated device has compute capability 7.5; 8.0 or newer is needed";
    (void)state;
    setenv("RM_EMULATED_CAPABILITY", "75", 1);
    home("old", "auto");
    assert_int_equal(run_it(), 0);
    said("learner of agent_0: cpu: cuda:0 Emulated device has compute capability 7.5");
    rm_test_daemon_end(&d);

    home("old-named", "cuda:0");
    assert_int_equal(run_it(), 1);
    said(words);
    assert_int_equal(times_said("starting (generation 2"), 0);
}

static void too_little_memory_is_said(void **state)
{
    (void)state;
    setenv("RM_EMULATED_MEMORY", "12000000", 1);
    home("memory", "auto");
    assert_int_equal(run_it(), 0);
    said("bytes asked for");
    said("learner of agent_0: cpu: ");
}

/* One that is asked for by name is tried learner.device_faults times. */
static void too_little_memory_where_it_is_named_ends_the_run(void **state)
{
    (void)state;
    setenv("RM_EMULATED_MEMORY", "12000000", 1);
    home("memory-named", "cuda:0");
    assert_int_equal(run_it(), 1);
    said("bytes asked for");
    assert_int_equal(times_said("exited with 70: learner of policy agent_0: Emulated device"), 3);
    said("the run failed");
    said("failed learner.device_faults times and is no longer used");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(auto_trains_on_the_device, teardown),
        cmocka_unit_test_teardown(a_device_that_goes_on_failing_is_left_alone, teardown),
        cmocka_unit_test_teardown(one_asked_for_by_name_ends_the_run, teardown),
        cmocka_unit_test_teardown(what_is_missing_at_the_start_is_said, teardown),
        cmocka_unit_test_teardown(devices_that_are_too_old_are_said, teardown),
        cmocka_unit_test_teardown(too_little_memory_is_said, teardown),
        cmocka_unit_test_teardown(too_little_memory_where_it_is_named_ends_the_run, teardown),
    };
    setenv("RINGMASTER_CUDA_PLUGIN", rm_test_build_path("lib/emulated/ringmaster-cuda.so"), 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
