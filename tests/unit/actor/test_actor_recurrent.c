/* Acting with a memory, by values: a lane's state begins with zeros in every episode, stands in the
 * row before the answer, and is what the network made of the row before. */
#include "actor/actor.h"
#include "learner/net/features.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLDS = 3, ROWS = 60, UNITS = 5 };

static struct rm_session session;

static void open_session(const char *layer, double epsilon)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"memory\", \"seed\": 3, \"world\": {\"name\": \"count\","
             " \"options\": {\"length\": 6, \"max_steps\": 9}},"
             " \"actor\": {\"count\": 1, \"worlds\": %d},"
             " \"epsilon\": {\"start\": %g, \"end\": %g}, \"limiter\": {\"updates_per_step\": 0},"
             " \"algorithm\": {\"name\": \"r2d2\"}, \"network\": {\"layers\": ["
             " {\"type\": \"linear\", \"units\": 8}, {\"type\": \"tanh\"},"
             " {\"type\": \"%s\", \"units\": %d}]}}",
             WORLDS, epsilon, epsilon, layer, UNITS);
    assert_int_equal(rm_test_session(&session, json), 0);
    rm_test_publish_random(&session, 7, 1);
}

static void act(void)
{
    struct rm_error error = {""};
    struct rm_actor *actor;
    struct rm_duty duty;
    if (rm_actor_create(&actor, &session, 0, &duty, &error))
        fail_msg("%s", error.text);
    while (rm_ring_committed(&session.rings[0]) < ROWS)
        assert_true(rm_test_turn(&duty) > 0);
    rm_actor_destroy(actor);
}

/* Follows every lane by itself, one row at a time. Returns how many answers were the best ones. */
static uint32_t follow(void)
{
    struct rm_error error = {""};
    const struct rm_policy_plan *plan = &session.plan.policy[0];
    struct rm_net *net = rm_test_net(&session.experiment, plan);
    struct rm_backend *backend;
    struct rm_net_workspace *space;
    struct rm_weights_stamp stamp;
    float *params = malloc(plan->param_count * sizeof *params), state[2 * UNITS];
    float next[2 * UNITS] = {0};
    uint32_t best = 0, firsts = 0;
    const size_t floats = plan->state_floats;
    assert_int_equal(rm_backend_cpu_create(&backend, 1, "auto", &error), 0);
    assert_int_equal(rm_net_workspace_create(&space, net, backend, 1, 0, RM_NET_INFER, &error), 0);
    assert_int_equal(rm_weights_read(&session.weights[0], params, plan->param_count, &stamp, NULL),
                     1);
    rm_net_prepare(space, params);
    for (uint32_t lane = 0; lane < WORLDS; lane++)
        for (uint32_t i = 0; i < ROWS; i++) {
            const struct rm_row row = rm_ring_row(&session.rings[0], i);
            const float *x = (const float *)(const void *)(row.obs + lane * plan->obs_bytes);
            if (row.flags[lane] & RM_FLAG_FIRST) {
                memset(state, 0, sizeof state);
                firsts++;
            }
            assert_memory_equal(row.state + lane * floats, state, floats * sizeof(float));
            const struct rm_net_input in = {.x = x, .batch = 1, .state = state, .next_state = next};
            const float *q = rm_net_forward(space, params, &in);
            memcpy(state, next, sizeof state);
            if (row.flags[lane] & RM_FLAG_LAST)
                assert_int_equal(row.action[lane], 0);
            else
                best += row.action[lane] == (q[1] > q[0]);
        }
    assert_true(firsts > 2 * WORLDS);
    rm_net_workspace_destroy(space);
    rm_backend_destroy(backend);
    rm_net_destroy(net);
    free(params);
    return best;
}

/* Answers of rows that are not an episode's last. */
static uint32_t answers(void)
{
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < WORLDS; lane++)
        for (uint32_t i = 0; i < ROWS; i++)
            n += !(rm_ring_row(&session.rings[0], i).flags[lane] & RM_FLAG_LAST);
    return n;
}

static void states_are_what_the_network_made_of_the_row_before(void **state)
{
    (void)state;
    static const char *const layers[] = {"gru", "lstm"};
    for (int i = 0; i < 2; i++) {
        open_session(layers[i], 0);
        assert_int_equal(session.plan.policy[0].state_floats, (i + 1) * UNITS);
        act();
        assert_int_equal(follow(), answers());
        rm_session_close(&session);
    }
}

/* An explorer does something else, but has seen what it saw. */
static void explorers_remember_too(void **state)
{
    (void)state;
    open_session("gru", 0.5);
    act();
    const uint32_t best = follow();
    assert_true(best < answers() && best > answers() / 3);
    rm_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_what_the_network_made_of_the_row_before),
        cmocka_unit_test(explorers_remember_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
