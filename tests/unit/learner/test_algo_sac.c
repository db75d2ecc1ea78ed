/* Soft actor-critic: losses against the equations written out in double, their gradients
 * by central differences, and a world whose soft values are known. */
#include "learner/algo/learning.h"
#include "learner/algo/trainer.h"
#include "learner/sampler.h"
#include "tests/support/story.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 12, ACTIONS = 5 };
#define ALPHA 0.3

static struct rm_error failure;
static struct rm_backend *backend;

struct problem {
    float logits[BATCH * ACTIONS], q1[BATCH * ACTIONS], q2[BATCH * ACTIONS], weight[BATCH];
    float p[BATCH * ACTIONS], logp[BATCH * ACTIONS], ret[BATCH], discount[BATCH];
    float d[BATCH * ACTIONS];
    double wide[BATCH * ACTIONS]; /* the logits, to be moved */
    uint8_t mask[BATCH * ACTIONS];
    int32_t action[BATCH];
    struct rm_temperature temperature;
    struct rm_update_figures figures;
    struct rm_soft_policy_loss in;
};

static void make(struct problem *p, uint32_t number)
{
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, number, 0);
    const bool masks = number % 2, weights = number / 2 % 2;
    memset(p, 0, sizeof *p);
    for (uint32_t i = 0; i < BATCH * ACTIONS; i++) {
        p->logits[i] = 4 * rm_rng_float(&rng) - 2;
        p->wide[i] = (double)p->logits[i];
        p->q1[i] = 6 * rm_rng_float(&rng) - 3;
        p->q2[i] = 6 * rm_rng_float(&rng) - 3;
        p->mask[i] = rm_rng_below(&rng, 3) > 0;
    }
    memset(p->mask, 0, ACTIONS); /* nothing legal counts as everything */
    for (uint32_t b = 0; b < BATCH; b++) {
        p->mask[b * ACTIONS + b % ACTIONS] |= b > 0;
        p->weight[b] = 1 - rm_rng_float(&rng);
        p->ret[b] = 2 * rm_rng_float(&rng) - 1;
        p->discount[b] = b % 4 ? 0.9f : 0;
        p->action[b] = (int32_t)rm_rng_below(&rng, ACTIONS);
    }
    p->temperature.log = log(ALPHA);
    p->in = (struct rm_soft_policy_loss){
        .states = {.batch = BATCH,
                   .actions = ACTIONS,
                   .logits = p->logits,
                   .q1 = p->q1,
                   .q2 = p->q2,
                   .mask = masks ? p->mask : NULL,
                   .temperature = &p->temperature,
                   .p = p->p,
                   .logp = p->logp},
        .weight = weights ? p->weight : NULL,
        .target_ratio = 0.7,
        .d_logits = p->d,
        .figures = &p->figures,
    };
    rm_soft_ops_of(backend)->policy_loss(backend, &p->in);
}

static bool legal(const struct problem *p, uint32_t b, uint32_t a)
{
    return !p->in.states.mask || b == 0 || p->mask[b * ACTIONS + a];
}

/* Softmax over the legal, by its definition. */
static double probability(const struct problem *p, uint32_t b, uint32_t a)
{
    double sum = 0;
    for (uint32_t i = 0; i < ACTIONS; i++)
        sum += legal(p, b, i) ? exp(p->wide[b * ACTIONS + i]) : 0;
    return legal(p, b, a) ? exp(p->wide[b * ACTIONS + a]) / sum : 0;
}

/* What the policy pays in state b: sum p (alpha log p - min q). */
static double cost(const struct problem *p, uint32_t b)
{
    double sum = 0;
    for (uint32_t a = 0; a < ACTIONS; a++) {
        const double x = probability(p, b, a), q1 = (double)p->q1[b * ACTIONS + a],
                     q2 = (double)p->q2[b * ACTIONS + a];
        if (x > 0)
            sum += x * (ALPHA * log(x) - (q1 < q2 ? q1 : q2));
    }
    return sum;
}

static double slow_loss(const struct problem *p)
{
    double sum = 0;
    for (uint32_t b = 0; b < BATCH; b++)
        sum += (p->in.weight ? (double)p->weight[b] : 1) * cost(p, b) / BATCH;
    return sum;
}

