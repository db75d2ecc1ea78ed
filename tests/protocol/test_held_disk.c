/* Nothing that changes a file returns - not a write, a sync, an open that makes one, a rename -
 * until the test lets it, in the daemon and in every worker: the daemon answers, workers are
 * watched and started anew, settings change, training goes on. What was written meanwhile stands in
 * the files afterwards, in order, or was counted as left out. And a disk that fails. */
#include "tests/support/batch.h"
#include "tests/support/daemon.h"
#include "tests/support/kills.h"
#include "tests/support/slow_disk.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rm_test_daemon d;

static void hold(void)
{
    atomic_store(&rm_test_disk->all_held, 1);
}

static void let_go(void)
{
    atomic_store(&rm_test_disk->all_held, 0);
}

static int end(void **state)
{
    (void)state;
    atomic_store(&rm_test_disk->broken, 0);
    let_go();
    rm_test_daemon_end(&d);
    return 0;
}

static const char config[] =
    "{\"name\":\"x\",\"seed\":3,\"run\":{\"steps\":0},\"world\":{\"name\":\"count\"},"
    "\"actor\":{\"count\":2,\"worlds\":4},\"algorithm\":{\"name\":\"dqn\"},"
    "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":8}]},"
    "\"optimizer\":{\"learning_rate\":0.001},\"metrics\":{\"interval_s\":0.05},"
    "\"checkpoint\":{\"interval_s\":0,\"at_end\":false},"
    "\"supervisor\":{\"respawn_floor_s\":0.02},"
    "\"evaluation\":{\"interval\":0,\"final_episodes\":0}}";

/* Rows of metrics fill the queue in a few seconds of a disk that hangs; without them it takes what
 * these tests have for it, however long that lasts. */
static int begin(bool metrics)
{
    static const char *const none[] = {"--set", "metrics.csv=false", "--set",
                                       "metrics.tensorboard=off", NULL};
    assert_int_equal(rm_test_daemon_home(&d, "held", config), 0);
    assert_int_equal(rm_test_daemon_start(&d, metrics ? NULL : none, false, 0), 0);
    const int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_true(rm_test_until_text(fd, "state", "running"));
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", 20));
    return fd;
}

/* As many calls do not return. */
static void until_held(int n)
{
    for (int i = 0; i < RM_TEST_PATIENCE_S * 100 && atomic_load(&rm_test_disk->all_held_in) < n;
         i++)
        usleep(10000);
    assert_true(atomic_load(&rm_test_disk->all_held_in) >= n);
}

static double number(int fd, const char *path)
{
    json_t *status = rm_test_status(fd);
    const double value = json_number_value(rm_test_path(status, path));
    json_decref(status);
    return value;
}

static void ask(int fd, const char *command, const char *arguments)
{
    json_t *reply = rm_test_ask(fd, command, arguments);
    assert_string_equal(rm_test_error(reply), "");
    json_decref(reply);
}

static double rate(int fd)
{
    json_t *reply = rm_test_ask(fd, "get", "{\"key\":\"optimizer.learning_rate\"}");
    const double value = json_number_value(rm_test_path(reply, "return.value"));
    json_decref(reply);
    return value;
}

static void stop(int fd)
{
    ask(fd, "stop", NULL);
    close(fd);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 0);
}

/* `texts`, NULL at the end, stand in the file one after the other. */
static void stands_in_order(const char *file, const char *const *texts)
{
    const char *at = rm_test_daemon_file(&d, file);
    for (int i = 0; texts[i]; i++) {
        const char *found = strstr(at, texts[i]);
        if (!found)
            fail_msg("\"%s\" is not in %s, or not in its place: %s", texts[i], file, at);
        at = found + strlen(texts[i]);
    }
}

static void everything_goes_on_while_writes_hang(void **state)
{
    (void)state;
    const int fd = begin(true);
    hold();
    ask(fd, "pause", NULL);
    until_held(2); /* log.txt, and standard error, which is a file here */
    ask(fd, "resume", NULL);
    assert_true(rm_test_until_text(fd, "state", "running"));

    const double updates = number(fd, "policies.0.updates"), steps = number(fd, "progress.steps");
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", updates + 200));
    assert_true(rm_test_until_at_least(fd, "progress.steps", steps + 200));
    rm_test_kill_worker(fd, 0);
    assert_true(rm_test_until_at_least(fd, "workers.0.generation", 2));
    assert_true(rm_test_until_text(fd, "workers.0.supervisor", "up"));
    ask(fd, "set", "{\"key\":\"optimizer.learning_rate\",\"value\":0.0005}");
    assert_true(rate(fd) == 0.0005);
    for (int i = 0; i < 50; i++)
        ask(fd, "status", NULL);
    assert_true(number(fd, "writers.files.queued_bytes") > 0);
    assert_true(atomic_load(&rm_test_disk->all_held_in) >= 2);
    let_go();
    stop(fd);
}

