/* sokoban: moves, pushes, masks and rewards on levels drawn by hand; and levels made by the world,
 * of which every one is solved here by search. */
#include "actor/worlds/builtin/sokoban.h"
#include "tests/support/batch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* --- levels drawn by hand: # wall, . goal, $ box, * box on goal, @ keeper, + keeper on goal ------
 */

static const char signs[RM_SOKOBAN_CODES] = " .$*@+#";

static void draw(struct rm_test_batch *batch, const char *const *rows)
{
    struct rm_sokoban_world world;
    assert_int_equal(batch->world.ops->state_size(batch->env), sizeof(world));
    batch->world.ops->save_state(batch->env, &world);
    world.level = (struct rm_sokoban_level){0};
    for (int y = 0; y < 5; y++)
        for (int x = 0; x < 5; x++) {
            uint64_t bit = (uint64_t)1 << (8 * y + x);
            char sign = rows[y + 1][x + 1];
            world.level.floor |= sign != '#' ? bit : 0;
            world.level.goals |= strchr(".*+", sign) ? bit : 0;
            world.level.boxes |= strchr("$*", sign) ? bit : 0;
            world.level.keeper |= strchr("@+", sign) ? bit : 0;
        }
    if (batch->world.ops->load_state(batch->env, &world) != 0)
        fail_msg("%s", batch->world.ops->last_error(batch->env));
}

static void looks(const struct rm_test_batch *batch, const char *const *rows)
{
    const uint8_t *obs = rm_test_batch_obs(batch, 0, 0);
    for (int y = 0; y < 7; y++)
        for (int x = 0; x < 7; x++)
            if (signs[obs[7 * y + x]] != rows[y][x])
                fail_msg("'%c' at (%d, %d), not '%c'", signs[obs[7 * y + x]], y, x, rows[y][x]);
}

enum { UP, DOWN, LEFT, RIGHT };

static void test_moves(void **unused)
{
    (void)unused;
    static const struct {
        const char *before[7], *after[7];
        int action;
        double reward;
        uint8_t flags, mask[4]; /* of the position before, if it is not over */
    } known[] = {
        {{"#######", "#     #", "#     #", "#  @  #", "# $ . #", "# $ . #", "#######"},
         {"#######", "#     #", "#  @  #", "#     #", "# $ . #", "# $ . #", "#######"},
         UP,
         -0.1,
         0,
         {1, 1, 1, 1}},
        /* pushing, and what stands in the way of it */
        {{"#######", "#     #", "#     #", "# @$  #", "# $ . #", "#   . #", "#######"},
         {"#######", "#     #", "#     #", "#  @$ #", "# $ . #", "#   . #", "#######"},
         RIGHT,
         -0.1,
         0,
         {1, 1, 1, 1}},
        {{"#######", "#     #", "#     #", "#@$$  #", "#   . #", "#   . #", "#######"},
         {"#######", "#     #", "#@    #", "# $$  #", "#   . #", "#   . #", "#######"},
         UP,
         -0.1,
         0,
         {1, 1, 0, 0}},
        {{"#######", "##$   #", "# @$# #", "#     #", "#   . #", "#   . #", "#######"},
         {"#######", "##$   #", "#@ $# #", "#     #", "#   . #", "#   . #", "#######"},
         LEFT,
         -0.1,
         0,
         {0, 1, 1, 0}},
        /* onto a goal, off it, from goal to goal */
        {{"#######", "#     #", "#     #", "# @$. #", "# $ . #", "#     #", "#######"},
         {"#######", "#     #", "#     #", "#  @* #", "# $ . #", "#     #", "#######"},
         RIGHT,
         0.9,
         0,
         {1, 1, 1, 1}},
        {{"#######", "#     #", "#     #", "# @*  #", "# $ . #", "#     #", "#######"},
         {"#######", "#     #", "#     #", "#  +$ #", "# $ . #", "#     #", "#######"},
         RIGHT,
         -1.1,
         0,
         {1, 1, 1, 1}},
        {{"#######", "#     #", "# $ . #", "#   * #", "# $ + #", "#     #", "#######"},
         {"#######", "#     #", "# $ * #", "#   + #", "# $ . #", "#     #", "#######"},
         UP,
         -0.1,
         0,
         {1, 1, 1, 1}},
        /* the last one */
        {{"#######", "#     #", "#     #", "#  $@ #", "# .   #", "#     #", "#######"},
         {"#######", "#     #", "#     #", "# $@  #", "# .   #", "#     #", "#######"},
         LEFT,
         -0.1,
         0,
         {1, 1, 1, 1}},
        {{"#######", "#     #", "# @   #", "# $ * #", "# .   #", "#     #", "#######"},
         {"#######", "#     #", "#     #", "# @ * #", "# *   #", "#     #", "#######"},
         DOWN,
         10.9,
         RM_ENV_TERMINATED,
         {1, 1, 1, 1}},
        /* at the side: nothing gets through */
        {{"#######", "#@    #", "#$    #", "# $   #", "#   . #", "#   . #", "#######"},
         {"#######", "#     #", "#@    #", "#$$   #", "#   . #", "#   . #", "#######"},
         DOWN,
         -0.1,
         0,
         {0, 1, 0, 1}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, "sokoban", NULL, NULL, 1, 3, 1);
        rm_test_batch_reset(&batch);
        for (int d = 0; d < 4; d++) {
            draw(&batch, known[i].before);
            batch.actions[0][0] = d;
            int rc = batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out);
            assert_int_equal(rc, known[i].mask[d] ? 0 : -EINVAL);
        }
        draw(&batch, known[i].before);
        batch.actions[0][0] = known[i].action;
        rm_test_batch_step(&batch, 0);
        looks(&batch, known[i].after);
        assert_float_equal(batch.out[0].reward[0], known[i].reward, 1e-6);
        assert_int_equal(batch.out[0].flags[0], known[i].flags);
        rm_test_batch_close(&batch);
    }
}