static void the_policy_is_a_softmax_over_what_is_legal(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t n = 0; n < 4; n++) {
        make(&p, n);
        for (uint32_t b = 0; b < BATCH; b++)
            for (uint32_t a = 0; a < ACTIONS; a++) {
                const double want = probability(&p, b, a);
                assert_true(fabs((double)p.p[b * ACTIONS + a] - want) < 1e-6);
                if (want > 0)
                    assert_true(fabs((double)p.logp[b * ACTIONS + a] - log(want)) < 1e-5);
                else
                    assert_true(p.p[b * ACTIONS + a] == 0);
            }
    }
}

/* Logits far apart: no overflow, no logarithm of 0. */
static void far_logits_stay_finite(void **state)
{
    (void)state;
    const float logits[] = {3e4f, -3e4f, 0}, q[] = {1, 2, 3};
    float p[3], logp[3], d[3] = {-1, -1, -1};
    const struct rm_temperature one = {.log = 0};
    struct rm_update_figures figures = {0};
    const struct rm_soft_policy_loss in = {.states = {.batch = 1,
                                                      .actions = 3,
                                                      .logits = logits,
                                                      .q1 = q,
                                                      .q2 = q,
                                                      .temperature = &one,
                                                      .p = p,
                                                      .logp = logp},
                                           .d_logits = d,
                                           .figures = &figures};
    rm_soft_ops_of(backend)->policy_loss(backend, &in);
    assert_true(p[0] == 1 && p[1] == 0 && p[2] == 0 && logp[0] == 0);
    assert_true(figures.last_loss == -1 && figures.now_sums[RM_SUM_OF_ENTROPY] == 0);
    assert_true(d[0] == 0 && d[1] == 0);
}

static void losses_and_targets_are_the_printed_ones(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t n = 0; n < 8; n++) {
        float y[BATCH];
        double entropy = 0, target = 0;
        make(&p, n);
        assert_true(fabs(p.figures.last_loss - slow_loss(&p)) < 1e-5);
        for (uint32_t b = 0; b < BATCH; b++) {
            uint32_t count = 0;
            for (uint32_t a = 0; a < ACTIONS; a++) {
                const double x = probability(&p, b, a);
                count += legal(&p, b, a);
                entropy -= x > 0 ? x * log(x) / BATCH : 0;
            }
            target += 0.7 * log(count) / BATCH;
        }
        assert_true(fabs(p.figures.now_sums[RM_SUM_OF_ENTROPY] - entropy) < 1e-5);
        assert_true(fabs(p.figures.now_sums[RM_SUM_OF_GAP] - (target - entropy)) < 1e-5);
        rm_soft_ops_of(backend)->targets(backend, &p.in.states, p.ret, p.discount, y);
        for (uint32_t b = 0; b < BATCH; b++) {
            const double want = (double)p.ret[b] - (double)p.discount[b] * cost(&p, b);
            assert_true(fabs((double)y[b] - want) < 1e-5);
        }
    }
}

static void gradients_are_their_differences(void **state)
{
    (void)state;
    static struct problem p;
    for (uint32_t n = 0; n < 8; n++) {
        make(&p, n);
        for (uint32_t i = 0; i < BATCH * ACTIONS; i++) {
            const double at = p.wide[i], eps = 1e-6;
            p.wide[i] = at + eps;
            const double above = slow_loss(&p);
            p.wide[i] = at - eps;
            const double below = slow_loss(&p);
            p.wide[i] = at;
            const double want = (above - below) / (2 * eps);
            assert_true(fabs((double)p.d[i] - want) <= 1e-3 * fabs(want) + 1e-6);
        }
    }
}

static double critic_loss(const struct problem *p, const double *q, const float *weight)
{
    double sum = 0;
    for (uint32_t b = 0; b < BATCH; b++) {
        const double off = q[b * ACTIONS + (uint32_t)p->action[b]] - (double)p->ret[b];
        sum += (weight ? (double)weight[b] : 1) * off * off / 2 / BATCH;
    }
    return sum;
}

