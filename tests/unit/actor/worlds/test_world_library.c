/* worlds.c: finding worlds, refusing what is wrong with a message that says what to do; and the
 * worked example, loaded from its shared object and played by the rules. */
#include "tests/support/batch.h"

#include "actor/worlds/described.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

static struct rm_error error;

static void says(const char *words)
{
    if (!strstr(error.text, words))
        fail_msg("'%s' does not say '%s'", error.text, words);
}

/* --- built-in worlds
 * ------------------------------------------------------------------------------ */

static void test_names(void **unused)
{
    (void)unused;
    struct rm_world world;
    for (size_t i = 0; rm_builtin_worlds[i]; i++) {
        assert_int_equal(rm_world_open(&world, rm_builtin_worlds[i]->name, "", &error), 0);
        assert_ptr_equal(world.ops, rm_builtin_worlds[i]);
        assert_null(world.library);
        rm_world_close(&world);
    }
    static const struct {
        const char *wrong, *nearest;
    } names[] = {{"cartpol", "'cartpole'"},
                 {"treasure_hunt", "'treasurehunt'"},
                 {"mountain_car", "'mountaincar'"},
                 {"counts", "'count'"},
                 {"acrobt", "'acrobot'"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(rm_world_open(&world, names[i].wrong, "", &error), -ENOENT);
        says(names[i].nearest);
        says("world.library");
    }
    char longest[RM_TEXT_MAX * 4];
    memset(longest, 'x', sizeof(longest));
    longest[sizeof(longest) - 1] = 0;
    assert_int_equal(rm_world_open(&world, longest, "", &error), -ENOENT);
    assert_int_equal(rm_world_open(&world, "", "", &error), -ENOENT);
}

static int create_with(const char *options)
{
    struct rm_world world;
    struct rm_world_config config;
    struct rm_env *env = NULL;
    assert_int_equal(rm_world_open(&world, "treasurehunt", "", &error), 0);
    rm_test_world_config(&config, "treasurehunt", options);
    int rc = rm_world_create(&world, &config, 1, 0, 2, &env, &error);
    assert_int_equal(rc == 0, env != NULL);
    if (env)
        world.ops->close(env);
    return rc;
}

static void test_options(void **unused)
{
    (void)unused;
    assert_int_equal(create_with("turns=20 spawn=0.5"), 0);
    assert_int_equal(create_with("turn=20"), -EINVAL);
    says("world.options.turn");
    says("nearest is 'turns'");
    assert_int_equal(create_with("final_obs=1"), -EINVAL);
    says("'final_observation'");
    assert_int_equal(create_with("spawn=1.5"), -ERANGE);
    says("1.5");
    says("0..1");
    assert_int_equal(create_with("agents=0"), -ERANGE);
    assert_int_equal(create_with("agents=2.5"), -EINVAL);
    says("whole number");

    /* All that is wrong at once, and nothing else: a line for each. */
    assert_int_equal(create_with("turns=1.5 turn=3 size=99 spawn=0.5 agents=2.5 spawn_=1"),
                     -EINVAL);
    says("world.options.turns is 1.5, must be a whole number\n");
    says("\nworld.options.turn: the world 'treasurehunt' has no such option");
    says("\nworld.options.size is 99, must be 4..10");
    says("world.options.agents is 2.5, must be a whole number\n");
    says("\nworld.options.spawn_: the world");
    assert_null(strstr(error.text, "options.spawn is"));
    assert_int_equal(create_with("turns=1.5 spawn=0.5 agents=2.5"), -EINVAL);
    says("world.options.turns is 1.5, must be a whole number\n");
    says("\nworld.options.agents is 2.5, must be a whole number");

    struct rm_world world;
    struct rm_world_config config;
    struct rm_env *env;
    rm_world_open(&world, "count", "", &error);
    rm_test_world_config(&config, "count", NULL);
    assert_int_equal(rm_world_create(&world, &config, 1, 0, 0, &env, &error), -EINVAL);
    says("0 worlds");
}

static void test_sizes(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t dtype;
        size_t bytes;
        uint32_t features;
    } sizes[] = {{RM_ENV_U8, 12, 12},  {RM_ENV_I8, 12, 12},  {RM_ENV_I16, 24, 12},
                 {RM_ENV_I32, 48, 12}, {RM_ENV_F32, 48, 12}, {RM_ENV_CODE8, 12, 60}};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct rm_env_agent agent = {
            .dtype = sizes[i].dtype, .dims = 3, .shape = {2, 3, 2}, .codes = 4, .channels = 5};
        assert_int_equal(rm_env_obs_bytes(&agent), sizes[i].bytes);
        assert_int_equal(rm_env_obs_features(&agent), sizes[i].features);
    }
}

