/* Learning in tiles: the same bits for every number of threads, and the same for a forward pass of
 * many rows. Learning in chunks: the same sums as all rows at once. */
#include "tests/support/effort.h"
#include "tests/support/levels.h"
#include "tests/support/nets.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_MAX 1300u

static const uint32_t batches[] = {1, 31, 32, 64, 100, 512, 1024, BATCH_MAX};
#define BATCHES (sizeof batches / sizeof batches[0])

static size_t step(void)
{
    return rm_test_effort(1, 3);
}

struct squares {
    size_t row;
};

static void square_rows(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                        double sums[RM_NET_SUMS])
{
    const struct squares *s = self;
    (void)first;
    for (size_t i = 0; i < rows * s->row; i++) {
        d_out[i] = out[i];
        sums[1] += 0.5 * (double)out[i] * out[i];
    }
}

/* What a backend of some threads makes of a network and these rows. */
struct outcome {
    float *grads[BATCHES], *out[BATCHES];
    double sums[BATCHES];
};

static float *normals(struct rm_backend *b, uint32_t a, size_t n)
{
    float *p = b->ops->alloc(b, n + 1);
    assert_non_null(p);
    b->ops->normals(b, 23, RM_STREAM_TEST, a, 0, n, p);
    return p;
}

static void learn_with(const struct level_state *level, uint32_t threads,
                       const struct named_net *of, struct outcome *o)
{
    struct rm_backend *b;
    struct rm_error error;
    struct rm_net *net;
    struct rm_net_workspace *train, *infer;
    assert_int_equal(rm_backend_cpu_create_for(&b, threads, level->isa, level->compute, &error), 0);
    assert_int_equal(rm_net_compile(&net, &of->config, &of->shape, &error), 0);
    assert_int_equal(rm_net_workspace_create(&train, net, b, BATCH_MAX, 1, RM_NET_TRAIN, &error),
                     0);
    assert_int_equal(rm_net_workspace_create(&infer, net, b, BATCH_MAX, 1, RM_NET_INFER, &error),
                     0);
    size_t n = rm_net_param_count(net), outputs = rm_net_outputs(net);
    float *params = normals(b, 1, n), *x = normals(b, 2, (size_t)BATCH_MAX * of->shape.inputs);
    float *noise = normals(b, 3, rm_net_noise_count(net));
    uint32_t index[BATCH_MAX];
    for (uint32_t i = 0; i < BATCH_MAX; i++)
        index[i] = i * 7 % BATCH_MAX;
    for (size_t i = 0; i < n; i++)
        params[i] *= 0.2f;
    rm_net_prepare(train, params);
    rm_net_prepare(infer, params);
    for (size_t k = 0; k < BATCHES; k += step()) {
        struct squares squares = {outputs};
        const struct rm_net_loss loss = {square_rows, &squares};
        const struct rm_net_input input = {
            .x = x, .index = index, .batch = batches[k], .noise = of->noise ? noise : NULL};
        double sums[RM_NET_SUMS];
        o->grads[k] = calloc(n, sizeof(float));
        o->out[k] = calloc(batches[k] * outputs, sizeof(float));
        rm_net_learn(train, params, &input, &loss, o->grads[k], sums);
        o->sums[k] = sums[1];
        memcpy(o->out[k], rm_net_forward(infer, params, &input),
               batches[k] * outputs * sizeof(float));
        assert_memory_equal(o->out[k], rm_net_infer(train, params, &input),
                            batches[k] * outputs * sizeof(float));
    }
    float *owned[] = {params, x, noise};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        b->ops->release(b, owned[i]);
    rm_net_workspace_destroy(train);
    rm_net_workspace_destroy(infer);
    rm_net_destroy(net);
    rm_backend_destroy(b);
}

static void discard(struct outcome *o)
{
    for (size_t k = 0; k < BATCHES; k += step()) {
        free(o->grads[k]);
        free(o->out[k]);
    }
}

