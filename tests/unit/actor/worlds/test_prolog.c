/* Worlds in Prolog: the worked example step by step, what a file may say of itself, what goes wrong
 * while it is played, saved states. */
#include "actor/worlds/bridges/prolog.h"
#include "actor/worlds/rule_check.h"
#include "tests/support/batch.h"
#include "tests/support/effort.h"
#include "tests/support/python.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define TOY "config/prolog/toy_prover.pl"

static char folder[] = "/tmp/rm-prolog-XXXXXX";

static void configure(struct rm_world_config *config, const char *file, const char *options)
{
    memset(config, 0, sizeof *config);
    snprintf(config->name, sizeof config->name, "test");
    snprintf(config->prolog, sizeof config->prolog, "%s", file);
    snprintf(config->options, sizeof config->options, "%s", options ? options : "{}");
    if (file[0] != '/' && !getcwd(config->directory, sizeof config->directory))
        fail();
}

/* --- the worked example ----------------------------------------------------------------------- */

enum { STATE = 12, SUCCESSORS = 96 };

static void seen_is(const struct rm_test_batch *batch, const int *begins, size_t count)
{
    const int32_t *obs = rm_test_batch_obs(batch, 0, 0);
    for (size_t i = 0; i < STATE; i++)
        assert_int_equal(obs[i], i < count ? begins[i] : 0);
}

static void actions_are(const struct rm_test_batch *batch, uint32_t count)
{
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(rm_test_batch_mask(batch, 0, 0)[i], i < count);
}

static void play(struct rm_test_batch *batch, int32_t action, double reward, int flags)
{
    batch->actions[0][0] = action;
    rm_test_batch_step(batch, 0);
    assert_true((double)batch->out[0].reward[0] == reward);
    assert_int_equal(batch->out[0].flags[0], flags);
}

static void test_example(void **unused)
{
    (void)unused;
    static const int first[] = {2, 1, 4}, second[] = {2, 4, 1}, after[] = {1, 1, 5, 2, 5, 4};
    static const int choices[] = {1, 0, 1, 0, 0, 0, 0};
    struct rm_world_config config;
    struct rm_test_batch batch;
    bool asked[2] = {false, false};
    configure(&config, TOY, NULL);
    for (uint64_t seed = 0; !asked[0] || !asked[1]; seed++) {
        assert_true(seed < 64);
        rm_test_batch_open_configured(&batch, &config, seed, 0, 1);
        assert_string_equal(batch.spec->name, "toy_prover");
        assert_int_equal(batch.spec->max_steps, 12);
        assert_int_equal(batch.spec->agent[0].actions, 8);
        assert_string_equal(batch.spec->agent[0].observation[1].name, "successors");
        rm_test_batch_reset(&batch);
        const int query = ((const int32_t *)rm_test_batch_obs(&batch, 0, 0))[1] == 4;
        asked[query] = true;
        actions_are(&batch, 3);
        if (query) {
            seen_is(&batch, second, 3);
            play(&batch, 2, 1, RM_ENV_TERMINATED);
        } else {
            const int32_t *successors = (const int32_t *)rm_test_batch_obs(&batch, 0, 0) + STATE;
            seen_is(&batch, first, 3);
            assert_int_equal(successors[0], 1);
            assert_int_equal(successors[STATE + 1], 1);
            assert_int_equal(successors[2 * STATE], 4); /* stop */
            for (size_t i = 0; i < 7; i++) {
                play(&batch, choices[i], i == 6, i == 6 ? RM_ENV_TERMINATED : 0);
                if (i == 0) {
                    seen_is(&batch, after, 6);
                    actions_are(&batch, 2);
                }
            }
        }
        assert_true(batch.out[0].figures[0] == 0.0);
        play(&batch, 0, 0, RM_ENV_FIRST);
        rm_test_batch_close(&batch);
    }
}

