/* Whole rollouts learned from on a device, beside the CPU's: a hundred minibatches of every
 * algorithm. */
#include "tests/support/backends.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/rollout_learner.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <stdlib.h>

static struct rm_test_corridor corridor;

/* `rollouts` of the same numbers on both. */
static void learn_alike(const char *algorithm, const char *network, uint32_t rollouts)
{
    struct rm_test_learner d, c;
    rm_test_corridor_open(&corridor, algorithm, network);
    rm_test_learner_open(&d, &corridor, rm_test_device);
    rm_test_learner_open(&c, &corridor, rm_test_cpu);
    float *before = rm_test_learner_params(&c);
    for (uint32_t i = 0; i < rm_test_effort(rollouts, 2); i++) {
        rm_test_learner_draw(&d, i);
        rm_test_learner_draw(&c, i);
        rm_test_learner_learn(&d, i);
        rm_test_learner_learn(&c, i);
        rm_test_learner_compare(&d, &c);
    }
    rm_test_device_fine(rm_test_device);
    const size_t n = corridor.session.plan.policy[0].param_count;
    float *x = rm_test_learner_params(&d), *y = rm_test_learner_params(&c);
    assert_true(rm_test_updates_apart(y, before, n) > 1e-3); /* it has learned something */
    if (!(rm_test_updates_apart(x, y, n) < 1e-3))
        fail_msg("%s: %g apart after %llu updates", algorithm, rm_test_updates_apart(x, y, n),
                 (unsigned long long)d.made);
    free(before);
    free(x);
    free(y);
    rm_test_learner_close(&d);
    rm_test_learner_close(&c);
    rm_test_corridor_close(&corridor);
}

static void ppo_is_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4, \"value_clip\": 0.2",
                RM_TEST_CORRIDOR_LAYERS, 7);
    learn_alike("\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4, \"value_clip\": 0.05,"
                " \"value_clip_maximum\": \"means\"",
                RM_TEST_CORRIDOR_LAYERS, 7);
    learn_alike("\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4,"
                " \"normalize_advantages\": \"batch\"",
                RM_TEST_CORRIDOR_LAYERS ", \"trunk\": \"separate\"", 7);
}

static void appo_is_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"appo\", \"epochs\": 5, \"minibatches\": 4", RM_TEST_CORRIDOR_LAYERS,
                5);
}

static void vtrace_is_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"vtrace\", \"minibatches\": 5", RM_TEST_CORRIDOR_LAYERS, 20);
}

static void running_scales_are_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2, \"value_head\": \"popart\"",
                RM_TEST_CORRIDOR_LAYERS, 8);
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2, \"value_head\": \"popart\","
                " \"popart_deviation\": \"averaged\", \"normalize_advantages\": \"off\"",
                RM_TEST_CORRIDOR_LAYERS ", \"trunk\": \"separate\"", 8);
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2, \"normalize_rewards\": true",
                RM_TEST_CORRIDOR_LAYERS ", \"normalize_observations\": true", 8);
}

/* Passes end where the policy has moved too far, after as many as on the CPU. */
static void kl_stops_as_on_the_cpu(void **state)
{
    (void)state;
    learn_alike("\"name\": \"ppo\", \"epochs\": 10, \"minibatches\": 2, \"target_kl\": 0.002",
                RM_TEST_CORRIDOR_LAYERS, 6);
    learn_alike("\"name\": \"ppo\", \"epochs\": 10, \"minibatches\": 2, \"target_kl\": 1e-9",
                RM_TEST_CORRIDOR_LAYERS, 6);
}

#define RECURRENT(cell) RM_TEST_CORRIDOR_RECURRENT(cell)

/* Lanes are trained on whole; the value's own layers keep their states from rollout to rollout. */
static void sequences_are_the_cpus(void **state)
{
    (void)state;
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 4",
                RECURRENT("gru") "\"shared\"", 6);
    learn_alike("\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 4",
                RECURRENT("lstm") "\"separate\"", 6);
    learn_alike("\"name\": \"vtrace\", \"minibatches\": 3", RECURRENT("lstm") "\"separate\"", 8);
    learn_alike("\"name\": \"appo\", \"epochs\": 2, \"minibatches\": 3",
                RECURRENT("gru") "\"separate\"", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ppo_is_the_cpus),        cmocka_unit_test(appo_is_the_cpus),
        cmocka_unit_test(vtrace_is_the_cpus),     cmocka_unit_test(running_scales_are_the_cpus),
        cmocka_unit_test(kl_stops_as_on_the_cpu), cmocka_unit_test(sequences_are_the_cpus),
    };
    return cmocka_run_group_tests(tests, rm_test_backends_open, rm_test_backends_close);
}
