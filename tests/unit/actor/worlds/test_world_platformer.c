/* platformer: the physics, the masks, the generators and the rewards beside figures that were
 * computed elsewhere, to the printed digit; and what agents are given. */
#include "actor/worlds/builtin/platformer.h"
#include "tests/support/allocations.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

enum { NOTHING, LEFT, RIGHT, JUMP };

extern const struct rm_env_ops rm_platformer_ops;

static struct rm_platformer_map map;
static struct rm_platformer_state state;

static struct rm_platformer_point centre(int column, int row)
{
    return (struct rm_platformer_point){(int16_t)(24 * column + 12), (int16_t)(24 * row + 12)};
}

/* An empty box of tiles in a full level, with switch and exit out of the way. */
static void room(int x, int y, int width, int height)
{
    memset(&map, 0, sizeof map);
    memset(map.level.tile, RM_PLATFORMER_FULL, sizeof map.level.tile);
    for (int row = y; row < y + height; row++)
        memset(&map.level.tile[row][x], RM_PLATFORMER_EMPTY, (size_t)width);
    map.level.opener = map.level.exit = centre(42, 23);
}

static void start(int column, int row)
{
    map.level.spawn = centre(column, row);
    rm_platformer_build(&map);
    rm_platformer_begin(&map, &state);
}

static void go(uint32_t action, int frames)
{
    for (int i = 0; i < frames; i++)
        rm_platformer_frame(&map, &state, action);
}

/* To so many printed digits. */
static void is_close(double value, double expected, int digits)
{
    if (!(fabs(value - expected) <= 0.51 * pow(10, -digits)))
        fail_msg("%.12g, must be %.12g to %d digits", value, expected, digits);
}

static void mask_of(bool compat, char text[RM_PLATFORMER_ACTIONS + 1])
{
    uint8_t mask[RM_PLATFORMER_ACTIONS];
    rm_platformer_mask(&map, &state, compat, mask);
    for (int a = 0; a < RM_PLATFORMER_ACTIONS; a++)
        text[a] = (char)('0' + mask[a]);
    text[RM_PLATFORMER_ACTIONS] = 0;
}

static void masks_are(const char *correct, const char *compat)
{
    char text[RM_PLATFORMER_ACTIONS + 1];
    mask_of(false, text);
    assert_string_equal(text, correct);
    mask_of(true, text);
    assert_string_equal(text, compat);
}

static void mask_is(const char *expected)
{
    char text[RM_PLATFORMER_ACTIONS + 1];
    mask_of(false, text);
    assert_string_equal(text, expected);
}

static void test_falling(void **unused)
{
    (void)unused;
    room(1, 1, 12, 12);
    start(3, 12);
    go(NOTHING, 1);
    is_close(state.ninja.y - 300, .066667, 6);
    is_close(state.ninja.vy, .066667, 6);
    assert_int_equal(state.ninja.state, RM_PLATFORMER_FALL);
    go(NOTHING, 1);
    is_close(state.ninja.y - 300, .199555, 6);
    is_close(state.ninja.vy, .132888, 6);
    go(NOTHING, 5);
    assert_true(state.ninja.airborne);
    go(NOTHING, 1);
    assert_false(state.ninja.airborne);
    is_close(state.ninja.y, 302, 9);
    is_close(state.ninja.vy, 0, 9);
    assert_int_equal(state.ninja.state, RM_PLATFORMER_STILL);
}

static void test_running(void **unused)
{
    static const struct {
        int frames;
        double dx, vx;
    } rows[] = {
        {1, 0, .066667}, {2, .066221, .132888}, {3, .198222, .198667}, {60, 103.417971, 3.304750}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        room(1, 1, 12, 12);
        start(3, 12);
        go(NOTHING, 20);
        go(RIGHT, rows[i].frames);
        is_close(state.ninja.x - 84, rows[i].dx, 6);
        is_close(state.ninja.vx, rows[i].vx, 6);
    }
    room(1, 1, 42, 12);
    start(1, 12);
    double fastest = 0;
    for (int i = 0; i < 280; i++) {
        go(RIGHT, 1);
        fastest = fmax(fastest, state.ninja.vx);
    }
    is_close(fastest, 3.332881, 6);
}

static void test_jumping(void **unused)
{
    static const struct {
        int held;
        double apex;
        int at, landed;
    } rows[] = {{1, 28.8081, 28, 59}, {10, 40.6129, 35, 72}, {60, 76.9096, 61, 112}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int at = 0, landed = 0, ended = 0;
        double apex = 0;
        room(1, 1, 12, 12);
        start(3, 12);
        go(NOTHING, 20);
        const double floor = state.ninja.y;
        for (int frame = 1; frame <= 120 && !landed; frame++) {
            go(frame <= rows[i].held ? JUMP : NOTHING, 1);
            const double height = floor - state.ninja.y;
            if (frame <= 2) {
                is_close(height, frame == 1 ? 2 : 3.975533, 6);
                is_close(state.ninja.vy, frame == 1 ? -2 : -1.975533, 6);
            }
            if (frame == 1)
                assert_int_equal(state.ninja.state, RM_PLATFORMER_JUMP);
            ended = ended || state.ninja.state == RM_PLATFORMER_JUMP ? ended : frame;
            at = height > apex ? frame : at;
            apex = fmax(apex, height);
            landed = frame > 1 && !state.ninja.airborne ? frame : 0;
        }
        is_close(apex, rows[i].apex, 4);
        assert_int_equal(at, rows[i].at);
        assert_int_equal(landed, rows[i].landed);
        if (rows[i].held == 60) {
            assert_int_equal(ended, 47);
            assert_int_equal(state.ninja.jump_duration, 46);
        }
    }
}

static void test_impact(void **unused)
{
    (void)unused;
    for (int deep = 0; deep < 2; deep++) {
        room(1, 1, 12, 22);
        start(3, deep ? 11 : 12); /* 266 or 242 pixels above the place where it stands */
        do {
            go(NOTHING, 1);
        } while (state.ninja.airborne && state.ninja.state < RM_PLATFORMER_DEAD);
        is_close(state.ninja.old_vy, deep ? 4.8405 : 4.6653, 4);
        assert_int_equal(state.ninja.death, deep ? RM_PLATFORMER_BY_IMPACT : RM_PLATFORMER_ALIVE);
        assert_int_equal(state.ninja.state, deep ? RM_PLATFORMER_DEAD : RM_PLATFORMER_STILL);
    }
}

static void test_safe_mine(void **unused)
{
    (void)unused;
    room(1, 1, 12, 12);
    map.level.mines = 1;
    map.level.mine[0].at = (struct rm_platformer_point){132, 302};
    map.level.mine[0].state = RM_PLATFORMER_SAFE;
    start(3, 12);
    go(RIGHT, 37);
    assert_int_equal(state.mine[0], RM_PLATFORMER_SAFE);
    go(RIGHT, 1);
    assert_int_equal(state.mine[0], RM_PLATFORMER_TOGGLING);
    go(RIGHT, 11);
    assert_int_equal(state.mine[0], RM_PLATFORMER_TOGGLING);
    go(RIGHT, 1);
    assert_int_equal(state.mine[0], RM_PLATFORMER_DEADLY);
    go(RIGHT, 15); /* with LEFT at once it would die 54 frames later, with this 77 */
    go(LEFT, 76);
    assert_int_equal(state.ninja.death, RM_PLATFORMER_ALIVE);
    go(LEFT, 1);
    assert_int_equal(state.ninja.death, RM_PLATFORMER_BY_MINE);
    assert_int_equal(state.mine[0], RM_PLATFORMER_SAFE);
}

