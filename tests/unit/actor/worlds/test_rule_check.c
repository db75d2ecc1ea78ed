/* For a world that breaks one rule, the check reports that rule and the place; for a correct world,
 * none. Crashes, hangs, and what only two processes can tell, by way of ringctl. */
#include "actor/worlds/rule_check.h"
#include "tests/support/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#define BIT(rule)   (1u << RM_RULE_##rule)
#define ALL_BUT_ONE ((1u << RM_RULE_COUNT) - 1 - BIT(PROCESS))

/* By unruly_world.c's `breaks`: the rules that are broken, and what is said of the first. */
static const struct breach {
    unsigned broken;
    const char *words;
} breaches[] = {
    {0, ""},
    {BIT(LAST), "world 0, guesser, step 6: TERMINATED and TRUNCATED"},
    {BIT(LAST), "world 0, guesser, step 6: VOID without TRUNCATED"},
    {BIT(MASK), "step 6: no action of choice 0 is legal, in a last row"},
    {BIT(WRITTEN), "world 0, guesser, step 6: no reward is written"},
    {BIT(WRITTEN), "world 0, guesser, step 2: no flags are written"},
    {BIT(WRITTEN) | BIT(VALUES), "step 0: the row differs with what was in the buffers before"},
    {BIT(SEED), "step 0: the row differs from that of the same seed before"},
    {0, ""}, /* by the clock */
    {0, ""}, /* by the process */
    {BIT(SEED), "step 0: the row differs from that of the same seed before"},
    {BIT(BATCH) | BIT(RESET) | BIT(SAVED), "the row differs between batches of 8 and of 4"},
    {BIT(FIRST), "world 0, guesser, step 0: an episode begins without FIRST"},
    {BIT(FIRST), "step 0: FIRST with a reward of 1"},
    {BIT(VALUES), "world 0, guesser, step 3: the reward is inf"},
    {BIT(VALUES), "step 2: element 0 is code 3; there are 3"},
    {BIT(BOUNDS), "step 0, on writing for phase 0: bytes outside of all buffers"},
    {BIT(BOUNDS), "step 0, on writing for phase 0: bytes outside of all buffers"},
    {BIT(TOGETHER) | BIT(FIRST) | BIT(LENGTH),
     "world 0, guesser, step 7: is in play after a last row that not all agents got"},
    {BIT(LENGTH), "world 0, guesser, step 7: 7 steps into the episode; max_steps is 6"},
    {BIT(IGNORED), "step 7: the row differs with the action that answered a last row"},
    {BIT(RESET), "world 0, guesser, step 0: the row differs after a reset()"},
    {BIT(SAVED), "the row differs after load_state()"},
    {BIT(SAVED), "the row differs after "},
    {BIT(RETURNS), "step 4: step() returned -1: it ?[31mwill not"},
    {0, "state_size() is 0"},
};
enum { BREACHES = sizeof breaches / sizeof breaches[0] };

/* Of figures, numbered from FIGURES. */
static const struct breach figure_breaches[] = {
    {BIT(WRITTEN), "guesser, step 6: figure end is not written in a last row"},
    {BIT(WRITTEN), "guesser, step 0: figure steps is written, but this is no last row"},
    {BIT(VALUES), "guesser, step 6: figure end is 3; its words are 0..2"},
    {BIT(VALUES), "guesser, step 6: figure steps is inf"},
};
enum {
    CLOCK = 8,
    PROCESS = 9,
    REFUSES = 24,
    STATELESS = 25,
    CRASHES = 26,
    HANGS = 27,
    NO_SEED = 28,
    FIGURES = 29
};

static unsigned run(struct rm_rule_check *check, int breaks, unsigned *tried)
{
    struct rm_world world;
    struct rm_world_config config;
    struct rm_error error = {""};
    char option[24];
    unsigned broken = 0;
    snprintf(option, sizeof option, "breaks=%d", breaks);
    rm_test_world_config(&config, "unruly", option);
    if (rm_world_open(&world, "", rm_test_build_path("tests/worlds/unruly.so"), &error) < 0 ||
        rm_rule_check_run(check, &world, &config, 7, 120, &error) < 0)
        fail_msg("%s", error.text);
    rm_world_close(&world);
    *tried = 0;
    for (int r = 0; r < RM_RULE_COUNT; r++) {
        broken |= (check->rule[r].times != 0) << r;
        *tried |= (unsigned)check->rule[r].tried << r;
    }
    return broken;
}

static bool says(const struct rm_rule_check *check, const char *words)
{
    for (int r = 0; r < RM_RULE_COUNT; r++)
        if (strstr(check->rule[r].text, words))
            return true;
    return !words[0];
}

static void every_breach_is_found(void **state)
{
    static struct rm_rule_check check;
    (void)state;
    for (int i = 0; i < BREACHES; i++) {
        unsigned tried;
        const unsigned broken = run(&check, i, &tried);
        if (i == CLOCK) /* unless a second begins meanwhile */
            continue;
        if (broken != breaches[i].broken || !says(&check, breaches[i].words))
            fail_msg("breaks=%d: broken %#x, not %#x; should say: %s", i, broken,
                     breaches[i].broken, breaches[i].words);
        /* Rows that differ by themselves say nothing when they are compared. */
        const unsigned untried = broken & BIT(SEED)
                                     ? BIT(IGNORED) | BIT(BATCH) | BIT(RESET) | BIT(SAVED)
                                 : i == STATELESS ? BIT(SAVED)
                                                  : 0;
        assert_int_equal(tried, ALL_BUT_ONE & ~untried);
        assert_true(check.episodes > 0 || broken & BIT(RETURNS));
    }
}

