/* cartpole, acrobot, both mountaincars, pendulum: single transitions from set states against a
 * table made by Gymnasium and against the definitions written down a second time here with the C
 * library's functions; first states; ends; and the same bits from every instruction set. */
#include "actor/worlds/builtin/classic.h"
#include "shm/base/float_word.h"
#include "tests/support/batch.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

struct transition {
    double state[4];
    double action; /* of a box, a float */
    double next[4];
    double observation[6];
    double reward;
    int terminated;
};

#include "tests/unit/actor/worlds/data/gymnasium.h"

/* --- the definitions, plainly
 * ----------------------------------------------------------------------- */

static void cartpole(struct transition *t)
{
    double x = t->state[0], v = t->state[1], a = t->state[2], w = t->state[3];
    double f = t->action > 0 ? 10 : -10, total = 1.1;
    double q = (f + 0.05 * w * w * sin(a)) / total;
    double aa = (9.8 * sin(a) - cos(a) * q) / (0.5 * (4.0 / 3 - 0.1 * cos(a) * cos(a) / total));
    double xa = q - 0.05 * aa * cos(a) / total;
    double next[4] = {x + 0.02 * v, v + 0.02 * xa, a + 0.02 * w, w + 0.02 * aa};
    memcpy(t->next, next, sizeof(next));
    for (int i = 0; i < 4; i++)
        t->observation[i] = next[i];
    t->terminated = fabs(next[0]) > 2.4 || fabs(next[2]) > 24 * M_PI / 360;
    t->reward = 1;
}

static void mountaincar(struct transition *t)
{
    double v = t->state[1] + (t->action - 1) * 0.001 - 0.0025 * cos(3 * t->state[0]);
    v = fmax(-0.07, fmin(0.07, v));
    double x = fmax(-1.2, fmin(0.6, t->state[0] + v));
    if (x == -1.2 && v < 0)
        v = 0;
    t->next[0] = t->observation[0] = x;
    t->next[1] = t->observation[1] = v;
    t->terminated = x >= 0.5 && v >= 0;
    t->reward = -1;
}

/* Masses, lengths and inertias are 1, centres at 1/2. */
static void acrobot_slope(const double s[4], double torque, double d[4])
{
    double d1 = 1 * 0.25 + 1 * (1 + 0.25 + 2 * 0.5 * cos(s[1])) + 1 + 1;
    double d2 = 1 * (0.25 + 0.5 * cos(s[1])) + 1;
    double phi2 = 0.5 * 9.8 * cos(s[0] + s[1] - M_PI_2);
    double phi1 = -0.5 * s[3] * s[3] * sin(s[1]) - 2 * 0.5 * s[3] * s[2] * sin(s[1]) +
                  (0.5 + 1) * 9.8 * cos(s[0] - M_PI_2) + phi2;
    d[0] = s[2];
    d[1] = s[3];
    d[3] = (torque + d2 / d1 * phi1 - 0.5 * s[2] * s[2] * sin(s[1]) - phi2) /
           (0.25 + 1 - d2 * d2 / d1);
    d[2] = -(d2 * d[3] + phi1) / d1;
}

static void acrobot(struct transition *t)
{
    static const double reach[4] = {0, 0.1, 0.1, 0.2}, weight[4] = {1, 2, 2, 1};
    double slope[4] = {0}, sum[4] = {0}, torque = t->action - 1;
    for (int k = 0; k < 4; k++) {
        double at[4];
        for (int i = 0; i < 4; i++)
            at[i] = t->state[i] + reach[k] * slope[i];
        acrobot_slope(at, torque, slope);
        for (int i = 0; i < 4; i++)
            sum[i] += weight[k] * slope[i];
    }
    for (int i = 0; i < 4; i++)
        t->next[i] = t->state[i] + 0.2 / 6 * sum[i];
    for (int i = 0; i < 2; i++)
        t->next[i] = remainder(t->next[i], 2 * M_PI);
    t->next[2] = fmax(-4 * M_PI, fmin(4 * M_PI, t->next[2]));
    t->next[3] = fmax(-9 * M_PI, fmin(9 * M_PI, t->next[3]));
    double o[6] = {cos(t->next[0]), sin(t->next[0]), cos(t->next[1]),
                   sin(t->next[1]), t->next[2],      t->next[3]};
    memcpy(t->observation, o, sizeof(o));
    t->terminated = -cos(t->next[0]) - cos(t->next[0] + t->next[1]) > 1;
    t->reward = t->terminated ? 0 : -1;
}

