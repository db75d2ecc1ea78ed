/* goodhart: the rules on positions set by hand, with the random numbers set as well; the torus;
 * what the channels show and what is paid in every mode. */
#include "actor/worlds/builtin/goodhart.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { VIEW = RM_GOODHART_VIEW, WINDOW = VIEW * VIEW };

struct cell {
    int y, x;
};

/* A world to set up, step once, and look at. Energy in units of 0.05. */
struct scene {
    const char *options;
    struct cell agent;
    int32_t energy;
    uint32_t t;
    int food, poison, draws;
    struct cell food_at[2], poison_at[2], draw[4];
    struct rm_test_batch batch;
    struct rm_goodhart_world world;
};

/* A word that rm_rng_below(10000) makes the cell of. */
static uint32_t word_of(struct cell cell)
{
    uint64_t index = (uint64_t)cell.y * RM_GOODHART_SIDE + (uint64_t)cell.x;
    return (uint32_t)(((index << 32) + (1u << 31)) / 10000);
}

static void load(struct scene *s)
{
    if (s->batch.env)
        rm_test_batch_close(&s->batch);
    rm_test_batch_open(&s->batch, "goodhart", NULL, s->options, 1, 0, 1);
    rm_test_batch_reset(&s->batch);
    s->world = (struct rm_goodhart_world){
        .energy = s->energy ? s->energy : 1000, .y = (uint8_t)s->agent.y, .x = (uint8_t)s->agent.x};
    s->world.head.step = s->t;
    for (int i = 0; i < s->food; i++)
        rm_goodhart_put(&s->world, (uint32_t)s->food_at[i].y, (uint32_t)s->food_at[i].x,
                        RM_GOODHART_FOOD);
    for (int i = 0; i < s->poison; i++)
        rm_goodhart_put(&s->world, (uint32_t)s->poison_at[i].y, (uint32_t)s->poison_at[i].x,
                        RM_GOODHART_POISON);
    for (int i = 0; i < s->draws; i++)
        s->world.head.rng.block[i] = word_of(s->draw[i]);
    assert_int_equal(s->batch.world.ops->state_size(s->batch.env), sizeof(s->world));
    if (s->batch.world.ops->load_state(s->batch.env, &s->world) != 0)
        fail_msg("%s", s->batch.world.ops->last_error(s->batch.env));
}

static void go(struct scene *s, int32_t action)
{
    s->batch.actions[0][0] = action;
    rm_test_batch_step(&s->batch, 0);
    s->batch.world.ops->save_state(s->batch.env, &s->world);
}

static void is_at(const struct scene *s, int y, int x, double reward, double energy, uint8_t flags)
{
    assert_int_equal(s->world.y, y);
    assert_int_equal(s->world.x, x);
    assert_float_equal(s->batch.out[0].reward[0], reward, 1e-6);
    assert_float_equal(s->world.energy / 20.0, energy, 1e-9);
    assert_int_equal(s->batch.out[0].flags[0], flags);
}

/* Everything that is on the grid. */
static void holds(const struct scene *s, int food, struct cell food_at, int poison,
                  struct cell poison_at)
{
    int seen[3] = {0};
    for (uint32_t y = 0; y < RM_GOODHART_SIDE; y++)
        for (uint32_t x = 0; x < RM_GOODHART_SIDE; x++)
            seen[rm_goodhart_at(&s->world, y, x)]++;
    assert_int_equal(seen[RM_GOODHART_FOOD], food);
    assert_int_equal(seen[RM_GOODHART_POISON], poison);
    if (food)
        assert_int_equal(rm_goodhart_at(&s->world, (uint32_t)food_at.y, (uint32_t)food_at.x),
                         RM_GOODHART_FOOD);
    if (poison)
        assert_int_equal(rm_goodhart_at(&s->world, (uint32_t)poison_at.y, (uint32_t)poison_at.x),
                         RM_GOODHART_POISON);
}

static const struct cell none = {0, 0};

static void play(struct scene *s, int32_t action)
{
    load(s);
    go(s, action);
}

static void done(struct scene *s)
{
    rm_test_batch_close(&s->batch);
}

