/* PopArt: figures worked out by hand, those of the Goodhart grid's page, and its promise that what
 * the network says of a state stays. The properties at the end are those that rlax tests its own
 * implementation for. */
#include "learner/algo/value_head.h"
#include "shm/base/rng.h"
#include "tests/support/unit.h"

#include <math.h>
#include <string.h>

enum { WEIGHTS = 64, BIAS = WEIGHTS, PARAMS = WEIGHTS + 1 };

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

static struct rm_value_head head_of(enum rm_value_head_kind kind,
                                    enum rm_popart_deviation deviation, double beta)
{
    struct rm_experiment e;
    struct rm_value_head head;
    memset(&e, 0, sizeof e);
    e.algorithm.value_head = kind;
    e.algorithm.popart_beta = beta;
    e.algorithm.popart_deviation = deviation;
    const struct rm_net_value_output at = {.weight = 0, .bias = BIAS, .weights = WEIGHTS};
    rm_value_head_create(&head, &e, at);
    return head;
}

static bool follow(struct rm_value_head *head, struct rm_moments returns, float *params)
{
    const struct rm_value_head_step step = rm_value_head_step(head, &head->state, params);
    return rm_value_head_follow(backend, &step, returns);
}

/* A batch of this mean and unbiased deviation. */
static struct rm_moments batch_of(double mean, double deviation)
{
    const double n = 1000;
    return (struct rm_moments){n, mean, deviation * deviation * (n - 1)};
}

static void near(double got, double want, double atol)
{
    if (!(fabs(got - want) <= atol))
        fail_msg("%.9g is not %.9g", got, want);
}

/* mu 0, sigma 1, w .1, b .2; the batch's mean 2, deviation 4; a feature of 3 gives .5. */
static void goodhart(void **state)
{
    (void)state;
    float params[PARAMS] = {[0] = 0.1f, [BIAS] = 0.2f};
    struct rm_value_head head = head_of(RM_VALUE_POPART, RM_POPART_AVERAGED, 0.01);
    assert_true(follow(&head, batch_of(2, 4), params)); /* k = 1: beta is 1 */
    near(params[0], 0.025, 1e-7);
    near(params[BIAS], -0.45, 1e-7);
    near(head.state.mean, 2, 1e-12);
    near(head.state.deviation, 4, 1e-12);
    near(rm_value_of(&head.state, 3 * params[0] + params[BIAS]), 0.5, 1e-6);

    memset(params, 0, sizeof params);
    params[0] = 0.1f;
    params[BIAS] = 0.2f;
    head = head_of(RM_VALUE_POPART, RM_POPART_AVERAGED, 0.01);
    head.state.updates = 1; /* k = 2: beta is 1/2, still from 0 and 1 */
    follow(&head, batch_of(2, 4), params);
    near(head.state.mean, 1, 1e-12);
    near(head.state.deviation, 2.915476, 1e-6);
    near(params[0], 0.0343, 1e-6);
    near(params[BIAS], -0.274398, 1e-6);
    near(rm_value_of(&head.state, 3 * params[0] + params[BIAS]), 0.5, 1e-6);
}

/* Returns 1, 3 and then 5, 5: mu 2, nu 5, sigma 1; with beta 1/2 mu 3.5, nu 15, sigma sqrt(2.75).
 */
static void published(void **state)
{
    (void)state;
    const float first[] = {1, 3}, second[] = {5, 5}, third[] = {4, 4, 4};
    float params[PARAMS] = {[0] = 1, [BIAS] = 0};
    struct rm_value_head head = head_of(RM_VALUE_POPART, RM_POPART_MOMENTS, 0.4);
    follow(&head, rm_moments_of(first, 2), params);
    near(head.state.mean, 2, 1e-12);
    near(head.state.second, 5, 1e-12);
    near(head.state.deviation, 1, 1e-12);
    follow(&head, rm_moments_of(second, 2), params);
    near(head.state.mean, 3.5, 1e-12);
    near(head.state.second, 15, 1e-12);
    near(head.state.deviation, sqrt(2.75), 1e-12);
    follow(&head, rm_moments_of(third, 3), params); /* not 1/3 but .4 */
    near(head.state.mean, 0.6 * 3.5 + 0.4 * 4, 1e-12);
    near(head.state.second, 0.6 * 15 + 0.4 * 16, 1e-12);
    assert_int_equal(head.state.updates, 3);
}

static void plain_changes_nothing(void **state)
{
    (void)state;
    float params[PARAMS] = {[0] = 0.1f, [BIAS] = 0.2f}, before[PARAMS];
    struct rm_value_head head = head_of(RM_VALUE_PLAIN, RM_POPART_MOMENTS, 0.01);
    memcpy(before, params, sizeof before);
    assert_false(follow(&head, batch_of(20, 4), params));
    rm_value_head_resume(&head, rm_value_head_left(3, 2, 7));
    assert_memory_equal(before, params, sizeof before);
    assert_true(rm_value_of(&head.state, 1.25f) == 1.25f);
    assert_true(rm_value_target(&head.state, 1.25f) == 1.25f);
}

static double output(const float *params, const float *x)
{
    double z = params[BIAS];
    for (int i = 0; i < WEIGHTS; i++)
        z += (double)params[i] * x[i];
    return z;
}

