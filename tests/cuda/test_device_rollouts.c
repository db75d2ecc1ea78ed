/* What is promised of rollouts learned from on a device: no allocation, no waiting but once a
 * rollout, no bit by the order of threads, a warm-up that leaves no trace, a state to go on from.
 */
#include "learner/algo/guard.h"
#include "tests/support/backends.h"
#include "tests/support/emulated.h"
#include "tests/support/rollout_learner.h"
#include "tests/support/states.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct rm_test_corridor corridor;

static void nobody_waits_and_nothing_is_allocated(void **state)
{
    struct rm_test_learner d;
    struct rm_device_counts before, after;
    (void)state;
    rm_test_corridor_open(&corridor, "\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4",
                          RM_TEST_CORRIDOR_LAYERS);
    rm_test_learner_open(&d, &corridor, rm_test_device);
    rm_test_learner_draw(&d, 0);
    rm_test_learner_learn(&d, 0);
    for (uint64_t number = 1; number < 4; number++) {
        struct rm_actor_critic_update u;
        rm_test_learner_draw(&d, number);
        rm_test_device->device->counts(rm_test_device, &before);
        rm_actor_critic_begin(d.ac, number, NULL);
        uint32_t updates = 0;
        for (; rm_actor_critic_due(d.ac); updates++)
            rm_actor_critic_step(d.ac, d.attempts + 1, 0, NULL);
        rm_test_device->device->counts(rm_test_device, &after);
        assert_int_equal(updates, 16);
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(after.synchronizations, before.synchronizations);
        assert_int_equal(after.launches, before.launches); /* all is captured */
        assert_int_equal(after.graph_launches, before.graph_launches + 2 + updates);
        assert_int_equal(after.bytes_out, before.bytes_out);
        assert_true(after.bytes_in - before.bytes_in < d.rows.bytes + 10000);
        u = rm_actor_critic_collect(d.ac, NULL);
        rm_test_learner_count(&d, &u);
        rm_test_device->device->counts(rm_test_device, &after);
        assert_int_equal(after.synchronizations, before.synchronizations + 1);
        assert_int_equal(u.made, updates);
    }
    rm_test_device_fine(rm_test_device);
    rm_test_learner_close(&d);
    rm_test_corridor_close(&corridor);
}

static void order_of_threads_changes_nothing(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:3"};
    float *first = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        struct rm_test_learner d;
        rm_test_emulated_order(orders[i]);
        rm_test_corridor_open(&corridor,
                              "\"name\": \"appo\", \"epochs\": 2, \"minibatches\": 3,"
                              " \"value_head\": \"popart\"",
                              RM_TEST_CORRIDOR_LAYERS);
        rm_test_learner_open(&d, &corridor, rm_test_device);
        for (uint64_t number = 0; number < 3; number++) {
            rm_test_learner_draw(&d, number);
            rm_test_learner_learn(&d, number);
        }
        float *now = rm_test_learner_params(&d);
        if (first)
            assert_memory_equal(now, first,
                                corridor.session.plan.policy[0].param_count * sizeof *now);
        else
            first = now;
        if (now != first)
            free(now);
        rm_test_learner_close(&d);
        rm_test_corridor_close(&corridor);
    }
    free(first);
    rm_test_emulated_order("forward");
    rm_test_device_fine(rm_test_device);
}

/* A learner that was just made has warmed up; its state is that of the CPU's, which has not. */
static void warming_up_leaves_no_trace(void **state)
{
    (void)state;
    for (int popart = 0; popart < 2; popart++) {
        struct rm_test_learner d, c;
        rm_test_corridor_open(&corridor,
                              popart ? "\"name\": \"ppo\", \"value_head\": \"popart\","
                                       " \"normalize_rewards\": true"
                                     : "\"name\": \"vtrace\"",
                              RM_TEST_CORRIDOR_LAYERS
                              ", \"normalize_observations\": true, \"trunk\": \"separate\"");
        rm_test_learner_open(&d, &corridor, rm_test_device);
        rm_test_learner_open(&c, &corridor, rm_test_cpu);
        struct rm_state *x = rm_test_learner_state(&d), *y = rm_test_learner_state(&c);
        rm_test_states_same(x, y);
        rm_state_destroy(x);
        rm_state_destroy(y);
        rm_test_learner_close(&d);
        rm_test_learner_close(&c);
        rm_test_corridor_close(&corridor);
    }
    rm_test_device_fine(rm_test_device);
}