static void what_was_written_meanwhile_is_there_in_order(void **state)
{
    (void)state;
    const int fd = begin(false);
    hold();
    ask(fd, "pause", NULL);
    until_held(2);
    ask(fd, "resume", NULL);
    rm_test_kill_worker(fd, 0);
    ask(fd, "set", "{\"key\":\"optimizer.learning_rate\",\"value\":0.0005}");
    ask(fd, "pause", NULL);
    assert_true(number(fd, "writers.files.queued_bytes") > 0);
    assert_true(number(fd, "writers.files.lost") == 0);
    let_go();
    stop(fd);
    static const char *const log[] = {"running",
                                      "paused",
                                      "running",
                                      "actor-0: starting",
                                      "optimizer.learning_rate: 0.001 -> 0.0005",
                                      "paused",
                                      "stopping: requested by a client",
                                      NULL};
    stands_in_order("log.txt", log);
    static const char *const settings[] = {"optimizer.learning_rate", NULL};
    stands_in_order("settings.jsonl", settings);
}

/* Is there an answer? */
static bool answered(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    return poll(&ready, 1, 0) == 1;
}

static void ask_for_change(int fd, const char *value)
{
    char line[160];
    const int n = snprintf(line, sizeof line,
                           "{\"execute\":\"set\",\"arguments\":{\"key\":"
                           "\"optimizer.learning_rate\",\"value\":%s,\"keep\":true}}\n",
                           value);
    assert_int_equal(rm_test_send(fd, line, (size_t)n), 0);
}

/* What is to be kept is in force, and answered, when it is on the disk, in the order asked for. */
static void what_is_to_be_kept_is_answered_when_it_is(void **state)
{
    (void)state;
    const int fd = begin(false), first = rm_test_connect(&d), second = rm_test_connect(&d);
    assert_true(first >= 0 && second >= 0);
    hold();
    const double before = number(fd, "control.requests");
    ask_for_change(first, "0.00048828125");
    assert_true(rm_test_until_at_least(fd, "control.requests", before + 1));
    ask_for_change(second, "0.000244140625");
    /* This client's next request waits for the answer to the one before. */
    assert_int_equal(rm_test_send(second, "{\"execute\":\"pause\"}\n", 20), 0);
    for (int i = 0; i < 50; i++)
        assert_true(rate(fd) == 0.001);
    assert_false(answered(first));
    assert_false(answered(second));
    json_t *status = rm_test_status(fd);
    assert_string_equal(json_string_value(json_object_get(status, "state")), "running");
    json_decref(status);

    let_go();
    json_t *reply = rm_test_read(first);
    assert_true(json_number_value(rm_test_path(reply, "return.value")) == 0.00048828125);
    assert_non_null(strstr(rm_test_daemon_file(&d, "settings.jsonl"), "0.00048828125"));
    json_decref(reply);
    reply = rm_test_read(second);
    assert_true(json_number_value(rm_test_path(reply, "return.before")) == 0.00048828125);
    assert_true(json_number_value(rm_test_path(reply, "return.value")) == 0.000244140625);
    assert_non_null(strstr(rm_test_daemon_file(&d, "settings.jsonl"), "0.000244140625"));
    json_decref(reply);
    reply = rm_test_read(second);
    assert_string_equal(json_string_value(rm_test_path(reply, "return.state")), "paused");
    json_decref(reply);
    assert_true(rate(fd) == 0.000244140625);
    close(first);
    close(second);
    stop(fd);
}

/* Who asked and left misses the answer; the change is made all the same, and nobody waits longer.
 */
static void who_left_misses_the_answer(void **state)
{
    (void)state;
    const int fd = begin(false), gone = rm_test_connect(&d);
    assert_true(gone >= 0);
    hold();
    const double before = number(fd, "control.requests");
    ask_for_change(gone, "0.0003");
    assert_true(rm_test_until_at_least(fd, "control.requests", before + 1));
    close(gone);
    let_go();
    ask(fd, "set", "{\"key\":\"epsilon.end\",\"value\":0.25,\"keep\":true}");
    assert_true(rate(fd) == 0.0003);
    stop(fd);
}

