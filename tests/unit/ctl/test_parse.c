/* Command lines, by the table. */
#include "daemon/ctl/command.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct rm_ctl_arguments given;
static struct rm_error error;

/* Parses up to eight words for a command. */
static int parse(const char *command, const char *const *words)
{
    char *argv[8];
    int argc = 0;
    for (; words[argc]; argc++)
        argv[argc] = (char *)words[argc];
    return rm_ctl_parse(&given, rm_ctl_command_find(command), argc, argv, &error);
}

#define PARSE(command, ...) parse(command, (const char *const[]){__VA_ARGS__, NULL})

static void options_and_arguments_mix(void **state)
{
    (void)state;
    assert_int_equal(PARSE("run", "--set", "a=1", "file.json", "--set=b=2", "--name", "n"), 0);
    assert_string_equal(given.argument[0], "file.json");
    assert_int_equal(given.given_count, 3);
    assert_string_equal(given.given[0].value, "a=1");
    assert_string_equal(given.given[1].value, "b=2");
    assert_string_equal(rm_ctl_value(&given, "name"), "n");
    assert_null(rm_ctl_value(&given, "run-directory"));
    assert_int_equal(PARSE("run", "--", "--set"), 0);
    assert_string_equal(given.argument[0], "--set");
}

static void an_optional_name_gives_way(void **state)
{
    (void)state;
    assert_int_equal(PARSE("set", "a.b=1"), 0);
    assert_null(given.argument[0]);
    assert_string_equal(given.argument[1], "a.b=1");
    assert_int_equal(PARSE("set", "mine", "a.b=1", "--json"), 0);
    assert_string_equal(given.argument[0], "mine");
    assert_string_equal(given.argument[1], "a.b=1");
    assert_true(rm_ctl_flag(&given, "json"));
    assert_int_equal(PARSE("status", "mine"), 0);
    assert_string_equal(given.argument[0], "mine");
}

/* A number belongs to the option, another word does not. */
static void a_value_may_be_left_out(void **state)
{
    (void)state;
    assert_int_equal(PARSE("run", "--tune", "my.json"), 0);
    assert_string_equal(rm_ctl_value(&given, "tune"), "");
    assert_string_equal(given.argument[0], "my.json");
    assert_int_equal(PARSE("run", "--tune", "60", "my.json"), 0);
    assert_string_equal(rm_ctl_value(&given, "tune"), "60");
    assert_int_equal(PARSE("run", "my.json", "--tune"), 0);
    assert_string_equal(rm_ctl_value(&given, "tune"), "");
    assert_int_equal(PARSE("run", "my.json", "--tune=x"), 0);
    assert_string_equal(rm_ctl_value(&given, "tune"), "x");
}

static void wrong_lines_are_explained(void **state)
{
    (void)state;
    static const struct {
        const char *command, *words[5], *message;
    } cases[] = {
        {"set", {NULL}, "set needs KEY=VALUE"},
        {"run", {"--name", "x", NULL}, "run needs FILE"},
        {"run", {"a", "b", NULL}, "run: unexpected argument \"b\""},
        {"status", {"a", "b", NULL}, "status: unexpected argument \"b\""},
        {"set", {"a", "b", "c", "d", NULL}, "set: unexpected argument \"c\""},
        {"run", {"--set", NULL}, "--set needs a value: --set KEY=VALUE"},
        {"run", {"--nam", "x", "f", NULL}, "run has no option --nam; did you mean --name?"},
        {"run", {"--wait", "f", NULL}, "run has no option --wait"},
        {"run",
         {"f", "--steps", "5", NULL},
         "run has no option --steps; did you mean --set run.steps=5?"},
        {"run", {"f", "--seed=3", NULL}, "run has no option --seed; did you mean --set seed=3?"},
        {"run",
         {"f", "--total-timesteps", "1e6", NULL},
         "run has no option --total-timesteps; did you mean --set run.steps=1e6?"},
        {"play",
         {"f", "--learning-rate", "3e-4", NULL},
         "play has no option --learning-rate; did you mean --set optimizer.learning_rate=3e-4?"},
        {"run",
         {"--device", "f", NULL},
         "run has no option --device; did you mean --set learner.device=VALUE?"},
        {"status", {"--seed", "3", NULL}, "status has no option --seed"},
        {"run", {"-x", "f", NULL}, "run has no option -x"},
        {"run", {"-r", "f", NULL}, "run has no option -r"}, /* resume, run-directory */
        {"status", {"--json=yes", NULL}, "--json takes no value"},
        {"run", {"--name", "a", "--name=b", "f", NULL}, "--name is given twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i].command, cases[i].words), -EINVAL);
        assert_string_equal(error.text, cases[i].message);
    }
}

static void help_needs_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(PARSE("set", "--help"), 0);
    assert_true(given.help);
    assert_int_equal(PARSE("run", "-h"), 0);
    assert_true(given.help);
}

/* Every row can be drawn by what is made from it. */
static void check_option(void *user, const struct rm_ctl_option *option)
{
    size_t *seen = user;
    ++*seen;
    assert_true(strspn(option->name, "abcdefghijklmnopqrstuvwxyz-") == strlen(option->name));
    assert_int_equal(option->doc[strlen(option->doc) - 1], '.');
    if (!option->value)
        assert_int_equal(option->completion, RM_COMPLETE_NOTHING);
}

static void the_table_is_complete(void **state)
{
    (void)state;
    size_t commands = 0;
    for (const struct rm_ctl_command *c = rm_ctl_commands; c->name; c++, commands++) {
        size_t options = 0;
        assert_non_null(c->run);
        assert_ptr_equal(rm_ctl_command_find(c->name), c);
        assert_true(c->summary[0] >= 'a' && c->summary[0] <= 'z');
        assert_int_not_equal(c->summary[strlen(c->summary) - 1], '.');
        if (c->text)
            assert_int_equal(c->text[strlen(c->text) - 1], '.');
        rm_ctl_each_option(c, check_option, &options);
        assert_true(options >= 1 && options < 16);
    }
    assert_true(commands > 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_and_arguments_mix), cmocka_unit_test(an_optional_name_gives_way),
        cmocka_unit_test(a_value_may_be_left_out),   cmocka_unit_test(wrong_lines_are_explained),
        cmocka_unit_test(help_needs_nothing_else),   cmocka_unit_test(the_table_is_complete),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
