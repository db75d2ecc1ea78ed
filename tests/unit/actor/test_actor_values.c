/* State values that actors keep beside their answers: the very bits that the learner's own pass
 * would give, last observations included; and the states that this pass may begin and end with. */
#include "actor/actor.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLDS = 3, STEPS = 20, UNITS = 5, STATE_MAX = 2 * UNITS };

static struct rm_session session;

static void open_session(const char *layers, const char *more)
{
    char json[1024];
    snprintf(json, sizeof json,
             "{\"name\": \"values\", \"seed\": 3, \"algorithm\": {\"name\": \"ppo\"},"
             " \"world\": {\"name\": \"count\", \"options\": {\"length\": 6, \"max_steps\": 9}},"
             " \"actor\": {\"count\": 1, \"worlds\": %d}, \"rollout\": {\"steps\": %d},"
             " \"network\": {\"trunk\": \"shared\", \"layers\": ["
             " {\"type\": \"linear\", \"units\": 8}, {\"type\": \"tanh\"}%s]}%s}",
             WORLDS, STEPS, layers, more);
    assert_int_equal(rm_test_session(&session, json), 0);
}

static struct rm_row row_at(uint64_t i)
{
    return rm_ring_row(&session.rings[0], session.rings[0].spec.first_index + i);
}

/* Rollout after rollout, each with its own weights. */
static void act(uint32_t rollouts)
{
    struct rm_error error = {""};
    struct rm_actor *actor;
    struct rm_duty duty;
    if (rm_actor_create(&actor, &session, 0, &duty, &error))
        fail_msg("%s", error.text);
    for (uint32_t r = 0; r < rollouts; r++) {
        rm_test_publish_random(&session, 7 + r, r);
        while (rm_test_turn(&duty) > 0)
            ;
    }
    rm_actor_destroy(actor);
}

/* Follows every lane by itself, one row at a time, through a rollout and what arrived after it. */
struct follower {
    struct rm_net *net;
    struct rm_backend *backend;
    struct rm_net_workspace *space;
    float *params;
};

static struct follower follower(uint64_t version)
{
    struct rm_error error = {""};
    const struct rm_policy_plan *plan = &session.plan.policy[0];
    struct follower f = {.net = rm_test_net(&session.experiment, plan)};
    struct rm_weights_stamp stamp;
    f.params = calloc(plan->param_count, sizeof *f.params);
    assert_int_equal(rm_backend_cpu_create(&f.backend, 1, "auto", &error), 0);
    assert_int_equal(
        rm_net_workspace_create(&f.space, f.net, f.backend, 1, 0, RM_NET_VALUE, &error), 0);
    assert_true(
        rm_weights_read_version(&session.weights[0], version, f.params, plan->param_count, &stamp));
    rm_net_prepare(f.space, f.params);
    return f;
}

static void unfollow(struct follower *f)
{
    rm_net_workspace_destroy(f->space);
    rm_backend_destroy(f->backend);
    rm_net_destroy(f->net);
    free(f->params);
}

static uint32_t follow_lane(struct follower *f, uint64_t rollout, uint32_t lane)
{
    const struct rm_policy_plan *plan = &session.plan.policy[0];
    const size_t floats = plan->state_floats;
    float state[STATE_MAX] = {0}, next[STATE_MAX] = {0};
    uint32_t lasts = 0;
    if (floats)
        memcpy(state, row_at(rollout * STEPS).state + lane * floats, floats * sizeof(float));
    for (uint32_t t = 0; t < STEPS; t++) {
        const struct rm_row row = row_at(rollout * STEPS + t);
        if (row.flags[lane] & RM_FLAG_FIRST)
            memset(state, 0, sizeof state);
        const struct rm_net_input in = {
            .x = row.obs + lane * plan->obs_bytes, .batch = 1, .state = state, .next_state = next};
        const float value = rm_net_forward(f->space, f->params, &in)[0];
        assert_memory_equal(&row.value[lane], &value, sizeof value);
        memcpy(state, next, sizeof state);
        lasts += (row.flags[lane] & RM_FLAG_LAST) != 0;
    }
    const struct rm_row after = row_at((rollout + 1) * STEPS);
    if (floats && !(after.flags[lane] & RM_FLAG_FIRST))
        assert_memory_equal(after.state + lane * floats, state, floats * sizeof(float));
    return lasts;
}

static void what_the_learner_would_make_of_the_row(void **state)
{
    static const char *const layers[] = {"", ", {\"type\": \"gru\", \"units\": 5}",
                                         ", {\"type\": \"lstm\", \"units\": 5}"};
    (void)state;
    for (size_t i = 0; i < sizeof layers / sizeof layers[0]; i++) {
        open_session(layers[i], "");
        assert_int_equal(session.plan.policy[0].state_floats, i * UNITS);
        act(2);
        assert_int_equal(rm_ring_committed(&session.rings[0]) - session.rings[0].spec.first_index,
                         2 * STEPS);
        uint32_t lasts = 0;
        for (uint64_t r = 0; r < 2; r++) {
            struct follower f = follower(r + 1);
            for (uint32_t lane = 0; lane < WORLDS; lane++)
                lasts += follow_lane(&f, r, lane);
            unfollow(&f);
        }
        assert_true(lasts > 2 * WORLDS);
        rm_session_close(&session);
    }
}

/* Where the learner's weights are others by then, or others make the value, it is not kept. */
static void kept_only_where_it_is_the_learners(void **state)
{
    static const struct {
        const char *more;
        bool kept;
    } cases[] = {
        {"", true},
        {", \"rollout\": {\"max_policy_lag\": 1}", false},
        {", \"network\": {\"trunk\": \"separate\"}", false},
        {", \"algorithm\": {\"name\": \"appo\"}", false},
        {", \"algorithm\": {\"name\": \"dqn\"}, \"network\": {\"trunk\": \"shared\"}", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char json[512];
        snprintf(json, sizeof json,
                 "{\"name\": \"values\"%s, \"world\": {\"name\": \"count\"}%s%s}", cases[i].more,
                 strstr(cases[i].more, "algorithm") ? "" : ", \"algorithm\": {\"name\": \"ppo\"}",
                 strstr(cases[i].more, "network") ? "" : ", \"network\": {\"trunk\": \"shared\"}");
        assert_int_equal(rm_test_session(&session, json), 0);
        assert_int_equal(session.plan.policy[0].values, cases[i].kept);
        assert_int_equal(session.rings[0].spec.columns & RM_COLUMN_VALUE,
                         cases[i].kept ? RM_COLUMN_VALUE : 0);
        rm_session_close(&session);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_learner_would_make_of_the_row),
        cmocka_unit_test(kept_only_where_it_is_the_learners),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
