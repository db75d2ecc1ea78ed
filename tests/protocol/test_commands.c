/* Every command of the control socket, against a real daemon with pretended workers. */
#include "tests/support/daemon.h"
#include "tests/support/fake_worker.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static struct rm_test_daemon d;
static int fd = -1;

static const char config[] =
    "{\"name\":\"x\",\"seed\":7,\"mode\":\"free\",\"run\":{\"steps\":0},"
    "\"world\":{\"name\":\"count\"},\"actor\":{\"count\":2,\"worlds\":4},"
    "\"ring\":{\"capacity\":4096},\"sample\":{\"batch\":16,\"min_fill\":64},"
    "\"algorithm\":{\"name\":\"dqn\"},"
    "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"relu\"}]},"
    "\"optimizer\":{\"learning_rate\":0.001},\"metrics\":{\"interval_s\":0.1},"
    "\"supervisor\":{\"stop_grace_s\":1}}";

static int start(void **state)
{
    (void)state;
    if (rm_test_daemon_home(&d, "commands", config) < 0 ||
        rm_test_daemon_start(&d, NULL, true, 0) < 0)
        return -1;
    fd = rm_test_connect(&d);
    if (fd < 0)
        printf("%s\n", rm_test_daemon_output(&d));
    return fd < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    close(fd);
    rm_test_daemon_end(&d);
    return 0;
}

static json_t *ask(const char *command, const char *arguments)
{
    json_t *reply = rm_test_ask(fd, command, arguments);
    assert_non_null(reply);
    return reply;
}

/* The "return" of a reply that must not be an error; new reference. */
static json_t *get(const char *command, const char *arguments)
{
    json_t *reply = ask(command, arguments);
    if (!json_object_get(reply, "return"))
        print_error("%s\n", json_dumps(reply, 0));
    json_t *value = json_incref(json_object_get(reply, "return"));
    assert_non_null(value);
    json_decref(reply);
    return value;
}

static void refused(const char *command, const char *arguments, const char *class,
                    const char *mention)
{
    json_t *reply = ask(command, arguments);
    assert_string_equal(rm_test_error(reply), class);
    const char *desc = json_string_value(rm_test_path(reply, "error.desc"));
    assert_non_null(desc);
    if (!strstr(desc, mention))
        print_error("\"%s\" does not mention \"%s\"\n", desc, mention);
    assert_non_null(strstr(desc, mention));
    json_decref(reply);
}

static void status_says_it_all(void **state)
{
    (void)state;
    assert_true(rm_test_until_text(fd, "state", "running"));
    assert_true(rm_test_until_at_least(fd, "policies.0.updates", 1));
    json_t *status = get("status", NULL);
    static const char *const there[] = {"name",
                                        "version",
                                        "mode",
                                        "seed",
                                        "run_directory",
                                        "uptime_s",
                                        "progress.steps",
                                        "progress.left_s",
                                        "rates.steps_per_s",
                                        "score.last",
                                        "evaluation.random",
                                        "agents.0.reward.first",
                                        "agents.0.reward.last",
                                        "agents.0.reward.episodes",
                                        "agents.0.evaluation.mean",
                                        "policies.0.env_steps",
                                        "policies.0.updates",
                                        "policies.0.published",
                                        "policies.0.publish_skipped",
                                        "policies.0.replay_fill",
                                        "policies.0.replay_ratio",
                                        "policies.0.lag_mean",
                                        "policies.0.lag_max",
                                        "policies.0.sample_age",
                                        "policies.0.loss",
                                        "workers.0.pid",
                                        "workers.0.state",
                                        "workers.0.role",
                                        "workers.0.generation",
                                        "workers.0.deaths",
                                        "workers.0.heartbeat_age_s",
                                        "workers.0.phases.waiting",
                                        "workers.0.rss_bytes",
                                        "workers.0.supervisor",
                                        "control.clients"};
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++) {
        if (!rm_test_path(status, there[i]))
            print_error("status lacks %s\n", there[i]);
        assert_non_null(rm_test_path(status, there[i]));
    }
    assert_string_equal(json_string_value(rm_test_path(status, "name")), "commands");
    assert_int_equal(json_array_size(rm_test_path(status, "workers")), 4); /* 2 actors */
    assert_true(
        rm_test_process_there((pid_t)json_integer_value(rm_test_path(status, "workers.0.pid"))));
    /* What the reply's schema promises is there. */
    json_t *schema = get("query-schema", NULL);
    json_t *commands = json_object_get(schema, "commands");
    for (size_t i = 0; i < json_array_size(commands); i++) {
        json_t *command = json_array_get(commands, i);
        json_t *required = rm_test_path(command, "returns.required");
        if (strcmp(json_string_value(json_object_get(command, "name")), "status") != 0)
            continue;
        assert_true(json_array_size(required) > 10);
        for (size_t j = 0; j < json_array_size(required); j++)
            assert_non_null(
                json_object_get(status, json_string_value(json_array_get(required, j))));
    }
    json_decref(schema);
    json_decref(status);
}

