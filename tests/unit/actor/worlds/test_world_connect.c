/* connect: lines in every direction on boards set by hand; a referee of its own who follows whole
 * games; noughts and crosses row by row against the worked example; and the opponent. */
#include "actor/worlds/builtin/connect.h"
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

#define NOUGHTS "columns=3 rows=3 line=3 gravity=0"

/* --- boards set by hand ----------------------------------------------------------------------- */

/* 6 rows of 7: x, o or a dot. */
static void set_board(struct rm_test_batch *batch, const char *const rows[6])
{
    struct rm_connect_game game;
    assert_int_equal(batch->world.ops->state_size(batch->env), sizeof(game));
    batch->world.ops->save_state(batch->env, &game);
    game.marks[0] = game.marks[1] = 0;
    game.over = game.last = 0;
    for (int r = 0; r < 6; r++)
        for (int c = 0; c < 7; c++)
            if (rows[r][c] != '.')
                game.marks[rows[r][c] == 'o'] |= (uint64_t)1 << (8 * r + c);
    assert_int_equal(batch->world.ops->load_state(batch->env, &game), 0);
}

static void test_lines(void **unused)
{
    (void)unused;
    static const struct {
        const char *rows[6];
        int column; /* x's move */
        int wins;
    } boards[] = {
        {{".......", ".......", ".......", ".......", "ooo....", "xxx...."}, 3, 1},
        {{".......", ".......", ".......", ".......", "ooo....", "xx.x..."}, 2, 1},
        {{".......", ".......", ".......", ".......", "ooo....", "xx.x..."}, 4, 0},
        {{".......", ".......", ".......", "x......", "xo.....", "xo....."}, 0, 1},
        {{".......", ".......", ".......", "...o...", "..xo...", ".xoo..x"}, 3, 0},
        {{".......", ".......", "...o...", "..xo...", ".xoo...", "xoox..."}, 3, 0},
        {{".......", ".......", ".......", "..xo...", ".xoo...", "xoox..."}, 3, 1},
        {{".......", ".......", ".......", "...ox..", "...oox.", "...xoox"}, 3, 1},
        /* Three at the right side and one at the left of the next row are no line. */
        {{".......", ".......", ".......", ".......", "o......", "o...xxx"}, 0, 0},
        {{".......", ".......", ".......", ".......", "xo...oo", "oo..xxx"}, 1, 0},
        {{"......x", "......x", "......o", "x.....o", "xo....x", "xoo...x"}, 0, 1},
    };
    for (size_t i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, "connect", NULL, NULL, 1, 0, 1);
        rm_test_batch_reset(&batch);
        set_board(&batch, boards[i].rows);
        batch.actions[0][0] = boards[i].column;
        rm_test_batch_step(&batch, 0);
        float expected = boards[i].wins ? -1 : 0;
        if (batch.out[1].reward[0] != expected)
            fail_msg("board %zu: o is paid %g", i, batch.out[1].reward[0]);
        rm_test_batch_close(&batch);
    }
}

static void test_full_columns(void **unused)
{
    (void)unused;
    static const char *const rows[6] = {"..o....", "..x....", "..o....",
                                        "..x....", "..o....", "o.x...x"};
    static const uint8_t legal[7] = {1, 1, 0, 1, 1, 1, 1};
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "connect", NULL, NULL, 1, 6, 1);
    rm_test_batch_reset(&batch);
    set_board(&batch, rows);
    batch.actions[0][0] = 2;
    assert_int_equal(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out), -EINVAL);
    assert_string_equal(batch.world.ops->last_error(batch.env),
                        "action 2 of x in world 6 is masked out");
    batch.actions[0][0] = 7;
    assert_int_equal(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out), -EINVAL);
    batch.actions[0][0] = 0;
    rm_test_batch_step(&batch, 0);
    assert_memory_equal(rm_test_batch_mask(&batch, 1, 0), legal, 7);
    const uint8_t *board = rm_test_batch_obs(&batch, 1, 0); /* as o sees it */
    assert_int_equal(board[4 * 7 + 0], 2);
    assert_int_equal(board[5 * 7 + 0], 1);
    assert_int_equal(board[0 * 7 + 2], 1);
    rm_test_batch_close(&batch);
}

/* --- a referee -------------------------------------------------------------------------------- */

struct referee {
    int rows, columns, line, gravity, board[8][8];
    float draw, due[2];
    int over;
};

static int run(const struct referee *r, int y, int x, int dy, int dx)
{
    int n = 0, who = r->board[y][x];
    for (; y >= 0 && x >= 0 && y < r->rows && x < r->columns && r->board[y][x] == who; n++)
        y += dy, x += dx;
    return n;
}

static int won(const struct referee *r, int y, int x)
{
    static const int d[4][2] = {{0, 1}, {1, 0}, {1, 1}, {1, -1}};
    for (int i = 0; i < 4; i++)
        if (run(r, y, x, d[i][0], d[i][1]) + run(r, y, x, -d[i][0], -d[i][1]) - 1 >= r->line)
            return 1;
    return 0;
}

