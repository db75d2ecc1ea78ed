/* What a policy sees when observations are stacked: the last frames of this episode, oldest first,
 * zeros before. The networks here are written by hand so that the actions tell what was seen. */
#include "actor/actor.h"
#include "actor/acting.h"
#include "actor/worlds/worlds.h"
#include "config/config.h"
#include "learner/net/features.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LENGTH = 6, STACK = 4, WORLDS = 3, STEPS = 60 };

static struct rm_session session;

/* Q of action 1 is the sum of the inputs [from, from + count); Q of action 0 is a half. */
static void publish(uint32_t from, uint32_t count)
{
    struct rm_net *net = rm_test_net(&session.experiment, &session.plan.policy[0]);
    float *params = calloc(rm_net_param_count(net), sizeof *params);
    struct rm_net_tensor bias = rm_test_tensor(net, "bias"), weight = rm_test_tensor(net, "weight");

    assert_int_equal(weight.shape[0], 2);
    assert_int_equal(weight.shape[1], STACK * (LENGTH + 1));
    params[bias.offset] = 0.5f;
    for (uint32_t i = 0; i < count; i++)
        params[weight.offset + weight.shape[1] + from + i] = 1;
    rm_weights_publish(&session.weights[0], params, (struct rm_weights_stamp){.updates = 1});
    free(params);
    rm_net_destroy(net);
}

/* Runs an actor; returns actions[step of the episode][place] seen, as bits 1 and 2. */
static void run(uint32_t from, uint32_t count, uint8_t seen[16][LENGTH + 1])
{
    struct rm_error error = {""};
    struct rm_actor *actor;
    struct rm_duty duty;

    publish(from, count);
    assert_int_equal(rm_actor_create(&actor, &session, 0, &duty, &error), 0);
    uint64_t begin = rm_ring_committed(&session.rings[0]);
    for (uint32_t t = 0; t < STEPS; t++)
        assert_true(rm_test_turn(&duty) > 0);
    for (uint32_t w = 0; w < WORLDS; w++) {
        uint32_t step = 0;
        for (uint32_t t = 0; t < STEPS; t++) {
            struct rm_row row = rm_ring_row(&session.rings[0], begin + t);
            const float *one_hot = (const float *)(void *)row.obs + (size_t)w * (LENGTH + 1);
            uint32_t place = 0;
            while (one_hot[place] == 0)
                place++;
            step = row.flags[w] & RM_FLAG_FIRST ? 0 : step + 1;
            if (!(row.flags[w] & RM_FLAG_LAST))
                seen[step][place] |= (uint8_t)(1 << row.action[w]);
        }
    }
    rm_actor_destroy(actor);
}

static int setup(void **state)
{
    (void)state;
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"stacks\", \"seed\": 3, \"world\": {\"name\": \"count\","
             " \"options\": {\"length\": %d, \"max_steps\": 15}},"
             " \"actor\": {\"count\": 1, \"worlds\": %d}, \"epsilon\": {\"start\": 0, \"end\": 0},"
             " \"sample\": {\"frame_stack\": %d}, \"limiter\": {\"updates_per_step\": 0},"
             " \"network\": {\"layers\": []}}",
             LENGTH, WORLDS, STACK);
    return rm_test_session(&session, json);
}

static int teardown(void **state)
{
    (void)state;
    rm_session_close(&session);
    return 0;
}

/* The oldest frame is zeros for the first STACK - 1 steps of each episode. */
static void frames_before_the_episode_are_zeros(void **state)
{
    uint8_t seen[16][LENGTH + 1] = {{0}};

    (void)state;
    run(0, LENGTH + 1, seen);
    for (uint32_t step = 0; step < 9; step++)
        for (uint32_t place = 0; place <= LENGTH; place++) {
            /* stays until there is an oldest frame, then goes on */
            uint32_t expected = step < STACK - 1 ? 0 : step - (STACK - 1);
            assert_int_equal(seen[step][place], place == expected ? step < STACK - 1 ? 1 : 2 : 0);
        }
}

/* The newest frame is the last: at place 0 on, at place 1 back. */
static void the_newest_frame_is_last(void **state)
{
    uint8_t seen[16][LENGTH + 1] = {{0}};

    (void)state;
    run((STACK - 1) * (LENGTH + 1), 1, seen);
    for (uint32_t step = 0; step < 15; step++) {
        assert_int_equal(seen[step][0], step % 2 ? 0 : 2);
        assert_int_equal(seen[step][1], step % 2 ? 1 : 0);
    }
}

/* Two steps back at place 0: on at steps 2 and 3, then never again below. */
static void frames_between_are_in_order(void **state)
{
    uint8_t seen[16][LENGTH + 1] = {{0}};

    (void)state;
    run((STACK - 3) * (LENGTH + 1), 1, seen);
    for (uint32_t step = 0; step < 4; step++)
        assert_int_equal(seen[step][step == 3 ? 1 : 0], step < 2 ? 1 : 2);
    assert_int_equal(seen[4][2], 2); /* two steps back, at step 2, it was still at 0 */
    assert_int_equal(seen[5][3], 1); /* at step 3 it was at 1 */
}

/* --- the compat forms of the treasure hunt --------------------------------------------------- */

enum { SLOTS = 64, FRAMES = 5, TURNS = 900, AGENTS = 5 };