static void critics_learn_by_half_the_square(void **state)
{
    (void)state;
    static struct problem p;
    make(&p, 0);
    for (int weighted = 0; weighted < 2; weighted++) {
        const float *weight = weighted ? p.weight : NULL;
        float d[BATCH * ACTIONS] = {0}, error[BATCH];
        const struct rm_soft_critic_loss in = {.batch = BATCH,
                                               .actions = ACTIONS,
                                               .q = p.q1,
                                               .action = p.action,
                                               .y = p.ret,
                                               .weight = weight,
                                               .error = error,
                                               .d_q = d,
                                               .figures = &p.figures};
        double q[BATCH * ACTIONS];
        for (uint32_t i = 0; i < BATCH * ACTIONS; i++)
            q[i] = (double)p.q1[i];
        rm_soft_ops_of(backend)->critic_loss(backend, &in);
        assert_true(fabs(p.figures.last_loss - critic_loss(&p, q, weight)) < 1e-5);
        for (uint32_t i = 0; i < BATCH * ACTIONS; i++) {
            const double at = q[i], eps = 1e-6;
            q[i] = at + eps;
            const double above = critic_loss(&p, q, weight);
            q[i] = at - eps;
            const double below = critic_loss(&p, q, weight);
            q[i] = at;
            const double want = (above - below) / (2 * eps);
            assert_true(fabs((double)d[i] - want) <= 1e-3 * fabs(want) + 1e-6);
        }
        for (uint32_t b = 0; b < BATCH; b++) {
            const double off = q[b * ACTIONS + (uint32_t)p.action[b]] - (double)p.ret[b];
            assert_true(fabs((double)error[b] - fabs(off) / 2) < 1e-6);
        }
    }
}

/* --- real actions ---------------------------------------------------------------------------- */

enum { REALS = 2 };

/* Two values of an action, and their gradients. */
static double value(int critic, const double *a, uint32_t b, double d[REALS])
{
    double sum = 0.1 * b * (critic ? 1 : -1);
    for (uint32_t i = 0; i < REALS; i++) {
        const double at = critic ? 0.4 : -0.3, off = a[i] - at;
        sum -= (1 + critic) * off * off;
        d[i] = -2 * (1 + critic) * off;
    }
    return sum;
}

/* What the policy pays: alpha ln pi(tanh u) - min Q(tanh u) at u = mean + deviation * normal. */
static double pays(const double *out, const float *normal, double alpha, uint32_t b, double *logp)
{
    double a[REALS], d[REALS];
    *logp = 0;
    for (uint32_t i = 0; i < REALS; i++) {
        const double log_deviation = fmax(-20, fmin(2, out[REALS + i])), e = (double)normal[i];
        a[i] = tanh(out[i] + exp(log_deviation) * e);
        *logp -= e * e / 2 + log_deviation + log(2 * M_PI) / 2 + log(1 - a[i] * a[i]);
    }
    return alpha * *logp - fmin(value(0, a, b, d), value(1, a, b, d));
}

static void a_draw_goes_back_through_critics(void **state)
{
    (void)state;
    static float out[BATCH * 2 * REALS], normal[BATCH * REALS], drawn[BATCH * REALS];
    static float action[BATCH * REALS], p[BATCH], logp[BATCH], q[2][BATCH], d_q[2 * BATCH];
    static float d_action[2][BATCH * REALS], d_out[BATCH * 2 * REALS], weight[BATCH];
    const struct rm_soft_ops *ops = rm_soft_ops_of(backend);
    struct rm_temperature temperature = {.log = log(ALPHA)};
    struct rm_update_figures figures = {.last_loss = 5};
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, 77, 0);
    double loss = 0, entropy = 0;
    for (uint32_t i = 0; i < BATCH * 2 * REALS; i++)
        out[i] = 2 * rm_rng_float(&rng) - 1.5f;
    for (uint32_t i = 0; i < BATCH * REALS; i++)
        normal[i] = 3 * rm_rng_float(&rng) - 1.5f;
    out[REALS] = 2.5f; /* a deviation beyond its bound has no gradient */
    for (uint32_t b = 0; b < BATCH; b++)
        weight[b] = 1 - 0.5f * rm_rng_float(&rng);
    const struct rm_soft_draw draw = {.gaussian = {REALS, 1},
                                      .batch = BATCH,
                                      .out = out,
                                      .normal = normal,
                                      .drawn = drawn,
                                      .action = action,
                                      .p = p,
                                      .logp = logp};
    ops->draw(backend, &draw);
    const struct rm_soft_policy_loss policy = {.states = {.batch = BATCH,
                                                          .actions = 1,
                                                          .q1 = q[0],
                                                          .q2 = q[1],
                                                          .temperature = &temperature,
                                                          .p = p,
                                                          .logp = logp},
                                               .weight = weight,
                                               .target_entropy = -2,
                                               .d_logits = d_q,
                                               .figures = &figures};
    double slope[2][BATCH][REALS];
    for (uint32_t b = 0; b < BATCH; b++)
        for (int k = 0; k < 2; k++) {
            double a[REALS];
            for (uint32_t i = 0; i < REALS; i++)
                a[i] = (double)action[b * REALS + i];
            q[k][b] = (float)value(k, a, b, slope[k][b]);
        }
    ops->policy_loss(backend, &policy);
    for (int k = 0; k < 2; k++) /* as networks would give it */
        for (uint32_t b = 0; b < BATCH; b++)
            for (uint32_t i = 0; i < REALS; i++)
                d_action[k][b * REALS + i] = d_q[(uint32_t)k * BATCH + b] * (float)slope[k][b][i];
    const struct rm_soft_draw_back back = {.draw = draw,
                                           .d_action = {d_action[0], d_action[1]},
                                           .weight = weight,
                                           .temperature = &temperature,
                                           .figures = &figures,
                                           .d_out = d_out};
    ops->draw_back(backend, &back);
    for (uint32_t b = 0; b < BATCH; b++) {
        double row[2 * REALS], own;
        const double w = (double)weight[b] / BATCH;
        for (uint32_t i = 0; i < 2 * REALS; i++)
            row[i] = (double)out[b * 2 * REALS + i];
        loss += w * pays(row, normal + b * REALS, 0.3, b, &own);
        assert_true(fabs((double)logp[b] - own) < 1e-4 && p[b] == 1);
        entropy -= own / BATCH;
        for (uint32_t i = 0; i < 2 * REALS; i++) {
            const double at = row[i], eps = 1e-6, got = (double)d_out[b * 2 * REALS + i];
            row[i] = at + eps;
            const double above = pays(row, normal + b * REALS, 0.3, b, &own);
            row[i] = at - eps;
            const double want =
                w * (above - pays(row, normal + b * REALS, 0.3, b, &own)) / (2 * eps);
            row[i] = at;
            if (!(fabs(got - want) <= 1e-3 * fabs(want) + 1e-5))
                fail_msg("row %u, output %u: %g, its difference is %g", b, i, got, want);
        }
    }
    assert_true(d_out[REALS] == 0);
    assert_true(fabs(figures.last_loss - loss) < 1e-5); /* what was there is gone */
    assert_true(fabs(figures.now_sums[RM_SUM_OF_ENTROPY] - entropy) < 1e-4);
    assert_true(fabs(figures.now_sums[RM_SUM_OF_GAP] - (-2 - entropy)) < 1e-4);
}

