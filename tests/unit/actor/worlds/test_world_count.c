/* count: the corridor's rules, its stamps, and each of its faults. */
#include "tests/support/batch.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void go(struct rm_test_batch *batch, uint32_t world, int32_t action)
{
    for (uint32_t a = 0; a < batch->spec->agents; a++)
        batch->actions[a][world] = action;
}

static uint32_t place(const struct rm_test_batch *batch, uint32_t a, uint32_t w)
{
    const float *obs = rm_test_batch_obs(batch, a, w);
    uint32_t at = 0, ones = 0;
    for (uint32_t i = 0; i < batch->obs_bytes[a] / sizeof(float); i++) {
        float v;
        memcpy(&v, obs + i, sizeof(v));
        assert_true(v == 0 || v == 1);
        if (v == 1)
            at = i, ones++;
    }
    assert_int_equal(ones, 1);
    return at;
}

static void test_straight_on(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "count", NULL, "length=4", 1, 0, 1);
    rm_test_batch_reset(&batch);
    double score = 0;
    for (uint32_t t = 0; t < 4; t++) {
        assert_int_equal(place(&batch, 0, 0), t);
        go(&batch, 0, 1);
        rm_test_batch_step(&batch, 0);
        score += batch.out[0].reward[0];
    }
    assert_int_equal(batch.out[0].flags[0], RM_ENV_TERMINATED);
    assert_float_equal(score, batch.spec->score_solved, 1e-6);
    assert_float_equal(score, 0.97, 1e-6);
    rm_test_batch_step(&batch, 0);
    assert_int_equal(batch.out[0].flags[0], RM_ENV_FIRST);
    assert_int_equal(place(&batch, 0, 0), 0);
    rm_test_batch_close(&batch);
}

static void test_back_and_cut(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "count", NULL, "length=4 max_steps=3", 1, 0, 1);
    rm_test_batch_reset(&batch);
    static const int actions[3] = {0, 1, 0}, places[3] = {0, 1, 0};
    for (int t = 0; t < 3; t++) {
        go(&batch, 0, actions[t]);
        rm_test_batch_step(&batch, 0);
        assert_int_equal(place(&batch, 0, 0), places[t]);
        assert_float_equal(batch.out[0].reward[0], -0.01, 1e-7);
    }
    assert_int_equal(batch.out[0].flags[0], RM_ENV_TRUNCATED);
    rm_test_batch_close(&batch);
}

/* Three agents in two phases; the one that arrives first waits for the others at no cost. */
static void test_phases(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "count", NULL, "agents=3 phases=2 length=2", 1, 0, 1);
    rm_test_batch_reset(&batch);
    static const uint32_t phase[3] = {0, 0, 1};
    for (int a = 0; a < 3; a++)
        assert_int_equal(batch.spec->agent[a].phase, phase[a]);
    float reward[3] = {0};
    for (int t = 0; t < 3; t++) {
        for (uint32_t p = 0; p < 2; p++) {
            batch.actions[0][0] = 1;
            batch.actions[1][0] = t > 0;
            batch.actions[2][0] = 1;
            rm_test_batch_step(&batch, p);
            for (int a = 0; a < 3; a++)
                if (batch.spec->agent[a].phase == !p)
                    reward[a] += batch.out[a].reward[0];
        }
    }
    assert_int_equal(batch.out[0].flags[0], RM_ENV_TERMINATED);
    assert_int_equal(batch.out[1].flags[0], RM_ENV_TERMINATED);
    assert_int_equal(batch.out[2].flags[0], 0); /* its last row comes in its own phase */
    rm_test_batch_step(&batch, 0);
    assert_int_equal(batch.out[2].flags[0], RM_ENV_TERMINATED);
    reward[2] += batch.out[2].reward[0];
    assert_float_equal(reward[0], 0.99, 1e-6);
    assert_float_equal(reward[1], 0.98, 1e-6);
    assert_float_equal(reward[2], 0.99, 1e-6);
    rm_test_batch_close(&batch);
}

