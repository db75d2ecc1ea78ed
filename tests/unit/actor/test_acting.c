/* Answers: the first of the best legal actions, explorers in their proportion, and nothing that
 * depends on the batch. */
#include "actor/acting.h"
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

enum { LANES = 700 };

static struct rm_session session;
static struct rm_backend *backend;
static struct rm_acting acting;

static void open_acting(const char *more, uint32_t quantiles)
{
    struct rm_error error = {""};
    char json[1024];

    snprintf(json, sizeof json,
             "{\"name\": \"acting\", \"seed\": 1, \"world\": {\"name\": \"treasurehunt\"},"
             " %s}",
             more);
    assert_int_equal(rm_test_session(&session, json), 0);
    assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", &error), 0);
    int rc = rm_acting_create(&acting, &session.experiment, &session.plan.policy[0], backend,
                              quantiles, 99, &error);
    if (rc < 0)
        fail_msg("%s", error.text);
}

static void close_acting(void)
{
    rm_acting_destroy(&acting);
    rm_backend_destroy(backend);
    rm_session_close(&session);
}

static void random_weights(uint64_t seed)
{
    float *all = calloc(rm_net_param_count(acting.net), sizeof *all);
    rm_net_init(acting.net, all, rm_rng_at(seed, RM_STREAM_INIT, 0, 0));
    memcpy(acting.params, all, rm_net_act_count(acting.net) * sizeof *all);
    free(all);
    rm_acting_prepare(&acting);
}

static float *random_inputs(uint32_t n)
{
    struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 0, 0);
    float *x = calloc((size_t)n * acting.inputs, sizeof *x);
    for (size_t i = 0; i < (size_t)n * acting.inputs; i++)
        x[i] = rm_rng_float(&rng) * 2 - 1;
    return x;
}

#define IQN                                                                                        \
    "\"algorithm\": {\"name\": \"iqn\"}, \"network\": {\"layers\": ["                              \
    "{\"type\": \"linear\", \"units\": 24}, {\"type\": \"relu\"},"                                 \
    "{\"type\": \"cosine_embedding\", \"cosines\": 16}, {\"type\": \"linear\", \"units\": 8},"     \
    "{\"type\": \"relu\"}]}"
#define QR                                                                                         \
    "\"algorithm\": {\"name\": \"qr-dqn\", \"quantiles\": 7}, \"network\": {\"head\": "            \
    "{\"dueling\": true},"                                                                         \
    "\"layers\": [{\"type\": \"linear\", \"units\": 24}, {\"type\": \"relu\"}]}"
#define DQN                                                                                        \
    "\"algorithm\": {\"name\": \"dqn\"}, \"network\": {"                                           \
    "\"layers\": [{\"type\": \"linear\", \"units\": 24}, {\"type\": \"relu\"}]}"

/* The value of an action by its definition, in double, from a forward pass of one row. */
static void values_of(const float *x, uint32_t lane, uint64_t step, double *value)
{
    float tau[64];
    struct rm_net_input input = {.x = x, .batch = 1};
    uint32_t q = acting.quantiles ? acting.quantiles : 1, k = acting.outputs_per_action;

    if (acting.quantiles) {
        backend->ops->uniforms(backend, 99, RM_STREAM_ACT, lane, step, acting.quantiles, tau);
        input.tau = tau;
        input.quantiles = acting.quantiles;
    }
    const float *out = rm_net_forward(acting.workspace, acting.params, &input);
    for (uint32_t a = 0; a < acting.actions; a++) {
        value[a] = 0;
        for (uint32_t j = 0; j < q; j++)
            for (uint32_t i = 0; i < k; i++)
                value[a] += (double)out[((size_t)j * acting.actions + a) * k + i];
        value[a] /= q * k;
    }
}

