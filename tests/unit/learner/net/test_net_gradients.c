/* learner/net against a slow network in double: forward, and every kind of gradient by central
 * differences of that network. */
#include "tests/support/effort.h"
#include "tests/support/levels.h"
#include "tests/support/net_words.h"
#include "tests/support/nets.h"
#include "tests/support/random_net.h"
#include "tests/support/reference_net.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EPSILON 1e-6

struct fixture {
    const struct named_net *of;
    struct rm_net *net;
    struct rm_net_workspace *workspace;
    size_t params_n, x_n, tau_n, noise_n, out_n;
    float *params, *x, *tau, *noise, *d_out, *grads;
    double *params_d, *x_d, *tau_d, *noise_d, *out_d;
    struct rm_net_input input;
    struct reference_input reference;
    float *state;
    double *state_d;
    uint8_t *restart;
};

static float *random_floats(size_t n, struct rm_rng *rng, float low, float high, double **copy)
{
    float *p = malloc((n + 1) * sizeof *p);
    double *d = malloc((n + 1) * sizeof *d);
    for (size_t i = 0; i < n; i++) {
        p[i] = low + (high - low) * rm_rng_float(rng);
        d[i] = p[i];
    }
    *copy = d;
    return p;
}

/* A third of the tokens becomes padding: among them all of the second state. */
static void leave_out_tokens(struct fixture *f, const struct named_net *of)
{
    bool groups = of->shape.dims == 3 && of->config.layers[0].columns;
    if ((of->shape.dims != 2 && !groups) || of->shape.history.queries)
        return;
    size_t n = of->shape.inputs / of->shape.dim[0], state = of->shape.inputs;
    for (size_t i = 0; i < f->x_n; i++)
        if (i / n % 3 == 1 || i / state == 1)
            f->x_d[i] = f->x[i] = 0;
}

static void make(struct fixture *f, const struct named_net *of, struct rm_backend *backend)
{
    struct rm_error error;
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    double *unused;
    *f = (struct fixture){.of = of};
    assert_int_equal(rm_net_compile(&f->net, &of->config, &of->shape, &error), 0);
    assert_int_equal(rm_net_workspace_create(&f->workspace, f->net, backend, of->batch,
                                             of->quantiles, true, &error),
                     0);
    size_t rows = (size_t)of->batch * (of->quantiles ? of->quantiles : 1);
    f->params_n = rm_net_param_count(f->net);
    f->x_n = (size_t)of->batch * of->shape.inputs;
    f->tau_n = of->quantiles ? rows : 0;
    f->noise_n = of->noise ? rm_net_noise_count(f->net) : 0;
    f->out_n = rows * rm_net_outputs(f->net);
    /* Layer norm's scales and noise's sigmas as anything else: the arithmetic must hold anywhere.
     */
    f->params = random_floats(f->params_n, &rng, -0.5f, 0.5f, &f->params_d);
    f->x = random_floats(f->x_n, &rng, -1, 1, &f->x_d);
    test_net_input(of, f->net, f->x, f->x_n, f->x_d);
    leave_out_tokens(f, of);
    f->tau = random_floats(f->tau_n, &rng, 0, 1, &f->tau_d);
    f->noise = random_floats(f->noise_n, &rng, -2, 2, &f->noise_d);
    f->d_out = random_floats(f->out_n, &rng, -1, 1, &unused);
    free(unused);
    f->out_d = malloc(f->out_n * sizeof *f->out_d);
    f->grads = malloc(f->params_n * sizeof *f->grads);
    for (size_t i = 0; i < f->params_n; i++)
        f->grads[i] = NAN; /* all must be overwritten */
    f->input = (struct rm_net_input){.x = f->x,
                                     .batch = of->batch,
                                     .tau = of->quantiles ? f->tau : NULL,
                                     .quantiles = of->quantiles,
                                     .noise = of->noise ? f->noise : NULL,
                                     .dropout_seed = 5,
                                     .dropout_update = 9};
    f->reference = (struct reference_input){.x = f->x_d,
                                            .tau = f->tau_d,
                                            .noise = of->noise ? f->noise_d : NULL,
                                            .batch = of->batch,
                                            .quantiles = of->quantiles,
                                            .backend = backend,
                                            .dropout_seed = 5,
                                            .dropout_update = 9};
    f->input.steps = f->reference.steps = test_net_steps(of);
    if (!rm_net_is_recurrent(f->net))
        return;
    f->state =
        random_floats((size_t)of->batch * rm_net_state_count(f->net), &rng, -1, 1, &f->state_d);
    f->restart = malloc(of->batch);
    for (uint32_t i = 0; i < of->batch; i++)
        f->restart[i] = rm_rng_below(&rng, 4) == 0;
    f->input.state = f->state;
    f->reference.state = f->state_d;
    f->input.restart = f->reference.restart = f->restart;
}