/* What goes on from a checkpoint is bit for bit what went on without it. */
static void resumes_to_the_bit(void **state)
{
    struct rm_test_learner d, e;
    struct rm_error error = {""};
    (void)state;
    rm_test_corridor_open(
        &corridor,
        "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 3, \"value_head\": \"popart\","
        " \"normalize_rewards\": true",
        RM_TEST_CORRIDOR_LAYERS ", \"normalize_observations\": true");
    rm_test_learner_open(&d, &corridor, rm_test_device);
    for (uint64_t number = 0; number < 3; number++) {
        rm_test_learner_draw(&d, number);
        rm_test_learner_learn(&d, number);
    }
    struct rm_state *s = rm_test_learner_state(&d);
    rm_test_learner_open(&e, &corridor, rm_test_device);
    rm_state_load(s);
    rm_actor_critic_state(e.ac, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    rm_state_destroy(s);
    e.attempts = d.attempts;
    for (uint64_t number = 3; number < 5; number++) {
        rm_test_learner_draw(&d, number);
        rm_test_learner_draw(&e, number);
        rm_test_learner_learn(&d, number);
        rm_test_learner_learn(&e, number);
    }
    struct rm_state *x = rm_test_learner_state(&d), *y = rm_test_learner_state(&e);
    rm_test_states_same(x, y);
    rm_state_destroy(x);
    rm_state_destroy(y);
    rm_test_device_fine(rm_test_device);
    rm_test_learner_close(&d);
    rm_test_learner_close(&e);
    rm_test_corridor_close(&corridor);
}

/* A rollout that is not finite makes no update and changes nothing; a rollout without a sample
 * neither; the next one is learned from. */
static void bad_rollouts_change_nothing(void **state)
{
    struct rm_test_learner d;
    (void)state;
    rm_test_corridor_open(&corridor, "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2",
                          RM_TEST_CORRIDOR_LAYERS);
    rm_test_learner_open(&d, &corridor, rm_test_device);
    rm_test_learner_draw(&d, 0);
    rm_test_learner_learn(&d, 0);
    struct rm_state *before = rm_test_learner_state(&d);
    rm_test_learner_draw(&d, 1);
    for (uint32_t i = 0; i < (d.rows.steps + 1) * d.rows.lanes; i++)
        d.rows.reward[i] = NAN;
    rm_test_learner_learn(&d, 1);
    assert_int_equal(d.skipped, 4);
    assert_int_equal(d.made, 4);
    rm_test_learner_draw(&d, 2);
    d.rows.samples = 0;
    memset(d.rows.valid, 0, sizeof(float) * d.rows.steps * d.rows.lanes);
    rm_test_learner_learn(&d, 2);
    assert_int_equal(d.attempts, 8);
    struct rm_state *after = rm_test_learner_state(&d);
    rm_test_states_same(before, after);
    rm_state_destroy(before);
    rm_state_destroy(after);
    rm_test_learner_draw(&d, 3);
    rm_test_learner_learn(&d, 3);
    assert_int_equal(d.made, 8);
    rm_test_device_fine(rm_test_device);
    rm_test_learner_close(&d);
    rm_test_corridor_close(&corridor);
}

/* Looking through numbers between gradient and step changes nothing, and says where one was bad. */
static void watching_changes_nothing(void **state)
{
    static const char *const watch[] = {"", "}, \"debug\": {\"check_finite\": \"always\""};
    struct rm_test_learner d[2];
    struct rm_state *s[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        char network[512];
        snprintf(network, sizeof network, "%s%s", RM_TEST_CORRIDOR_LAYERS, watch[i]);
        rm_test_corridor_open(&corridor, "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2",
                              network);
        rm_test_learner_open(&d[i], &corridor, rm_test_device);
        for (uint64_t number = 0; number < 3; number++) {
            rm_test_learner_draw(&d[i], number);
            for (uint32_t j = 0; number == 1 && j < 70; j++)
                d[i].rows.reward[j] = INFINITY;
            rm_test_learner_learn(&d[i], number);
        }
        assert_int_equal(d[i].made, 8);
        assert_int_equal(d[i].skipped, 4);
        s[i] = rm_test_learner_state(&d[i]);
        rm_test_learner_close(&d[i]);
        rm_test_corridor_close(&corridor);
    }
    rm_test_states_same(s[0], s[1]);
    rm_state_destroy(s[0]);
    rm_state_destroy(s[1]);
    rm_test_device_fine(rm_test_device);
}

/* What the guard puts back is what the device goes on from. */
static void guard_puts_back(void **state)
{
    struct rm_test_learner d;
    struct rm_guard *guard;
    struct rm_error error = {""};
    (void)state;
    rm_test_corridor_open(
        &corridor,
        "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2, \"value_head\": \"popart\"",
        RM_TEST_CORRIDOR_LAYERS);
    rm_test_learner_open(&d, &corridor, rm_test_device);
    assert_int_equal(
        rm_guard_create(&guard, &corridor.session.experiment, rm_test_device, NULL, "a", &error),
        0);
    rm_actor_critic_guarded(d.ac, guard);
    assert_int_equal(rm_guard_ready(guard, &error), 0);
    struct rm_state *before = rm_test_learner_state(&d);
    rm_test_learner_draw(&d, 0);
    rm_test_learner_learn(&d, 0);
    int verdict = RM_GUARD_SKIPPED;
    for (int i = 0; i < 1000 && verdict == RM_GUARD_SKIPPED; i++)
        verdict = rm_guard_judge(guard, false, NAN, NAN, 0, &error);
    assert_int_equal(verdict, RM_GUARD_BACK);
    rm_actor_critic_restored(d.ac);
    struct rm_state *after = rm_test_learner_state(&d);
    rm_test_states_same(before, after);
    rm_state_destroy(before);
    rm_state_destroy(after);
    rm_guard_destroy(guard);
    rm_test_device_fine(rm_test_device);
    rm_test_learner_close(&d);
    rm_test_corridor_close(&corridor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_and_nothing_is_allocated),
        cmocka_unit_test(order_of_threads_changes_nothing),
        cmocka_unit_test(warming_up_leaves_no_trace),
        cmocka_unit_test(resumes_to_the_bit),
        cmocka_unit_test(bad_rollouts_change_nothing),
        cmocka_unit_test(watching_changes_nothing),
        cmocka_unit_test(guard_puts_back),
    };
    return cmocka_run_group_tests(tests, rm_test_backends_open, rm_test_backends_close);
}
