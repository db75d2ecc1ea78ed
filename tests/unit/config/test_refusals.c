/* Messages for malformed configurations: they name the place, the key and what would be right.
 */
#include "config/config.h"
#include "tests/support/refusals.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WITH RM_REFUSAL_WITH
#define SET  RM_REFUSAL_SET

static const struct rm_refusal cases[] = {
    /* --- not JSON at all --- */
    {"", {"t.json:1:1: the file is empty"}},
    {"  \n\n ", {"t.json:3:2: the file is empty"}},
    {"[]", {"t.json:1:1: an experiment is a JSON object"}},
    {"5", {"t.json:1:1: an experiment is a JSON object"}},
    {"\xef\xbb\xbf{}", {"t.json:1:1: ", "byte-order mark"}},
    {"\xff\xfe{", {"t.json:1:1: ", "UTF-16"}},
    {"{\"name\": \"\xc3\x28\"}", {"t.json:1:11: byte 0xc3 is not UTF-8"}},
    {"{\"name\": \"\xed\xa0\x80\"}", {"t.json:1:11: byte 0xed is not UTF-8"}},
    {"{\"name\": \"x\xff\"}", {"t.json:1:12: byte 0xff is not UTF-8"}},
    {WITH("\"seed\": NaN"), {"t.json:2:9: NaN is not a JSON number"}},
    {WITH("\"seed\": Infinity"), {"t.json:2:9: infinity is not a JSON number"}},
    {WITH("\"seed\": -Infinity"), {"t.json:2:9: infinity is not a JSON number"}},
    {WITH("\"seed\": 1e999"), {"t.json:2:9: the number is too large"}},
    {WITH("\"seed\": 99999999999999999999"), {"t.json:2:9: ", "64 bits"}},
    {WITH("\"seed\": 01"), {"t.json:2:9: a number must not begin with 0"}},
    {WITH("\"seed\": +1"), {"t.json:2:9: a number must not begin with '+'"}},
    {WITH("\"seed\": .5"), {"t.json:2:9: a number must not begin with '.'"}},
    {WITH("\"seed\": 1."), {"t.json:2:9: a digit must follow the decimal point"}},
    {WITH("\"seed\": 1e"), {"t.json:2:9: a digit must follow the exponent"}},
    {WITH("\"seed\": -"), {"t.json:2:9: '-' must be followed by a digit"}},
    {WITH("\"seed\": True"), {"t.json:2:9: True is not JSON; write true"}},
    {WITH("\"seed\": None"), {"t.json:2:9: None is not JSON"}},
    {WITH("\"mode\": free"), {"t.json:2:9: a word without quotes"}},
    {WITH("\"mode\": 'free'"), {"t.json:2:9: text goes between double quotes"}},
    {WITH("'mode': 1"), {"t.json:2:1: keys go between double quotes"}},
    {WITH("mode: 1"), {"t.json:2:1: a key between double quotes is expected"}},
    {WITH("// seed\n\"seed\": 1"), {"t.json:2:1: JSON has no comments"}},
    {WITH("\"seed\": 1, # one\n"), {"t.json:2:12: JSON has no comments"}},
    {WITH("\"seed\": 1,"), {"t.json:2:11: a comma before '}'"}},
    {WITH("\"policy\": {\"map\": [0, ]}"), {"t.json:2:23: a comma before ']'"}},
    {WITH("\"seed\" 1"), {"t.json:2:8: ':' is expected after the key"}},
    {WITH("\"seed\" = 1"), {"t.json:2:8: ':' is expected here, not '='"}},
    {WITH("\"seed\": 1 \"mode\": 1"), {"t.json:2:11: ',' or '}' is expected here"}},
    {WITH("\"policy\": {\"map\": [0 1]}"), {"t.json:2:22: ',' or ']' is expected here"}},
    {WITH("\"seed\": 1, \"mode\": \"free\", \"seed\": 2"),
     {"t.json:2:28: \"seed\": the same key is already at line 2, column 1"}},
    {WITH("\"policy\": {\"from\": 5}"),
     {"t.json:2:20: policy.from: should be the path of a policy's file, or an object of paths"}},
    {WITH("\"policy\": {\"from\": {\"a\": 5}}"),
     {"policy.from.a: should be the path of a policy's file, but is 5"}},
    {WITH("\"policy\": {\"from\": {\"a\": \"\"}}"), {"policy.from.a: is empty"}},
    {WITH("\"policy\": {\"from\": \"x\"}, \"run\": {\"steps\": 0}, \"evaluation\": "
          "{\"final_episodes\": 0}"),
     {"evaluation.final_episodes: 0 episodes, in a run that only evaluates"}},
    {WITH("\"seed\": 1, \"s\\u0065ed\": 2"), {"t.json:2:", "duplicate"}},
    {"{\"world\": {\"name\": \"cartpole\"}", {"t.json:1:1: this '{' has no '}'"}},
    {"{\"policy\": {\"map\": [0", {"t.json:1:20: this '[' has no ']'"}},
    {"{\"name\": \"abc", {"t.json:1:10: this string has no closing '\"'"}},
    {"{\"name\": \"abc\n\"}", {"t.json:1:10: this string has no closing '\"' on its line"}},
    {"{\"name\": \"a\tb\"}", {"t.json:1:12: a control character"}},
    {"{\"name\": \"a\\qb\"}", {"t.json:1:12: '\\' must be followed by"}},
    {"{\"name\": \"\\u12g4\"}", {"t.json:1:11: '\\u' must be followed by four hex digits"}},
    {"{\"name\": \"\\ud800\"}", {"t.json:1:"}},
    {"{\"name\":", {"t.json:1:9: the file ends where a value is expected"}},
    {"{} {}", {"t.json:1:4: something follows the closing '}'"}},
    {"{\"a\":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]}", {"t.json:1:21: ", "more than 16 deep"}},
    {"{\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\": 1}",
     {"t.json:1:2: a key of 69 bytes; at most 64"}},

    /* --- keys --- */
    {"{}", {"t.json:1:1: world.name: is required"}},
    {"{\n \"world\": {}}", {"t.json:2:11: world.name: is required"}},
    {WITH("\"sampel\": {\"batch\": 3}"), {"t.json:2:1: sampel: unknown key", "\"sample\"?"}},
    {WITH("\"sample\": {\"bacth\": 3}"),
     {"t.json:2:12: sample.bacth: unknown", "\"sample.batch\"?"}},
    {WITH("\"batch\": 3"), {"t.json:2:1: batch: unknown key", "\"sample.batch\"?"}},
    {WITH("\"optimizer\": {\"Learning-Rate\": 1}"),
     {"t.json:2:15: optimizer.Learning-Rate", "\"optimizer.learning_rate\"?"}},
    {WITH("\"network\": {\"dueling\": true}"),
     {"t.json:2:13: network.dueling: unknown", "\"network.head.dueling\"?"}},
    {WITH("\"algorithm\": {\"target\": {\"tua\": 1}}"),
     {"t.json:2:26: algorithm.target.tua", "\"algorithm.target.tau\"?"}},
    {WITH("\"zzzzzzzzzzzz\": 1"), {"t.json:2:1: zzzzzzzzzzzz: unknown key"}},
    {WITH("\"sample.batch\": 3"), {"t.json:2:1: sample.batch: ", "{\"sample\": {...}}"}},
    {WITH("\"sample\": 5"),
     {"t.json:2:11: sample: is a section and should be an object, but is 5"}},
    {WITH("\"algorithm\": {\"target\": \"soft\"}"),
     {"t.json:2:25: algorithm.target: is a section", "but is \"soft\""}},
    {WITH("\"\": 3"), {"t.json:1:1: has an empty key"}},

    /* --- types and ranges --- */
    {WITH("\"seed\": \"one\""), {"t.json:2:9: seed: should be a whole number, but is \"one\""}},
    {WITH("\"seed\": 1.5"), {"t.json:2:9: seed: should be a whole number, but is 1.5"}},
    {WITH("\"seed\": -1"), {"t.json:2:9: seed: -1 is out of range; allowed is 0 to"}},
    {WITH("\"seed\": 9007199254740993"), {"t.json:2:9: seed: ", "9007199254740991"}},
    {WITH("\"seed\": null"), {"t.json:2:9: seed: should be a whole number, but is null"}},
    {WITH("\"sample\": {\"batch\": 0}"),
     {"t.json:2:21: sample.batch: 0 is out of range", "1 to 65536"}},
    {WITH("\"sample\": {\"batch\": [64]}"),
     {"sample.batch: should be a whole number, but is a list"}},
    {WITH("\"sample\": {\"gamma\": 1.01}"), {"t.json:2:21: sample.gamma: 1.01", "0 to 1"}},
    {WITH("\"sample\": {\"gamma\": \"0.9\"}"),
     {"sample.gamma: should be a number, but is \"0.9\""}},
    {WITH("\"sample\": {\"gamma\": true}"), {"sample.gamma: should be a number, but is true"}},
    {WITH("\"sample\": {\"n_step\": 65}"),
     {"sample.n_step: 65 is out of range; allowed is 1 to 64"}},
    {WITH("\"optimizer\": {\"learning_rate\": 0}"),
     {"t.json:2:32: optimizer.learning_rate: 0 is out of range; allowed is above 0, at most 1"}},
    {WITH("\"actor\": {\"pin\": 1}"),
     {"t.json:2:18: actor.pin: should be true or false, but is 1"}},
    {WITH("\"mode\": \"lockstpe\""),
     {"t.json:2:9: mode: \"lockstpe\" is not one of free, lockstep, sequential",
      "did you mean \"lockstep\"?"}},
    {WITH("\"mode\": 1"),
     {"t.json:2:9: mode: should be one of free, lockstep, sequential, but is 1"}},
    {WITH("\"learner\": {\"isa\": \"avx2\"}"),
     {"t.json:2:20: learner.isa: \"avx2\" is not one of auto"}},
    {WITH("\"name\": \"a b\""), {"t.json:2:9: name: \"a b\" is not a name"}},
    {WITH("\"name\": \"../x\""), {"t.json:2:9: name: \"../x\" is not a name"}},
    {WITH("\"name\": \"\""), {"t.json:2:9: name: must not be empty"}},
    {WITH("\"name\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""),
     {"t.json:2:9: name: ", "48 bytes; allowed are at most 47"}},
    {WITH("\"name\": 5"), {"t.json:2:9: name: should be text between double quotes, but is 5"}},
    {WITH("\"run\": {\"directory\": \"a\\u0001b\"}"),
     {"t.json:2:22: run.directory: has a control"}},
    {"{\"world\": {\"name\": \"\"}}", {"t.json:1:20: world.name: must not be empty"}},

    /* --- world options, policy map, layers --- */
    {"{\"world\": {\"name\": \"x\", \"options\": 3}}",
     {"t.json:1:36: world.options: should be an object, but is 3"}},
    {"{\"world\": {\"name\": \"x\", \"options\": "
     "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": 1}}}",
     {"t.json:1:37: world.options.aaaa", "a name here has 1 to 63 bytes"}},
    {WITH("\"evaluation\": {\"options\": []}"),
     {"t.json:2:27: evaluation.options: should be an object, but is a list"}},
    {WITH("\"policy\": {\"map\": \"each\"}"), {"t.json:2:19: policy.map: \"each\" is not one of"}},
    {WITH("\"policy\": {\"map\": 0}"), {"t.json:2:19: policy.map: should be \"independent\""}},
    {WITH("\"policy\": {\"map\": []}"), {"t.json:2:19: policy.map: a list of 0 policies"}},
    {WITH("\"policy\": {\"map\": [0, 2]}"),
     {"t.json:2:19: policy.map: policy 2 is used but policy 1 is not"}},
    {WITH("\"policy\": {\"map\": [1, 1]}"), {"policy.map: policy 1 is used but policy 0 is not"}},
    {WITH("\"policy\": {\"map\": [0, -1]}"), {"t.json:2:23: policy.map[1]: -1 is out of range"}},
    {WITH("\"policy\": {\"map\": [0, \"a\"]}"), {"t.json:2:23: policy.map[1]: should be a whole"}},
    {WITH("\"network\": {\"layers\": {}}"),
     {"t.json:2:23: network.layers: should be a list of layers"}},
    {WITH("\"network\": {\"inputs\": []}"),
     {"t.json:2:23: network.inputs: should be an object with a list of layers for each"}},
    {WITH("\"network\": {\"inputs\": {\"board\": 7}}"),
     {"network.inputs.board: should be a list of layers or a group of inputs, but is 7"}},
    {WITH("\"network\": {\"inputs\": {\"all\": {}}}"),
     {"t.json:2:31: network.inputs.all: a group needs at least one input"}},
    {WITH("\"network\": {\"inputs\": {\"all\": {\"inputs\": {\"//\": \"none\"}}}}"),
     {"t.json:2:42: network.inputs.all.inputs: a group needs at least one input"}},
    {WITH("\"network\": {\"inputs\": {\"all\": {\"inputs\": []}}}"),
     {"network.inputs.all.inputs: should be an object with a list of layers for each"}},
    {WITH("\"network\": {\"inputs\": {\"all\": {\"input\": {\"board\": []}}}}"),
     {"t.json:2:32: network.inputs.all.input: a group has inputs, combine and layers; did you mean",
      "\"inputs\"?"}},
    {WITH("\"network\": {\"inputs\": {\"all\": {\"inputs\": {\"board\": []}, \"combine\": "
          "\"sum\"}}}"),
     {"network.inputs.all.combine: \"sum\" is not one of concat, tokens"}},
    {WITH("\"network\": {\"inputs\": {\"all\": {\"inputs\": {\"board\": []}, \"layers\": 3}}}"),
     {"network.inputs.all.layers: should be a list of layers, but is 3"}},
    {WITH("\"network\": {\"inputs\": {\"all\": {\"inputs\": {\"board\": []}}, \"board\": []}}"),
     {"network.inputs.board: another input has this name: network.inputs.all.inputs.board"}},
    {WITH("\"network\": {\"inputs\": {\"board\": {\"inputs\": {\"board\": []}}}}"),
     {"network.inputs.board.inputs.board: another input has this name: network.inputs.board"}},
    {WITH("\"network\": {\"inputs\": {\"a/b\": []}}"), {"network.inputs.a/b: is no name"}},
    {WITH("\"network\": {\"inputs\": {\"board\": [{\"type\": \"liner\"}]}}"),
     {"network.inputs.board[0].type: \"liner\"", "did you mean \"linear\"?"}},
    {WITH("\"network\": {\"combine\": \"sum\"}"), {"network.combine: \"sum\""}},
    {WITH("\"network\": {\"layers\": [\"relu\"]}"),
     {"t.json:2:24: network.layers[0]: should be an object such as {\"type\": \"relu\"}"}},
    {WITH("\"network\": {\"layers\": [{\"units\": 3}]}"),
     {"t.json:2:24: network.layers[0]: a layer needs"}},
    {WITH("\"network\": {\"layers\": [{\"type\": \"liner\"}]}"),
     {"t.json:2:33: network.layers[0].type: \"liner\"", "did you mean \"linear\"?"}},
    {WITH("\"network\": {\"layers\": [{\"type\": \"linear\"}]}"),
     {"t.json:2:24: network.layers[0]: a layer of type linear needs \"units\""}},
    {WITH(
         "\"network\": {\"layers\": [{\"type\": \"relu\"}, {\"type\": \"linear\", \"units\": 0}]}"),
     {"t.json:2:70: network.layers[1].units: 0 is out of range"}},
    {WITH("\"network\": {\"layers\": [{\"type\": \"relu\", \"units\": 3}]}"),
     {"t.json:2:41: network.layers[0].units: a layer of type relu has no units"}},
    {WITH("\"network\": {\"layers\": [{\"type\": \"linear\", \"unit\": 3}]}"),
     {"t.json:2:43: network.layers[0].unit: unknown key; did you mean \"units\"?"}},

    /* All types are named, whatever their number. */
    {WITH("\"network\": {\"layers\": [{\"type\": \"zzzzzzzz\"}]}"),
     {"\"zzzzzzzz\" is not one of linear, noisy_linear, ",
      ", lstm, attention, position, mean_pool, pointer"}},

    /* --- what other libraries call it --- */
    {WITH("\"n_envs\": 8"), {"t.json:2:1: n_envs: unknown key", "\"actor.worlds\" here"}},
    {WITH("\"total_timesteps\": 8"), {"total_timesteps: unknown", "\"run.steps\" here (of each"}},
    {WITH("\"optimizer\": {\"lr\": 1}"),
     {"t.json:2:15: optimizer.lr: ", "\"optimizer.learning_rate\" here"}},
    {WITH("\"Num-Envs\": 8"), {"t.json:2:1: Num-Envs: unknown key", "\"actor.worlds\" here"}},
    {WITH("\"rainbow\": true"), {"\"algorithm.name\" here (\"qr-dqn\" with network.head.dueling"}},
    {WITH("\"algorithm\": {\"name\": \"rainbow\"}"),
     {"\"rainbow\" is not one of dqn, ",
      "Ringmaster calls it \"qr-dqn\", with network.head.dueling"}},
    {WITH("\"algorithm\": {\"name\": \"IMPALA\"}"), {"Ringmaster calls it \"vtrace\""}},
    /* In a section a slip is likelier. */
    {WITH("\"sample\": {\"n_steps\": 3}"), {"did you mean \"sample.n_step\"?"}},

    /* --- the command line --- */
    {WITH("\"seed\": 1"), {"--set seed: must be key=value", SET "seed"}},
    {WITH("\"seed\": 1"), {"--set =3: must be key=value", SET "=3"}},
    {WITH("\"seed\": 1"), {"--set sed=3: sed: unknown key; did you mean \"seed\"?", SET "sed=3"}},
    {WITH("\"seed\": 1"),
     {"--set seed=abc: seed: should be a whole number, but is \"abc\"", SET "seed=abc"}},
    {WITH("\"seed\": 1"),
     {"--set seed=: seed: should be a whole number, but is \"\"", SET "seed="}},
    {WITH("\"seed\": 1"),
     {"--set sample.gamma=NaN: sample.gamma: should be a number", SET "sample.gamma=NaN"}},
    {WITH("\"seed\": 1"), {"--set mode=lock: mode: \"lock\" is not one of", SET "mode=lock"}},
    {WITH("\"seed\": 1"),
     {"--set sample..batch=1: sample..batch: is not the path of a key", SET "sample..batch=1"}},
    {WITH("\"seed\": 1"),
     {"--set sample.b?tch=1: sample.b?tch: is not the path of a key", SET "sample.b\xe9tch=1"}},
    {WITH("\"seed\": 1"), {"s?mple.batch: is not the path of a key", SET "s\xe9mple.batch=1"}},
    {WITH("\"seed\": 1"), {"name: is not UTF-8 text", SET "name=\xe9"}},
    {WITH("\"seed\": 1"), {"--set [0]=1: [0]: the list has no such element", SET "[0]=1"}},
    {WITH("\"seed\": 1"), {"policy.map[0]: the list has no such element", SET "policy.map[0]=1"}},
    {WITH("\"seed\": 1"),
     {"network.layers[9].units: the list has no such element", SET "network.layers[9].units=4"}},
    {WITH("\"seed\": 1"),
     {"network.layers[0].units: 0 is out of range", SET "network.layers[0].units=0"}},
    {WITH("\"seed\": 1"), {"seed.x: its parent is not an object", SET "seed.x=0"}},
    {WITH("\"seed\": 1"),
     {"--set actor.worlds=3: actor.worlds: 3 worlds for 4 actors", SET "actor.count=4",
      SET "actor.worlds=3"}},
    {WITH("\"seed\": 1"), {"--set sample=5: sample: is a section", SET "sample=5"}},
};

