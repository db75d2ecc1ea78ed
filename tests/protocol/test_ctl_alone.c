/* ringctl where no experiment runs: usage, help, and what it knows of configurations and worlds by
 * itself. */
#include "daemon/ctl/exit_code.h"
#include "daemon/daemon.h"
#include "tests/support/program.h"
#include "tests/support/unit.h"

#include <string.h>
#include <unistd.h>
#include <stdlib.h>

#include <jansson.h>

static struct rm_program program;

#define RUN(...)   rm_program_ctl(&program, (const char *const[]){__VA_ARGS__, NULL})
#define SAYS(text) rm_program_says(&program, text)

static void usage_errors_are_2(void **state)
{
    (void)state;
    assert_int_equal(RUN("statsu"), RM_CTL_USAGE);
    SAYS("did you mean \"status\"");
    assert_int_equal(RUN("rnu"), RM_CTL_USAGE);
    SAYS("did you mean \"run\"");
    assert_int_equal(RUN("run"), RM_CTL_USAGE);
    SAYS("run needs FILE");
    SAYS("Usage: ringctl run [OPTION]... FILE");
    assert_int_equal(RUN("status", "--timeout", "soon"), RM_CTL_USAGE);
    assert_int_equal(RUN("status", "../../etc"), RM_CTL_USAGE);
    assert_int_equal(RUN("set", "epsilon.end"), RM_CTL_USAGE);
    SAYS("not KEY=VALUE");
    assert_int_equal(RUN("evaluate", "--episodes", "0"), RM_CTL_USAGE);
    assert_int_equal(RUN("completion", "fish"), RM_CTL_USAGE);
    assert_int_equal(RUN("top"), RM_CTL_USAGE);
    SAYS("terminal");
    assert_int_equal(RUN("status", "a", "--socket", "/x"), RM_CTL_USAGE);
}

/* A start without these words would be refused for its world. */
static void resume_and_fresh_exclude_each_other(void **state)
{
    static const char *const daemon[] = {"ringmasterd", "--fresh",           "--resume",
                                         "--check",     "config/small.json", NULL};
    static const char words[] = "give either --resume or --fresh, not both";
    (void)state;
    assert_int_equal(
        RUN("run", "config/small.json", "--resume", "--fresh", "--set", "world.name=carpole"),
        RM_CTL_USAGE);
    SAYS(words);
    assert_int_equal(rm_program_run(&program, daemon), 0);
    assert_int_equal(program.code, RM_DAEMON_USAGE);
    SAYS(words);
}

static void help_is_everywhere(void **state)
{
    (void)state;
    assert_int_equal(RUN("--help"), 0);
    SAYS("Usage: ringctl COMMAND");
    assert_int_equal(RUN("--version"), 0);
    SAYS("ringctl ");
    static const char *const names[] = {"run",    "validate",    "schema", "envs",       "list",
                                        "status", "metrics",     "get",    "set",        "pause",
                                        "resume", "stop",        "events", "checkpoint", "evaluate",
                                        "top",    "query-schema"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(RUN(names[i], "--help"), 0);
        SAYS("Usage: ringctl ");
        assert_int_equal(RUN("help", names[i]), 0);
        SAYS(names[i]);
    }
}

