/* Recurrent networks: what is remembered, by whom, and until when. Gradients are in
 * test_net_gradients.c. */
#include "tests/support/levels.h"

#include "learner/net/net.h"

#include <stdlib.h>
#include <string.h>

/* Lanes of more than one group (RM_GROUP_ROWS), the last of them incomplete. */
enum { STEPS = 6, LANES = 291, INPUTS = 5, ACTIONS = 3 };

/* Policy: GRU of 7 and LSTM of 9; value: LSTM of 4. */
static const struct rm_network_config config = {
    .layer_count = 4,
    .layers = {{.type = RM_LAYER_LINEAR, .units = 20},
               {.type = RM_LAYER_TANH},
               {.type = RM_LAYER_GRU, .units = 7},
               {.type = RM_LAYER_LSTM, .units = 9}},
    .trunk = RM_TRUNK_SEPARATE,
    .value_layer_count = 1,
    .value_layers = {{.type = RM_LAYER_LSTM, .units = 4}},
};
/* Wide enough for the work to be shared by threads. */
static const struct rm_network_config wide = {
    .layer_count = 2,
    .layers = {{.type = RM_LAYER_GRU, .units = 150}, {.type = RM_LAYER_LSTM, .units = 130}},
};
static const struct rm_net_shape shape = {
    .inputs = INPUTS, .actions = ACTIONS, .outputs_per_action = 1, .head = RM_HEAD_ACTOR_CRITIC};

enum { ACT_STATE = 7 + 2 * 9, VALUE_STATE = 2 * 4, STATE = ACT_STATE + VALUE_STATE };

struct fixture {
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *whole, *one;
    float *params, *x, *state;
    uint8_t restart[STEPS * LANES];
};

static float *normals(struct rm_backend *b, uint32_t a, size_t n)
{
    float *p = b->ops->alloc(b, n);
    assert_non_null(p);
    b->ops->normals(b, 23, RM_STREAM_TEST, a, 0, n, p);
    return p;
}

static struct rm_net_workspace *workspace(const struct fixture *f, uint32_t batch,
                                          enum rm_net_use use)
{
    struct rm_net_workspace *w;
    struct rm_error error;
    if (rm_net_workspace_create(&w, f->net, f->b, batch, 1, use, &error))
        fail_msg("%s", error.text);
    rm_net_prepare(w, f->params);
    return w;
}

static void make(struct fixture *f, const struct rm_network_config *of, struct rm_backend *b)
{
    struct rm_error error;
    f->b = b;
    assert_int_equal(rm_net_compile(&f->net, of, &shape, &error), 0);
    f->params = normals(b, 1, rm_net_param_count(f->net));
    f->x = normals(b, 2, STEPS * LANES * INPUTS);
    f->state = normals(b, 3, (size_t)LANES * rm_net_state_count(f->net));
    for (size_t i = 0; i < sizeof f->restart; i++)
        f->restart[i] = i % 5 == 2;
    f->whole = workspace(f, STEPS * LANES, RM_NET_INFER);
    f->one = workspace(f, LANES, RM_NET_INFER);
}

static void unmake(struct fixture *f)
{
    rm_net_workspace_destroy(f->whole);
    rm_net_workspace_destroy(f->one);
    rm_net_destroy(f->net);
    f->b->ops->release(f->b, f->params);
    f->b->ops->release(f->b, f->x);
    f->b->ops->release(f->b, f->state);
}

static void on_level(void **state, void (*check)(struct fixture *f))
{
    struct fixture f;
    make(&f, &config, ((struct level_state *)*state)->backend);
    check(&f);
    unmake(&f);
}

static void sizes(struct fixture *f)
{
    assert_true(rm_net_is_recurrent(f->net));
    assert_int_equal(rm_net_state_count(f->net), STATE);
    assert_int_equal(rm_net_value_state_count(f->net), VALUE_STATE);
}

static void counts_of_states(void **state)
{
    on_level(state, sizes);
}

/* All steps in one call, and a call a step that hands the state on in place. */
static void step_by_step(struct fixture *f)
{
    static float want[STEPS * LANES * (ACTIONS + 1)], last[LANES * STATE], now[LANES * STATE];
    struct rm_net_input input = {.x = f->x,
                                 .batch = STEPS * LANES,
                                 .steps = STEPS,
                                 .state = f->state,
                                 .next_state = last,
                                 .restart = f->restart};
    memcpy(want, rm_net_forward(f->whole, f->params, &input), sizeof want);
    memcpy(now, f->state, sizeof now);
    for (uint32_t t = 0; t < STEPS; t++) {
        input = (struct rm_net_input){.x = f->x + t * LANES * INPUTS,
                                      .batch = LANES,
                                      .state = now,
                                      .next_state = now,
                                      .restart = f->restart + t * LANES};
        const float *got = rm_net_forward(f->one, f->params, &input);
        assert_memory_equal(got, want + t * LANES * (ACTIONS + 1),
                            LANES * (ACTIONS + 1) * sizeof *got);
    }
    assert_memory_equal(now, last, sizeof last);
}

static void steps_at_once_or_one_by_one(void **state)
{
    on_level(state, step_by_step);
}