static void test_switch_and_exit(void **unused)
{
    (void)unused;
    room(1, 1, 12, 12);
    map.level.opener = map.level.exit = centre(5, 12);
    start(3, 12);
    go(RIGHT, 34);
    assert_int_equal(state.active, 0);
    go(RIGHT, 1);
    assert_int_equal(state.active, 1);
    is_close(state.ninja.x, 116.3178, 4);
    assert_true(state.ninja.state < RM_PLATFORMER_DEAD);
    go(RIGHT, 1);
    is_close(state.ninja.x, 118.2652, 4);
    assert_int_equal(state.ninja.state, RM_PLATFORMER_WON);
}

static void test_slope(void **unused)
{
    (void)unused;
    room(1, 1, 12, 12);
    memset(&map.level.tile[12][7], RM_PLATFORMER_FULL, 6);
    map.level.tile[12][6] = RM_PLATFORMER_LOWER_RIGHT;
    start(3, 12);
    go(RIGHT, 45);
    assert_true(state.ninja.floor_x == 0);
    go(RIGHT, 1);
    is_close(state.ninja.floor_x, -.70711, 5);
    is_close(state.ninja.floor_y, -.70711, 5);
    is_close(state.ninja.vx, 1.28194, 5);
    is_close(state.ninja.vy, -1.21527, 5);
}

static void put_door(int16_t x, int key)
{
    map.level.doors = 1;
    map.level.door[0] =
        (struct rm_platformer_door){.at = {x, 300}, .opener = centre(key, 12), .vertical = true};
}

static void test_door(void **unused)
{
    (void)unused;
    room(1, 12, 12, 1);
    put_door(216, 12);
    start(3, 12);
    go(RIGHT, 120);
    is_close(state.ninja.x, 206, 9);
    assert_int_equal(state.ninja.wall, -1);
    assert_false(state.ninja.airborne);
    mask_is("110111");
    room(1, 12, 12, 1);
    put_door(216, 5);
    start(2, 12);
    go(RIGHT, 46);
    assert_int_equal(state.open[0], 0);
    go(RIGHT, 1);
    assert_int_equal(state.open[0], 1);
    go(RIGHT, 35);
    assert_true(state.ninja.x <= 230);
    go(RIGHT, 1);
    assert_true(state.ninja.x > 230);
}

static void test_masks(void **unused)
{
    (void)unused;
    room(1, 1, 12, 12);
    start(3, 2);
    for (int frame = 1; frame <= 9; frame++) {
        go(JUMP, 1);
        mask_is(frame <= 5 ? "111111" : "111000");
    }
    room(1, 1, 12, 12);
    map.level.mines = 1;
    map.level.mine[0].at = (struct rm_platformer_point){156, 306};
    start(3, 12);
    for (int frame = 1; frame <= 41; frame++) {
        uint8_t mask[RM_PLATFORMER_ACTIONS];
        go(RIGHT, 1);
        const struct rm_platformer_state before = state;
        rm_platformer_mask(&map, &state, false, mask);
        assert_memory_equal(&before, &state, sizeof state);
        assert_int_equal(mask[RIGHT], frame < 41);
    }
    is_close(state.ninja.x, 128.7935, 4);
}

/* Falls from `row` to a floor whose tiles from the 6th column on may be a slope. At each frame with
 * vy over the limit - 4.6, with compat 5.0 - an action is forbidden if ten frames of it end in an
 * impact. Returns how many actions other than 0 were forbidden, over all frames. */
static int falls(int row, bool slope, double x, bool compat)
{
    const double limit = compat ? 5.0 : 4.6;
    int forbidden = 0;
    room(1, 1, 12, 22);
    if (slope)
        map.level.tile[22][6] = RM_PLATFORMER_LOWER_RIGHT;
    start(3, row);
    state.ninja.x = x;
    for (; state.ninja.state < RM_PLATFORMER_DEAD && state.frame < 200; go(NOTHING, 1)) {
        const struct rm_platformer_state before = state;
        char expected[] = "111111", text[RM_PLATFORMER_ACTIONS + 1];
        for (uint32_t a = 0; a < RM_PLATFORMER_ACTIONS && before.ninja.vy > limit; a++) {
            go(a, 10);
            expected[a] = state.ninja.death == RM_PLATFORMER_BY_IMPACT ? '0' : '1';
            state = before;
        }
        if (!strchr(expected, '1'))
            expected[0] = '1';
        mask_of(compat, text);
        assert_string_equal(text, expected);
        for (int a = 1; a < RM_PLATFORMER_ACTIONS; a++)
            forbidden += expected[a] == '0';
        if (before.ninja.vy > 1 && !before.ninja.airborne)
            break;
    }
    return forbidden;
}

static void test_masks_of_impacts(void **unused)
{
    (void)unused;
    assert_int_equal(falls(11, false, 84, false), 6 * 5);
    assert_int_equal(falls(11, false, 84, true), 0);
    assert_int_equal(falls(1, false, 84, false), 10 * 5);
    assert_int_equal(falls(1, false, 84, true), 10 * 5);
    assert_int_equal(falls(11, true, 140, false), 3 * 2); /* on the slope it lives */
}

/* The same under a ceiling, after two wall jumps 1 to 6 frames apart. */
static void test_masks_of_ceilings(void **unused)
{
    (void)unused;
    static const int32_t second[] = {29, 24, 23, 30};
    for (int i = 0; i < 4; i++) {
        room(1, 1, 12, 12);
        start(3, 1);
        go(NOTHING, 1);
        state.ninja.vy = -5.2;
        state.ninja.wall_jump[0] = 30;
        state.ninja.wall_jump[1] = second[i];
        masks_are(i < 2 ? "100000" : "111111", i < 2 ? "100000" : "111111");
        state.ninja.vy = -4.9; /* with compat that is not looked at */
        masks_are(i < 2 ? "100000" : "111111", "111111");
    }
}

/* The look-ahead of compat moves through walls, and stays 12.5 pixels from a mine. */
static void test_masks_of_mines_with_compat(void **unused)
{
    (void)unused;
    room(1, 1, 5, 12);
    map.level.mines = 1;
    map.level.mine[0].at = (struct rm_platformer_point){160, 302}; /* inside of the wall at 144 */
    start(3, 12);
    go(NOTHING, 20);
    state.ninja.x = 132;
    state.ninja.vx = 3;
    masks_are("111111", "110111"); /* RIGHT ends 10 pixels from the mine */
    state.ninja.vx = 2;
    masks_are("111111", "111111");
}

/* --- generators ------------------------------------------------------------------------------- */

static void stands_at(struct rm_platformer_point at, int x, int y)
{
    assert_int_equal(at.x, x);
    assert_int_equal(at.y, y);
}

static int empty_tiles(const struct rm_platformer_level *level)
{
    int count = 0;
    for (int row = 0; row < RM_PLATFORMER_ROWS; row++)
        for (int column = 0; column < RM_PLATFORMER_COLUMNS; column++)
            count += level->tile[row][column] == RM_PLATFORMER_EMPTY;
    return count;
}

