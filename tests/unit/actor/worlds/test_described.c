/* Worlds described as text: what is read is what was written, to the bit, for every world there is;
 * what is damaged is refused, or as sound as any description. */
#include "tests/support/batch.h"
#include "tests/support/effort.h"
#include "tests/support/unit.h"

#include "actor/worlds/described.h"
#include "actor/worlds/plan.h"
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *described(const char *name, const char *library, struct rm_world_spec *world)
{
    struct rm_world_config config = {.description = NULL};
    struct rm_error error = {""};
    snprintf(config.name, sizeof config.name, "%s", name);
    snprintf(config.library, sizeof config.library, "%s", library);
    if (rm_world_spec_open(world, &config, 3, &error) < 0)
        fail_msg("%s", error.text);
    char *text = rm_described_write(&world->world, world->spec);
    assert_non_null(text);
    return text;
}

static bool same_number(double a, double b)
{
    uint64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    return x == y; /* NaN is NaN here */
}

static bool same_text(const char *a, const char *b)
{
    return (!a && !b) || (a && b && strcmp(a, b) == 0);
}

static void comes_back(const char *name, const char *library)
{
    struct rm_world_spec world;
    struct rm_described *read;
    struct rm_error error = {""};
    char *text = described(name, library, &world);
    if (rm_described_read(&read, text, &error) < 0)
        fail_msg("%s: %s", name, error.text);
    const struct rm_env_spec *a = world.spec, *b = rm_described_spec(read);
    assert_true(rm_described_alike(a, b));
    assert_true(same_text(a->name, b->name) && same_text(a->doc, b->doc));
    assert_int_equal(a->max_steps, b->max_steps);
    assert_true(same_number(a->score_low, b->score_low) &&
                same_number(a->score_high, b->score_high) &&
                same_number(a->score_random, b->score_random) &&
                same_number(a->score_solved, b->score_solved));
    const struct rm_env_option_doc *x = world.options, *y = rm_described_options(read);
    for (; x && x->key; x++, y++) {
        assert_true(same_text(x->key, y->key) && same_text(x->doc, y->doc));
        assert_true(x->type == y->type && x->most == y->most &&
                    same_text(x->fallback_text, y->fallback_text));
        for (uint32_t i = 0; x->words && (x->words[i] || y->words[i]); i++)
            assert_true(same_text(x->words[i], y->words[i]));
        assert_true(same_number(x->fallback, y->fallback) && same_number(x->low, y->low) &&
                    same_number(x->high, y->high));
    }
    assert_null(y->key);
    assert_int_equal(a->figures, b->figures);
    for (uint32_t f = 0; f < a->figures; f++)
        assert_true(same_text(a->figure[f].doc, b->figure[f].doc));
    rm_described_free(read);
    rm_world_spec_close(&world);
    free(text);
}

static void every_world_comes_back(void **state)
{
    (void)state;
    for (size_t i = 0; rm_builtin_worlds[i]; i++)
        comes_back(rm_builtin_worlds[i]->name, "");
    comes_back("", rm_test_build_path("examples/tictactoe.so"));
    comes_back("", rm_test_build_path("tests/worlds/choosy.so"));
}

/* A plan made of the description alone is the plan made of the world. */
static void plan_is_the_same(const char *name)
{
    static struct rm_plan of_world, of_text;
    static struct rm_experiment e;
    char config[64];
    struct rm_world_spec world;
    struct rm_error error = {""};
    snprintf(config, sizeof config, "{\"world\":{\"name\":\"%s\"}}", name);
    assert_int_equal(rm_config_parse(&e, "t", config, strlen(config), NULL, 0, &error), 0);
    assert_int_equal(rm_plan_make(&of_world, &e, &error), 0);
    char *text = described(name, "", &world);
    strcpy(e.world.library, "/nowhere/that-would-have-to-be-loaded.so");
    e.world.description = text;
    if (rm_plan_make(&of_text, &e, &error) < 0)
        fail_msg("%s", error.text);
    assert_memory_equal(&of_world, &of_text, sizeof of_world);
    rm_world_spec_close(&world);
    free(text);
}

static void plans_are_the_same(void **state)
{
    (void)state;
    plan_is_the_same("treasurehunt");
    plan_is_the_same("pairing");
}

