/* The ringctl program, run as users run it against an experiment: exit codes, and what it prints
 * from given replies. */
#include "daemon/ctl/exit_code.h"
#include "tests/support/fake_experiment.h"
#include "tests/support/program.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <jansson.h>

#include <cmocka.h>

static struct rm_program program;

#define RUN(...)   rm_program_ctl(&program, (const char *const[]){__VA_ARGS__, NULL})
#define SAYS(text) rm_program_says(&program, text)

/* A reply made of the sample status; for the caller to free. */
static char *status_rule(void)
{
    json_t *status = json_load_file("tests/support/status_reply.json", 0, NULL);
    assert_non_null(status);
    char *text = json_dumps(status, JSON_COMPACT), *line = NULL;
    assert_true(asprintf(&line, "{\"return\":%s,\"id\":$id}\n", text) > 0);
    free(text);
    json_decref(status);
    return line;
}

static void nobody_to_talk_to_is_3(void **state)
{
    char directory[] = "/tmp/rm-ctl-XXXXXX", path[64];
    (void)state;
    assert_non_null(mkdtemp(directory));
    setenv("RINGMASTER_RUNTIME_DIR", directory, 1);
    assert_int_equal(RUN("status"), RM_CTL_NO_EXPERIMENT);
    SAYS("no experiment is running");
    assert_int_equal(RUN("status", "mine"), RM_CTL_NO_EXPERIMENT);
    SAYS("no experiment \"mine\" is running");
    assert_int_equal(RUN("stop", "--socket", "/nonexistent.sock"), RM_CTL_NO_EXPERIMENT);

    /* A socket that somebody left behind. */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "%s/old", directory);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/old/control.sock", directory);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    assert_int_equal(RUN("status", "old"), RM_CTL_NO_EXPERIMENT);
    assert_int_equal(RUN("list"), 0);
    SAYS("no experiment is running");
    assert_int_equal(RUN("list", "--json"), 0);
    assert_string_equal(program.out, "[]\n");
    unlink(address.sun_path);
    rmdir(path);
    rmdir(directory);
}

/* Starts a server, runs ringctl once against it by name, and returns its exit code. */
static int against(const struct rm_fake_rule *rules, const char *greeting, const char *const *words)
{
    struct rm_fake fake;
    assert_int_equal(rm_fake_start(&fake, "hunt", greeting, rules), 0);
    int code = rm_program_ctl(&program, words);
    rm_fake_stop(&fake);
    return code;
}

#define AGAINST(rules, ...) against(rules, NULL, (const char *const[]){__VA_ARGS__, NULL})

static void a_refusal_is_1_and_silence_5(void **state)
{
    static const struct rm_fake_rule rules[] = {
        {"set",
         "{\"error\":{\"class\":\"not-now\",\"desc\":\"sample.batch cannot change\"},"
         "\"id\":$id}\n",
         false},
        {"pause", NULL, false},
        {"status", "{\"return\":{\"na", true},
        {"get", "nonsense\n", false},
        {NULL, NULL, false}};
    (void)state;
    assert_int_equal(AGAINST(rules, "set", "hunt", "sample.batch=3"), RM_CTL_REFUSED);
    SAYS("not-now: sample.batch cannot change");
    assert_string_equal(program.out, "");
    assert_int_equal(AGAINST(rules, "pause", "--timeout", "0.05"), RM_CTL_TIMED_OUT);
    assert_int_equal(AGAINST(rules, "status"), RM_CTL_PROTOCOL);
    assert_int_equal(AGAINST(rules, "get", "seed"), RM_CTL_PROTOCOL);
    assert_int_equal(against(rules, "{\"ringmaster\":{\"version\":\"8\",\"protocol\":9}}\n",
                             (const char *const[]){"status", NULL}),
                     RM_CTL_PROTOCOL);
    SAYS("speaks protocol 9");
}