static void every_case_is_refused(void **state)
{
    (void)state;
    rm_test_refused(cases, sizeof cases / sizeof *cases);
}

static void single_faults_are_said_alone(void **state)
{
    struct rm_refusal c = {WITH("\"sample\": {\"batch\": 0}"), {NULL}};
    struct rm_error error;
    (void)state;

    /* batch 0 would also contradict other keys; only its own error is reported. */
    const int rc = rm_test_refusal_parse(&c, &error);
    assert_int_equal(rc, -EINVAL);
    assert_null(strchr(error.text, '\n'));
}

static void all_faults_are_listed_in_order(void **state)
{
    struct rm_refusal c = {
        "{\"seed\": -1,\n \"mode\": 3,\n \"world\": {\"name\": \"x\", \"optoins\": {}},\n"
        " \"epsilon\": {\"start\": 0, \"end\": 1},\n \"ring\": {\"capacity\": 64}}",
        {SET "run.steps=-1"}};
    static const char *const order[] = {"t.json:1:10: seed: ",
                                        "\nt.json:2:10: mode: ",
                                        "\nt.json:3:25: world.optoins: ",
                                        "\nt.json:4:33: epsilon.end: ",
                                        "sample.min_fill: ",
                                        "\n--set run.steps=-1: run.steps: "};
    struct rm_error error;
    const char *at = error.text;
    (void)state;

    const int rc = rm_test_refusal_parse(&c, &error);
    assert_int_equal(rc, -EINVAL);
    for (size_t i = 0; i < 4; i++) {
        const char *found = strstr(at, order[i]);
        if (!found) {
            fail_msg("%s is missing in:\n%s", order[i], error.text);
            return;
        }
        at = found;
    }
    assert_non_null(strstr(error.text, order[4]));
    assert_non_null(strstr(at, order[5]));
}