static void threads_do_not_matter(void **state)
{
    const struct level_state *level = *state;
    for (size_t i = 0; i < test_net_count; i++) {
        const struct named_net *of = &test_nets[i];
        struct rm_net *net;
        struct rm_error error;
        struct outcome one, some;
        if (of->quantiles)
            continue;
        assert_int_equal(rm_net_compile(&net, &of->config, &of->shape, &error), 0);
        size_t n = rm_net_param_count(net), outputs = rm_net_outputs(net);
        rm_net_destroy(net);
        learn_with(level, 1, of, &one);
        for (uint32_t threads = 2; threads <= rm_test_effort(5, 2); threads += 3) {
            learn_with(level, threads, of, &some);
            for (size_t k = 0; k < BATCHES; k += step()) {
                if (memcmp(one.grads[k], some.grads[k], n * sizeof(float)) != 0)
                    fail_msg("%s: gradients of %u rows differ with %u threads", of->name,
                             batches[k], threads);
                assert_memory_equal(one.out[k], some.out[k], batches[k] * outputs * sizeof(float));
                assert_true(one.sums[k] == some.sums[k]);
            }
            discard(&some);
        }
        discard(&one);
    }
}

static void count_alive(void *count)
{
    ++*(unsigned *)count;
}

/* Too many parameters for tiles, with rows that do not fill the last chunk. Large operations are
 * signs of life. */
static void chunks_add_up(void **state)
{
    const struct level_state *level = *state;
    const struct rm_network_config config = {
        .layer_count = 6,
        .layers = {{.type = RM_LAYER_CONV2D, .units = 8, .kernel = 3, .stride = 1, .padding = 1},
                   {.type = RM_LAYER_RELU},
                   {.type = RM_LAYER_LINEAR, .units = 700},
                   {.type = RM_LAYER_TANH},
                   {.type = RM_LAYER_LINEAR, .units = 24},
                   {.type = RM_LAYER_LAYER_NORM}}};
    const struct rm_net_shape shape = {.inputs = 3 * 5 * 6,
                                       .actions = 4,
                                       .outputs_per_action = 1,
                                       .dims = 3,
                                       .dim = {3, 5, 6},
                                       .head = RM_HEAD_ACTOR_CRITIC};
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *whole = NULL, *parts = NULL;
    struct rm_error error;
    double whole_sums[RM_NET_SUMS], parts_sums[RM_NET_SUMS];
    assert_int_equal(rm_backend_cpu_create_for(&b, 2, level->isa, level->compute, &error), 0);
    if (rm_net_compile(&net, &config, &shape, &error))
        fail_msg("%s", error.text);
    size_t n = rm_net_param_count(net), outputs = rm_net_outputs(net);
    assert_true(!rm_net_workspace_create(&whole, net, b, BATCH_MAX, 1, RM_NET_TRAIN, &error) &&
                !rm_net_workspace_create(&parts, net, b, BATCH_MAX, 1, RM_NET_LEARN, &error));
    assert_true(rm_net_workspace_bytes(parts) < rm_net_workspace_bytes(whole));
    float *params = normals(b, 1, n), *x = normals(b, 2, (size_t)BATCH_MAX * shape.inputs);
    float *whole_grads = normals(b, 3, n), *parts_grads = normals(b, 4, n);
    for (size_t i = 0; i < n; i++)
        params[i] *= 0.1f;
    for (size_t k = 0; k < BATCHES; k += step()) {
        struct squares squares = {outputs};
        const struct rm_net_loss loss = {square_rows, &squares};
        const struct rm_net_input input = {.x = x, .batch = batches[k]};
        rm_net_prepare(whole, params);
        rm_net_prepare(parts, params);
        rm_net_learn(whole, params, &input, &loss, whole_grads, whole_sums);
        unsigned alive = 0;
        b->alive = count_alive;
        b->alive_user = &alive;
        rm_net_learn(parts, params, &input, &loss, parts_grads, parts_sums);
        b->alive = NULL;
        assert_true(alive >= batches[k] / 512 * 4);
        double change[2];
        b->ops->change(b, parts_grads, whole_grads, n, change);
        assert_true(change[0] <= 1e-10 * change[1]);
        assert_true(parts_sums[1] > whole_sums[1] * (1 - 1e-6) &&
                    parts_sums[1] < whole_sums[1] * (1 + 1e-6));
    }
    float *owned[] = {params, x, whole_grads, parts_grads};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        b->ops->release(b, owned[i]);
    rm_net_workspace_destroy(whole);
    rm_net_workspace_destroy(parts);
    rm_net_destroy(net);
    rm_backend_destroy(b);
}