/* A refusal is not the end of the experiment. */
static void watch_tells_a_refusal(void **state)
{
    static const struct rm_fake_rule rules[] = {
        {"get", "{\"return\":{\"value\":{\"world\":{\"name\":\"cartpole\"}}},\"id\":$id}\n", false},
        {"status", "{\"return\":{\"pid\":1},\"id\":$id}\n", false},
        {"policies",
         "{\"error\":{\"class\":\"access-denied\",\"desc\":\"nobody writes here\"},\"id\":$id}\n",
         false},
        {NULL, NULL, false}};
    (void)state;
    assert_int_equal(AGAINST(rules, "watch", "hunt"), RM_CTL_REFUSED);
    SAYS("policies: access-denied: nobody writes here");
}

static void status_is_a_page(void **state)
{
    static const char expected[] =
        "treasurehunt: running, mode free, pid 4242, up 0:42, 45.0 MiB in workers\n"
        "progress   [############..................] 43.2%  21.6k of 50.0k steps per agent, 0:56 "
        "left\n"
        "speed      2.55k steps/s of all agents, 204 updates/s\n"
        "score      432 episodes, first 262.1, last 471.2\n"
        "greedy     505.5 +- 11.25 over 20 episodes, evaluation 2; random play 257.6\n"
        "results    /tmp/runs/treasurehunt/20260102-030405\n"
        "\n"
        "AGENT    POLICY   STEPS  EPISODES  FIRST   LAST  GREEDY     +-\n"
        "agent_0  agent_0  10.7k       432  52.30  95.50   101.5  2.250\n"
        "agent_1  agent_1  10.9k       432  51.00  93.25       -      -\n"
        "\n"
        "POLICY   STEPS  UPDATES  SKIPPED  VERSIONS  REPLAY  RATIO    LAG  WORST  EPSILON    LOSS"
        "     RATE\n"
        "agent_0  21.6k    1.73k        0       172   43.2%  5.120  6.250     14   0.3712  0.0421"
        "  0.00025\n"
        "agent_1  21.6k        0        0         1    0.0%      0      -      0   0.3712       -"
        "  0.00025\n"
        "\n"
        "WORKER            PID  STATE        DOES     STARTS  DEATHS    MEMORY  TIME GOES TO\n"
        "actor-0          4243  up           busy          1       0  15.0 MiB  inference 62%, "
        "waiting 30%, environment 4%\n"
        "learner-agent_0  4250  up           waiting       3       2  30.0 MiB  forward 30%, "
        "backward 30%, waiting 25%\n"
        "learner-agent_1     -  backing off  none          1       1       0 B  -\n"
        "learner-agent_0 died last: killed by signal 9\n"
        "learner-agent_1 died last: exit code 1: no such file\n";
    char *line = status_rule();
    const struct rm_fake_rule rules[] = {{"status", line, false}, {NULL, NULL, false}};
    (void)state;
    assert_int_equal(AGAINST(rules, "status", "hunt"), 0);
    assert_string_equal(program.out, expected);
    assert_int_equal(AGAINST(rules, "status", "--json"), 0);
    json_t *printed = json_loads(program.out, 0, NULL);
    json_t *sent = json_load_file("tests/support/status_reply.json", 0, NULL);
    assert_true(json_equal(printed, sent));
    json_decref(printed);
    json_decref(sent);
    assert_int_equal(AGAINST(rules, "list"), 0);
    SAYS("hunt  running  4242  0:42     43.2%  0:56  471.2");
    free(line);
}

static void status_shows_rollouts(void **state)
{
    json_t *status = json_load_file("tests/support/status_reply.json", 0, NULL), *policy;
    char *text, *line = NULL;
    (void)state;
    assert_non_null(status);
    policy = json_array_get(json_object_get(status, "policies"), 1);
    json_object_set_new(policy, "epsilon", json_null());
    json_object_set_new(policy, "rollout",
                        json_pack("{s:i,s:i,s:f,s:f,s:f,s:f,s:f,s:f}", "count", 2160, "dropped", 3,
                                  "policy_loss", -0.0125, "value_loss", 0.5, "entropy", 0.25, "kl",
                                  0.0075, "clip_fraction", 0.125, "explained_variance", 0.875));
    text = json_dumps(status, JSON_COMPACT);
    assert_true(asprintf(&line, "{\"return\":%s,\"id\":$id}\n", text) > 0);
    const struct rm_fake_rule rules[] = {{"status", line, false}, {NULL, NULL, false}};
    assert_int_equal(AGAINST(rules, "status", "hunt"), 0);
    SAYS(
        "agent_1  21.6k        0        0         1    0.0%      0      -      0        -       -");
    SAYS("\n\n"
         "POLICY   ROLLOUTS  DROPPED  ENTROPY      KL  CLIPPED  EXPLAINED  POLICY LOSS  VALUE "
         "LOSS\n"
         "agent_1     2.16k        3   0.2500  0.0075    12.5%     0.8750      -0.0125      "
         "0.5000\n"
         "\nWORKER");
    free(line);
    free(text);
    json_decref(status);
}