/* --- whole updates --------------------------------------------------------------------------- */

static struct rm_experiment experiment_of(double alpha, bool tune)
{
    struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.seed = 9;
    e.sample.batch = 32;
    e.algorithm.name = RM_ALGORITHM_SAC;
    e.algorithm.temperature = alpha;
    e.algorithm.tune_temperature = tune;
    e.algorithm.target_entropy_ratio = 0.6;
    e.algorithm.target.tau = 0.02;
    e.optimizer.learning_rate = 1e-2;
    e.optimizer.beta1 = 0.9;
    e.optimizer.beta2 = 0.999;
    e.optimizer.epsilon = 1e-8;
    e.network.gain = 1;
    e.network.policy_gain = e.network.value_gain = 1;
    return e;
}

static struct rm_trainer *trainer_of(const struct rm_experiment *e)
{
    struct rm_trainer *t;
    const struct rm_trainer_spec spec = {
        .experiment = e,
        .backend = backend,
        .shape = {.inputs = 2, .actions = 2, .outputs_per_action = 1, .head = RM_HEAD_LOGITS},
        .name = "policy"};
    if (rm_trainer_create(&t, &spec, &failure))
        fail_msg("%s", failure.text);
    return t;
}

/* Logits of action 0 over action 1 in both states. */
static void odds_of(const struct rm_trainer *t, double odds[2])
{
    struct rm_net_workspace *space;
    const float x[] = {1, 0, 0, 1};
    const struct rm_net_input in = {.x = x, .batch = 2};
    assert_int_equal(
        rm_net_workspace_create(&space, rm_trainer_net(t), backend, 2, 0, RM_NET_INFER, &failure),
        0);
    rm_net_prepare(space, rm_trainer_params(t));
    const float *out = rm_net_forward(space, rm_trainer_params(t), &in);
    for (uint32_t s = 0; s < 2; s++)
        odds[s] = (double)out[2 * s] - (double)out[2 * s + 1];
    rm_net_workspace_destroy(space);
}

static struct rm_sampler *story_sampler(const struct rm_sampler_source *source)
{
    struct rm_sampler *s;
    const struct rm_sampler_spec spec = {
        .sources = source,
        .source_count = 1,
        .agents = 1,
        .agent = &rm_story_agent,
        .batch = 32,
        .n_step = 3,
        .frame_stack = 1,
        .gamma = RM_STORY_GAMMA,
        .capacity = RM_STORY_ROWS,
        .seed = 2,
    };
    if (rm_sampler_create(&s, &spec, &failure))
        fail_msg("%s", failure.text);
    rm_sampler_window_free(s);
    return s;
}