static void a_disk_that_fails_changes_nothing_that_was_to_be_kept(void **state)
{
    (void)state;
    const int fd = begin(false);
    atomic_store(&rm_test_disk->broken, EIO);
    json_t *reply = rm_test_ask(
        fd, "set", "{\"key\":\"optimizer.learning_rate\",\"value\":0.0003,\"keep\":true}");
    assert_string_equal(rm_test_error(reply), "invalid-argument");
    const char *words = json_string_value(rm_test_path(reply, "error.desc"));
    assert_non_null(strstr(words, "nothing changed, because it cannot be saved"));
    assert_non_null(strstr(words, "settings.jsonl"));
    json_decref(reply);
    assert_true(rate(fd) == 0.001);
    /* What is not to be kept does not need the disk. */
    ask(fd, "set", "{\"key\":\"optimizer.learning_rate\",\"value\":0.0005}");
    assert_true(rate(fd) == 0.0005);
    assert_true(rm_test_until_at_least(fd, "writers.files.failed", 2));

    atomic_store(&rm_test_disk->broken, 0);
    ask(fd, "set", "{\"key\":\"optimizer.learning_rate\",\"value\":0.0003,\"keep\":true}");
    assert_true(rate(fd) == 0.0003);
    stop(fd);
}

/* More than the queue holds: the daemon answers, counts what is lost, and says so. */
static void what_has_no_room_is_counted_and_said(void **state)
{
    (void)state;
    const int fd = begin(false);
    hold();
    for (int i = 0; i < 20000 && number(fd, "writers.files.lost") == 0; i++)
        for (int n = 0; n < 20; n++)
            ask(fd, "set", "{\"key\":\"optimizer.learning_rate\",\"value\":0.0009765625}");
    assert_true(number(fd, "writers.files.lost") > 0);
    assert_true(number(fd, "writers.files.queued_bytes") < 1 << 20);
    /* Its note is longer than those, so there is no room for it either. */
    json_t *reply = rm_test_ask(fd, "set",
                                "{\"key\":\"optimizer.learning_rate\","
                                "\"value\":0.0012345678901234567,\"keep\":true}");
    assert_string_equal(rm_test_error(reply), "invalid-argument");
    json_decref(reply);

    let_go();
    assert_true(rm_test_until_file(&d, "log.txt", "dropped because writing took too long: "));
    ask(fd, "set", "{\"key\":\"epsilon.end\",\"value\":0.25,\"keep\":true}");
    assert_non_null(strstr(rm_test_daemon_file(&d, "settings.jsonl"), "epsilon.end"));
    stop(fd);
    assert_non_null(strstr(rm_test_daemon_output(&d), "dropped because writing took too long: "));
}

/* The configuration is a pipe that nobody writes to: reading it anew takes as long as that. */
static void a_configuration_that_cannot_be_read_yet_holds_nobody(void **state)
{
    (void)state;
    const int fd = begin(false);
    char path[96];
    snprintf(path, sizeof path, "%s/config.json", d.home);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(kill(d.pid, SIGHUP), 0);
    for (int i = 0; i < 50; i++)
        ask(fd, "status", NULL);
    ask(fd, "set", "{\"key\":\"optimizer.learning_rate\",\"value\":0.0005}");
    const int in = open(path, O_WRONLY); /* returns when the daemon is there to read */
    assert_true(in >= 0);
    for (int i = 0; i < 50; i++)
        ask(fd, "status", NULL);
    assert_true(rate(fd) == 0.0005);
    assert_int_equal(write(in, config, sizeof config - 1), sizeof config - 1);
    close(in);
    assert_true(rm_test_until_file(&d, "log.txt", "reload: 1 key changed, 0 refused"));
    assert_true(rate(fd) == 0.001); /* it was not to be kept */
    stop(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(everything_goes_on_while_writes_hang, end),
        cmocka_unit_test_teardown(what_was_written_meanwhile_is_there_in_order, end),
        cmocka_unit_test_teardown(what_is_to_be_kept_is_answered_when_it_is, end),
        cmocka_unit_test_teardown(who_left_misses_the_answer, end),
        cmocka_unit_test_teardown(a_disk_that_fails_changes_nothing_that_was_to_be_kept, end),
        cmocka_unit_test_teardown(what_has_no_room_is_counted_and_said, end),
        cmocka_unit_test_teardown(a_configuration_that_cannot_be_read_yet_holds_nobody, end),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, rm_test_disk_make, rm_test_disk_remove);
}