/* --- broken libraries
 * ----------------------------------------------------------------------------- */

static void test_broken_libraries(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        int at_create, code;
        const char *words;
    } broken[] = {
        {"no_entry", 0, -EPROTO, "does not export rm_env_entry"},
        {"null_table", 0, -EPROTO, "returned NULL"},
        {"old_abi", 0, -EPROTO, "compile it against this version's actor/env.h"},
        {"short_table", 0, -EPROTO, "struct_size"},
        {"no_step", 0, -EPROTO, "rm_env_ops.step is NULL"},
        {"bad_dtype", 1, -EPROTO, "agent 0 has an unknown dtype"},
        {"bad_phase", 1, -EPROTO, "agent 0 acts in a phase that the world does not have"},
        {"idle_phase", 1, -EPROTO, "no agent acts in phase 1"},
        {"no_actions", 1, -EPROTO, "agent 0 must have 1 to 65536 actions, or boxes"},
        {"many_choices", 1, -EPROTO, "agent 0 must have at most 8 choices"},
        {"empty_choice", 1, -EPROTO, "1 to 65536 actions in every choice"},
        {"short_choices", 1, -EPROTO, "as many actions as its choices have together"},
        {"no_reason", 1, -EINVAL, "gave no reason"},
        {"several_observations", 1, -EPROTO, "agent 0 has no list of its observations"},
        {"observation_twice", 1, -EPROTO, "agent 0 has two observations of one name"},
        {"observation_name", 1, -EPROTO, "agent 0 has an observation without a name"},
        {"observation_count", 1, -EPROTO, "whose `counted` is neither 0 nor 1"},
        {"box", 1, -EPROTO, "agent 0 has a box without finite bounds, the lower below the upper"},
        {"reversed_box", 1, -EPROTO, "agent 0 has a box without finite bounds"},
        {"unlisted_box", 1, -EPROTO, "agent 0 must have at most 1024 boxes, and a list of them"},
        {"figure_name", 1, -EPROTO, "figure 0 has no name, or one that cannot be"},
        {"figure_twice", 1, -EPROTO, "figure 1 has the name of another"},
        {"empty_words", 1, -EPROTO, "figure 1 has an empty list of words"},
        {"v2_short_table", 0, -EPROTO, "= 96 in version 2"},
        {"v2_no_step", 0, -EPROTO, "rm_env_ops.step is NULL"},
        {"v2_bad_dtype", 1, -EPROTO, "agent 0 has an unknown dtype"},
        {"v2_old_spec", 1, -EINVAL, "its spec has ABI version 1 and struct_size 80, must be 2"},
    };
    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        char name[64];
        snprintf(name, sizeof(name), "tests/worlds/%s.so", broken[i].name);
        struct rm_world world;
        int rc = rm_world_open(&world, "broken", rm_test_build_path(name), &error);
        if (broken[i].at_create) {
            if (rc != 0)
                fail_msg("%s", error.text);
            struct rm_world_config config;
            struct rm_env *env;
            rm_test_world_config(&config, "broken", NULL);
            rc = rm_world_create(&world, &config, 1, 0, 1, &env, &error);
            assert_null(env);
            rm_world_close(&world);
        }
        assert_int_equal(rc, broken[i].code);
        assert_null(world.ops);
        assert_null(world.library);
        says(broken[i].words);
    }
}

