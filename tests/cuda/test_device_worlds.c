/* Worlds that are stepped on a device: their transitions are the CPU's to the bit, and actions are
 * drawn as actors draw them. */
#include "actor/worlds.h"
#include "learner/net/features.h"
#include "shm/base/rng.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"
#include "tests/support/world_learner.h"

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

/* The CPU's worlds, given the actions of the device's. */
struct twin {
    struct rm_world world;
    struct rm_env *env;
    const struct rm_env_agent *agent;
    uint32_t worlds, bytes, inputs;
    uint8_t *obs, *flags;
    float *reward, *x;
    double *score;
    struct rm_env_buffers out;
};

static void open_twin(struct twin *t)
{
    const struct rm_experiment *e = &session.experiment;
    struct rm_error error = {""};
    assert_int_equal(rm_world_open(&t->world, e->world.name, e->world.library, &error), 0);
    assert_int_equal(
        rm_world_create(&t->world, &e->world, e->seed, 0, e->actor.worlds, &t->env, &error), 0);
    t->agent = t->world.ops->describe(t->env)->agent;
    t->worlds = e->actor.worlds;
    t->bytes = (uint32_t)rm_features_bytes(t->agent);
    t->inputs = rm_features_count(t->agent);
    t->obs = calloc(t->worlds, t->bytes);
    t->flags = calloc(t->worlds, 1);
    t->reward = calloc(t->worlds, sizeof *t->reward);
    t->x = calloc((size_t)t->worlds * t->inputs, sizeof *t->x);
    t->score = calloc(t->worlds, sizeof *t->score);
    assert_true(t->obs && t->flags && t->reward && t->x && t->score);
    t->out = (struct rm_env_buffers){
        .obs = t->obs, .obs_stride = t->bytes, .reward = t->reward, .flags = t->flags};
    assert_int_equal(t->world.ops->reset(t->env, &t->out), 0);
}

static void close_twin(struct twin *t)
{
    t->world.ops->close(t->env);
    rm_world_close(&t->world);
    free(t->obs);
    free(t->flags);
    free(t->reward);
    free(t->x);
    free(t->score);
}

static void same_row(const struct twin *t, const float *x, const float *reward,
                     const uint8_t *flags, uint32_t row)
{
    for (uint32_t w = 0; w < t->worlds; w++)
        rm_features_take(t->agent, false, t->obs + (size_t)w * t->bytes,
                         t->x + (size_t)w * t->inputs);
    if (memcmp(x, t->x, (size_t)t->worlds * t->inputs * sizeof *x) != 0)
        fail_msg("row %u: observations differ", row);
    if (memcmp(reward, t->reward, t->worlds * sizeof *reward) != 0)
        fail_msg("row %u: rewards differ", row);
    if (memcmp(flags, t->flags, t->worlds) != 0)
        fail_msg("row %u: flags differ", row);
}

/* A rollout's rows against the twin's steps; the scores of its episodes against what was told. */
static uint32_t follow(struct twin *t, const struct rm_native_worlds *n)
{
    const uint32_t steps = n->rows.steps, worlds = n->rows.lanes;
    const size_t rows = (size_t)steps * worlds, more = rows + worlds;
    float *x = rm_test_device_fetch(device, n->rows.x, more * t->inputs * sizeof *x);
    float *reward = rm_test_device_fetch(device, n->rows.reward, more * sizeof *reward);
    uint8_t *flags = rm_test_device_fetch(device, n->rows.flags, more);
    int32_t *action = rm_test_device_fetch(device, n->rows.action, rows * sizeof *action);
    uint32_t ended = 0;
    for (uint32_t s = 0; s <= steps; s++) {
        const size_t at = (size_t)s * worlds;
        same_row(t, x + at * t->inputs, reward + at, flags + at, s);
        if (s == steps)
            break;
        const int32_t *actions[] = {action + at};
        assert_int_equal(t->world.ops->step(t->env, 0, actions, &t->out), 0);
        for (uint32_t w = 0; w < worlds; w++) {
            t->score[w] = (t->flags[w] & RM_ENV_FIRST ? 0 : t->score[w]) + (double)t->reward[w];
            if (!(t->flags[w] & (RM_ENV_TERMINATED | RM_ENV_TRUNCATED)))
                continue;
            assert_true(ended < n->told->episodes);
            if (ended + RM_DEVICE_SCORES >= n->told->episodes)
                assert_true(n->told->scores[ended % RM_DEVICE_SCORES] == t->score[w]);
            ended++;
        }
    }
    assert_int_equal(n->told->episodes, ended);
    free(x);
    free(reward);
    free(flags);
    free(action);
    return ended;
}

/* And the worlds themselves. */
static void same_worlds(const struct twin *t, const struct rm_native_worlds *n)
{
    const size_t bytes = t->world.ops->state_size(t->env);
    void *own = malloc(bytes), *there = rm_test_device_fetch(device, n->on.state, bytes);
    assert_non_null(own);
    assert_int_equal(t->world.ops->save_state(t->env, own), 0);
    assert_memory_equal(own, there, bytes);
    free(own);
    free(there);
}

static void transitions_are_the_cpus(const char *world, const char *options, uint32_t worlds,
                                     uint32_t steps, uint32_t rollouts, uint32_t least_episodes)
{
    struct rm_test_world_learner r;
    struct twin t;
    uint32_t ended = 0;
    rm_test_world_session(&session, world, options, worlds, steps);
    rm_test_world_learner_open(&r, &session, device);
    open_twin(&t);
    for (uint32_t i = 0; i < rollouts; i++) {
        rm_test_world_learner_turn(&r);
        ended += follow(&t, &r.worlds);
        same_worlds(&t, &r.worlds);
    }
    assert_true(ended >= least_episodes);
    rm_test_device_fine(device);
    close_twin(&t);
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
            .to_action = device->device->alloc(device, sizeof action * STEPS, NULL),
            .to_logp = device->device->alloc(device, sizeof logp * STEPS, NULL),
            .to_value = device->device->alloc(device, sizeof logp * STEPS, NULL),
            .stage = device->device->alloc(device, sizeof stage, NULL),
        };
        float *there = device->device->alloc(device, sizeof *out * WORLDS * outputs, NULL);
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
