/* treasurehunt: its transitions and observations, one by one, from states set by hand. */
#include "actor/worlds/builtin/treasurehunt.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { UP = RM_TREASUREHUNT_UP, DOWN, LEFT, RIGHT };

/* Up to two agents and gems in a world without spawning. */
struct scene {
    uint32_t agents;
    uint8_t agent[2][2]; /* y, x */
    uint32_t gems;
    uint8_t gem[2][2];
};

static uint64_t cell_bit(uint32_t y, uint32_t x)
{
    return (uint64_t)1 << ((y - 1) * 8 + x - 1);
}

static void set(struct rm_test_batch *batch, const struct scene *scene)
{
    struct rm_treasurehunt_state state = {.agents = (uint8_t)scene->agents};
    char options[64];
    snprintf(options, sizeof(options), "spawn=0 agents=%u", scene->agents);
    rm_test_batch_open(batch, "treasurehunt", NULL, options, 1, 0, 1);
    rm_test_batch_reset(batch);
    for (uint32_t a = 0; a < scene->agents; a++) {
        state.y[a] = scene->agent[a][0];
        state.x[a] = scene->agent[a][1];
    }
    for (uint32_t g = 0; g < scene->gems; g++)
        state.gems |= cell_bit(scene->gem[g][0], scene->gem[g][1]);
    assert_int_equal(batch->world.ops->state_size(batch->env), sizeof(state));
    assert_int_equal(batch->world.ops->load_state(batch->env, &state), 0);
}

static struct rm_treasurehunt_state now(const struct rm_test_batch *batch)
{
    struct rm_treasurehunt_state state = {0};
    batch->world.ops->save_state(batch->env, &state);
    return state;
}

/* One turn of every agent, of two at most; their rewards. */
static void turn(struct rm_test_batch *batch, const int actions[2], int rewards[2])
{
    for (uint32_t a = 0; a < 2 && a < batch->spec->agents; a++) {
        batch->actions[a][0] = actions[a];
        rm_test_batch_step(batch, a);
    }
    struct rm_treasurehunt_state state = now(batch);
    for (uint32_t a = 0; a < 2 && a < batch->spec->agents; a++)
        rewards[a] = state.reward[a];
}

/* The network's input of an observation: index c * 25 + r * 5 + k. */
static void decode(const struct rm_test_batch *batch, uint32_t a, float input[125])
{
    const struct rm_env_agent *agent = &batch->spec->agent[a];
    const uint8_t *obs = rm_test_batch_obs(batch, a, 0);
    assert_int_equal(rm_env_obs_features(agent), 125);
    for (uint32_t e = 0; e < 25; e++) {
        assert_true(obs[e] < agent->codes);
        for (uint32_t c = 0; c < 5; c++)
            input[c * 25 + e] = agent->codebook[obs[e] * agent->channels + c];
    }
}

static float sum(const float *input, int from, int count)
{
    float total = 0;
    for (int i = from; i < from + count; i++)
        total += input[i];
    return total;
}

enum { EMPTY = 0, WALL = 25, SAND = 50, GEM = 75, AGENT = 100 };

/* --- moves
 * ---------------------------------------------------------------------------------------- */

struct moves {
    const char *name;
    struct scene scene;
    int actions[3][2]; /* turn, agent */
    int turns;
    int rewards[3][2];
    uint8_t at[2][2]; /* in the end */
    int gems;         /* in the end */
};

static const struct moves table[] = {
    {"1 wall", {1, {{1, 1}}, 0, {{0}}}, {{UP}}, 1, {{-1}}, {{1, 1}}, 0},
    {"2 empty", {1, {{1, 1}}, 0, {{0}}}, {{RIGHT}}, 1, {{0}}, {{1, 2}}, 0},
    {"3 gem",
     {1, {{3, 3}}, 1, {{3, 4}}},
     {{RIGHT}, {LEFT}, {RIGHT}},
     3,
     {{10}, {0}, {0}},
     {{3, 4}},
     0},
    {"4 blocked", {2, {{5, 5}, {5, 6}}, 0, {{0}}}, {{RIGHT, UP}}, 1, {{0, 0}}, {{5, 5}, {4, 6}}, 0},
    {"5 vacated",
     {2, {{5, 5}, {5, 6}}, 0, {{0}}},
     {{LEFT, LEFT}},
     1,
     {{0, 0}},
     {{5, 4}, {5, 5}},
     0},
    {"6 not yet vacated",
     {2, {{5, 6}, {5, 5}}, 0, {{0}}},
     {{LEFT, LEFT}},
     1,
     {{0, 0}},
     {{5, 6}, {5, 4}},
     0},
    {"7 one gem, two takers",
     {2, {{4, 3}, {4, 5}}, 1, {{4, 4}}},
     {{RIGHT, LEFT}},
     1,
     {{10, 0}},
     {{4, 4}, {4, 5}},
     0},
    {"8 corner", {1, {{8, 8}}, 0, {{0}}}, {{DOWN}, {RIGHT}}, 2, {{-1}, {-1}}, {{8, 8}}, 0},
    {"left wall", {1, {{4, 1}}, 1, {{8, 8}}}, {{LEFT}}, 1, {{-1}}, {{4, 1}}, 1},
};