static void best_answers(const char *more, uint32_t quantiles)
{
    int32_t all[LANES], parts[LANES];
    uint32_t lane[LANES], taken[8] = {0};
    uint8_t mask[LANES * 4];

    open_acting(more, quantiles);
    random_weights(3);
    float *x = random_inputs(LANES);
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 0, 0);
    for (uint32_t i = 0; i < LANES; i++) {
        lane[i] = 7 * i + 1;
        for (uint32_t a = 0; a < 4; a++)
            mask[i * 4 + a] = (uint8_t)rm_rng_below(&rng, 2);
        mask[i * 4 + rm_rng_below(&rng, 4)] = 1;
    }
    for (int masked = 0; masked < 2; masked++) {
        rm_acting_greedy(&acting, x, LANES, lane, 12, masked ? mask : NULL, all);
        /* the same in pieces, in any order */
        for (uint32_t at = LANES; at > 0;) {
            uint32_t n = at < 97 ? at : 97;
            at -= n;
            rm_acting_greedy(&acting, x + (size_t)at * acting.inputs, n, lane + at, 12,
                             masked ? mask + at * 4 : NULL, parts + at);
        }
        assert_memory_equal(all, parts, sizeof all);
        for (uint32_t i = 0; i < LANES; i++) {
            double value[8];
            values_of(x + (size_t)i * acting.inputs, lane[i], 12, value);
            assert_in_range(all[i], 0, 3);
            assert_true(!masked || mask[i * 4 + (uint32_t)all[i]]);
            for (uint32_t a = 0; a < 4; a++)
                if (!masked || mask[i * 4 + a])
                    assert_true(value[a] <= value[all[i]] + 1e-6);
            taken[all[i]]++;
        }
    }
    for (uint32_t a = 0; a < 4; a++)
        assert_true(taken[a] > 0);
    free(x);
    close_acting();
}

static void answers_are_the_best_of_dqn(void **state)
{
    (void)state;
    best_answers(DQN, 0);
}

static void answers_are_the_best_mean_of_qr(void **state)
{
    (void)state;
    best_answers(QR, 0);
}

static void answers_are_the_best_mean_of_iqn(void **state)
{
    (void)state;
    best_answers(IQN, 16);
    best_answers(IQN, 1);
}

/* With all values equal the first legal action is the answer. */
static void ties_go_to_the_first(void **state)
{
    static const char *const kinds[] = {DQN, QR, IQN};
    const uint8_t mask[12] = {0, 0, 1, 1, 0, 1, 1, 1, 0, 0, 0, 1};
    const uint32_t lane[3] = {0, 1, 2};
    int32_t action[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        open_acting(kinds[i], 4);
        float *x = random_inputs(3);
        rm_acting_prepare(&acting); /* all zero */
        rm_acting_greedy(&acting, x, 3, lane, 0, NULL, action);
        assert_true(action[0] == 0 && action[1] == 0 && action[2] == 0);
        rm_acting_greedy(&acting, x, 3, lane, 0, mask, action);
        assert_true(action[0] == 2 && action[1] == 1 && action[2] == 3);
        free(x);
        close_acting();
    }
}

/* The draws differ from step to step and from lane to lane, and only by these. */
static void quantile_draws_have_coordinates(void **state)
{
    int32_t a[LANES], b[LANES];
    uint32_t lane[LANES], differ = 0;

    (void)state;
    open_acting(IQN, 1);
    random_weights(8);
    float *x = random_inputs(1);
    float *same = calloc((size_t)LANES * acting.inputs, sizeof *same);
    for (uint32_t i = 0; i < LANES; i++) {
        lane[i] = i;
        memcpy(same + (size_t)i * acting.inputs, x, acting.inputs * sizeof *x);
    }
    for (uint32_t tries = 0; tries < 40 && !differ; tries++) {
        /* weights under which the quantile decides, sooner or later */
        random_weights(100 + tries);
        rm_acting_greedy(&acting, same, LANES, lane, 3, NULL, a);
        for (uint32_t i = 1; i < LANES; i++)
            differ += a[i] != a[0];
    }
    assert_true(differ > 0);
    rm_acting_greedy(&acting, same, LANES, lane, 3, NULL, b);
    assert_memory_equal(a, b, sizeof a);
    rm_acting_greedy(&acting, same, LANES, lane, 4, NULL, b);
    assert_memory_not_equal(a, b, sizeof a);
    free(x);
    free(same);
    close_acting();
}