/* In floats, but for the slope. */
static void mountaincar_continuous(struct transition *t)
{
    float x = (float)t->state[0], v = (float)t->state[1], force = (float)t->action;
    v += force * 0.0015f - (float)(0.0025 * cos((double)(3 * x)));
    v = fmaxf(-0.07f, fminf(0.07f, v));
    x = fmaxf(-1.2f, fminf(0.6f, x + v));
    if (x == -1.2f && v < 0)
        v = 0;
    t->next[0] = t->observation[0] = x;
    t->next[1] = t->observation[1] = v;
    t->terminated = x >= 0.45f && v >= 0;
    t->reward = (t->terminated ? 100 : 0) - pow(t->action, 2) * 0.1;
}

static void pendulum(struct transition *t)
{
    double angle = t->state[0], v = t->state[1], off = remainder(angle, 2 * M_PI);
    t->reward = -(off * off + 0.1 * v * v + 0.001 * t->action * t->action);
    v = fmax(-8, fmin(8, v + (15 * sin(angle) + (double)(3 * (float)t->action)) * 0.05));
    t->next[0] = angle + 0.05 * v;
    t->next[1] = t->observation[2] = v;
    t->observation[0] = cos(t->next[0]);
    t->observation[1] = sin(t->next[0]);
    t->terminated = 0;
}

static const struct problem {
    const char *name;
    const struct transition *table;
    size_t count;
    void (*define)(struct transition *t);
    int states, elements;
    double tolerance; /* of the next state; an acrobot's step multiplies rounding errors */
    uint32_t max_steps;
    bool box, ends;
} problems[] = {
    {"cartpole", cartpole_transitions, sizeof(cartpole_transitions) / sizeof(struct transition),
     cartpole, 4, 4, 1e-14, 500, false, true},
    {"acrobot", acrobot_transitions, sizeof(acrobot_transitions) / sizeof(struct transition),
     acrobot, 4, 6, 1e-10, 500, false, true},
    {"mountaincar", mountaincar_transitions,
     sizeof(mountaincar_transitions) / sizeof(struct transition), mountaincar, 2, 2, 1e-15, 200,
     false, true},
    {"mountaincar_continuous", mountaincar_continuous_transitions,
     sizeof(mountaincar_continuous_transitions) / sizeof(struct transition), mountaincar_continuous,
     2, 2, 1e-15, 999, true, true},
    {"pendulum", pendulum_transitions, sizeof(pendulum_transitions) / sizeof(struct transition),
     pendulum, 2, 3, 1e-14, 200, true, false},
};
enum { PROBLEMS = 5 };

static int32_t action_of(const struct problem *problem, const struct transition *t)
{
    return problem->box ? rm_word_of_float((float)t->action) : (int32_t)t->action;
}

/* --- transitions
 * ------------------------------------------------------------------------------------ */

/* Steps from every state of the table at once, and compares. */
static void check(const struct problem *problem, const struct transition *table)
{
    struct rm_test_batch batch;
    uint32_t n = (uint32_t)problem->count;
    rm_test_batch_open(&batch, problem->name, NULL, NULL, 1, 0, n);
    rm_test_batch_reset(&batch);
    struct rm_classic_state *state = calloc(n, sizeof(*state));
    assert_int_equal(batch.world.ops->state_size(batch.env), n * sizeof(*state));
    for (uint32_t i = 0; i < n; i++) {
        memcpy(state[i].state, table[i].state, sizeof(state[i].state));
        batch.actions[0][i] = action_of(problem, &table[i]);
    }
    assert_int_equal(batch.world.ops->load_state(batch.env, state), 0);
    rm_test_batch_step(&batch, 0);
    batch.world.ops->save_state(batch.env, state);
    int ended = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct transition *t = &table[i];
        for (int k = 0; k < problem->states; k++) {
            double off = fabs(state[i].state[k] - t->next[k]);
            if (k < 2 && problem->define == acrobot) /* pi and -pi are one angle */
                off = fmin(off, fabs(off - 2 * M_PI));
            if (!(off <= problem->tolerance * fmax(1, fabs(t->next[k]))))
                fail_msg("%s %u: state %d is %.17g, not %.17g", problem->name, i, k,
                         state[i].state[k], t->next[k]);
        }
        float obs[6];
        memcpy(obs, rm_test_batch_obs(&batch, 0, i), batch.obs_bytes[0]);
        for (int k = 0; k < problem->elements; k++) {
            double expected = t->observation[k];
            if (!(fabs(obs[k] - expected) <= 1.2e-7 * fmax(1e-3, fabs(expected))))
                fail_msg("%s %u: observation %d is %.9g, not %.9g", problem->name, i, k, obs[k],
                         expected);
        }
        assert_float_equal(batch.out[0].reward[i], (float)t->reward, 1e-7 * fabs(t->reward));
        assert_int_equal(batch.out[0].flags[i], t->terminated ? RM_ENV_TERMINATED : 0);
        ended += t->terminated;
    }
    assert_true(problem->ends ? ended > 0 && ended < (int)n : ended == 0);
    free(state);
    rm_test_batch_close(&batch);
}

