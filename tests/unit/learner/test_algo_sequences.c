/* A rollout as sequences of lanes: which rows a minibatch has, and that states go on where they
 * should, within a rollout and from one to the next. */
#include "learner/algo/sequences.h"
#include "shm/layout.h"
#include "tests/support/unit.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 4, LANES = 3, INPUTS = 2, ACTIONS = 2, ACT = 5, OWN = 6 };

static const struct rm_network_config config = {
    .layer_count = 1,
    .layers = {{.type = RM_LAYER_GRU, .units = ACT}},
    .trunk = RM_TRUNK_SEPARATE,
    .value_layer_count = 1,
    .value_layers = {{.type = RM_LAYER_LSTM, .units = OWN / 2}},
};
static const struct rm_net_shape shape = {
    .inputs = INPUTS, .actions = ACTIONS, .outputs_per_action = 1, .head = RM_HEAD_ACTOR_CRITIC};

struct fixture {
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *values, *all;
    struct rm_sequences s;
    struct rm_rollout rollout;
    float params[2048];
    float x[(2 * STEPS + 1) * LANES * INPUTS]; /* two rollouts and a row */
    uint8_t flags[(2 * STEPS + 1) * LANES];
    float state[LANES * ACT], valid[STEPS * LANES];
};

static struct fixture f;

static struct rm_net_workspace *workspace(enum rm_net_use use)
{
    struct rm_net_workspace *w;
    struct rm_error error;
    if (rm_net_workspace_create(&w, f.net, f.b, 2 * STEPS * LANES, 1, use, &error))
        fail_msg("%s", error.text);
    rm_net_prepare(w, f.params);
    return w;
}

static int make(void **unused)
{
    struct rm_error error;
    (void)unused;
    f = (struct fixture){0};
    assert_int_equal(rm_backend_cpu_create(&f.b, 1, "auto", &error), 0);
    assert_int_equal(rm_net_compile(&f.net, &config, &shape, &error), 0);
    assert_true(rm_net_param_count(f.net) < sizeof f.params / sizeof f.params[0]);
    f.b->ops->normals(f.b, 5, RM_STREAM_TEST, 1, 0, rm_net_param_count(f.net), f.params);
    f.b->ops->normals(f.b, 5, RM_STREAM_TEST, 2, 0, sizeof f.x / sizeof f.x[0], f.x);
    f.b->ops->normals(f.b, 5, RM_STREAM_TEST, 3, 0, LANES * ACT, f.state);
    /* lane 1 begins anew in the first rollout's row 2 and in the second's row 1 */
    f.flags[1 * LANES + 1] = RM_FLAG_LAST;
    f.flags[2 * LANES + 1] = RM_FLAG_FIRST;
    f.flags[(STEPS + 1) * LANES + 1] = RM_FLAG_FIRST;
    for (uint32_t i = 0; i < STEPS * LANES; i++)
        f.valid[i] = !(f.flags[i] & RM_FLAG_LAST);
    f.rollout = (struct rm_rollout){.steps = STEPS,
                                    .lanes = LANES,
                                    .inputs = INPUTS,
                                    .x = f.x,
                                    .flags = f.flags,
                                    .state = f.state,
                                    .valid = f.valid};
    assert_int_equal(rm_sequences_create(&f.s, &f.rollout, f.b, f.net, &error), 0);
    f.values = workspace(RM_NET_VALUE);
    f.all = workspace(RM_NET_INFER);
    return 0;
}

static int unmake(void **unused)
{
    (void)unused;
    rm_sequences_destroy(&f.s);
    rm_net_workspace_destroy(f.values);
    rm_net_workspace_destroy(f.all);
    rm_net_destroy(f.net);
    rm_backend_destroy(f.b);
    return 0;
}

