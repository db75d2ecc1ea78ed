/* The disk takes long to sync what it was given, in the daemon and in every worker: actors and
 * learners go on, the daemon answers, and what stands under a checkpoint's name is whole. */
#include "daemon/checkpoint_files.h"
#include "tests/support/batch.h"
#include "tests/support/daemon.h"
#include "tests/support/kills.h"
#include "tests/support/slow_disk.h"
#include "tests/support/unit.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct rm_test_daemon d;

static int end(void **state)
{
    (void)state;
    atomic_store(&rm_test_disk->held, 0);
    atomic_store(&rm_test_disk->only, 0);
    rm_test_daemon_end(&d);
    return 0;
}

static int begin(const char *more)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"seed\":3,\"run\":{\"steps\":0},\"world\":{\"name\":\"count\"},"
             "\"actor\":{\"count\":2,\"worlds\":4},\"algorithm\":{\"name\":\"dqn\"},"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":8}]},"
             "\"evaluation\":{\"interval\":0,\"final_episodes\":0}%s}",
             more);
    assert_int_equal(rm_test_daemon_home(&d, "slow", config), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    const int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", 20));
    for (int i = 0; i < 3; i++) {
        char path[40];
        snprintf(path, sizeof path, "workers.%d.supervisor", i);
        assert_true(rm_test_until_text(fd, path, "up"));
    }
    return fd;
}

static double now(int fd, const char *path)
{
    json_t *status = rm_test_status(fd);
    const double value = json_number_value(rm_test_path(status, path));
    json_decref(status);
    return value;
}

/* Everybody who writes a part of the checkpoint is at its fsync. */
static void until_waiting(int n)
{
    for (int i = 0; i < 6000 && atomic_load(&rm_test_disk->waiting) < n; i++)
        usleep(10000);
    assert_true(atomic_load(&rm_test_disk->waiting) >= n);
}

static bool is_whole(uint64_t number)
{
    char path[PATH_MAX], run[PATH_MAX];
    struct rm_checkpoint_facts facts;
    snprintf(path, sizeof path, "%s/runs/slow/latest", d.home);
    if (!realpath(path, run))
        return false;
    snprintf(path, sizeof path, "%.3000s/checkpoints/%06llu", run, (unsigned long long)number);
    if (rm_checkpoint_check(path, true, &facts, NULL))
        return false;
    rm_checkpoint_facts_free(&facts);
    return true;
}

static void until_whole(uint64_t number)
{
    for (int i = 0; i < 6000 && !is_whole(number); i++)
        usleep(10000);
    assert_true(is_whole(number));
}

static json_t *ask_for_one(int fd, uint64_t number)
{
    json_t *reply = rm_test_ask(fd, "checkpoint", NULL);
    assert_int_equal(json_integer_value(rm_test_path(reply, "return.number")), number);
    return reply;
}

static void nobody_waits_for_the_disk(void **state)
{
    (void)state;
    const int fd = begin("");
    atomic_store(&rm_test_disk->held, 1);
    json_t *reply = ask_for_one(fd, 1);
    assert_string_equal(json_string_value(rm_test_path(reply, "return.waits")), "");
    json_decref(reply);
    until_waiting(4); /* two actors, the learner, the daemon's thread */

    const double updates = now(fd, "policies.0.updates"), steps = now(fd, "progress.steps");
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", updates + 200));
    assert_true(rm_test_until_at_least(fd, "progress.steps", steps + 200));
    reply = ask_for_one(fd, 2);
    const char *waits = json_string_value(rm_test_path(reply, "return.waits"));
    assert_true(waits && strstr(waits, "checkpoint 1 is still being written"));
    json_decref(reply);
    assert_false(is_whole(1));

    atomic_store(&rm_test_disk->held, 0);
    until_whole(1);
    until_whole(2);
    close(fd);
}

/* A worker dies, so the checkpoint is given up while the others' disk still has it: they do not
 * wait for that when they are asked for the next. */
static void what_is_given_up_holds_nobody(void **state)
{
    (void)state;
    const int fd = begin("");
    atomic_store(&rm_test_disk->held, 1);
    json_decref(ask_for_one(fd, 1));
    until_waiting(4);
    rm_test_kill_worker(fd, 0);
    json_decref(ask_for_one(fd, 2)); /* the daemon itself still waits for its own thread */
    const double updates = now(fd, "policies.0.updates");
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", updates + 200));
    atomic_store(&rm_test_disk->held, 0);
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", updates + 400));
    /* 1 cannot be: a part is missing. One that is asked for now can, or is given up in words. */
    uint64_t number = 2;
    for (int tries = 0; !is_whole(number); tries++) {
        assert_true(tries < 100);
        json_t *reply = rm_test_ask(fd, "checkpoint", NULL);
        number = (uint64_t)json_integer_value(rm_test_path(reply, "return.number"));
        json_decref(reply);
        for (int i = 0; i < 100 && !is_whole(number); i++)
            usleep(10000);
    }
    assert_false(is_whole(1));
    close(fd);
}

/* Stopped while the disk is busy, a run ends when it may not wait any longer. */
static void a_stop_does_not_wait_for_ever(void **state)
{
    (void)state;
    const int fd = begin(",\"supervisor\":{\"stop_grace_s\":0.5}");
    atomic_store(&rm_test_disk->held, 1);
    kill(d.pid, SIGTERM);
    until_waiting(4);
    assert_true(rm_test_until_text(fd, "state", "stopping"));
    atomic_store(&rm_test_disk->held, 0); /* no process can end that is within fsync */
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 0);
    assert_non_null(strstr(rm_test_daemon_output(&d), "given up"));
    close(fd);
}

/* A worker dies, so the checkpoint is given up while an actor still writes its part of it. The last
 * one, which a stop asks for then, is made when that is done. */
static void a_stop_waits_for_what_is_written(void **state)
{
    (void)state;
    const int fd = begin(",\"supervisor\":{\"stop_grace_s\":300}");
    atomic_store(&rm_test_disk->only, (int)now(fd, "workers.0.pid"));
    atomic_store(&rm_test_disk->held, 1);
    json_decref(ask_for_one(fd, 1));
    until_waiting(1);
    rm_test_kill_worker(fd, 2);
    kill(d.pid, SIGTERM);
    assert_true(rm_test_until_file(&d, "log.txt", "still writes its part of an earlier one"));
    atomic_store(&rm_test_disk->held, 0);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 0);
    if (!is_whole(2))
        fail_msg("no checkpoint 2: %s", rm_test_daemon_output(&d));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nobody_waits_for_the_disk, end),
        cmocka_unit_test_teardown(what_is_given_up_holds_nobody, end),
        cmocka_unit_test_teardown(a_stop_does_not_wait_for_ever, end),
        cmocka_unit_test_teardown(a_stop_waits_for_what_is_written, end),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, rm_test_disk_make, rm_test_disk_remove);
}
