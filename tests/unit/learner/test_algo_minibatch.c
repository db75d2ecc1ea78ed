/* Minibatches: every sample once a pass, in an order that is anybody's guess but always the same.
 */
#include "learner/algo/minibatch.h"
#include "learner/backend/policy_ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS 60

static struct rm_minibatches open_minibatches(uint32_t parts, uint64_t seed)
{
    const struct rm_minibatches_spec spec = {
        .rows = ROWS, .parts = parts, .seed = seed, .policy = 3, .shuffled = true};
    struct rm_minibatches m;
    struct rm_error error = {""};
    assert_int_equal(rm_minibatches_create(&m, &spec, &error), 0);
    return m;
}

/* Counts of each row over all parts of a pass; the parts' sizes differ by one at most. */
static void count(struct rm_minibatches *m, uint32_t samples, uint32_t counts[3 * ROWS])
{
    uint32_t least = UINT32_MAX, most = 0;
    struct rm_rollout_passes p = {.entries = samples, .parts = m->spec.parts, .epochs = 1};
    p.parts = samples < p.parts ? samples : p.parts;
    for (; p.part < p.parts; p.part++) {
        const struct rm_pass_part part = rm_passes_part(&p);
        least = part.entries < least ? part.entries : least;
        most = part.entries > most ? part.entries : most;
        for (uint32_t i = 0; i < part.entries; i++)
            counts[m->row[part.from + i]]++;
    }
    assert_true(least > 0 && most - least <= 1 && most <= rm_minibatches_most(m));
}

static void every_sample_once_a_pass(void **state)
{
    (void)state;
    for (uint32_t samples = 1; samples <= ROWS; samples++) {
        struct rm_minibatches m = open_minibatches(7, 1);
        uint32_t row[ROWS], counts[3 * ROWS] = {0};
        for (uint32_t i = 0; i < samples; i++)
            row[i] = 3 * i + 1;
        rm_minibatches_begin(&m, row, samples);
        for (uint32_t pass = 0; pass < 4; pass++) {
            rm_minibatches_shuffle(&m, pass);
            count(&m, samples, counts);
        }
        for (uint32_t i = 0; i < 3 * ROWS; i++)
            assert_int_equal(counts[i], i % 3 == 1 && i / 3 < samples ? 4 : 0);
        rm_minibatches_destroy(&m);
    }
}

/* Where the first sample comes to stand: over many passes, anywhere. Chi-square at 9 degrees of
 * freedom, 0.999 quantile 27.88. */
static void places_are_uniform(void **state)
{
    enum { N = 10, PASSES = 20000 };
    struct rm_minibatches m = open_minibatches(1, 5);
    const uint32_t row[N] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    double seen[N] = {0}, square = 0;
    (void)state;
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        rm_minibatches_begin(&m, row, N);
        rm_minibatches_shuffle(&m, pass);
        for (uint32_t i = 0; i < N; i++)
            seen[i] += m.row[i] == 0;
    }
    for (uint32_t i = 0; i < N; i++)
        square += pow(seen[i] - (double)PASSES / N, 2) / ((double)PASSES / N);
    assert_true(square < 27.88);
    rm_minibatches_destroy(&m);
}

static void orders_are_functions_of_seed_and_pass(void **state)
{
    uint32_t row[ROWS], order[3][ROWS];
    const uint64_t seed[3] = {1, 1, 2};
    (void)state;
    for (uint32_t i = 0; i < ROWS; i++)
        row[i] = i;
    for (int k = 0; k < 3; k++) {
        struct rm_minibatches m = open_minibatches(1, seed[k]);
        rm_minibatches_begin(&m, row, ROWS);
        rm_minibatches_shuffle(&m, 9);
        memcpy(order[k], m.row, sizeof order[k]);
        rm_minibatches_destroy(&m);
    }
    assert_memory_equal(order[0], order[1], sizeof order[0]);
    assert_memory_not_equal(order[0], order[2], sizeof order[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_once_a_pass),
        cmocka_unit_test(places_are_uniform),
        cmocka_unit_test(orders_are_functions_of_seed_and_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