/* --- exploring ------------------------------------------------------------------------------- */

static void explorers_have_their_share(void **state)
{
    static const double rates[] = {0, 0.03, 0.5, 1};
    uint64_t bound[LANES];
    int32_t action[LANES];

    (void)state;
    for (size_t r = 0; r < 4; r++) {
        double explorers = 0, draws = 0, each[5] = {0};
        for (uint32_t i = 0; i < LANES; i++)
            bound[i] = (uint64_t)(rates[r] * 0x1p32);
        for (uint64_t step = 0; step < 300; step++) {
            uint32_t n = rm_acting_explore(6, 1001, LANES, step, bound, 5, NULL, action), found = 0;
            for (uint32_t i = 0; i < LANES; i++) {
                assert_in_range(action[i] + 1, 0, 5);
                if (action[i] >= 0) {
                    found++;
                    each[action[i]]++;
                }
            }
            assert_int_equal(n, found);
            explorers += n;
            draws += LANES;
        }
        /* five standard deviations of a binomial */
        double sd = sqrt(draws * rates[r] * (1 - rates[r]));
        assert_true(fabs(explorers - draws * rates[r]) <= 5 * sd);
        for (int a = 0; a < 5; a++)
            assert_true(fabs(each[a] - explorers / 5) <= 5 * sqrt(explorers * 0.16));
    }
}

static void explorers_do_not_depend_on_the_split(void **state)
{
    uint64_t bound[LANES];
    int32_t whole[LANES], parts[LANES];

    (void)state;
    for (uint32_t i = 0; i < LANES; i++)
        bound[i] = (uint64_t)i << 22;
    rm_acting_explore(6, 50, LANES, 9, bound, 3, NULL, whole);
    for (uint32_t at = 0; at < LANES;) {
        uint32_t n = 1 + at % 7;
        n = at + n > LANES ? LANES - at : n;
        rm_acting_explore(6, 50 + at, n, 9, bound + at, 3, NULL, parts + at);
        at += n;
    }
    assert_memory_equal(whole, parts, sizeof whole);
    rm_acting_explore(6, 50, LANES, 10, bound, 3, NULL, parts);
    assert_memory_not_equal(whole, parts, sizeof whole);
}

static void explorers_stay_legal(void **state)
{
    uint64_t bound[LANES];
    uint8_t mask[LANES * 6];
    int32_t action[LANES];
    double each[6] = {0}, total = 0;

    (void)state;
    for (uint32_t i = 0; i < LANES; i++) {
        bound[i] = UINT64_C(1) << 32;
        for (uint32_t a = 0; a < 6; a++)
            mask[i * 6 + a] = a == 1 || a == 2 || a == 5;
    }
    for (uint64_t step = 0; step < 100; step++) {
        assert_int_equal(rm_acting_explore(6, 0, LANES, step, bound, 6, mask, action), LANES);
        for (uint32_t i = 0; i < LANES; i++, total++) {
            assert_true(mask[i * 6 + (uint32_t)action[i]]);
            each[action[i]]++;
        }
    }
    assert_true(fabs(each[1] - total / 3) <= 5 * sqrt(total * 2 / 9));
    assert_true(fabs(each[5] - total / 3) <= 5 * sqrt(total * 2 / 9));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_the_best_of_dqn),
        cmocka_unit_test(answers_are_the_best_mean_of_qr),
        cmocka_unit_test(answers_are_the_best_mean_of_iqn),
        cmocka_unit_test(ties_go_to_the_first),
        cmocka_unit_test(quantile_draws_have_coordinates),
        cmocka_unit_test(explorers_have_their_share),
        cmocka_unit_test(explorers_do_not_depend_on_the_split),
        cmocka_unit_test(explorers_stay_legal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
