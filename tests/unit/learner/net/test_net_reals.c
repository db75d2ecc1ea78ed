/* Real actions drawn from normals: their moments and log-probabilities, whatever the batch; means;
 * and uniform ones within the policy's bounds. */
#include "learner/net/reals.h"
#include "tests/support/unit.h"

#include <math.h>
#include <string.h>

enum { N = 4000, REALS = 3, ACTIONS = 2, OUTPUTS = ACTIONS + 2 * REALS, WORDS = 1 + REALS };

static float out[N * OUTPUTS];
static int32_t action[N * WORDS];
static uint32_t lane[N];
static float logp[N];

static const struct rm_net_shape shape = {
    .inputs = 1, .actions = ACTIONS, .reals = REALS, .outputs_per_action = 1};

static struct rm_reals_rows rows_of(const struct rm_gaussian *g, const struct rm_categorical *c,
                                    uint32_t first, uint32_t n)
{
    return (struct rm_reals_rows){.gaussian = g,
                                  .choices = c,
                                  .out = out + (size_t)first * OUTPUTS,
                                  .stride = OUTPUTS,
                                  .n = n,
                                  .action = action + (size_t)first * WORDS};
}

static void fill(void)
{
    for (uint32_t i = 0; i < N; i++) {
        static const float row[OUTPUTS] = {7, 7, 0.5f, -2, 30, 0, -1, 1.5f};
        memcpy(out + (size_t)i * OUTPUTS, row, sizeof row);
        lane[i] = 3 * i + 1;
        logp[i] = -1;
    }
    memset(action, 0x55, sizeof action);
}

static double real(uint32_t i, uint32_t k)
{
    return (double)rm_float_of_word(action[i * WORDS + 1 + k]);
}

static void draws_have_the_moments_and_are_judged(void **state)
{
    const struct rm_categorical c = rm_categorical_of(&shape);
    (void)state;
    assert_int_equal(c.words, WORDS);
    for (uint32_t by_tanh = 0; by_tanh < 2; by_tanh++) {
        const struct rm_gaussian g = {REALS, by_tanh};
        const struct rm_reals_rows all = rows_of(&g, &c, 0, N);
        fill();
        rm_reals_draw(&all, 9, 4, lane, logp);
        for (uint32_t k = 0; k < REALS; k++) {
            const double mean = (double)out[ACTIONS + k];
            const double deviation = exp((double)out[ACTIONS + REALS + k]);
            double sum = 0, squares = 0;
            for (uint32_t i = 0; i < N; i++) {
                sum += (real(i, k) - mean) / deviation;
                squares += pow((real(i, k) - mean) / deviation, 2);
            }
            assert_true(fabs(sum / N) < 4 / sqrt(N));
            assert_true(fabs(squares / N - 1) < 6 / sqrt(N));
        }
        for (uint32_t i = 0; i < N; i += 97) {
            double want = -1; /* added to what the choices have */
            for (uint32_t k = 0; k < REALS; k++) {
                const double log_deviation = (double)out[ACTIONS + REALS + k], u = real(i, k);
                const double off = (u - (double)out[ACTIONS + k]) / exp(log_deviation);
                want -= off * off / 2 + log_deviation + log(2 * M_PI) / 2;
                want -= by_tanh ? 2 * (log(2) - fabs(u) - log1p(exp(-2 * fabs(u)))) : 0;
            }
            assert_true(fabs((double)logp[i] - want) < 1e-4 * (1 + fabs(want)));
            assert_int_equal(action[i * WORDS], 0x55555555); /* the choice is another's */
        }
    }
}

static void a_row_does_not_depend_on_its_batch(void **state)
{
    static int32_t whole[N * WORDS];
    const struct rm_gaussian g = {REALS, 0};
    const struct rm_categorical c = rm_categorical_of(&shape);
    const struct rm_reals_rows all = rows_of(&g, &c, 0, N);
    (void)state;
    fill();
    rm_reals_draw(&all, 9, 4, lane, NULL);
    memcpy(whole, action, sizeof whole);
    fill();
    for (uint32_t first = 0, n; first < N; first += n) {
        n = first + 37 < N ? 37 : N - first;
        const struct rm_reals_rows part = rows_of(&g, &c, first, n);
        rm_reals_draw(&part, 9, 4, lane + first, NULL);
    }
    assert_memory_equal(whole, action, sizeof whole);
    rm_reals_draw(&all, 9, 5, lane, NULL);
    assert_memory_not_equal(whole, action, sizeof whole);
}

static void greedy_is_the_mean(void **state)
{
    const struct rm_gaussian g = {REALS, 1};
    const struct rm_categorical c = rm_categorical_of(&shape);
    const struct rm_reals_rows all = rows_of(&g, &c, 0, N);
    (void)state;
    fill();
    rm_reals_greedy(&all);
    for (uint32_t k = 0; k < REALS; k++)
        assert_true(real(N - 1, k) == (double)out[ACTIONS + k]);
    assert_true(rm_gaussian_bounded((float)real(0, 2), 0) == 1);
    assert_true(rm_gaussian_bounded((float)real(0, 2), 1) == 1);
    assert_true(rm_gaussian_bounded((float)real(0, 1), 0) == -1);
    assert_true(fabs((double)rm_gaussian_bounded((float)real(0, 0), 1) - tanh(0.5)) < 1e-6);
    assert_true(rm_gaussian_bounded(NAN, 0) == -1); /* no world is given what is no number */
}

static void exploring_is_uniform_within_bounds(void **state)
{
    (void)state;
    for (uint32_t by_tanh = 0; by_tanh < 2; by_tanh++) {
        const struct rm_gaussian g = {REALS, by_tanh};
        double sum = 0, squares = 0, most = 0;
        for (uint32_t i = 0; i < N; i++) {
            int32_t word[REALS];
            rm_reals_explore(&g, 9, 4, i, word);
            for (uint32_t k = 0; k < REALS; k++) {
                const double x = (double)rm_gaussian_bounded(rm_float_of_word(word[k]), by_tanh);
                sum += x / (N * REALS);
                squares += x * x / (N * REALS);
                most = fmax(most, fabs(x));
            }
        }
        assert_true(fabs(sum) < 4 / sqrt(3.0 * N * REALS));
        assert_true(fabs(squares - 1.0 / 3) < 0.02);
        assert_true(most <= 1 && most > 0.999);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_have_the_moments_and_are_judged),
        cmocka_unit_test(a_row_does_not_depend_on_its_batch),
        cmocka_unit_test(greedy_is_the_mean),
        cmocka_unit_test(exploring_is_uniform_within_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
