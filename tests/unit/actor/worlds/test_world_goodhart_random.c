/* goodhart under uniformly random moves, against what is known: exactly, the chances of the first
 * step and the first window of a fresh grid (means of F / 9999 and 120 F / 9999), and what is left
 * with nothing to eat; from an independent simulation of 100,000 fresh grids, what an episode
 * brings (given with its standard errors). The seed is fixed, so the outcome is too; bounds are
 * four standard errors, those of both sides together. */
#include "actor/worlds/builtin/goodhart.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct mean {
    double sum, squares, n;
};

static void add(struct mean *mean, double value)
{
    mean->sum += value;
    mean->squares += value * value;
    mean->n++;
}

static void near(const char *what, const struct mean *mean, double expected, double its_error)
{
    double value = mean->sum / mean->n;
    double error = sqrt((mean->squares / mean->n - value * value) / mean->n);
    double allowed = 4 * sqrt(error * error + its_error * its_error);
    if (!(fabs(value - expected) <= allowed + 1e-9))
        fail_msg("%s is %.5f (of %.0f), expected %.5f within %.5f", what, value, mean->n, expected,
                 allowed);
}

static void random_step(struct rm_test_batch *batch, struct rm_rng *rng)
{
    for (uint32_t w = 0; w < batch->worlds; w++)
        batch->actions[0][w] = (int32_t)(rm_rng_u32(rng) >> 29);
    rm_test_batch_step(batch, 0);
}

static void test_fresh_grids(void **unused)
{
    (void)unused;
    enum { WORLDS = 4096, GRIDS = 12 };
    struct mean food = {0}, poison = {0}, food_hit = {0}, poison_hit = {0};
    struct rm_rng rng = rm_rng_at(78, RM_STREAM_TEST, 0, 0);
    for (uint64_t g = 0; g < GRIDS; g++) {
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, "goodhart", NULL, NULL, 11, g * WORLDS, WORLDS);
        rm_test_batch_reset(&batch);
        for (uint32_t w = 0; w < WORLDS; w++) {
            const uint8_t *obs = rm_test_batch_obs(&batch, 0, w);
            int seen[RM_GOODHART_CODES] = {0};
            for (int e = 0; e < RM_GOODHART_VIEW * RM_GOODHART_VIEW; e++)
                seen[obs[e]]++;
            add(&food, seen[RM_GOODHART_FOOD]);
            add(&poison, seen[RM_GOODHART_POISON]);
        }
        random_step(&batch, &rng);
        for (uint32_t w = 0; w < WORLDS; w++) {
            add(&food_hit, batch.out[0].reward[w] > 1);
            add(&poison_hit, batch.out[0].reward[w] < -1);
        }
        rm_test_batch_close(&batch);
    }
    near("food in the first window", &food, 120 * 125.0 / 9999, 0);
    near("poison in the first window", &poison, 120 * 60.0 / 9999, 0);
    near("chance of food in the first step", &food_hit, 125.0 / 9999, 0);
    near("chance of poison in the first step", &poison_hit, 60.0 / 9999, 0);
}

/* One episode each of fresh grids: food, poison, return, and cells visited beside the first. */
static void play(const char *options, uint32_t worlds, struct mean result[4])
{
    struct rm_test_batch batch;
    struct rm_rng rng = rm_rng_at(79, RM_STREAM_TEST, 0, 0);
    double *score = calloc(worlds, sizeof(*score));
    struct rm_goodhart_world *world = calloc(worlds, sizeof(*world));
    bool(*visited)[RM_GOODHART_SIDE][RM_GOODHART_SIDE] = calloc(worlds, sizeof(*visited));
    uint32_t starved = 0, *cells = calloc(worlds, sizeof(*cells));
    rm_test_batch_open(&batch, "goodhart", NULL, options, 12, 0, worlds);
    rm_test_batch_reset(&batch);
    batch.world.ops->save_state(batch.env, world);
    for (uint32_t w = 0; w < worlds; w++)
        visited[w][world[w].y][world[w].x] = true;
    for (int t = 0; t < 512; t++) {
        random_step(&batch, &rng);
        batch.world.ops->save_state(batch.env, world);
        for (uint32_t w = 0; w < worlds; w++) {
            if (world[w].head.episode > 0)
                continue;
            cells[w] += !visited[w][world[w].y][world[w].x];
            visited[w][world[w].y][world[w].x] = true;
            score[w] += batch.out[0].reward[w];
            if (!batch.out[0].flags[w])
                continue;
            starved += batch.out[0].flags[w] == RM_ENV_TERMINATED;
            assert_true(t == 511 || batch.out[0].flags[w] == RM_ENV_TERMINATED);
            add(&result[0], world[w].food);
            add(&result[1], world[w].poison);
            add(&result[2], score[w]);
            if (t == 511)
                add(&result[3], cells[w]);
        }
    }
    assert_true(starved <= worlds / 2000);
    assert_float_equal(result[0].n, worlds, 0);
    rm_test_batch_close(&batch);
    free(score);
    free(world);
    free(visited);
    free(cells);
}