static void one_of_several_must_be_named(void **state)
{
    struct rm_fake one;
    char second[80];
    (void)state;
    assert_int_equal(rm_fake_start(&one, "one", NULL, NULL), 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(second, sizeof second, "%s/two", one.directory);
    assert_int_equal(mkdir(second, 0700), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/two/control.sock", one.directory);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 4), 0);
    assert_int_equal(RUN("status"), RM_CTL_NO_EXPERIMENT);
    SAYS("2 experiments are running, name one of: one, two");
    /* One of them never answers: the list comes all the same. */
    assert_int_equal(RUN("list", "--timeout", "0.05"), 0);
    SAYS("silent");
    assert_int_equal(RUN("complete", "name"), 0);
    assert_string_equal(program.out, "one\ntwo\n");
    close(fd);
    unlink(address.sun_path);
    rmdir(second);
    rm_fake_stop(&one);
}

static void small_replies_are_lines(void **state)
{
    static const struct rm_fake_rule rules[] = {
        {"pause", "{\"return\":{\"state\":\"paused\"},\"id\":$id}\n", false},
        {"get", "{\"return\":{\"key\":\"optimizer.learning_rate\",\"value\":0.00025},\"id\":$id}\n",
         false},
        {"set",
         "{\"return\":{\"key\":\"epsilon.end\",\"before\":0.05,\"value\":0.01},\"id\":$id}\n",
         false},
        {"query-schema",
         "{\"return\":{\"commands\":[{\"name\":\"set\",\"access\":\"administer\",\"description\":"
         "\"Changes.\",\"arguments\":{\"type\":\"object\",\"properties\":{\"key\":{},\"who\":{}},"
         "\"required\":[\"key\"]}}]},\"id\":$id}\n",
         false},
        {"metrics",
         "{\"return\":{\"policies\":[{\"name\":\"a\",\"values\":{\"updates\":12,\"loss\":0.5}}],"
         "\"workers\":[],\"definitions\":{\"policies\":[{\"name\":\"updates\",\"unit\":\"updates\"}"
         ","
         "{\"name\":\"loss\",\"unit\":\"1\"}],\"workers\":[]}},\"id\":$id}\n",
         false},
        {NULL, NULL, false}};
    (void)state;
    assert_int_equal(AGAINST(rules, "pause"), 0);
    assert_string_equal(program.out, "paused\n");
    assert_int_equal(AGAINST(rules, "get", "optimizer.learning_rate"), 0);
    assert_true(strtod(program.out, NULL) == 0.00025);
    assert_int_equal(AGAINST(rules, "set", "epsilon.end=0.01"), 0);
    assert_string_equal(program.out, "epsilon.end: 0.05 -> 0.01\n");
    assert_int_equal(AGAINST(rules, "query-schema"), 0);
    assert_string_equal(program.out, "COMMAND  ACCESS      ARGUMENTS   MEANING\n"
                                     "set      administer  key, [who]  Changes.\n");
    assert_int_equal(AGAINST(rules, "metrics"), 0);
    assert_string_equal(program.out, "OF  METRIC   VALUE  UNIT\n"
                                     "a   updates     12  updates\n"
                                     "a   loss       0.5  \n");
}

/* What `set` sends for the value part of an argument. */
static void sent_value(const char *setting, const char *expected)
{
    static const struct rm_fake_rule rules[] = {{"set", "{\"return\":{},\"id\":$id}\n", false},
                                                {NULL, NULL, false}};
    struct rm_fake fake;
    char request[512];
    assert_int_equal(rm_fake_start(&fake, "hunt", NULL, rules), 0);
    assert_int_equal(RUN("set", setting), 0);
    rm_fake_request(&fake, request, sizeof request);
    rm_fake_stop(&fake);
    json_t *sent = json_loads(request, 0, NULL);
    json_t *arguments = json_object_get(sent, "arguments");
    char *value = json_dumps(json_object_get(arguments, "value"), JSON_ENCODE_ANY | JSON_COMPACT);
    assert_string_equal(json_string_value(json_object_get(arguments, "key")), "a.b");
    assert_string_equal(value, expected);
    free(value);
    json_decref(sent);
}

static void values_are_json_or_words(void **state)
{
    (void)state;
    sent_value("a.b=5", "5");
    sent_value("a.b=true", "true");
    sent_value("a.b=[1,2]", "[1,2]");
    sent_value("a.b=linear", "\"linear\"");
    sent_value("a.b=x=y", "\"x=y\"");
    sent_value("a.b=", "\"\"");
    sent_value("a.b=\"quoted\"", "\"quoted\"");
}

#define SUBSCRIBED                                                                                 \
    {                                                                                              \
        "events", "{\"return\":{\"subscribed\":true},\"id\":$id}\n", false                         \
    }

/* One that was asked for before ends first; what came of this one is said. */
static void checkpoints_are_waited_for(void **state)
{
    static const char events[] = "{\"return\":{\"subscribed\":true},\"id\":$id}\n";
    static const struct rm_fake_rule made[] = {
        {"events", events, false},
        {"checkpoint",
         "{\"return\":{\"number\":3,\"directory\":\"/tmp/run\"},\"id\":$id}\n"
         "{\"event\":\"checkpoint\",\"data\":{\"count\":2,\"made\":false,\"step\":1,"
         "\"reason\":\"no\"}}\n"
         "{\"event\":\"checkpoint\",\"data\":{\"count\":3,\"made\":true,\"step\":700,"
         "\"reason\":\"\"}}\n",
         false},
        {NULL, NULL, false}};
    static const struct rm_fake_rule given_up[] = {
        {"events", events, false},
        {"checkpoint",
         "{\"return\":{\"number\":3,\"directory\":\"/tmp/run\"},\"id\":$id}\n"
         "{\"event\":\"checkpoint\",\"data\":{\"count\":3,\"made\":false,\"step\":700,"
         "\"reason\":\"no space\"}}\n",
         false},
        {NULL, NULL, false}};
    (void)state;
    assert_int_equal(AGAINST(made, "checkpoint"), 0);
    assert_string_equal(program.out, "checkpoint 3: step 700\n");
    assert_int_equal(AGAINST(given_up, "checkpoint"), RM_CTL_FAILED);
    assert_non_null(strstr(program.err, "no space"));
}

static void evaluations_are_waited_for(void **state)
{
    /* Others are being played, by interval and for somebody else: theirs are not the results that
     * were asked for. */
    static const struct rm_fake_rule busy[] = {
        SUBSCRIBED,
        {"evaluate",
         "{\"return\":{\"request\":2,\"finished\":4},\"id\":$id}\n"
         "{\"event\":\"worker\",\"data\":{}}\n"
         "{\"event\":\"evaluation\",\"data\":{\"count\":5,\"request\":0,\"mean\":1,\"stderr\":1,"
         "\"episodes\":1}}\n"
         "{\"event\":\"evaluation\",\"data\":{\"count\":6,\"request\":1,\"mean\":2,\"stderr\":1,"
         "\"episodes\":2}}\n"
         "{\"event\":\"evaluation\",\"data\":{\"count\":7,\"request\":2,\"mean\":515.25,"
         "\"stderr\":6.5,\"episodes\":100}}\n",
         false},
        {NULL, NULL, false}};
    static const struct rm_fake_rule paused[] = {
        SUBSCRIBED,
        {"evaluate",
         "{\"return\":{\"request\":2,\"finished\":4,\"waits\":\"the run is paused\"},\"id\":$id}\n"
         "{\"event\":\"evaluation\",\"data\":{\"count\":5,\"request\":2,\"mean\":1,\"stderr\":1,"
         "\"episodes\":1}}\n",
         false},
        {NULL, NULL, false}};
    static const struct rm_fake_rule never[] = {
        SUBSCRIBED,
        {"evaluate", "{\"return\":{\"request\":1,\"finished\":4},\"id\":$id}\n", false},
        {NULL, NULL, false}};
    static const struct rm_fake_rule dies[] = {
        SUBSCRIBED,
        {"evaluate", "{\"return\":{\"request\":1,\"finished\":4},\"id\":$id}\n", true},
        {NULL, NULL, false}};
    (void)state;
    assert_int_equal(AGAINST(busy, "evaluate", "--wait", "--episodes", "100"), 0);
    assert_string_equal(program.out, "greedy score 515.2 +- 6.500 over 100 episodes\n");
    assert_int_equal(AGAINST(paused, "evaluate", "--wait"), 0);
    assert_string_equal(program.err, "the run is paused\n");
    assert_int_equal(AGAINST(never, "evaluate", "--wait", "--timeout", "0.2"), RM_CTL_TIMED_OUT);
    assert_int_equal(AGAINST(dies, "evaluate", "--wait"), RM_CTL_PROTOCOL);
    assert_int_equal(AGAINST(never, "evaluate"), 0);
    assert_string_equal(program.out, "request 1\n");
}

/* It is the process that has to end, here this one: it closes the connection and goes on. */
static void stop_waits_for_the_end(void **state)
{
    static const struct rm_fake_rule closes[] = {
        {"stop", "{\"return\":{\"state\":\"stopping\"},\"id\":$id}\n", true}, {NULL, NULL, false}};
    static const struct rm_fake_rule lingers[] = {
        {"stop", "{\"return\":{\"state\":\"stopping\"},\"id\":$id}\n", false}, {NULL, NULL, false}};
    (void)state;
    assert_int_equal(AGAINST(closes, "stop", "--wait", "--timeout", "0.2"), RM_CTL_TIMED_OUT);
    SAYS("still waiting for the end");
    assert_int_equal(AGAINST(lingers, "stop"), 0);
    assert_string_equal(program.out, "stopping\n");
    assert_int_equal(AGAINST(lingers, "stop", "--wait", "--timeout", "0.2"), RM_CTL_TIMED_OUT);
}

static void events_are_lines_until_the_end(void **state)
{
    static const struct rm_fake_rule rules[] = {
        {"events",
         "{\"return\":{\"subscribed\":true},\"id\":$id}\n"
         "{\"event\":\"state\",\"time\":5,\"data\":{\"state\":\"paused\",\"before\":\"running\"}}\n"
         "{\"event\":\"worker\",\"time\":6,\"data\":{\"name\":\"actor\\u001b-0\"},\"lost\":12}\n",
         true},
        {NULL, NULL, false}};
    (void)state;
    setenv("TZ", "UTC", 1);
    assert_int_equal(AGAINST(rules, "events"), 0);
    assert_string_equal(program.out, "1970-01-01 00:00:05  state  state=paused  before=running\n"
                                     "(12 events lost)\n"
                                     "1970-01-01 00:00:06  worker  name=actor?-0\n");
    assert_int_equal(AGAINST(rules, "events", "--json"), 0);
    SAYS("\"lost\":12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_to_talk_to_is_3),
        cmocka_unit_test(a_refusal_is_1_and_silence_5),
        cmocka_unit_test(watch_tells_a_refusal),
        cmocka_unit_test(status_is_a_page),
        cmocka_unit_test(status_shows_rollouts),
        cmocka_unit_test(one_of_several_must_be_named),
        cmocka_unit_test(small_replies_are_lines),
        cmocka_unit_test(values_are_json_or_words),
        cmocka_unit_test(checkpoints_are_waited_for),
        cmocka_unit_test(evaluations_are_waited_for),
        cmocka_unit_test(stop_waits_for_the_end),
        cmocka_unit_test(events_are_lines_until_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
