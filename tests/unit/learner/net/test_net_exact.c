/* To the bit: a row's result does not depend on the batch that it is in, and nothing depends on the
 * number of threads. */
#include "tests/support/effort.h"
#include "tests/support/levels.h"
#include "tests/support/nets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct named_net cartpole_net = {
    "cartpole",
    {.layer_count = 4,
     .layers = {{.type = RM_LAYER_LINEAR, .units = 64, .cosines = 0},
                {.type = RM_LAYER_RELU, .units = 0, .cosines = 0},
                {.type = RM_LAYER_LINEAR, .units = 64, .cosines = 0},
                {.type = RM_LAYER_TANH, .units = 0, .cosines = 0}}},
    {.inputs = 4, .actions = 2, .outputs_per_action = 1},
    0,
    0,
    false};

static const uint32_t batches[] = {1, 2, 3, 4, 5, 31, 33, 64, 100, 768};
#define BATCHES   (sizeof batches / sizeof batches[0])
#define BATCH_MAX 768u

static float *normals(struct rm_backend *b, uint32_t a, size_t n)
{
    float *p = b->ops->alloc(b, n + 1);
    assert_non_null(p);
    b->ops->normals(b, 11, RM_STREAM_TEST, a, 0, n, p);
    return p;
}

static float *uniforms(struct rm_backend *b, uint32_t a, size_t n)
{
    float *p = b->ops->alloc(b, n + 1);
    assert_non_null(p);
    b->ops->uniforms(b, 11, RM_STREAM_TEST, a, 0, n, p);
    return p;
}