/* Masks are what can be done; without them the rest does nothing, at the price of a step. */
static void test_masks(void **unused)
{
    (void)unused;
    static const char *const rows[] = {"#######", "#     #", "#@$$  #", "#     #",
                                       "#   . #", "#   . #", "#######"};
    static const uint8_t after_up[4] = {0, 1, 0, 1}, after_down[4] = {1, 1, 0, 0};
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "sokoban", NULL, NULL, 1, 3, 1);
    rm_test_batch_reset(&batch);
    draw(&batch, rows);
    batch.actions[0][0] = UP;
    rm_test_batch_step(&batch, 0);
    assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), after_up, 4);
    batch.actions[0][0] = DOWN;
    rm_test_batch_step(&batch, 0);
    assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), after_down, 4);
    batch.actions[0][0] = RIGHT;
    assert_int_equal(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out), -EINVAL);
    assert_string_equal(batch.world.ops->last_error(batch.env),
                        "action 3 in world 3 is masked out");
    rm_test_batch_close(&batch);

    rm_test_batch_open(&batch, "sokoban", NULL, "mask=0", 1, 3, 1);
    assert_int_equal(batch.spec->agent[0].has_mask, 0);
    rm_test_batch_reset(&batch);
    draw(&batch, rows);
    batch.actions[0][0] = RIGHT;
    rm_test_batch_step(&batch, 0);
    looks(&batch, rows);
    assert_float_equal(batch.out[0].reward[0], -0.1, 1e-6);
    rm_test_batch_close(&batch);
}

static void test_channels(void **unused)
{
    (void)unused;
    static const float expected[RM_SOKOBAN_CODES][4] = {
        {0, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 1, 1, 0},
        {0, 0, 0, 1}, {0, 1, 0, 1}, {1, 0, 0, 0},
    };
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "sokoban", NULL, NULL, 1, 0, 1);
    const struct rm_env_agent *agent = &batch.spec->agent[0];
    assert_int_equal(agent->codes, RM_SOKOBAN_CODES);
    assert_int_equal(agent->channels, 4);
    assert_memory_equal(agent->codebook, expected, sizeof(expected));
    rm_test_batch_close(&batch);
}