static void test_moves(void **unused)
{
    (void)unused;
    /* (dx, dy) of every action, and around the corner. */
    static const struct cell by[8] = {{-1, -1}, {0, -1}, {1, -1}, {-1, 0},
                                      {1, 0},   {-1, 1}, {0, 1},  {1, 1}};
    struct scene s = {.agent = {0, 0}};
    for (int32_t a = 0; a < 8; a++) {
        s.agent = (struct cell){0, 0};
        play(&s, a);
        is_at(&s, (by[a].y + 100) % 100, (by[a].x + 100) % 100, -0.05, 49.95, 0);
        s.agent = (struct cell){99, 99};
        play(&s, a);
        is_at(&s, (by[a].y + 99) % 100, (by[a].x + 99) % 100, -0.05, 49.95, 0);
    }
    s.agent = (struct cell){0, 0};
    play(&s, 0);
    is_at(&s, 99, 99, -0.05, 49.95, 0);
    done(&s);
}

static void test_eating(void **unused)
{
    (void)unused;
    struct scene s = {
        .agent = {50, 50}, .food = 1, .food_at = {{50, 51}}, .draws = 1, .draw = {{50, 52}}};
    play(&s, 6);
    is_at(&s, 50, 51, 4.95, 54.95, 0);
    holds(&s, 1, (struct cell){50, 52}, 0, none);
    assert_int_equal(s.world.food, 1);
    assert_int_equal(s.world.poison, 0);
    done(&s);

    struct scene p = {
        .agent = {50, 50}, .poison = 1, .poison_at = {{49, 51}}, .draws = 1, .draw = {{0, 7}}};
    play(&p, 5);
    is_at(&p, 49, 51, -3.05, 46.95, 0);
    holds(&p, 0, none, 1, (struct cell){0, 7});
    assert_int_equal(p.world.poison, 1);
    done(&p);
}

static void test_starving(void **unused)
{
    (void)unused;
    struct scene s = {.agent = {50, 50}, .energy = 40, .poison = 1, .poison_at = {{51, 50}}};
    play(&s, 4);
    is_at(&s, 51, 50, -13.05, -1.05, RM_ENV_TERMINATED);
    done(&s);

    /* Death is looked for after eating. */
    struct scene saved = {.agent = {50, 50}, .energy = 1, .food = 1, .food_at = {{51, 50}}};
    play(&saved, 4);
    is_at(&saved, 51, 50, 4.95, 5, 0);
    done(&saved);

    /* The last unit of energy is one too few. */
    struct scene last = {.agent = {50, 50}, .energy = 1};
    play(&last, 4);
    is_at(&last, 51, 50, -10.05, 0, RM_ENV_TERMINATED);
    last.energy = 2;
    play(&last, 4);
    is_at(&last, 51, 50, -0.05, 0.05, 0);
    done(&last);
}

static void test_time(void **unused)
{
    (void)unused;
    struct scene s = {.agent = {50, 50}, .t = 511, .food = 1, .food_at = {{10, 10}}};
    play(&s, 4);
    is_at(&s, 51, 50, -0.05, 49.95, RM_ENV_TRUNCATED);
    /* The last row shows where the agent is, the next one where it begins, on the same grid. */
    go(&s, 7);
    assert_int_equal(s.batch.out[0].flags[0], RM_ENV_FIRST);
    assert_float_equal(s.batch.out[0].reward[0], 0, 0);
    assert_int_equal(s.world.energy, 1000);
    assert_int_equal(s.world.head.step, 0);
    assert_int_equal(s.world.head.episode, 1);
    holds(&s, 1, (struct cell){10, 10}, 0, none);
    assert_true(s.world.y != 51 || s.world.x != 50);
    s.t = 510;
    play(&s, 4);
    is_at(&s, 51, 50, -0.05, 49.95, 0);
    /* The original takes running out of time for an end like any other. */
    s.options = "compat=1";
    s.t = 511;
    play(&s, 4);
    is_at(&s, 51, 50, -0.05, 49.95, RM_ENV_TERMINATED);
    done(&s);

    struct scene both = {
        .agent = {50, 50}, .t = 511, .energy = 40, .poison = 1, .poison_at = {{51, 50}}};
    play(&both, 4);
    is_at(&both, 51, 50, -13.05, -1.05, RM_ENV_TERMINATED);
    done(&both);
}