static void a_minibatch_is_some_lanes_whole(void **unused)
{
    (void)unused;
    const uint32_t lanes[] = {2, 1};
    rm_sequences_begin(&f.s);
    const struct rm_sequence_batch b = rm_sequences_gather(&f.s, lanes, 2);
    const uint32_t rows[] = {2, 1, 5, 4, 8, 7, 11, 10}, samples[] = {2, 1, 5, 8, 7, 11, 10};
    const uint8_t restart[] = {0, 0, 0, 0, 0, 1, 0, 0};
    assert_int_equal(b.input.batch, 2 * STEPS);
    assert_int_equal(b.input.steps, STEPS);
    assert_memory_equal(b.input.index, rows, sizeof rows);
    assert_int_equal(b.samples, sizeof samples / sizeof samples[0]);
    assert_memory_equal(b.sample, samples, sizeof samples);
    for (uint32_t i = 0; i < sizeof restart; i++)
        assert_int_equal(b.input.restart[i] != 0, restart[i]);
    for (uint32_t i = 0; i < 2; i++)
        assert_memory_equal(b.input.state + i * (ACT + OWN), f.state + lanes[i] * ACT,
                            ACT * sizeof(float));
}

/* Values of `steps` steps from `step`, in passes of `most`. */
static void pass_over(uint32_t steps, uint32_t most, float *value)
{
    for (uint32_t step = 0, n; step < steps; step += n) {
        n = step < STEPS && step + most > STEPS ? STEPS - step : most;
        n = step + n > steps ? steps - step : n;
        const struct rm_net_input in = rm_sequences_pass(&f.s, step, n);
        memcpy(value + step * LANES, rm_net_forward(f.values, f.params, &in),
               n * LANES * sizeof *value);
        rm_sequences_passed(&f.s, step + n);
    }
}

/* The value's own state goes from rollout to rollout, past the successors' row. */
static void values_go_on(void **unused)
{
    (void)unused;
    static float want[2 * STEPS * LANES], got[(STEPS + 1) * LANES];
    uint8_t restart[2 * STEPS * LANES];
    for (uint32_t i = 0; i < sizeof restart; i++)
        restart[i] = f.flags[i] & RM_FLAG_FIRST;
    const struct rm_net_input in = {
        .x = f.x, .batch = 2 * STEPS * LANES, .steps = 2 * STEPS, .restart = restart};
    memcpy(want, rm_net_forward(f.values, f.params, &in), sizeof want);
    rm_sequences_begin(&f.s);
    pass_over(STEPS + 1, 3, got);
    assert_memory_equal(got, want, sizeof got);
    f.rollout.x += STEPS * LANES * INPUTS;
    f.rollout.flags += STEPS * LANES;
    rm_sequences_begin(&f.s);
    pass_over(STEPS, STEPS, got);
    assert_memory_equal(got, want + STEPS * LANES, STEPS * LANES * sizeof *got);
}

/* What is trained on is what acted: logits of a minibatch are those of the lanes' own steps. */
static void minibatches_begin_where_actors_did(void **unused)
{
    (void)unused;
    static float got[STEPS * 2][ACTIONS + 1];
    const uint32_t lanes[] = {0, 1};
    float now[2][ACT];
    struct rm_net_workspace *act = workspace(RM_NET_ACT);
    rm_sequences_begin(&f.s);
    const struct rm_sequence_batch b = rm_sequences_gather(&f.s, lanes, 2);
    memcpy(got, rm_net_forward(f.all, f.params, &b.input), sizeof got);
    memcpy(now, f.state, sizeof now);
    for (uint32_t t = 0; t < STEPS; t++) {
        for (uint32_t i = 0; i < 2; i++)
            if (f.flags[t * LANES + i] & RM_FLAG_FIRST)
                memset(now[i], 0, sizeof now[i]);
        const struct rm_net_input in = {
            .x = f.x + t * LANES * INPUTS, .batch = 2, .state = now[0], .next_state = now[0]};
        const float *logits = rm_net_forward(act, f.params, &in);
        for (uint32_t i = 0; i < 2; i++)
            assert_memory_equal(logits + i * ACTIONS, got[t * 2 + i], ACTIONS * sizeof *logits);
    }
    rm_net_workspace_destroy(act);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_minibatch_is_some_lanes_whole, make, unmake),
        cmocka_unit_test_setup_teardown(values_go_on, make, unmake),
        cmocka_unit_test_setup_teardown(minibatches_begin_where_actors_did, make, unmake),
    };
    return cmocka_run_group_tests_name("sequences", tests, NULL, NULL);
}