enum { LANES = 48, STEPS_MAX = 40 };

/* Recurrent networks in tiles of lanes, states handed on and restarts among them: rows have the
 * bits of a pass of all, gradients its sums. */
static void lanes_add_up(void **state)
{
    const struct level_state *level = *state;
    const struct rm_network_config config = {.layer_count = 4,
                                             .layers = {{.type = RM_LAYER_LINEAR, .units = 20},
                                                        {.type = RM_LAYER_GELU},
                                                        {.type = RM_LAYER_LSTM, .units = 24},
                                                        {.type = RM_LAYER_GRU, .units = 17}},
                                             .trunk = RM_TRUNK_SEPARATE};
    const struct rm_net_shape shape = {
        .inputs = 5, .actions = 3, .outputs_per_action = 1, .head = RM_HEAD_ACTOR_CRITIC};
    static const uint32_t steps[] = {1, 7, 16, STEPS_MAX};
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *whole = NULL, *tiles = NULL;
    struct rm_error error;
    const uint32_t most = LANES * STEPS_MAX;
    assert_int_equal(rm_backend_cpu_create_for(&b, 2, level->isa, level->compute, &error), 0);
    assert_int_equal(rm_net_compile(&net, &config, &shape, &error), 0);
    assert_true(!rm_net_workspace_create(&whole, net, b, most, 1, RM_NET_TRAIN, &error) &&
                !rm_net_workspace_create(&tiles, net, b, most, 1, RM_NET_TRAIN, &error));
    const size_t n = rm_net_param_count(net), outputs = rm_net_outputs(net);
    const size_t states = rm_net_state_count(net);
    float *params = normals(b, 1, n), *x = normals(b, 2, (size_t)most * shape.inputs);
    float *whole_grads = normals(b, 3, n), *tile_grads = normals(b, 4, n);
    float *before = normals(b, 5, LANES * states), *d_out = normals(b, 6, most * outputs);
    float *after[2] = {normals(b, 7, LANES * states), normals(b, 8, LANES * states)};
    static uint8_t restart[LANES * STEPS_MAX];
    for (uint32_t i = 0; i < most; i++)
        restart[i] = i % 11 == 3;
    for (size_t i = 0; i < n; i++)
        params[i] *= 0.3f;
    rm_net_prepare(whole, params);
    rm_net_prepare(tiles, params);
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
        struct squares squares = {outputs};
        const struct rm_net_loss loss = {square_rows, &squares};
        struct rm_net_input input = {.x = x,
                                     .batch = LANES * steps[k],
                                     .steps = steps[k],
                                     .state = before,
                                     .next_state = after[0],
                                     .restart = restart};
        double whole_sums[RM_NET_SUMS] = {0}, tile_sums[RM_NET_SUMS];
        const float *out = rm_net_forward(whole, params, &input);
        loss.rows(loss.self, 0, input.batch, out, d_out, whole_sums);
        rm_net_backward(whole, params, &input, d_out, whole_grads);
        input.next_state = after[1];
        rm_net_learn(tiles, params, &input, &loss, tile_grads, tile_sums);
        assert_memory_equal(after[0], after[1], LANES * states * sizeof(float));
        assert_memory_equal(out, rm_net_infer(tiles, params, &input),
                            input.batch * outputs * sizeof(float));
        double change[2];
        b->ops->change(b, tile_grads, whole_grads, n, change);
        assert_true(change[0] <= 1e-10 * change[1]);
        assert_true(fabs(tile_sums[1] / whole_sums[1] - 1) < 1e-9);
    }
    float *owned[] = {params, x, whole_grads, tile_grads, before, d_out, after[0], after[1]};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        b->ops->release(b, owned[i]);
    rm_net_workspace_destroy(whole);
    rm_net_workspace_destroy(tiles);
    rm_net_destroy(net);
    rm_backend_destroy(b);
}

