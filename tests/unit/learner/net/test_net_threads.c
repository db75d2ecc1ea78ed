/* Nothing that a network computes depends on the number of threads: outputs, gradients by forward
 * and backward, and by learn, of every network of the tests and of drawn ones, to the bit. */
#include "tests/support/levels.h"
#include "shm/base/float_word.h"
#include "tests/support/nets.h"
#include "tests/support/random_net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 360u

struct results {
    float *floats; /* outputs, gradients, gradients of learn, its sums */
    size_t count, outputs;
};

struct half_squares {
    size_t row;
};

static void half_squares(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                         double sums[RM_NET_SUMS])
{
    const struct half_squares *s = self;
    (void)first;
    for (size_t i = 0; i < rows * s->row; i++) {
        d_out[i] = out[i];
        sums[0] += 0.5 * (double)out[i] * out[i];
    }
}

static struct results run(const char *isa, uint32_t threads, const struct named_net *of)
{
    struct rm_backend *b = NULL;
    struct rm_net *net = NULL;
    struct rm_net_workspace *w = NULL;
    struct rm_error error;
    uint32_t q = of->quantiles ? of->quantiles : 1;
    if (rm_backend_cpu_create(&b, threads, isa, &error) ||
        rm_net_compile(&net, &of->config, &of->shape, &error) ||
        rm_net_workspace_create(&w, net, b, BATCH, q, RM_NET_TRAIN, &error))
        fail_msg("%s: %s", of->name, error.text);
    size_t n = rm_net_param_count(net), x_n = (size_t)BATCH * of->shape.inputs;
    struct results r = {.outputs = (size_t)BATCH * q * rm_net_outputs(net)};
    r.count = r.outputs + 2 * n + 2;
    r.floats = malloc(r.count * sizeof *r.floats);
    float *params = b->ops->alloc(b, n), *grads = b->ops->alloc(b, n), *x = b->ops->alloc(b, x_n);
    float *tau = b->ops->alloc(b, (size_t)BATCH * q), *d_out = b->ops->alloc(b, r.outputs);
    float *noise = b->ops->alloc(b, rm_net_noise_count(net));
    rm_net_init(net, params, rm_rng_at(5, RM_STREAM_INIT, 0, 0));
    b->ops->normals(b, 13, RM_STREAM_TEST, 1, 0, x_n, x);
    b->ops->uniforms(b, 13, RM_STREAM_TEST, 2, 0, (size_t)BATCH * q, tau);
    b->ops->normals(b, 13, RM_STREAM_TEST, 3, 0, rm_net_noise_count(net), noise);
    b->ops->normals(b, 13, RM_STREAM_TEST, 4, 0, r.outputs, d_out);
    test_net_input(of, net, x, x_n, NULL);
    const struct rm_net_input input = {.x = x,
                                       .batch = BATCH,
                                       .tau = of->quantiles ? tau : NULL,
                                       .quantiles = of->quantiles,
                                       .noise = of->noise ? noise : NULL,
                                       .dropout_seed = 3,
                                       .dropout_update = 4,
                                       .steps = rm_net_is_recurrent(net) ? 12 : 0};
    rm_net_prepare(w, params);
    memcpy(r.floats, rm_net_forward(w, params, &input), r.outputs * sizeof *r.floats);
    rm_net_backward(w, params, &input, d_out, grads);
    memcpy(r.floats + r.outputs, grads, n * sizeof *grads);
    struct half_squares squares = {.row = (size_t)q * rm_net_outputs(net)};
    const struct rm_net_loss loss = {half_squares, &squares};
    double sums[RM_NET_SUMS];
    rm_net_learn(w, params, &input, &loss, grads, sums);
    memcpy(r.floats + r.outputs + n, grads, n * sizeof *grads);
    memcpy(r.floats + r.outputs + 2 * n, sums, sizeof sums[0]);
    float *owned[] = {params, grads, x, tau, d_out, noise};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        b->ops->release(b, owned[i]);
    rm_net_workspace_destroy(w);
    rm_net_destroy(net);
    rm_backend_destroy(b);
    return r;
}

static void expect_same(const char *isa, const struct named_net *of)
{
    struct results one = run(isa, 1, of);
    for (uint32_t threads = 2; threads <= 3; threads++) {
        struct results more = run(isa, threads, of);
        for (size_t i = 0; i < one.count; i++)
            if (rm_word_of_float(one.floats[i]) != rm_word_of_float(more.floats[i]))
                fail_msg("%s: %s %zu is %.9g with %u threads, %.9g with one", of->name,
                         i < one.outputs ? "output" : "gradient or sum",
                         i < one.outputs ? i : i - one.outputs, more.floats[i], threads,
                         one.floats[i]);
        free(more.floats);
    }
    free(one.floats);
}

static void every_network(void **state)
{
    const char *isa = ((struct level_state *)*state)->isa;
    for (size_t i = 0; i < test_net_count; i++)
        expect_same(isa, &test_nets[i]);
}

static void drawn_networks(void **state)
{
    const char *isa = ((struct level_state *)*state)->isa;
    for (uint32_t i = 0; i < 2 * RANDOM_NET_KINDS; i++) {
        struct random_net net;
        random_net_draw(i, &net);
        expect_same(isa, &net.of);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network),
        cmocka_unit_test(drawn_networks),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
