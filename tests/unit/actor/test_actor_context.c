/* Policies over histories in the dark room, with networks made by hand: what their contexts have,
 * and that a seed gives the same actions. */
#include "actor/stepping.h"
#include "actor/tally.h"
#include "learner/net/history.h"
#include "shm/base/rng.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { WORLDS = 8, REGION = 30, WIDTH = 12, ACTIONS = 5, TYPES = 3 };

/* The world's goals for testing, in the order of its worlds. */
static const float goals[WORLDS][2] = {{0, 5}, {3, 6}, {4, 2}, {5, 4},
                                       {5, 6}, {5, 8}, {6, 8}, {7, 2}};

static struct rm_session session;
static struct rm_stepping stepping;
static struct rm_tallies tallies;
static struct rm_ring own[RM_BOARD_POLICIES];

static void open_session(void)
{
    assert_int_equal(
        rm_test_session(
            &session,
            "{\"name\": \"context\", \"seed\": 1,"
            " \"world\": {\"name\": \"darkroom\", \"options\": {\"goals\": 2}},"
            " \"algorithm\": {\"name\": \"distill\"},"
            " \"sample\": {\"from\": \"recording\", \"region\": 30},"
            " \"evaluation\": {\"worlds\": 8, \"answer\": \"sample\"},"
            " \"network\": {\"layers\": ["
            "  {\"type\": \"history\", \"units\": 16, \"codes\": 80},"
            "  {\"type\": \"attention\", \"heads\": 2, \"causal\": true}, {\"type\": \"residual\","
            "   \"span\": 1}, {\"type\": \"layer_norm\"}]}}"),
        0);
}

static void open_worlds(uint64_t seed, uint64_t episodes)
{
    struct rm_error error = {""};
    struct rm_ring *rings[RM_BOARD_POLICIES];
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++)
        own[p].region.fd = -1;
    assert_int_equal(rm_tallies_create(&tallies, &session.plan, WORLDS, &error), 0);
    rm_tallies_begin(&tallies, episodes);
    assert_int_equal(
        rm_stepping_own_rings(&session.experiment, &session.plan, WORLDS, own, rings, &error), 0);
    const struct rm_stepping_options options = {
        .seed = seed,
        .total_worlds = WORLDS,
        .worlds = WORLDS,
        .rings = rings,
        .sink = rm_tallies_sink(&tallies),
    };
    if (rm_stepping_create(&stepping, &session.experiment, &session.plan, &options, &error) < 0)
        fail_msg("%s", error.text);
}

static void close_worlds(void)
{
    rm_stepping_destroy(&stepping);
    rm_tallies_destroy(&tallies);
    for (uint32_t p = 0; p < RM_BOARD_POLICIES; p++)
        rm_ring_close(&own[p]);
}

/* A network whose logits are these alone, whatever it sees. */
static void use_logits(const float logits[ACTIONS + TYPES])
{
    struct rm_acting *acting = &stepping.policies[0].acting;
    const struct rm_net_tensor bias = rm_test_tensor(acting->net, "head.bias");
    assert_int_equal(bias.shape[0], ACTIONS + TYPES);
    memset(acting->params, 0, rm_net_param_count(acting->net) * sizeof *acting->params);
    memcpy(acting->params + bias.offset, logits, bias.shape[0] * sizeof *logits);
    rm_acting_prepare(acting);
}

static void begin(void)
{
    struct rm_error error = {""};
    if (rm_stepping_begin(&stepping, &error) < 0)
        fail_msg("%s", error.text);
}

static void step(uint32_t steps)
{
    struct rm_error error = {""};
    while (steps--)
        if (rm_stepping_step(&stepping, &error) < 0)
            fail_msg("%s", error.text);
}

static const float *rows_of(uint32_t lane, uint32_t expected)
{
    const struct rm_context *c = stepping.policies[0].context;
    assert_int_equal(c->lane[lane].rows, expected);
    return c->rows + (size_t)lane * (c->places + 1) * c->width;
}

/* A lane's transition number `number` of its history, under action 0 alone: down to row 8 and on at
 * the wall, 20 times from the middle. */
static void expect_fall(const float *row, uint32_t lane, uint32_t number)
{
    const float from = (float)(number % 20 < 4 ? 4 + number % 20 : 8), to = from < 8 ? from + 1 : 8;
    const float reward = to == goals[lane][0] && 4 == goals[lane][1];
    const float expected[WIDTH] = {RM_HISTORY_TRANSITION, 0, from, 4, 1, 0, 0, 0, 0, reward, to, 4};
    assert_memory_equal(row, expected, sizeof expected);
}

/* Regions are as long as those of training, count transitions and not rows, and run on over the
 * ends of episodes with the true last observation. */
