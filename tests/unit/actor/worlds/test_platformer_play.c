/* platformer: what two fixed policies come to, beside the figures of other implementations of the
 * same rules: uniformly random play, and a runner that follows the way to its goal. Each has its
 * errors, which the bounds here are made of. */
#include "actor/worlds/builtin/platformer.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { FIRST_LEVEL = 100000, LEVELS = 400, NODES = RM_PLATFORMER_NODE_COLUMNS };

struct tally {
    double success, opener, length, score, mine, impact, valid, nodes;
    double length_square, score_square, frames, idle; /* idle: steps of action 0 */
};

typedef int policy(const struct rm_env *env, const uint8_t *mask, uint64_t *rng);

static int play_at_random(const struct rm_env *env, const uint8_t *mask, uint64_t *rng)
{
    int legal[RM_PLATFORMER_ACTIONS] = {0};
    uint32_t count = 0;
    (void)env;
    for (int a = 0; a < RM_PLATFORMER_ACTIONS; a++)
        if (mask[a])
            legal[count++] = a;
    return legal[rm_platformer_below(rng, count)];
}

/* --- the runner ------------------------------------------------------------------------------- */

/* To the objective, or to the switch of a door that is in the way. */
static const uint16_t *way(const struct rm_platformer_world *world,
                           const struct rm_platformer_map *map,
                           const struct rm_platformer_paths *paths)
{
    uint32_t field = world->state.active ? RM_PLATFORMER_TO_EXIT : RM_PLATFORMER_TO_OPENER;
    if (paths->field[field].hops[world->node] == RM_PLATFORMER_NO_WAY)
        for (uint32_t d = 0; d < map->level.doors; d++)
            if (!world->state.open[d])
                field = rm_platformer_to_key(d);
    return paths->field[field].hops;
}

/* The node some hops further on. */
static int node_ahead(const struct rm_platformer_paths *paths, const uint16_t *hops, int node)
{
    static const int step[4] = {-NODES, 1, NODES, -1};
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 4; d++)
            if (paths->loose[node] >> d & 1 && hops[node + step[d]] < hops[node]) {
                node += step[d];
                break;
            }
    return node;
}

static bool mine_is_ahead(const struct rm_platformer_world *world,
                          const struct rm_platformer_map *map, int h)
{
    bool ahead = false;
    for (uint32_t m = 0; m < map->level.mines; m++) {
        const double dx = map->level.mine[m].at.x - world->state.ninja.x;
        const double dy = map->level.mine[m].at.y - world->state.ninja.y;
        ahead = ahead || (world->state.mine[m] == RM_PLATFORMER_DEADLY && dx * h > 0 &&
                          dx * h < 50 && dy > -8 && dy < 30);
    }
    return ahead;
}

/* Follows the way, and jumps where it rises, where a wall is in it and where a mine is; every 20th
 * action is random. */
static int run_and_jump(const struct rm_env *env, const uint8_t *mask, uint64_t *rng)
{
    const struct rm_platformer_world *world = rm_single_world_at(env, 0);
    const struct rm_platformer_map *map = &rm_platformer_place_of(env, world)->map;
    const struct rm_platformer_paths *paths = rm_platformer_place_of(env, world)->paths;
    const struct rm_platformer_ninja *ninja = &world->state.ninja;
    if (rm_platformer_below(rng, 20) == 0 || world->node == RM_PLATFORMER_NOWHERE)
        return play_at_random(env, mask, rng);
    const int node = node_ahead(paths, way(world, map, paths), world->node);
    const int column = node % NODES, row = node / NODES;
    const double x = 12 * column + 6, y = 12 * row + 6;
    const int h = x > ninja->x + 4 ? 1 : x < ninja->x - 4 ? -1 : 0;
    const bool jump = y < ninja->y - 8 || h * ninja->wall < 0 || mine_is_ahead(world, map, h);
    int action = (jump ? 3 : 0) + (h < 0 ? 1 : h > 0 ? 2 : 0);
    if (!mask[action])
        action = jump ? action - 3 : action + 3;
    return mask[action] ? action : play_at_random(env, mask, rng);
}

