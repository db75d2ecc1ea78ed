/* Losses, targets and greedy actions against a slow implementation in double, and against numbers
 * worked out by hand. */
#include "learner/algo/loss.h"
#include "shm/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MOST 4096

/* --- the equations as they are printed ------------------------------------------------------- */

static double huber(double u, double kappa)
{
    return fabs(u) <= kappa ? u * u / 2 : kappa * (fabs(u) - kappa / 2);
}

/* ln sum_a exp Q(s, a) - Q(s, action) */
static double slow_penalty(const struct rm_value_loss *in, const double *q, uint32_t b)
{
    double sum = 0, taken = 0;
    for (uint32_t a = 0; a < in->layout.actions; a++) {
        double mean = 0;
        for (uint32_t i = 0; i < in->layout.quantiles; i++)
            mean += q[b * in->layout.sample + a * in->layout.action + i * in->layout.quantile] /
                    in->layout.quantiles;
        if (!in->mask || in->mask[b * in->layout.actions + a])
            sum += exp(mean);
        if (a == (uint32_t)in->action[b])
            taken = mean;
    }
    /* cppcheck-suppress invalidFunctionArg ; there is a legal action */
    return log(sum) - taken;
}

static double slow_loss(enum rm_algorithm name, const struct rm_value_loss *in, const double *q)
{
    double total = 0;
    for (uint32_t b = 0; in->cql > 0 && b < in->batch; b++)
        total += (double)in->cql * (in->weight ? (double)in->weight[b] : 1) *
                 slow_penalty(in, q, b) / in->batch;
    for (uint32_t b = 0; b < in->batch; b++)
        for (uint32_t i = 0; i < in->layout.quantiles; i++)
            for (uint32_t j = 0; j < in->targets; j++) {
                const double d =
                    (double)in->target[b * in->targets + j] -
                    q[b * in->layout.sample + (uint32_t)in->action[b] * in->layout.action +
                      i * in->layout.quantile];
                const double kappa = (double)in->kappa;
                const double weight = in->weight ? (double)in->weight[b] : 1;
                if (name == RM_ALGORITHM_DQN) {
                    total += weight * huber(d, kappa) / in->batch;
                    continue;
                }
                const double tau = (double)in->tau[b * in->layout.quantiles + i];
                const double rho = fabs(tau - (d < 0)) * huber(d, kappa) / kappa;
                total += weight * rho / in->targets / in->batch /
                         (in->mean_over_quantiles ? in->layout.quantiles : 1);
            }
    return total;
}

/* --- random cases ---------------------------------------------------------------------------- */

struct problem {
    struct rm_value_loss in;
    float q[MOST], target[MOST], tau[MOST], d_q[MOST], weight[64], error[64];
    double wide[MOST];
    int32_t action[64];
    uint8_t mask[256];
};

static void make(struct problem *p, enum rm_algorithm name, uint32_t batch, uint32_t actions,
                 uint32_t quantiles, uint32_t targets, float kappa, bool mean, uint32_t number)
{
    struct rm_rng rng = rm_rng_at(11, RM_STREAM_TEST, number, 0);
    const struct rm_algo *algo = rm_algo_of(name);
    memset(p, 0, sizeof *p);
    p->in = (struct rm_value_loss){
        .kind = algo->loss,
        .batch = batch,
        .q = p->q,
        .layout = algo->layout(actions, quantiles),
        .action = p->action,
        .target = p->target,
        .targets = targets,
        .tau = p->tau,
        .kappa = kappa,
        .mean_over_quantiles = mean,
    };
    for (uint32_t i = 0; i < batch * p->in.layout.sample; i++) {
        p->q[i] = 6 * rm_rng_float(&rng) - 3;
        p->wide[i] = (double)p->q[i];
    }
    for (uint32_t i = 0; i < batch * targets; i++)
        p->target[i] = 6 * rm_rng_float(&rng) - 3;
    for (uint32_t i = 0; i < batch * quantiles; i++)
        p->tau[i] = rm_rng_float(&rng);
    for (uint32_t i = 0; i < batch; i++)
        p->action[i] = (int32_t)rm_rng_below(&rng, actions);
    for (uint32_t i = 0; i < batch; i++)
        p->weight[i] = 1 - rm_rng_float(&rng);
    if (number % 2) /* every other case has importance weights */
        p->in.weight = p->weight;
    p->in.error = p->error;
    if (number % 3 == 0) /* and some have the penalty, of all actions or of legal ones */
        return;
    p->in.cql = 0.3f * (float)number;
    for (uint32_t i = 0; i < batch * actions; i++)
        p->mask[i] = rm_rng_below(&rng, 2) == 0;
    for (uint32_t i = 0; i < batch; i++)
        p->mask[i * actions + (uint32_t)p->action[i]] = 1;
    if (number % 4)
        p->in.mask = p->mask;
}

