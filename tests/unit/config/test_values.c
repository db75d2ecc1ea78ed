/* What is written reads back: files, texts, single keys, hot values, differences. */
#include "config/config.h"
#include "config/print.h"
#include "config/schema.h"
#include "tests/support/config_text.h"

#include <errno.h>
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* As JSON of one spelling, without remarks. */
#define WORLD_OPTIONS                                                                              \
    "{\"speed\":0.1,\"walls\":true,\"size\":12,\"rows\":[\"SF\",\"FG\"],\"colour\":\"red\"}"

static const char full[] =
    "{\"name\": \"full\", \"seed\": 9007199254740991, \"mode\": \"sequential\","
    " \"run\": {\"steps\": 6e4, \"directory\": \"/tmp/\\u00e9 x\", \"round_steps\": 3},"
    " \"world\": {\"name\": \"mine\", \"library\": \"./mine.so\","
    "   \"interpreter\": \"/opt/venv/bin/python\","
    "   \"directory\": \"/home\", \"options\": {\"speed\": 0.1, \"walls\": true, \"size\": 12.0,"
    "   \"rows\": [\"SF\", \"FG\"], \"colour\": \"red\", \"//\": \"as at home\"}},"
    " \"actor\": {\"count\": 2, \"worlds\": 7, \"quantiles\": 16, \"noise\": true, \"pin\": true,"
    " \"python_workers\": 3, \"network\": true, \"step_deadline_s\": 2.5, \"recycle_mb\": 900,"
    "   \"sandbox\": \"off\", \"memory_limit\": 1000000000, \"process_limit\": 17},"
    " \"epsilon\": {\"start\": 0.9, \"end\": 0.1, \"decay\": \"exponential\","
    "   \"unit\": \"episodes\", \"factor\": 0.9991, \"span\": 77},"
    " \"policy\": {\"map\": [0, 1, 1, 0, 2], \"frozen\": [{\"policy\": 2, \"of\": 1, \"every\": "
    "50, \"keep\": 3}]},"
    " \"ring\": {\"capacity\": 4096},"
    " \"sample\": {\"batch\": 32, \"n_step\": 5, \"gamma\": 0.997, \"frame_stack\": 4,"
    "   \"min_fill\": 100, \"sequence\": 20, \"burn_in\": 10, \"period\": 5,"
    "   \"region\": 40, \"first_steps\": 400, \"held_out\": {\"seed\": [3]},"
    "   \"held_out_lanes\": 1},"
    " \"priority\": {\"kind\": \"proportional\", \"alpha\": 0.5, \"epsilon\": 0.01, "
    "\"beta_start\": 0.5,"
    "   \"beta_end\": 0.9, \"beta_span\": 1000, \"max_share\": 0.8},"
    " \"rollout\": {\"steps\": 64, \"max_policy_lag\": 1, \"staleness_max\": 9, \"queue\": 3},"
    " \"limiter\": {\"updates_per_step\": 0.3333333333333333, \"slack_updates\": 2.5,"
    "   \"wake\": \"event\", \"poll_us\": 10},"
    " \"algorithm\": {\"name\": \"iqn\", \"form\": \"paper\", \"double_q\": false, \"quantiles\": "
    "8,"
    "   \"target_quantiles\": 9, \"kappa\": 0.5, \"cql\": 0.25,"
    "   \"type_weight\": 0.2,"
    "   \"target\": {\"update\": \"hard\", \"tau\": 0.25, \"interval\": 123}, \"gae_lambda\": 0.9, "
    "\"clip\": 0.1, \"value_clip\": 0.2, \"value_clip_maximum\": \"means\","
    "   \"entropy_coefficient\": 0.01, \"value_coefficient\": 1, \"epochs\": 2, \"minibatches\": 8,"
    "   \"normalize_advantages\": \"batch\", \"target_kl\": 0.02, \"rho_max\": 2, \"c_max\": 2,"
    "   \"normalize_rewards\": false, \"reward_clip\": 5, \"value_head\": \"plain\","
    "   \"popart_beta\": 0.1, \"popart_deviation\": \"averaged\", \"temperature\": 0.2, "
    "\"tune_temperature\": false,"
    "   \"target_entropy_ratio\": 0.7, \"target_entropy\": -2, \"bound\": \"tanh\","
    "   \"value_rescale\": false},"
    " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 3}, {\"type\": \"tanh\"},"
    "   {\"type\": \"layer_norm\"}, {\"type\": \"cosine_embedding\", \"cosines\": 5},"
    "   {\"type\": \"noisy_linear\", \"units\": 9}, {\"type\": \"gelu\"}, {\"type\": \"relu\"}],"
    "   \"head\": {\"dueling\": true, \"noisy\": true,"
    "     \"deviation\": \"state\", \"first_deviation\": 0.5}, \"noise\": \"independent\","
    "   \"sigma0\": 0.017, \"init\": \"orthogonal\", \"gain\": 1,"
    "   \"policy_gain\": 0.1, \"value_gain\": 2, \"trunk\": \"shared\","
    "   \"value_layers\": [{\"type\": \"linear\", \"units\": 4}],"
    "   \"normalize_observations\": true, \"observation_clip\": 5,"
    "   \"inputs\": {\"board\": [{\"type\": \"linear\", \"units\": 3}, {\"type\": \"relu\"}],"
    "     \"all\": {\"inputs\": {\"one\": {\"inputs\": {\"hand\": []}}, \"left\": []},"
    "       \"combine\": \"tokens\", \"layers\": [{\"type\": \"mean_pool\"}]},"
    "     \"a.b\": []}, \"combine\": \"tokens\"},"
    " \"optimizer\": {\"name\": \"adamw\", \"momentum\": 0.9, \"clip_apart\": true, "
    "\"sparse\": true, \"weight_decay\": 0.01, \"decay_all\": true,"
    "   \"schedule\": {\"kind\": \"cosine\", \"warmup\": 10, \"span\": 100, \"end\": 0.1},"
    "   \"learning_rate\": 6.25e-5, \"beta1\": 0.8, \"beta2\": 0.99,"
    "   \"epsilon\": 1.5e-4, \"grad_clip\": 0.5},"
    " \"record\": {\"directory\": \"r\", \"every\": \"episode\", \"wait\": true},"
    " \"report\": false, \"sweep\": {\"seed\": [1, 2]},"
    " \"publish\": {\"interval\": 3, \"min_change\": 0.01},"
    " \"learner\": {\"threads\": 2, \"isa\": \"x86-64-v3\", \"device\": \"cpu\", "
    " \"compute\": \"bf16\", \"device_faults\": 5, \"processes\": \"one\", "
    "\"feed\": \"staged\"},"
    " \"evaluation\": {\"interval\": 10, \"episodes\": 2, \"final_episodes\": 4, \"worlds\": 4,"
    "   \"quantiles\": 5, \"answer\": \"sample\", \"options\": {\"split\": \"test\"}},"
    " \"supervisor\": {\"heartbeat_s\": 1.5, \"respawn_floor_s\": 0.5, \"backoff_max_s\": 4,"
    "   \"deaths_max\": 3, \"deaths_window_s\": 99, \"stop_grace_s\": 2},"
    " \"control\": {\"socket\": \"/run/x.sock\"},"
    " \"metrics\": {\"exec\": \"cat\", \"interval_s\": 0.25, \"interval_steps\": 77, \"csv\": "
    "false, \"tensorboard\": "
    "\"off\"},"
    " \"checkpoint\": {\"at_end\": false, \"interval_s\": 30, \"keep\": 5, \"keep_best\": false},"
    " \"debug\": {\"check_finite\": \"sampled\", \"check_every\": 7, \"rollbacks_max\": 1, "
    "\"lengthen\": \"world\", \"lengthen_by\": 0.5, "
    "\"finite_patience\": 4}}";