static void breaches_of_figures_are_found(void **state)
{
    static struct rm_rule_check check;
    unsigned tried;
    (void)state;
    for (int i = 0; i < (int)(sizeof figure_breaches / sizeof figure_breaches[0]); i++) {
        const unsigned broken = run(&check, FIGURES + i, &tried);
        if (broken != figure_breaches[i].broken || !says(&check, figure_breaches[i].words))
            fail_msg("%s: broken %#x", figure_breaches[i].words, broken);
    }
}

/* The same digest in every process, and another one with another seed. */
static void digests_tell_rows_apart(void **state)
{
    static struct rm_rule_check a, b;
    unsigned tried;
    (void)state;
    run(&a, 0, &tried);
    run(&b, 0, &tried);
    assert_true(a.digest == b.digest);
    run(&b, 11, &tried);
    assert_true(a.digest != b.digest);
}

/* ringctl's exit code and all that it prints. */
static int ringctl(const char *world, const char *rest, char *text, size_t bytes)
{
    char command[2048], of[1200];
    snprintf(of, sizeof of, "%s", world); /* which may be the last built path */
    snprintf(command, sizeof command, "%s check-world %s %s 2>&1",
             rm_test_build_path("bin/ringctl"), of, rest);
    FILE *out = popen(command, "r");
    assert_non_null(out);
    text[fread(text, 1, bytes - 1, out)] = '\0';
    const int status = pclose(out);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect(const char *world, const char *rest, int code, const char *words)
{
    char text[8192];
    const int got = ringctl(world, rest, text, sizeof text);
    if (got != code || !strstr(text, words))
        fail_msg("check-world %s %s: exit %d, not %d; should say \"%s\":\n%s", world, rest, got,
                 code, words, text);
}

static void unruly(int breaks, const char *rest, int code, const char *words)
{
    char world[1200], set[128];
    snprintf(world, sizeof world, "%s", rm_test_build_path("tests/worlds/unruly.so"));
    snprintf(set, sizeof set, "--steps 100 --set world.options.breaks=%d %s", breaks, rest);
    expect(world, set, code, words);
}

static void the_command_says_what_it_tried(void **state)
{
    (void)state;
    unruly(0, "", 0, "unruly: 2 agents in 2 phases; 8 worlds, 100 steps, ");
    unruly(0, "", 0, "another process, a second later, gives the same rows");
    unruly(1, "", 4, "step 6: TERMINATED and TRUNCATED");
    unruly(STATELESS, "", 0, "state_size() is 0");
    unruly(REFUSES, "", 4, "step() returned -1: it ?[31mwill not");
    unruly(1, "--json", 4, "\"broken\": ");
    unruly(NO_SEED, "", 0, "Another seed gives the same rows");
    unruly(0, "--json", 0, "\"seedless\": false");
}

static void two_processes_tell_more(void **state)
{
    (void)state;
    unruly(CLOCK, "", 4, "second later, gives the same rows: its rows differ");
    unruly(PROCESS, "", 4, "second later, gives the same rows: its rows differ");
}

static void crashes_and_hangs_are_reported(void **state)
{
    (void)state;
    unruly(CRASHES, "", 4, "SIGABRT in step() of unruly, worlds 0..7");
    unruly(HANGS, "--timeout 1", 4, "it did not return in 1 s: silent in step() of unruly");
    unruly(HANGS, "--timeout 1", 4, "--timeout (1 s); give a longer time, or fewer --steps");
}

static void worlds_are_named_or_paths(void **state)
{
    (void)state;
    expect("cartpole", "--set world.options.max_steps=20", 0, "cartpole: 1 agent in 1 phase");
    expect("cartpol", "", 4, "the nearest is 'cartpole'");
    expect("cartpol", "", 4, "world.python");
    expect("cartpole", "--set world.options.max_step=20", 4, "the nearest is 'max_steps'");
    expect("cartpole", "--set n_envs=20", 4, "\"actor.worlds\" here");
    expect("cartpole", "--steps many", 2, "--steps \"many\": should be a number");
    expect("./nothing.so", "", 4, "cannot be loaded");
    expect(rm_test_build_path("examples/tictactoe.so"), "", 0, "tictactoe: 2 agents in 2 phases");
    expect(rm_test_build_path("tests/worlds/tictactoe_v2.so"), "", 0, "2 agents in 2 phases");
}

static int setup(void **state)
{
    (void)state;
    return setenv("RINGMASTER_LIBEXEC", rm_test_build_path("bin"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_breach_is_found),
        cmocka_unit_test(breaches_of_figures_are_found),
        cmocka_unit_test(digests_tell_rows_apart),
        cmocka_unit_test(the_command_says_what_it_tried),
        cmocka_unit_test(two_processes_tell_more),
        cmocka_unit_test(crashes_and_hangs_are_reported),
        cmocka_unit_test(worlds_are_named_or_paths),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
