/* learner/net: what a configuration becomes: counts, the arena, initial values, refusals. */
#include "tests/support/nets.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_net *compiled(const struct named_net *of)
{
    struct rm_net *net;
    struct rm_error error;
    if (rm_net_compile(&net, &of->config, &of->shape, &error))
        fail_msg("%s: %s", of->name, error.text);
    return net;
}

static void treasurehunt_counts(void **state)
{
    (void)state;
    struct rm_net *net = compiled(&treasurehunt_net);
    assert_int_equal(rm_net_param_count(net), 300760);
    assert_int_equal(rm_net_act_count(net), 236755);
    assert_int_equal(rm_net_noise_count(net), 64005);
    assert_int_equal(rm_net_inputs(net), 625);
    assert_int_equal(rm_net_outputs(net), 4);
    assert_true(rm_net_uses_quantiles(net));
    /* 312,500 a state and 159,500 a quantile of it, the head's value included */
    assert_true(rm_net_forward_flops(net, 64, 12) == 64 * 312500.0 + 64 * 12 * 159500.0);
    rm_net_destroy(net);
}

static void factorised_noise_is_small(void **state)
{
    (void)state;
    struct named_net of = treasurehunt_net;
    of.config.noise = RM_NOISE_FACTORISED;
    struct rm_net *net = compiled(&of);
    assert_int_equal(rm_net_param_count(net), 300760);
    assert_int_equal(rm_net_noise_count(net), 250 + 250 + 250 + 5);
    rm_net_destroy(net);
}

/* Tensors tile the arena, in order, sigmas behind act_count. */
static void tensors_tile_the_arena(void **state)
{
    (void)state;
    for (size_t i = 0; i <= test_net_count; i++) {
        const struct named_net *of = i < test_net_count ? &test_nets[i] : &treasurehunt_net;
        struct rm_net *net = compiled(of);
        const struct rm_net_tensor *t;
        size_t n = rm_net_tensors(net, &t), at = 0;
        for (size_t k = 0; k < n; k++) {
            assert_int_equal(t[k].offset, at);
            for (uint32_t d = t[k].dims; d < 4; d++)
                assert_int_equal(t[k].shape[d], 1);
            bool training = strstr(t[k].name, ".sigma_") || !strncmp(t[k].name, "value_", 6);
            assert_true(training == (at >= rm_net_act_count(net)));
            bool moments = !strncmp(t[k].name, "normalizer.", 11);
            assert_true(moments != !!(t[k].flags & RM_TENSOR_TRAINED));
            size_t floats = 1;
            for (uint32_t d = 0; d < 4; d++)
                floats *= t[k].shape[d];
            at += floats;
            for (size_t j = 0; j < k; j++)
                assert_string_not_equal(t[j].name, t[k].name);
        }
        assert_int_equal(at, rm_net_param_count(net));
        rm_net_destroy(net);
    }
}