static const struct {
    enum rm_algorithm name;
    uint32_t batch, actions, quantiles, targets;
    float kappa;
    bool mean;
} cases[] = {
    {RM_ALGORITHM_DQN, 1, 2, 1, 1, 1, false},      {RM_ALGORITHM_DQN, 32, 5, 1, 1, 0.5f, false},
    {RM_ALGORITHM_QR_DQN, 8, 3, 20, 20, 1, false}, {RM_ALGORITHM_QR_DQN, 7, 4, 5, 5, 2, true},
    {RM_ALGORITHM_IQN, 8, 4, 12, 12, 1, false},    {RM_ALGORITHM_IQN, 16, 4, 7, 3, 0.25f, false},
    {RM_ALGORITHM_IQN, 16, 4, 12, 12, 1, true},    {RM_ALGORITHM_IQN, 1, 2, 1, 9, 1, false},
};

static void losses_are_the_printed_ones(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        make(&p, cases[c].name, cases[c].batch, cases[c].actions, cases[c].quantiles,
             cases[c].targets, cases[c].kappa, cases[c].mean, c);
        const double want = slow_loss(cases[c].name, &p.in, p.wide);
        const double got = rm_loss_rows(&p.in, p.d_q);
        assert_true(fabs(got - want) <= 1e-5 * fabs(want) + 1e-7);
    }
}

/* Central differences of the slow loss in double; zero for actions not taken. */
static void gradients_are_their_differences(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        make(&p, cases[c].name, cases[c].batch, cases[c].actions, cases[c].quantiles,
             cases[c].targets, cases[c].kappa, cases[c].mean, c);
        rm_loss_rows(&p.in, p.d_q);
        for (uint32_t i = 0; i < p.in.batch * p.in.layout.sample; i++) {
            const double at = p.wide[i], eps = 1e-6;
            p.wide[i] = at + eps;
            const double above = slow_loss(cases[c].name, &p.in, p.wide);
            p.wide[i] = at - eps;
            const double below = slow_loss(cases[c].name, &p.in, p.wide);
            p.wide[i] = at;
            const double want = (above - below) / (2 * eps);
            assert_true(fabs((double)p.d_q[i] - want) <= 1e-3 * fabs(want) + 1e-6);
        }
    }
}

/* A sample's error is the size of its own difference or its own quantile loss, whatever its weight.
 */
static void errors_are_those_of_each_sample(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        make(&p, cases[c].name, cases[c].batch, cases[c].actions, cases[c].quantiles,
             cases[c].targets, cases[c].kappa, cases[c].mean, c);
        rm_loss_rows(&p.in, p.d_q);
        for (uint32_t b = 0; b < p.in.batch; b++) {
            double want;
            if (cases[c].name == RM_ALGORITHM_DQN) {
                const size_t at =
                    b * p.in.layout.sample + (uint32_t)p.action[b] * p.in.layout.action;
                want = fabs((double)p.target[b] - p.wide[at]);
            } else { /* everybody else's weight 0 */
                float only[64] = {0};
                only[b] = (float)p.in.batch / (cases[c].mean ? 1.0f : (float)cases[c].quantiles);
                struct rm_value_loss in = p.in;
                in.weight = only;
                in.cql = 0;
                want = slow_loss(cases[c].name, &in, p.wide);
            }
            assert_true(fabs((double)p.error[b] - want) <= 1e-5 * want + 1e-6);
        }
    }
}

