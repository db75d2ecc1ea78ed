/* Draws from softmax: in proportion, legal, the same whatever batch they are in. */
#include "learner/net/categorical.h"
#include "shm/base/isa.h"
#include "learner/net/categorical_kernels.h"
#include "shm/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS   1000
#define STEPS  200
#define STRIDE 10

static struct rm_categorical one_of(uint32_t actions)
{
    const struct rm_net_shape shape = {.actions = actions};
    return rm_categorical_of(&shape);
}

static const struct rm_net_shape three = {.actions = 9, .choices = 3, .choice_actions = {2, 4, 3}};

static void lanes(uint32_t *lane, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        lane[i] = first + i;
}

/* Draws follow the probabilities: chi-square of 200,000 of them, one action illegal. Its 0.999
 * quantile at three degrees of freedom is 16.27. */
static void draws_are_in_proportion(void **state)
{
    const struct rm_categorical c = one_of(5);
    const float row[STRIDE] = {.3f, -1, 5, 2, .9f};
    const uint8_t legal[5] = {1, 1, 0, 1, 1};
    static float logits[ROWS * STRIDE], logp[ROWS];
    static uint8_t mask[ROWS * 5];
    static uint32_t lane[ROWS], word[ROWS];
    static int32_t action[ROWS];
    double count[5] = {0}, sum = 0, square = 0;
    (void)state;
    for (uint32_t i = 0; i < ROWS; i++) {
        memcpy(logits + (size_t)i * STRIDE, row, sizeof row);
        memcpy(mask + (size_t)i * 5, legal, 5);
    }
    lanes(lane, 0, ROWS);
    for (uint32_t a = 0; a < 5; a++)
        sum += legal[a] ? exp((double)row[a]) : 0;
    for (uint64_t step = 0; step < STEPS; step++) {
        rm_categorical_words(&c, 5, step, lane, ROWS, word);
        rm_categorical_draw(&c, logits, STRIDE, mask, ROWS, word, action, logp);
        for (uint32_t i = 0; i < ROWS; i++) {
            count[action[i]]++;
            assert_true(fabs((double)logp[i] - (double)row[action[i]] + log(sum)) < 2e-6);
        }
    }
    assert_true(count[2] == 0);
    for (uint32_t a = 0; a < 5; a++) {
        const double wanted = exp((double)row[a]) / sum * ROWS * STEPS;
        square += legal[a] ? pow(count[a] - wanted, 2) / wanted : 0;
    }
    assert_true(square < 16.27);
}

/* The ends of the unit interval draw the first and the last action that can be. */
static void the_ends_are_legal(void **state)
{
    const struct rm_categorical c = one_of(4);
    const float logits[8] = {1, 2, 3, 4, 0, 0, -200, -200};
    const uint8_t mask[8] = {0, 1, 1, 0, 1, 1, 1, 1};
    const uint32_t low[2] = {0, 0}, high[2] = {UINT32_MAX, UINT32_MAX};
    int32_t action[2];
    (void)state;
    rm_categorical_draw(&c, logits, 4, mask, 2, low, action, NULL);
    assert_true(action[0] == 1 && action[1] == 0);
    rm_categorical_draw(&c, logits, 4, mask, 2, high, action, NULL);
    assert_true(action[0] == 2 && action[1] == 1); /* e^-200 is nothing in float */
}

static void fill(float *logits, uint8_t *mask, uint32_t actions)
{
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 7, 0);
    for (uint32_t i = 0; i < ROWS * STRIDE; i++)
        logits[i] = rm_rng_float(&rng) * 8 - 4;
    for (uint32_t i = 0; i < ROWS * actions; i++)
        mask[i] = rm_rng_below(&rng, 4) > 0;
}

/* Any part of the rows, any order of lanes, every level of instructions: the same bits. Choices are
 * drawn apart, and their log-probabilities add up. */
