/* Worlds that a device can have: their rules are those of the world, their states have the size
 * that the device's description has, and other worlds are refused with a message. */
#include "actor/worlds/builtin/cartpole_rules.h"
#include "actor/worlds/builtin/classic_state.h"
#include "actor/worlds/builtin/goodhart.h"
#include "actor/worlds/builtin/device_rules.h"
#include "actor/worlds/plan.h"
#include "actor/worlds/worlds.h"
#include "config/config.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>

static void parse(struct rm_experiment *e, const char *world, const char *options,
                  const char *layers)
{
    char json[1024];
    struct rm_error error = {""};
    snprintf(json, sizeof json,
             "{\"world\": {\"name\": \"%s\", \"options\": {%s}}, \"algorithm\": {\"name\":"
             " \"ppo\"}, \"actor\": {\"device\": \"cuda\", \"worlds\": 5},"
             " \"network\": {\"layers\": [%s]}}",
             world, options, layers);
    if (rm_config_parse(e, "t", json, strlen(json), NULL, 0, &error))
        fail_msg("%s", error.text);
}

static void refused(const char *world, const char *layers, const char *words)
{
    static struct rm_experiment e;
    static struct rm_plan plan;
    struct rm_error error = {""};
    parse(&e, world, "", layers);
    assert_true(rm_plan_make(&plan, &e, &error) < 0);
    if (!strstr(error.text, words))
        fail_msg("%s", error.text);
}

static void others_are_refused(void **state)
{
    static struct rm_experiment e;
    static struct rm_plan plan;
    struct rm_error error = {""};
    (void)state;
    refused("taxi", "{\"type\": \"linear\", \"units\": 4}",
            "world \"taxi\" is not compiled for a device; these are: goodhart, cartpole");
    refused("cartpole", "{\"type\": \"gru\", \"units\": 4}", "no recurrent layers");
    refused("goodhart", "{\"type\": \"embedding\", \"units\": 4}", "no embedding");
    assert_null(rm_device_rules_of("connect"));
    parse(&e, "cartpole", "", "{\"type\": \"linear\", \"units\": 4}");
    assert_int_equal(rm_plan_make(&plan, &e, &error), 0);
    snprintf(e.world.library, sizeof e.world.library, "./cartpole.so");
    assert_true(rm_plan_make(&plan, &e, &error) < 0); /* there is no such file either */
}

/* Rules as a device gets them, of a world with these options; and the size of a state. */
static size_t rules_of(const char *name, const char *options, void *rules)
{
    static struct rm_experiment e;
    struct rm_world world;
    struct rm_env *env;
    struct rm_error error = {""};
    parse(&e, name, options, "{\"type\": \"linear\", \"units\": 4}");
    assert_int_equal(rm_world_open(&world, name, "", &error), 0);
    assert_int_equal(rm_world_create(&world, &e.world, 1, 0, 5, &env, &error), 0);
    rm_device_rules_of(name)->rules(env, rules);
    const size_t bytes = world.ops->state_size(env);
    world.ops->close(env);
    rm_world_close(&world);
    return bytes;
}

static void rules_are_the_worlds(void **state)
{
    struct rm_goodhart_rules g;
    struct rm_cartpole_rules c;
    (void)state;
    assert_int_equal(rules_of("goodhart",
                              "\"mode\": 2, \"max_steps\": 99, \"food_min\": 3, \"food_max\": 4,"
                              " \"poison_min\": 5, \"poison_max\": 6, \"t0_stagger\": 1",
                              &g),
                     5 * sizeof(struct rm_goodhart_world));
    assert_true(g.mode == RM_GOODHART_JAMMED && g.max_steps == 99 && g.food_min == 3);
    assert_true(g.food_max == 4 && g.poison_min == 5 && g.poison_max == 6);
    assert_true(g.stagger && !g.compat);
    assert_int_equal(rules_of("cartpole", "\"max_steps\": 7, \"velocities\": 0", &c),
                     5 * sizeof(struct rm_classic_state));
    assert_true(c.max_steps == 7 && c.elements == 2);
    rules_of("cartpole", "", &c);
    assert_true(c.max_steps == 500 && c.elements == 4);
}

/* Every name in the words is one that there is. */
static void names_are_the_table(void **state)
{
    char names[64];
    uint32_t found = 0;
    (void)state;
    snprintf(names, sizeof names, "%s", rm_device_rules_names());
    for (char *rest = names, *name; (name = strtok_r(rest, ", ", &rest)); found++)
        assert_int_equal(rm_device_rules_of(name)->kind, found);
    assert_int_equal(found, RM_DEVICE_WORLD_KINDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_refused),
        cmocka_unit_test(rules_are_the_worlds),
        cmocka_unit_test(names_are_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
