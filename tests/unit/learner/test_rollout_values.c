/* A rollout whose values actors kept is learned from as if the learner had made them itself: the
 * same parameters to the bit. Operations are counted for the rows that there are. */
#include "actor/actor.h"
#include "actor/worlds/worlds.h"
#include "learner/algo/actor_critic.h"
#include "learner/rollout_rows.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ACTORS = 2 };

static struct rm_session session;

static void open_session(const char *world, const char *layers)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"values\", \"seed\": 3, \"algorithm\": {\"name\": \"ppo\","
             " \"epochs\": 1, \"minibatches\": 2},"
             " \"world\": {\"name\": \"count\", \"options\": {\"length\": 4, \"max_steps\": 7%s}},"
             " \"actor\": {\"count\": %d, \"worlds\": 5}, \"rollout\": {\"steps\": 12},"
             " \"network\": {\"trunk\": \"shared\", \"layers\": ["
             " {\"type\": \"linear\", \"units\": 8}, {\"type\": \"tanh\"}%s]}}",
             world, ACTORS, layers);
    assert_int_equal(rm_test_session(&session, json), 0);
}

static void act(void)
{
    for (uint32_t i = 0; i < ACTORS; i++) {
        struct rm_error error = {""};
        struct rm_actor *actor;
        struct rm_duty duty;
        if (rm_actor_create(&actor, &session, i, &duty, &error))
            fail_msg("%s", error.text);
        while (rm_test_turn(&duty) > 0)
            ;
        rm_actor_destroy(actor);
    }
}

/* Learns from the rollout, with the values that came with it or without. */
static float *learned(struct rm_backend *backend, bool kept,
                      struct rm_actor_critic_figures *figures)
{
    const struct rm_experiment *e = &session.experiment;
    const struct rm_policy_plan *plan = &session.plan.policy[0];
    struct rm_error error = {""};
    struct rm_world world;
    struct rm_env *env;
    struct rm_rollout rows;
    struct rm_actor_critic *ac;
    struct rm_weights_stamp stamp;
    float *params = calloc(plan->param_count, sizeof *params);
    assert_int_equal(rm_world_open(&world, e->world.name, e->world.library, &error), 0);
    assert_int_equal(rm_world_create(&world, &e->world, 1, 0, 1, &env, &error), 0);
    const struct rm_rollout_spec what = {
        .session = &session, .agent = &world.ops->describe(env)->agent[0], .backend = backend};
    assert_int_equal(rm_rollout_create(&rows, &what, &error), 0);
    assert_true(rm_rollout_ready(&rows, 0));
    rm_rollout_copy(&rows, 0, 0);
    assert_true(rows.samples > 0 && rows.value);
    assert_true(rm_weights_read_version(&session.weights[0], 1, params, plan->param_count, &stamp));
    float *values = rows.value;
    rows.value = kept ? values : NULL;
    const struct rm_trainer_spec spec = {
        .experiment = e, .backend = backend, .rollout = &rows, .shape = plan->shape, .name = "a"};
    assert_int_equal(rm_actor_critic_create(&ac, &spec, &error), 0);
    rm_actor_critic_load(ac, params);
    const double most = rm_actor_critic_update_flops(ac);
    const bool lanes = plan->state_floats > 0;
    const double entries = lanes ? rows.lanes : rows.samples,
                 largest = ceil((lanes ? rows.lanes : rows.lanes * rows.steps) / 2.0);
    rm_actor_critic_begin(ac, 0, NULL);
    assert_true(fabs(rm_actor_critic_update_flops(ac) / most - entries / 2 / largest) < 1e-9);
    for (uint64_t update = 1; rm_actor_critic_due(ac); update++) {
        rm_actor_critic_step(ac, update, 0, NULL);
        if (kept) { /* measuring changes nothing */
            struct rm_trainer *t = rm_actor_critic_trainer(ac);
            const double flops = rm_net_workspace_row_flops(rm_trainer_workspace(t), 1);
            assert_false(rm_trainer_fixed(t) <= -1.0 / 3);
            assert_true(rm_net_workspace_row_flops(rm_trainer_workspace(t), 1) == flops);
        }
    }
    *figures = rm_actor_critic_figures(ac);
    memcpy(params, rm_actor_critic_params(ac), plan->param_count * sizeof *params);
    rm_actor_critic_destroy(ac);
    rows.value = values;
    rm_rollout_destroy(&rows);
    world.ops->close(env);
    rm_world_close(&world);
    return params;
}

static void the_same_parameters(void **state)
{
    static const struct {
        const char *world, *layers;
    } cases[] = {
        {"", ""},
        {"", ", {\"type\": \"gru\", \"units\": 5}"},
        {"", ", {\"type\": \"lstm\", \"units\": 5}"},
        {", \"agents\": 2, \"phases\": 2", ""}, /* no successor yet */
        {", \"agents\": 2, \"phases\": 2", ", {\"type\": \"lstm\", \"units\": 5}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rm_error error = {""};
        struct rm_backend *backend;
        struct rm_actor_critic_figures with, without;
        open_session(cases[i].world, cases[i].layers);
        rm_test_publish_random(&session, 7, 0);
        act();
        assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", &error), 0);
        float *a = learned(backend, true, &with), *b = learned(backend, false, &without);
        assert_memory_equal(a, b, session.plan.policy[0].param_count * sizeof *a);
        assert_true(with.value_loss == without.value_loss && with.value_loss > 0);
        free(a);
        free(b);
        rm_backend_destroy(backend);
        rm_session_close(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_parameters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