static int marks_on(const struct referee *r)
{
    int n = 0;
    for (int y = 0; y < r->rows; y++)
        for (int x = 0; x < r->columns; x++)
            n += r->board[y][x] != 0;
    return n;
}

static void rule(struct referee *r, int player, int action)
{
    int y = r->gravity ? r->rows - 1 : action / r->columns;
    int x = r->gravity ? action : action % r->columns;
    while (r->gravity && r->board[y][x])
        y--;
    assert_int_equal(r->board[y][x], 0);
    r->board[y][x] = player + 1;
    if (won(r, y, x)) {
        r->over = 1;
        r->due[player] += 1;
        r->due[!player] -= 1;
    } else if (marks_on(r) == r->rows * r->columns) {
        r->over = 1;
        r->due[0] += r->draw;
        r->due[1] += r->draw;
    }
}

static void agree(const struct referee *r, const struct rm_test_batch *batch, uint32_t a,
                  uint32_t w)
{
    const uint8_t *obs = rm_test_batch_obs(batch, a, w), *mask = rm_test_batch_mask(batch, a, w);
    for (int y = 0; y < r->rows; y++)
        for (int x = 0; x < r->columns; x++) {
            int mark = r->board[y][x], code = obs[y * r->columns + x];
            assert_int_equal(code, mark == 0 ? 0 : mark == (int)a + 1 ? 1 : 2);
            if (!r->gravity)
                assert_int_equal(mask[y * r->columns + x], r->over || !mark);
        }
    for (int x = 0; r->gravity && x < r->columns; x++)
        assert_int_equal(mask[x], r->over || !r->board[0][x]);
    assert_float_equal(batch->out[a].reward[w], r->due[a], 0);
}

static void test_referee(void **unused)
{
    (void)unused;
    static const struct {
        const char *options;
        struct referee rules;
    } games[] = {
        {"draw=0.5", {.rows = 6, .columns = 7, .line = 4, .gravity = 1, .draw = 0.5f}},
        {NOUGHTS, {.rows = 3, .columns = 3, .line = 3}},
        {"columns=8 rows=7 line=5 gravity=0", {.rows = 7, .columns = 8, .line = 5}},
        {"columns=4 rows=8 line=3", {.rows = 8, .columns = 4, .line = 3, .gravity = 1}},
        {"columns=3 rows=5 line=5 draw=-0.25",
         {.rows = 5, .columns = 3, .line = 5, .gravity = 1, .draw = -0.25f}},
    };
    enum { WORLDS = 5, STEPS = 1500 };
    for (size_t g = 0; g < sizeof(games) / sizeof(games[0]); g++) {
        struct rm_test_batch batch;
        struct referee referee[WORLDS];
        uint32_t ends[WORLDS] = {0};
        uint8_t last[WORLDS] = {0}, results[3] = {0};
        rm_test_batch_open(&batch, "connect", NULL, games[g].options, 1, 0, WORLDS);
        rm_test_batch_reset(&batch);
        for (int w = 0; w < WORLDS; w++)
            referee[w] = games[g].rules;
        for (uint64_t t = 0; t < STEPS; t++) {
            for (uint32_t a = 0; a < 2; a++) {
                rm_test_batch_draw(&batch, 2, 0, a, t);
                for (uint32_t w = 0; w < WORLDS; w++) {
                    struct referee *r = &referee[w];
                    if (last[w] && a == 0 && !(batch.out[0].flags[w] & RM_ENV_TERMINATED)) {
                        *r = games[g].rules;
                        last[w] = 0;
                    }
                    agree(r, &batch, a, w);
                    if (r->over && r->due[a] != 0)
                        results[r->due[a] > 0 ? 2 * a : 1] = 1;
                    r->due[a] = 0;
                    uint8_t flags = batch.out[a].flags[w];
                    assert_int_equal((flags & RM_ENV_FIRST) != 0, marks_on(r) == (int)a);
                    if (flags & RM_ENV_TERMINATED) {
                        assert_true(r->over);
                        last[w] = 1;
                        ends[w] += a;
                    }
                    if (!r->over)
                        rule(r, (int)a, batch.actions[a][w]);
                }
                rm_test_batch_step(&batch, a);
            }
        }
        for (int w = 0; w < WORLDS; w++)
            assert_true(ends[w] >= STEPS / (batch.spec->max_steps + 1));
        assert_true(results[0] && results[1] && results[2]);
        rm_test_batch_close(&batch);
    }
}