static void open_compat(const char *form)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"compat\", \"seed\": 5, \"world\": {\"name\": \"treasurehunt\"},"
             " \"actor\": {\"count\": 1, \"worlds\": 1, \"quantiles\": 4},"
             " \"epsilon\": {\"start\": 0.3, \"end\": 0.3}, \"ring\": {\"capacity\": %d},"
             " \"sample\": {\"batch\": 16, \"min_fill\": 32, \"frame_stack\": %d},"
             " \"algorithm\": {\"name\": \"iqn\", \"form\": \"%s\"},"
             " \"limiter\": {\"updates_per_step\": 0}, \"network\": {\"layers\": ["
             "  {\"type\": \"linear\", \"units\": 16}, {\"type\": \"relu\"},"
             "  {\"type\": \"cosine_embedding\", \"cosines\": 8}]}}",
             16 * SLOTS, FRAMES, form);
    assert_int_equal(rm_test_session(&session, json), 0);
    rm_test_publish_random(&session, 2, 0);
}

/* The original's memory of one agent, as it keeps it: an array of
 * frames and a write index that jumps over FRAMES - 1 slots, which keep what they hold, at every
 * episode's start. The multi-process form acts on zeros instead. */
struct original {
    float frame[SLOTS][128];
    uint32_t index;
};

/* Fills x with what the original would have shown its network. */
static void original_sees(struct original *o, const float *frame, uint32_t features, bool first,
                          bool sequential, uint32_t age, float *x)
{
    if (first && sequential)
        o->index = (o->index + FRAMES - 1) % SLOTS;
    for (uint32_t back = FRAMES - 1; back > 0; back--) {
        const float *old = o->frame[(o->index + SLOTS - back) % SLOTS];
        for (uint32_t i = 0; i < features; i++)
            *x++ = !sequential && back > age ? 0 : old[i];
    }
    memcpy(x, frame, features * sizeof *x);
    memcpy(o->frame[o->index], frame, features * sizeof *frame);
    o->index = (o->index + 1) % SLOTS;
}

static uint32_t check_agent(uint32_t agent, bool sequential)
{
    const struct rm_policy_plan *policy = &session.plan.policy[agent];
    struct original *original = calloc(1, sizeof *original);
    struct rm_world world;
    struct rm_env *env;
    struct rm_backend *backend;
    struct rm_acting acting;
    struct rm_weights_stamp stamp;
    float frame[128], *x = calloc(policy->inputs, sizeof *x);
    uint32_t age = 0, other = 0;

    assert_int_equal(rm_world_open(&world, "treasurehunt", "", NULL), 0);
    assert_int_equal(rm_world_create(&world, &session.experiment.world, 5, 0, 1, &env, NULL), 0);
    assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", NULL), 0);
    assert_int_equal(rm_acting_create(&acting, &session.experiment, policy, backend, 4, 5, NULL),
                     0);
    rm_weights_read(&session.weights[agent], acting.params, session.weights[agent].act_count,
                    &stamp, NULL);
    rm_acting_prepare(&acting);
    for (uint32_t t = 0; t < TURNS; t++) {
        struct rm_row row = rm_ring_row(&session.rings[agent], t);
        int32_t answer;
        age = row.flags[0] & RM_FLAG_FIRST ? 0 : age + 1;
        if (row.flags[0] & RM_FLAG_LAST)
            continue;
        rm_features_take(&world.ops->describe(env)->agent[agent], false, row.obs, frame);
        original_sees(original, frame, policy->features, age == 0, sequential, age, x);
        rm_acting_greedy(&acting, x, 1, &agent, t, NULL, &answer);
        other += answer != row.action[0];
    }
    rm_acting_destroy(&acting);
    rm_backend_destroy(backend);
    world.ops->close(env);
    rm_world_close(&world);
    free(original);
    free(x);
    return other;
}

static void act_as_the_original(const char *form, bool sequential)
{
    struct rm_error error = {""};
    struct rm_actor *actor;
    struct rm_duty duty;
    uint32_t apart = 0;

    open_compat(form);
    /* A ring that keeps all rows for the check, read as that of a smaller capacity. */
    session.experiment.ring.capacity = SLOTS;
    session.experiment.epsilon.start = 0; /* all greedy: every action is an answer */
    session.board.run->settings[RM_HOT_EPSILON_END] = 0;
    assert_int_equal(rm_actor_create(&actor, &session, 0, &duty, &error), 0);
    for (uint32_t t = 0; t < TURNS; t++)
        assert_true(rm_test_turn(&duty) > 0);
    for (uint32_t agent = 0; agent < AGENTS; agent++) {
        assert_int_equal(check_agent(agent, sequential), 0);
        apart += check_agent(agent, !sequential);
    }
    assert_true(apart > 0); /* the two forms differ */
    rm_actor_destroy(actor);
    rm_session_close(&session);
}

static void the_sequential_original_sees_old_frames(void **state)
{
    (void)state;
    act_as_the_original("sorrel-seq", true);
}

static void the_parallel_original_sees_zeros(void **state)
{
    (void)state;
    act_as_the_original("sorrel-mp", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(frames_before_the_episode_are_zeros, setup, teardown),
        cmocka_unit_test_setup_teardown(the_newest_frame_is_last, setup, teardown),
        cmocka_unit_test_setup_teardown(frames_between_are_in_order, setup, teardown),
        cmocka_unit_test(the_sequential_original_sees_old_frames),
        cmocka_unit_test(the_parallel_original_sees_zeros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