/* --- playing ---------------------------------------------------------------------------------- */

/* Plays one level to its end. */
static void play(const char *options, uint32_t level, policy *choose, struct tally *tally)
{
    struct rm_test_batch batch;
    char text[160];
    uint64_t rng = level;
    double score = 0, length = 0;
    snprintf(text, sizeof text, "%s levels=1 first_level=%u", options, level);
    rm_test_batch_open(&batch, "platformer", NULL, text, 1, level, 1);
    rm_test_batch_reset(&batch);
    tally->nodes +=
        rm_platformer_place_of(batch.env, rm_single_world_at(batch.env, 0))->paths->reachable;
    const uint8_t *mask = rm_test_batch_mask(&batch, 0, 0);
    for (; !(batch.out[0].flags[0] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)); length++) {
        for (int a = 0; a < RM_PLATFORMER_ACTIONS; a++)
            tally->valid += mask[a];
        batch.actions[0][0] = choose(batch.env, mask, &rng);
        tally->idle += batch.actions[0][0] == 0;
        rm_test_batch_step(&batch, 0);
        score += (double)batch.out[0].reward[0];
    }
    const double *figure = batch.out[0].figures;
    tally->success += figure[0];
    tally->opener += figure[1];
    tally->mine += figure[2] == 1;
    tally->impact += figure[2] == 2;
    tally->frames += length;
    tally->length += length;
    tally->length_square += length * length;
    tally->score += score;
    tally->score_square += score * score;
    rm_test_batch_close(&batch);
}

static double error_of(double mean, double mean_square, uint32_t levels)
{
    return sqrt((mean_square - mean * mean) / levels);
}

static struct tally play_levels(const char *options, uint32_t levels, policy *choose)
{
    struct tally t = {0};
    for (uint32_t i = 0; i < levels; i++)
        play(options, FIRST_LEVEL + i, choose, &t);
    t.valid /= t.frames;
    double *const means[] = {&t.success, &t.opener, &t.length,        &t.score,        &t.mine,
                             &t.impact,  &t.nodes,  &t.length_square, &t.score_square, &t.idle};
    for (size_t i = 0; i < sizeof means / sizeof means[0]; i++)
        *means[i] /= levels;
    return t;
}

/* Two measurements of one quantity, each with its standard error: within three of the two. */
static void agree(const char *stage, const char *what, double value, double error, double expected,
                  double expected_error)
{
    const double bound = 3 * sqrt(error * error + expected_error * expected_error);
    if (fabs(value - expected) > bound)
        fail_msg("%s: %s is %g, must be %g to within %g", stage, what, value, expected, bound);
}

static double error_of_share(double share)
{
    return sqrt(share * (1 - share) / LEVELS);
}

static void share_agrees(const char *stage, const char *what, double value, double expected)
{
    agree(stage, what, value, error_of_share(value), expected, error_of_share(expected));
}

/* Means over the same 400 levels, with other random numbers. A door at the a-th column leaves 4 (a
 * + 2) nodes: in c3 their mean is that of the generator's draws, 28.35, where the other
 * implementation gives 33. */
static const struct row {
    const char *stage;
    double success, opener, length, length_error, score, score_error, mine, impact, valid, nodes;
} random_rows[] = {
    {"c0", .433, .603, 1565, 30, .82, .65, 0, 0, 5.978, 207},
    {"c1", .133, .383, 1866, 20, -6.07, .45, 0, 0, 5.977, 216},
    {"c2", .275, .508, 1223, 36, -1.53, .58, .363, 0, 5.968, 203},
    {"c3", .420, .805, 1616, 28, 3.52, .58, 0, 0, 5.988, 28.35},
    {"m0", .043, .198, 1694, 33, -6.74, .30, 0, .160, 5.957, 198},
    {"m1", .000, .013, 1581, 38, -7.23, .21, 0, .253, 5.958, 587},
};

