/* frozenlake, taxi: every transition of Gymnasium's own tables with its probability, masks and
 * first states, by their hashes; the steps of a batch, counted; and the scores in the spec against
 * the mean of many episodes. */
#include "actor/worlds/builtin/tabular.c" /* a batch's table, and the state of a saved world */
#include "tests/support/batch.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tests/unit/actor/worlds/data/gymnasium_tables.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* States whose moves are compared: `full` all of them, else of each 20 those in `some`; with twins
 * also theirs. */
static const struct problem {
    const char *name, *options;
    uint64_t moves, masks; /* hashes */
    uint32_t max_steps, full, some[3];
    double twins;     /* probability that an episode begins in a twin */
    double best;      /* mean score of the best policy */
    double threshold; /* Gymnasium's; NAN: none; above `best`: no policy reaches it */
} problems[] = {
    {"frozenlake", NULL, FROZENLAKE_4, .full = 16},
    {"frozenlake", "size=8", FROZENLAKE_8, .full = 64},
    {"frozenlake", "size=8 slippery=0", FROZENLAKE_SURE, .full = 64},
    {"frozenlake", "success=0.75", FROZENLAKE_LIKELY, .full = 16},
    {"taxi", "mask=0", TAXI, .full = 500},
    {"taxi", NULL, TAXI, .full = 500},
    {"frozenlake",
     "desc=[\"SFFHF\",\"FHSFG\",\"GFFFS\"] reward_goal=3.5 reward_hole=-2 reward_ice=-0.25",
     FROZENLAKE_OWN, .full = 15},
    {"frozenlake", "desc=[\"HFSFFFFG\"] slippery=0 reward_hole=-1", FROZENLAKE_ROW, .full = 8},
    {"taxi", "rain=1", TAXI_RAIN, .some = {1, 19}},
    {"taxi", "rain=1 rainy_probability=0.35", TAXI_STORM, .some = {1, 19}},
    {"taxi", "fickle_passenger=1", TAXI_FICKLE, .some = {1, 16, 19}},
    {"taxi", "rain=1 fickle_passenger=1 fickle_probability=0.9", TAXI_MOODY, .some = {1, 17}},
};

/* The states of a problem. Returns their number. */
static size_t list_states(const struct problem *p, uint32_t states[2 * 500])
{
    size_t n = 0;
    for (uint32_t s = 0; s < p->full; s++)
        states[n++] = s;
    for (uint32_t twin = 0; !p->full && twin < (p->twins > 0 ? 2 : 1); twin++)
        for (uint32_t s = 0; s < 500; s++)
            if (s % 20 == p->some[0] || s % 20 == p->some[1] ||
                (p->some[2] && s % 20 == p->some[2]))
                states[n++] = s + 500 * twin;
    return n;
}

/* --- the tables ------------------------------------------------------------------------------- */

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325) /* FNV-1a */