static void unmake(struct fixture *f)
{
    rm_net_workspace_destroy(f->workspace);
    rm_net_destroy(f->net);
    free(f->params);
    free(f->x);
    free(f->tau);
    free(f->noise);
    free(f->d_out);
    free(f->grads);
    free(f->params_d);
    free(f->x_d);
    free(f->tau_d);
    free(f->noise_d);
    free(f->out_d);
    free(f->state);
    free(f->state_d);
    free(f->restart);
}

static double loss(struct fixture *f)
{
    reference_forward(&f->of->config, &f->of->shape, f->net, f->params_d, &f->reference, f->out_d);
    double sum = 0;
    for (size_t i = 0; i < f->out_n; i++)
        sum += f->out_d[i] * f->d_out[i];
    return sum;
}

static bool near(double got, double want, double relative, double absolute)
{
    return fabs(got - want) <= absolute + relative * fabs(want);
}

static void check_forward(struct fixture *f)
{
    rm_net_prepare(f->workspace, f->params);
    const float *out = rm_net_forward(f->workspace, f->params, &f->input);
    loss(f);
    for (size_t i = 0; i < f->out_n; i++)
        if (!near(out[i], f->out_d[i], 1.3e-6, 1e-5))
            fail_msg("%s: output %zu is %.9g, not %.9g", f->of->name, i, out[i], f->out_d[i]);
}

static bool trained(const struct fixture *f, size_t i)
{
    const struct rm_net_tensor *t;
    size_t n = rm_net_tensors(f->net, &t), k = n;
    while (k > 0 && t[k - 1].offset > i)
        k--;
    return t[k - 1].flags & RM_TENSOR_TRAINED;
}

static void check_backward(struct fixture *f, size_t stride)
{
    rm_net_backward(f->workspace, f->params, &f->input, f->d_out, f->grads);
    for (size_t i = 0; i < f->params_n; i++)
        if (!isfinite(f->grads[i]))
            fail_msg("%s: gradient %zu is %g", f->of->name, i, f->grads[i]);
    for (size_t i = 0; i < f->params_n; i += stride) {
        double at = f->params_d[i];
        if (!trained(f, i)) {
            assert_true(f->grads[i] == 0);
            continue;
        }
        f->params_d[i] = at + EPSILON;
        double above = loss(f);
        f->params_d[i] = at - EPSILON;
        double below = loss(f);
        f->params_d[i] = at;
        double want = (above - below) / (2 * EPSILON);
        if (!near(f->grads[i], want, 1e-3, 1e-5))
            fail_msg("%s: gradient of parameter %zu is %.9g, not %.9g", f->of->name, i, f->grads[i],
                     want);
    }
}

/* Networks of values of real actions: their gradient by the action, and that alone. */
static const struct named_net acting_nets[] = {
    {"values of an action",
     {.layer_count = 4, .layers = {LINEAR(17), RELU, LINEAR(9), TANH}},
     {.inputs = 5, .actions = 1, .acts = 3, .outputs_per_action = 1, .dims = 1, .dim = {5}},
     14,
     0,
     false},
    {"action and image",
     {.layer_count = 4, .layers = {CONV(3, 2, 1, 0), RELU, LINEAR(8), TANH}},
     {.inputs = 12, .actions = 1, .acts = 2, .outputs_per_action = 1, .dims = 2, .dim = {4, 3}},
     6,
     0,
     false},
    {"action at the head",
     {.layer_count = 1, .layers = {LAYER_NORM}},
     {.inputs = 4, .actions = 1, .acts = 1, .outputs_per_action = 1, .dims = 1, .dim = {4}},
     5,
     0,
     false},
};

