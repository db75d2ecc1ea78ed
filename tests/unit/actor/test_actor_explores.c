/* Who explores, and how: by the noise of noisy layers, the same for all lanes of a vector step
 * however they are split over actors; frozen opponents not at all. */
#include "actor/actor.h"
#include "shm/atomic.h"
#include "tests/support/acting.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 20, ACTORS = 2, SEED = 6 };

static struct rm_session session;

static void act(void)
{
    for (uint32_t i = 0; i < session.objects.actors; i++) {
        struct rm_error error = {""};
        struct rm_actor *actor;
        struct rm_duty duty;
        if (rm_actor_create(&actor, &session, i, &duty, &error))
            fail_msg("%s", error.text);
        while (rm_ring_committed(rm_session_ring(&session, i, 0)) < ROWS)
            assert_true(rm_test_turn(&duty) > 0);
        rm_actor_destroy(actor);
    }
}

/* Answers by one forward pass each. */
struct by_hand {
    struct rm_net *net;
    struct rm_backend *backend;
    struct rm_net_workspace *space;
    float *params, *noise, *state, *next;
};

static struct by_hand open_hand(void)
{
    const struct rm_policy_plan *plan = &session.plan.policy[0];
    struct rm_error error = {""};
    struct rm_weights_stamp stamp;
    struct by_hand h = {.net = rm_test_net(&session.experiment, plan),
                        .params = malloc(plan->param_count * sizeof(float))};
    h.noise = malloc(rm_net_noise_count(h.net) * sizeof(float));
    h.state = calloc(plan->state_floats + 1, sizeof(float));
    h.next = calloc(plan->state_floats + 1, sizeof(float));
    assert_int_equal(rm_backend_cpu_create(&h.backend, 1, "auto", &error), 0);
    assert_int_equal(
        rm_net_workspace_create(&h.space, h.net, h.backend, 1, 0, RM_NET_INFER, &error), 0);
    assert_int_equal(
        rm_weights_read(&session.weights[0], h.params, plan->param_count, &stamp, NULL), 1);
    rm_net_prepare(h.space, h.params);
    return h;
}

static void close_hand(struct by_hand *h)
{
    rm_net_workspace_destroy(h->space);
    rm_backend_destroy(h->backend);
    rm_net_destroy(h->net);
    free(h->params);
    free(h->noise);
    free(h->state);
    free(h->next);
}

/* The better of two actions in a lane of a row, with the noise of its vector step or without. */
static int32_t better(struct by_hand *h, const struct rm_row *row, uint32_t lane, bool noisy)
{
    const struct rm_policy_plan *plan = &session.plan.policy[0];
    if (noisy)
        h->backend->ops->normals(h->backend, SEED, RM_STREAM_ACT_NOISE, 0, row->index,
                                 rm_net_noise_count(h->net), h->noise);
    const struct rm_net_input in = {
        .x = row->obs + lane * plan->obs_bytes,
        .batch = 1,
        .noise = noisy ? h->noise : NULL,
        .state = row->state ? row->state + (size_t)lane * plan->state_floats : NULL,
        .next_state = row->state ? h->next : NULL};
    const float *q = rm_net_forward(h->space, h->params, &in);
    return q[1] > q[0];
}

struct counts {
    uint32_t answers, noisy, means; /* of all, as with noise, and as with the means */
};

static struct counts explore(const char *algorithm, const char *layer, uint32_t worlds, bool noise)
{
    char json[1024];
    struct counts c = {0};
    snprintf(
        json, sizeof json,
        "{\"name\": \"explores\", \"seed\": %d, \"world\": {\"name\": \"count\","
        " \"options\": {\"length\": 6, \"max_steps\": 9}},"
        " \"actor\": {\"count\": %d, \"worlds\": %u, \"noise\": %s},"
        " \"epsilon\": {\"start\": 0, \"end\": 0}, \"limiter\": {\"updates_per_step\": 0},"
        " \"algorithm\": {\"name\": \"%s\"}, \"network\": {\"head\": {\"noisy\": true},"
        " \"sigma0\": 2, \"layers\": [{\"type\": \"%s\", \"units\": 8}, {\"type\": \"tanh\"}]}}",
        SEED, ACTORS, worlds, noise ? "true" : "false", algorithm, layer);
    assert_int_equal(rm_test_session(&session, json), 0);
    rm_test_publish_random(&session, 7, 1);
    act();
    struct by_hand h = open_hand();
    for (uint32_t a = 0; a < ACTORS; a++)
        for (uint64_t i = 0; i < ROWS; i++) {
            const struct rm_row row = rm_ring_row(&session.rings[a], i);
            for (uint32_t lane = 0; lane < worlds / ACTORS; lane++) {
                if (row.flags[lane] & RM_FLAG_LAST)
                    continue;
                c.answers++;
                c.noisy += row.action[lane] == better(&h, &row, lane, true);
                c.means += row.action[lane] == better(&h, &row, lane, false);
            }
        }
    close_hand(&h);
    rm_session_close(&session);
    return c;
}

/* Few lanes and many, which are gathered and are not; and a network with a memory. */
static void actors_explore_by_noise(void **state)
{
    static const struct {
        const char *algorithm, *layer;
        uint32_t worlds;
    } cases[] = {{"dqn", "noisy_linear", 6}, {"dqn", "noisy_linear", 140}, {"r2d2", "gru", 6}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct counts c = explore(cases[i].algorithm, cases[i].layer, cases[i].worlds, true);
        assert_true(c.answers > 0);
        assert_int_equal(c.noisy, c.answers);
        assert_true(c.means < c.answers);
        const struct counts still =
            explore(cases[i].algorithm, cases[i].layer, cases[i].worlds, false);
        assert_int_equal(still.means, still.answers);
        assert_true(still.noisy < still.answers);
    }
}

/* With epsilon 1 the trained policy does anything, its opponent what it thinks best. */
static void frozen_opponents_do_not_explore(void **state)
{
    uint32_t ones[2] = {0}, answers[2] = {0};
    (void)state;
    assert_int_equal(
        rm_test_session(&session,
                        "{\"name\": \"opponents\", \"seed\": 6, \"world\": {\"name\": \"count\","
                        " \"options\": {\"length\": 6, \"max_steps\": 9, \"agents\": 2}},"
                        " \"actor\": {\"count\": 1, \"worlds\": 10},"
                        " \"epsilon\": {\"start\": 1, \"end\": 1},"
                        " \"limiter\": {\"updates_per_step\": 0},"
                        " \"policy\": {\"frozen\": [{\"policy\": 1, \"of\": 0}]},"
                        " \"network\": {\"layers\": [{\"type\": \"linear\", \"units\": 8}]}}"),
        0);
    for (uint32_t p = 0; p < 2; p++)
        rm_test_publish_action(&session, p, 1, 1, 0);
    act();
    for (uint32_t p = 0; p < 2; p++)
        for (uint64_t i = 0; i < ROWS; i++) {
            const struct rm_row row = rm_ring_row(rm_session_ring(&session, 0, p), i);
            for (uint32_t lane = 0; lane < 10; lane++) {
                if (row.flags[lane] & RM_FLAG_LAST)
                    continue;
                answers[p]++;
                ones[p] += row.action[lane] == 1;
            }
        }
    assert_true(ones[0] > answers[0] / 4 && ones[0] < answers[0] - answers[0] / 4);
    assert_int_equal(ones[1], answers[1]);
    assert_true(answers[1] > 0);
    rm_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(actors_explore_by_noise),
        cmocka_unit_test(frozen_opponents_do_not_explore),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