static void all_commands_are_described(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "status", "metrics",    "counters", "get",      "set",  "trace",  "pause",
        "resume", "checkpoint", "evaluate", "policies", "stop", "events", "query-schema"};
    json_t *schema = get("query-schema", NULL);
    json_t *commands = json_object_get(schema, "commands");
    assert_int_equal(json_array_size(commands), sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        json_t *command = json_array_get(commands, i);
        assert_string_equal(json_string_value(json_object_get(command, "name")), wanted[i]);
        assert_string_equal(json_string_value(rm_test_path(command, "arguments.type")), "object");
        assert_true(json_string_length(json_object_get(command, "description")) > 10);
    }
    json_decref(schema);
}

static void metrics_follow_the_tables(void **state)
{
    (void)state;
    json_t *metrics = get("metrics", "{\"describe\":true}");
    json_t *definitions = rm_test_path(metrics, "definitions.policies");
    json_t *values = rm_test_path(metrics, "policies.0.values");
    assert_true(json_array_size(definitions) > 10);
    assert_int_equal(json_array_size(definitions), json_object_size(values));
    assert_non_null(json_object_get(values, "updates"));
    json_decref(metrics);
    metrics = get("metrics", NULL);
    assert_null(json_object_get(metrics, "definitions"));
    json_decref(metrics);
}

/* Values stand in the board's memory where the reply says. */
static void counters_can_be_mapped(void **state)
{
    (void)state;
    json_t *where = get("counters", NULL), *metrics = get("metrics", NULL), *value;
    const int file = open(json_string_value(json_object_get(where, "path")), O_RDONLY);
    const size_t bytes = (size_t)json_integer_value(json_object_get(where, "bytes"));
    assert_true(file >= 0);
    uint8_t *base = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    uint64_t generation = 0;
    uint32_t version;
    size_t i;
    assert_true(base != MAP_FAILED);
    memcpy(&version, base + 28, sizeof version);
    assert_int_equal(version, json_integer_value(json_object_get(where, "layout")));
    assert_int_equal(json_array_size(json_object_get(where, "policy_values")),
                     json_object_size(rm_test_path(metrics, "policies.0.values")));
    json_array_foreach(
        json_object_get(where, "worker_values"), i,
        value) if (strcmp(json_string_value(json_object_get(value, "name")), "generation") == 0)
        memcpy(&generation,
               base + json_integer_value(rm_test_path(where, "workers.0.at")) +
                   json_integer_value(json_object_get(value, "at")),
               sizeof generation);
    assert_int_equal(generation,
                     json_integer_value(rm_test_path(metrics, "workers.0.values.generation")));
    munmap(base, bytes);
    close(file);
    json_decref(metrics);
    json_decref(where);
}

static void get_and_set_a_hot_key(void **state)
{
    (void)state;
    json_t *value = get("get", "{\"key\":\"optimizer.learning_rate\"}");
    assert_true(json_number_value(json_object_get(value, "value")) == 0.001);
    json_decref(value);
    value = get("set", "{\"key\":\"optimizer.learning_rate\",\"value\":0.0005}");
    assert_true(json_number_value(json_object_get(value, "before")) == 0.001);
    assert_true(json_number_value(json_object_get(value, "value")) == 0.0005);
    json_decref(value);
    value = get("get", NULL);
    assert_true(json_number_value(rm_test_path(value, "value.optimizer.learning_rate")) == 0.0005);
    json_decref(value);
    char who[32];
    snprintf(who, sizeof who, "(set, user %u)", (unsigned)geteuid());
    assert_true(rm_test_until_file(&d, "log.txt", "optimizer.learning_rate: 0.001 -> 0.0005"));
    assert_true(rm_test_until_file(&d, "log.txt", who));
}

static void wrong_settings_change_nothing(void **state)
{
    (void)state;
    json_t *before = get("get", NULL);
    refused("set", "{\"key\":\"optimizer.learning_rat\",\"value\":1}", "invalid-argument",
            "learning_rate");
    refused("set", "{\"key\":\"optimizer.learning_rate\",\"value\":-1}", "invalid-argument",
            "learning_rate");
    refused("set", "{\"key\":\"optimizer.learning_rate\",\"value\":\"x\"}", "invalid-argument",
            "learning_rate");
    refused("set", "{\"key\":\"actor.count\",\"value\":3}", "not-now", "actor.count");
    refused("set", "{\"key\":\"seed\",\"value\":3}", "not-now", "seed");
    refused("set", "{\"value\":3}", "invalid-argument", "key");
    refused("set", "{\"key\":\"seed\"}", "invalid-argument", "value");
    refused("set", "{\"key\":5,\"value\":3}", "invalid-argument", "string");
    refused("get", "{\"key\":\"sede\"}", "invalid-argument", "seed");
    json_t *after = get("get", NULL);
    assert_true(json_equal(before, after));
    json_decref(before);
    json_decref(after);
}