static void test_hills(void **unused)
{
    (void)unused;
    uint64_t rng = 99;
    int pressed = 0;
    rm_platformer_generate(&map.level, RM_PLATFORMER_C1, 7);
    stands_at(map.level.spawn, 684, 372);
    stands_at(map.level.opener, 804, 348);
    stands_at(map.level.exit, 756, 372);
    rm_platformer_build(&map);
    rm_platformer_begin(&map, &state);
    while (state.ninja.state < RM_PLATFORMER_DEAD) {
        go(rm_platformer_below(&rng, 6), 1);
        pressed = pressed || !state.active ? pressed : (int)state.frame;
        if (state.frame == 100) {
            is_close(state.ninja.x, 757.602902182, 9);
            is_close(state.ninja.y, 342.465619168, 9);
            assert_int_equal(state.ninja.state, RM_PLATFORMER_FALL);
        }
        if (state.frame == 200) {
            is_close(state.ninja.x, 801.324856212, 9);
            is_close(state.ninja.y, 336.768041299, 9);
        }
    }
    assert_int_equal(pressed, 143);
    assert_int_equal(state.frame, 251);
    assert_int_equal(state.ninja.state, RM_PLATFORMER_WON);
}

/* A batch of one world on one level, after its reset. */
static void open_batch(struct rm_test_batch *batch, const char *options)
{
    rm_test_batch_open(batch, "platformer", NULL, options, 1, 0, 1);
    rm_test_batch_reset(batch);
}

static const struct rm_platformer_world *world_of(const struct rm_test_batch *batch)
{
    return rm_single_world_at(batch->env, 0);
}

static double step(struct rm_test_batch *batch, int32_t action)
{
    batch->actions[0][0] = action;
    rm_test_batch_step(batch, 0);
    return (double)batch->out[0].reward[0];
}

static void hops_are(const struct rm_test_batch *batch, int hops, int farthest)
{
    const struct rm_platformer_world *world = world_of(batch);
    const struct rm_platformer_field *field =
        &rm_platformer_place_of(batch->env, world)->paths->field[world->state.active];
    assert_int_equal(field->hops[world->node], hops);
    assert_int_equal(field->farthest, farthest);
}

static void test_mazes(void **unused)
{
    static const struct {
        enum rm_platformer_stage stage;
        const char *options;
        int tiles, x[3], y[3], hops, farthest;
    } rows[] = {
        {RM_PLATFORMER_M0,
         "stage=\"m0\" levels=1 first_level=3",
         29,
         {276, 180, 132},
         {228, 132, 228},
         30,
         39},
        {RM_PLATFORMER_M1,
         "stage=\"m1\" levels=1 first_level=3",
         79,
         {420, 84, 372},
         {108, 108, 156},
         64,
         99},
    };
    (void)unused;
    for (int i = 0; i < 2; i++) {
        struct rm_test_batch batch;
        open_batch(&batch, rows[i].options);
        const struct rm_platformer_level *level =
            &rm_platformer_place_of(batch.env, world_of(&batch))->map.level;
        assert_int_equal(empty_tiles(level), rows[i].tiles);
        stands_at(level->spawn, rows[i].x[0], rows[i].y[0]);
        stands_at(level->opener, rows[i].x[1], rows[i].y[1]);
        stands_at(level->exit, rows[i].x[2], rows[i].y[2]);
        hops_are(&batch, rows[i].hops, rows[i].farthest);
        rm_test_batch_close(&batch);
    }
}

/* --- rewards ---------------------------------------------------------------------------------- */

static void test_rewards(void **unused)
{
    struct rm_test_batch batch;
    double sum = 0, last = 0;
    (void)unused;
    open_batch(&batch, "levels=1 first_level=7");
    const struct rm_platformer_level *level =
        &rm_platformer_place_of(batch.env, world_of(&batch))->map.level;
    stands_at(level->spawn, 684, 348);
    stands_at(level->opener, 780, 348);
    stands_at(level->exit, 852, 348);
    assert_int_equal(rm_platformer_place_of(batch.env, world_of(&batch))->paths->reachable, 104);
    hops_are(&batch, 8, 19);
    is_close(world_of(&batch)->potential, 1.157895, 6);
    is_close(step(&batch, NOTHING), -.111526, 6);
    hops_are(&batch, 9, 19);
    rm_test_batch_close(&batch);
    open_batch(&batch, "levels=1 first_level=7");
    for (int frame = 1; frame <= 55; frame++) {
        assert_int_equal(world_of(&batch)->state.active, 0);
        last = step(&batch, RIGHT);
        sum += last;
    }
    assert_int_equal(world_of(&batch)->state.active, 1);
    is_close(sum, 2.21342, 5);
    is_close(last, 1.999, 6);
    rm_test_batch_close(&batch);
    open_batch(&batch, "levels=1 first_level=7 compat=1");
    is_close(step(&batch, NOTHING), -.030010, 6);
    is_close(step(&batch, NOTHING), -.055010, 6);
    is_close(step(&batch, NOTHING), -.055010, 6);
    rm_test_batch_close(&batch);
}

/* A step with compat in a box without mines, where the potential is always 1. */
struct accounts {
    bool visited[4][25][44], speed_bonus;
    int frame, speed_sign, buffered;
};

static int columns_to(double x, double to)
{
    return abs((int)(x / 12) - (int)(to / 12));
}

static void step_compat(struct rm_test_batch *batch, struct accounts *a, int32_t action)
{
    const struct rm_platformer_state *s = &world_of(batch)->state;
    const struct rm_platformer_level *level =
        &rm_platformer_place_of(batch->env, world_of(batch))->map.level;
    const bool active = s->active;
    const double reward = step(batch, action), t = ++a->frame;
    const struct rm_platformer_ninja *ninja = &s->ninja;
    double expected = -1e-5 - (action == 0 ? .05 : 0);
    if (action == 0 && ninja->state == RM_PLATFORMER_JUMP && ninja->jump_duration == 0) {
        expected += .02; /* it had been pressed before */
        a->buffered++;
    }
    if (s->active && !active) {
        memset(a->visited, 0, sizeof a->visited);
        expected += 2;
    } else if (t > 1) {
        expected -= .005;
    }
    if (ninja->state == RM_PLATFORMER_WON)
        expected += 20 + 2 * (1 - t / 5000);
    for (int i = 0; i < 4; i++) {
        const int cell = 24 * (i ? 2 << i : 1);
        bool *visited = &a->visited[i][(int)ninja->y / cell][(int)ninja->x / cell];
        expected += *visited ? 0
                             : .005 * (t <= 500    ? 1
                                       : t >= 2000 ? .2
                                                   : 1 - .8 * (t - 500) / 1500);
        *visited = true;
    }
    const double speed = hypot(ninja->vx, ninja->vy);
    if (a->frame % 5 == 0 && speed > 0) {
        const double to = s->active ? level->exit.x : level->opener.x;
        const int ahead = columns_to(ninja->x + 20 * ninja->vx / speed, to);
        const int here = columns_to(ninja->x, to);
        a->speed_sign = (ahead < here) - (ahead > here);
    }
    if (a->speed_bonus)
        expected += a->speed_sign > 0 ? .0005 * speed : a->speed_sign < 0 ? -.0003 * speed : 0;
    is_close(reward, expected, 5);
}

