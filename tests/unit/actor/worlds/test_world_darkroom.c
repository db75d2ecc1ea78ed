/* darkroom: the rules on positions set by hand, which goals the worlds have, and the random policy
 * against exact expectations. */
#include "actor/worlds/builtin/darkroom.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static uint8_t cell(int i, int j)
{
    return (uint8_t)(9 * i + j);
}

static void open_at(struct rm_test_batch *batch, const char *options, int i, int j, int goal_i,
                    int goal_j, uint32_t step)
{
    struct rm_darkroom_world world;
    rm_test_batch_open(batch, "darkroom", NULL, options, 1, 0, 1);
    rm_test_batch_reset(batch);
    assert_int_equal(batch->world.ops->state_size(batch->env), sizeof(world));
    batch->world.ops->save_state(batch->env, &world);
    world.cell = cell(i, j);
    world.goal = cell(goal_i, goal_j);
    world.head.step = step;
    assert_int_equal(batch->world.ops->load_state(batch->env, &world), 0);
}

static void sees(const struct rm_test_batch *batch, uint32_t w, int i, int j)
{
    float place[2];
    memcpy(place, rm_test_batch_obs(batch, 0, w), sizeof(place));
    assert_float_equal(place[0], i, 0);
    assert_float_equal(place[1], j, 0);
}

static void test_steps(void **unused)
{
    (void)unused;
    static const struct {
        int i, j, goal_i, goal_j, action, next_i, next_j, reward;
    } known[] = {
        {4, 4, 5, 4, 0, 5, 4, 1}, {5, 4, 5, 4, 4, 5, 4, 1}, {5, 4, 5, 4, 1, 4, 4, 0},
        {8, 3, 0, 0, 0, 8, 3, 0}, {8, 3, 8, 3, 0, 8, 3, 1}, {0, 0, 0, 0, 3, 0, 0, 1},
        {0, 8, 0, 5, 2, 0, 8, 0}, {2, 7, 2, 6, 3, 2, 6, 1}, {0, 5, 1, 5, 1, 0, 5, 0},
    };
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        for (uint32_t at = 0; at < 20; at += 19) { /* in the middle, and at the end of an episode */
            struct rm_test_batch batch;
            open_at(&batch, NULL, known[k].i, known[k].j, known[k].goal_i, known[k].goal_j, at);
            batch.actions[0][0] = known[k].action;
            rm_test_batch_step(&batch, 0);
            sees(&batch, 0, known[k].next_i, known[k].next_j);
            assert_float_equal(batch.out[0].reward[0], known[k].reward, 0);
            assert_int_equal(batch.out[0].flags[0], at == 19 ? RM_ENV_TERMINATED : 0);
            rm_test_batch_close(&batch);
        }
    }
}

/* The true last state has a row of its own, and the start follows. */
static void test_ends(void **unused)
{
    (void)unused;
    for (int truncate = 0; truncate < 2; truncate++) {
        struct rm_test_batch batch;
        open_at(&batch, truncate ? "truncate=1" : NULL, 2, 7, 2, 6, 19);
        batch.actions[0][0] = 3;
        rm_test_batch_step(&batch, 0);
        sees(&batch, 0, 2, 6);
        assert_int_equal(batch.out[0].flags[0], truncate ? RM_ENV_TRUNCATED : RM_ENV_TERMINATED);
        assert_float_equal(batch.out[0].reward[0], 1, 0);
        rm_test_batch_step(&batch, 0);
        sees(&batch, 0, 4, 4);
        assert_int_equal(batch.out[0].flags[0], RM_ENV_FIRST);
        assert_float_equal(batch.out[0].reward[0], 0, 0);
        rm_test_batch_close(&batch);
    }
}

/* The same with compat: the reward is that of the cell arrived at, the observation is the start. */
static void test_compat(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        int i, j, cell; /* what is seen at the end */
    } known[] = {{"compat=1", 4, 4, -1}, {"compat=1 numbered=1", 0, 0, 40}, {"compat=0", 2, 6, -1}};
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        struct rm_test_batch batch;
        open_at(&batch, known[k].options, 2, 8, 2, 6, 18);
        for (int step = 0; step < 2; step++) {
            batch.actions[0][0] = 3;
            rm_test_batch_step(&batch, 0);
            assert_float_equal(batch.out[0].reward[0], step, 0);
            assert_int_equal(batch.out[0].flags[0], step ? RM_ENV_TERMINATED : 0);
            if (known[k].cell >= 0)
                assert_int_equal(*(const uint8_t *)rm_test_batch_obs(&batch, 0, 0),
                                 step ? known[k].cell : cell(2, 7));
            else if (step == 0)
                sees(&batch, 0, 2, 7);
            else
                sees(&batch, 0, known[k].i, known[k].j);
        }
        rm_test_batch_close(&batch);
    }
}

