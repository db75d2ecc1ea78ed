/* Running statistics against two passes over everything in long double: moments, the scale of
 * rewards, the normaliser of observations. */
#include "learner/algo/moments.h"
#include "learner/algo/normaliser.h"
#include "learner/algo/reward_scale.h"
#include "shm/base/rng.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_backend *backend;

static int open_backend(void **state)
{
    struct rm_error error;
    (void)state;
    return rm_backend_cpu_create(&backend, 1, "auto", &error);
}

static int close_backend(void **state)
{
    (void)state;
    rm_backend_destroy(backend);
    return 0;
}

static void near(double got, double want, double rtol)
{
    if (!(fabs(got - want) <= rtol * fmax(1.0, fabs(want))))
        fail_msg("%.15g is not %.15g", got, want);
}

/* --- moments --------------------------------------------------------------------------------- */

/* Numbers around 10^4 whose deviation is 1: a running sum of squares in float would have no digit
 * of it left. */
static void moments_of_parts_and_of_the_whole(void **state)
{
    (void)state;
    enum { N = 10007 };
    static float x[N];
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    long double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        x[i] = 10000.0f + 3.4641f * (rm_rng_float(&rng) - 0.5f);
        sum += x[i];
    }
    for (int i = 0; i < N; i++)
        squares += (x[i] - sum / N) * (x[i] - sum / N);
    struct rm_moments parts = {0};
    for (int at = 0, n = 1; at < N; at += n, n = n % 97 + 3)
        parts = rm_moments_merge(parts, rm_moments_of(x + at, (size_t)(N - at < n ? N - at : n)));
    const struct rm_moments whole = rm_moments_of(x, N), of[] = {parts, whole};
    for (int i = 0; i < 2; i++) {
        near(of[i].count, N, 0);
        near(of[i].mean, (double)(sum / N), 1e-13);
        near(rm_moments_variance(of[i]), (double)(squares / N), 1e-11);
    }
}

static void few_or_no_numbers(void **state)
{
    (void)state;
    const float one[] = {5};
    const struct rm_moments none = {0}, of_one = rm_moments_of(one, 1);
    assert_true(rm_moments_variance(none) == 0);
    assert_true(of_one.mean == 5 && rm_moments_variance(of_one) == 0);
    assert_true(rm_moments_merge(none, of_one).mean == 5);
    assert_true(rm_moments_merge(of_one, none).mean == 5);
    assert_true(rm_moments_merge(none, none).count == 0);
}

/* --- rewards --------------------------------------------------------------------------------- */

static struct rm_experiment rewards_of(bool on, double gamma, double clip)
{
    struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.sample.gamma = gamma;
    e.algorithm.normalize_rewards = on;
    e.algorithm.reward_clip = clip;
    return e;
}

/* Two lanes, gamma 1/2. Lane 0 has rewards 4, 2 (its last), 6: returns 4, 4, 6. Lane 1 has 2, is
 * not there, has 10: returns 2, 10. Mean 5.2, variance 7.36. */
static void rewards_by_hand(void **state)
{
    (void)state;
    const float rewards[3][2] = {{4, 2}, {2, 777}, {6, 10}};
    const uint8_t lanes[3][2] = {{RM_REWARD_GOES_ON, RM_REWARD_GOES_ON},
                                 {RM_REWARD_ENDS, RM_REWARD_ABSENT},
                                 {RM_REWARD_GOES_ON, RM_REWARD_GOES_ON}};
    const struct rm_experiment e = rewards_of(true, 0.5, 1.5);
    struct rm_reward_scale s;
    struct rm_error error;
    assert_int_equal(rm_reward_scale_create(&s, &e, 2, &error), 0);
    assert_true(rm_reward_scale_divisor(&s) == 1.0);
    for (int t = 0; t < 3; t++)
        rm_reward_scale_add(&s, rewards[t], lanes[t]);
    near(s.moments.count, 5, 0);
    near(s.moments.mean, 5.2, 1e-14);
    near(rm_reward_scale_divisor(&s), sqrt(7.36 + 1e-8), 1e-14);
    float r[] = {2, -1, 100, -100};
    rm_reward_scale_apply(&s, r, 4);
    near(r[0], 2 / sqrt(7.36), 1e-6);
    near(r[1], -1 / sqrt(7.36), 1e-6);
    assert_true(r[2] == 1.5f && r[3] == -1.5f);
    rm_reward_scale_destroy(&s);
}