static void test_random_play(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof random_rows / sizeof random_rows[0]; i++) {
        const struct row *row = &random_rows[i];
        char options[32];
        snprintf(options, sizeof options, "stage=\"%s\"", row->stage);
        const struct tally t = play_levels(options, LEVELS, play_at_random);
        share_agrees(row->stage, "success", t.success, row->success);
        share_agrees(row->stage, "the switch", t.opener, row->opener);
        share_agrees(row->stage, "death by mine", t.mine, row->mine);
        share_agrees(row->stage, "death by impact", t.impact, row->impact);
        agree(row->stage, "length", t.length, error_of(t.length, t.length_square, LEVELS),
              row->length, row->length_error);
        agree(row->stage, "return", t.score, error_of(t.score, t.score_square, LEVELS), row->score,
              row->score_error);
        agree(row->stage, "valid actions", t.valid, 0, row->valid, 0.0015);
        agree(row->stage, "nodes", t.nodes, 0, row->nodes, 0.5 / 3);
    }
}

/* Another implementation's: five plays of 4,000 other levels each, errors of .008 or less. */
static void test_random_play_elsewhere(void **unused)
{
    static const struct {
        const char *stage;
        double on_these, success, length;
    } rows[] = {{"c0", .392, .413, 1562},
                {"c1", .133, .144, 1858},
                {"c2", .295, .316, 1199},
                {"c3", .397, .408, 1614}};
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char options[32];
        snprintf(options, sizeof options, "stage=\"%s\"", rows[i].stage);
        const struct tally t = play_levels(options, LEVELS, play_at_random);
        const double error = error_of(t.length, t.length_square, LEVELS);
        agree(rows[i].stage, "success", t.success, error_of_share(t.success), rows[i].on_these,
              .01);
        agree(rows[i].stage, "success", t.success, error_of_share(t.success), rows[i].success,
              .008);
        agree(rows[i].stage, "length", t.length, error, rows[i].length, 10);
    }
}

static void test_runner(void **unused)
{
    static const struct {
        const char *stage;
        double success, length, length_error; /* 0: not known */
    } rows[] = {
        {"c0", 1, 237, 6}, {"c1", 1, 263, 6},  {"c2", .825, 213, 6},
        {"c3", 1, 133, 2}, {"m0", .558, 0, 0}, {"m1", .093, 0, 0},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char options[32];
        snprintf(options, sizeof options, "stage=\"%s\"", rows[i].stage);
        const struct tally t = play_levels(options, LEVELS, run_and_jump);
        share_agrees(rows[i].stage, "success of the runner", t.success, rows[i].success);
        if (rows[i].length > 0)
            agree(rows[i].stage, "length of the runner", t.length,
                  error_of(t.length, t.length_square, LEVELS), rows[i].length,
                  rows[i].length_error);
    }
}

/* Without mines the same draws play the same frames with and without compat; only rewards differ.
 * Those of compat come from the frames: a step costs 1e-5, .005 of shaping, and .05 if nothing is
 * done. The bonuses for new cells, jumps and speed are small beside that. */
static void test_compat(void **unused)
{
    (void)unused;
    const struct tally t = play_levels("compat=1", 60, play_at_random);
    const struct tally other = play_levels("", 60, play_at_random);
    agree("compat", "return", t.score, error_of(t.score, t.score_square, 60), -8.7, 2.5);
    assert_true(t.length == other.length && t.success == other.success &&
                t.opener == other.opener && t.idle == other.idle);
    const double bonus = t.score + .00501 * t.length + .05 * t.idle - 2 * t.opener - 22 * t.success;
    assert_true(bonus > -1 && bonus < 1.5); /* without compat it is more than 15 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_play),
        cmocka_unit_test(test_random_play_elsewhere),
        cmocka_unit_test(test_runner),
        cmocka_unit_test(test_compat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