/* --- levels of the world's making ------------------------------------------------------------- */

enum { TABLE = 1 << 18 };

/* Positions met in a search: boxes and keeper, with the least moves. */
static struct {
    uint64_t boxes, keeper;
    uint32_t moves;
} queue[TABLE];
static uint32_t slot[2 * TABLE]; /* 1 + index into queue, by hash */

static int meet(const struct rm_sokoban_level *level, uint32_t moves, uint32_t *tail)
{
    uint64_t hash = (level->boxes * 0x9e3779b97f4a7c15u ^ level->keeper) * 0xbf58476d1ce4e5b9u;
    uint32_t at = (uint32_t)(hash >> 45);
    for (; slot[at]; at = (at + 1) % (2 * TABLE))
        if (queue[slot[at] - 1].boxes == level->boxes &&
            queue[slot[at] - 1].keeper == level->keeper)
            return 1;
    if (*tail == TABLE)
        return 0;
    queue[*tail].boxes = level->boxes;
    queue[*tail].keeper = level->keeper;
    queue[*tail].moves = moves;
    slot[at] = ++*tail;
    return 1;
}

/* The least number of moves that solve a level, by breadth-first search; -1: none do. */
static int solve(const struct rm_sokoban_level *level)
{
    uint32_t tail = 0;
    memset(slot, 0, sizeof(slot));
    meet(level, 0, &tail);
    for (uint32_t head = 0; head < tail; head++) {
        struct rm_sokoban_level at = *level;
        at.boxes = queue[head].boxes;
        at.keeper = queue[head].keeper;
        if (at.boxes == at.goals)
            return (int)queue[head].moves;
        for (int d = 0; d < 4; d++) {
            struct rm_sokoban_level next = at;
            if (rm_sokoban_move(&next, d) && !meet(&next, queue[head].moves + 1, &tail))
                fail_msg("the table is too small");
        }
    }
    return -1;
}

static void test_solvable(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        uint32_t levels, boxes;
    } kinds[] = {
        {NULL, 300, 2},
        {"size=5 boxes=1 walls=0 pulls=2", 300, 1},
        {"size=5 boxes=3 walls=0.5 pulls=1", 200, 3}, /* hardly any can be drawn: the plain one */
        {"size=8 boxes=2 walls=0.3 pulls=40", 60, 2},
        {"size=10 boxes=1 walls=0.4 pulls=100", 100, 1},
    };
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, "sokoban", NULL, kinds[k].options, 5, 0, kinds[k].levels);
        rm_test_batch_reset(&batch);
        struct rm_sokoban_world *world = calloc(kinds[k].levels, sizeof(*world));
        batch.world.ops->save_state(batch.env, world);
        assert_int_equal(batch.world.ops->load_state(batch.env, world), 0);
        for (uint32_t w = 0; w < kinds[k].levels; w++) {
            const struct rm_sokoban_level *level = &world[w].level;
            assert_int_equal(__builtin_popcountll(level->boxes), kinds[k].boxes);
            assert_int_equal(__builtin_popcountll(level->goals), kinds[k].boxes);
            assert_true((level->boxes & level->goals) == 0);
            int moves = solve(level);
            if (moves < 1)
                fail_msg("%s: level %u cannot be solved", kinds[k].options, w);
        }
        free(world);
        rm_test_batch_close(&batch);
    }
}

/* More pulls make levels that take more moves. */
static void test_pulls(void **unused)
{
    (void)unused;
    static const char *const options[3] = {"size=9 boxes=1 pulls=1", "size=9 boxes=1 pulls=6",
                                           "size=9 boxes=1 pulls=40"};
    double mean[3];
    for (int k = 0; k < 3; k++) {
        enum { LEVELS = 200 };
        struct rm_test_batch batch;
        static struct rm_sokoban_world world[LEVELS];
        rm_test_batch_open(&batch, "sokoban", NULL, options[k], 5, 0, LEVELS);
        rm_test_batch_reset(&batch);
        batch.world.ops->save_state(batch.env, world);
        mean[k] = 0;
        for (int w = 0; w < LEVELS; w++)
            mean[k] += (double)solve(&world[w].level) / LEVELS;
        rm_test_batch_close(&batch);
    }
    assert_true(mean[0] + 1 < mean[1] && mean[1] + 1 < mean[2]);
}