/* A goal by its coordinates, and one that there is not. */
static void test_goal_option(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        int goal;
    } known[] = {{"goal=[4,2]", 38}, {"goal=[0,8]", 8}, {"goal=[80]", 80}, {"goal=17", 17}};
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        struct rm_test_batch batch;
        struct rm_darkroom_world world;
        rm_test_batch_open(&batch, "darkroom", NULL, known[k].options, 1, 5, 1);
        rm_test_batch_reset(&batch);
        batch.world.ops->save_state(batch.env, &world);
        assert_int_equal(world.goal, known[k].goal);
        rm_test_batch_close(&batch);
    }
    struct rm_world_config config;
    struct rm_world world;
    struct rm_error error = {""};
    struct rm_env *env = NULL;
    rm_test_world_config(&config, "darkroom", "goal=[9,0]");
    assert_int_equal(rm_world_open(&world, "darkroom", NULL, &error), 0);
    assert_int_not_equal(rm_world_create(&world, &config, 1, 0, 1, &env, &error), 0);
    assert_non_null(
        strstr(error.text, "world.options.goal is [9, 0], must be coordinates of 0 to 8"));
    rm_world_close(&world);
}

static void test_returns(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        int32_t actions[8];
        int count; /* then staying */
        double score;
    } known[] = {
        {"goal=[8,8]", {0, 0, 0, 0, 2, 2, 2, 2}, 8, 13},
        {"goal=40", {4}, 1, 20},
        {"goal=31", {1}, 1, 20},
        {"goal=49", {0}, 1, 20},
        {"goal=50", {0, 2}, 2, 19},
    };
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        struct rm_test_batch batch;
        double score = 0;
        int first = 0;
        rm_test_batch_open(&batch, "darkroom", NULL, known[k].options, 1, 0, 1);
        assert_float_equal(batch.spec->score_high, known[k].score, 0);
        rm_test_batch_reset(&batch);
        for (int t = 1; t <= 20; t++) {
            batch.actions[0][0] = t <= known[k].count ? known[k].actions[t - 1] : 4;
            rm_test_batch_step(&batch, 0);
            score += batch.out[0].reward[0];
            if (!first && batch.out[0].reward[0] > 0)
                first = t;
            assert_int_equal(batch.out[0].flags[0], t == 20 ? RM_ENV_TERMINATED : 0);
        }
        assert_int_equal(first, known[k].count);
        assert_float_equal(score, known[k].score, 0);
        rm_test_batch_close(&batch);
    }
}

static void test_goals(void **unused)
{
    (void)unused;
    static const uint8_t tests[8] = {5, 33, 38, 49, 51, 53, 62, 65};
    static const struct {
        const char *options;
        uint32_t number;
        double optimum; /* mean over the goals */
    } sets[] = {{NULL, 81, 16.543210}, {"goals=1", 73, 16.465753}, {"goals=2", 8, 17.25}};
    for (int s = 0; s < 3; s++) {
        enum { WORLDS = 200, FIRST = 7 };
        struct rm_test_batch batch;
        static struct rm_darkroom_world world[WORLDS];
        uint32_t seen[81] = {0}, distinct = 0;
        rm_test_batch_open(&batch, "darkroom", NULL, sets[s].options, 1, FIRST, WORLDS);
        assert_float_equal(batch.spec->score_solved, 0.8 * sets[s].optimum, 1e-5);
        rm_test_batch_reset(&batch);
        batch.world.ops->save_state(batch.env, world);
        for (uint32_t w = 0; w < WORLDS; w++) {
            distinct += seen[world[w].goal]++ == 0;
            int test = memchr(tests, world[w].goal, 8) != NULL;
            assert_true(s == 0 || test == (s == 2));
            /* By the world's id: the same in any batch, in order, over and over. */
            if (w >= sets[s].number)
                assert_int_equal(world[w].goal, world[w - sets[s].number].goal);
            if (s == 0)
                assert_int_equal(world[w].goal, (FIRST + w) % 81);
        }
        assert_int_equal(distinct, sets[s].number);
        rm_test_batch_close(&batch);
    }
}

