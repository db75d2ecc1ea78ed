/* goodhart over whole episodes: grids outlive them, return and energy tell the same story, and
 * first episodes end at different times where they are asked to. */
#include "actor/worlds/builtin/goodhart.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static void count_items(const struct rm_goodhart_world *world, uint32_t *food, uint32_t *poison)
{
    *food = *poison = 0;
    for (uint32_t y = 0; y < RM_GOODHART_SIDE; y++)
        for (uint32_t x = 0; x < RM_GOODHART_SIDE; x++) {
            *food += rm_goodhart_at(world, y, x) == RM_GOODHART_FOOD;
            *poison += rm_goodhart_at(world, y, x) == RM_GOODHART_POISON;
        }
}

/* Over many episodes a grid keeps what it has, the agent begins on empty cells, and return and
 * energy tell the same story. */
static void test_grids_outlive_episodes(void **unused)
{
    (void)unused;
    enum { WORLDS = 40, STEPS = 5000 };
    struct rm_test_batch batch;
    static struct rm_goodhart_world first[WORLDS], now[WORLDS];
    double score[WORLDS] = {0};
    uint32_t ends = 0;
    rm_test_batch_open(&batch, "goodhart", NULL, NULL, 9, 0, WORLDS);
    rm_test_batch_reset(&batch);
    batch.world.ops->save_state(batch.env, first);
    for (uint64_t t = 0; t < STEPS; t++) {
        rm_test_batch_draw(&batch, 6, 0, 0, t);
        rm_test_batch_step(&batch, 0);
        batch.world.ops->save_state(batch.env, now);
        for (uint32_t w = 0; w < WORLDS; w++) {
            assert_int_equal(rm_goodhart_at(&now[w], now[w].y, now[w].x), RM_GOODHART_EMPTY);
            if (batch.out[0].flags[w] & RM_ENV_FIRST) {
                score[w] = 0;
                assert_int_equal(now[w].food + now[w].poison, 0);
            }
            score[w] += batch.out[0].reward[w];
            if (batch.out[0].flags[w] != RM_ENV_TRUNCATED)
                continue;
            assert_float_equal(score[w], 5.0 * now[w].food - 3.0 * now[w].poison - 25.6, 1e-3);
            assert_float_equal(score[w], now[w].energy / 20.0 - 50, 1e-3);
            ends++;
        }
    }
    assert_true(ends >= WORLDS * 8);
    for (uint32_t w = 0; w < WORLDS; w++) {
        uint32_t had[2], has[2];
        count_items(&first[w], &had[0], &had[1]);
        count_items(&now[w], &has[0], &has[1]);
        assert_true(had[0] >= 50 && had[0] <= 200 && had[1] >= 20 && had[1] <= 100);
        assert_int_equal(had[0], has[0]);
        assert_int_equal(had[1], has[1]);
        assert_int_equal(now[w].lost, 0);
    }
    rm_test_batch_close(&batch);
}

/* With t0_stagger first episodes end at all times, without it in the same step. */
static void test_stagger(void **unused)
{
    (void)unused;
    enum { WORLDS = 400 };
    for (int stagger = 0; stagger < 2; stagger++) {
        struct rm_test_batch batch;
        uint32_t quarter[4] = {0}, length[WORLDS] = {0};
        rm_test_batch_open(&batch, "goodhart", NULL,
                           stagger ? "t0_stagger=1 food_max=50" : "food_max=50", 9, 0, WORLDS);
        rm_test_batch_reset(&batch);
        for (uint64_t t = 0; t < 512; t++) {
            rm_test_batch_draw(&batch, 6, 0, 0, t);
            rm_test_batch_step(&batch, 0);
            for (uint32_t w = 0; w < WORLDS; w++)
                if (!length[w] && batch.out[0].flags[w] == RM_ENV_TRUNCATED) {
                    length[w] = (uint32_t)t + 1;
                    quarter[t / 128]++;
                }
        }
        for (int q = 0; q < 4; q++) {
            double expected = stagger ? 100 : q == 3 ? 400 : 0;
            assert_float_equal(quarter[q], expected, stagger ? 4 * sqrt(75) : 2);
        }
        rm_test_batch_close(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grids_outlive_episodes),
        cmocka_unit_test(test_stagger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