static void more_faults_than_fit_are_counted(void **state)
{
    char text[8192] = "{\"world\": {\"name\": \"x\"}";
    struct rm_refusal c = {text, {NULL}};
    struct rm_error error;
    (void)state;

    size_t n = strlen(text);
    for (int i = 0; i < 100; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, ",\n\"unknown_key_%02d\": 1", i);
    snprintf(text + n, sizeof(text) - n, "}");
    const int rc = rm_test_refusal_parse(&c, &error);
    assert_int_equal(rc, -EINVAL);

    size_t lines = 1;
    for (const char *p = error.text; *p; p++)
        lines += *p == '\n';
    const char *tail = strstr(error.text, "\n... and ");
    assert_non_null(tail);
    assert_int_equal(lines - 1 + (size_t)atoi(tail + 9), 100);
}

/* What only replay needs is no fault where rollouts are learned from. */
static void rollouts_need_no_replay(void **state)
{
    static const char text[] =
        WITH("\"run\": {\"steps\": 40}, \"ring\": {\"capacity\": 16}, \"mode\": \"lockstep\","
             "\"sample\": {\"batch\": 64, \"min_fill\": 2, \"n_step\": 5},"
             "\"limiter\": {\"updates_per_step\": 0}, \"algorithm\": {\"name\": \"ppo\"}");
    struct rm_refusal c = {text, {NULL}};
    struct rm_error error;
    (void)state;

    const int rc = rm_test_refusal_parse(&c, &error);
    if (rc)
        fail_msg("%s", error.text);
}