__attribute__((format(printf, 2, 3))) static void add(uint64_t *hash, const char *format, ...)
{
    char text[128];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (getenv("RM_TEST_TABLES")) /* to compare with what gymnasium_tables.py prints */
        fputs(text, stdout);
    for (const char *c = text; *c; c++)
        *hash = (*hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
}

static void add_move(uint64_t *hash, const struct rm_tabular_move *move)
{
    add(hash, "%u", move->outcomes);
    for (uint32_t o = 0; o < move->outcomes; o++)
        add(hash, " %.12g %d %.12g %d", move->outcome[o].probability, move->outcome[o].next,
            (double)move->outcome[o].reward, move->outcome[o].terminated);
    add(hash, "\n");
}

static void check_scores(const struct problem *p, const struct rm_test_batch *batch)
{
    const struct rm_env_spec *spec = batch->spec;
    struct rm_tabular_scores scores;
    if (p->threshold <= p->best)
        assert_float_equal(spec->score_solved, p->threshold, 0);
    rm_tabular_solve(&batch->env->table, spec->max_steps, &scores);
    assert_float_equal(scores.best, p->best, 1e-9);
    assert_float_equal(scores.random, spec->score_random, 0);
    if (!isnan(spec->score_solved))
        assert_true(spec->score_solved <= scores.best);
}

static void test_tables(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(problems); i++) {
        const struct problem *p = &problems[i];
        struct rm_test_batch batch;
        uint64_t moves = HASH_BEGIN, masks = HASH_BEGIN;
        uint32_t states[2 * 500];
        const size_t n = list_states(p, states);
        rm_test_batch_open(&batch, p->name, NULL, p->options, 1, 0, 1);
        const struct rm_tabular *table = &batch.env->table;
        for (size_t s = 0; s < n; s++) {
            add(&moves, "state %u\n", states[s]);
            for (uint32_t a = 0; a < table->actions; a++)
                add_move(&moves, &table->move[states[s]][a]);
        }
        for (uint32_t s = 0; s < table->starts; s++)
            add(&moves, "start %d\n", table->start[s]);
        for (size_t s = 0; s < n; s++) {
            uint32_t legal = 0;
            for (uint32_t a = 0; a < table->actions; a++)
                legal |= (uint32_t)table->legal[states[s]][a] << a;
            add(&masks, "%u\n", legal);
            if (!batch.spec->agent[0].has_mask)
                assert_int_equal(legal, (1 << table->actions) - 1);
        }
        const char *options = p->options ? p->options : "";
        if (moves != p->moves)
            fail_msg("%s %s: moves differ: 0x%016" PRIx64, p->name, options, moves);
        if (masks != p->masks && strcmp(options, "mask=0") != 0)
            fail_msg("%s %s: masks differ: 0x%016" PRIx64, p->name, options, masks);
        assert_float_equal(table->twins, p->twins, 0);
        assert_int_equal(batch.spec->max_steps, p->max_steps);
        assert_int_equal(batch.spec->agent[0].high, table->states - 1);
        check_scores(p, &batch);
        rm_test_batch_close(&batch);
    }
}

/* --- steps ------------------------------------------------------------------------------------ */

static uint32_t observed(const struct rm_test_batch *batch, uint32_t w)
{
    const void *obs = rm_test_batch_obs(batch, 0, w);
    int16_t wide = *(const uint8_t *)obs;
    if (batch->spec->agent[0].dtype == RM_ENV_I16)
        memcpy(&wide, obs, sizeof(wide));
    return (uint32_t)wide;
}

/* Steps `n` worlds from one state with one action, and counts the outcomes. */
static void count_outcomes(struct rm_test_batch *batch, struct world *saved,
                           const struct problem *p, uint32_t state, uint32_t action)
{
    const struct rm_tabular_move *move = &batch->env->table.move[state][action];
    uint32_t seen[RM_TABULAR_OUTCOMES] = {0}, n = batch->worlds;
    rm_test_batch_reset(batch);
    batch->world.ops->save_state(batch->env, saved);
    for (uint32_t w = 0; w < n; w++) {
        saved[w].state = (uint16_t)state;
        batch->actions[0][w] = (int32_t)action;
    }
    assert_int_equal(batch->world.ops->load_state(batch->env, saved), 0);
    rm_test_batch_step(batch, 0);
    batch->world.ops->save_state(batch->env, saved);
    for (uint32_t w = 0; w < n; w++) {
        const uint32_t next = saved[w].state;
        uint32_t o = 0;
        while (o < move->outcomes && move->outcome[o].next != next)
            o++;
        if (o == move->outcomes)
            fail_msg("%s: state %u, action %u leads to %u", p->name, state, action, next);
        /* A twin looks like its state. */
        assert_int_equal(observed(batch, w), next % batch->env->table.states);
        assert_float_equal(batch->out[0].reward[w], move->outcome[o].reward, 0);
        assert_int_equal(batch->out[0].flags[w],
                         move->outcome[o].terminated ? RM_ENV_TERMINATED : 0);
        seen[o]++;
        if (batch->out[0].mask)
            assert_memory_equal(rm_test_batch_mask(batch, 0, w),
                                batch->env->table.legal[observed(batch, w)],
                                batch->spec->agent[0].actions);
    }
    for (uint32_t o = 0; o < move->outcomes; o++) {
        double probability = 0; /* outcomes that look alike count as the first of them */
        uint32_t first = 0;
        for (uint32_t k = move->outcomes; k-- > 0;)
            if (move->outcome[k].next == move->outcome[o].next) {
                probability += move->outcome[k].probability;
                first = k;
            }
        double expected = first == o ? probability : 0;
        double allowed = 5 * sqrt(expected * (1 - expected) / n) + 1e-9;
        if (!(fabs((double)seen[o] / n - expected) <= allowed))
            fail_msg("%s: state %u, action %u: outcome %u in %u of %u, expected %g", p->name, state,
                     action, o, seen[o], n, expected);
    }
}

