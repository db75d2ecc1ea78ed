/* A run that is asked to stop ends as its last checkpoint has it: the policies that are left are
 * those of the checkpoint to the bit, so nothing was learned that is not in it. Wherever learners
 * compute, and whether or not another checkpoint was being written. */
#include "tests/support/batch.h"
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rm_test_daemon d;

/* An endless run. */
static void home(const char *name, const char *more)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":3,\"run\":{\"steps\":0},"
             "\"world\":{\"name\":\"cartpole\"},%s,"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"tanh\"}]},"
             "\"checkpoint\":{\"interval_s\":3600},"
             "\"evaluation\":{\"interval\":0,\"final_episodes\":0}}",
             more);
    assert_int_equal(rm_test_daemon_home(&d, name, config), 0);
}

static int teardown(void **state)
{
    (void)state;
    unsetenv("RM_EMULATED_DEVICES");
    rm_test_daemon_end(&d);
    return 0;
}

static uint64_t newest_checkpoint(void)
{
    char path[128];
    uint64_t newest = 0;
    snprintf(path, sizeof path, "%s/runs/%s/latest/checkpoints", d.home, d.name);
    DIR *folder = opendir(path);
    if (!folder) {
        fail_msg("%s: %s", path, strerror(errno));
        return 0;
    }
    for (struct dirent *e; (e = readdir(folder));) {
        const uint64_t number = strtoull(e->d_name, NULL, 10);
        newest = number > newest ? number : newest;
    }
    closedir(folder);
    return newest;
}

struct file {
    char *bytes;
    size_t n;
};

static struct file read_file(const char *where)
{
    char path[256];
    struct file f = {malloc(1 << 20), 0};
    assert_non_null(f.bytes);
    snprintf(path, sizeof path, "%s/runs/%s/latest/%s", d.home, d.name, where);
    FILE *in = fopen(path, "rb");
    if (!in) {
        fail_msg("%s: %s", path, strerror(errno));
        return f;
    }
    f.n = fread(f.bytes, 1, 1 << 20, in);
    fclose(in);
    assert_true(f.n > 0 && f.n < 1 << 20);
    return f;
}

/* Behind the header and its size. */
static struct file tensors_of(const struct file *f)
{
    uint64_t header;
    memcpy(&header, f->bytes, sizeof header);
    assert_true(header < f->n - sizeof header);
    return (struct file){f->bytes + sizeof header + header, f->n - sizeof header - header};
}

static uint64_t updates_of(const struct file *f)
{
    static const char name[] = "\"updates\":\"";
    const char *at = memmem(f->bytes, f->n, name, sizeof name - 1);
    assert_non_null(at);
    return strtoull(at + sizeof name - 1, NULL, 10);
}

/* Parameters, and how many updates made them; an actor may end its turn after the learner's. */
static void assert_as_the_checkpoint(void)
{
    char in_checkpoint[96];
    snprintf(in_checkpoint, sizeof in_checkpoint, "checkpoints/%06llu/policies/agent_0.safetensors",
             (unsigned long long)newest_checkpoint());
    struct file left = read_file("policies/agent_0.safetensors"), saved = read_file(in_checkpoint);
    if (updates_of(&left) != updates_of(&saved))
        fail_msg("%s", rm_test_daemon_file(&d, "log.txt"));
    const struct file x = tensors_of(&left), y = tensors_of(&saved);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.bytes, y.bytes, x.n);
    free(left.bytes);
    free(saved.bytes);
}

/* `commands`: sent at once, the last of them a stop. */
static void stop_by(const char *commands)
{
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    const int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_true(rm_test_until_text(fd, "state", "running")); /* so that there is a checkpoint */
    assert_true(rm_test_until_text(fd, "workers.0.supervisor", "up"));
    if (!rm_test_until_at_least(fd, "policies.0.updates", 20))
        fail_msg("%s", rm_test_daemon_file(&d, "log.txt"));
    assert_int_equal(rm_test_send(fd, commands, strlen(commands)), 0);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 0);
    close(fd);
}

#define STOP       "{\"execute\":\"stop\"}\n"
#define CHECKPOINT "{\"execute\":\"checkpoint\"}\n"

static void check(const char *name, const char *config)
{
    home(name, config);
    stop_by(STOP);
    assert_as_the_checkpoint();
    rm_test_daemon_end(&d);
    home(name, config);
    stop_by(CHECKPOINT STOP);
    assert_as_the_checkpoint();
    rm_test_daemon_end(&d);
}

static void learning_from_replay(void **state)
{
    (void)state;
    check("replay", "\"actor\":{\"count\":1,\"worlds\":4},\"algorithm\":{\"name\":\"dqn\"},"
                    "\"learner\":{\"device\":\"cpu\"},\"limiter\":{\"updates_per_step\":0},"
                    "\"sample\":{\"batch\":16,\"min_fill\":64}");
}

static void learning_from_rollouts(void **state)
{
    (void)state;
    check("rollouts", "\"actor\":{\"count\":1,\"worlds\":4},\"algorithm\":{\"name\":\"ppo\"},"
                      "\"learner\":{\"device\":\"cpu\"},\"rollout\":{\"steps\":16}");
}

static void learning_on_a_device(void **state)
{
    (void)state;
    check("device", "\"actor\":{\"count\":1,\"worlds\":4},\"algorithm\":{\"name\":\"appo\"},"
                    "\"learner\":{\"device\":\"cuda:0\"},\"rollout\":{\"steps\":16}");
    check("worlds", "\"actor\":{\"worlds\":4,\"device\":\"cuda\"},\"algorithm\":{\"name\":\"ppo\"},"
                    "\"learner\":{\"device\":\"cuda:0\"},\"rollout\":{\"steps\":16}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(learning_from_replay, teardown),
        cmocka_unit_test_teardown(learning_from_rollouts, teardown),
        cmocka_unit_test_teardown(learning_on_a_device, teardown),
    };
    setenv("RINGMASTER_CUDA_PLUGIN", rm_test_build_path("lib/emulated/ringmaster-cuda.so"), 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