static void test_paths(void **unused)
{
    (void)unused;
    struct rm_world world;
    assert_int_equal(rm_world_open(&world, "x", "/no/such/file.so", &error), -ENOENT);
    says("/no/such/file.so");
    assert_null(strstr(error.text, "working directory"));
    /* Not a library of the system: a name without a slash is a file here. */
    assert_int_equal(rm_world_open(&world, "x", "libm.so.6", &error), -ENOENT);
    char here[PATH_MAX];
    assert_non_null(getcwd(here, sizeof here));
    says("(relative paths start at the working directory, /");
    says(here);
    const char *path = rm_test_build_path("examples/tictactoe.so");
    assert_int_equal(rm_world_open(&world, "chess", path, &error), -ENOENT);
    says("holds the world 'tictactoe'");
    assert_int_equal(rm_world_open(&world, "tictactoe", path, &error), 0);
    assert_non_null(world.library);
    struct rm_world_config config;
    struct rm_env *env;
    rm_test_world_config(&config, "tictactoe", "drawn=1");
    assert_int_equal(rm_world_create(&world, &config, 1, 0, 1, &env, &error), -EINVAL);
    says("nearest is 'draw'");
    rm_world_close(&world);
    assert_null(world.library);
}

/* --- the worked example
 * --------------------------------------------------------------------------- */

static int won(const int board[9], int who)
{
    for (int i = 0; i < 3; i++)
        if ((board[3 * i] == who && board[3 * i + 1] == who && board[3 * i + 2] == who) ||
            (board[i] == who && board[i + 3] == who && board[i + 6] == who))
            return 1;
    return board[4] == who &&
           ((board[0] == who && board[8] == who) || (board[2] == who && board[6] == who));
}

/* A referee of its own follows every game: boards, masks, rewards and ends must be as it says. */
static void test_tictactoe(void **unused)
{
    (void)unused;
    enum { WORLDS = 7, STEPS = 4000 };
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "tictactoe", rm_test_build_path("examples/tictactoe.so"),
                       "win=2 draw=0.25", 1, 0, WORLDS);
    rm_test_batch_reset(&batch);
    int board[WORLDS][9] = {{0}}, over[WORLDS] = {0}, outcomes[3] = {0};
    float due[WORLDS][2] = {{0}};
    uint8_t last[WORLDS] = {0};
    for (int t = 0; t < STEPS; t++) {
        for (uint32_t w = 0; w < WORLDS; w++) {
            if (last[w]) { /* a new game */
                memset(board[w], 0, sizeof(board[w]));
                over[w] = last[w] = 0;
            }
            last[w] = (uint8_t)over[w];
        }
        for (uint32_t a = 0; a < 2; a++) {
            rm_test_batch_draw(&batch, 2, 0, a, (uint64_t)t);
            for (uint32_t w = 0; w < WORLDS; w++) {
                const uint8_t *obs = rm_test_batch_obs(&batch, a, w);
                const uint8_t *mask = rm_test_batch_mask(&batch, a, w);
                for (int c = 0; c < 9; c++) {
                    int mark = board[w][c];
                    assert_int_equal(obs[c], mark == 0 ? 0 : mark == (int)a + 1 ? 1 : 2);
                    assert_int_equal(mask[c], over[w] || mark == 0);
                }
                assert_int_equal((batch.out[a].flags[w] & RM_ENV_TERMINATED) != 0, last[w]);
                assert_float_equal(batch.out[a].reward[w], due[w][a], 0);
                due[w][a] = 0;
                if (over[w])
                    continue;
                int cell = batch.actions[a][w], marks = 0;
                assert_int_equal(board[w][cell], 0);
                board[w][cell] = (int)a + 1;
                for (int c = 0; c < 9; c++)
                    marks += board[w][c] != 0;
                int win = won(board[w], (int)a + 1);
                over[w] = win || marks == 9;
                due[w][a] = win ? 2.0f : over[w] ? 0.25f : 0;
                due[w][!a] += win ? -2.0f : over[w] ? 0.25f : 0;
                if (over[w])
                    outcomes[win ? a : 2]++;
            }
            rm_test_batch_step(&batch, a);
        }
    }
    /* Under random play x wins 737/1260, o 121/420, and 8/63 are drawn. */
    double games = outcomes[0] + outcomes[1] + outcomes[2];
    assert_true(games > 4000);
    assert_float_equal(outcomes[0] / games, 737.0 / 1260, 0.03);
    assert_float_equal(outcomes[1] / games, 121.0 / 420, 0.03);
    assert_float_equal(outcomes[2] / games, 8.0 / 63, 0.02);

    /* Only legal moves. */
    rm_test_batch_reset(&batch);
    for (uint32_t w = 0; w < WORLDS; w++)
        batch.actions[0][w] = batch.actions[1][w] = 4;
    rm_test_batch_step(&batch, 0);
    assert_true(batch.world.ops->step(batch.env, 1, batch.const_actions, batch.out) < 0);
    assert_non_null(strstr(batch.world.ops->last_error(batch.env), "may not play 4"));
    rm_test_batch_close(&batch);
}