static void test_gymnasium(void **unused)
{
    (void)unused;
    for (int p = 0; p < PROBLEMS; p++)
        check(&problems[p], problems[p].table);
}

static void test_definition(void **unused)
{
    (void)unused;
    for (int p = 0; p < PROBLEMS; p++) {
        struct transition *table = calloc(problems[p].count, sizeof(*table));
        for (size_t i = 0; i < problems[p].count; i++) {
            memcpy(table[i].state, problems[p].table[i].state, sizeof(table[i].state));
            table[i].action = problems[p].table[i].action;
            problems[p].define(&table[i]);
        }
        check(&problems[p], table);
        free(table);
    }
}

/* --- episodes
 * --------------------------------------------------------------------------------------- */

/* First states: their range, mean and variance. */
static void test_first_states(void **unused)
{
    (void)unused;
    static const struct {
        const char *name;
        int drawn, states;
        double low, high;
    } expected[] = {{"cartpole", 4, 4, -0.05, 0.05},
                    {"acrobot", 4, 4, -0.1, 0.1},
                    {"mountaincar", 1, 2, -0.6, -0.4},
                    {"mountaincar_continuous", 1, 2, -0.6, -0.4},
                    {"pendulum", 1, 1, -M_PI, M_PI}};
    enum { N = 4000 };
    for (int p = 0; p < PROBLEMS; p++) {
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, expected[p].name, NULL, NULL, 21, 0, N);
        rm_test_batch_reset(&batch);
        static struct rm_classic_state state[N];
        batch.world.ops->save_state(batch.env, state);
        for (int k = 0; k < expected[p].states; k++) {
            double sum = 0, squares = 0, low = INFINITY, high = -INFINITY;
            double middle = (expected[p].low + expected[p].high) / 2;
            double width = expected[p].high - expected[p].low;
            for (int i = 0; i < N; i++) {
                double v = state[i].state[k];
                sum += v;
                squares += (v - middle) * (v - middle);
                low = fmin(low, v);
                high = fmax(high, v);
                assert_int_equal(batch.out[0].flags[i], RM_ENV_FIRST);
            }
            if (k >= expected[p].drawn) {
                assert_true(low == 0 && high == 0);
                continue;
            }
            assert_true(low >= expected[p].low - 1e-8 && high <= expected[p].high + 1e-8);
            assert_true(low < expected[p].low + 0.01 * width);
            assert_true(high > expected[p].high - 0.01 * width);
            assert_float_equal(sum / N, middle, 4 * width / sqrt(12.0 * N));
            assert_float_equal(squares / N, width * width / 12, 0.05 * width * width / 12);
        }
        rm_test_batch_close(&batch);
    }
}

/* Without an end of its own an episode is cut after max_steps; a last row carries its reward, the
 * next is a first one. */
