/* The loss of actor-critic algorithms against its equations in double, its gradient against
 * differences of these. */
#include "learner/backend/policy_loss.h"
#include "learner/backend/policy_loss_kernels.h"
#include "shm/base/isa.h"
#include "shm/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define N       75 /* four blocks of sixteen and some */
#define ROWS    100
#define ACTIONS 9
#define OUT     (ACTIONS + 1)

struct problem {
    struct rm_policy_loss loss;
    uint32_t index[N];
    int32_t action[ROWS * RM_CHOICES_MAX];
    uint8_t mask[ROWS * ACTIONS];
    float logp[ROWS], advantage[ROWS], target[ROWS], value[ROWS], valid[ROWS];
    float out[N * OUT], d_out[N * OUT];
    double wide[N * OUT];
    double sums[RM_NET_SUMS];
};

static struct problem p;

/* Actions of one choice that are legal. */
static bool legal(const struct problem *q, uint32_t row, uint32_t action)
{
    return !q->loss.mask || q->mask[row * q->loss.distribution.actions + action];
}

static void make_with(uint32_t number, const uint32_t *choice, uint32_t choices, bool masks,
                      struct rm_gaussian gaussian)
{
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, number, 0);
    memset(&p, 0, sizeof p);
    struct rm_categorical *c = &p.loss.distribution;
    c->choices = choices;
    for (uint32_t i = 0; i < choices; i++)
        c->actions += c->choice_actions[i] = choice[i];
    c->words = choices + gaussian.reals;
    p.loss.gaussian = gaussian;
    p.loss.outputs = c->actions + 2 * gaussian.reals + 1;
    p.loss.index = p.index;
    p.loss.action = p.action;
    p.loss.mask = masks ? p.mask : NULL;
    p.loss.logp = p.logp;
    p.loss.advantage = p.advantage;
    p.loss.target = p.target;
    p.loss.value = p.value;
    p.loss.valid = p.valid;
    p.loss.advantage_mean = .3f;
    p.loss.advantage_scale = 1.7f;
    p.loss.scale = 1.0f / N;
    p.loss.clip = .2f;
    p.loss.value_clip = .4f;
    p.loss.value_coefficient = .6f;
    p.loss.entropy_coefficient = .05f;
    for (uint32_t i = 0; i < N; i++)
        p.index[i] = (i * 37 + 5) % ROWS;
    for (uint32_t i = 0; i < N * p.loss.outputs; i++)
        p.out[i] = rm_rng_float(&rng) * 4 - 2;
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t k = 0, at = 0; k < choices; at += choice[k++]) {
            p.action[i * c->words + k] = (int32_t)rm_rng_below(&rng, choice[k]);
            for (uint32_t a = 0; a < choice[k]; a++)
                p.mask[i * c->actions + at + a] = rm_rng_below(&rng, 3) > 0;
            p.mask[i * c->actions + at + (uint32_t)p.action[i * c->words + k]] = 1;
        }
        for (uint32_t k = 0; k < gaussian.reals; k++)
            p.action[i * c->words + choices + k] = rm_word_of_float(rm_rng_float(&rng) * 6 - 3);
        p.logp[i] = -rm_rng_float(&rng) * 2 * (float)c->words;
        p.advantage[i] = rm_rng_float(&rng) * 4 - 2;
        p.target[i] = rm_rng_float(&rng) * 4 - 2;
        p.value[i] = rm_rng_float(&rng) * 4 - 2;
        p.valid[i] = rm_rng_below(&rng, 8) > 0;
    }
}

static void make(uint32_t number, const uint32_t *choice, uint32_t choices, bool masks)
{
    make_with(number, choice, choices, masks, (struct rm_gaussian){0});
}

