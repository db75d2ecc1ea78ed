/* Advantages and targets of rollouts: GAE and V-trace against numbers worked out by hand, published
 * ones, and a recursion in double. */
#include "learner/backend/gae.h"
#include "learner/backend/vtrace.h"
#include "shm/base/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define STEPS 40
#define LANES 5
#define ROWS  (STEPS * LANES)

static void near(double seen, double wanted, double allowed)
{
    if (!(fabs(seen - wanted) <= allowed))
        fail_msg("%.9g instead of %.9g", seen, wanted);
}

/* --- by hand --------------------------------------------------------------------------------- */

/* Three transitions of one lane: r = (1, 0, 2), V = (.5, .4, .3), and .2 after them; the second
 * ends its episode. As rows: s0, s1, its last observation, s2, the successor. The last
 * observation's value is .6, which counts only where the end was a time-out. */
static void an_episode_ends_in_a_rollout(void **state)
{
    const float reward[] = {0, 1, 0, 0, 2}, value[] = {.5f, .4f, .6f, .3f, .2f};
    const float valid[] = {1, 1, 0, 1}, g = .99f;
    const float terminated[] = {g, 0, 0, g}, truncated[] = {g, g, 0, g};
    struct rm_rollout_rows rows = {4, 1, reward, value, terminated, valid};
    float a[4], target[4];
    (void)state;
    rm_gae(&rows, .95f, a, target);
    near((double)a[0], .5198, 1e-6);
    near((double)a[1], -.4, 1e-6);
    near((double)a[3], 1.898, 1e-6);
    near((double)target[0], 1.0198, 1e-6);
    near((double)target[1], 0, 1e-6);
    near((double)target[3], 2.198, 1e-6);
    assert_true(a[2] == 0 && target[2] == value[2]);
    rows.discount = truncated;
    rm_gae(&rows, .95f, a, target);
    near((double)a[0], 1.078457, 1e-6);
    near((double)a[1], .194, 1e-6);
    near((double)a[3], 1.898, 1e-6);
}

/* A machine of two states that pays 1 in the first and 3 in the second and changes state at every
 * step. Its values solve v0 = 1 + g v1, v1 = 3 + g v0. With true values every advantage is 0, also
 * of a step that was cut off; where the episode was terminated instead, the last advantage lacks
 * exactly g times the value beyond. */
static void true_values_have_no_advantage(void **state)
{
    const double g = .9, v0 = (1 + 3 * g) / (1 - g * g), v1 = (3 + g) / (1 - g * g);
    enum { N = 7 };
    float reward[N + 1] = {0}, value[N + 1], discount[N], valid[N], a[N], target[N];
    (void)state;
    for (int t = 0; t <= N; t++) {
        value[t] = (float)(t % 2 ? v1 : v0);
        if (t > 0)
            reward[t] = t % 2 ? 1 : 3;
    }
    for (int t = 0; t < N; t++) {
        valid[t] = 1;
        discount[t] = (float)g;
    }
    valid[5] = discount[5] = 0; /* row 5 is the last observation of an episode that was cut off */
    const struct rm_rollout_rows rows = {N, 1, reward, value, discount, valid};
    rm_gae(&rows, .8f, a, target);
    for (int t = 0; t < N; t++)
        near((double)a[t], 0, 2e-5);
    discount[4] = 0; /* and now the world's rules ended it there */
    rm_gae(&rows, .8f, a, target);
    near((double)a[4], -g * v1, 2e-5);
    near((double)a[3], -g * .8 * g * v1, 2e-5);
    near((double)a[6], 0, 2e-5);
}

/* --- random rollouts against a recursion over single lanes, in double ------------------------- */

struct rollout {
    float reward[ROWS + LANES], value[ROWS + LANES], discount[ROWS], valid[ROWS], ratio[ROWS];
    struct rm_rollout_rows rows;
};

static void make(struct rollout *r, uint32_t number)
{
    struct rm_rng rng = rm_rng_at(6, RM_STREAM_TEST, number, 0);
    for (int i = 0; i < ROWS + LANES; i++) {
        r->reward[i] = rm_rng_float(&rng) * 4 - 2;
        r->value[i] = rm_rng_float(&rng) * 6 - 3;
    }
    for (int i = 0; i < ROWS; i++) {
        const float what = rm_rng_float(&rng);
        r->valid[i] = what > .1f;
        r->discount[i] = what > .2f ? .97f : 0;
        r->ratio[i] = expf(rm_rng_float(&rng) * 4 - 2);
    }
    r->rows = (struct rm_rollout_rows){STEPS, LANES, r->reward, r->value, r->discount, r->valid};
}

/* The sum of Espeholt 2018, eq. 1, term by term: no recursion. Where on = true the lambda-return of
 * GAE: ratios 1. */
static double slow_target(const struct rollout *r, int t, int lane, double lambda, double rho_max,
                          double c_max, bool on)
{
    double v = (double)r->value[t * LANES + lane], weight = 1;
    for (int k = t; k < STEPS && r->valid[k * LANES + lane] > 0; k++) {
        const int i = k * LANES + lane;
        const double ratio = on ? 1 : (double)r->ratio[i], gamma = (double)r->discount[i];
        v += weight * fmin(rho_max, ratio) *
             ((double)r->reward[i + LANES] + gamma * (double)r->value[i + LANES] -
              (double)r->value[i]);
        weight *= gamma * lambda * fmin(c_max, ratio);
    }
    return v;
}