static void rows_alone(struct rm_backend *b, const struct named_net *of, bool training)
{
    struct rm_net *net;
    struct rm_net_workspace *all, *some;
    struct rm_error error;
    uint32_t q = of->quantiles ? of->quantiles : 1;
    assert_int_equal(rm_net_compile(&net, &of->config, &of->shape, &error), 0);
    assert_int_equal(rm_net_workspace_create(&all, net, b, BATCH_MAX, q, training, &error), 0);
    assert_int_equal(rm_net_workspace_create(&some, net, b, BATCH_MAX, q, false, &error), 0);
    size_t in = of->shape.inputs, out = (size_t)rm_net_outputs(net) * q;
    float *params = b->ops->alloc(b, rm_net_param_count(net));
    rm_net_init(net, params, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
    float *x = normals(b, 1, BATCH_MAX * in);
    test_net_input(of, net, x, BATCH_MAX * in, NULL);
    float *tau = uniforms(b, 2, (size_t)BATCH_MAX * q);
    float *noise = normals(b, 3, rm_net_noise_count(net));
    struct rm_net_input input = {.x = x,
                                 .batch = BATCH_MAX,
                                 .tau = of->quantiles ? tau : NULL,
                                 .quantiles = of->quantiles,
                                 .noise = of->noise ? noise : NULL};
    rm_net_prepare(all, params);
    rm_net_prepare(some, params);
    const float *want = rm_net_forward(all, params, &input);
    for (size_t i = 0; i < BATCHES; i++) {
        uint32_t n = batches[i];
        for (uint32_t first = 0; first + n <= BATCH_MAX; first += 97 * rm_test_effort(1, 9)) {
            input.x = x + first * in;
            input.tau = of->quantiles ? tau + (size_t)first * q : NULL;
            input.batch = n;
            const float *got = rm_net_forward(some, params, &input);
            if (memcmp(got, want + first * out, n * out * sizeof *got) != 0)
                fail_msg("%s: rows %u to %u differ from the same rows among %u", of->name, first,
                         first + n, BATCH_MAX);
        }
    }
    b->ops->release(b, params);
    b->ops->release(b, x);
    b->ops->release(b, tau);
    b->ops->release(b, noise);
    rm_net_workspace_destroy(all);
    rm_net_workspace_destroy(some);
    rm_net_destroy(net);
}

static void forward_of_a_row(void **state)
{
    struct level_state *level = *state;
    rows_alone(level->backend, &cartpole_net, false);
    rows_alone(level->backend, &treasurehunt_net, true);
    for (size_t i = 0; i < test_net_count; i++)
        rows_alone(level->backend, &test_nets[i], false);
}

/* Every width of layer from 1 to 200 and some inner sizes: forward and dx of 1 to 40 rows, each as
 * in 40 rows. */
static void products_of_a_row(void **state)
{
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    enum { ROWS = 40, WIDTH = 200 };
    static const uint32_t inner[] = {1, 4, 17, 64, 250};
    for (size_t k = 0; k < sizeof inner / sizeof inner[0]; k++) {
        uint32_t in = inner[k];
        float *x = normals(b, 1, ROWS * in), *w = normals(b, 2, WIDTH * in);
        float *bias = normals(b, 3, WIDTH), *packed = b->ops->alloc(b, (WIDTH + 16) * (in + 16));
        float *all = b->ops->alloc(b, ROWS * WIDTH), *some = b->ops->alloc(b, ROWS * WIDTH);
        for (uint32_t out = 1; out <= WIDTH; out += out < 70 ? rm_test_effort(1, 11) : 13) {
            b->ops->pack(b, w, out, in, packed);
            b->ops->linear(b, x, packed, bias, ROWS, in, out, RM_ACT_RELU, all);
            for (uint32_t n = 1; n < ROWS; n += rm_test_effort(1, 13)) {
                b->ops->linear(b, x + in, packed, bias, n, in, out, RM_ACT_RELU, some);
                if (memcmp(some, all + out, sizeof(float) * n * out) != 0)
                    fail_msg("linear %u -> %u: %u rows", in, out, n);
            }
            /* here `out` is the width of dx, `in` that of dy */
            b->ops->linear_dx(b, x, w, ROWS, out, in, all);
            for (uint32_t n = 1; n < ROWS; n += rm_test_effort(1, 13)) {
                b->ops->linear_dx(b, x + in, w, n, out, in, some);
                if (memcmp(some, all + out, sizeof(float) * n * out) != 0)
                    fail_msg("linear_dx %u -> %u: %u rows", in, out, n);
            }
        }
        b->ops->release(b, x);
        b->ops->release(b, w);
        b->ops->release(b, bias);
        b->ops->release(b, packed);
        b->ops->release(b, all);
        b->ops->release(b, some);
    }
}

/* All that one update does, into one array of results. */
static float *update_with(const struct level_state *level, uint32_t threads, size_t *count)
{
    struct rm_backend *b;
    struct rm_net *net;
    struct rm_net_workspace *w;
    struct rm_error error;
    const uint32_t batch = 64, q = 12;
    if (rm_backend_cpu_create_for(&b, threads, level->isa, level->compute, &error))
        fail_msg("%s", error.text);
    assert_int_equal(b->threads, threads);
    assert_int_equal(
        rm_net_compile(&net, &treasurehunt_net.config, &treasurehunt_net.shape, &error), 0);
    assert_int_equal(rm_net_workspace_create(&w, net, b, batch, q, true, &error), 0);
    size_t n = rm_net_param_count(net), out = (size_t)batch * q * 4;
    float *params = b->ops->alloc(b, n), *grads = b->ops->alloc(b, n);
    float *m = b->ops->alloc(b, n), *v = b->ops->alloc(b, n), *target = b->ops->alloc(b, n);
    rm_net_init(net, params, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
    float *x = normals(b, 1, (size_t)batch * 625), *tau = uniforms(b, 2, (size_t)batch * q);
    float *noise = normals(b, 3, rm_net_noise_count(net)), *d_out = normals(b, 4, out);
    struct rm_net_input input = {
        .x = x, .batch = batch, .tau = tau, .quantiles = q, .noise = noise};
    *count = 2 * n + out + 6;
    float *results = malloc(*count * sizeof *results);
    for (uint64_t step = 1; step <= 3; step++) {
        rm_net_prepare(w, params);
        memcpy(results, rm_net_forward(w, params, &input), out * sizeof *results);
        rm_net_backward(w, params, &input, d_out, grads);
        double sums[3] = {b->ops->sum_squares(b, grads, n)};
        b->ops->change(b, params, target, n, sums + 1);
        memcpy(results + out, sums, sizeof sums);
        struct rm_adam adam = {1e-3f, 0.9f, 0.999f, 1e-8f, step, 0};
        b->ops->adam(b, &adam, 0.5f, grads, n, params, m, v);
        b->ops->lerp(b, 0.01f, params, n, target);
    }
    memcpy(results + out + 6, params, n * sizeof *results);
    memcpy(results + out + 6 + n, target, n * sizeof *results);
    float *owned[] = {params, grads, m, v, target, x, tau, noise, d_out};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        b->ops->release(b, owned[i]);
    rm_net_workspace_destroy(w);
    rm_net_destroy(net);
    rm_backend_destroy(b);
    return results;
}

static void threads_do_not_matter(void **state)
{
    struct level_state *level = *state;
    size_t n;
    float *one = update_with(level, 1, &n);
    for (uint32_t threads = 2; threads <= 3; threads++) {
        float *more = update_with(level, threads, &n);
        if (memcmp(one, more, n * sizeof *one) != 0)
            fail_msg("%u threads change an update", threads);
        free(more);
    }
    free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_of_a_row),
        cmocka_unit_test(products_of_a_row),
        cmocka_unit_test(threads_do_not_matter),
    };
    return run_on_levels_and_bf16(tests, sizeof tests / sizeof tests[0]);
}
