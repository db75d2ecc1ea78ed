/* Parts of a network and ways to run it give the same bits: the acting part alone, the value alone,
 * rows picked by an index, forward, loss and backward in one. */
#include "tests/support/levels.h"
#include "tests/support/nets.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BATCH 70u

struct fixture {
    struct rm_backend *b;
    const struct named_net *of;
    struct rm_net *net;
    struct rm_net_workspace *train;
    size_t params_n;
    uint32_t q, outputs;
    float *params, *x, *tau, *noise, *grads;
    struct rm_net_input input;
};

static float *normals(struct rm_backend *b, uint32_t a, size_t n)
{
    float *p = b->ops->alloc(b, n + 1);
    assert_non_null(p);
    b->ops->normals(b, 17, RM_STREAM_TEST, a, 0, n, p);
    return p;
}

static struct rm_net_workspace *workspace(const struct fixture *f, enum rm_net_use use)
{
    struct rm_net_workspace *w;
    struct rm_error error;
    if (rm_net_workspace_create(&w, f->net, f->b, BATCH, f->q, use, &error))
        fail_msg("%s: %s", f->of->name, error.text);
    return w;
}

static void make(struct fixture *f, const struct named_net *of, struct rm_backend *b)
{
    struct rm_error error;
    *f = (struct fixture){.b = b, .of = of, .q = of->quantiles ? of->quantiles : 1};
    assert_int_equal(rm_net_compile(&f->net, &of->config, &of->shape, &error), 0);
    f->params_n = rm_net_param_count(f->net);
    f->outputs = rm_net_outputs(f->net);
    f->params = normals(b, 1, f->params_n);
    f->x = normals(b, 2, (size_t)BATCH * of->shape.inputs);
    test_net_input(of, f->net, f->x, (size_t)BATCH * of->shape.inputs, NULL);
    f->noise = normals(b, 3, rm_net_noise_count(f->net));
    f->tau = b->ops->alloc(b, (size_t)BATCH * f->q);
    f->grads = b->ops->alloc(b, f->params_n);
    b->ops->uniforms(b, 17, RM_STREAM_TEST, 4, 0, (size_t)BATCH * f->q, f->tau);
    f->train = workspace(f, RM_NET_TRAIN);
    f->input = (struct rm_net_input){.x = f->x,
                                     .batch = BATCH,
                                     .tau = of->quantiles ? f->tau : NULL,
                                     .quantiles = of->quantiles,
                                     .noise = of->noise ? f->noise : NULL};
    rm_net_prepare(f->train, f->params);
}

static void unmake(struct fixture *f)
{
    float *owned[] = {f->params, f->x, f->tau, f->noise, f->grads};
    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        f->b->ops->release(f->b, owned[i]);
    rm_net_workspace_destroy(f->train);
    rm_net_destroy(f->net);
}

static void on_every_network(void **state, void (*check)(struct fixture *f))
{
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    for (size_t i = 0; i < test_net_count; i++) {
        struct fixture f;
        make(&f, &test_nets[i], b);
        check(&f);
        unmake(&f);
    }
}

/* Columns [at, at + n) of each row of `whole`. */
static void expect_columns(const struct fixture *f, const float *part, const float *whole,
                           uint32_t at, uint32_t n)
{
    for (size_t r = 0; r < (size_t)BATCH * f->q; r++)
        if (memcmp(part + r * n, whole + r * f->outputs + at, n * sizeof *part) != 0)
            fail_msg("%s: row %zu of a part differs", f->of->name, r);
}

static void acts(struct fixture *f)
{
    struct rm_net_workspace *act = workspace(f, RM_NET_ACT), *infer = workspace(f, RM_NET_INFER);
    const struct rm_net_shape *shape = &f->of->shape;
    uint32_t n = shape->actions * shape->outputs_per_action + 2 * shape->reals;
    if (shape->history.queries)
        n = shape->history.queries * (shape->actions + shape->history.types);
    size_t count = rm_net_act_count(f->net);
    /* Exactly what an actor has: a read behind it shows under a sanitizer, and as NaN. */
    float *some = f->b->ops->alloc(f->b, f->of->noise ? f->params_n : count);
    memcpy(some, f->params, (f->of->noise ? f->params_n : count) * sizeof *some);
    assert_int_equal(rm_net_workspace_outputs(act), n);
    assert_int_equal(rm_net_workspace_outputs(infer), f->outputs);
    assert_true(rm_net_workspace_bytes(act) <= rm_net_workspace_bytes(infer));
    rm_net_prepare(act, some);
    rm_net_prepare(infer, f->params);
    const float *whole = rm_net_forward(f->train, f->params, &f->input);
    expect_columns(f, rm_net_forward(infer, f->params, &f->input), whole, 0, f->outputs);
    expect_columns(f, rm_net_forward(act, some, &f->input), whole, 0, n);
    f->b->ops->release(f->b, some);
    rm_net_workspace_destroy(act);
    rm_net_workspace_destroy(infer);
}

static void acting_part(void **state)
{
    on_every_network(state, acts);
}