static void batches_do_not_matter(void **state)
{
    const struct rm_categorical c = rm_categorical_of(&three);
    static float logits[ROWS * STRIDE], logp[ROWS], again[ROWS];
    static uint8_t mask[ROWS * 9];
    static uint32_t lane[ROWS], word[3 * ROWS];
    static int32_t action[3 * ROWS], part[3 * ROWS];
    (void)state;
    fill(logits, mask, 9);
    lanes(lane, 6, ROWS);
    rm_categorical_words(&c, 9, 77, lane, ROWS, word);
    rm_categorical_draw(&c, logits, STRIDE, mask, ROWS, word, action, logp);
    for (uint32_t at = ROWS; at > 0;) {
        const uint32_t n = at < 37 ? at : 37;
        at -= n;
        rm_categorical_words(&c, 9, 77, lane + at, n, word);
        rm_categorical_draw(&c, logits + (size_t)at * STRIDE, STRIDE, mask + (size_t)at * 9, n,
                            word, part + 3 * at, again + at);
    }
    assert_memory_equal(action, part, sizeof action);
    assert_memory_equal(logp, again, sizeof logp);
    rm_categorical_logp(&c, logits, STRIDE, mask, ROWS, action, again);
    assert_memory_equal(logp, again, sizeof logp);
    for (uint32_t i = 0; i < ROWS; i++) {
        double wanted = 0;
        for (uint32_t k = 0, offset = 0; k < 3; offset += c.choice_actions[k++]) {
            double sum = 0;
            bool any = false;
            for (uint32_t a = 0; a < c.choice_actions[k]; a++)
                any |= mask[i * 9 + offset + a];
            for (uint32_t a = 0; a < c.choice_actions[k]; a++)
                sum += mask[i * 9 + offset + a] ? exp((double)logits[i * STRIDE + offset + a]) : 0;
            const uint32_t chosen = offset + (uint32_t)action[3 * i + k];
            assert_true(!any || mask[i * 9 + chosen]);
            wanted +=
                any ? (double)logits[i * STRIDE + chosen] - log(sum) : -log(c.choice_actions[k]);
        }
        assert_true(fabs((double)logp[i] - wanted) < 1e-5);
    }
}

/* Lanes that are not neighbours have the words that they have among others. */
static void words_depend_on_lane_step_and_choice(void **state)
{
    const struct rm_categorical c = rm_categorical_of(&three);
    uint32_t lane[64], all[3 * 64], few[3 * 3], later[3 * 64];
    const uint32_t some[3] = {50, 3, 4};
    (void)state;
    lanes(lane, 0, 64);
    rm_categorical_words(&c, 1, 2, lane, 64, all);
    rm_categorical_words(&c, 1, 2, some, 3, few);
    rm_categorical_words(&c, 1, 3, lane, 64, later);
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t i = 0; i < 3; i++)
            assert_int_equal(few[3 * k + i], all[64 * k + some[i]]);
    for (uint32_t i = 0; i < 3 * 64; i++) {
        assert_int_not_equal(all[i], later[i]);
        for (uint32_t j = 0; j < i; j++)
            assert_int_not_equal(all[i], all[j]);
    }
}

static void the_likeliest_is_the_first_of_the_best(void **state)
{
    const struct rm_categorical c = rm_categorical_of(&three);
    const float logits[18] = {1, 1, 0, 5, 5, 2, -3, -2, -1, 0, 1, 9, 8, 7, 6, 0, 0, 0};
    const uint8_t mask[18] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0, 1};
    const int32_t wanted[6] = {0, 1, 2, 0, 1, 2};
    int32_t action[6];
    (void)state;
    rm_categorical_greedy(&c, logits, 9, mask, 2, action);
    assert_memory_equal(action, wanted, sizeof wanted);
}

static void all_levels_agree(void **state)
{
    const struct rm_categorical_kernels *const level[] = {
        &rm_isa_v2_categorical, &rm_isa_v3_categorical, &rm_isa_v4_categorical};
    const struct rm_categorical c = one_of(6);
    static float logits[ROWS * STRIDE], logp[ROWS], other[ROWS];
    static uint8_t mask[ROWS * 6];
    static uint32_t lane[ROWS], word[ROWS];
    static int32_t action[ROWS], again[ROWS];
    (void)state;
    fill(logits, mask, 6);
    lanes(lane, 0, ROWS);
    rm_categorical_words(&c, 9, 1, lane, ROWS, word);
    rm_categorical_draw(&c, logits, STRIDE, mask, ROWS, word, action, logp);
    const struct rm_categorical_rows rows = {&c, logits, STRIDE, mask, ROWS};
    for (uint32_t k = 0; k <= (uint32_t)rm_isa_level(); k++) {
        uint32_t differ = 0;
        level[k]->draw(&rows, word, again, other);
        for (uint32_t i = 0; i < ROWS; i++) {
            differ += action[i] != again[i]; /* a rounding at the threshold */
            if (action[i] == again[i])
                assert_true(fabsf(logp[i] - other[i]) < 1e-5f);
        }
        assert_true(differ <= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_are_in_proportion),
        cmocka_unit_test(the_ends_are_legal),
        cmocka_unit_test(batches_do_not_matter),
        cmocka_unit_test(words_depend_on_lane_step_and_choice),
        cmocka_unit_test(the_likeliest_is_the_first_of_the_best),
        cmocka_unit_test(all_levels_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