static void gae_is_the_sum_of_weighted_errors(void **state)
{
    static struct rollout r;
    float a[ROWS], target[ROWS];
    (void)state;
    make(&r, 0);
    rm_gae(&r.rows, .9f, a, target);
    for (int t = 0; t < STEPS; t++)
        for (int l = 0; l < LANES; l++) {
            const int i = t * LANES + l;
            const double wanted = slow_target(&r, t, l, .9, 1, 1, true);
            near((double)target[i], wanted, 2e-5);
            near((double)a[i], wanted - (double)r.value[i], 2e-5);
        }
}

static void vtrace_is_the_sum_of_weighted_errors(void **state)
{
    static struct rollout r;
    float a[ROWS], target[ROWS];
    const struct rm_vtrace v = {.9f, 1.5f, .8f, r.ratio};
    (void)state;
    make(&r, 1);
    rm_vtrace(&r.rows, &v, a, target);
    for (int t = 0; t < STEPS; t++)
        for (int l = 0; l < LANES; l++) {
            const int i = t * LANES + l;
            near((double)target[i], slow_target(&r, t, l, .9, 1.5, .8, false), 2e-5);
            const double next = t + 1 < STEPS ? slow_target(&r, t + 1, l, .9, 1.5, .8, false)
                                              : (double)r.value[i + LANES];
            const double advantage =
                fmin(1.5, (double)r.ratio[i]) *
                ((double)r.reward[i + LANES] + (double)r.discount[i] * next - (double)r.value[i]);
            near((double)a[i], r.valid[i] > 0 ? advantage : 0, 2e-5);
        }
}

/* With the policy that acted, v is the lambda-return; with lambda 1 the advantage is that of GAE.
 */
static void on_policy_vtrace_is_the_return(void **state)
{
    static struct rollout r;
    float a[ROWS], target[ROWS], gae[ROWS], returns[ROWS];
    (void)state;
    make(&r, 2);
    for (int i = 0; i < ROWS; i++)
        r.ratio[i] = 1;
    for (int k = 0; k < 2; k++) {
        const struct rm_vtrace v = {k ? 1 : .7f, 1, 1, r.ratio};
        rm_vtrace(&r.rows, &v, a, target);
        rm_gae(&r.rows, v.lambda, gae, returns);
        for (int i = 0; i < ROWS; i++) {
            near((double)target[i], (double)returns[i], 1e-5);
            if (k)
                near((double)a[i], (double)gae[i], 1e-5);
        }
    }
}

/* Two rollouts of four steps and two actions with the results that rlax's own test expects of them
 * (v - V and advantage, to 1e-3). */
static void published_figures_of_vtrace(void **state)
{
    static const double behaviour[2][4][2] = {{{8.9, 0.7}, {5.0, 1.0}, {0.6, 0.1}, {-0.9, -0.1}},
                                              {{0.3, -5.0}, {1.0, -8.0}, {0.3, 1.7}, {4.7, 3.3}}};
    static const double policy[2][4][2] = {{{0.4, 0.5}, {9.2, 8.8}, {0.7, 4.4}, {7.9, 1.4}},
                                           {{1.0, 0.9}, {1.0, -1.0}, {-4.3, 8.7}, {0.8, 0.3}}};
    static const int action[2][4] = {{0, 1, 0, 0}, {1, 0, 0, 1}};
    static const float reward[2][4] = {{-1.3f, -1.3f, 2.3f, 42}, {1.3f, 5.3f, -3.3f, -5}};
    static const float discount[2][4] = {{0, .89f, .85f, .99f}, {.88f, 1, .83f, .95f}};
    static const float value[2][5] = {{2.1f, 1.1f, -3.1f, 0, 8.4f},
                                      {3.1f, .1f, -1.1f, 7.4f, -1.2f}};
    static const double wanted[2][4] = {{-1.6155143, -3.4973226, 1.8670533, 50.316002},
                                        {1.4662437, 3.6116405, -8.3327293e-5, -13.54}};
    float r[10] = {0}, v[10], g[8], valid[8], ratio[8], a[8], target[8];
    (void)state;
    for (int l = 0; l < 2; l++)
        for (int t = 0; t < 5; t++) {
            v[2 * t + l] = value[l][t];
            if (t == 4)
                continue;
            const double *mu = behaviour[l][t], *pi = policy[l][t];
            const int chosen = action[l][t];
            r[2 * (t + 1) + l] = reward[l][t];
            g[2 * t + l] = discount[l][t];
            valid[2 * t + l] = 1;
            ratio[2 * t + l] = (float)exp(pi[chosen] - log(exp(pi[0]) + exp(pi[1])) - mu[chosen] +
                                          log(exp(mu[0]) + exp(mu[1])));
        }
    const struct rm_rollout_rows rows = {4, 2, r, v, g, valid};
    const struct rm_vtrace vtrace = {1, 1, 1, ratio};
    rm_vtrace(&rows, &vtrace, a, target);
    for (int l = 0; l < 2; l++)
        for (int t = 0; t < 4; t++) {
            const double w = wanted[l][t];
            near((double)target[2 * t + l] - (double)v[2 * t + l], w, 1e-3 * fabs(w) + 1e-6);
            near((double)a[2 * t + l], w, 1e-3 * fabs(w) + 1e-6);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_episode_ends_in_a_rollout),
        cmocka_unit_test(true_values_have_no_advantage),
        cmocka_unit_test(gae_is_the_sum_of_weighted_errors),
        cmocka_unit_test(vtrace_is_the_sum_of_weighted_errors),
        cmocka_unit_test(on_policy_vtrace_is_the_return),
        cmocka_unit_test(published_figures_of_vtrace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