static void test_mask(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "count", NULL, "mask=1", 1, 0, 1);
    rm_test_batch_reset(&batch);
    const uint8_t *mask = rm_test_batch_mask(&batch, 0, 0);
    assert_true(mask[0] == 0 && mask[1] == 1);
    go(&batch, 0, 0);
    assert_int_equal(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out), -EINVAL);
    assert_non_null(strstr(batch.world.ops->last_error(batch.env), "masked out"));
    go(&batch, 0, 1);
    rm_test_batch_step(&batch, 0);
    assert_true(mask[0] == 1 && mask[1] == 1);
    rm_test_batch_close(&batch);
}

/* Three choices: the move, one of 3, one of 4; each wrong answer costs a tenth. */
static void test_choices(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "count", NULL, "choices=3 length=6 agents=2", 1, 0, 2);
    const struct rm_env_agent *agent = &batch.spec->agent[1];
    assert_int_equal(agent->choices, 3);
    assert_int_equal(agent->actions, 2 + 3 + 4);
    for (uint32_t c = 0; c < 3; c++)
        assert_int_equal(agent->choice_actions[c], 2 + c);
    rm_test_batch_reset(&batch);
    double score = 0;
    for (int32_t at = 0; at < 6; at++) {
        /* World 0 does all right; in world 1 agent 0 errs in choice 1, agent 1 in both. */
        const int32_t right[3] = {1, (at + 1) % 3, (at + 2) % 4};
        const int32_t answers[2][2][3] = {
            {{1, right[1], right[2]}, {1, right[1], right[2]}},
            {{1, (right[1] + 2) % 3, right[2]}, {1, (right[1] + 1) % 3, (right[2] + 3) % 4}},
        };
        for (uint32_t w = 0; w < 2; w++)
            for (uint32_t a = 0; a < 2; a++)
                memcpy(&batch.actions[a][w * 3], answers[w][a], sizeof(answers[w][a]));
        rm_test_batch_step(&batch, 0);
        const double move = at == 5 ? 1 : -0.01;
        assert_float_equal(batch.out[0].reward[0], move, 1e-6);
        assert_float_equal(batch.out[1].reward[0], move, 1e-6);
        assert_float_equal(batch.out[0].reward[1], move - 0.1, 1e-6);
        assert_float_equal(batch.out[1].reward[1], move - 0.2, 1e-6);
        score += batch.out[0].reward[0] + batch.out[1].reward[0];
    }
    assert_int_equal(batch.out[0].flags[1], RM_ENV_TERMINATED);
    assert_float_equal(score, batch.spec->score_solved, 1e-6);
    rm_test_batch_close(&batch);
}

static void test_masks_of_choices(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "count", NULL, "choices=3 mask=1", 1, 0, 1);
    rm_test_batch_reset(&batch);
    /* At 0: back is illegal; the right answers are 1 and 2, those after them illegal. */
    static const uint8_t at_0[9] = {0, 1, 1, 1, 0, 1, 1, 1, 0},
                         at_1[9] = {1, 1, 0, 1, 1, 0, 1, 1, 1};
    assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), at_0, 9);
    static const struct {
        int32_t action[3];
        const char *words;
    } refused[] = {
        {{0, 1, 2}, "action 0 of choice 0 of agent 0 in world 0 is masked out"},
        {{1, 2, 2}, "action 2 of choice 1 of agent 0 in world 0 is masked out"},
        {{1, 1, 3}, "action 3 of choice 2 of agent 0 in world 0 is masked out"},
        {{2, 1, 2}, "action 2 of choice 0 of agent 0 in world 0 is not one of 0..1"},
        {{1, 3, 2}, "action 3 of choice 1 of agent 0 in world 0 is not one of 0..2"},
        {{1, 1, -1}, "action -1 of choice 2 of agent 0 in world 0 is not one of 0..3"},
    };
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        memcpy(batch.actions[0], refused[i].action, sizeof(refused[i].action));
        assert_int_equal(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out),
                         -EINVAL);
        assert_string_equal(batch.world.ops->last_error(batch.env), refused[i].words);
    }
    const int32_t legal[3] = {1, 0, 1}; /* legal and wrong twice */
    memcpy(batch.actions[0], legal, sizeof(legal));
    rm_test_batch_step(&batch, 0);
    assert_float_equal(batch.out[0].reward[0], -0.21, 1e-6);
    assert_memory_equal(rm_test_batch_mask(&batch, 0, 0), at_1, 9);
    rm_test_batch_close(&batch);
}