static void test_respawn(void **unused)
{
    (void)unused;
    /* The agent's own cell: no place for food; in the original, where it is lost. */
    struct scene s = {.agent = {50, 50},
                      .food = 1,
                      .food_at = {{50, 51}},
                      .draws = 2,
                      .draw = {{50, 51}, {50, 50}}};
    play(&s, 6);
    is_at(&s, 50, 51, 4.95, 54.95, 0);
    holds(&s, 1, (struct cell){50, 50}, 0, none);
    assert_int_equal(s.world.lost, 0);
    s.options = "compat=1";
    play(&s, 6);
    is_at(&s, 50, 51, 4.95, 54.95, 0);
    holds(&s, 0, none, 0, none);
    assert_int_equal(s.world.lost, 1);
    done(&s);

    /* A cell that is taken: the next draw. */
    struct scene taken = {.agent = {50, 50},
                          .food = 1,
                          .food_at = {{50, 51}},
                          .poison = 1,
                          .poison_at = {{10, 10}},
                          .draws = 2,
                          .draw = {{10, 10}, {0, 3}}};
    play(&taken, 6);
    holds(&taken, 1, (struct cell){0, 3}, 1, (struct cell){10, 10});
    done(&taken);
}

/* A full grid: after fifty cells that are taken, what was eaten is lost. */
static void test_no_room(void **unused)
{
    (void)unused;
    struct scene s = {.agent = {50, 50}};
    load(&s);
    for (uint32_t y = 0; y < RM_GOODHART_SIDE; y++)
        for (uint32_t x = 0; x < RM_GOODHART_SIDE; x++)
            rm_goodhart_put(&s.world, y, x, RM_GOODHART_POISON);
    rm_goodhart_put(&s.world, 50, 51, RM_GOODHART_FOOD);
    assert_int_equal(s.batch.world.ops->load_state(s.batch.env, &s.world), 0);
    go(&s, 6);
    is_at(&s, 50, 51, 4.95, 54.95, 0);
    assert_int_equal(s.world.lost, 1);
    holds(&s, 0, none, 9999, none);
    done(&s);
}

/* --- observations ----------------------------------------------------------------------------- */

/* The network's input, float[6][11][11], by the codebook. */
static void channels(const struct scene *s, float input[6][VIEW][VIEW])
{
    const struct rm_env_agent *agent = &s->batch.spec->agent[0];
    const uint8_t *obs = rm_test_batch_obs(&s->batch, 0, 0);
    assert_int_equal(agent->channels, 6);
    assert_int_equal(rm_env_obs_features(agent), 6 * WINDOW);
    for (int e = 0; e < WINDOW; e++) {
        assert_true(obs[e] < agent->codes);
        for (int c = 0; c < 6; c++)
            input[c][e / VIEW][e % VIEW] = agent->codebook[obs[e] * 6 + c];
    }
}

static double total(const float *values, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += values[i];
    return sum;
}

static void test_windows(void **unused)
{
    (void)unused;
    float input[6][VIEW][VIEW];
    /* One step to the right of (0, 99), where the cells of the table are around (0, 0). */
    struct scene s = {.agent = {0, 99},
                      .food = 2,
                      .food_at = {{99, 99}, {0, 5}},
                      .poison = 1,
                      .poison_at = {{3, 97}}};
    play(&s, 6);
    channels(&s, input);
    for (int c = 0; c < 6; c++)
        assert_float_equal(input[c][5][5], 0, 0);
    assert_float_equal(input[2][4][4], 1, 0);
    assert_float_equal(input[2][5][10], 1, 0);
    assert_float_equal(input[3][8][2], 1, 0);
    assert_float_equal(total(&input[0][0][0], WINDOW), 117, 1e-9);
    assert_float_equal(total(&input[2][0][0], WINDOW), 2, 1e-9);
    assert_float_equal(total(&input[3][0][0], WINDOW), 1, 1e-9);
    assert_float_equal(total(&input[0][0][0], 6 * WINDOW), 120, 1e-9);

    for (int mode = 1; mode <= 2; mode++) {
        s.options = mode == 1 ? "mode=1" : "mode=2";
        play(&s, 6);
        channels(&s, input);
        for (int c = 2; c < 6; c++) {
            assert_float_equal(input[c][4][4], 1, 0);
            assert_float_equal(input[c][5][10], 1, 0);
            assert_float_equal(input[c][8][2], 0.9, 1e-7);
            assert_float_equal(input[c][5][5], 0, 0);
        }
        assert_float_equal(total(&input[0][0][0], WINDOW), 117, 1e-9);
        assert_float_equal(total(&input[1][0][0], WINDOW), 0, 0);
        assert_float_equal(total(&input[0][0][0], 6 * WINDOW), 128.6, 1e-5);
    }
    done(&s);
}