/* tau = (.25, .75), q = (1, 2), y = (1.5, 4): rho rows (.03125, .625) and (.03125, 1.125). */
static void numbers_done_by_hand(void **state)
{
    (void)state;
    const float q[] = {1, 2}, y[] = {1.5f, 4}, tau[] = {0.25f, 0.75f};
    const int32_t action[] = {0};
    float d[2] = {0};
    struct rm_value_loss in = {
        .kind = RM_LOSS_QUANTILE_HUBER,
        .batch = 1,
        .q = q,
        .layout = rm_algo_of(RM_ALGORITHM_IQN)->layout(1, 2),
        .action = action,
        .target = y,
        .targets = 2,
        .tau = tau,
        .kappa = 1,
    };
    const struct rm_algo *iqn = rm_algo_of(RM_ALGORITHM_IQN);
    assert_true(fabs(rm_loss_rows(&in, d) - 0.90625) < 1e-7);
    in.mean_over_quantiles = true;
    assert_true(fabs(rm_loss_rows(&in, d) - 0.453125) < 1e-7);
    /* Rows one by one, as quantiles of their own. */
    in.mean_over_quantiles = false;
    in.layout = iqn->layout(1, 1);
    assert_true(fabs(rm_loss_rows(&in, d) - (0.03125 + 0.625) / 2) < 1e-7);
    in.q = q + 1;
    in.tau = tau + 1;
    assert_true(fabs(rm_loss_rows(&in, d) - (0.03125 + 1.125) / 2) < 1e-7);
}

static void targets_by_hand(void **state)
{
    (void)state;
    const float q[] = {2, 7, NAN, 1}; /* (2, 2): the value of a terminal state is never looked at */
    const int32_t best[] = {0, 0};
    const struct rm_value_layout layout = rm_algo_of(RM_ALGORITHM_DQN)->layout(2, 1);
    const float g = (float)pow(0.99, 3);
    float y[2];
    rm_algo_targets(q, &layout, 2, best, (float[]){10, 10}, (float[]){g, 0}, y);
    assert_true(fabs((double)y[0] - 11.940598) < 1e-6);
    assert_true(y[1] == 10);
    const float ret = (float)(1 + 0.99 * 0 + 0.99 * 0.99 * 10);
    rm_algo_targets(q, &layout, 1, best, &ret, &g, y);
    assert_true(fabs((double)y[0] - 12.741598) < 2e-6);
}

static void the_greedy_action_is_the_first_best_legal_one(void **state)
{
    (void)state;
    const struct rm_value_layout qr = rm_algo_of(RM_ALGORITHM_QR_DQN)->layout(3, 2);
    const struct rm_value_layout iqn = rm_algo_of(RM_ALGORITHM_IQN)->layout(3, 2);
    /* Means 2, 5, 5: as (action, quantile) and as (quantile, action). */
    const float by_action[] = {1, 3, 9, 1, 5, 5}, by_quantile[] = {1, 9, 5, 3, 1, 5};
    int32_t action;
    rm_algo_greedy(by_action, &qr, 1, NULL, &action);
    assert_int_equal(action, 1);
    rm_algo_greedy(by_quantile, &iqn, 1, NULL, &action);
    assert_int_equal(action, 1);
    rm_algo_greedy(by_action, &qr, 1, (const uint8_t[]){1, 0, 1}, &action);
    assert_int_equal(action, 2);
    rm_algo_greedy(by_action, &qr, 1, (const uint8_t[]){1, 0, 0}, &action);
    assert_int_equal(action, 0);
    /* Whatever is not 0 is legal, as for actors. */
    rm_algo_greedy(by_action, &qr, 1, (const uint8_t[]){255, 0, 0}, &action);
    assert_int_equal(action, 0);
    rm_algo_greedy(by_action, &qr, 1, (const uint8_t[]){0, 0, 0}, &action);
    assert_int_equal(action, 1);
    assert_true(fabs(rm_algo_mean_q(by_quantile, &iqn, 1, (const int32_t[]){0}) - 2) < 1e-9);
}

static void midpoints(void **state)
{
    (void)state;
    float tau[8];
    rm_algo_midpoints(2, 4, tau);
    for (uint32_t i = 0; i < 8; i++)
        assert_true(tau[i] == 0.125f + 0.25f * (float)(i % 4));
}

static void what_is_not_finite_shows(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        make(&p, cases[c].name, cases[c].batch, cases[c].actions, cases[c].quantiles,
             cases[c].targets, cases[c].kappa, cases[c].mean, c);
        p.target[0] = NAN;
        assert_true(isnan(rm_loss_rows(&p.in, p.d_q)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_are_the_printed_ones),
        cmocka_unit_test(gradients_are_their_differences),
        cmocka_unit_test(errors_are_those_of_each_sample),
        cmocka_unit_test(numbers_done_by_hand),
        cmocka_unit_test(targets_by_hand),
        cmocka_unit_test(the_greedy_action_is_the_first_best_legal_one),
        cmocka_unit_test(midpoints),
        cmocka_unit_test(what_is_not_finite_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