/* What policy_loss.h says, of one sample; adds to sums and returns the loss. */
static double slow(uint32_t i, const double *out, double sums[RM_SUM_COUNT])
{
    const struct rm_policy_loss *l = &p.loss;
    const struct rm_categorical *c = &l->distribution;
    const uint32_t row = p.index[i];
    if (p.valid[row] == 0)
        return 0;
    double logp = 0, entropy = 0;
    for (uint32_t k = 0, at = 0; k < c->choices; at += c->choice_actions[k++]) {
        double sum = 0;
        for (uint32_t a = 0; a < c->choice_actions[k]; a++)
            sum += legal(&p, row, at + a) ? exp(out[at + a]) : 0;
        for (uint32_t a = 0; a < c->choice_actions[k]; a++) {
            const double ln = out[at + a] - log(sum);
            if (legal(&p, row, at + a))
                entropy -= exp(ln) * ln;
            if (a == (uint32_t)p.action[row * c->words + k])
                logp += ln;
        }
    }
    const struct rm_gaussian *g = &l->gaussian;
    for (uint32_t k = 0; k < g->reals; k++) {
        const double u = (double)rm_float_of_word(p.action[row * c->words + c->choices + k]);
        const double log_deviation = fmax(-20, fmin(2, out[c->actions + g->reals + k]));
        const double off = (u - out[c->actions + k]) / exp(log_deviation);
        logp += -off * off / 2 - log_deviation - log(2 * M_PI) / 2;
        logp -= g->tanh ? log(1 - tanh(u) * tanh(u)) : 0;
        entropy += log_deviation + log(2 * M_PI * M_E) / 2;
    }
    const double eps = (double)l->clip, most = (double)l->value_clip;
    const double adv =
        ((double)p.advantage[row] - (double)l->advantage_mean) * (double)l->advantage_scale;
    const double ratio = exp(logp - (double)p.logp[row]);
    const double policy =
        eps > 0 ? -fmin(ratio * adv, fmin(fmax(ratio, 1 - eps), 1 + eps) * adv) : -adv * logp;
    const double v = out[l->outputs - 1], target = (double)p.target[row],
                 old = (double)p.value[row];
    const double held = old + fmin(fmax(v - old, -most), most);
    const double value =
        most > 0 ? fmax(pow(v - target, 2), pow(held - target, 2)) / 2 : pow(v - target, 2) / 2;
    sums[RM_SUM_POLICY] += policy;
    sums[RM_SUM_VALUE] += value;
    sums[RM_SUM_ENTROPY] += entropy;
    sums[RM_SUM_KL] += ratio - 1 - (logp - (double)p.logp[row]);
    sums[RM_SUM_CLIPPED] += eps > 0 && fabs(ratio - 1) > eps;
    return (policy + (double)l->value_coefficient * value -
            (double)l->entropy_coefficient * entropy) *
           (double)l->scale;
}

static void near(double seen, double wanted)
{
    if (!(fabs(seen - wanted) <= 1e-5 + 1e-3 * fabs(wanted)))
        fail_msg("%.9g instead of %.9g", seen, wanted);
}

/* Sums and gradient of the problem against slow(). */
static void check(void)
{
    const uint32_t outputs = p.loss.outputs;
    double sums[RM_SUM_COUNT] = {0};
    memset(p.sums, 0, sizeof p.sums);
    rm_policy_loss_rows(&p.loss, 0, N, p.out, p.d_out, p.sums);
    for (uint32_t i = 0; i < N * outputs; i++)
        p.wide[i] = (double)p.out[i];
    for (uint32_t i = 0; i < N; i++)
        slow(i, p.wide + (size_t)i * outputs, sums);
    for (int s = 0; s < RM_SUM_COUNT; s++)
        near(p.sums[s], sums[s]);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t j = 0; j < outputs; j++) {
            double *x = &p.wide[(size_t)i * outputs + j], was = *x, ignored[RM_SUM_COUNT] = {0};
            const double step = 1e-6;
            *x = was + step;
            const double above = slow(i, p.wide + (size_t)i * outputs, ignored);
            *x = was - step;
            const double below = slow(i, p.wide + (size_t)i * outputs, ignored);
            *x = was;
            /* Relative to one sample's share. */
            near((double)p.d_out[(size_t)i * outputs + j] * N, (above - below) / (2 * step) * N);
        }
}

static void clipped_ratios_and_values(void **state)
{
    const uint32_t one = 6;
    (void)state;
    make(1, &one, 1, false);
    check();
    assert_true(p.sums[RM_SUM_CLIPPED] > 10 && p.sums[RM_SUM_CLIPPED] < N);
}