static void values(struct fixture *f)
{
    struct rm_net_workspace *w;
    struct rm_error error;
    struct rm_net_value_output out = rm_net_value_output(f->net);
    if (f->of->shape.head != RM_HEAD_ACTOR_CRITIC) {
        assert_int_equal(
            rm_net_workspace_create(&w, f->net, f->b, BATCH, f->q, RM_NET_VALUE, &error), -EINVAL);
        assert_non_null(strstr(error.text, "no state value"));
        assert_true(out.weight == SIZE_MAX && out.bias == SIZE_MAX && out.weights == 0);
        return;
    }
    w = workspace(f, RM_NET_VALUE);
    rm_net_prepare(w, f->params);
    const float *whole = rm_net_forward(f->train, f->params, &f->input);
    expect_columns(f, rm_net_forward(w, f->params, &f->input), whole, f->outputs - 1, 1);
    rm_net_workspace_destroy(w);

    /* Its product: doubled, the value doubles and nothing else changes. */
    float *before = malloc((size_t)BATCH * f->outputs * sizeof *before);
    memcpy(before, whole, (size_t)BATCH * f->outputs * sizeof *before);
    f->input.noise = NULL;
    memcpy(before, rm_net_forward(f->train, f->params, &f->input),
           (size_t)BATCH * f->outputs * sizeof *before);
    for (uint32_t i = 0; i < out.weights; i++)
        f->params[out.weight + i] *= 2;
    f->params[out.bias] *= 2;
    rm_net_prepare(f->train, f->params);
    whole = rm_net_forward(f->train, f->params, &f->input);
    for (size_t i = 0; i < (size_t)BATCH * f->outputs; i++)
        assert_true(whole[i] == before[i] * (i % f->outputs == f->outputs - 1 ? 2 : 1));
    free(before);
}

static void value_alone(void **state)
{
    on_every_network(state, values);
}

static void picks(struct fixture *f)
{
    uint32_t index[BATCH];
    size_t n = f->of->shape.inputs;
    float *picked = f->b->ops->alloc(f->b, BATCH * n);
    for (uint32_t i = 0; i < BATCH; i++) {
        index[i] = i * 37 % BATCH / 2;
        memcpy(picked + i * n, f->x + index[i] * n, n * sizeof *picked);
    }
    size_t out = (size_t)BATCH * f->q * f->outputs;
    float *want = malloc(out * sizeof *want), *grads = malloc(f->params_n * sizeof *grads);
    float *d_out = normals(f->b, 9, out);
    f->input.x = picked;
    memcpy(want, rm_net_forward(f->train, f->params, &f->input), out * sizeof *want);
    rm_net_backward(f->train, f->params, &f->input, d_out, grads);
    f->input.x = f->x;
    f->input.index = index;
    assert_memory_equal(rm_net_forward(f->train, f->params, &f->input), want, out * sizeof *want);
    rm_net_backward(f->train, f->params, &f->input, d_out, f->grads);
    assert_memory_equal(f->grads, grads, f->params_n * sizeof *grads);
    free(want);
    free(grads);
    f->b->ops->release(f->b, d_out);
    f->b->ops->release(f->b, picked);
}

static void index_of_rows(void **state)
{
    on_every_network(state, picks);
}

/* A loss whose gradient and sums are easily had: half the squares of the outputs. */
struct squares {
    size_t row;
    uint8_t seen[BATCH];
};

static void square_rows(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                        double sums[RM_NET_SUMS])
{
    struct squares *s = self;
    for (uint32_t r = 0; r < rows; r++)
        s->seen[first + r]++;
    for (size_t i = 0; i < rows * s->row; i++) {
        d_out[i] = out[i];
        sums[0] += 0.5 * (double)out[i] * out[i];
    }
    sums[RM_NET_SUMS - 1] += rows;
}

static void learns(struct fixture *f)
{
    struct squares squares = {.row = (size_t)f->q * f->outputs};
    const struct rm_net_loss loss = {square_rows, &squares};
    double sums[RM_NET_SUMS], want = 0;
    size_t n = BATCH * squares.row;
    float *grads = malloc(f->params_n * sizeof *grads), *d_out = malloc(n * sizeof *d_out);
    memcpy(d_out, rm_net_forward(f->train, f->params, &f->input), n * sizeof *d_out);
    for (size_t i = 0; i < n; i++)
        want += 0.5 * (double)d_out[i] * d_out[i];
    rm_net_backward(f->train, f->params, &f->input, d_out, grads);
    memset(f->grads, 0xff, f->params_n * sizeof *grads);
    rm_net_learn(f->train, f->params, &f->input, &loss, f->grads, sums);
    assert_true(sums[0] > want * (1 - 1e-12) && sums[0] < want * (1 + 1e-12));
    assert_true(sums[1] == 0 && sums[RM_NET_SUMS - 1] == BATCH);
    for (uint32_t r = 0; r < BATCH; r++)
        assert_int_equal(squares.seen[r], 1);
    /* Sums over rows may be in another order than backward's: what is small may be the difference
     * of what is large. */
    double large = 0;
    for (size_t i = 0; i < f->params_n; i++)
        large = fmax(large, fabs((double)grads[i]));
    for (size_t i = 0; i < f->params_n; i++) {
        const double want_here = (double)grads[i], error = fabs((double)f->grads[i] - want_here);
        if (!(error <= 1e-4 * (1.0 + fabs(want_here)) || error <= 1e-6 * large))
            fail_msg("%s: gradient %zu is %.9g, not %.9g", f->of->name, i, f->grads[i], grads[i]);
    }
    free(grads);
    free(d_out);
}

static void all_in_one(void **state)
{
    on_every_network(state, learns);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acting_part),
        cmocka_unit_test(value_alone),
        cmocka_unit_test(index_of_rows),
        cmocka_unit_test(all_in_one),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