static void test_steps(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(problems); i++) {
        const struct problem *p = &problems[i];
        struct rm_test_batch batch;
        uint32_t states[2 * 500];
        const size_t n = list_states(p, states);
        bool random = false;
        rm_test_batch_open(&batch, p->name, NULL, p->options, 17, 0, 2);
        for (size_t s = 0; s < n; s++)
            for (uint32_t a = 0; a < batch.env->table.actions; a++)
                random |= batch.env->table.move[states[s]][a].outcomes > 1;
        rm_test_batch_close(&batch);
        rm_test_batch_open(&batch, p->name, NULL, p->options, 17, 0, random ? 2000 : 2);
        const struct rm_tabular *table = &batch.env->table;
        struct world *saved = calloc(1, batch.world.ops->state_size(batch.env));
        for (size_t s = 0; s < n; s++)
            for (uint32_t a = 0; a < table->actions; a++)
                if (table->legal[states[s]][a])
                    count_outcomes(&batch, saved, p, states[s], a);
        free(saved);
        rm_test_batch_close(&batch);
    }
}

/* As many episodes begin in a twin as should. */
static void test_twins(void **unused)
{
    (void)unused;
    enum { N = 20000 };
    struct rm_test_batch batch;
    uint32_t twins = 0;
    rm_test_batch_open(&batch, "taxi", NULL, "fickle_passenger=1 fickle_probability=0.9", 3, 0, N);
    rm_test_batch_reset(&batch);
    struct world *saved = calloc(1, batch.world.ops->state_size(batch.env));
    assert_int_equal(batch.world.ops->save_state(batch.env, saved), 0);
    for (uint32_t w = 0; w < N; w++) {
        const uint32_t state = saved[w].state;
        twins += state >= 500;
        assert_int_equal(observed(&batch, w), state % 500);
    }
    assert_float_equal((double)twins / N, 0.9, 5 * sqrt(0.9 * 0.1 / N));
    free(saved);
    rm_test_batch_close(&batch);
}

/* First states are equally likely. */
static void test_first_states(void **unused)
{
    (void)unused;
    enum { N = 30000 };
    struct rm_test_batch batch;
    uint32_t seen[500] = {0};
    rm_test_batch_open(&batch, "taxi", NULL, NULL, 3, 0, N);
    rm_test_batch_reset(&batch);
    for (uint32_t w = 0; w < N; w++)
        seen[observed(&batch, w)]++;
    const struct rm_tabular *table = &batch.env->table; /* compared by test_tables() */
    const double expected = N / (double)table->starts;
    double chi_square = 0;
    for (size_t s = 0; s < table->starts; s++) {
        double off = seen[table->start[s]] - expected;
        chi_square += off * off / expected;
        seen[table->start[s]] = 0;
    }
    for (int s = 0; s < 500; s++)
        assert_int_equal(seen[s], 0);
    /* 299 degrees of freedom: mean 299, standard deviation 24.5. */
    assert_true(chi_square > 299 - 5 * 24.5 && chi_square < 299 + 5 * 24.5);
    rm_test_batch_close(&batch);
}