static void check_action(struct fixture *f, float *d_action, double *action)
{
    const size_t n = (size_t)f->of->batch * f->of->shape.acts;
    for (int alone = 0; alone < 2; alone++) {
        f->input.d_action = d_action;
        f->input.action_only = alone;
        memset(d_action, 0xff, n * sizeof *d_action);
        rm_net_forward(f->workspace, f->params, &f->input);
        rm_net_backward(f->workspace, f->params, &f->input, f->d_out, f->grads);
        for (size_t i = 0; i < n; i++) {
            const double at = action[i];
            action[i] = at + EPSILON;
            const double above = loss(f);
            action[i] = at - EPSILON;
            const double want = (above - loss(f)) / (2 * EPSILON);
            action[i] = at;
            if (!near(d_action[i], want, 1e-3, 1e-5))
                fail_msg("%s: gradient of action %zu is %.9g, not %.9g", f->of->name, i,
                         d_action[i], want);
        }
    }
}

static void values_of_actions(void **state)
{
    struct level_state *level = *state;
    for (size_t i = 0; i < sizeof acting_nets / sizeof *acting_nets; i++) {
        struct fixture f;
        struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, (uint32_t)i, 0);
        const size_t n = (size_t)acting_nets[i].batch * acting_nets[i].shape.acts;
        double *action_d;
        make(&f, &acting_nets[i], level->backend);
        float *action = random_floats(n, &rng, -1, 1, &action_d), *d_action = malloc(n * 4);
        f.input.action = action;
        f.reference.action = action_d;
        check_forward(&f);
        check_backward(&f, 1);
        check_action(&f, d_action, action_d);
        free(action);
        free(action_d);
        free(d_action);
        unmake(&f);
    }
}

static void every_network(void **state)
{
    struct level_state *level = *state;
    for (size_t i = 0; i < test_net_count; i++) {
        struct fixture f;
        make(&f, &test_nets[i], level->backend);
        check_forward(&f);
        check_backward(&f, rm_test_effort(1, 13));
        unmake(&f);
    }
}

/* Every layer among all sorts of others; some forty differences of each network. Parameters small
 * enough that nothing grows to where a float's rounding is more than is allowed. */
static void random_networks(void **state)
{
    struct level_state *level = *state;
    bool seen[RM_LAYER_TYPE_COUNT] = {false}, groups = false;
    for (uint32_t i = 0; i < 4 * RANDOM_NET_KINDS; i++) {
        struct random_net net;
        struct fixture f;
        random_net_draw(i, &net);
        make(&f, &net.of, level->backend);
        for (size_t k = 0; k < f.params_n; k++)
            f.params_d[k] = f.params[k] *= 0.4f;
        check_forward(&f);
        check_backward(&f, 1 + f.params_n / rm_test_effort(40, 6));
        unmake(&f);
        for (uint32_t l = 0; l < net.of.config.layer_count; l++)
            seen[net.of.config.layers[l].type] = true;
        groups |= net.of.config.inputs[0].is_group;
    }
    assert_true(groups);
    for (size_t i = 0; i < test_net_count; i++) /* lists of inputs are drawn by none */
        for (uint32_t l = 0; test_nets[i].config.input_count && l < RM_LAYERS_MAX; l++)
            seen[test_nets[i].config.input_layers[l].type] = true;
    for (size_t i = 0; i < test_net_count; i++) /* nor is a history */
        if (test_nets[i].config.layer_count)
            seen[test_nets[i].config.layers[0].type] = true;
    for (int type = 0; type < RM_LAYER_TYPE_COUNT; type++)
        if (!seen[type])
            fail_msg("no network has layer %d", type);
}

/* Its size forbids all 300,760 differences: a prime stride visits every tensor. */
static void treasurehunt(void **state)
{
    struct level_state *level = *state;
    struct fixture f;
    make(&f, &treasurehunt_net, level->backend);
    for (size_t i = 0; i < f.params_n; i++)
        f.params_d[i] = f.params[i] *= 0.2f;
    check_forward(&f);
    check_backward(&f, 3001);
    unmake(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_network),
        cmocka_unit_test(values_of_actions),
        cmocka_unit_test(random_networks),
        cmocka_unit_test(treasurehunt),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