static void large_files_are_refused(void **state)
{
    size_t bytes = 300 * 1024;
    char *text = malloc(bytes);
    struct rm_experiment experiment;
    struct rm_error error;
    (void)state;

    assert_non_null(text);
    memset(text, ' ', bytes);
    assert_int_equal(rm_config_parse(&experiment, "t.json", text, bytes, NULL, 0, &error), -EINVAL);
    assert_non_null(strstr(error.text, "307200 bytes; an experiment has at most 262144"));
    free(text);
}

static void files_that_cannot_be_read_say_why(void **state)
{
    struct rm_experiment experiment;
    struct rm_error error;
    (void)state;

    assert_int_equal(rm_config_load(&experiment, "/nonexistent/x.json", NULL, 0, &error), -ENOENT);
    assert_non_null(strstr(error.text, "/nonexistent/x.json: "));
    assert_int_equal(rm_config_load(&experiment, "/", NULL, 0, &error), -EISDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_is_refused),
        cmocka_unit_test(single_faults_are_said_alone),
        cmocka_unit_test(all_faults_are_listed_in_order),
        cmocka_unit_test(more_faults_than_fit_are_counted),
        cmocka_unit_test(rollouts_need_no_replay),
        cmocka_unit_test(large_files_are_refused),
        cmocka_unit_test(files_that_cannot_be_read_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