/* The worked example is another program for the same game: rows must be the same. */
static void test_like_the_example(void **unused)
{
    (void)unused;
    enum { WORLDS = 6, STEPS = 400 };
    struct rm_test_batch ours, example;
    rm_test_batch_open(&ours, "connect", NULL, NOUGHTS " draw=0.25", 1, 0, WORLDS);
    rm_test_batch_open(&example, "tictactoe", rm_test_build_path("examples/tictactoe.so"),
                       "draw=0.25", 1, 0, WORLDS);
    rm_test_batch_reset(&ours);
    rm_test_batch_reset(&example);
    for (uint64_t t = 0; t < STEPS; t++) {
        for (uint32_t a = 0; a < 2; a++) {
            for (uint32_t w = 0; w < WORLDS; w++) {
                assert_memory_equal(rm_test_batch_obs(&ours, a, w),
                                    rm_test_batch_obs(&example, a, w), 9);
                assert_memory_equal(rm_test_batch_mask(&ours, a, w),
                                    rm_test_batch_mask(&example, a, w), 9);
                assert_float_equal(ours.out[a].reward[w], example.out[a].reward[w], 0);
                assert_int_equal(ours.out[a].flags[w], example.out[a].flags[w]);
            }
            rm_test_batch_draw(&ours, 3, 0, a, t);
            memcpy(example.actions[a], ours.actions[a], WORLDS * sizeof(int32_t));
            rm_test_batch_step(&ours, a);
            rm_test_batch_step(&example, a);
        }
    }
    rm_test_batch_close(&ours);
    rm_test_batch_close(&example);
}

/* --- openings, opponents ---------------------------------------------------------------------- */

static void test_openings(void **unused)
{
    (void)unused;
    enum { WORLDS = 500 };
    struct rm_test_batch batch;
    uint32_t seen[9] = {0};
    rm_test_batch_open(&batch, "connect", NULL, NOUGHTS " opening=2", 5, 0, WORLDS);
    rm_test_batch_reset(&batch);
    for (uint32_t w = 0; w < WORLDS; w++) {
        const uint8_t *board = rm_test_batch_obs(&batch, 0, w);
        int marks[3] = {0};
        for (int c = 0; c < 9; c++) {
            marks[board[c]]++;
            seen[c] += board[c] == 1;
        }
        assert_int_equal(marks[1], 2);
        assert_int_equal(marks[2], 2);
        assert_int_equal(batch.out[0].flags[w], RM_ENV_FIRST);
    }
    for (int c = 0; c < 9; c++) /* every cell alike */
        assert_float_equal(seen[c], WORLDS * 2 / 9.0, 5 * sqrt(WORLDS * 2 / 9.0));
    rm_test_batch_close(&batch);
}

/* Against the world's random play, at noughts and crosses: the exact mean, and fair rows. */
static void test_opponent(void **unused)
{
    (void)unused;
    for (int second = 0; second < 2; second++) {
        enum { WORLDS = 50, STEPS = 2000 };
        struct rm_test_batch batch;
        double sum = 0, squares = 0, n = 0;
        rm_test_batch_open(&batch, "connect", NULL,
                           second ? NOUGHTS " draw=0.5 opponent=1 second=1"
                                  : NOUGHTS " draw=0.5 opponent=1",
                           5, 0, WORLDS);
        assert_int_equal(batch.spec->agents, 1);
        assert_int_equal(batch.spec->phases, 1);
        assert_string_equal(batch.spec->agent[0].name, second ? "o" : "x");
        rm_test_batch_reset(&batch);
        for (uint64_t t = 0; t < STEPS; t++) {
            for (uint32_t w = 0; w < WORLDS; w++) {
                const uint8_t *board = rm_test_batch_obs(&batch, 0, w);
                int marks[3] = {0};
                for (int c = 0; c < 9; c++)
                    marks[board[c]]++;
                if (batch.out[0].flags[w] & RM_ENV_TERMINATED) {
                    sum += batch.out[0].reward[w];
                    squares += batch.out[0].reward[w] * batch.out[0].reward[w];
                    n++;
                } else {
                    assert_int_equal(marks[1] + second, marks[2]);
                    assert_float_equal(batch.out[0].reward[w], 0, 0);
                }
            }
            rm_test_batch_draw(&batch, 4, 0, 0, t);
            rm_test_batch_step(&batch, 0);
        }
        double mean = sum / n, error = sqrt((squares / n - mean * mean) / n);
        assert_float_equal(mean, batch.spec->score_random, 4 * error);
        rm_test_batch_close(&batch);
    }
}

static void test_refusals(void **unused)
{
    (void)unused;
    static const struct {
        const char *options, *words;
    } refused[] = {{"columns=8 rows=8", "at most 64"},
                   {"line=8", "longer than the board"},
                   {NOUGHTS " opening=4", "fills the board"},
                   {"second=1", "needs opponent 1"}};
    struct rm_world world;
    struct rm_world_config config;
    struct rm_env *env;
    struct rm_error error;
    assert_int_equal(rm_world_open(&world, "connect", NULL, &error), 0);
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        rm_test_world_config(&config, "connect", refused[i].options);
        assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
        if (!strstr(error.text, refused[i].words))
            fail_msg("%s", error.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),    cmocka_unit_test(test_full_columns),
        cmocka_unit_test(test_referee),  cmocka_unit_test(test_like_the_example),
        cmocka_unit_test(test_openings), cmocka_unit_test(test_opponent),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