static void test_rewards_with_compat(void **unused)
{
    (void)unused;
    for (int bonus = 0; bonus < 2; bonus++) {
        struct rm_test_batch batch;
        struct accounts a = {.speed_bonus = bonus};
        char options[64];
        snprintf(options, sizeof options, "levels=1 first_level=7 compat=1 speed_bonus=%d", bonus);
        open_batch(&batch, options);
        for (int frame = 0; frame < 60; frame++) /* to the switch, back, and to it again */
            step_compat(&batch, &a, frame < 30 ? RIGHT : LEFT);
        assert_int_equal(a.speed_sign, -1);
        while (!(batch.out[0].flags[0] & RM_ENV_TERMINATED))
            step_compat(&batch, &a, RIGHT);
        assert_int_equal(a.speed_sign, 1);
        rm_test_batch_close(&batch);
    }
    /* A jump that is pressed in the air, shortly before the ground; new cells at later times. */
    static const uint32_t times[] = {500, 1250, 2000, 4000};
    struct rm_test_batch batch;
    struct rm_platformer_world world;
    struct accounts a = {0};
    open_batch(&batch, "levels=1 first_level=7 compat=1 speed_bonus=0");
    for (int frame = 1; frame <= 12; frame++)
        step_compat(&batch, &a, frame == 5 ? JUMP : NOTHING);
    assert_int_equal(a.buffered, 1);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(batch.world.ops->save_state(batch.env, &world), 0);
        world.state.frame = times[i] - 1;
        memset(world.visited, 0, sizeof world.visited);
        assert_int_equal(batch.world.ops->load_state(batch.env, &world), 0);
        a.frame = (int)times[i] - 1;
        memset(a.visited, 0, sizeof a.visited);
        step_compat(&batch, &a, NOTHING);
    }
    rm_test_batch_close(&batch);
}

/* Walks to the end of an episode; returns the last reward. */
static double walk(struct rm_test_batch *batch, int32_t action)
{
    double reward = 0;
    while (!(batch->out[0].flags[0] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED))) {
        const uint8_t *mask = rm_test_batch_mask(batch, 0, 0);
        int32_t legal = action;
        while (!mask[legal])
            legal = (legal + 1) % RM_PLATFORMER_ACTIONS;
        reward = step(batch, legal);
    }
    return reward;
}

static void test_ends(void **unused)
{
    struct rm_test_batch batch;
    (void)unused;
    /* At the exit: 20, no potential any more. */
    open_batch(&batch, "levels=1 first_level=7");
    double before = 0, reward = 0;
    while (!(batch.out[0].flags[0] & RM_ENV_TERMINATED)) {
        before = world_of(&batch)->potential;
        reward = step(&batch, RIGHT);
    }
    is_close(reward, 20 - .001 - before, 5);
    assert_true(batch.out[0].figures[0] == 1 && batch.out[0].figures[1] == 1 &&
                batch.out[0].figures[2] == 0);
    rm_test_batch_close(&batch);
    /* The limit of time cuts an episode off; with compat it ends one. */
    open_batch(&batch, "max_steps=3");
    walk(&batch, NOTHING);
    assert_int_equal(batch.out[0].flags[0], RM_ENV_TRUNCATED);
    assert_true(batch.out[0].figures[0] == 0 && batch.out[0].figures[2] == 3);
    rm_test_batch_close(&batch);
    open_batch(&batch, "max_steps=3 compat=1");
    walk(&batch, NOTHING);
    assert_int_equal(batch.out[0].flags[0], RM_ENV_TERMINATED);
    rm_test_batch_close(&batch);
}

/* --- texts ------------------------------------------------------------------------------------ */

static char path[] = "/tmp/ringmaster-level-XXXXXX";

static int make_path(void **unused)
{
    (void)unused;
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int remove_path(void **unused)
{
    (void)unused;
    return unlink(path);
}

/* A level of empty tiles, with `row` in place of a row of it and `things` behind. */
static void write_level(uint32_t rows, uint32_t changed, const char *row, const char *things)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (uint32_t i = 1; i <= rows; i++)
        fprintf(file, "%s\n", i == changed ? row : "..........................................");
    fputs(things, file);
    assert_int_equal(fclose(file), 0);
}

#define PLACES "spawn 36 564\nswitch 100 564\nexit 200 564\n"

static void test_level_text(void **unused)
{
    struct rm_platformer_level level;
    char error[256] = "";
    (void)unused;
    write_level(23, 2, "#6789.....................................",
                PLACES
                "mine 300 570 1\r\n\nmine 400 570 0\ndoor 504 560 v 90 90\ndoor 90 120 h 1 1\n");
    assert_int_equal(rm_platformer_read(&level, path, error, sizeof error), -EINVAL);
    assert_non_null(strstr(error, ":31: x is '1', must be a whole number of pixels from 24 to"));
    write_level(23, 2, "#6789.....................................",
                PLACES "mine 300 570 1\r\n\nmine 400 570 0\ndoor 504 560 v 90 91\n");
    assert_int_equal(rm_platformer_read(&level, path, error, sizeof error), 0);
    static const uint8_t tiles[] = {1, 1, 6, 7, 8, 9, 0};
    assert_memory_equal(level.tile[2], tiles, sizeof tiles);
    assert_int_equal(level.tile[1][1], 0);
    assert_int_equal(level.tile[0][1], 1);
    stands_at(level.spawn, 36, 564);
    stands_at(level.opener, 100, 564);
    stands_at(level.exit, 200, 564);
    assert_int_equal(level.mines, 2);
    stands_at(level.mine[0].at, 300, 570);
    assert_int_equal(level.mine[0].state, RM_PLATFORMER_SAFE);
    assert_int_equal(level.mine[1].state, RM_PLATFORMER_DEADLY);
    assert_int_equal(level.doors, 1);
    stands_at(level.door[0].at, 504, 560);
    stands_at(level.door[0].opener, 90, 91);
    assert_true(level.door[0].vertical);
    /* And a world plays it. */
    struct rm_test_batch batch;
    char options[96];
    snprintf(options, sizeof options, "level=\"%s\"", path);
    open_batch(&batch, options);
    walk(&batch, RIGHT);
    assert_true(batch.out[0].figures[0] == 1);
    rm_test_batch_close(&batch);
}

/* A level may have `most` of such lines; one more is refused. */
static void most_things_are(const char *line, uint32_t most, const char *says)
{
    static char things[4096];
    size_t used = (size_t)snprintf(things, sizeof things, PLACES);
    struct rm_platformer_level level;
    char error[256] = "", expected[160];
    for (uint32_t i = 0; i < most; i++)
        used += (size_t)snprintf(things + used, sizeof things - used, "%s", line);
    write_level(23, 0, "", things);
    assert_int_equal(rm_platformer_read(&level, path, error, sizeof error), 0);
    assert_int_equal(level.mines + level.doors, most);
    snprintf(things + used, sizeof things - used, "%s", line);
    write_level(23, 0, "", things);
    assert_int_equal(rm_platformer_read(&level, path, error, sizeof error), -EINVAL);
    snprintf(expected, sizeof expected, "%s:%u: %s", path, 27 + most, says);
    assert_string_equal(error, expected);
}