static void configurations_are_judged(void **state)
{
    static const char *const shipped[] = {"config/treasurehunt.json",
                                          "config/treasurehunt-compat.json",
                                          "config/cartpole-dqn.json", "config/small.json"};
    char path[] = "/tmp/rm-config-XXXXXX";
    (void)state;
    for (size_t i = 0; i < sizeof shipped / sizeof shipped[0]; i++) {
        assert_int_equal(RUN("validate", shipped[i]), 0);
        SAYS(": valid");
        SAYS("shared memory:");
    }
    assert_int_equal(RUN("validate", "config/small.json", "--json", "--set", "seed=77"), 0);
    json_t *resolved = json_loads(program.out, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(resolved, "seed")), 77);
    json_decref(resolved);

    assert_int_equal(RUN("validate", "config/small.json", "--set", "sample.batch=-1"),
                     RM_CTL_BAD_CONFIGURATION);
    SAYS("sample.batch");
    assert_int_equal(RUN("validate", "config/small.json", "--set", "world.name=carpole"),
                     RM_CTL_BAD_CONFIGURATION);
    SAYS("cartpole");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const char broken[] = "{\n  \"nam\": \"x\"\n}\n";
    assert_int_equal(write(fd, broken, sizeof broken - 1), sizeof broken - 1);
    close(fd);
    assert_int_equal(RUN("validate", path), RM_CTL_BAD_CONFIGURATION);
    SAYS(":2:");
    SAYS("name");
    unlink(path);
}

static void worlds_are_shown(void **state)
{
    (void)state;
    assert_int_equal(RUN("envs"), 0);
    SAYS("treasurehunt");
    SAYS("cartpole");
    assert_int_equal(RUN("envs", "cartpole"), 0);
    SAYS("f32[4]");
    SAYS("OPTION");
    assert_int_equal(RUN("envs", "--json", "treasurehunt"), 0);
    json_t *world = json_loads(program.out, 0, NULL);
    assert_int_equal(json_array_size(json_object_get(world, "agents")), 5);
    json_t *agent = json_array_get(json_object_get(world, "agents"), 4);
    json_t *choices = json_object_get(agent, "choices");
    assert_int_equal(json_array_size(choices), 1);
    assert_int_equal(json_integer_value(json_array_get(choices, 0)), 4);
    json_decref(world);
    assert_int_equal(RUN("envs", "cartpol"), RM_CTL_BAD_CONFIGURATION);
    SAYS("'cartpole'");
    assert_int_equal(RUN("envs", "--library", "/nonexistent.so"), RM_CTL_BAD_CONFIGURATION);
}

static void schemas_are_json_and_markdown(void **state)
{
    (void)state;
    assert_int_equal(RUN("schema"), 0);
    json_t *schema = json_loads(program.out, 0, NULL);
    assert_non_null(json_object_get(json_object_get(schema, "properties"), "sample"));
    json_decref(schema);
    assert_int_equal(RUN("schema", "--markdown"), 0);
    assert_int_equal(strncmp(program.out, "# ", 2), 0);
}

static void a_file_must_be_readable(void **state)
{
    static const char *const commands[] = {"run", "validate", "play", "check-world"};
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        assert_int_equal(RUN(commands[i], "/nonexistent.json"), RM_CTL_FAILED);
        SAYS("/nonexistent.json: No such file");
    }
    assert_int_equal(RUN("validate", "config"), RM_CTL_FAILED);
    SAYS("config: Is a directory");
}

/* What the world or the networks refuse is not known by a line of the file. */
static void what_a_world_refuses_names_the_file(void **state)
{
    static const struct {
        const char *setting, *words;
    } cases[] = {
        {"world.name=carpole", "config/small.json: there is no built-in world 'carpole'"},
        {"world.options.lenght=1", "config/small.json: world.options.lenght: the world"},
        {"policy.from=/nonexistent", "config/small.json: policy.from"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(RUN("validate", "config/small.json", "--set", cases[i].setting),
                         RM_CTL_BAD_CONFIGURATION);
        SAYS(cases[i].words);
        assert_int_equal(RUN("run", "config/small.json", "--set", cases[i].setting),
                         RM_DAEMON_USAGE);
        SAYS(cases[i].words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_errors_are_2),
        cmocka_unit_test(resume_and_fresh_exclude_each_other),
        cmocka_unit_test(help_is_everywhere),
        cmocka_unit_test(configurations_are_judged),
        cmocka_unit_test(worlds_are_shown),
        cmocka_unit_test(schemas_are_json_and_markdown),
        cmocka_unit_test(a_file_must_be_readable),
        cmocka_unit_test(what_a_world_refuses_names_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