static void test_truncation(void **unused)
{
    (void)unused;
    for (int p = 1; p < PROBLEMS; p++) { /* a random cart pole falls before */
        for (uint32_t max_steps = 0; max_steps <= 7; max_steps += 7) {
            struct rm_test_batch batch;
            char options[32];
            snprintf(options, sizeof(options), "max_steps=%u", max_steps);
            rm_test_batch_open(&batch, problems[p].name, NULL, max_steps ? options : NULL, 2, 0, 3);
            uint32_t steps = batch.spec->max_steps;
            assert_int_equal(steps, max_steps ? max_steps : problems[p].max_steps);
            rm_test_batch_reset(&batch);
            for (uint32_t row = 1; row <= 2 * (steps + 1); row++) {
                for (uint32_t w = 0; w < 3; w++)
                    batch.actions[0][w] = !problems[p].box; /* nothing: none ends by itself */
                rm_test_batch_step(&batch, 0);
                uint32_t at = row % (steps + 1);
                for (uint32_t w = 0; w < 3; w++) {
                    assert_int_equal(batch.out[0].flags[w], at == 0       ? RM_ENV_FIRST
                                                            : at == steps ? RM_ENV_TRUNCATED
                                                                          : 0);
                    if (!problems[p].box)
                        assert_float_equal(batch.out[0].reward[w], at == 0 ? 0 : -1, 0);
                }
            }
            rm_test_batch_close(&batch);
        }
    }
}

/* Mean length of a random policy's episodes, and what the spec says of it. */
static void test_random_cartpole(void **unused)
{
    (void)unused;
    enum { WORLDS = 256, STEPS = 2000 };
    struct rm_test_batch batch;
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 0, 0);
    rm_test_batch_open(&batch, "cartpole", NULL, NULL, 3, 0, WORLDS);
    rm_test_batch_reset(&batch);
    double score = 0, episodes = 0;
    for (int i = 0; i < STEPS; i++) {
        for (int w = 0; w < WORLDS; w++)
            batch.actions[0][w] = (int32_t)(rm_rng_u32(&rng) >> 31);
        rm_test_batch_step(&batch, 0);
        for (int w = 0; w < WORLDS; w++) {
            uint8_t flags = batch.out[0].flags[w];
            assert_true(flags == 0 || flags == RM_ENV_FIRST || flags == RM_ENV_TERMINATED);
            score += batch.out[0].reward[w];
            episodes += flags == RM_ENV_TERMINATED;
        }
    }
    assert_float_equal(score / episodes, batch.spec->score_random, 0.35);
    rm_test_batch_close(&batch);
}

static void test_without_velocities(void **unused)
{
    (void)unused;
    struct rm_test_batch all, places;
    rm_test_batch_open(&all, "cartpole", NULL, NULL, 3, 0, 5);
    rm_test_batch_open(&places, "cartpole", NULL, "velocities=0", 3, 0, 5);
    assert_int_equal(rm_env_obs_features(&places.spec->agent[0]), 2);
    rm_test_batch_reset(&all);
    rm_test_batch_reset(&places);
    for (int i = 0; i < 50; i++) {
        for (uint32_t w = 0; w < 5; w++) {
            float four[4], two[2];
            memcpy(four, rm_test_batch_obs(&all, 0, w), sizeof(four));
            memcpy(two, rm_test_batch_obs(&places, 0, w), sizeof(two));
            assert_true(two[0] == four[0] && two[1] == four[2]);
        }
        rm_test_batch_draw(&all, 1, 0, 0, (uint64_t)i);
        rm_test_batch_draw(&places, 1, 0, 0, (uint64_t)i);
        rm_test_batch_step(&all, 0);
        rm_test_batch_step(&places, 0);
    }
    rm_test_batch_close(&all);
    rm_test_batch_close(&places);
}

/* --- instruction sets
 * ------------------------------------------------------------------------------- */

RM_CLASSIC_KERNELS(cartpole_kernel);
RM_CLASSIC_KERNELS(acrobot_kernel);
RM_CLASSIC_KERNELS(mountaincar_kernel);
RM_CLASSIC_KERNELS(mountaincar_continuous_kernel);
RM_CLASSIC_KERNELS(pendulum_kernel);

enum { PADDED = 48 };
struct arrays {
    double state[4][PADDED];
    float frame[6][PADDED], reward[PADDED], terminated[PADDED];
    int32_t action[PADDED];
};

static void run_kernel(rm_classic_kernel kernel, struct arrays *arrays)
{
    struct rm_classic_arrays view = {.padded = PADDED,
                                     .reward = arrays->reward,
                                     .terminated = arrays->terminated,
                                     .action = arrays->action};
    for (int i = 0; i < 4; i++)
        view.state[i] = arrays->state[i];
    for (int i = 0; i < 6; i++)
        view.frame[i] = arrays->frame[i];
    kernel(&view);
}