static void unknown_things_name_the_nearest(void **state)
{
    (void)state;
    refused("statsu", NULL, "unknown-command", "status");
    refused("frobnicate", NULL, "unknown-command", "query-schema");
    refused("metrics", "{\"descrbe\":true}", "invalid-argument", "describe");
    refused("status", "{\"x\":1}", "invalid-argument", "x");
    refused("evaluate", "{\"episodes\":\"3\"}", "invalid-argument", "integer");
    refused("evaluate", "{\"episodes\":0}", "invalid-argument", "episodes");
    refused("evaluate", "{\"episodes\":-3}", "invalid-argument", "episodes");
    /* Arguments are checked before anything happens. */
    refused("stop", "{\"now\":true}", "invalid-argument", "now");
    refused("pause", "{\"long\":1}", "invalid-argument", "long");
    assert_true(rm_test_until_text(fd, "state", "running"));
}

static void pause_and_resume(void **state)
{
    (void)state;
    assert_true(rm_test_until_text(fd, "state", "running"));
    json_t *reply = get("pause", NULL);
    assert_string_equal(json_string_value(json_object_get(reply, "state")), "paused");
    json_decref(reply);
    assert_true(rm_test_until_text(fd, "workers.0.state", "waiting"));
    assert_true(rm_test_until_text(fd, "workers.1.state", "waiting"));
    usleep(20000); /* the turn in progress */
    json_t *one = get("status", NULL);
    usleep(100000);
    json_t *two = get("status", NULL);
    assert_int_equal(json_integer_value(rm_test_path(one, "progress.steps")),
                     json_integer_value(rm_test_path(two, "progress.steps")));
    double steps = json_number_value(rm_test_path(two, "progress.steps"));
    json_decref(one);
    json_decref(two);
    json_decref(get("pause", NULL)); /* twice is once */
    reply = get("evaluate", NULL);
    assert_non_null(strstr(json_string_value(json_object_get(reply, "waits")), "paused"));
    json_decref(reply);
    json_decref(get("resume", NULL));
    assert_true(rm_test_until_text(fd, "state", "running"));
    assert_true(rm_test_until_at_least(fd, "progress.steps", steps + 1));
}

static void evaluate_on_command(void **state)
{
    (void)state;
    json_t *reply = get("evaluate", "{\"episodes\":7}");
    double finished = json_number_value(json_object_get(reply, "finished"));
    assert_string_equal(json_string_value(json_object_get(reply, "waits")), "");
    json_decref(reply);
    assert_true(rm_test_until_at_least(fd, "evaluation.count", finished + 1));
    json_t *status = get("status", NULL);
    assert_int_equal(json_integer_value(rm_test_path(status, "evaluation.episodes")), 7);
    json_decref(status);
}

static void checkpoint_counts_requests(void **state)
{
    (void)state;
    json_t *one = get("checkpoint", NULL), *two = get("checkpoint", NULL);
    assert_true(json_integer_value(json_object_get(one, "number")) > 0);
    assert_int_equal(json_integer_value(json_object_get(two, "number")),
                     json_integer_value(json_object_get(one, "number")) + 1);
    json_decref(one);
    json_decref(two);
}

static json_t *next_event(int client, const char *name)
{
    for (;;) {
        json_t *event = rm_test_read(client);
        if (!event)
            return NULL;
        const char *is = json_string_value(json_object_get(event, "event"));
        if (is && !strcmp(is, name))
            return event;
        json_decref(event);
    }
}

static void events_come_only_to_subscribers(void **state)
{
    (void)state;
    int listener = rm_test_connect(&d);
    assert_true(listener >= 0);
    json_t *reply = rm_test_ask(listener, "events", NULL);
    assert_true(json_is_true(rm_test_path(reply, "return.subscribed")));
    json_decref(reply);
    json_decref(get("set", "{\"key\":\"publish.interval\",\"value\":11}"));
    json_t *event = next_event(listener, "set");
    assert_non_null(event);
    assert_string_equal(json_string_value(rm_test_path(event, "data.key")), "publish.interval");
    assert_int_equal(json_integer_value(rm_test_path(event, "data.uid")), geteuid());
    json_decref(event);
    json_decref(get("pause", NULL));
    event = next_event(listener, "state");
    assert_string_equal(json_string_value(rm_test_path(event, "data.state")), "paused");
    json_decref(event);
    json_decref(get("resume", NULL));
    reply = rm_test_ask(listener, "events", "{\"subscribe\":false}");
    assert_true(json_is_false(rm_test_path(reply, "return.subscribed")));
    json_decref(reply);
    json_decref(get("set", "{\"key\":\"publish.interval\",\"value\":12}"));
    /* The next line to the former subscriber is its own reply. */
    assert_int_equal(rm_test_send(listener, "{\"execute\":\"get\",\"id\":77}\n", 27), 0);
    reply = rm_test_read(listener);
    assert_int_equal(json_integer_value(json_object_get(reply, "id")), 77);
    json_decref(reply);
    close(listener);
}