static void rewards_of_many_lanes(void **state)
{
    (void)state;
    enum { LANES = 37, STEPS = 500 };
    const struct rm_experiment e = rewards_of(true, 0.99, 0);
    struct rm_reward_scale s;
    struct rm_error error;
    struct rm_rng rng = rm_rng_at(2, RM_STREAM_TEST, 0, 0);
    long double returns[LANES] = {0}, sum = 0, squares = 0;
    static long double all[LANES * STEPS];
    size_t n = 0;
    assert_int_equal(rm_reward_scale_create(&s, &e, LANES, &error), 0);
    for (int t = 0; t < STEPS; t++) {
        float rewards[LANES];
        uint8_t lanes[LANES];
        for (int i = 0; i < LANES; i++) {
            rewards[i] = rm_rng_float(&rng) * 3 - 1;
            lanes[i] = rm_rng_below(&rng, 20) == 0 ? RM_REWARD_ENDS : RM_REWARD_GOES_ON;
            returns[i] = 0.99L * returns[i] + rewards[i];
            all[n++] = returns[i];
            sum += returns[i];
            if (lanes[i] == RM_REWARD_ENDS)
                returns[i] = 0;
        }
        rm_reward_scale_add(&s, rewards, lanes);
    }
    for (size_t i = 0; i < n; i++)
        squares += (all[i] - sum / n) * (all[i] - sum / n);
    near(rm_reward_scale_divisor(&s), sqrt((double)(squares / n) + 1e-8), 1e-11);
    float large = 1e6f;
    rm_reward_scale_apply(&s, &large, 1); /* clip 0: none */
    near(large, 1e6 / rm_reward_scale_divisor(&s), 1e-6);
    rm_reward_scale_destroy(&s);
}

static void rewards_as_they_are(void **state)
{
    (void)state;
    const struct rm_experiment e = rewards_of(false, 0.9, 1);
    struct rm_reward_scale s;
    struct rm_error error;
    float r[] = {50, -3};
    const uint8_t lanes[] = {RM_REWARD_GOES_ON, RM_REWARD_ENDS};
    assert_int_equal(rm_reward_scale_create(&s, &e, 2, &error), 0);
    rm_reward_scale_add(&s, r, lanes);
    rm_reward_scale_apply(&s, r, 2);
    assert_true(r[0] == 50 && r[1] == -3 && rm_reward_scale_divisor(&s) == 1.0);
    rm_reward_scale_destroy(&s);
}

/* --- observations ---------------------------------------------------------------------------- */

enum { INPUTS = 5, ROWS = 1001, MEAN_AT = 3, SCALE_AT = 10, ARENA = 20 };

static float *draw_rows(void)
{
    float *x = calloc((size_t)INPUTS * ROWS, sizeof *x);
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 0, 0);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < INPUTS; i++)
            x[r * INPUTS + i] = i == 4 ? 2.5f : powf(10, (float)i) * (rm_rng_float(&rng) + 1);
    return x;
}

static struct rm_normaliser made(void)
{
    struct rm_normaliser n;
    struct rm_error error;
    assert_int_equal(rm_normaliser_create(&n, backend, INPUTS, MEAN_AT, SCALE_AT, &error), 0);
    return n;
}

static void observations(void **state)
{
    (void)state;
    float *x = draw_rows(), arena[ARENA] = {0};
    struct rm_normaliser n = made();
    rm_normaliser_write(&n, arena);
    for (int i = 0; i < ARENA; i++)
        assert_true(arena[i] == 0); /* nothing is known yet */
    rm_normaliser_add(&n, x, 300);
    rm_normaliser_add(&n, x + (size_t)300 * INPUTS, ROWS - 300);
    rm_normaliser_write(&n, arena);
    for (int i = 0; i < INPUTS; i++) {
        long double sum = 0, squares = 0;
        for (int r = 0; r < ROWS; r++)
            sum += x[r * INPUTS + i];
        for (int r = 0; r < ROWS; r++)
            squares += (x[r * INPUTS + i] - sum / ROWS) * (x[r * INPUTS + i] - sum / ROWS);
        near(arena[MEAN_AT + i], (double)(sum / ROWS), 1e-7);
        near(arena[SCALE_AT + i], 1 / sqrt((double)(squares / ROWS) + 1e-8), 1e-6);
    }
    near(arena[SCALE_AT + 4], 1e4, 1e-6); /* it never changed: finite, and its place is 0 */
    assert_true(arena[0] == 0 && arena[MEAN_AT + INPUTS] == 0 && arena[SCALE_AT + INPUTS] == 0);
    rm_normaliser_destroy(&n);
    free(x);
}