/* Lanes [first, first + n) as a batch of their own. */
static void some_lanes(struct fixture *f)
{
    static float want[STEPS * LANES][ACTIONS + 1], x[STEPS * LANES * INPUTS];
    static uint8_t restart[STEPS * LANES];
    struct rm_net_input input = {.x = f->x,
                                 .batch = STEPS * LANES,
                                 .steps = STEPS,
                                 .state = f->state,
                                 .restart = f->restart};
    memcpy(want, rm_net_forward(f->whole, f->params, &input), sizeof want);
    static const uint32_t counts[] = {1, 2, 16, 34};
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        uint32_t n = counts[k], first = (LANES - n) / 2;
        for (uint32_t t = 0; t < STEPS; t++) {
            memcpy(x + t * n * INPUTS, f->x + (t * LANES + first) * INPUTS, n * INPUTS * sizeof *x);
            memcpy(restart + t * n, f->restart + t * LANES + first, n);
        }
        input = (struct rm_net_input){.x = x,
                                      .batch = STEPS * n,
                                      .steps = STEPS,
                                      .state = f->state + first * STATE,
                                      .restart = restart};
        const float *got = rm_net_forward(f->whole, f->params, &input);
        for (uint32_t t = 0; t < STEPS; t++)
            if (memcmp(got + t * n * (ACTIONS + 1), want[t * LANES + first], n * sizeof want[0]) !=
                0)
                fail_msg("%u lanes differ from the same among %u at step %u", n, LANES, t);
    }
}

static void lanes_do_not_meet(void **state)
{
    on_level(state, some_lanes);
}

/* Who acts has neither the value's parameters nor its state. */
static void acting(struct fixture *f)
{
    static float want[LANES][ACTIONS + 1], next[LANES][STATE];
    static float mine[LANES][ACT_STATE], after[LANES][ACT_STATE];
    struct rm_net_workspace *act = workspace(f, LANES, RM_NET_ACT);
    struct rm_net_input input = {
        .x = f->x, .batch = LANES, .state = f->state, .next_state = next[0]};
    memcpy(want, rm_net_forward(f->one, f->params, &input), sizeof want);
    for (uint32_t lane = 0; lane < LANES; lane++)
        memcpy(mine[lane], f->state + lane * STATE, sizeof mine[lane]);
    input.state = mine[0];
    input.next_state = after[0];
    const float *got = rm_net_forward(act, f->params, &input);
    for (uint32_t lane = 0; lane < LANES; lane++) {
        assert_memory_equal(got + lane * ACTIONS, want[lane], ACTIONS * sizeof *got);
        assert_memory_equal(after[lane], next[lane], sizeof after[lane]);
    }
    rm_net_workspace_destroy(act);
}

static void acting_keeps_its_own_state(void **state)
{
    on_level(state, acting);
}

/* No state given, zeros given, or any state with a restart are one and the same. */
static void begin(struct fixture *f)
{
    static float want[LANES][ACTIONS + 1], zeros[LANES * STATE];
    static uint8_t all[LANES];
    memset(all, 1, sizeof all);
    struct rm_net_input input = {.x = f->x, .batch = LANES};
    memcpy(want, rm_net_forward(f->one, f->params, &input), sizeof want);
    input.state = zeros;
    assert_memory_equal(rm_net_forward(f->one, f->params, &input), want, sizeof want);
    input.state = f->state;
    assert_memory_not_equal(rm_net_forward(f->one, f->params, &input), want, sizeof want);
    input.restart = all;
    assert_memory_equal(rm_net_forward(f->one, f->params, &input), want, sizeof want);
}

static void beginnings(void **state)
{
    on_level(state, begin);
}

static void gradient_with(const struct level_state *level, uint32_t threads, float *grads)
{
    struct rm_error error;
    struct rm_backend *b;
    struct fixture f;
    if (rm_backend_cpu_create_for(&b, threads, level->isa, level->compute, &error))
        fail_msg("%s", error.text);
    make(&f, &wide, b);
    struct rm_net_workspace *train = workspace(&f, STEPS * LANES, RM_NET_TRAIN);
    const struct rm_net_input input = {
        .x = f.x, .batch = STEPS * LANES, .steps = STEPS, .state = f.state, .restart = f.restart};
    float *d_out = normals(b, 4, STEPS * LANES * (ACTIONS + 1));
    rm_net_forward(train, f.params, &input);
    rm_net_backward(train, f.params, &input, d_out, grads);
    b->ops->release(b, d_out);
    rm_net_workspace_destroy(train);
    unmake(&f);
    rm_backend_destroy(b);
}

static void threads_do_not_matter(void **state)
{
    const struct level_state *level = *state;
    struct rm_net *net;
    struct rm_error error;
    assert_int_equal(rm_net_compile(&net, &wide, &shape, &error), 0);
    size_t n = rm_net_param_count(net);
    rm_net_destroy(net);
    float *one = malloc(n * sizeof *one), *three = malloc(n * sizeof *three);
    gradient_with(level, 1, one);
    gradient_with(level, 3, three);
    assert_memory_equal(one, three, n * sizeof *one);
    free(one);
    free(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_states),  cmocka_unit_test(steps_at_once_or_one_by_one),
        cmocka_unit_test(lanes_do_not_meet), cmocka_unit_test(acting_keeps_its_own_state),
        cmocka_unit_test(beginnings),        cmocka_unit_test(threads_do_not_matter),
    };
    return run_on_levels_and_bf16(tests, sizeof tests / sizeof tests[0]);
}
