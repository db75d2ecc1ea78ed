/* Rollouts that are too old to be learned from, with a value that has a memory of its own: the
 * memory goes past them, so that the next rollout begins where this one ended. */
#include "actor/actor.h"
#include "actor/worlds/worlds.h"
#include "learner/algo/actor_critic_private.h"
#include "learner/learner.h"
#include "learner/rollout_rows.h"
#include "shm/atomic.h"
#include "shm/base/state.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>

enum { T = 8, WORLDS = 3, UNITS = 5, STATE = WORLDS * UNITS };

static struct rm_session session;

static const char *const json =
    "{\"name\": \"dropped\", \"seed\": 4, \"actor\": {\"count\": 1, \"worlds\": 3},"
    " \"world\": {\"name\": \"cartpole\"}, \"algorithm\": {\"name\": \"appo\"},"
    " \"rollout\": {\"steps\": 8, \"queue\": 3, \"staleness_max\": 1},"
    " \"network\": {\"trunk\": \"separate\", \"layers\": [{\"type\": \"linear\", \"units\": 4},"
    " {\"type\": \"tanh\"}, {\"type\": \"gru\", \"units\": 5}]}}";

/* What the learner would save of the value's memory. */
static void memory_of(struct rm_learner *learner, float *to)
{
    struct rm_error error = {""};
    struct rm_state *s;
    bool found = false;
    assert_int_equal(rm_state_create(&s, &error), 0);
    rm_learner_state(learner, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    for (size_t i = 0; i < rm_state_count(s); i++) {
        const struct rm_state_part *part = rm_state_at(s, i);
        if (!strstr(part->name, "value_state"))
            continue;
        assert_int_equal(part->bytes, STATE * sizeof *to);
        memcpy(to, part->data, part->bytes);
        found = true;
    }
    assert_true(found);
    rm_state_destroy(s);
}

static void load_newest(struct rm_actor_critic *ac)
{
    struct rm_weights_stamp stamp;
    float *params = malloc(session.weights[0].count * sizeof *params);
    assert_int_equal(
        rm_weights_read(&session.weights[0], params, session.weights[0].count, &stamp, NULL), 1);
    rm_actor_critic_load(ac, params);
    free(params);
}

/* The memory after three rollouts by hand, from what lies in the ring: the first with the weights
 * that there were, the others with those that it made. */
static void follow(struct rm_actor_critic *ac, struct rm_rollout *rows, float *after_first)
{
    rm_rollout_copy(rows, 0, 0);
    rm_actor_critic_begin(ac, 0, NULL);
    memcpy(after_first, ac->value_now, STATE * sizeof *after_first);
    load_newest(ac);
    for (uint64_t r = 1; r < 3; r++) {
        rm_rollout_copy(rows, r, 0);
        rm_actor_critic_begin(ac, r, NULL);
    }
}

static void the_values_memory_goes_past_them(void **state)
{
    struct rm_error error = {""};
    struct rm_duty act, learn;
    struct rm_actor *actor;
    struct rm_learner *learner;
    struct rm_actor_critic *ac;
    struct rm_rollout rows;
    struct rm_backend *backend;
    struct rm_world world;
    struct rm_env *env;
    float got[STATE], first[STATE];
    const struct rm_board_policy *board;
    (void)state;
    assert_int_equal(rm_test_session(&session, json), 0);
    board = &session.board.policies[0];
    assert_int_equal(rm_learner_create(&learner, &session, 0, "", &learn, &error), 0);
    assert_int_equal(rm_actor_create(&actor, &session, 0, &act, &error), 0);
    assert_int_equal(rm_world_open(&world, "cartpole", "", &error), 0);
    assert_int_equal(rm_world_create(&world, &session.experiment.world, 1, 0, 1, &env, &error), 0);
    assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", &error), 0);
    const struct rm_rollout_spec what = {&session, 0, &world.ops->describe(env)->agent[0], backend};
    assert_int_equal(rm_rollout_create(&rows, &what, &error), 0);
    const struct rm_trainer_spec spec = {.experiment = &session.experiment,
                                         .backend = backend,
                                         .rollout = &rows,
                                         .shape = session.plan.policy[0].shape,
                                         .name = "by hand"};
    assert_int_equal(rm_actor_critic_create(&ac, &spec, &error), 0);

    while (rm_test_turn(&act) > 0)
        ;
    assert_int_equal(rm_ring_committed(&session.rings[0]), 3 * T);
    while (rm_test_turn(&learn) > 0)
        ;
    assert_int_equal(RM_PEEK(&board->rollouts), 1);
    assert_int_equal(RM_PEEK(&board->rollouts_dropped), 2);
    memory_of(learner, got);
    follow(ac, &rows, first);
    assert_memory_equal(got, ac->value_now, sizeof got);
    assert_memory_not_equal(got, first, sizeof got);

    rm_actor_critic_destroy(ac);
    rm_rollout_destroy(&rows);
    rm_backend_destroy(backend);
    world.ops->close(env);
    rm_world_close(&world);
    rm_actor_destroy(actor);
    rm_learner_destroy(learner);
    rm_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_values_memory_goes_past_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