static void test_numbered(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "darkroom", NULL, "numbered=1", 1, 0, 1);
    assert_int_equal(batch.spec->agent[0].dtype, RM_ENV_U8);
    assert_int_equal(batch.spec->agent[0].high, 80);
    rm_test_batch_reset(&batch);
    assert_int_equal(*(const uint8_t *)rm_test_batch_obs(&batch, 0, 0), 40);
    for (int t = 0; t < 9; t++) {
        batch.actions[0][0] = t % 2 ? 0 : 2;
        rm_test_batch_step(&batch, 0);
    }
    assert_int_equal(*(const uint8_t *)rm_test_batch_obs(&batch, 0, 0), 80);
    rm_test_batch_close(&batch);
}

/* --- the random policy ------------------------------------------------------------------------ */

static void test_exact_scores(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        double score;
    } known[] = {
        {NULL, 20.0 / 81},           {"goals=1", .238308},          {"goals=2", .325436},
        {"goal=40", 1.179412},       {"goal=49", .953495},          {"goal=38", .456041},
        {"goal=51", .360744},        {"goal=33", .360744},          {"goal=65", .137147},
        {"goal=5", .122709},         {"goal=53", .122709},          {"goal=62", .089902},
        {"goal=0", .041494},         {"goal=[4,2]", .456041},       {"goal=40 max_steps=1", .2},
        {"goal=40 max_steps=2", .4}, {"goal=40 max_steps=3", .504}, {"goal=40 max_steps=4", .6016},
    };
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, "darkroom", NULL, known[k].options, 1, 0, 1);
        if (!(fabs(batch.spec->score_random - known[k].score) < 6e-7))
            fail_msg("%s: random scores %.7f, not %.7f", known[k].options, batch.spec->score_random,
                     known[k].score);
        rm_test_batch_close(&batch);
    }
}

/* What worlds with every goal, and those with the test's, really pay, and how often random walks
 * touch their goal. */
static void test_played_scores(void **unused)
{
    (void)unused;
    enum { WORLDS = 81 * 4, EPISODES = 200 };
    static const struct {
        const char *options;
        uint32_t worlds; /* as many with each goal */
        double score, touched;
    } sets[] = {{NULL, WORLDS, 20.0 / 81, .125771}, {"goals=2", 8 * 40, .325436, .164241}};
    for (int s = 0; s < 2; s++) {
        struct rm_test_batch batch;
        double sum = 0, squares = 0, touched = 0, score[WORLDS] = {0};
        const double n = sets[s].worlds * EPISODES;
        rm_test_batch_open(&batch, "darkroom", NULL, sets[s].options, 1, 0, sets[s].worlds);
        rm_test_batch_reset(&batch);
        for (uint64_t row = 0; row < EPISODES * 21; row++) {
            rm_test_batch_draw(&batch, 6, 0, 0, row);
            rm_test_batch_step(&batch, 0);
            for (uint32_t w = 0; w < sets[s].worlds; w++) {
                score[w] += batch.out[0].reward[w];
                if (!(batch.out[0].flags[w] & RM_ENV_TERMINATED))
                    continue;
                sum += score[w];
                squares += score[w] * score[w];
                touched += score[w] > 0;
                score[w] = 0;
            }
        }
        const double mean = sum / n, error = sqrt((squares / n - mean * mean) / n);
        const double share = sets[s].touched;
        assert_float_equal(mean, sets[s].score, 4 * error);
        assert_float_equal(touched / n, share, 4 * sqrt(share * (1 - share) / n));
        rm_test_batch_close(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),         cmocka_unit_test(test_ends),
        cmocka_unit_test(test_returns),       cmocka_unit_test(test_goals),
        cmocka_unit_test(test_compat),        cmocka_unit_test(test_goal_option),
        cmocka_unit_test(test_numbered),      cmocka_unit_test(test_exact_scores),
        cmocka_unit_test(test_played_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