static struct rm_trainer_result train(struct rm_trainer *t, struct rm_sampler *s, uint64_t from,
                                      uint64_t to, double rate)
{
    struct rm_trainer_result r = {0};
    const struct rm_trainer_settings settings = {rate, 0, 0.02, 1, 0};
    rm_trainer_set(t, &settings);
    for (uint64_t u = from; u < to; u++) {
        assert_int_equal(rm_sampler_draw(s, u, rm_sampler_batch(s)), 1);
        r = rm_trainer_update(t, rm_sampler_batch(s), u, NULL);
        assert_false(r.skipped);
    }
    return r;
}

/* The best policy is a softmax of soft values over alpha. With V the soft value of state 0,
 * Q(0,0) = 1 + 3/4 V, Q(0,1) = 2, Q(1,0) = 3/4 V, Q(1,1) = -1, and V = alpha ln sum exp(Q / alpha):
 * one equation for V, solved by halving. Termination that bootstraps or truncation that does not
 * gives other odds. */
static void two_states_have_their_soft_values(void **state)
{
    (void)state;
    struct rm_ring ring;
    rm_story_tell(&ring, 0, 1);
    const struct rm_sampler_source source = {&ring, 0, 1};
    static const double alphas[] = {0.5, 1, 2};
    for (size_t k = 0; k < sizeof alphas / sizeof *alphas; k++) {
        const double alpha = alphas[k];
        const struct rm_experiment e = experiment_of(alpha, false);
        struct rm_trainer *t = trainer_of(&e);
        struct rm_sampler *s = story_sampler(&source);
        double low = 0, high = 100, odds[2];
        for (int i = 0; i < 100; i++) {
            const double v = (low + high) / 2;
            const double gives = alpha * log(exp((1 + 0.75 * v) / alpha) + exp(2 / alpha));
            *(gives > v ? &low : &high) = v;
        }
        const double want[2] = {(1 + 0.75 * low - 2) / alpha, (0.75 * low + 1) / alpha};
        train(t, s, 1, 3000, 0.02);
        const struct rm_trainer_result r = train(t, s, 3000, 5000, 0.002);
        odds_of(t, odds);
        for (uint32_t i = 0; i < 2; i++)
            if (fabs(odds[i] - want[i]) > 0.03 * fabs(want[i]) + 0.03)
                fail_msg("alpha %g, state %u: odds %g, should be %g", alpha, i, odds[i], want[i]);
        assert_true(r.temperature == exp(log(alpha)));
        rm_sampler_destroy(s);
        rm_trainer_destroy(t);
    }
    rm_ring_close(&ring);
}

/* From far too hot and from far too cold the entropy comes to what was asked for. */
static void the_temperature_finds_the_entropy(void **state)
{
    (void)state;
    struct rm_ring ring;
    rm_story_tell(&ring, 0, 1);
    const struct rm_sampler_source source = {&ring, 0, 1};
    static const double alphas[] = {0.02, 10};
    for (size_t k = 0; k < sizeof alphas / sizeof *alphas; k++) {
        const struct rm_experiment e = experiment_of(alphas[k], true);
        struct rm_trainer *t = trainer_of(&e);
        struct rm_sampler *s = story_sampler(&source);
        train(t, s, 1, 6000, 0.01);
        const struct rm_trainer_result r = train(t, s, 6000, 7000, 0.001);
        assert_true(fabs(r.entropy - 0.6 * log(2)) < 0.06);
        rm_sampler_destroy(s);
        rm_trainer_destroy(t);
    }
    rm_ring_close(&ring);
}

static void an_update_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    struct rm_ring ring;
    rm_story_tell(&ring, 0, 1);
    const struct rm_sampler_source source = {&ring, 0, 1};
    const struct rm_experiment e = experiment_of(1, true);
    struct rm_trainer *t = trainer_of(&e);
    struct rm_sampler *s = story_sampler(&source);
    double before[2], after[2];
    train(t, s, 1, 10, 0.01);
    odds_of(t, before);
    assert_int_equal(rm_sampler_draw(s, 10, rm_sampler_batch(s)), 1);
    rm_sampler_batch(s)->ret[3] = NAN;
    assert_true(rm_trainer_update(t, rm_sampler_batch(s), 10, NULL).skipped);
    odds_of(t, after);
    assert_memory_equal(before, after, sizeof before);
    rm_sampler_destroy(s);
    rm_trainer_destroy(t);
    rm_ring_close(&ring);
}