/* All rules of docs/worlds.md, saved states among them. */
static void test_rules(void **unused)
{
    (void)unused;
    static struct rm_rule_check check;
    struct rm_world_config config;
    struct rm_world world;
    struct rm_error error = {""};
    configure(&config, TOY, NULL);
    if (rm_world_open_configured(&world, &config, &error) < 0 ||
        rm_rule_check_run(&check, &world, &config, 1, rm_test_effort(300, 60), &error) < 0)
        fail_msg("%s", error.text);
    for (int rule = 0; rule < RM_RULE_COUNT; rule++) {
        if (check.rule[rule].times)
            fail_msg("%s: %s", rm_rule_words[rule], check.rule[rule].text);
        assert_true(check.rule[rule].tried || rule == RM_RULE_PROCESS);
    }
    rm_world_close(&world);
}

/* --- what a file says of itself --------------------------------------------------------------- */

static const char *write_file(const char *name, const char *text)
{
    static char path[96];
    snprintf(path, sizeof path, "%s/%s.pl", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return path;
}

/* Whether the world is refused with this text, behind its path. */
static void refuses(const char *name, const char *text, const char *options, const char *words)
{
    struct rm_world_config config;
    struct rm_world world;
    struct rm_env *env;
    struct rm_error error = {""};
    char expected[600];
    const char *path = write_file(name, text);
    configure(&config, path, options);
    assert_int_equal(rm_world_open_configured(&world, &config, &error), 0);
    rm_test_said_begin();
    const int rc = rm_world_create(&world, &config, 1, 0, 1, &env, &error);
    rm_test_said_end();
    if (rc == 0)
        fail_msg("%s is not refused", name);
    snprintf(expected, sizeof expected, words[0] == ':' ? "%s%s" : "%.0s%s", path, words);
    if (!strstr(error.text, expected))
        fail_msg("%s:\n%s\ninstead of\n%s", name, error.text, expected);
    assert_null(strchr(error.text, '\n'));
    rm_world_close(&world);
}

#define EXPORTS "env_spec/1, reset/2, actions/2, step/4, observation/2"
#define RULES                                                                                      \
    "reset(_, 0).\nactions(_, [a,b]).\nobservation(S, [[S]]).\n"                                   \
    "step(S, _, T, result(1, running)) :- T is S + 1.\n"
#define SPEC "env_spec([actions(2), max_steps(5), obs(n,int32,[1])]).\n"

static void test_refusals(void **unused)
{
    (void)unused;
    refuses("plain", "edge(a,b).\n", NULL, ":1: is no module: a world begins with :- module(NAME,");
    refuses("syntax", ":- module(syntax, [" EXPORTS "]).\n" SPEC "reset(_, .\n" RULES, NULL, ":3:");
    refuses("syntax1", ":- module(syntax1, [env_spec(.\n", NULL, ":1:");
    refuses("nostep",
            ":- module(nostep, [env_spec/1, reset/2, actions/2, observation/2]).\n" SPEC
            "reset(_, 0).\nactions(_, [a]).\nobservation(S, [[S]]).\n",
            NULL, ":1: has no step/4: a world exports env_spec/1, reset/2");
    refuses("noclause",
            ":- module(noclause, [" EXPORTS "]).\n" SPEC
            "reset(_, 0).\nactions(_, [a]).\nobservation(S, [[S]]).\n",
            NULL, ":1: exports step/4, but has no clause of it");
    refuses("nospec", ":- module(nospec, [" EXPORTS "]).\nenv_spec(_) :- fail.\n" RULES, NULL,
            ":2: env_spec/1 fails");
    refuses("spec", ":- module(spec, [" EXPORTS "]).\n\nenv_spec(List) :- env_spec(List).\n" RULES,
            NULL,
            ":3: env_spec/1 takes more than 1000000 inferences (world.options.max_inferences)");
    refuses("begins", ":- module(begins, [" EXPORTS "]).\n" SPEC "loop :- loop.\n:- loop.\n" RULES,
            "{\"max_inferences\": 500}",
            ":4: the directive takes more than 50,000 inferences, 100 "
            "times world.options.max_inferences");
    refuses("halts", ":- module(halts, [" EXPORTS "]).\n" SPEC RULES ":- halt.\n", NULL,
            ":7: No permission to call world `halt/0' (an episode ends with the status "
            "terminated)");
    refuses("noobs",
            ":- module(noobs, [" EXPORTS "]).\nenv_spec([actions(2), max_steps(5)]).\n" RULES, NULL,
            ":2: env_spec/1 has no obs(NAME, TYPE, SHAPE)");
    refuses("noactions",
            ":- module(noactions, [" EXPORTS "]).\n\nenv_spec([max_steps(5)]).\n" RULES, NULL,
            ":3: env_spec/1 needs one actions(NUMBER), from 1 to 65536");
    refuses("type",
            ":- module(type, [" EXPORTS "]).\nenv_spec([actions(2), max_steps(5), "
            "obs(n,double,[1])]).\n" RULES,
            NULL, ":2: env_spec/1 has obs(n,double,[1]); it may have");
    refuses("large",
            ":- module(large, [" EXPORTS "]).\n\n\nenv_spec([actions(2), max_steps(5), "
            "obs(n,int32,[5000,5000])]).\n" RULES,
            NULL, ":4: env_spec/1: obs 1 has a shape of more than 2^24 numbers");
    refuses("option", ":- module(option_, [" EXPORTS "]).\n:- world_option(size, 4).\n" SPEC RULES,
            "{\"siz\": 5}", ":1: takes no option siz: it takes size");
    refuses("none", ":- module(none, [" EXPORTS "]).\n" SPEC RULES, "{\"size\": 5}",
            ":1: takes no option size: it has no :- world_option(size, DEFAULT)");
    refuses("kind", ":- module(kind, [" EXPORTS "]).\n:- world_option(size, 4).\n" SPEC RULES,
            "{\"size\": \"big\"}", ":2: world.options.size is big, but its default is 4");
    refuses("limit", ":- module(limit, [" EXPORTS "]).\n" SPEC RULES, "{\"max_inferences\": 1}",
            "world.options.max_inferences must be a whole number, 100 to");
}

static void test_missing(void **unused)
{
    (void)unused;
    struct rm_world_config config;
    struct rm_world world;
    struct rm_env *env;
    struct rm_error error = {""};
    configure(&config, "/nowhere/x.pl", NULL);
    assert_int_equal(rm_world_open_configured(&world, &config, &error), 0);
    assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
    assert_non_null(strstr(error.text, "/nowhere/x.pl: there is no such file"));
    rm_world_close(&world);
}

static void use_plugin(void)
{
    setenv("RINGMASTER_PROLOG_PLUGIN", rm_test_build_path("lib/ringmaster-prolog.so"), 1);
}

/* Without the plugin, and without the library that it needs. */
static void test_no_prolog(void **unused)
{
    (void)unused;
    struct rm_world_config config;
    struct rm_world world;
    struct rm_error error = {""};
    configure(&config, TOY, NULL);
    setenv("RINGMASTER_PROLOG_PLUGIN", write_file("nothing", "no shared object\n"), 1);
    assert_int_equal(rm_world_open_configured(&world, &config, &error), -ENOENT);
    assert_non_null(strstr(error.text, "world.prolog: SWI-Prolog is not here; install the package "
                                       "swi-prolog-core ("));
    unsetenv("RINGMASTER_PROLOG_PLUGIN"); /* beside this test there is none */
    assert_int_equal(rm_world_open_configured(&world, &config, &error), -ENOENT);
    assert_non_null(strstr(error.text, "install the package swi-prolog-core and build again"));
    use_plugin();
}

/* --- what goes wrong ---------------------------------------------------------------------------
 */

/* A world whose second step goes wrong: the episode is cut, void, and the error is told. */
static void goes_wrong(const char *name, const char *rules, const char *words)
{
    char text[2048], expected[600];
    struct rm_world_config config;
    struct rm_test_batch batch;
    snprintf(text, sizeof text, ":- module(%s, [" EXPORTS "]).\n:- dynamic seen/1.\n" SPEC "%s",
             name, rules);
    const char *path = write_file(name, text);
    configure(&config, path, "{\"max_inferences\": 5000}");
    rm_test_batch_open_configured(&batch, &config, 3, 7, 1);
    rm_test_said_begin();
    rm_test_batch_reset(&batch);
    play(&batch, 0, 1, 0);
    play(&batch, 1, 0, RM_ENV_TRUNCATED | RM_ENV_VOID);
    assert_true(batch.out[0].figures[0] == 1.0);
    play(&batch, 0, 0, RM_ENV_FIRST);
    play(&batch, 0, 1, 0);
    const char *said = rm_test_said_end();
    rm_test_batch_close(&batch);
    snprintf(expected, sizeof expected,
             "<3>world 7 (%s), seed 3, episode 0, step 2, action 1: %s%s", name, path, words);
    if (!strstr(said, expected))
        fail_msg("%s:\n%s\ninstead of\n%s", name, said, expected);
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
}

#define STEP(body) /* lines 7 and 8 are the second step */                                         \
    "reset(_, 0).\nactions(_, [a,b]).\nstep(0, _, 1, result(1, running)) :- !.\n" body

static void test_errors(void **unused)
{
    (void)unused;
    goes_wrong("fails", STEP("step(1, b, _, _) :- fail.\nobservation(S, [[S]]).\n"),
               ":6: step(1,b,A,B) fails");
    goes_wrong(
        "throws",
        STEP("step(1, b, 2, result(R, running)) :-\n  R is foo + 1.\nobservation(S, [[S]]).\n"),
        ":7: step(1,b,A,B) throws: is/2: Arithmetic: `foo/0' is not a function");
    goes_wrong(
        "loops",
        STEP("step(1, b, 2, result(1, running)) :- loop.\nobservation(S, [[S]]).\nloop :- loop.\n"),
        ":6: step(1,b,A,B) takes more than 5000 inferences "
        "(world.options.max_inferences)");
    goes_wrong("asserts",
               STEP("step(1, b, 2, result(1, running)) :- remember(x).\nobservation(S, "
                    "[[S]]).\n\nremember(X) :- assertz(seen(X)).\n"),
               ":10: step(1,b,A,B) throws: No permission to call world `assertz/1'");
    goes_wrong("ends",
               STEP("step(1, b, 2, result(1, running)) :- halt(1).\nobservation(S, [[S]]).\n"),
               ":7: step(1,b,A,B) throws: No permission to call world `halt/1'");
    goes_wrong("unknown",
               STEP("step(1, b, 2, result(1, running)) :- nothing(x).\nobservation(S, [[S]]).\n"),
               ":7: step(1,b,A,B) throws: unknown:step/4: Unknown procedure: unknown:nothing/1");
    goes_wrong("reward", STEP("step(1, b, 2, result(lots, running)).\nobservation(S, [[S]]).\n"),
               ":6: step/4: the reward is lots, must be a number");
    goes_wrong("status", STEP("step(1, b, 2, result(0, over)).\nobservation(S, [[S]]).\n"),
               ":6: step/4: the status is over, must be running, terminated or truncated");
    goes_wrong("result", STEP("step(1, b, 2, 0).\nobservation(S, [[S]]).\n"),
               ":6: step/4: the last argument is 0, must be result(Reward, Status)");
    goes_wrong("shape",
               STEP("step(1, b, 2, result(0, running)).\nobservation(2, [[1,2,3]]) :- "
                    "!.\nobservation(S, [[S]]).\n"),
               ":8: observation/2: n has 3 numbers, must have 1, the product of its shape");
    goes_wrong("number",
               STEP("step(1, b, 2, result(0, running)).\nobservation(2, [[0.5]]) :- "
                    "!.\nobservation(S, [[S]]).\n"),
               ":8: observation/2: number 1 of n is 0.5, must be an int32");
    goes_wrong("lists",
               STEP("step(1, b, 2, result(0, running)).\nobservation(2, [[1],[2]]) :- "
                    "!.\nobservation(S, [[S]]).\n"),
               ":8: observation/2: more lists than the 1 obs of env_spec");
    goes_wrong("nothing",
               STEP("step(1, b, 2, result(0, running)).\nobservation(2, []) :- !.\nobservation(S, "
                    "[[S]]).\n"),
               ":8: observation/2: has no list for n: one for each obs of env_spec");
    goes_wrong("empty",
               "reset(_, 0).\nactions(2, []) :- !.\nactions(_, [a,b]).\nstep(S, _, T, result(R, "
               "running)) :- T is S + 1, R = 1.\nobservation(S, [[S]]).\n",
               ":5: actions/2: a list of 0 actions, must be 1 to 2 (actions(2))");
    goes_wrong("many",
               "reset(_, 0).\nactions(2, [a,b,c]) :- !.\nactions(_, [a,b]).\nstep(S, _, T, "
               "result(R, running)) :- T is S + 1, R = 1.\nobservation(S, [[S]]).\n",
               ":5: actions/2: a list of 3 actions, must be 1 to 2 (actions(2))");
}

/* Too many end the run, with the last one's words. */
static void test_too_many(void **unused)
{
    (void)unused;
    struct rm_world_config config;
    struct rm_test_batch batch;
    int rc = 0;
    configure(&config,
              write_file("bad", ":- module(bad, [" EXPORTS "]).\n" SPEC
                                "reset(_, 0).\nactions(_, [a]).\nobservation(S, [[S]]).\n"
                                "step(_, _, _, _) :- fail.\n"),
              "{\"max_errors\": 2}");
    rm_test_batch_open_configured(&batch, &config, 3, 0, 1);
    rm_test_batch_reset(&batch);
    rm_test_said_begin();
    uint32_t steps = 0;
    for (; rc == 0 && steps < 9; steps++)
        rc = batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out);
    rm_test_said_end();
    assert_int_equal(rc, -EPROTO);
    assert_int_equal(steps, 5); /* every second step begins an episode */
    const char *last = batch.world.ops->last_error(batch.env);
    assert_ptr_equal(strstr(last, config.prolog), last);
    assert_non_null(strstr(last, "/bad.pl:6: step(0,a,A,B) fails (3 errors, more than "
                                 "world.options.max_errors)"));
    rm_test_batch_close(&batch);
}