static const struct rm_net_tensor *named(const struct rm_net *net, const char *name)
{
    const struct rm_net_tensor *t;
    size_t n = rm_net_tensors(net, &t);
    for (size_t i = 0; i < n; i++)
        if (strcmp(t[i].name, name) == 0)
            return &t[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

/* Uniform in (-bound, bound): the extremes come near, the mean square is bound^2 / 3. */
static void expect_uniform(const struct rm_net *net, const float *params, const char *name,
                           double bound)
{
    const struct rm_net_tensor *t = named(net, name);
    size_t n = (size_t)t->shape[0] * t->shape[1];
    double most = 0, sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        double v = params[t->offset + i];
        most = fabs(v) > most ? fabs(v) : most;
        sum += v;
        squares += v * v;
    }
    assert_true(most <= bound);
    if (n < 1000)
        return;
    double mean = sum / (double)n, deviation = bound / sqrt(3.0 * (double)n);
    assert_true(most > 0.99 * bound);
    assert_true(fabs(mean) < 5 * deviation);
    assert_true(fabs(squares / (double)n * 3 / (bound * bound) - 1) < 0.1);
}

static void expect_constant(const struct rm_net *net, const float *params, const char *name,
                            double value)
{
    const struct rm_net_tensor *t = named(net, name);
    for (size_t i = 0; i < (size_t)t->shape[0] * t->shape[1]; i++)
        assert_true(params[t->offset + i] == (float)value);
}

static void initial_values(void **state)
{
    (void)state;
    struct named_net of = treasurehunt_net;
    struct rm_net *net = compiled(&of);
    float *p = malloc(rm_net_param_count(net) * sizeof *p);
    rm_net_init(net, p, rm_rng_at(7, RM_STREAM_INIT, 0, 0));
    expect_uniform(net, p, "layers.0.weight", 0.04);
    expect_uniform(net, p, "layers.0.bias", 0.04);
    expect_uniform(net, p, "layers.2.weight", 0.125);
    expect_uniform(net, p, "layers.3.weight", sqrt(3.0 / 250));
    expect_uniform(net, p, "layers.3.bias", sqrt(3.0 / 250));
    expect_uniform(net, p, "head.weight", sqrt(3.0 / 250));
    expect_constant(net, p, "layers.3.sigma_weight", 0.017);
    expect_constant(net, p, "head.sigma_bias", 0.017);
    rm_net_destroy(net);

    of.config.noise = RM_NOISE_FACTORISED;
    of.config.sigma0 = 0.5;
    net = compiled(&of);
    rm_net_init(net, p, rm_rng_at(7, RM_STREAM_INIT, 0, 0));
    expect_uniform(net, p, "layers.3.weight", 1 / sqrt(250));
    expect_uniform(net, p, "layers.3.bias", 1 / sqrt(250));
    expect_uniform(net, p, "head.weight", 1 / sqrt(250));
    expect_constant(net, p, "layers.3.sigma_weight", 0.5 / sqrt(250));
    expect_constant(net, p, "head.sigma_bias", 0.5 / sqrt(250));
    rm_net_destroy(net);
    free(p);
}

static void seeds_matter(void **state)
{
    (void)state;
    struct rm_net *net = compiled(&treasurehunt_net);
    size_t bytes = rm_net_param_count(net) * sizeof(float);
    float *a = malloc(bytes), *b = malloc(bytes);
    rm_net_init(net, a, rm_rng_at(7, RM_STREAM_INIT, 0, 0));
    rm_net_init(net, b, rm_rng_at(7, RM_STREAM_INIT, 0, 0));
    assert_memory_equal(a, b, bytes);
    rm_net_init(net, b, rm_rng_at(7, RM_STREAM_INIT, 1, 0));
    assert_memory_not_equal(a, b, 1000);
    free(a);
    free(b);
    rm_net_destroy(net);
}

static void orthogonal(void **state)
{
    (void)state;
    static const struct named_net of = {
        "orthogonal",
        {.layer_count = 3,
         .layers = {{.type = RM_LAYER_LINEAR, .units = 40, .cosines = 0},
                    {.type = RM_LAYER_LAYER_NORM, .units = 0, .cosines = 0},
                    {.type = RM_LAYER_TANH, .units = 0, .cosines = 0}},
         .init = RM_INIT_ORTHOGONAL,
         .gain = 1.4142135623730951,
         .value_gain = 1},
        {.inputs = 24, .actions = 3, .outputs_per_action = 1},
        0,
        0,
        false};
    struct rm_net *net = compiled(&of);
    float *p = malloc(rm_net_param_count(net) * sizeof *p);
    rm_net_init(net, p, rm_rng_at(7, RM_STREAM_INIT, 0, 0));
    const float *w = p + named(net, "layers.0.weight")->offset; /* (40, 24): columns orthogonal */
    for (int a = 0; a < 24; a++)
        for (int b = 0; b <= a; b++) {
            double dot = 0;
            for (int r = 0; r < 40; r++)
                dot += (double)w[r * 24 + a] * w[r * 24 + b];
            assert_true(fabs(dot - (a == b ? 2.0 : 0.0)) < 1e-5);
        }
    const float *h = p + named(net, "head.weight")->offset; /* (3, 40): rows orthonormal */
    for (int a = 0; a < 3; a++)
        for (int b = 0; b <= a; b++) {
            double dot = 0;
            for (int i = 0; i < 40; i++)
                dot += (double)h[a * 40 + i] * h[b * 40 + i];
            assert_true(fabs(dot - (a == b ? 1.0 : 0.0)) < 1e-5);
        }
    expect_constant(net, p, "layers.0.bias", 0);
    expect_constant(net, p, "layers.1.weight", 1);
    expect_constant(net, p, "layers.1.bias", 0);
    free(p);
    rm_net_destroy(net);
}

static void refusals(void **state)
{
    (void)state;
    static const struct {
        struct rm_network_config config;
        struct rm_net_shape shape;
        const char *says;
    } cases[] = {
        {{.layer_count = 1, .layers = {{.type = RM_LAYER_LINEAR, .units = 0, .cosines = 0}}},
         {.inputs = 4, .actions = 2, .outputs_per_action = 1},
         "network.layers[0]: linear: units must be from 1"},
        {{.layer_count = 2,
          .layers = {{.type = RM_LAYER_RELU, .units = 0, .cosines = 0},
                     {.type = RM_LAYER_NOISY_LINEAR, .units = 70000, .cosines = 0}}},
         {.inputs = 4, .actions = 2, .outputs_per_action = 1},
         "network.layers[1]: noisy_linear: units"},
        {{.layer_count = 1,
          .layers = {{.type = RM_LAYER_COSINE_EMBEDDING, .units = 0, .cosines = 0}}},
         {.inputs = 4, .actions = 2, .outputs_per_action = 1},
         "network.layers[0]: cosine_embedding: cosines must be"},
        {{.layer_count = 3,
          .layers = {{.type = RM_LAYER_COSINE_EMBEDDING, .units = 0, .cosines = 8},
                     {.type = RM_LAYER_TANH, .units = 0, .cosines = 0},
                     {.type = RM_LAYER_COSINE_EMBEDDING, .units = 0, .cosines = 8}}},
         {.inputs = 4, .actions = 2, .outputs_per_action = 1},
         "network.layers[2]: cosine_embedding: a network has at most one cosine_embedding"},
        {{.layer_count = 1,
          .layers = {{.type = RM_LAYER_COSINE_EMBEDDING, .units = 0, .cosines = 8}}},
         {.inputs = 4, .actions = 2, .outputs_per_action = 5},
         "one output per action"},
        {{.layer_count = 1, .layers = {{.type = RM_LAYER_TYPE_COUNT, .units = 0, .cosines = 0}}},
         {.inputs = 4, .actions = 2, .outputs_per_action = 1},
         "network.layers[0]: ?: unknown type"},
        {{.layer_count = 65},
         {.inputs = 4, .actions = 2, .outputs_per_action = 1},
         "network.layers: 65 layers; at most 64"},
        {{.layer_count = 0},
         {.inputs = 0, .actions = 2, .outputs_per_action = 1},
         "0 input features"},
        {{.layer_count = 0}, {.inputs = 4, .actions = 0, .outputs_per_action = 1}, "0 actions"},
        {{.layer_count = 0},
         {.inputs = 4, .actions = 2, .outputs_per_action = 0},
         "2 actions of 0 outputs"},
        {{.layer_count = 0},
         {.inputs = 4, .actions = 600, .outputs_per_action = 200},
         "600 actions of 200 outputs"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rm_net *net;
        struct rm_error error;
        assert_int_equal(rm_net_compile(&net, &cases[i].config, &cases[i].shape, &error), -EINVAL);
        assert_null(net);
        if (!strstr(error.text, cases[i].says))
            fail_msg("case %zu says \"%s\", not \"%s\"", i, error.text, cases[i].says);
    }
}

static void refused_backends(void **state)
{
    (void)state;
    struct rm_backend *b;
    struct rm_error error;
    assert_int_equal(rm_backend_cpu_create(&b, 1, "avx9", &error), -EINVAL);
    assert_non_null(strstr(error.text, "\"avx9\" is not known"));
    assert_int_equal(rm_backend_cpu_create(&b, 0, "auto", &error), -EINVAL);
    assert_non_null(strstr(error.text, "0 threads"));
    assert_int_equal(rm_backend_cpu_create(&b, 1, "x86-64-v2", &error), 0);
    struct rm_net *net = compiled(&treasurehunt_net);
    struct rm_net_workspace *w;
    assert_int_equal(rm_net_workspace_create(&w, net, b, 0, 8, false, &error), -EINVAL);
    assert_int_equal(rm_net_workspace_create(&w, net, b, 8, 0, false, &error), -EINVAL);
    assert_int_equal(rm_net_workspace_create(&w, net, b, 1u << 20, 1u << 20, false, &error),
                     -EINVAL);
    rm_net_destroy(net);
    rm_backend_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(treasurehunt_counts),
        cmocka_unit_test(factorised_noise_is_small),
        cmocka_unit_test(tensors_tile_the_arena),
        cmocka_unit_test(initial_values),
        cmocka_unit_test(seeds_matter),
        cmocka_unit_test(orthogonal),
        cmocka_unit_test(refusals),
        cmocka_unit_test(refused_backends),
    };
    return cmocka_run_group_tests_name("net compile", tests, NULL, NULL);
}
