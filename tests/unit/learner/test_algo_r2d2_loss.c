/* R2D2: value rescaling, targets and loss over sequences against the equations in double. */
#include "learner/algo/learning.h"
#include "learner/sampler.h"
#include "shm/base/rng.h"
#include "tests/support/unit.h"

#include <math.h>
#include <string.h>

/* --- rescaling ------------------------------------------------------------------------------- */

static void rescaling_is_its_inverse_s_inverse(void **state)
{
    (void)state;
    assert_true(rm_value_rescale(0) == 0 && rm_value_unscale(0) == 0);
    assert_true(fabs(rm_value_rescale(3) - (1 + 0.003)) < 1e-15); /* sqrt 4 - 1 + 3 eps */
    assert_true(fabs(rm_value_rescale(-8) + (2 + 0.008)) < 1e-15);
    for (int k = 0; k < 65; k++) {
        const double x = 1e-9 * pow(1.7, k);
        assert_true(fabs(rm_value_unscale(rm_value_rescale(x)) - x) < 1e-9 * x + 1e-15);
        assert_true(fabs(rm_value_unscale(rm_value_rescale(-x)) + x) < 1e-9 * x + 1e-15);
        assert_true(rm_value_rescale(x) < x + 1e-15);
    }
}

/* --- losses ---------------------------------------------------------------------------------- */

enum { B = 5, TRACE = 6, TAIL = 3, BURN_IN = 2, ACTIONS = 4, ROWS = TRACE + TAIL };

struct problem {
    struct rm_batch batch;
    float q[ROWS * B * ACTIONS], target[ROWS * B * ACTIONS], y[TRACE * B], weight[B], error[B];
    double wide[ROWS * B * ACTIONS];
    float ret[TRACE * B], discount[TRACE * B];
    int32_t action[TRACE * B];
    uint32_t ahead[TRACE * B];
    float valid[TRACE * B];
    uint8_t mask[(BURN_IN + ROWS) * B * ACTIONS];
};

static void make(struct problem *p, uint32_t number)
{
    struct rm_rng rng = rm_rng_at(6, RM_STREAM_TEST, number, 0);
    memset(p, 0, sizeof *p);
    p->batch = (struct rm_batch){
        .size = B,
        .actions = ACTIONS,
        .burn_in = BURN_IN,
        .trace = TRACE,
        .tail = TAIL,
        .action = p->action,
        .ret = p->ret,
        .discount = p->discount,
        .ahead = p->ahead,
        .valid = p->valid,
        .mask = number % 2 ? p->mask : NULL,
        .weight = number / 2 % 2 ? p->weight : NULL,
        .error = p->error,
    };
    for (uint32_t i = 0; i < ROWS * B * ACTIONS; i++) {
        p->q[i] = 6 * rm_rng_float(&rng) - 3;
        p->wide[i] = (double)p->q[i];
        p->target[i] = 6 * rm_rng_float(&rng) - 3;
    }
    for (uint32_t i = 0; i < (BURN_IN + ROWS) * B; i++) {
        for (uint32_t a = 0; a < ACTIONS; a++)
            p->mask[i * ACTIONS + a] = rm_rng_below(&rng, 2) > 0;
        p->mask[i * ACTIONS + i % ACTIONS] = 1;
    }
    for (uint32_t i = 0; i < TRACE * B; i++) {
        p->ret[i] = 4 * rm_rng_float(&rng) - 2;
        p->discount[i] = rm_rng_below(&rng, 4) ? 0.8f : 0;
        p->action[i] = (int32_t)rm_rng_below(&rng, ACTIONS);
        p->ahead[i] = 1 + rm_rng_below(&rng, TAIL);
        p->valid[i] = i % B == 2 ? i / B < 2 : 1; /* lane 2's episode is short */
    }
    for (uint32_t b = 0; b < B; b++)
        p->weight[b] = 1 - rm_rng_float(&rng);
}

/* The CPU's operations, whose backend is its own memory alone. */
static struct rm_backend cpu;