static void test_wrong_texts(void **unused)
{
    static const struct {
        uint32_t rows, changed;
        const char *row, *things, *says;
    } wrong[] = {
        {23, 3, "....", PLACES, ":3: row 3 of the level has 4 tiles, must have 42"},
        {23, 23, "...........................................", PLACES,
         ":23: row 23 of the level has 43 tiles, must have 42"},
        {22, 0, "", PLACES, ":23: 'spawn 36 564' follows 22 rows of tiles, must follow 23"},
        {9, 0, "", "", ":10: the level ends after 9 rows of tiles, must have 23"},
        {24, 0, "", PLACES, ":24: a row of tiles follows the level's 23"},
        {23, 5, ".....2....................................", PLACES,
         ":5: tile 6 is '2', must be one of . # 6 7 8 9"},
        {23, 0, "", "spawn 36 564\nexit 90 90\n", ":26: the level ends without a 'switch'"},
        {23, 0, "", PLACES "exit 200 564\n", ":27: a second 'exit'; a level has one"},
        {23, 0, "", "spawn 36\n", ":24: must be: spawn x y"},
        {23, 2, "#.........................................", "spawn 36 60\n",
         ":24: spawn is inside of a full tile"},
        {23, 0, "", "spawn 36.5 90\n", ":24: x is '36.5', must be a whole number of pixels"},
        {23, 0, "", "spawn 36 576\n", ":24: y is '576', must be a whole number of pixels from 24"},
        {23, 0, "", PLACES "mine 90 90 3\n", ":27: the state of a mine is '3', must be 0 deadly"},
        {23, 0, "", PLACES "door 90 90 x 40 40\n", ":27: a door is 'x', must be v or h"},
        {23, 0, "", PLACES "lava 90 90\n", ":27: 'lava' is not spawn, switch, exit, mine or door"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct rm_platformer_level level;
        char error[256] = "", says[160];
        write_level(wrong[i].rows, wrong[i].changed, wrong[i].row, wrong[i].things);
        assert_int_equal(rm_platformer_read(&level, path, error, sizeof error), -EINVAL);
        snprintf(says, sizeof says, "%s%s", path, wrong[i].says);
        if (strncmp(error, says, strlen(says)) != 0)
            fail_msg("says: %s\nmust: %s", error, says);
    }
    most_things_are("mine 90 90 0\n", RM_PLATFORMER_MINES, "more than 128 mines");
    most_things_are("door 90 90 v 40 40\n", RM_PLATFORMER_DOORS, "more than 16 doors");
    char error[256] = "";
    struct rm_platformer_level level;
    assert_int_equal(rm_platformer_read(&level, "/nowhere/x", error, sizeof error), -ENOENT);
    assert_string_equal(error, "/nowhere/x cannot be read: No such file or directory");
}

/* --- what agents are given -------------------------------------------------------------------- */

static void test_observations(void **unused)
{
    struct rm_test_batch batch;
    (void)unused;
    open_batch(&batch, "stage=\"c3\" levels=1 first_level=5 "
                       "observe=[\"doors\",\"reach\",\"game_state\"]");
    const struct rm_env_agent *agent = &batch.spec->agent[0];
    assert_int_equal(agent->observations, 3);
    assert_string_equal(agent->observation[0].name, "game_state");
    assert_string_equal(agent->observation[1].name, "reach");
    assert_string_equal(agent->observation[2].name, "doors");
    assert_int_equal(batch.obs_bytes[0], 4 * (64 + 8 + 1 + 16 * 8));
    const float *seen = rm_test_batch_obs(&batch, 0, 0), *reach = seen + 64, *doors = seen + 73;
    const struct rm_platformer_level *level =
        &rm_platformer_place_of(batch.env, world_of(&batch))->map.level;
    const float way = (float)(level->opener.x - level->spawn.x) / 528;
    assert_true(fabsf(seen[30] - way) < 1e-6f);
    assert_true(seen[32] == 1 && reach[6] == 0); /* the door cuts the switch off */
    assert_true(seen[36] == 1 && seen[53] == 0 && seen[56] == 1);
    uint32_t count;
    memcpy(&count, seen + 72, sizeof count);
    assert_int_equal(count, 1);
    assert_true(doors[0] == seen[38] && doors[4] == seen[41] && doors[2] == 0 && doors[8] == 0);
    assert_true(doors[3] == seen[40] && doors[7] == seen[43] && doors[3] > 0 && doors[7] > 0);
    const int32_t towards = way > 0 ? RIGHT : LEFT;
    while (world_of(&batch)->state.open[0] == 0)
        step(&batch, towards);
    seen = rm_test_batch_obs(&batch, 0, 0);
    assert_true(seen[32] < 1 && seen[64 + 6] == 1 && seen[36] == 0 && seen[53] == 0.5f);
    rm_test_batch_close(&batch);
    for (int compat = 0; compat < 2; compat++) { /* 104 nodes */
        open_batch(&batch, compat ? "levels=1 first_level=7 compat=1" : "levels=1 first_level=7");
        seen = rm_test_batch_obs(&batch, 0, 0);
        is_close((double)seen[64], compat ? 104.0 / 966 : 104.0 / 3864, 6);
        rm_test_batch_close(&batch);
    }
}

static double bounded(double value)
{
    return fmin(fmax(value, -1), 1);
}

static double plus_or_minus(bool yes)
{
    return yes ? 1 : -1;
}

/* The numbers of the game state, as the docs define them; those that other tests have are NaN. */
static void expect_state(const struct rm_test_batch *batch, bool compat, double f[64])
{
    const struct rm_platformer_world *world = world_of(batch);
    const struct rm_platformer_state *s = &world->state;
    const struct rm_platformer_place *place = rm_platformer_place_of(batch->env, world);
    const struct rm_platformer_level *level = &place->map.level;
    const struct rm_platformer_ninja *n = &s->ninja;
    const double speed = hypot(n->vx, n->vy);
    double nearest = HUGE_VAL, part[2];
    uint8_t doom[RM_PLATFORMER_ACTIONS];
    int deadly = 0, near[3] = {0, 0, 0};
    for (int i = 0; i < 64; i++)
        f[i] = NAN;
    f[0] = fmin(speed / 6.666, 1) * 2 - 1;
    f[1] = speed > 1e-9 ? n->vx / speed : 0;
    f[2] = speed > 1e-9 ? n->vy / speed : 0;
    f[3] = plus_or_minus(n->state <= 2);
    f[4] = plus_or_minus(n->state == 3 || n->state == 4);
    f[5] = plus_or_minus(n->state == 5);
    f[6] = plus_or_minus(n->state >= 6);
    f[7] = plus_or_minus(n->airborne);
    f[8] = n->turn;
    f[9] = plus_or_minus(n->jump_held);
    f[10] = fmax(n->jump_buffer, 0) / 5 * 2 - 1;
    f[11] = fmax(n->floor_buffer, 0) / 5 * 2 - 1;
    f[12] = fmax(n->wall_buffer, 0) / 5 * 2 - 1;
    f[13] = plus_or_minus(n->floors > 0);
    f[14] = compat ? -1 : plus_or_minus(n->wall != 0);
    f[15] = plus_or_minus(n->ceilings > 0);
    f[16] = f[28] = 1;
    f[17] = compat ? 0 : n->wall;
    f[18] = n->floor_y;
    f[19] = bounded((n->vx - n->old_vx) / 3.333);
    f[20] = bounded((n->vy - n->old_vy) / 3.333);
    f[21] = plus_or_minus(n->gravity > .05);
    f[22] = fmin(n->jump_duration / 45.0, 1) * 2 - 1;
    f[23] = plus_or_minus(n->wall != 0);
    f[24] = n->floor_x;
    f[25] = n->ceiling_x;
    f[26] = n->ceiling_y;
    f[27] = plus_or_minus(n->drag > .9);
    for (int i = 0; i < 2; i++) {
        const struct rm_platformer_field *field = &place->paths->field[i];
        const uint16_t hops = field->hops[world->node];
        part[i] = hops == RM_PLATFORMER_NO_WAY ? 1 : hops / (double)field->farthest;
    }
    for (uint32_t i = 0; i < level->mines; i++) {
        const double dx = level->mine[i].at.x - n->x, dy = level->mine[i].at.y - n->y;
        deadly += s->mine[i] == RM_PLATFORMER_DEADLY;
        near[s->mine[i]] += hypot(dx, dy) <= 100;
        if (hypot(dx, dy) < nearest) {
            nearest = hypot(dx, dy);
            f[44] = bounded(dx / 100);
            f[45] = bounded(dy / 100);
            f[46] = s->mine[i] == RM_PLATFORMER_DEADLY ? 0
                    : s->mine[i] == RM_PLATFORMER_SAFE ? 1
                                                       : .5;
        }
    }
    if (level->mines == 0) {
        f[44] = f[45] = 0;
        f[46] = -1;
    }
    f[47] = fmin(nearest / 200, 1);
    f[48] = near[RM_PLATFORMER_DEADLY] / 10.0;
    f[49] = level->mines ? 1 - fmin(nearest / 150, 1) : 1;
    f[50] = near[RM_PLATFORMER_SAFE] / 10.0;
    f[51] = level->mines ? fmin(.7 * deadly / level->mines + .3 * level->mines / 10, 1) : 0;
    f[54] = (part[0] + part[1]) / 2;
    f[55] = !s->active ? -1 : hypot(level->exit.x - n->x, level->exit.y - n->y) <= 50 ? 1 : 0;
    f[57] = s->active;
    rm_platformer_doom(&place->map, s, doom);
    for (int a = 0; a < RM_PLATFORMER_ACTIONS; a++)
        f[58 + a] = !compat ? 1 - world->mask[a] : doom[a] ? (11 - doom[a]) / 10.0 : 0;
}

/* Random play among walls, hills, mines and a door. Every number takes several values, but those
 * that are constant. */
static void test_game_state(void **unused)
{
    double low[2][64], high[2][64];
    uint64_t rng = 5;
    (void)unused;
    write_level(23, 23, "..###.....................................",
                "spawn 108 540\nswitch 130 542\nexit 96 542\nmine 150 500 0\nmine 200 566 1\n"
                "mine 215 566 1\nmine 250 500 2\nmine 300 570 0\ndoor 240 564 v 180 564\n");
    for (int i = 0; i < 128; i++) {
        low[i / 64][i % 64] = HUGE_VAL;
        high[i / 64][i % 64] = -HUGE_VAL;
    }
    for (int k = 0; k < 3; k++) {
        struct rm_test_batch batch;
        char text[96];
        const bool compat = k == 2;
        snprintf(text, sizeof text, "level=\"%s\" compat=%d", path, compat);
        open_batch(&batch, k ? text : "stage=\"c1\"");
        for (int frame = 0, action = 0; frame < 4000; frame++) {
            const float *seen = rm_test_batch_obs(&batch, 0, 0);
            const uint8_t *mask = rm_test_batch_mask(&batch, 0, 0);
            double f[64];
            expect_state(&batch, compat, f);
            for (int i = 0; i < 64; i++) {
                if (!isnan(f[i]) && !(fabs((double)seen[i] - f[i]) < 1e-6))
                    fail_msg("%s, frame %d: number %d is %g, must be %g", text, frame, i,
                             (double)seen[i], f[i]);
                low[compat][i] = fmin(low[compat][i], (double)seen[i]);
                high[compat][i] = fmax(high[compat][i], (double)seen[i]);
            }
            if (frame % 8 == 0)
                action = (int)rm_platformer_below(&rng, 6);
            while (!mask[action])
                action = (int)rm_platformer_below(&rng, 6);
            step(&batch, action);
        }
        rm_test_batch_close(&batch);
    }
    for (int i = 0; i < 64; i++) {
        const bool constant = i == 16 || i == 28 || i == 37;
        if ((low[0][i] == high[0][i]) != constant)
            fail_msg("number %d is from %g to %g", i, low[0][i], high[0][i]);
    }
    for (int i = 58; i < 64; i++)
        if (high[1][i] < .5)
            fail_msg("number %d is at most %g", i, high[1][i]);
}

/* With compat a held action's frame beside a mine: in the air, with nothing in the way. */
static void test_doom(void **unused)
{
    uint8_t doom[RM_PLATFORMER_ACTIONS];
    int seen[3] = {0};
    (void)unused;
    room(1, 1, 20, 20);
    map.level.mines = 1;
    start(6, 6);
    go(NOTHING, 1);
    state.ninja.vx = 1.5;
    state.ninja.jump_held = 1;
    for (int16_t x = 166; x < 196; x++) {
        map.level.mine[0].at = (struct rm_platformer_point){x, 156};
        rm_platformer_doom(&map, &state, doom);
        for (int h = -1; h <= 1; h++) {
            const int action = h < 0 ? LEFT : h > 0 ? RIGHT : NOTHING;
            double vx = state.ninja.vx, vy = state.ninja.vy, nx = state.ninja.x, ny = state.ninja.y;
            int at = 0;
            for (int frame = 1; frame <= 10 && !at; frame++) {
                vx = (vx + .04444444444444444 * h) * .9933221725495059;
                vy = vy * .9933221725495059 + .06666666666666665;
                nx += vx;
                ny += vy;
                at = hypot(nx - x, ny - 156) <= 12.5 ? frame : 0;
            }
            assert_int_equal(doom[action], at);
            assert_int_equal(doom[action + 3], at);
            seen[h + 1] |= 1 << at;
        }
    }
    for (int h = 0; h < 3; h++)
        assert_int_equal(seen[h] & 1, 1);
    assert_int_equal(seen[1] >> 10, 1);
}

/* The parts of the game state are all of it, one after another. */
static void test_parts_of_the_state(void **unused)
{
    static const struct {
        const char *name;
        uint32_t numbers;
    } parts[] = {{"physics", 29}, {"objectives", 15}, {"mines", 8},
                 {"progress", 3}, {"sequence", 3},    {"death", 6}};
    struct rm_test_batch whole, apart;
    (void)unused;
    open_batch(&whole, "stage=\"c2\" levels=1 first_level=11");
    open_batch(&apart,
               "stage=\"c2\" levels=1 first_level=11 observe=[\"death\",\"mines\",\"physics\","
               "\"sequence\",\"reach\",\"objectives\",\"progress\"]");
    const struct rm_env_agent *agent = &apart.spec->agent[0];
    assert_int_equal(agent->observations, 7);
    assert_string_equal(agent->observation[6].name, "reach");
    for (uint32_t i = 0; i < 6; i++) {
        assert_string_equal(agent->observation[i].name, parts[i].name);
        assert_int_equal(agent->observation[i].shape[0], parts[i].numbers);
    }
    assert_int_equal(apart.obs_bytes[0], whole.obs_bytes[0]);
    for (uint32_t i = 0; i < 50; i++) {
        assert_memory_equal(rm_test_batch_obs(&apart, 0, 0), rm_test_batch_obs(&whole, 0, 0),
                            whole.obs_bytes[0]);
        step(&whole, i % 20 < 10 ? RIGHT : LEFT);
        step(&apart, i % 20 < 10 ? RIGHT : LEFT);
    }
    rm_test_batch_close(&whole);
    rm_test_batch_close(&apart);
    open_batch(&apart, "stage=\"c2\" levels=1 first_level=11 observe=[\"mines\",\"game_state\"]");
    const float *seen = rm_test_batch_obs(&apart, 0, 0);
    assert_int_equal(apart.obs_bytes[0], 4 * (64 + 8));
    assert_memory_equal(seen + 64, seen + 44, 8 * sizeof *seen);
    rm_test_batch_close(&apart);
}

static int32_t number_at(const uint8_t *at)
{
    int32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

struct seen_graph {
    uint32_t nodes, edges;
    const float *node;
    const int16_t *starts, *sources;
    int32_t own, version;
};

/* As the buffer has it: behind game_state, in the order of the spec. */
static struct seen_graph graph_of(struct rm_test_batch *batch, uint32_t room)
{
    const uint8_t *obs = rm_test_batch_obs(batch, 0, 0), *at = obs + 64 * sizeof(float);
    const uint8_t *edges = at + 4 + sizeof(float) * RM_PLATFORMER_NODE_VALUES * room;
    const uint8_t *own = edges + 4 + (room + 1 + 4 * room + 1) / 2 * 2 * sizeof(int16_t);
    struct seen_graph g = {.nodes = (uint32_t)number_at(at),
                           .node = (const float *)(const void *)(at + 4),
                           .starts = (const int16_t *)(const void *)(edges + 4),
                           .own = number_at(own),
                           .version = number_at(own + 4)};
    g.edges = (uint32_t)number_at(edges) - g.nodes - 1;
    g.sources = g.starts + g.nodes + 1;
    assert_int_equal(g.starts[0], 0);
    assert_int_equal(g.starts[g.nodes], g.edges);
    return g;
}

static const float *value_of(const struct seen_graph *g, uint32_t node, uint32_t value)
{
    return g->node + (size_t)node * RM_PLATFORMER_NODE_VALUES + value;
}

/* Edges lead between nodes 12 pixels apart, both ways; the own node is the ninja's. */
static void check_graph(const struct seen_graph *g, const struct rm_platformer_ninja *ninja)
{
    for (uint32_t node = 0; node < g->nodes; node++)
        for (int16_t k = g->starts[node]; k < g->starts[node + 1]; k++) {
            const uint32_t source = (uint32_t)g->sources[k];
            assert_true(source < g->nodes);
            const float dx = 1056 * fabsf(*value_of(g, node, 0) - *value_of(g, source, 0));
            const float dy = 600 * fabsf(*value_of(g, node, 1) - *value_of(g, source, 1));
            assert_true(fabsf(dx + dy - 12) < 1e-3f && fminf(dx, dy) < 1e-3f);
        }
    assert_true(fabs(1056 * *value_of(g, (uint32_t)g->own, 0) - ninja->x) <= 6.001);
    assert_true(fabs(600 * *value_of(g, (uint32_t)g->own, 1) - ninja->y) <= 6.001);
}

static uint32_t count_kind(const struct seen_graph *g, float kind)
{
    uint32_t count = 0;
    for (uint32_t node = 0; node < g->nodes; node++)
        count += *value_of(g, node, RM_PLATFORMER_NODE_KIND) == kind;
    return count;
}

/* A corridor of one tile's height with a door: nodes in two rows, nothing beyond the door until it
 * opens. The version says when edges change. */
static void test_graph(void **unused)
{
    struct rm_test_batch batch;
    (void)unused;
    open_batch(&batch, "stage=\"c3\" levels=1 first_level=5 observe=[\"graph\",\"game_state\"]");
    const struct rm_env_agent *agent = &batch.spec->agent[0];
    const uint32_t room = agent->observation[1].shape[0];
    assert_int_equal(agent->observations, 5);
    assert_string_equal(agent->observation[1].name, "graph");
    assert_string_equal(agent->observation[2].name, "graph_edges");
    assert_string_equal(agent->observation[3].name, "graph_node");
    assert_string_equal(agent->observation[4].name, "graph_version");
    assert_int_equal(agent->observation[2].shape[0], 5 * room + 1);
    assert_int_equal(room, 460);
    const struct rm_platformer_ninja *ninja = &world_of(&batch)->state.ninja;
    const struct seen_graph g = graph_of(&batch, room);
    check_graph(&g, ninja);
    assert_int_equal(g.nodes % 4, 0);
    assert_int_equal(g.edges, 2 * (3 * (g.nodes / 2) - 2) - 4); /* a ladder, cut by the door */
    uint32_t reached = 0;
    for (uint32_t node = 0; node < g.nodes; node++)
        reached += *value_of(&g, node, RM_PLATFORMER_NODE_REACHED) == 1;
    assert_true(reached > 0 && reached < g.nodes);
    assert_true(count_kind(&g, 3) > 0 && count_kind(&g, 4) > 0 && count_kind(&g, 6) > 0);
    const int32_t towards =
        world_of(&batch)->state.ninja.x <
                rm_platformer_place_of(batch.env, world_of(&batch))->map.level.opener.x
            ? RIGHT
            : LEFT;
    while (world_of(&batch)->state.open[0] == 0) {
        assert_int_equal(graph_of(&batch, room).version, g.version);
        step(&batch, towards);
    }
    const struct seen_graph later = graph_of(&batch, room);
    check_graph(&later, ninja);
    assert_int_equal(later.version, g.version + 1);
    assert_int_equal(later.edges, 2 * (3 * (g.nodes / 2) - 2));
    for (uint32_t node = 0; node < later.nodes; node++)
        assert_true(*value_of(&later, node, RM_PLATFORMER_NODE_REACHED) == 1);
    rm_test_batch_close(&batch);
}

/* Mines: edges lead into no tile of a deadly one, and its nodes show it; a saved state brings the
 * same graph back. */
static void test_graph_of_mines(void **unused)
{
    struct rm_test_batch batch;
    struct rm_platformer_world saved;
    (void)unused;
    open_batch(&batch, "stage=\"c2\" levels=1 first_level=11 observe=[\"graph\",\"game_state\"]");
    const uint32_t room = batch.spec->agent[0].observation[1].shape[0];
    const struct seen_graph g = graph_of(&batch, room);
    const size_t bytes = batch.obs_bytes[0];
    uint8_t *copy = malloc(bytes);
    check_graph(&g, &world_of(&batch)->state.ninja);
    assert_true(count_kind(&g, 2) > 0);
    uint32_t out = 0;
    for (uint32_t node = 0; node < g.nodes; node++)
        if (*value_of(&g, node, RM_PLATFORMER_NODE_KIND) == 2 &&
            *value_of(&g, node, RM_PLATFORMER_NODE_ACTIVE) == 1)
            out += g.starts[node] == g.starts[node + 1];
    assert_true(out > 0);
    assert_int_equal(batch.world.ops->save_state(batch.env, &saved), 0);
    step(&batch, NOTHING);
    memcpy(copy, rm_test_batch_obs(&batch, 0, 0), bytes);
    assert_int_equal(batch.world.ops->load_state(batch.env, &saved), 0);
    step(&batch, NOTHING);
    assert_memory_equal(copy, rm_test_batch_obs(&batch, 0, 0), bytes);
    free(copy);
    rm_test_batch_close(&batch);
}

/* Each half-tile has one node, in its empty corner; compat puts that of tile 7 elsewhere. */
static void test_nodes_of_half_tiles(void **unused)
{
    enum { WIDTH = RM_PLATFORMER_NODE_COLUMNS };
    static const int corner[2][4] = {{WIDTH + 1, WIDTH, 0, 1}, {WIDTH + 1, 1, 0, 1}};
    (void)unused;
    for (int compat = 0; compat < 2; compat++) {
        struct rm_platformer_paths *paths = calloc(1, rm_platformer_paths_bytes(0));
        paths->compat = compat;
        room(1, 1, 12, 12);
        for (int i = 0; i < 4; i++)
            map.level.tile[3][2 + i] = (uint8_t)(6 + i);
        rm_platformer_paths_begin(paths, &map);
        for (int i = 0; i < 4; i++)
            for (int c = 0; c < 4; c++) {
                const int at = c % 2 + c / 2 * WIDTH;
                assert_int_equal(paths->valid[6 * WIDTH + 2 * (2 + i) + at],
                                 at == corner[compat][i]);
            }
        free(paths);
    }
}

/* The level of the page's check 11 has 104 nodes; room for fewer than a level can have is refused.
 */
static void test_graph_room(void **unused)
{
    static struct rm_platformer_graph graph;
    char error[160];
    const struct rm_env_option option = {.key = "graph_nodes", .value = 459, .count = 1};
    const struct rm_env_config config = {.struct_size = sizeof config,
                                         .worlds = 1,
                                         .options = &option,
                                         .option_count = 1,
                                         .ops = &rm_platformer_ops};
    (void)unused;
    struct rm_platformer_paths *paths = calloc(1, rm_platformer_paths_bytes(0));
    rm_platformer_generate(&map.level, RM_PLATFORMER_C0, 7);
    rm_platformer_build(&map);
    rm_platformer_begin(&map, &state);
    rm_platformer_paths_begin(paths, &map);
    rm_platformer_paths_find(paths, &map, &state, 0);
    rm_platformer_graph_update(&graph, paths, &map, &state, true);
    assert_int_equal(graph.nodes, 104);
    assert_int_equal(graph.edges, paths->edges);
    free(paths);
    assert_null(rm_platformer_ops.create(&config, error, sizeof error));
    assert_string_equal(error, "graph_nodes is 459, but a level can have 460");
}

/* A state that no episode comes to is refused. */
static void test_states(void **unused)
{
    struct rm_test_batch batch;
    struct rm_platformer_world world;
    static const size_t doubles[] = {
        offsetof(struct rm_platformer_ninja, x),       offsetof(struct rm_platformer_ninja, vy),
        offsetof(struct rm_platformer_ninja, gravity), offsetof(struct rm_platformer_ninja, drag),
        offsetof(struct rm_platformer_ninja, floor_y),
    };
    (void)unused;
    open_batch(&batch, "stage=\"c2\"");
    assert_int_equal(batch.world.ops->state_size(batch.env), sizeof world);
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
        const double huge = 1e30;
        assert_int_equal(batch.world.ops->save_state(batch.env, &world), 0);
        assert_int_equal(batch.world.ops->load_state(batch.env, &world), 0);
        memcpy((char *)&world.state.ninja + doubles[i], &huge, sizeof huge);
        assert_true(batch.world.ops->load_state(batch.env, &world) < 0);
    }
    batch.world.ops->save_state(batch.env, &world);
    memset(world.mask, 0, sizeof world.mask);
    assert_true(batch.world.ops->load_state(batch.env, &world) < 0);
    rm_test_batch_close(&batch);
}

/* Memory stays as it is over all frames and levels: nothing is allocated after the reset. */
static void test_allocations(void **unused)
{
    static const char *const options[] = {
        "stage=\"c0\"", "stage=\"c3\" max_steps=100",
        "stage=\"m1\" max_steps=100 observe=[\"game_state\",\"reach\",\"doors\",\"graph\"]"};
    (void)unused;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        struct rm_test_batch batch;
        uint64_t rng = i;
        uint32_t ends = 0;
        rm_test_batch_open(&batch, "platformer", NULL, options[i], 1, 0, 16);
        rm_test_batch_reset(&batch);
        const uint64_t before = rm_test_allocations();
        for (int frame = 0; frame < 3000; frame++) {
            for (uint32_t w = 0; w < 16; w++) {
                const uint8_t *mask = rm_test_batch_mask(&batch, 0, w);
                do
                    batch.actions[0][w] = (int32_t)rm_platformer_below(&rng, 6);
                while (!mask[batch.actions[0][w]]);
                ends += batch.out[0].flags[w] == RM_ENV_FIRST;
            }
            rm_test_batch_step(&batch, 0);
        }
        assert_int_equal(rm_test_allocations(), before);
        assert_true(ends > 32);
        rm_test_batch_close(&batch);
    }
}