enum { SEATS = 32, WIDE = 17, OF_STATE = 1 + SEATS * WIDE, EMPTY = 32, WHOLE = 75 };

/* The states of a whole tile may have no tokens: then the tile's gradients of the layers of tokens
 * are zeros, whatever the memory for them had before. */
static void tiles_may_be_empty(void **state)
{
    const struct level_state *level = *state;
    const struct rm_network_config config = {
        .layer_count = 2,
        .layers = {{.type = RM_LAYER_LINEAR, .units = 12}, {.type = RM_LAYER_TANH}},
        .input_count = 1,
        .inputs = {{.name = "list", .layer_count = 3}},
        .input_layers = {{.type = RM_LAYER_LINEAR, .units = 128},
                         {.type = RM_LAYER_TANH},
                         {.type = RM_LAYER_MEAN_POOL}}};
    const struct rm_net_shape shape = {.inputs = OF_STATE,
                                       .actions = 3,
                                       .outputs_per_action = 1,
                                       .head = RM_HEAD_ACTOR_CRITIC,
                                       .observations = 1,
                                       .observation = {{.name = "list",
                                                        .counts = 1,
                                                        .words = SEATS * WIDE,
                                                        .item = WIDE,
                                                        .dims = 2,
                                                        .dim = {SEATS, WIDE}}}};
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *whole = NULL, *tiles = NULL;
    struct rm_error error;
    assert_int_equal(rm_backend_cpu_create_for(&b, 2, level->isa, level->compute, &error), 0);
    if (rm_net_compile(&net, &config, &shape, &error))
        fail_msg("%s", error.text);
    assert_true(!rm_net_workspace_create(&whole, net, b, WHOLE, 1, RM_NET_TRAIN, &error) &&
                !rm_net_workspace_create(&tiles, net, b, WHOLE, 1, RM_NET_TRAIN, &error));
    const size_t n = rm_net_param_count(net), outputs = rm_net_outputs(net);
    float *params = normals(b, 1, n), *x = normals(b, 2, (size_t)WHOLE * OF_STATE);
    float *whole_grads = normals(b, 3, n), *tile_grads = normals(b, 4, n);
    float *d_out = normals(b, 5, WHOLE * outputs);
    rm_net_prepare(whole, params);
    rm_net_prepare(tiles, params);
    for (uint32_t empty = 0; empty <= 2 * EMPTY; empty += EMPTY) {
        struct squares squares = {outputs};
        const struct rm_net_loss loss = {square_rows, &squares};
        const struct rm_net_input input = {.x = x, .batch = WHOLE};
        double sums[RM_NET_SUMS] = {0}, change[2];
        for (uint32_t i = 0; i < WHOLE; i++)
            x[i * OF_STATE] = i < empty ? 0.0f : (float)(1 + i % SEATS);
        const float *out = rm_net_forward(whole, params, &input);
        loss.rows(loss.self, 0, WHOLE, out, d_out, sums);
        rm_net_backward(whole, params, &input, d_out, whole_grads);
        rm_net_learn(tiles, params, &input, &loss, tile_grads, sums);
        b->ops->change(b, tile_grads, whole_grads, n, change);
        assert_true(change[0] <= 1e-10 * change[1]);
    }
    float *owned[] = {params, x, whole_grads, tile_grads, d_out};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        b->ops->release(b, owned[i]);
    rm_net_workspace_destroy(whole);
    rm_net_workspace_destroy(tiles);
    rm_net_destroy(net);
    rm_backend_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(chunks_add_up),
        cmocka_unit_test(lanes_add_up),
        cmocka_unit_test(tiles_may_be_empty),
    };
    return run_on_levels_and_bf16(tests, sizeof tests / sizeof tests[0]);
}