/* Draws differ from update to update, and are the only thing that does here. */
static void dropout_drops_in_training(void **state)
{
    (void)state;
    struct rm_ring ring;
    rm_story_tell(&ring, 0, 1);
    const struct rm_sampler_source source = {&ring, 0, 1};
    struct rm_sampler *s = story_sampler(&source);
    assert_int_equal(rm_sampler_draw(s, 1, rm_sampler_batch(s)), 1);
    for (int drops = 0; drops < 2; drops++) {
        struct rm_experiment e = experiment_of(1, true);
        e.network.layers[e.network.layer_count++] =
            (struct rm_layer_config){.type = RM_LAYER_DROPOUT, .rate = drops ? 0.5 : 0};
        struct rm_trainer *t = trainer_of(&e);
        const double first = rm_trainer_gradient(t, rm_sampler_batch(s), 1, NULL).loss;
        const double second = rm_trainer_gradient(t, rm_sampler_batch(s), 2, NULL).loss;
        assert_true(drops ? fabs(first - second) > 1e-3 * fabs(first) : first == second);
        rm_trainer_destroy(t);
    }
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

/* Inputs far from 0, one of them of no use: raw they are hard to tell apart, normalised
 * they are not. Policy and critics all take the same moments. */
static void normalised_inputs_are_learned_from(void **state)
{
    (void)state;
    struct rm_experiment e = experiment_of(0.5, false);
    e.network.normalize_observations = true;
    e.network.observation_clip = 10;
    struct rm_trainer *t = trainer_of(&e);
    float obs[32 * 2], ret[32], discount[32] = {0};
    int32_t action[32];
    const struct rm_batch b = {.size = 32,
                               .inputs = 2,
                               .actions = 2,
                               .obs = obs,
                               .next_obs = obs,
                               .action = action,
                               .ret = ret,
                               .discount = discount};
    for (uint32_t i = 0; i < 32; i++) {
        obs[2 * i] = 1000 + (float)(i / 2 % 2);
        obs[2 * i + 1] = -500;
        action[i] = (int32_t)(i % 2);
        ret[i] = i / 2 % 2 == i % 2 ? 1 : -1; /* action 0 where the first input is low */
    }
    for (uint64_t u = 1; u <= 1500; u++)
        assert_false(rm_trainer_update(t, &b, u, NULL).skipped);
    const double fixed = rm_trainer_fixed(t);
    assert_true(fixed > -1.0 / 3 && fixed < 2);
    struct rm_net_workspace *space;
    const float x[] = {1000, -500, 1001, -500};
    const struct rm_net_input in = {.x = x, .batch = 2};
    assert_int_equal(
        rm_net_workspace_create(&space, rm_trainer_net(t), backend, 2, 0, RM_NET_INFER, &failure),
        0);
    rm_net_prepare(space, rm_trainer_params(t));
    const float *out = rm_net_forward(space, rm_trainer_params(t), &in);
    /* Q is +-1, so the odds are +-2 / alpha. */
    assert_true(fabs((double)out[0] - (double)out[1] - 4) < 0.3);
    assert_true(fabs((double)out[3] - (double)out[2] - 4) < 0.3);
    rm_net_workspace_destroy(space);
    rm_trainer_destroy(t);
}

static int open_backend(void **state)
{
    (void)state;
    return rm_backend_cpu_create(&backend, 1, "auto", &failure);
}

static int close_backend(void **state)
{
    (void)state;
    rm_backend_destroy(backend);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_policy_is_a_softmax_over_what_is_legal),
        cmocka_unit_test(far_logits_stay_finite),
        cmocka_unit_test(losses_and_targets_are_the_printed_ones),
        cmocka_unit_test(gradients_are_their_differences),
        cmocka_unit_test(critics_learn_by_half_the_square),
        cmocka_unit_test(a_draw_goes_back_through_critics),
        cmocka_unit_test(two_states_have_their_soft_values),
        cmocka_unit_test(the_temperature_finds_the_entropy),
        cmocka_unit_test(dropout_drops_in_training),
        cmocka_unit_test(normalised_inputs_are_learned_from),
        cmocka_unit_test(an_update_that_is_not_finite_changes_nothing),
    };
    return cmocka_run_group_tests(tests, open_backend, close_backend);
}