static void parse(struct rm_experiment *experiment, const char *text)
{
    struct rm_error error;
    if (rm_config_parse(experiment, "t.json", text, strlen(text), NULL, 0, &error))
        fail_msg("%s", error.text);
}

/* Keys whose other values contradict the rest. */
static const char *const contradicts[] = {
    "actor.random_steps", "actor.random_hold",    "limiter.wake",
    "algorithm.form",     "algorithm.value_head", "algorithm.normalize_rewards",
    "actor.device",       "learner.devices",      "world.python",
    "world.prolog",       "curriculum",           "policy.from",
    "sample.from"};

/* Every key of `full` is away from its default, so nothing is left out unnoticed. */
static void full_file_reaches_every_key(void **state)
{
    struct rm_experiment experiment, defaults;
    (void)state;

    parse(&experiment, full);
    assert_int_equal(rm_config_defaults(&defaults), 0);
    for (size_t i = 0; i < rm_key_count; i++) {
        const struct rm_key *key = &rm_keys[i];
        bool same =
            !memcmp((char *)&experiment + key->offset, (char *)&defaults + key->offset, key->bytes);
        for (size_t j = 0; j < sizeof contradicts / sizeof *contradicts; j++)
            same = same && strcmp(key->path, contradicts[j]) != 0;
        if (same)
            fail_msg("%s kept its default", key->path);
    }
    assert_int_equal(experiment.run.steps, 60000);
    assert_string_equal(experiment.run.directory, "/tmp/\xc3\xa9 x");
    assert_int_equal(experiment.policy.map, RM_MAP_LIST);
    assert_int_equal(experiment.policy.list_count, 5);
    assert_int_equal(experiment.policy.list[4], 2);
    assert_string_equal(experiment.world.options, WORLD_OPTIONS);
    assert_int_equal(experiment.network.layer_count, 7);
    assert_int_equal(experiment.network.layers[3].type, RM_LAYER_COSINE_EMBEDDING);
    assert_int_equal(experiment.network.layers[3].cosines, 5);
    assert_int_equal(experiment.network.layers[4].units, 9);
    assert_true(experiment.limiter.updates_per_step == 0.3333333333333333);
}

