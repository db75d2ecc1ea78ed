/* Worlds that are stepped on a device: their transitions are the CPU's to the bit, and actions are
 * drawn as actors draw them. */
#include "shm/base/rng.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"
#include "tests/support/world_learner.h"
#include "tests/support/world_twin.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_backend *device;
static struct rm_session session;

static int open_device(void **state)
{
    (void)state;
    device = rm_test_device_open();
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    return 0;
}

/* --- transitions ----------------------------------------------------------------------------- */

static void transitions_are_the_cpus(const char *world, const char *options, uint32_t worlds,
                                     uint32_t steps, uint32_t rollouts, uint32_t least_episodes)
{
    struct rm_test_world_learner r;
    struct rm_test_twin t;
    uint32_t ended = 0;
    rm_test_world_session(&session, world, options, worlds, steps);
    rm_test_world_learner_open(&r, &session, device);
    rm_test_twin_open(&t, &session, 0, worlds);
    for (uint32_t i = 0; i < rm_test_effort(rollouts, 1); i++) {
        rm_test_world_learner_turn(&r);
        ended += rm_test_twin_follow(&t, &r.worlds.part[0]);
    }
    assert_true(ended >= rm_test_effort(least_episodes, least_episodes / rollouts));
    rm_test_device_fine(device);
    rm_test_twin_close(&t);
    rm_test_world_learner_close(&r);
    rm_session_close(&session);
}

static void cartpole_is_the_cpus(void **state)
{
    (void)state;
    transitions_are_the_cpus("cartpole", "", 33, 128, 3, 200); /* 12,672 steps */
    transitions_are_the_cpus("cartpole", "\"max_steps\": 2", 40, 100, 1, RM_DEVICE_SCORES + 1);
    transitions_are_the_cpus("cartpole", "\"max_steps\": 9, \"velocities\": 0", 7, 40, 3, 60);
}

static void goodhart_is_the_cpus(void **state)
{
    (void)state;
    transitions_are_the_cpus("goodhart", "\"max_steps\": 60", 16, 128, 3, 90); /* 6,144 steps */
    transitions_are_the_cpus("goodhart",
                             "\"mode\": 1, \"compat\": 1, \"t0_stagger\": 1,"
                             " \"max_steps\": 25, \"food_max\": 4000, \"poison_min\":"
                             " 1000, \"poison_max\": 3000",
                             5, 64, 3, 20);
}

/* --- actions --------------------------------------------------------------------------------- */

/* As an actor draws them from the same logits: the same words, and so the same actions. */
static void actions_are_drawn_as_actors_draw(void **state)
{
    enum { WORLDS = 203, STEPS = 5 };
    static const uint32_t shapes[][3] = {{2, 0, 0}, {8, 0, 0}, {3, 4, 2}};
    (void)state;
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        struct rm_categorical c = {0};
        for (; c.choices < 3 && shapes[s][c.choices]; c.choices++)
            c.actions += c.choice_actions[c.choices] = shapes[s][c.choices];
        c.words = c.choices;
        const uint32_t outputs = c.actions + 1;
        struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, 0, s);
        float *out = malloc(sizeof *out * WORLDS * outputs);
        uint32_t lane[WORLDS], word[WORLDS * 3];
        int32_t action[WORLDS * 3];
        float logp[WORLDS];
        for (size_t i = 0; i < (size_t)WORLDS * outputs; i++)
            out[i] = 4 * rm_rng_float(&rng) - 2;
        for (uint32_t i = 0; i < WORLDS; i++)
            lane[i] = i;
        const struct rm_device_stage stage = {.step = 1000 + s, .row = 2};
        struct rm_device_worlds on = {
            .seed = 77,
            .worlds = WORLDS,
            .to_action = device->ops->alloc_bytes(device, sizeof action * STEPS, NULL),
            .to_logp = device->ops->alloc_bytes(device, sizeof logp * STEPS, NULL),
            .to_value = device->ops->alloc_bytes(device, sizeof logp * STEPS, NULL),
            .stage = device->ops->alloc_bytes(device, sizeof stage, NULL),
        };
        float *there = device->ops->alloc_bytes(device, sizeof *out * WORLDS * outputs, NULL);
        device->ops->upload(device, there, out, (size_t)WORLDS * outputs);
        device->ops->upload(device, (float *)(void *)on.stage, (const float *)(const void *)&stage,
                            sizeof stage / 4);
        const struct rm_device_draw draw = {.distribution = c, .out = there, .outputs = outputs};
        device->device->worlds->draw(device, &on, &draw);
        rm_categorical_words(&c, 77, 1000 + s, lane, WORLDS, word);
        rm_categorical_draw(&c, out, outputs, NULL, WORLDS, word, action, logp);
        int32_t *actions = rm_test_device_fetch(device, on.to_action, sizeof action * STEPS);
        float *logps = rm_test_device_fetch(device, on.to_logp, sizeof logp * STEPS);
        float *values = rm_test_device_fetch(device, on.to_value, sizeof logp * STEPS);
        assert_memory_equal(actions + (size_t)2 * WORLDS * c.choices, action,
                            sizeof *action * WORLDS * c.choices);
        for (uint32_t i = 0; i < WORLDS; i++) {
            assert_true(fabsf(logps[2 * WORLDS + i] - logp[i]) < 1e-5f);
            assert_true(values[2 * WORLDS + i] == out[(i + 1) * outputs - 1]);
        }
        void *own[] = {on.to_action, on.to_logp, on.to_value, on.stage, there};
        for (size_t i = 0; i < sizeof own / sizeof *own; i++)
            device->ops->release(device, own[i]);
        free(out);
        free(actions);
        free(logps);
        free(values);
    }
    rm_test_device_fine(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cartpole_is_the_cpus),
        cmocka_unit_test(goodhart_is_the_cpus),
        cmocka_unit_test(actions_are_drawn_as_actors_draw),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
