/* Long sequences and many lanes are taken through a recurrent layer some steps at a time: gradients
 * are those of few lanes at once, added up, whatever the numbers of steps that go together. */
#include "tests/support/levels.h"

#include "learner/net/net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 3, ACTIONS = 2, OUTPUTS = ACTIONS + 1, STEPS = 7, LANES_MAX = 320, FEW = 16 };

static const struct rm_network_config kinds[] = {
    {.layer_count = 3,
     .layers = {{.type = RM_LAYER_LINEAR, .units = 11},
                {.type = RM_LAYER_TANH},
                {.type = RM_LAYER_GRU, .units = 18}}},
    /* of observations: no gradient of its input; the layer behind it asks for one */
    {.layer_count = 2,
     .layers = {{.type = RM_LAYER_LSTM, .units = 21}, {.type = RM_LAYER_LSTM, .units = 32}}},
};
static const struct rm_net_shape shape = {
    .inputs = INPUTS, .actions = ACTIONS, .outputs_per_action = 1, .head = RM_HEAD_ACTOR_CRITIC};

struct all {
    struct rm_backend *b;
    struct rm_net *net;
    float *params, *x, *state, *d_out, *grads;
    uint8_t restart[STEPS * LANES_MAX];
    uint32_t lanes;
};

static float *normals(struct rm_backend *b, uint32_t a, size_t n)
{
    float *p = b->ops->alloc(b, n);
    assert_non_null(p);
    b->ops->normals(b, 31, RM_STREAM_TEST, a, 0, n, p);
    return p;
}

/* Of lanes [first, first + n), in a workspace made for them. */
static void gradient(struct all *a, uint32_t first, uint32_t n)
{
    struct rm_error error;
    struct rm_net_workspace *w;
    const size_t rows = (size_t)STEPS * n, states = rm_net_state_count(a->net);
    float *x = a->b->ops->alloc(a->b, rows * INPUTS), *d = a->b->ops->alloc(a->b, rows * OUTPUTS);
    uint8_t *restart = malloc(rows);
    for (uint32_t t = 0; t < STEPS; t++) {
        const size_t from = (size_t)t * a->lanes + first, to = (size_t)t * n;
        memcpy(x + to * INPUTS, a->x + from * INPUTS, n * INPUTS * sizeof *x);
        memcpy(d + to * OUTPUTS, a->d_out + from * OUTPUTS, n * OUTPUTS * sizeof *d);
        memcpy(restart + to, a->restart + from, n);
    }
    if (rm_net_workspace_create(&w, a->net, a->b, (uint32_t)rows, 1, RM_NET_TRAIN, &error))
        fail_msg("%s", error.text);
    rm_net_prepare(w, a->params);
    const struct rm_net_input input = {.x = x,
                                       .batch = (uint32_t)rows,
                                       .steps = STEPS,
                                       .state = a->state + first * states,
                                       .restart = restart};
    rm_net_forward(w, a->params, &input);
    rm_net_backward(w, a->params, &input, d, a->grads);
    rm_net_workspace_destroy(w);
    a->b->ops->release(a->b, x);
    a->b->ops->release(a->b, d);
    free(restart);
}

static void check(struct rm_backend *b, const struct rm_network_config *config, uint32_t lanes)
{
    struct rm_error error;
    struct all a = {.b = b, .lanes = lanes};
    assert_int_equal(rm_net_compile(&a.net, config, &shape, &error), 0);
    const size_t count = rm_net_param_count(a.net), rows = (size_t)STEPS * lanes;
    a.params = normals(b, 1, count);
    a.x = normals(b, 2, rows * INPUTS);
    a.state = normals(b, 3, (size_t)lanes * rm_net_state_count(a.net));
    a.d_out = normals(b, 4, rows * OUTPUTS);
    a.grads = b->ops->alloc(b, count);
    for (size_t i = 0; i < rows; i++)
        a.restart[i] = i % 9 == 4;
    double *sum = calloc(count, sizeof *sum), *scale = calloc(count, sizeof *scale);
    for (uint32_t first = 0; first < lanes; first += FEW) {
        gradient(&a, first, lanes - first < FEW ? lanes - first : FEW);
        for (size_t i = 0; i < count; i++) {
            sum[i] += (double)a.grads[i];
            scale[i] += fabs((double)a.grads[i]);
        }
    }
    gradient(&a, 0, lanes);
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)a.grads[i] - sum[i]) <= 2e-5 * (scale[i] + 1)))
            fail_msg("%u lanes, gradient %zu: %g, wants %g", lanes, i, (double)a.grads[i], sum[i]);
    free(sum);
    free(scale);
    float *const owned[] = {a.params, a.x, a.state, a.d_out, a.grads};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        b->ops->release(b, owned[i]);
    rm_net_destroy(a.net);
}

static void parts_add_up_to_the_whole(void **state)
{
    /* All steps together; six and one; two and a rest; one by one, of more rows than go together.
     */
    static const uint32_t lanes[] = {FEW, 41, 100, LANES_MAX};
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++)
            check(b, &kinds[k], lanes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_add_up_to_the_whole)};
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