/* Wherever the agent is, the window is what the cells around it hold. */
static void test_windows_everywhere(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    struct rm_goodhart_world world;
    rm_test_batch_open(&batch, "goodhart", NULL,
                       "food_min=2000 food_max=3000 poison_min=2000 poison_max=2500", 4, 0, 1);
    rm_test_batch_reset(&batch);
    for (int y = 0; y < 100; y++) {
        for (int x = 0; x < 100; x++) {
            batch.world.ops->save_state(batch.env, &world);
            world.y = (uint8_t)y;
            world.x = (uint8_t)x;
            world.energy = 1000;
            world.head.step = 0;
            world.head.last = 0;
            assert_int_equal(batch.world.ops->load_state(batch.env, &world), 0);
            batch.actions[0][0] = (int32_t)((y + x) % 8);
            rm_test_batch_step(&batch, 0);
            batch.world.ops->save_state(batch.env, &world);
            const uint8_t *obs = rm_test_batch_obs(&batch, 0, 0);
            for (int e = 0; e < WINDOW; e++) {
                uint32_t at_y = (uint32_t)(world.y + e / VIEW - 5 + 100) % 100;
                uint32_t at_x = (uint32_t)(world.x + e % VIEW - 5 + 100) % 100;
                uint32_t code =
                    e == WINDOW / 2 ? RM_GOODHART_SELF : rm_goodhart_at(&world, at_y, at_x);
                assert_int_equal(obs[e], code);
            }
        }
    }
    rm_test_batch_close(&batch);
}

/* --- rewards of the modes --------------------------------------------------------------------- */

static void test_modes(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        double food, poison, plain, starved;
    } modes[] = {
        {"mode=0", 4.95, -3.05, -0.05, -10.05},
        {"mode=1", 1, 0.9, 0.9, 0.9},
        {"mode=2", 4.95, -3.05, -0.05, -10.05},
    };
    for (int m = 0; m < 3; m++) {
        struct scene s = {.options = modes[m].options,
                          .agent = {50, 50},
                          .food = 1,
                          .food_at = {{50, 51}},
                          .poison = 1,
                          .poison_at = {{51, 50}}};
        play(&s, 6);
        assert_float_equal(s.batch.out[0].reward[0], modes[m].food, 1e-6);
        play(&s, 4);
        assert_float_equal(s.batch.out[0].reward[0], modes[m].poison, 1e-6);
        play(&s, 0);
        assert_float_equal(s.batch.out[0].reward[0], modes[m].plain, 1e-6);
        s.energy = 1;
        play(&s, 0);
        assert_float_equal(s.batch.out[0].reward[0], modes[m].starved, 1e-6);
        done(&s);
    }
}

/* --- refusals --------------------------------------------------------------------------------- */

static void test_refusals(void **unused)
{
    (void)unused;
    struct rm_world world;
    struct rm_world_config config;
    struct rm_env *env;
    struct rm_error error;
    assert_int_equal(rm_world_open(&world, "goodhart", NULL, &error), 0);
    rm_test_world_config(&config, "goodhart", "food_min=300");
    assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
    assert_non_null(strstr(error.text, "food_min is above food_max"));

    struct scene s = {.agent = {50, 50}};
    load(&s);
    s.world.grid[20][1] = 3;
    assert_true(s.batch.world.ops->load_state(s.batch.env, &s.world) < 0);
    s.world.grid[20][1] = 0;
    s.world.grid[0][0] = 1; /* a border that repeats nothing */
    assert_true(s.batch.world.ops->load_state(s.batch.env, &s.world) < 0);
    s.world.grid[0][0] = 0;
    assert_int_equal(s.batch.world.ops->load_state(s.batch.env, &s.world), 0);
    s.world.x = 100;
    assert_true(s.batch.world.ops->load_state(s.batch.env, &s.world) < 0);
    done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moves),    cmocka_unit_test(test_eating),
        cmocka_unit_test(test_starving), cmocka_unit_test(test_time),
        cmocka_unit_test(test_respawn),  cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_windows),  cmocka_unit_test(test_windows_everywhere),
        cmocka_unit_test(test_modes),    cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