/* Rows of a library's worlds from the n-th step on, and its state then. */
static void play(struct rm_test_batch *batch, uint64_t from, uint64_t steps, uint64_t *digest)
{
    for (uint64_t t = from; t < from + steps; t++)
        for (uint32_t a = 0; a < 2; a++) {
            rm_test_batch_draw(batch, 3, 0, a, t);
            rm_test_batch_step(batch, a);
            for (uint32_t w = 0; w < batch->worlds; w++) {
                const uint8_t *obs = rm_test_batch_obs(batch, !a, w);
                const uint8_t *mask = rm_test_batch_mask(batch, !a, w);
                *digest = *digest * 31 + batch->out[!a].flags[w];
                *digest = *digest * 31 + (uint64_t)(int64_t)(4 * batch->out[!a].reward[w]);
                for (int c = 0; c < 9; c++)
                    *digest = (*digest * 31 + obs[c]) * 31 + mask[c];
            }
        }
}

/* A shared object of version 2 does what it does compiled against this version: description,
 * options, rows, masks, messages and states, which fit the other. */
static void test_version_2(void **unused)
{
    enum { WORLDS = 5, STEPS = 500 };
    static const char *const library[] = {"examples/tictactoe.so", "tests/worlds/tictactoe_v2.so"};
    struct rm_test_batch batch[2];
    uint64_t digest[2] = {0, 0};
    char state[2][1024];
    (void)unused;
    for (int i = 0; i < 2; i++) {
        struct rm_test_batch *b = &batch[i];
        rm_test_batch_open(b, "tictactoe", rm_test_build_path(library[i]),
                           "win=2 draw=0.25 opening=1", 7, 3, WORLDS);
        assert_int_equal(b->world.adapted, i == 1);
        rm_test_batch_reset(b);
        play(b, 0, STEPS, &digest[i]);
        assert_in_range(b->world.ops->state_size(b->env), 1, sizeof state[i]);
        assert_int_equal(b->world.ops->save_state(b->env, state[i]), 0);
    }
    assert_true(rm_described_alike(batch[0].spec, batch[1].spec));
    assert_int_equal(batch[1].spec->max_steps, 5);
    assert_float_equal(batch[1].spec->score_high, 0.5, 0);
    assert_string_equal(batch[1].world.ops->options[1].doc, "reward for a draw");
    assert_null(batch[1].world.ops->options[3].key);
    assert_true(digest[0] == digest[1]);
    assert_memory_equal(state[0], state[1], batch[0].world.ops->state_size(batch[0].env));
    for (int i = 0; i < 2; i++) {
        struct rm_test_batch *b = &batch[i];
        assert_int_equal(b->world.ops->load_state(b->env, state[!i]), 0);
        digest[i] = 0;
        play(b, STEPS, STEPS, &digest[i]);
        rm_test_batch_reset(b);
        for (uint32_t w = 0; w < WORLDS; w++)
            b->actions[0][w] = 9;
        assert_true(b->world.ops->step(b->env, 0, b->const_actions, b->out) < 0);
        assert_string_equal(b->world.ops->last_error(b->env), "world 3: agent 0 may not play 9");
        rm_test_batch_close(b);
    }
    assert_true(digest[0] == digest[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_options),
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_broken_libraries),
        cmocka_unit_test(test_paths),     cmocka_unit_test(test_tictactoe),
        cmocka_unit_test(test_version_2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