/* Every copy of a kernel, and every place in the arrays, gives the same bits. */
static void test_kernels_agree(void **unused)
{
    (void)unused;
    static const rm_classic_kernel kernels[PROBLEMS][RM_LEVEL_COUNT] = {
        {rm_isa_v2_cartpole_kernel, rm_isa_v3_cartpole_kernel, rm_isa_v4_cartpole_kernel},
        {rm_isa_v2_acrobot_kernel, rm_isa_v3_acrobot_kernel, rm_isa_v4_acrobot_kernel},
        {rm_isa_v2_mountaincar_kernel, rm_isa_v3_mountaincar_kernel, rm_isa_v4_mountaincar_kernel},
        {rm_isa_v2_mountaincar_continuous_kernel, rm_isa_v3_mountaincar_continuous_kernel,
         rm_isa_v4_mountaincar_continuous_kernel},
        {rm_isa_v2_pendulum_kernel, rm_isa_v3_pendulum_kernel, rm_isa_v4_pendulum_kernel}};
    static struct arrays result[RM_LEVEL_COUNT], turned;
    for (int p = 0; p < PROBLEMS; p++) {
        struct arrays start;
        memset(&start, 0, sizeof(start));
        for (int w = 0; w < PADDED; w++) {
            for (int k = 0; k < 4; k++)
                start.state[k][w] = problems[p].table[w].state[k];
            start.action[w] = action_of(&problems[p], &problems[p].table[w]);
        }
        for (int isa = 0; isa <= (int)rm_isa_level(); isa++) {
            result[isa] = start;
            run_kernel(kernels[p][isa], &result[isa]);
            assert_memory_equal(&result[isa], &result[0], sizeof(result[0]));
        }
        /* The same worlds, five places further on. */
        enum { BY = 5 };
        for (int w = 0; w < PADDED; w++) {
            for (int k = 0; k < 4; k++)
                turned.state[k][(w + BY) % PADDED] = start.state[k][w];
            turned.action[(w + BY) % PADDED] = start.action[w];
        }
        run_kernel(kernels[p][rm_isa_level()], &turned);
        for (int w = 0; w < PADDED; w++)
            for (int k = 0; k < 4; k++)
                assert_memory_equal(&turned.state[k][(w + BY) % PADDED], &result[0].state[k][w], 8);
    }
}

static void test_refusals(void **unused)
{
    (void)unused;
    for (int p = 0; p < PROBLEMS; p++) {
        struct rm_test_batch batch;
        rm_test_batch_open(&batch, problems[p].name, NULL, NULL, 1, 100, 3);
        rm_test_batch_reset(&batch);
        const struct rm_env_ops *ops = batch.world.ops;
        struct rm_classic_state state[3];
        ops->save_state(batch.env, state);
        const float none = NAN;
        batch.actions[0][2] = (int32_t)batch.spec->agent[0].actions;
        if (problems[p].box)
            memcpy(&batch.actions[0][2], &none, sizeof none);
        assert_true(ops->step(batch.env, 0, batch.const_actions, batch.out) < 0);
        assert_non_null(strstr(ops->last_error(batch.env), "world 102"));
        batch.actions[0][2] = -1;
        assert_true(ops->step(batch.env, 0, batch.const_actions, batch.out) < 0);
        state[1].state[0] = NAN;
        assert_true(ops->load_state(batch.env, state) < 0);
        /* An action of a world that is giving out its last row is ignored. */
        state[1].state[0] = 0;
        state[2].ended = RM_ENV_TRUNCATED;
        assert_int_equal(ops->load_state(batch.env, state), 0);
        rm_test_batch_step(&batch, 0);
        assert_int_equal(batch.out[0].flags[2], RM_ENV_FIRST);
        rm_test_batch_close(&batch);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gymnasium),       cmocka_unit_test(test_definition),
        cmocka_unit_test(test_first_states),    cmocka_unit_test(test_truncation),
        cmocka_unit_test(test_random_cartpole), cmocka_unit_test(test_without_velocities),
        cmocka_unit_test(test_kernels_agree),   cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