static void text_reads_back(void **state)
{
    struct rm_experiment experiment, again;
    (void)state;

    parse(&experiment, full);
    char *text = rm_test_config_text(&experiment);
    assert_non_null(text);
    parse(&again, text);
    assert_memory_equal(&experiment, &again, sizeof(again));
    assert_int_equal(rm_config_diff(&experiment, &again, NULL, NULL), 0);
    assert_non_null(strstr(text, "\"learning_rate\": 6.25e-05"));
    assert_non_null(strstr(text, "\"gamma\": 0.997,"));
    free(text);

    /* jansson's own printing reads back as well. */
    json_t *root = rm_config_to_json(&experiment);
    text = json_dumps(root, 0);
    parse(&again, text);
    assert_memory_equal(&experiment, &again, sizeof(again));
    free(text);
    json_decref(root);
}

/* Every shipped experiment is sound, and its resolved form is the same experiment. */
static void shipped_files_load(void **state)
{
    glob_t files;
    (void)state;

    assert_int_equal(glob("config/*.json", 0, NULL, &files), 0);
    assert_true(files.gl_pathc >= 4);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        struct rm_experiment experiment, again;
        struct rm_error error;
        const char *base = strrchr(files.gl_pathv[i], '/') + 1;
        if (rm_config_load(&experiment, files.gl_pathv[i], NULL, 0, &error))
            fail_msg("%s", error.text);
        /* Its name is that of its file, so that runs have different names. */
        assert_int_equal(strncmp(base, experiment.name, strlen(experiment.name)), 0);
        assert_string_equal(base + strlen(experiment.name), ".json");
        char *text = rm_test_config_text(&experiment);
        parse(&again, text);
        assert_memory_equal(&experiment, &again, sizeof(again));
        free(text);
    }
    globfree(&files);
}

static void overrides_apply_in_order(void **state)
{
    static const char *const sets[] = {
        "sample.batch=16",       "sample.batch=128",           "name=123",
        "mode=lockstep",         "network.layers[0].units=64", "policy.map=[0,1]",
        "world.options.speed=2", "run.directory=a b=c",        "world.library=\"x\"",
        "learner.isa=x86-64-v2", "metrics.csv=false",          "optimizer.grad_clip=0"};
    struct rm_override overrides[sizeof(sets) / sizeof(sets[0])];
    const char *text = "{\"world\": {\"name\": \"cartpole\"}, \"sample\": {\"batch\": 8}}";
    struct rm_experiment e;
    struct rm_error error;
    (void)state;

    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
        overrides[i].text = sets[i];
    if (rm_config_parse(&e, "t", text, strlen(text), overrides, sizeof(sets) / sizeof(sets[0]),
                        &error))
        fail_msg("%s", error.text);
    assert_int_equal(e.sample.batch, 128);
    assert_string_equal(e.name, "123");
    assert_int_equal(e.mode, RM_MODE_LOCKSTEP);
    assert_int_equal(e.network.layer_count, 4); /* of the default network */
    assert_int_equal(e.network.layers[0].units, 64);
    assert_int_equal(e.network.layers[2].units, 128);
    assert_int_equal(e.policy.map, RM_MAP_LIST);
    assert_string_equal(e.world.options, "{\"speed\":2}");
    assert_string_equal(e.run.directory, "a b=c");
    assert_string_equal(e.world.library, "x");
    assert_string_equal(e.learner.isa, "x86-64-v2");
    assert_false(e.metrics.csv);
    assert_true(e.optimizer.grad_clip == 0);
}