/* What an agent sees is part of what a world is: names, types, lengths. */
static void other_observations_are_not_alike(void **state)
{
    struct rm_world_spec world;
    struct rm_env_observation seen[3];
    (void)state;
    char *text = described("pairing", "", &world);
    struct rm_env_agent agent = world.spec->agent[0];
    struct rm_env_spec other = *world.spec;
    other.agent = &agent;
    assert_int_equal(agent.observations, 3);
    agent.observation = seen;
    for (int i = 0; i < 6; i++) {
        memcpy(seen, world.spec->agent[0].observation, sizeof seen);
        agent.observations = i == 5 ? 2 : 3;
        assert_true(i == 5 || rm_described_alike(world.spec, &other));
        seen[1].name = i == 0 ? "cards" : seen[1].name;
        seen[1].counted ^= i == 1;
        seen[0].shape[1] += i == 2;
        seen[2].high += i == 3;
        seen[2].dtype = i == 4 ? RM_ENV_I32 : seen[2].dtype;
        assert_false(rm_described_alike(world.spec, &other));
    }
    rm_world_spec_close(&world);
    free(text);
}

static void others_are_not_alike(void **state)
{
    struct rm_world_spec world;
    struct rm_env_agent agents[8];
    (void)state;
    char *text = described("treasurehunt", "", &world);
    struct rm_env_spec other = *world.spec;
    assert_true(other.agents <= 8);
    memcpy(agents, other.agent, other.agents * sizeof *agents);
    other.agent = agents;
    assert_true(rm_described_alike(world.spec, &other));
    agents[0].actions++;
    assert_false(rm_described_alike(world.spec, &other));
    agents[0].actions--;
    agents[1].shape[0]++;
    assert_false(rm_described_alike(world.spec, &other));
    agents[1].shape[0]--;
    agents[1].high += 1;
    assert_false(rm_described_alike(world.spec, &other));
    agents[1].high -= 1;
    struct rm_env_figure figures[8];
    assert_in_range(other.figures, 1, 8);
    memcpy(figures, other.figure, other.figures * sizeof *figures);
    other.figure = figures;
    assert_true(rm_described_alike(world.spec, &other));
    figures[0].name = "other";
    assert_false(rm_described_alike(world.spec, &other));
    other.figure = world.spec->figure;
    other.phases++;
    assert_false(rm_described_alike(world.spec, &other));
    rm_world_spec_close(&world);
    free(text);
}

static void damaged(const char *name)
{
    static const char marks[] = "\x01"
                                "0\"{9-";
    struct rm_world_spec world;
    char *text = described(name, "", &world);
    const size_t places = rm_test_effort(4000, 400), bytes = strlen(text);
    const size_t step = bytes > places ? bytes / places : 1;
    unsigned refused = 0;
    for (size_t i = 0; i < bytes; i += step)
        for (size_t m = 0; m < sizeof marks - 1; m++) {
            struct rm_described *read;
            struct rm_error error = {""};
            const char before = text[i];
            text[i] = marks[m];
            const int rc = rm_described_read(&read, text, &error);
            text[i] = before;
            if (rc == 0)
                assert_int_equal(rm_world_check_spec("t", rm_described_spec(read), &error), 0);
            else
                assert_true(error.text[0] && !read);
            refused += rc < 0;
            rm_described_free(read);
        }
    assert_true(refused > 0);
    for (size_t cut = 0; cut < bytes; cut += step) {
        struct rm_described *read;
        struct rm_error error = {""};
        const char before = text[cut];
        text[cut] = '\0';
        assert_int_equal(rm_described_read(&read, text, &error), -EPROTO);
        text[cut] = before;
    }
    rm_world_spec_close(&world);
    free(text);
}

static void what_is_damaged_is_refused_or_sound(void **state)
{
    (void)state;
    damaged("count");
    damaged("treasurehunt");
    damaged("goodhart");
    damaged("pairing");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_world_comes_back),
        cmocka_unit_test(plans_are_the_same),
        cmocka_unit_test(other_observations_are_not_alike),
        cmocka_unit_test(others_are_not_alike),
        cmocka_unit_test(what_is_damaged_is_refused_or_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
