/* frozenlake, taxi: every transition that Gymnasium's own tables have, with its probability; the
 * masks; the first states; what the batch then really does, counted; and the scores in the spec
 * against the mean of many episodes. */
#include "actor/worlds/builtin/tabular.c" /* a batch's table, and the state of a saved world */
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

#include "tests/unit/actor/worlds/data/gymnasium_tables.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define TABLE(name)                                                                                \
    .probabilities = name##_probabilities, .rewards = name##_rewards, .states = name##_states,     \
    .moves = name##_moves, .twins = &name##_twins, .starts = name##_starts, .masks = name##_masks, \
    .max_steps = name##_max_steps, .best = &name##_best, .state_count = COUNT(name##_states),      \
    .move_words = COUNT(name##_moves), .start_count = COUNT(name##_starts)

static const struct problem {
    const char *name, *options;
    const double *probabilities, *rewards;
    const int16_t *states, *moves, *starts, *masks;
    uint32_t max_steps;
    size_t state_count, move_words, start_count;
    const double *threshold; /* where Gymnasium has one that can be reached */
    const double *best;      /* mean score of the best policy */
    const double *twins;     /* probability that an episode begins in a twin */
} problems[] = {
    {"frozenlake", NULL, TABLE(frozenlake_4), .threshold = &frozenlake_4_threshold},
    {"frozenlake", "size=8", TABLE(frozenlake_8), .threshold = &frozenlake_8_threshold},
    {"frozenlake", "size=8 slippery=0", TABLE(frozenlake_sure)},
    {"frozenlake", "success=0.75", TABLE(frozenlake_likely)},
    {"taxi", "mask=0", TABLE(taxi)},
    {"taxi", NULL, TABLE(taxi)},
    {"frozenlake",
     "desc=[\"SFFHF\",\"FHSFG\",\"GFFFS\"] reward_goal=3.5 reward_hole=-2 reward_ice=-0.25",
     TABLE(frozenlake_own)},
    {"frozenlake", "desc=[\"HFSFFFFG\"] slippery=0 reward_hole=-1", TABLE(frozenlake_row)},
    {"taxi", "rain=1", TABLE(taxi_rain)},
    {"taxi", "rain=1 rainy_probability=0.35", TABLE(taxi_storm)},
    {"taxi", "fickle_passenger=1", TABLE(taxi_fickle)},
    {"taxi", "rain=1 fickle_passenger=1 fickle_probability=0.9", TABLE(taxi_moody)},
};

/* --- the tables ------------------------------------------------------------------------------- */

static void check_move(const struct problem *p, const struct rm_tabular_move *move, int state,
                       const int16_t *words)
{
    if (move->outcomes != (uint32_t)words[0])
        fail_msg("%s: %u outcomes in state %d, not %d", p->name, move->outcomes, state, words[0]);
    for (uint32_t o = 0; o < move->outcomes; o++) {
        const struct rm_tabular_outcome *out = &move->outcome[o];
        const int16_t *expected = words + 1 + 4 * o;
        assert_float_equal(out->probability, p->probabilities[expected[0]], 1e-15);
        assert_int_equal(out->next, expected[1]);
        assert_float_equal(out->reward, p->rewards[expected[2]], 0);
        assert_int_equal(out->terminated, expected[3]);
    }
}

static void test_tables(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < COUNT(problems); i++) {
        const struct problem *p = &problems[i];
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, p->name, NULL, p->options, 1, 0, 1);
        const struct rm_tabular *table = &batch.env->table;
        size_t at = 0;
        for (size_t s = 0; s < p->state_count; s++) {
            uint32_t legal = 0;
            for (uint32_t a = 0; a < table->actions && a < RM_TABULAR_ACTIONS; a++) {
                assert_true(at < p->move_words);
                check_move(p, &table->move[p->states[s]][a], p->states[s], p->moves + at);
                at += 1 + 4 * (size_t)p->moves[at];
                legal |= (uint32_t)table->legal[p->states[s]][a] << a;
            }
            if (batch.spec->agent[0].has_mask)
                assert_int_equal(legal, p->masks[s]);
            else
                assert_int_equal(legal, (1 << table->actions) - 1);
        }
        assert_int_equal(at, p->move_words);
        assert_int_equal(table->starts, p->start_count);
        for (uint32_t s = 0; s < table->starts; s++)
            assert_int_equal(table->start[s], p->starts[s]);
        assert_float_equal(table->twins, *p->twins, 0);
        assert_int_equal(batch.spec->max_steps, p->max_steps);
        if (p->threshold)
            assert_float_equal(batch.spec->score_solved, *p->threshold, 0);
        assert_int_equal(batch.spec->agent[0].high, table->states - 1);
        struct rm_tabular_scores scores;
        rm_tabular_solve(table, batch.spec->max_steps, &scores);
        assert_float_equal(scores.best, *p->best, 1e-9);
        assert_float_equal(scores.random, batch.spec->score_random, 0);
        if (!isnan(batch.spec->score_solved))
            assert_true(batch.spec->score_solved <= scores.best);
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
        int random = 0;
        for (size_t at = 0; at < p->move_words; at += 1 + 4 * (size_t)p->moves[at])
            random |= p->moves[at] > 1;
        rm_test_batch_open(&batch, p->name, NULL, p->options, 17, 0, random ? 2000 : 2);
        const struct rm_tabular *table = &batch.env->table;
        struct world *saved = calloc(1, batch.world.ops->state_size(batch.env));
        for (size_t s = 0; s < p->state_count; s++)
            for (uint32_t a = 0; a < table->actions; a++)
                if (table->legal[p->states[s]][a])
                    count_outcomes(&batch, saved, p, (uint32_t)p->states[s], a);
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
    const size_t starts = COUNT(taxi_starts);
    const double expected = N / (double)starts;
    double chi_square = 0;
    for (size_t s = 0; s < COUNT(taxi_starts); s++) {
        double off = seen[taxi_starts[s]] - expected;
        chi_square += off * off / expected;
        seen[taxi_starts[s]] = 0;
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
        {"row_1=1222", "'frozenlake' has no such option"},
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
    assert_true(taxi_best < taxi_threshold); /* why the world has one of its own */
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