static void make_targets(struct problem *p, bool rescale)
{
    const struct rm_sequence_targets targets = {
        .batch = p->batch, .choose = p->q, .value = p->target, .rescale = rescale, .y = p->y};
    rm_sequence_ops_of(&cpu)->targets(&cpu, &targets);
}

static void targets_are_the_printed_ones(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t n = 0; n < 8; n++) {
        const bool rescale = n / 4;
        make(&p, n);
        make_targets(&p, rescale);
        for (uint32_t t = 0; t < TRACE; t++)
            for (uint32_t b = 0; b < B; b++) {
                const uint32_t at = t * B + b, row = (t + p.ahead[at]) * B + b;
                const uint8_t *legal = p.mask + (BURN_IN * B + row) * ACTIONS;
                double best = -1e9, value = 0;
                for (uint32_t a = 0; a < ACTIONS; a++)
                    if ((!p.batch.mask || legal[a]) && p.wide[row * ACTIONS + a] > best) {
                        best = p.wide[row * ACTIONS + a];
                        value = (double)p.target[row * ACTIONS + a];
                    }
                if (rescale)
                    value = rm_value_unscale(value);
                double want = (double)p.ret[at] + (double)p.discount[at] * value;
                if (rescale)
                    want = rm_value_rescale(want);
                assert_true(fabs((double)p.y[at] - (p.valid[at] ? want : 0)) < 1e-5);
            }
    }
}

static double slow_loss(const struct problem *p, double kappa)
{
    double sum = 0, valid = 0;
    for (uint32_t at = 0; at < TRACE * B; at++) {
        if (!p->valid[at])
            continue;
        const double u = fabs((double)p->y[at] - p->wide[at * ACTIONS + (uint32_t)p->action[at]]);
        const double w = p->batch.weight ? (double)p->weight[at % B] : 1;
        sum += w * (u <= kappa ? u * u / 2 : kappa * (u - kappa / 2));
        valid++;
    }
    return sum / valid;
}

static void losses_errors_and_gradients_are_the_printed_ones(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t n = 0; n < 8; n++) {
        float d[ROWS * B * ACTIONS];
        memset(d, 0xff, sizeof d); /* NaN: what the loss has to overwrite */
        make(&p, n);
        make_targets(&p, n / 4);
        struct rm_update_figures figures = {0};
        const struct rm_sequence_loss in = {.batch = p.batch,
                                            .q = p.q,
                                            .y = p.y,
                                            .kappa = 0.7f,
                                            .max_share = 0.9,
                                            .d_q = d,
                                            .figures = &figures};
        rm_sequence_ops_of(&cpu)->loss(&cpu, &in);
        assert_true(fabs(figures.last_loss - slow_loss(&p, (double)0.7f)) < 1e-6);
        for (uint32_t i = 0; i < ROWS * B * ACTIONS; i++) {
            const double at = p.wide[i], eps = 1e-6;
            p.wide[i] = at + eps;
            const double above = slow_loss(&p, (double)0.7f);
            p.wide[i] = at - eps;
            const double below = slow_loss(&p, (double)0.7f);
            p.wide[i] = at;
            const double want = (above - below) / (2 * eps);
            assert_true(fabs((double)d[i] - want) <= 1e-3 * fabs(want) + 1e-6);
        }
        for (uint32_t b = 0; b < B; b++) {
            double most = 0, sum = 0, valid = 0;
            for (uint32_t t = 0; t < TRACE; t++) {
                const uint32_t at = t * B + b;
                const double u =
                    fabs((double)p.y[at] - p.wide[at * ACTIONS + (uint32_t)p.action[at]]);
                most = p.valid[at] && u > most ? u : most;
                sum += p.valid[at] ? u : 0;
                valid += p.valid[at];
            }
            assert_true(fabs((double)p.error[b] - (0.9 * most + 0.1 * sum / valid)) < 1e-5);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rescaling_is_its_inverse_s_inverse),
        cmocka_unit_test(targets_are_the_printed_ones),
        cmocka_unit_test(losses_errors_and_gradients_are_the_printed_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