#define CELLS 254.03 /* that a random walk of 512 moves visits beside its first */

static void test_episodes(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        uint32_t worlds;
        double food; /* on a grid, on average */
        double mean[3], error[3];
    } known[] = {
        {NULL, 3000, 125, {3.2125, 1.5459, -14.175}, {0.0068, 0.0044, 0.036}},
        {"food_min=100 food_max=100 poison_min=50 poison_max=50",
         2000,
         100,
         {2.5805, 1.2961, -16.586},
         {0.0052, 0.0036, 0.028}},
        {"food_min=500 food_max=500 poison_min=50 poison_max=50",
         2000,
         500,
         {12.869, 1.292, 34.87},
         {0.019, 0.006, 0.10}},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        struct mean result[4] = {{0}};
        play(known[i].options, known[i].worlds, result);
        near("food", &result[0], known[i].mean[0], known[i].error[0]);
        near("poison", &result[1], known[i].mean[1], known[i].error[1]);
        near("return", &result[2], known[i].mean[2], known[i].error[2]);
        near("cells of a walk", &result[3], CELLS, 0.10);
        const double predicted = CELLS * known[i].food / (RM_GOODHART_CELLS - 1);
        near("food, from the cells of a walk", &result[0], predicted, 0.02 * predicted / 4);
    }
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "goodhart", NULL, NULL, 1, 0, 1);
    assert_float_equal(batch.spec->score_random, known[0].mean[2], 0);
    rm_test_batch_close(&batch);
}

/* Nothing to eat: every return is what moving costs. */
static void test_empty_grids(void **unused)
{
    (void)unused;
    struct mean result[4] = {{0}};
    play("food_min=0 food_max=0 poison_min=0 poison_max=0", 20, result);
    assert_float_equal(result[2].sum / result[2].n, -25.6, 1e-4);
    assert_float_equal(result[0].sum + result[1].sum, 0, 0);
}

/* With compat what reappears under the agent is lost: any of the empty cells may be that one. On a
 * crowded grid it happens often enough to be counted, and sometimes all 50 draws are taken. */
static void test_lost_items(void **unused)
{
    (void)unused;
    enum { WORLDS = 800, ITEMS = 8000, EMPTY = RM_GOODHART_CELLS - (ITEMS - 1) };
    for (int compat = 0; compat < 2; compat++) {
        struct rm_test_batch batch;
        struct rm_rng rng = rm_rng_at(80, RM_STREAM_TEST, 0, 0);
        double eaten = 0, lost = 0;
        char options[96];
        snprintf(options, sizeof(options),
                 "food_min=4000 food_max=4000 poison_min=4000 poison_max=4000 compat=%d", compat);
        rm_test_batch_open(&batch, "goodhart", NULL, options, 13, 0, WORLDS);
        rm_test_batch_reset(&batch);
        for (int t = 0; t < 512; t++) {
            random_step(&batch, &rng);
            for (uint32_t w = 0; w < WORLDS; w++)
                if (batch.out[0].flags[w] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)) {
                    const double *figure = batch.out[0].figures + batch.spec->figures * w;
                    eaten += figure[0] + figure[1];
                    lost += figure[2];
                }
        }
        const double none = pow((double)(ITEMS - 1) / RM_GOODHART_CELLS, 50);
        const double expected = eaten * ((compat ? 1.0 / EMPTY : 0) + none);
        assert_true(eaten > 150000 && fabs(lost - expected) < 4 * sqrt(expected));
        rm_test_batch_close(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fresh_grids),
        cmocka_unit_test(test_episodes),
        cmocka_unit_test(test_empty_grids),
        cmocka_unit_test(test_lost_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