/* Over whole episodes: the score is what is on goals in the end, less a tenth a step, and 10; its
 * mean under random play is what the spec says. */
static void test_scores(void **unused)
{
    (void)unused;
    enum { WORLDS = 256, EPISODES = 20, STEPS = EPISODES * 101 };
    struct rm_test_batch batch;
    static struct rm_sokoban_world world[WORLDS];
    double score[WORLDS] = {0}, sum = 0, squares = 0, n = 0;
    uint32_t episodes[WORLDS] = {0}, solved = 0;
    rm_test_batch_open(&batch, "sokoban", NULL, NULL, 5, 0, WORLDS);
    rm_test_batch_reset(&batch);
    for (uint64_t t = 0; t < STEPS; t++) {
        rm_test_batch_draw(&batch, 6, 0, 0, t);
        rm_test_batch_step(&batch, 0);
        batch.world.ops->save_state(batch.env, world);
        for (uint32_t w = 0; w < WORLDS; w++) {
            score[w] += batch.out[0].reward[w];
            uint8_t flags = batch.out[0].flags[w];
            if (!(flags & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)))
                continue;
            const struct rm_sokoban_level *level = &world[w].level;
            int on = __builtin_popcountll(level->boxes & level->goals);
            assert_int_equal(on == 2, flags == RM_ENV_TERMINATED);
            assert_float_equal(score[w], on + 10 * (on == 2) - 0.1 * world[w].head.step, 1e-4);
            assert_true(score[w] >= batch.spec->score_low - 1e-4);
            assert_true(score[w] <= batch.spec->score_high + 1e-4);
            /* As many of every world: else short episodes would count for more. */
            if (episodes[w]++ < EPISODES) {
                sum += score[w];
                squares += score[w] * score[w];
                n++;
                solved += on == 2;
            }
            score[w] = 0;
        }
    }
    assert_float_equal(n, WORLDS * EPISODES, 0);
    assert_true(solved > 0);
    /* 180,000 episodes gave the mean in the spec, with a standard error of 0.008. */
    double mean = sum / n, error = sqrt((squares / n - mean * mean) / n + 0.008 * 0.008);
    assert_float_equal(mean, batch.spec->score_random, 4 * error);
    rm_test_batch_close(&batch);
}

static void test_refusals(void **unused)
{
    (void)unused;
    struct rm_world world;
    struct rm_world_config config;
    struct rm_env *env;
    struct rm_error error;
    assert_int_equal(rm_world_open(&world, "sokoban", NULL, &error), 0);
    rm_test_world_config(&config, "sokoban", "size=5 boxes=4");
    assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
    assert_non_null(strstr(error.text, "at most 3"));

    struct rm_test_batch batch;
    struct rm_sokoban_world state, broken;
    rm_test_batch_open(&batch, "sokoban", NULL, NULL, 1, 3, 1);
    rm_test_batch_reset(&batch);
    batch.world.ops->save_state(batch.env, &state);
    broken = state;
    broken.level.floor |= 1 << 5;
    assert_true(batch.world.ops->load_state(batch.env, &broken) < 0);
    broken = state;
    broken.level.keeper = broken.level.boxes;
    assert_true(batch.world.ops->load_state(batch.env, &broken) < 0);
    broken = state;
    broken.level.boxes &= broken.level.boxes - 1;
    assert_true(batch.world.ops->load_state(batch.env, &broken) < 0);
    assert_int_equal(batch.world.ops->load_state(batch.env, &state), 0);
    rm_test_batch_close(&batch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),    cmocka_unit_test(test_masks),
        cmocka_unit_test(test_channels), cmocka_unit_test(test_solvable),
        cmocka_unit_test(test_pulls),    cmocka_unit_test(test_scores),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