/* What a Python world takes is whatever its function does: it comes back as it was written. */
static void options_of_python_worlds_are_any_json(void **state)
{
    static const struct {
        const char *python, *name;
    } names[] = {{"gymnasium:CartPole-v1", "CartPole-v1"},
                 {"gymnasium:ALE/Pong-v5", "ALE-Pong-v5"},
                 {"gymnasium:minigrid:MiniGrid-Empty-5x5-v0", "MiniGrid-Empty-5x5-v0"},
                 {"my_games.cards:make", "my_games.cards-make"},
                 {"_games:make", "games-make"}};
    static const char options[] =
        "{\"levels\":[1,2,\"three\"],\"deep\":{\"a\":null},\"rate\":1.5,\"word\":\"\"}";
    static struct rm_experiment e, again;
    struct rm_error error = {""};
    char text[512];
    (void)state;
    /* options before python, as an editor that sorts keys has them */
    snprintf(text, sizeof text, "{\"world\": {\"options\": %s, \"python\": \"a:b\"}}", options);
    parse(&e, text);
    assert_string_equal(e.world.options, options);
    json_t *written = rm_config_to_json(&e);
    char *whole = json_dumps(written, 0);
    parse(&again, whole);
    assert_memory_equal(&e, &again, sizeof e);
    free(whole);
    json_decref(written);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(text, sizeof text, "{\"world\": {\"python\": \"%s\"}}", names[i].python);
        parse(&e, text);
        assert_string_equal(e.world.name, names[i].name);
    }
    parse(&e, "{\"world\": {\"python\": \"a:b\", \"name\": \"mine\"}}");
    assert_string_equal(e.world.name, "mine");
    static const char bare[] = "{\"world\": {\"python\": \"a:b\"}}";
    const struct rm_override level[] = {{"world.options.level=7"}};
    assert_int_equal(rm_config_parse(&e, "t", bare, sizeof bare - 1, level, 1, &error), 0);
    assert_string_equal(e.world.options, "{\"level\":7}");
}

static void remarks_are_ignored(void **state)
{
    struct rm_experiment plain, remarked;
    (void)state;
    parse(&plain,
          "{\"world\": {\"name\": \"x\"}, \"network\": {\"layers\": [{\"type\": \"relu\"}]}}");
    parse(&remarked, "{\"$schema\": \"s.json\", \"//\": [1, {\"a\": 2}], \"comment\": \"c\","
                     "\"world\": {\"//\": \"w\", \"name\": \"x\", \"options\": {\"comment\": {}}},"
                     "\"network\": {\"layers\": [{\"type\": \"relu\", \"//\": \"r\"}]}}");
    assert_memory_equal(&plain, &remarked, sizeof(plain));
}

static void get_and_set_one_key(void **state)
{
    struct rm_experiment e, before;
    struct rm_error error;
    json_t *value;
    (void)state;

    parse(&e, full);
    for (size_t i = 0; i < rm_key_count; i++) { /* what is got can be set */
        before = e;
        value = rm_config_get(&e, rm_keys[i].path, &error);
        assert_non_null(value);
        assert_int_equal(rm_config_set(&e, rm_keys[i].path, value, &error), 0);
        assert_memory_equal(&e, &before, sizeof(e));
        json_decref(value);
    }
    value = rm_config_get(&e, "network.layers[3].cosines", &error);
    assert_int_equal(json_integer_value(value), 5);
    json_decref(value);
    value = rm_config_get(&e, "sample", &error);
    assert_int_equal(json_integer_value(json_object_get(value, "batch")), 32);
    json_decref(value);
    value = rm_config_get(&e, "", &error);
    assert_non_null(json_object_get(value, "sample"));
    json_decref(value);
    assert_null(rm_config_get(&e, "sample.bach", &error));
    assert_string_equal(error.text, "sample.bach: unknown key; did you mean \"sample.batch\"?");

    static const struct {
        const char *path, *json, *says;
    } refused[] = {
        {"sample.batch", "0", "sample.batch: 0 is out of range"},
        {"sample.batch", "\"x\"", "sample.batch: should be a whole number"},
        {"sample.bach", "1", "sample.bach: unknown key; did you mean \"sample.batch\"?"},
        {"sample..batch", "1", "sample..batch: is not the path of a key"},
        {"sample.batch.x", "1", "its parent is not an object"},
        {"ring.capacity", "16", "ring.capacity: 16 transitions are fewer than one batch"},
        {"epsilon.end", "0.95", "epsilon.end: 0.95 is above epsilon.start"},
        {"", "1", "is not the path of a key"},
    };
    before = e;
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        value = json_loads(refused[i].json, JSON_DECODE_ANY, NULL);
        assert_int_equal(rm_config_set(&e, refused[i].path, value, &error), -EINVAL);
        if (!strstr(error.text, refused[i].says))
            fail_msg("set %s says: %s", refused[i].path, error.text);
        assert_memory_equal(&e, &before, sizeof(e));
        json_decref(value);
    }
    value = json_integer(33);
    assert_int_equal(rm_config_set(&e, "sample.batch", value, &error), 0);
    assert_int_equal(e.sample.batch, 33);
    json_decref(value);
}