static void test_refusals(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "taxi", NULL, NULL, 3, 40, 1);
    rm_test_batch_reset(&batch);
    const uint8_t *mask = rm_test_batch_mask(&batch, 0, 0);
    assert_int_equal(mask[5], 0); /* nobody is aboard yet */
    batch.actions[0][0] = 5;
    assert_int_equal(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out), -EINVAL);
    assert_string_equal(batch.world.ops->last_error(batch.env),
                        "action 5 in world 40 is masked out");
    batch.actions[0][0] = 6;
    assert_int_equal(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out), -EINVAL);
    assert_string_equal(batch.world.ops->last_error(batch.env),
                        "action 6 in world 40: must be 0..5");
    rm_test_batch_close(&batch);

    static const struct {
        const char *options, *words;
    } refused[] = {
        {"size=5", "must be 4 or 8"},
        {"desc=[\"SFFF\",\"FFG\"]", "world.options.desc[1] is \"FFG\", must be 1 to 8 letters"},
        {"desc=[\"SFXF\"]", "desc[0] is \"SFXF\", must be 1 to 8 letters S (start)"},
        {"desc=[\"SFFFFFFFG\"]", "desc[0] is \"SFFFFFFFG\", must be 1 to 8 letters"},
        {"desc=[\"\"]", "desc[0] is \"\", must be 1 to 8 letters"},
        {"desc=[\"FFFF\",\"FFFG\"]", "desc has no start"},
        {"desc=[\"S\",\"F\",\"F\",\"F\",\"F\",\"F\",\"F\",\"F\",\"G\"]",
         "desc has 9 values, must have at most 8"},
        {"desc=[\"SF\",1222]", "desc[1] should be a text between quotes, but is 1222"},
        {"slippery=\"no\"", "slippery should be a number, but is \"no\""},
        {"size=[4]", "size should be one whole number, but is a list"},
        {"row_1=1222",
         "'frozenlake' has no such option; it has size, slippery, success, max_steps, "
         "reward_goal, reward_hole, reward_ice, desc"},
    };
    for (size_t i = 0; i < COUNT(refused); i++) {
        struct rm_world world;
        struct rm_world_config config;
        struct rm_env *env;
        struct rm_error error;
        assert_int_equal(rm_world_open(&world, "frozenlake", NULL, &error), 0);
        rm_test_world_config(&config, "frozenlake", refused[i].options);
        assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
        if (!strstr(error.text, refused[i].words))
            fail_msg("%s: %s", refused[i].options, error.text);
    }
}

/* --- scores ----------------------------------------------------------------------------------- */

/* The random policy's score in the spec is an expectation: the mean of many episodes is near. */
static void test_random_scores(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(problems); i++) {
        enum { WORLDS = 64, STEPS = 6000 };
        struct rm_test_batch batch;
        double score[WORLDS] = {0}, sum = 0, squares = 0;
        uint32_t episodes = 0;
        rm_test_batch_open(&batch, problems[i].name, NULL, problems[i].options, 5, 0, WORLDS);
        rm_test_batch_reset(&batch);
        for (uint64_t t = 0; t < STEPS; t++) {
            rm_test_batch_draw(&batch, 6, 0, 0, t);
            rm_test_batch_step(&batch, 0);
            for (uint32_t w = 0; w < WORLDS; w++) {
                score[w] += batch.out[0].reward[w];
                if (!(batch.out[0].flags[w] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)))
                    continue;
                assert_true(score[w] >= batch.spec->score_low);
                assert_true(score[w] <= batch.spec->score_high);
                sum += score[w];
                squares += score[w] * score[w];
                score[w] = 0;
                episodes++;
            }
        }
        double mean = sum / episodes, variance = squares / episodes - mean * mean;
        double allowed = 4 * sqrt(variance / episodes) + 1e-3;
        if (!(fabs(mean - batch.spec->score_random) <= allowed))
            fail_msg("%s %s: mean score %g in %u episodes, the spec says %g (+- %g)",
                     problems[i].name, problems[i].options ? problems[i].options : "", mean,
                     episodes, batch.spec->score_random, allowed);
        rm_test_batch_close(&batch);
    }
}

/* Scores that can be worked out by hand: on sure ice the way of 14 moves pays 1; a taxi that begins
 * beside its passenger, whose way is the shortest, earns 20 - 4 moves - 1 for picking up. */
static void test_known_scores(void **unused)
{
    (void)unused;
    const struct problem taxi = {TAXI};
    assert_true(taxi.best < taxi.threshold); /* why the world has one of its own */
    static const struct {
        const char *name, *options;
        double low, high;
    } known[] = {
        {"frozenlake", "size=8 slippery=0", 0, 1},
        {"frozenlake", "slippery=0 max_steps=6", 0, 1},
        {"frozenlake", "slippery=0 max_steps=5", 0, 0},
        {"taxi", "mask=1", -200, 15},
        {"taxi", "mask=0", -2000, 15},
        {"taxi", "max_steps=5", -5, -5},
        {"taxi", "max_steps=6", -6, 15},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, known[i].name, NULL, known[i].options, 1, 0, 1);
        assert_float_equal(batch.spec->score_low, known[i].low, 1e-9);
        assert_float_equal(batch.spec->score_high, known[i].high, 1e-9);
        rm_test_batch_close(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),       cmocka_unit_test(test_steps),
        cmocka_unit_test(test_first_states), cmocka_unit_test(test_twins),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_random_scores),
        cmocka_unit_test(test_known_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