static void illegal_actions_have_no_part(void **state)
{
    const uint32_t one = 8;
    (void)state;
    make(2, &one, 1, true);
    check();
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t a = 0; a < 8; a++)
            if (!legal(&p, p.index[i], a))
                assert_true(p.d_out[i * 9 + a] == 0);
}

static void several_choices(void **state)
{
    const uint32_t three[] = {2, 4, 3};
    (void)state;
    make(3, three, 3, false);
    check();
    make(4, three, 3, true);
    check();
}

/* Real numbers alone and beside choices; deviations beyond their bounds have no gradient. */
static void real_numbers(void **state)
{
    const uint32_t two[] = {2, 3};
    (void)state;
    for (uint32_t by_tanh = 0; by_tanh < 2; by_tanh++) {
        make_with(11, NULL, 0, false, (struct rm_gaussian){3, by_tanh});
        p.out[0 * 7 + 3] = 2.5f;
        p.out[1 * 7 + 4] = -21;
        p.action[p.index[1] * 3 + 1] = rm_word_of_float(p.out[1 * 7 + 1]);
        check();
        assert_true(p.d_out[3] == 0 && p.d_out[7 + 4] == 0 && p.d_out[2 * 7 + 3] != 0);
        assert_true(p.sums[RM_SUM_CLIPPED] > 10 && p.sums[RM_SUM_CLIPPED] < N);
        make_with(12, two, 2, true, (struct rm_gaussian){2, by_tanh});
        check();
        make_with(13, NULL, 0, false, (struct rm_gaussian){1, by_tanh});
        p.loss.clip = 0;
        check();
    }
}

static void plain_policy_gradient(void **state)
{
    const uint32_t one = 3;
    (void)state;
    make(5, &one, 1, false);
    p.loss.clip = p.loss.value_clip = 0;
    check();
    assert_true(p.sums[RM_SUM_CLIPPED] == 0);
}

/* Three values by hand, and what they are when held within .2 of the old ones: first the held ones
 * have the larger mean error, then the free ones. */
static void errors_of_values(void **state)
{
    static const struct {
        float v[3], old[3], target[3], free[3], held[3];
        enum rm_value_error larger;    /* of the sums */
        float slope_each[3], slope[3]; /* with the maximum of samples and of means */
        float loss_each, loss;         /* sums */
    } cases[] = {
        {{1, .5f, 0},
         {0, .5f, .5f},
         {1, .1f, .4f},
         {0, .16f, .16f},
         {.64f, .16f, .01f},
         RM_ERROR_HELD,
         {0, .4f, -.4f},
         {0, .4f, 0},
         .48f,
         .405f},
        {{1, 2, -1},
         {0, 1, -.5f},
         {.9f, 0, .5f},
         {.01f, 4, 2.25f},
         {.49f, 1.44f, 1.44f},
         RM_ERROR_FREE,
         {0, 2, -1.5f},
         {.1f, 2, -1.5f},
         3.37f,
         3.13f},
    };
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const uint32_t one = 2;
        double sums[2] = {0};
        make(14, &one, 1, false);
        p.loss.value_clip = .2f;
        p.loss.value_coefficient = p.loss.scale = 1;
        p.loss.index = NULL;
        for (uint32_t i = 0; i < 3; i++) {
            p.out[3 * i + 2] = cases[c].v[i];
            p.value[i] = cases[c].old[i];
            p.target[i] = cases[c].target[i];
            p.valid[i] = 1;
            const struct rm_value_errors e = rm_value_errors(cases[c].v[i], p.target[i], p.value[i],
                                                             p.loss.value_clip, RM_ERROR_LARGER);
            near((double)e.free, (double)cases[c].free[i]);
            near((double)e.held, (double)cases[c].held[i]);
        }
        rm_policy_loss_add_errors(&p.loss, 0, 1, p.out, sums);
        rm_policy_loss_add_errors(&p.loss, 1, 2, p.out + 3, sums);
        assert_int_equal(rm_larger_error(sums[0], sums[1]), cases[c].larger);
        for (int means = 0; means < 2; means++) {
            memset(p.sums, 0, sizeof p.sums);
            p.loss.value_error = means ? cases[c].larger : RM_ERROR_LARGER;
            rm_policy_loss_rows(&p.loss, 0, 3, p.out, p.d_out, p.sums);
            near(p.sums[RM_SUM_VALUE], (double)(means ? cases[c].loss : cases[c].loss_each));
            for (uint32_t i = 0; i < 3; i++)
                near((double)p.d_out[3 * i + 2],
                     (double)(means ? cases[c].slope[i] : cases[c].slope_each[i]));
        }
    }
    assert_int_equal(rm_larger_error(1, 1), RM_ERROR_FREE);
}