static void test_moves(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        const struct moves *moves = &table[i];
        struct rm_test_batch batch;
        set(&batch, &moves->scene);
        for (int t = 0; t < moves->turns; t++) {
            int rewards[2] = {0};
            turn(&batch, moves->actions[t], rewards);
            for (uint32_t a = 0; a < 2 && a < moves->scene.agents; a++)
                if (rewards[a] != moves->rewards[t][a])
                    fail_msg("%s: turn %d, agent %u: reward %d, not %d", moves->name, t, a,
                             rewards[a], moves->rewards[t][a]);
        }
        struct rm_treasurehunt_state state = now(&batch);
        for (uint32_t a = 0; a < 2 && a < moves->scene.agents; a++)
            if (state.y[a] != moves->at[a][0] || state.x[a] != moves->at[a][1])
                fail_msg("%s: agent %u is at (%u, %u)", moves->name, a, state.y[a], state.x[a]);
        assert_int_equal(__builtin_popcountll(state.gems), moves->gems);
        rm_test_batch_close(&batch);
    }
}

/* 9: one agent at (1,2); uniforms .019, .020, then .5. */
static void test_spawn(void **unused)
{
    (void)unused;
    const uint32_t threshold = rm_treasurehunt_threshold(0.02);
    uint64_t empty = ~cell_bit(1, 2);
    uint32_t words[64];
    for (int d = 0; d < 64; d++)
        words[d] = 0x80000000u;
    words[0] = (uint32_t)(0.019 * 0x1p32);
    words[1] = (uint32_t)ceil(0.02 * 0x1p24) << 8; /* the smallest uniform not below .02 */
    assert_true(rm_float_from_u32(words[1]) >= 0.02);
    assert_int_equal(__builtin_popcountll(empty), 63); /* draws */
    assert_int_equal(rm_treasurehunt_spawn(empty, rm_treasurehunt_hits(words, threshold)),
                     cell_bit(1, 1));

    /* The second draw belongs to (1,3), as the agent's cell draws nothing. */
    words[1] -= 0x100;
    assert_true(rm_float_from_u32(words[1]) < 0.02);
    assert_int_equal(rm_treasurehunt_spawn(empty, rm_treasurehunt_hits(words, threshold)),
                     cell_bit(1, 1) | cell_bit(1, 3));
    /* The 64th draw belongs to no cell; the 63rd to the last. */
    words[0] = words[1] = 0x80000000u;
    words[63] = 0;
    assert_int_equal(rm_treasurehunt_spawn(empty, rm_treasurehunt_hits(words, threshold)), 0);
    words[62] = 0;
    assert_int_equal(rm_treasurehunt_spawn(empty, rm_treasurehunt_hits(words, threshold)),
                     cell_bit(8, 8));

    assert_int_equal(rm_treasurehunt_threshold(0), 0);
    words[0] = 0xffffffffu;
    assert_int_equal(rm_treasurehunt_hits(words, rm_treasurehunt_threshold(1)), ~(uint64_t)0);
}

/* A gem that has just spawned can be collected in the same turn: with certainty of spawning, all
 * cells but the agents' are gems when agent 0 first observes. */
static void test_spawn_comes_first(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "treasurehunt", NULL, "spawn=1", 3, 0, 4);
    rm_test_batch_reset(&batch);
    struct rm_treasurehunt_state state[4];
    batch.world.ops->save_state(batch.env, state);
    for (int w = 0; w < 4; w++)
        assert_int_equal(__builtin_popcountll(state[w].gems), 59);
    rm_test_batch_close(&batch);
}

/* --- observations
 * --------------------------------------------------------------------------------- */