/* Through returns of 30 different scales and offsets, one in ten of which are all alike. */
static void outputs_stay(void **state)
{
    (void)state;
    for (int way = RM_POPART_MOMENTS; way <= RM_POPART_AVERAGED; way++) {
        struct rm_value_head head = head_of(RM_VALUE_POPART, (enum rm_popart_deviation)way, 0.1);
        struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 0, 0);
        float params[PARAMS], x[WEIGHTS], returns[128];
        for (int k = 0; k < 30; k++) {
            const float scale = powf(10.0f, 4.0f * rm_rng_float(&rng) - 2.0f);
            for (int i = 0; i < PARAMS; i++)
                params[i] = rm_rng_float(&rng) - 0.5f;
            for (int i = 0; i < WEIGHTS; i++)
                x[i] = rm_rng_float(&rng);
            for (int i = 0; i < 128; i++)
                returns[i] = scale * (k % 10 == 9 ? 1.0f : rm_rng_float(&rng) + 3.0f);
            const double before = head.state.mean + head.state.deviation * output(params, x);
            assert_true(follow(&head, rm_moments_of(returns, 128), params));
            const double after = head.state.mean + head.state.deviation * output(params, x);
            near(after, before, 1e-5 * fmax(1.0, fabs(before)));
        }
    }
}

static void there_and_back(void **state)
{
    (void)state;
    struct rm_value_head head = head_of(RM_VALUE_POPART, RM_POPART_MOMENTS, 0.01);
    rm_value_head_resume(&head, rm_value_head_left(3, 3, 1));
    near(rm_value_of(&head.state, 1), 6, 1e-6);
    struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 1, 0);
    for (int i = 0; i < 100; i++) {
        const float value = 20 * rm_rng_float(&rng) - 10;
        near(rm_value_of(&head.state, rm_value_target(&head.state, value)), value, 1e-5);
    }
}

static void mean_and_deviation_are_learned(void **state)
{
    (void)state;
    const float returns[] = {-3, -2, -1};
    struct rm_value_head head = head_of(RM_VALUE_POPART, RM_POPART_MOMENTS, 0.1);
    float params[PARAMS] = {[0] = 1};
    head.state.updates = 1000; /* beta is .1 all along */
    for (int k = 0; k < 80; k++)
        follow(&head, rm_moments_of(returns, 3), params);
    near(head.state.mean, -2, 0.01);
    near(head.state.deviation, sqrt(2.0 / 3.0), 0.01);
}

static void larger_steps_go_further(void **state)
{
    (void)state;
    const float returns[] = {0, 3, 6};
    struct rm_value_head slow = head_of(RM_VALUE_POPART, RM_POPART_MOMENTS, 0.01);
    struct rm_value_head fast = head_of(RM_VALUE_POPART, RM_POPART_MOMENTS, 0.1);
    float params[PARAMS] = {[0] = 1};
    slow.state.updates = fast.state.updates = 1000;
    follow(&slow, rm_moments_of(returns, 3), params);
    follow(&fast, rm_moments_of(returns, 3), params);
    assert_true(slow.state.mean < fast.state.mean);
    assert_true(slow.state.deviation < fast.state.deviation);
}

static void the_deviation_is_bounded(void **state)
{
    (void)state;
    for (int way = RM_POPART_MOMENTS; way <= RM_POPART_AVERAGED; way++) {
        struct rm_value_head head = head_of(RM_VALUE_POPART, (enum rm_popart_deviation)way, 1);
        const float alike[] = {7, 7, 7, 7}, one[] = {7};
        float params[PARAMS] = {[0] = 1, [BIAS] = 1};
        follow(&head, rm_moments_of(alike, 4), params);
        near(head.state.deviation, 1e-4, 1e-15);
        follow(&head, rm_moments_of(one, 1), params);
        near(head.state.deviation, 1e-4, 1e-15);
        assert_true(isfinite(params[0]) && isfinite(params[BIAS]));
        const struct rm_value_head_state before = head.state;
        assert_false(follow(&head, rm_moments_of(one, 0), params));
        const float broken[] = {1, NAN};
        assert_false(follow(&head, rm_moments_of(broken, 2), params));
        assert_memory_equal(&before, &head.state, sizeof before);
    }
}

static void state_that_is_carried_over_goes_on(void **state)
{
    (void)state;
    struct rm_value_head one = head_of(RM_VALUE_POPART, RM_POPART_MOMENTS, 0.01);
    struct rm_value_head two = head_of(RM_VALUE_POPART, RM_POPART_MOMENTS, 0.01);
    float a[PARAMS] = {[0] = 1}, b[PARAMS];
    follow(&one, batch_of(2, 4), a);
    follow(&one, batch_of(9, 1), a);
    rm_value_head_resume(&two, one.state);
    memcpy(b, a, sizeof b);
    follow(&one, batch_of(-3, 8), a);
    follow(&two, batch_of(-3, 8), b);
    assert_memory_equal(a, b, sizeof a);
    assert_memory_equal(&one.state, &two.state, sizeof one.state);
    /* What the board keeps is enough for a successor. */
    const struct rm_value_head_state left =
        rm_value_head_left(one.state.mean, one.state.deviation, one.state.updates);
    near(left.second, one.state.second, 1e-9);
    rm_value_head_resume(&two, rm_value_head_left(0, 0, 5)); /* nothing was left */
    assert_memory_equal(&one.state, &two.state, sizeof one.state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goodhart),
        cmocka_unit_test(published),
        cmocka_unit_test(plain_changes_nothing),
        cmocka_unit_test(outputs_stay),
        cmocka_unit_test(there_and_back),
        cmocka_unit_test(mean_and_deviation_are_learned),
        cmocka_unit_test(larger_steps_go_further),
        cmocka_unit_test(the_deviation_is_bounded),
        cmocka_unit_test(state_that_is_carried_over_goes_on),
    };
    return cmocka_run_group_tests_name("value head", tests, open_backend, close_backend);
}