/* --- options ------------------------------------------------------------------------------------
 */

/* Two of one file in a process, each with its own. */
static void test_options(void **unused)
{
    (void)unused;
    static const char text[] =
        ":- module(opted, [" EXPORTS "]).\n"
        ":- world_option(from, 3).\n:- world_option(names, []).\n:- world_option(half, 0.5).\n" SPEC
        "reset(_, S) :- world_option_value(from, F), world_option_value(names, L), length(L, N), "
        "world_option_value(half, H), float(H), S is F + N.\n"
        "actions(_, [a,b]).\nobservation(S, [[S]]).\nstep(S, _, S, result(0, running)).\n";
    const char *options[] = {NULL, "{\"from\": 40, \"names\": [\"x\", \"y\"], \"half\": 2}"};
    static const int expected[] = {3, 42};
    struct rm_world_config config[2];
    struct rm_test_batch batch[2];
    for (int i = 0; i < 2; i++) {
        configure(&config[i], write_file("opted", text), options[i]);
        rm_test_batch_open_configured(&batch[i], &config[i], 1, 0, 2);
        assert_string_equal(batch[i].spec->name, "opted");
    }
    for (int i = 0; i < 2; i++) {
        rm_test_batch_reset(&batch[i]);
        assert_int_equal(*(const int32_t *)rm_test_batch_obs(&batch[i], 0, 1), expected[i]);
    }
    for (int i = 0; i < 2; i++)
        rm_test_batch_close(&batch[i]);
}

static void test_shown(void **unused)
{
    (void)unused;
    struct rm_world_config config;
    struct rm_test_batch batch;
    char text[512];
    configure(&config, TOY, NULL);
    rm_test_batch_open_configured(&batch, &config, 1, 0, 1);
    rm_test_batch_reset(&batch);
    const int length = batch.world.ops->show_text(batch.env, 0, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "s([linked("));
    assert_non_null(strstr(text, "\n    0: [edge("));
    assert_non_null(strstr(text, ": stop\n"));
    rm_test_batch_close(&batch);
}

static int remove_folder(void **unused)
{
    (void)unused;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),   cmocka_unit_test(test_rules),
        cmocka_unit_test(test_refusals),  cmocka_unit_test(test_missing),
        cmocka_unit_test(test_no_prolog), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_too_many),  cmocka_unit_test(test_options),
        cmocka_unit_test(test_shown),
    };
    if (access(rm_test_build_path("lib/ringmaster-prolog.so"), R_OK) != 0) {
        printf("1..0 # SKIP built without SWI-Prolog\n");
        return 77;
    }
    use_plugin();
    if (!mkdtemp(folder))
        return 1;
    return cmocka_run_group_tests(tests, NULL, remove_folder);
}