static void falls(void **state)
{
    static const float logits[ACTIONS + TYPES] = {60, 0, 0, 0, 0, 1, 0, 0};
    (void)state;
    open_worlds(5, 8);
    use_logits(logits);
    begin();
    step(22); /* 20 transitions in 21 rows, and the first row of the next episode */
    for (uint32_t lane = 0; lane < WORLDS; lane++) {
        const float *row = rows_of(lane, 1 + 20);
        for (uint32_t i = 0; i < 20; i++)
            expect_fall(row + (1 + i) * WIDTH, lane, i);
    }
    step(21 + 10); /* rows 22 to 52: transitions 20 to 49 */
    for (uint32_t lane = 0; lane < WORLDS; lane++) {
        const float *row = rows_of(lane, 1 + REGION + 2 + 20);
        for (uint32_t i = 0; i < REGION; i++)
            expect_fall(row + (1 + i) * WIDTH, lane, i);
        assert_true(row[(1 + REGION) * WIDTH] == (float)RM_HISTORY_END);
        assert_true(row[(2 + REGION) * WIDTH] == (float)RM_HISTORY_BEGIN);
        for (uint32_t i = 0; i < 20; i++)
            expect_fall(row + (3 + REGION + i) * WIDTH, lane, REGION + i);
    }
    assert_true(fabs(rm_tally_mean(&tallies.score) - 1.0 / 8) < 1e-12); /* (5, 4), once */
    begin();                                                            /* another evaluation */
    step(1);
    rows_of(0, 1);
    close_worlds();
}

/* The network may close a region after any action. */
static void short_regions(void **state)
{
    static const float logits[ACTIONS + TYPES] = {60, 0, 0, 0, 0, 0, 0, 1};
    (void)state;
    open_worlds(5, 8);
    use_logits(logits);
    begin();
    step(4);
    for (uint32_t lane = 0; lane < WORLDS; lane++) {
        const float *row = rows_of(lane, 4);
        expect_fall(row + WIDTH, lane, 2);
        assert_true(row[2 * WIDTH] == (float)RM_HISTORY_END);
    }
    close_worlds();
}

/* Actions of random networks are drawn: the same for a seed, and others for another one. */
static void play_random(uint64_t seed, float *all, size_t floats)
{
    open_worlds(seed, 80);
    struct rm_acting *acting = &stepping.policies[0].acting;
    rm_net_init(acting->net, acting->params, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
    rm_acting_prepare(acting);
    begin();
    step(100);
    memset(all, 0, floats * sizeof *all);
    for (uint32_t lane = 0; lane < WORLDS; lane++) {
        const uint32_t rows = stepping.policies[0].context->lane[lane].rows;
        const float *row = rows_of(lane, rows);
        assert_true((size_t)(lane + 1) * 62 * WIDTH <= floats && rows <= 62);
        memcpy(all + (size_t)lane * 62 * WIDTH, row, (size_t)rows * WIDTH * sizeof *row);
    }
    close_worlds();
}

static void a_seed_gives_the_same(void **state)
{
    enum { FLOATS = WORLDS * 62 * WIDTH };
    static float first[FLOATS], again[FLOATS], other[FLOATS];
    (void)state;
    play_random(5, first, FLOATS);
    play_random(5, again, FLOATS);
    play_random(6, other, FLOATS);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
}

/* The share of the episodes that each tenth has, by the order in which a world plays them: the
 * score of world w's episode n is n. */
static void tenths(void **state)
{
    const struct rm_plan plan = {.agents = 0};
    struct rm_tallies t;
    struct rm_error error;
    (void)state;
    assert_int_equal(rm_tallies_create(&t, &plan, 2, &error), 0);
    rm_tallies_begin(&t, 45);
    const struct rm_episode_sink sink = rm_tallies_sink(&t);
    for (uint32_t n = 0; n < 30; n++)
        for (uint32_t w = 0; w < 2; w++)
            sink.world(sink.self, w, n, 20);
    assert_int_equal(t.missing, 0);
    for (uint32_t i = 0; i < RM_TALLY_TENTHS; i++) /* of 23 and 22 episodes */
        assert_in_range(t.tenth[i].n, 4, 6);
    assert_true(rm_tally_mean(&t.tenth[0]) == 1); /* 0, 1, 2 of both */
    assert_true(rm_tally_mean(&t.tenth[9]) > 20 && rm_tally_mean(&t.tenth[9]) < 22);
    json_t *json = rm_tallies_json(&t);
    assert_int_equal(json_array_size(json_object_get(json, "tenths")), RM_TALLY_TENTHS);
    json_decref(json);
    rm_tallies_begin(&t, 2);
    sink.world(sink.self, 0, 3, 20);
    assert_int_equal(t.tenth[0].n, 1);
    assert_int_equal(t.tenth[9].n, 0);
    rm_tallies_destroy(&t);
}

static int open_all(void **state)
{
    (void)state;
    open_session();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    rm_session_close(&session);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(falls),
        cmocka_unit_test(short_regions),
        cmocka_unit_test(a_seed_gives_the_same),
        cmocka_unit_test(tenths),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