/* 10: alone in the corner (moving up fails, so the next observation is of the same state). */
static void test_corner(void **unused)
{
    (void)unused;
    static const char *wall[5] = {"11111", "12222", "12000", "12000", "12000"};
    struct rm_test_batch batch;
    set(&batch, &(struct scene){1, {{1, 1}}, 0, {{0}}});
    int rewards[2] = {0};
    float input[125];
    turn(&batch, (int[2]){UP}, rewards);
    decode(&batch, 0, input);
    for (int r = 0; r < 5; r++)
        for (int k = 0; k < 5; k++) {
            assert_float_equal(input[WALL + 5 * r + k], wall[r][k] - '0', 0);
            assert_float_equal(input[SAND + 5 * r + k], r >= 2 && k >= 2, 0);
        }
    assert_float_equal(sum(input, WALL, 25), 23, 0);
    assert_float_equal(input[112], 1, 0);
    assert_float_equal(sum(input, EMPTY, 25), 0, 0);
    assert_float_equal(sum(input, 0, 125), 33, 0);
    rm_test_batch_close(&batch);
}

/* 11: at (2,7), reached from (3,7). */
static void test_right_edge(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    set(&batch, &(struct scene){1, {{3, 7}}, 0, {{0}}});
    int rewards[2] = {0};
    float input[125];
    turn(&batch, (int[2]){UP}, rewards);
    decode(&batch, 0, input);
    for (int r = 0; r < 5; r++)
        for (int k = 0; k < 5; k++)
            assert_float_equal(input[WALL + 5 * r + k], r == 0 || k == 4 ? 2 : 0, 0);
    assert_float_equal(sum(input, WALL, 25), 18, 0);
    assert_float_equal(sum(input, SAND, 25), 16, 0);
    assert_float_equal(sum(input, 0, 125), 35, 0);
    rm_test_batch_close(&batch);
}

/* 12: agents at (4,4) and (3,5), gems at (6,2) and (4,6), reached by a move each. */
static void test_open_field(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    set(&batch, &(struct scene){2, {{3, 4}, {3, 6}}, 2, {{6, 2}, {4, 6}}});
    int rewards[2] = {0};
    float input[125];
    turn(&batch, (int[2]){DOWN, LEFT}, rewards);
    decode(&batch, 0, input);
    assert_float_equal(sum(input, SAND, 25), 25, 0);
    static const int ones[] = {89, 95, 108, 112};
    for (int i = 0; i < 4; i++)
        assert_float_equal(input[ones[i]], 1, 0);
    assert_float_equal(sum(input, GEM, 50), 4, 0);
    assert_float_equal(sum(input, 0, 125), 29, 0);
    rm_test_batch_close(&batch);
}

/* Agent 1 sees what agent 0 has just done. */
static void test_later_agents_see_earlier_moves(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    set(&batch, &(struct scene){2, {{4, 4}, {4, 6}}, 1, {{4, 5}}});
    float input[125];
    batch.actions[0][0] = RIGHT;
    rm_test_batch_step(&batch, 0);
    decode(&batch, 1, input);
    assert_float_equal(input[AGENT + 2 * 5 + 1], 1, 0); /* at (4,5) now */
    assert_float_equal(input[AGENT + 2 * 5 + 0], 0, 0);
    assert_float_equal(sum(input, GEM, 25), 0, 0);
    rm_test_batch_close(&batch);
}

/* --- episodes
 * ------------------------------------------------------------------------------------- */

static void test_spec(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "treasurehunt", NULL, NULL, 1, 0, 1);
    assert_int_equal(batch.spec->agents, 5);
    assert_int_equal(batch.spec->phases, 5);
    assert_int_equal(batch.spec->max_steps, 50);
    assert_float_equal(batch.spec->score_high, 590, 1e-9);
    for (uint32_t a = 0; a < 5; a++) {
        assert_int_equal(batch.spec->agent[a].phase, a);
        assert_int_equal(batch.spec->agent[a].actions, 4);
        assert_int_equal(rm_env_obs_bytes(&batch.spec->agent[a]), 25);
    }
    rm_test_batch_close(&batch);
}