static void observations_go_on(void **state)
{
    (void)state;
    float *x = draw_rows(), arena[ARENA] = {0}, other[ARENA] = {0};
    struct rm_normaliser n = made(), successor = made(), checkpoint = made();
    rm_normaliser_add(&n, x, 640);
    rm_normaliser_write(&n, arena);
    rm_normaliser_resume(&successor, arena, n.count);
    checkpoint.count = n.count;
    memcpy(checkpoint.mean, n.mean, INPUTS * sizeof *n.mean);
    memcpy(checkpoint.m2, n.m2, INPUTS * sizeof *n.m2);
    struct rm_normaliser *all[] = {&n, &successor, &checkpoint};
    for (int i = 0; i < 3; i++)
        rm_normaliser_add(all[i], x + (size_t)640 * INPUTS, ROWS - 640);
    rm_normaliser_write(&n, arena);
    rm_normaliser_write(&checkpoint, other);
    assert_memory_equal(arena, other, sizeof arena);
    rm_normaliser_write(&successor, other); /* from floats: not to the last bit */
    for (int i = 0; i < INPUTS; i++) {
        near(other[MEAN_AT + i], arena[MEAN_AT + i], 1e-6);
        near(other[SCALE_AT + i], arena[SCALE_AT + i], 1e-3);
    }
    for (int i = 0; i < 3; i++)
        rm_normaliser_destroy(all[i]);
    free(x);
}

/* What is not finite would never be forgotten. */
static void what_is_not_finite_is_left_out(void **state)
{
    (void)state;
    float *x = draw_rows(), arena[ARENA] = {0}, other[ARENA] = {0};
    struct rm_normaliser n = made(), clean = made();
    rm_normaliser_add(&clean, x, 64);
    rm_normaliser_add(&n, x, 64);
    x[70 * INPUTS + 3] = NAN;
    rm_normaliser_add(&n, x + (size_t)64 * INPUTS, 64);
    rm_normaliser_write(&n, arena);
    rm_normaliser_write(&clean, other);
    assert_memory_equal(arena, other, sizeof arena);
    rm_normaliser_destroy(&n);
    rm_normaliser_destroy(&clean);
    free(x);

    const struct rm_experiment e = rewards_of(true, 0.9, 0);
    const float rewards[][2] = {{1, 3}, {2, INFINITY}, {1, 3}, {5, 1}};
    const uint8_t lanes[2] = {RM_REWARD_GOES_ON, RM_REWARD_GOES_ON};
    struct rm_reward_scale s;
    struct rm_error error;
    assert_int_equal(rm_reward_scale_create(&s, &e, 2, &error), 0);
    for (int t = 0; t < 4; t++)
        rm_reward_scale_add(&s, rewards[t], lanes);
    assert_true(isfinite(rm_reward_scale_divisor(&s)) && rm_reward_scale_divisor(&s) > 0.5);
    assert_true(s.moments.count == 6 && isfinite(s.returns[1]));
    rm_reward_scale_destroy(&s);
}

static void networks_without_it(void **state)
{
    (void)state;
    struct rm_normaliser n;
    struct rm_error error;
    float arena[1] = {9}, x[INPUTS] = {0};
    assert_int_equal(rm_normaliser_create(&n, backend, INPUTS, SIZE_MAX, SIZE_MAX, &error), 0);
    rm_normaliser_add(&n, x, 1);
    rm_normaliser_write(&n, arena);
    rm_normaliser_resume(&n, arena, 4);
    assert_true(arena[0] == 9 && n.count == 0);
    rm_normaliser_destroy(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moments_of_parts_and_of_the_whole),
        cmocka_unit_test(few_or_no_numbers),
        cmocka_unit_test(rewards_by_hand),
        cmocka_unit_test(rewards_of_many_lanes),
        cmocka_unit_test(rewards_as_they_are),
        cmocka_unit_test(observations),
        cmocka_unit_test(observations_go_on),
        cmocka_unit_test(what_is_not_finite_is_left_out),
        cmocka_unit_test(networks_without_it),
    };
    return cmocka_run_group_tests_name("running statistics", tests, open_backend, close_backend);
}