/* Nothing moved yet: ratios are 1, nothing is clipped, and the gradient is that of -A ln pi. */
static void the_policy_that_acted(void **state)
{
    const uint32_t one = 4;
    (void)state;
    make(6, &one, 1, false);
    for (uint32_t i = 0; i < N; i++)
        p.index[i] = i;
    rm_categorical_logp(&p.loss.distribution, p.out, 5, NULL, N, p.action, p.logp);
    check();
    assert_true(p.sums[RM_SUM_KL] == 0 && p.sums[RM_SUM_CLIPPED] == 0);
}

/* Rows may be given in any parts: gradients are the same to the bit. */
static void parts_do_not_matter(void **state)
{
    const uint32_t two[] = {2, 3};
    float whole[N * OUT];
    (void)state;
    make(7, two, 2, true);
    check();
    memcpy(whole, p.d_out, sizeof whole);
    memset(p.d_out, 0, sizeof p.d_out);
    for (uint32_t at = 0, n; at < N; at += n) {
        n = at + 23 < N ? 23 : N - at;
        rm_policy_loss_rows(&p.loss, at, n, p.out + at * 6, p.d_out + at * 6, p.sums);
    }
    assert_memory_equal(whole, p.d_out, N * 6 * sizeof(float));
}

/* Logits of any size give finite numbers; a certain policy has entropy 0. */
static void extreme_logits(void **state)
{
    const uint32_t one = 3;
    (void)state;
    make(9, &one, 1, false);
    for (uint32_t i = 0; i < N; i++) {
        p.out[i * 4] = 1e4f;
        p.out[i * 4 + 1] = -1e4f;
        p.action[p.index[i]] = (int32_t)(i % 3);
    }
    memset(p.sums, 0, sizeof p.sums);
    rm_policy_loss_rows(&p.loss, 0, N, p.out, p.d_out, p.sums);
    for (int s = 0; s < RM_SUM_COUNT; s++)
        assert_true(isfinite(p.sums[s]));
    assert_true(p.sums[RM_SUM_ENTROPY] == 0);
    for (uint32_t i = 0; i < N * 4; i++)
        assert_true(isfinite(p.d_out[i]));
}

/* The copies for other instruction sets that this host has. */
static void all_levels_agree(void **state)
{
    rm_policy_loss_kernel *const level[] = {rm_isa_v2_policy_loss, rm_isa_v3_policy_loss,
                                            rm_isa_v4_policy_loss};
    const uint32_t two[] = {5, 3};
    float other[N * OUT];
    (void)state;
    make(10, two, 2, true);
    check();
    for (uint32_t k = 0; k <= (uint32_t)rm_isa_level(); k++) {
        double sums[RM_NET_SUMS] = {0};
        level[k](&p.loss, 0, N, p.out, other, sums);
        for (uint32_t i = 0; i < N * 9; i++)
            near((double)other[i] * N, (double)p.d_out[i] * N);
        for (int s = 0; s < RM_SUM_COUNT; s++)
            near(sums[s], p.sums[s]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clipped_ratios_and_values), cmocka_unit_test(illegal_actions_have_no_part),
        cmocka_unit_test(several_choices),           cmocka_unit_test(real_numbers),
        cmocka_unit_test(plain_policy_gradient),     cmocka_unit_test(the_policy_that_acted),
        cmocka_unit_test(parts_do_not_matter),       cmocka_unit_test(extreme_logits),
        cmocka_unit_test(all_levels_agree),          cmocka_unit_test(errors_of_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