static void test_stamp(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    rm_test_batch_open(&batch, "count", NULL, "stamp=1 agents=2 phases=2 length=2", 1, 30, 3);
    rm_test_batch_reset(&batch);
    for (int t = 0; t < 7; t++) {
        for (uint32_t p = 0; p < 2; p++) {
            for (uint32_t w = 0; w < 3; w++) {
                int32_t stamp[4];
                memcpy(stamp, rm_test_batch_obs(&batch, p, w), sizeof(stamp));
                assert_int_equal(stamp[0], 30 + w);
                assert_int_equal(stamp[1], t / 3); /* two moves and a last row */
                assert_int_equal(stamp[2], t % 3);
                assert_int_equal(stamp[3], p);
                go(&batch, w, 1);
            }
            rm_test_batch_step(&batch, p);
        }
    }
    rm_test_batch_close(&batch);
}

/* --- faults: at the third step of world 11, in the second of three worlds
 * --------------------------- */

static void open_fault(struct rm_test_batch *batch, const char *fault)
{
    char options[96];
    snprintf(options, sizeof(options), "%s=3 fault_world=11 mask=1", fault);
    rm_test_batch_open(batch, "count", NULL, options, 1, 10, 3);
    rm_test_batch_reset(batch);
    for (uint32_t w = 0; w < 3; w++)
        go(batch, w, 1);
    rm_test_batch_step(batch, 0);
    rm_test_batch_step(batch, 0);
}

static void test_fail(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    open_fault(&batch, "fail_step");
    assert_int_equal(batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out), -EIO);
    assert_non_null(strstr(batch.world.ops->last_error(batch.env), "world 11"));
    rm_test_batch_close(&batch);
}

static void test_nan(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    open_fault(&batch, "nan_step");
    for (int t = 3; t <= 4; t++) {
        rm_test_batch_step(&batch, 0);
        for (int w = 0; w < 3; w++)
            assert_int_equal(isnan(batch.out[0].reward[w]) != 0, t == 3 && w == 1);
    }
    rm_test_batch_close(&batch);
}

static void test_illegal_mask(void **unused)
{
    (void)unused;
    struct rm_test_batch batch;
    open_fault(&batch, "illegal_mask_step");
    rm_test_batch_step(&batch, 0);
    for (uint32_t w = 0; w < 3; w++) {
        const uint8_t *mask = rm_test_batch_mask(&batch, 0, w);
        assert_int_equal(mask[0] + mask[1], w == 1 ? 0 : 2);
    }
    rm_test_batch_close(&batch);
}

/* The signal that ends a child which takes the faulty step. */
static int signal_of_child(const char *fault, unsigned seconds)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rm_test_batch batch;
        open_fault(&batch, fault);
        signal(SIGSEGV, SIG_DFL); /* not the test's own way of failing */
        alarm(seconds);
        batch.world.ops->step(batch.env, 0, batch.const_actions, batch.out);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void test_crash_and_hang(void **unused)
{
    (void)unused;
    assert_int_equal(signal_of_child("crash_step", 20), SIGSEGV);
    assert_int_equal(signal_of_child("hang_step", 1), SIGALRM);
    assert_int_equal(signal_of_child("nan_step", 20), 0);
}

static void test_refusals(void **unused)
{
    (void)unused;
    struct rm_world world;
    struct rm_world_config config;
    struct rm_env *env;
    struct rm_error error;
    assert_int_equal(rm_world_open(&world, "count", NULL, &error), 0);
    rm_test_world_config(&config, "count", "agents=2 phases=3");
    assert_true(rm_world_create(&world, &config, 1, 0, 1, &env, &error) < 0);
    assert_non_null(strstr(error.text, "3 phases for 2 agents"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_straight_on),
        cmocka_unit_test(test_back_and_cut),
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_mask),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_masks_of_choices),
        cmocka_unit_test(test_stamp),
        cmocka_unit_test(test_fail),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_illegal_mask),
        cmocka_unit_test(test_crash_and_hang),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