struct seen {
    int count;
    char paths[8][64], before[8][64], after[8][64];
    bool hot[8];
};

static void note(void *user, const char *path, const char *before, const char *after, bool hot)
{
    struct seen *seen = user;
    assert_true(seen->count < 8);
    snprintf(seen->paths[seen->count], 64, "%s", path);
    snprintf(seen->before[seen->count], 64, "%s", before);
    snprintf(seen->after[seen->count], 64, "%s", after);
    seen->hot[seen->count++] = hot;
}

static void differences_are_named(void **state)
{
    struct rm_experiment a, b;
    struct seen seen = {0};
    (void)state;

    parse(&a, full);
    b = a;
    b.optimizer.learning_rate = 0.001;
    b.sample.batch = 64;
    b.policy.list[4] = 1;
    b.metrics.csv = true;
    assert_int_equal(rm_config_diff(&a, &a, note, &seen), 0);
    assert_int_equal(seen.count, 0);
    assert_int_equal(rm_config_diff(&a, &b, note, &seen), 4);
    assert_int_equal(seen.count, 4);
    assert_string_equal(seen.paths[0], "policy.map");
    assert_string_equal(seen.before[0], "[0,1,1,0,2]");
    assert_string_equal(seen.after[0], "[0,1,1,0,1]");
    assert_string_equal(seen.paths[1], "sample.batch");
    assert_string_equal(seen.before[1], "32");
    assert_false(seen.hot[1]);
    assert_string_equal(seen.paths[2], "optimizer.learning_rate");
    assert_string_equal(seen.after[2], "0.001");
    assert_true(seen.hot[2]);
    assert_string_equal(seen.paths[3], "metrics.csv");
    assert_string_equal(seen.after[3], "true");
}

static void hot_values_travel(void **state)
{
    struct rm_experiment a, b;
    double values[RM_HOT_COUNT], again[RM_HOT_COUNT];
    (void)state;

    parse(&a, full);
    rm_config_hot_values(&a, values);
    assert_true(values[RM_HOT_LEARNING_RATE] == 6.25e-5);
    assert_true(values[RM_HOT_PUBLISH_INTERVAL] == 3);
    assert_true(values[RM_HOT_EVALUATION_INTERVAL] == 10);
    assert_true(values[RM_HOT_TARGET_TAU] == 0.25);

    assert_int_equal(rm_config_defaults(&b), 0);
    rm_config_apply_hot(&b, values);
    rm_config_hot_values(&b, again);
    assert_memory_equal(values, again, sizeof(values));
    assert_int_equal(b.publish.interval, 3);
    assert_int_equal(b.evaluation.interval, 10);

    /* What no experiment could have is not taken over. */
    values[RM_HOT_PUBLISH_INTERVAL] = -5;
    values[RM_HOT_LEARNING_RATE] = (double)NAN;
    rm_config_apply_hot(&b, values);
    rm_config_hot_values(&b, values);
    assert_memory_equal(values, again, sizeof(values));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_file_reaches_every_key),
        cmocka_unit_test(text_reads_back),
        cmocka_unit_test(shipped_files_load),
        cmocka_unit_test(overrides_apply_in_order),
        cmocka_unit_test(options_of_python_worlds_are_any_json),
        cmocka_unit_test(remarks_are_ignored),
        cmocka_unit_test(get_and_set_one_key),
        cmocka_unit_test(differences_are_named),
        cmocka_unit_test(hot_values_travel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