/* 50 turns, then every agent gets one row with the reward of its last move, then a new episode. */
static void check_episode(const char *options, uint8_t ending)
{
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "treasurehunt", NULL, options, 5, 0, 2);
    rm_test_batch_reset(&batch);
    for (int row = 0; row < 153; row++) {
        for (uint32_t a = 0; a < 5; a++) {
            uint8_t expected = row % 51 == 0 ? RM_ENV_FIRST : row % 51 == 50 ? ending : 0;
            for (uint32_t w = 0; w < 2; w++) {
                struct rm_treasurehunt_state state[2];
                if (a == 0) {
                    batch.world.ops->save_state(batch.env, state);
                    assert_int_equal(state[w].episode, row / 51);
                    assert_int_equal(state[w].turn, row % 51);
                }
                assert_int_equal(batch.out[a].flags[w], expected);
                float reward = batch.out[a].reward[w];
                assert_true(reward == -1 || reward == 0 || reward == 10);
                if (row % 51 == 0)
                    assert_float_equal(reward, 0, 0);
            }
            if (expected == ending) /* ignored, whatever it is */
                batch.actions[a][0] = batch.actions[a][1] = 77;
            else
                rm_test_batch_draw(&batch, 9, 0, a, (uint64_t)row);
            rm_test_batch_step(&batch, a);
        }
    }
    rm_test_batch_close(&batch);
}

static void test_episode(void **unused)
{
    (void)unused;
    check_episode(NULL, RM_ENV_TRUNCATED | RM_ENV_VOID);
    check_episode("final_observation=1", RM_ENV_TRUNCATED);
}

/* The reward of turn 50 is in the last row. */
static void test_last_reward(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    struct rm_treasurehunt_state state = {0};
    set(&batch, &(struct scene){2, {{1, 1}, {5, 5}}, 1, {{5, 6}}});
    batch.world.ops->save_state(batch.env, &state);
    state.turn = 49;
    assert_int_equal(batch.world.ops->load_state(batch.env, &state), 0);
    batch.actions[0][0] = UP;
    batch.actions[1][0] = RIGHT;
    rm_test_batch_step(&batch, 0);
    rm_test_batch_step(&batch, 1);
    assert_int_equal(batch.out[0].flags[0], RM_ENV_TRUNCATED | RM_ENV_VOID);
    assert_float_equal(batch.out[0].reward[0], -1, 0);
    rm_test_batch_step(&batch, 0);
    assert_int_equal(batch.out[1].flags[0], RM_ENV_TRUNCATED | RM_ENV_VOID);
    assert_float_equal(batch.out[1].reward[0], 10, 0);
    rm_test_batch_step(&batch, 1);
    assert_int_equal(batch.out[0].flags[0], RM_ENV_FIRST);
    assert_int_equal(now(&batch).episode, state.episode + 1);
    rm_test_batch_close(&batch);
}

/* --- refusals
 * ------------------------------------------------------------------------------------- */

static void test_refusals(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    set(&batch, &(struct scene){2, {{4, 4}, {4, 6}}, 1, {{4, 5}}});
    const struct rm_env_ops *ops = batch.world.ops;
    batch.actions[0][0] = 4;
    assert_true(ops->step(batch.env, 0, batch.const_actions, batch.out) < 0);
    assert_non_null(strstr(ops->last_error(batch.env), "action 4"));

    const struct rm_treasurehunt_state good = now(&batch);
    struct rm_treasurehunt_state bad[6] = {good, good, good, good, good, good};
    bad[0].agents = 3;
    bad[1].x[1] = 9;                  /* in the wall */
    bad[2].gems |= cell_bit(4, 4);    /* under an agent */
    bad[3].y[1] = 4, bad[3].x[1] = 4; /* on an agent */
    bad[4].turn = 51;
    bad[5].last = 1; /* in the first turn */
    for (int i = 0; i < 6; i++)
        assert_true(ops->load_state(batch.env, &bad[i]) < 0);
    struct rm_treasurehunt_state after = now(&batch);
    assert_memory_equal(&after, &good, sizeof(good));
    rm_test_batch_close(&batch);

    struct rm_world world;
    struct rm_world_config config;
    struct rm_env *env;
    struct rm_error error;
    rm_test_world_config(&config, "treasurehunt", "size=4 agents=5");
    assert_int_equal(rm_world_open(&world, "treasurehunt", "", &error), 0);
    assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
    assert_non_null(strstr(error.text, "5 agents do not fit into the 4 cells"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_spawn),
        cmocka_unit_test(test_spawn_comes_first),
        cmocka_unit_test(test_corner),
        cmocka_unit_test(test_right_edge),
        cmocka_unit_test(test_open_field),
        cmocka_unit_test(test_later_agents_see_earlier_moves),
        cmocka_unit_test(test_spec),
        cmocka_unit_test(test_episode),
        cmocka_unit_test(test_last_reward),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