/* The splits have no level in common; `levels` and `first_level` say which there are. */
static void test_levels(void **unused)
{
    static const char *const options[] = {"split=\"train\"", "split=\"valid\"", "split=\"test\"",
                                          "levels=2 first_level=40"};
    (void)unused;
    for (uint64_t i = 0; i < 4; i++) {
        struct rm_test_batch batch;
        uint64_t differ = 0, first = 0;
        rm_test_batch_open(&batch, "platformer", NULL, options[i], 1, 0, 16);
        rm_test_batch_reset(&batch);
        for (uint32_t w = 0; w < 16; w++) {
            const struct rm_platformer_world *world = rm_single_world_at(batch.env, w);
            assert_int_equal(world->level_seed >> 62, i % 3);
            if (i == 3)
                assert_in_range(world->level_seed, 40, 41);
            first = w ? first : world->level_seed;
            differ += world->level_seed != first;
        }
        assert_true(i == 3 ? differ > 0 : differ == 15);
        rm_test_batch_close(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_falling),
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_jumping),
        cmocka_unit_test(test_impact),
        cmocka_unit_test(test_safe_mine),
        cmocka_unit_test(test_switch_and_exit),
        cmocka_unit_test(test_slope),
        cmocka_unit_test(test_door),
        cmocka_unit_test(test_masks),
        cmocka_unit_test(test_masks_of_impacts),
        cmocka_unit_test(test_masks_of_ceilings),
        cmocka_unit_test(test_masks_of_mines_with_compat),
        cmocka_unit_test(test_hills),
        cmocka_unit_test(test_mazes),
        cmocka_unit_test(test_rewards),
        cmocka_unit_test(test_rewards_with_compat),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_level_text),
        cmocka_unit_test(test_wrong_texts),
        cmocka_unit_test(test_observations),
        cmocka_unit_test(test_game_state),
        cmocka_unit_test(test_doom),
        cmocka_unit_test(test_parts_of_the_state),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_graph),
        cmocka_unit_test(test_graph_of_mines),
        cmocka_unit_test(test_graph_room),
        cmocka_unit_test(test_nodes_of_half_tiles),
        cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