static void a_killed_worker_comes_back(void **state)
{
    (void)state;
    json_t *status = get("status", NULL);
    pid_t pid = (pid_t)json_integer_value(rm_test_path(status, "workers.0.pid"));
    json_decref(status);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(rm_test_until_at_least(fd, "workers.0.generation", 2));
    assert_true(rm_test_until_text(fd, "workers.0.supervisor", "up"));
    status = get("status", NULL);
    assert_int_equal(json_integer_value(rm_test_path(status, "workers.0.deaths")), 1);
    assert_string_equal(json_string_value(rm_test_path(status, "workers.0.reason")),
                        "ended by signal 9 (Killed)");
    assert_int_not_equal(json_integer_value(rm_test_path(status, "workers.0.pid")), pid);
    json_decref(status);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    const bool written = fputs(text, file) >= 0;
    assert_true(fclose(file) == 0 && written);
}

static void a_reload_applies_hot_keys_only(void **state)
{
    (void)state;
    char path[160], text[2048];
    snprintf(path, sizeof path, "%s/config.json", d.home);
    snprintf(text, sizeof text, "%s", config);
    char *rate = strstr(text, "0.001"), *seed = strstr(text, "\"seed\":7");
    assert_true(rate && seed);
    memcpy(rate, "0.004", 5);
    seed[7] = '8';
    put(path, text);
    assert_int_equal(kill(d.pid, SIGHUP), 0);
    assert_true(rm_test_until_file(&d, "log.txt", " changed, 1 refused"));
    json_t *value = get("get", NULL);
    assert_true(json_number_value(rm_test_path(value, "value.optimizer.learning_rate")) == 0.004);
    assert_int_equal(json_integer_value(rm_test_path(value, "value.seed")), 7);
    json_decref(value);
    assert_non_null(strstr(rm_test_daemon_file(&d, "log.txt"), "while the experiment runs: seed"));
    /* A file that is wrong changes nothing, and harms nobody. */
    put(path, "{\"seed\":");
    assert_int_equal(kill(d.pid, SIGHUP), 0);
    assert_true(rm_test_until_file(&d, "log.txt", "nothing changed"));
    value = get("get", "{\"key\":\"optimizer.learning_rate\"}");
    assert_true(json_number_value(json_object_get(value, "value")) == 0.004);
    json_decref(value);
}

static void stop_leaves_nothing(void **state)
{
    (void)state;
    json_t *status = get("status", NULL);
    size_t workers = json_array_size(json_object_get(status, "workers"));
    pid_t pids[16];
    for (size_t i = 0; i < workers && i < 16; i++) {
        char path[32];
        snprintf(path, sizeof path, "workers.%zu.pid", i);
        pids[i] = (pid_t)json_integer_value(rm_test_path(status, path));
        assert_true(rm_test_process_there(pids[i]));
    }
    json_decref(status);
    json_decref(get("stop", NULL));
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 0);
    for (size_t i = 0; i < workers && i < 16; i++)
        assert_false(rm_test_process_there(pids[i]));
    assert_int_not_equal(access(d.socket, F_OK), 0);
    char lock[160];
    snprintf(lock, sizeof lock, "%s.lock", d.socket);
    assert_int_not_equal(access(lock, F_OK), 0);
    json_t *summary = json_loads(rm_test_daemon_file(&d, "summary.json"), 0, NULL);
    assert_string_equal(json_string_value(json_object_get(summary, "state")), "stopped");
    json_decref(summary);
}

int main(int argc, char **argv)
{
    int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(status_says_it_all),
        cmocka_unit_test(all_commands_are_described),
        cmocka_unit_test(metrics_follow_the_tables),
        cmocka_unit_test(counters_can_be_mapped),
        cmocka_unit_test(get_and_set_a_hot_key),
        cmocka_unit_test(wrong_settings_change_nothing),
        cmocka_unit_test(unknown_things_name_the_nearest),
        cmocka_unit_test(pause_and_resume),
        cmocka_unit_test(evaluate_on_command),
        cmocka_unit_test(checkpoint_counts_requests),
        cmocka_unit_test(events_come_only_to_subscribers),
        cmocka_unit_test(a_killed_worker_comes_back),
        cmocka_unit_test(a_reload_applies_hot_keys_only),
        cmocka_unit_test(stop_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, start, end);
}
