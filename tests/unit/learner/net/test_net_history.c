/* Networks over packed histories: the transformer of the dark room and what its outputs may depend
 * on. Its layers' arithmetic is tested as every layer's (test_net_gradients). */
#include "learner/net/history.h"

#include "tests/support/levels.h"
#include "tests/support/net_words.h"
#include "tests/support/nets.h"

#include "shm/base/rng.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 10, WIDTH = 12, REGION = 80, CONTEXT = 162, CODES_OF_QUERIES = 81 };
enum { ACTIONS = 5, TYPES = 3, OUTPUTS = ACTIONS + TYPES };

/* The same parameters with another number of places or queries. */
static struct rm_net *compile(uint32_t context, uint32_t queries)
{
    struct rm_net *net;
    struct rm_error error;
    const struct rm_net_shape shape =
        rm_history_shape(context, queries, FEATURES, CODES_OF_QUERIES, ACTIONS, TYPES);
    if (rm_net_compile(&net, &darkroom_net.config, &shape, &error))
        fail_msg("%s", error.text);
    return net;
}

static float *parameters(const struct rm_net *net)
{
    float *p = malloc(rm_net_param_count(net) * sizeof *p);
    rm_net_init(net, p, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
    return p;
}

static void put_transition(struct rm_rng *rng, float *row)
{
    float f[FEATURES] = {0};
    f[0] = (float)rm_rng_below(rng, 9);
    f[1] = (float)rm_rng_below(rng, 9);
    f[2 + rm_rng_below(rng, ACTIONS)] = 1;
    f[7] = (float)rm_rng_below(rng, 2);
    f[8] = (float)rm_rng_below(rng, 9);
    f[9] = (float)rm_rng_below(rng, 9);
    rm_history_put(row, RM_HISTORY_TRANSITION, 0, f, FEATURES);
}

/* A region's sample: 162 or 80 rows of context, then 80 queries. */
static void put_sample(struct rm_rng *rng, bool first_region, float *x)
{
    memset(x, 0, (CONTEXT + REGION) * WIDTH * sizeof *x);
    float *row = x;
    rm_history_put(row, RM_HISTORY_BEGIN, 0, NULL, FEATURES);
    row += WIDTH;
    for (int i = 0; i < REGION && !first_region; i++, row += WIDTH)
        put_transition(rng, row);
    if (!first_region) {
        rm_history_put(row, RM_HISTORY_END, 0, NULL, FEATURES);
        rm_history_put(row + WIDTH, RM_HISTORY_BEGIN, 0, NULL, FEATURES);
        row += 2 * WIDTH;
    }
    for (int i = 0; i < REGION - 1; i++, row += WIDTH)
        put_transition(rng, row);
    for (uint32_t i = 0; i < REGION; i++)
        rm_history_put(x + (CONTEXT + i) * WIDTH, RM_HISTORY_QUERY,
                       rm_rng_below(rng, CODES_OF_QUERIES), NULL, FEATURES);
}

static struct rm_net_workspace *workspace(const struct rm_net *net, struct rm_backend *b,
                                          uint32_t batch, enum rm_net_use use, const float *params)
{
    struct rm_net_workspace *w;
    struct rm_error error;
    if (rm_net_workspace_create(&w, net, b, batch, 1, use, &error))
        fail_msg("%s", error.text);
    rm_net_prepare(w, params);
    return w;
}

static void size_of_the_network(void **state)
{
    (void)state;
    struct rm_net *net = compile(CONTEXT, REGION), *one = compile(CONTEXT, 1);
    assert_int_equal(rm_net_param_count(net), 227656);
    assert_int_equal(rm_net_param_count(one), 227656);
    assert_int_equal(rm_net_outputs(net), REGION * OUTPUTS);
    assert_int_equal(rm_net_outputs(one), OUTPUTS);
    rm_net_destroy(net);
    rm_net_destroy(one);
}

static const float *tensor(const struct rm_net *net, const float *params, const char *name,
                           size_t *n)
{
    const struct rm_net_tensor *t;
    size_t count = rm_net_tensors(net, &t);
    for (size_t i = 0; i < count; i++)
        if (strcmp(t[i].name, name) == 0) {
            *n = t[i].shape[0];
            for (uint32_t d = 1; d < t[i].dims; d++)
                *n *= t[i].shape[d];
            return params + t[i].offset;
        }
    fail_msg("no tensor %s", name);
    return NULL;
}

static void expect_deviation(const struct rm_net *net, const float *params, const char *name,
                             double least, double most)
{
    size_t n = 0;
    const float *p = tensor(net, params, name, &n);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)p[i] * p[i];
    const double deviation = sqrt(sum / (double)n);
    if (!(deviation >= least && deviation <= most))
        fail_msg("%s: deviation %g, expected %g to %g", name, deviation, least, most);
}

/* Xavier's bound is sqrt(6 / (64 + 192)) = 0.153, a linear layer's 1 / sqrt(64) = 0.125; a uniform
 * number's deviation is its bound / sqrt(3). */
static void initial_parameters(void **state)
{
    (void)state;
    struct rm_net *net = compile(CONTEXT, REGION);
    float *params = parameters(net);
    expect_deviation(net, params, "layers.0.position", 0.0195, 0.0205);
    expect_deviation(net, params, "layers.0.ends", 0.014, 0.026);
    expect_deviation(net, params, "layers.0.type", 0.8, 1.2);
    expect_deviation(net, params, "layers.0.query", 0.96, 1.04);
    expect_deviation(net, params, "layers.0.context.weight", 0.17, 0.195);
    expect_deviation(net, params, "layers.1.qkv.weight", 0.0865, 0.0903);
    expect_deviation(net, params, "layers.1.qkv.bias", 0, 0);
    expect_deviation(net, params, "layers.1.out.weight", 0.070, 0.0745);
    expect_deviation(net, params, "layers.1.out.bias", 0, 0);
    expect_deviation(net, params, "layers.5.bias", 0.06, 0.085);
    expect_deviation(net, params, "head.weight", 0.065, 0.079);
    free(params);
    rm_net_destroy(net);
}

/* The logits of each query of two regions at once, and of one query at a time after the rows that
 * it sees. */
static void packed_equals_one_at_a_time(void **state)
{
    struct level_state *level = *state;
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 0, 0);
    struct rm_net *net = compile(CONTEXT, REGION), *alone = compile(CONTEXT, 1);
    float *params = parameters(net);
    struct rm_net_workspace *w = workspace(net, level->backend, 2, RM_NET_INFER, params);
    struct rm_net_workspace *w1 = workspace(alone, level->backend, 1, RM_NET_INFER, params);
    const size_t floats = (CONTEXT + REGION) * WIDTH;
    float *x = malloc(2 * floats * sizeof *x), *one = malloc((CONTEXT + 1) * WIDTH * sizeof *one);
    put_sample(&rng, true, x);
    put_sample(&rng, false, x + floats);
    const struct rm_net_input packed = {.x = x, .batch = 2};
    const float *out = rm_net_forward(w, params, &packed);
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t q = 0; q < REGION; q++) {
            const float *of = x + i * floats;
            const uint32_t context = i ? CONTEXT : REGION;
            const uint32_t sees = rm_history_seen(context, REGION, q);
            assert_int_equal(sees, i ? 83 + q : 1 + q);
            memset(one, 0, (CONTEXT + 1) * WIDTH * sizeof *one);
            memcpy(one, of, sees * WIDTH * sizeof *one);
            memcpy(one + CONTEXT * WIDTH, of + (CONTEXT + q) * WIDTH, WIDTH * sizeof *one);
            const struct rm_net_input input = {.x = one, .batch = 1};
            const float *got = rm_net_forward(w1, params, &input);
            for (uint32_t k = 0; k < OUTPUTS; k++) {
                const float want = out[(i * REGION + q) * OUTPUTS + k];
                if (!(fabsf(got[k] - want) <= 1e-5f))
                    fail_msg("region %u, query %u, logit %u: %.9g alone, %.9g packed", i, q, k,
                             (double)got[k], (double)want);
            }
        }
    free(one);
    free(x);
    rm_net_workspace_destroy(w);
    rm_net_workspace_destroy(w1);
    free(params);
    rm_net_destroy(net);
    rm_net_destroy(alone);
}

/* Logits of query q stay the same to the bit whatever becomes of context rows from its index on, of
 * other queries and of other samples; and they do change with what it sees. */
static void nothing_leaks(void **state)
{
    struct level_state *level = *state;
    struct rm_rng rng = rm_rng_at(6, RM_STREAM_TEST, 0, 0);
    struct rm_net *net = compile(CONTEXT, REGION);
    float *params = parameters(net);
    struct rm_net_workspace *w = workspace(net, level->backend, 3, RM_NET_INFER, params);
    const size_t floats = (CONTEXT + REGION) * WIDTH, outputs = REGION * OUTPUTS;
    float *x = malloc(3 * floats * sizeof *x), *was = malloc(3 * outputs * sizeof *was);
    static const uint32_t queries[] = {0, 1, 40, 78, 79};
    for (uint32_t i = 0; i < 3; i++)
        put_sample(&rng, i == 1, x + i * floats);
    const struct rm_net_input input = {.x = x, .batch = 3};
    memcpy(was, rm_net_forward(w, params, &input), 3 * outputs * sizeof *was);
    for (size_t k = 0; k < sizeof queries / sizeof queries[0]; k++) {
        const uint32_t q = queries[k];
        float *changed = malloc(3 * floats * sizeof *changed);
        memcpy(changed, x, 3 * floats * sizeof *changed);
        put_sample(&rng, false, changed); /* another sample */
        put_sample(&rng, true, changed + 2 * floats);
        for (uint32_t r = 1 + q; r < REGION; r++) /* of the one in the middle */
            put_transition(&rng, changed + floats + r * WIDTH);
        for (uint32_t other = 0; other < REGION; other++)
            if (other != q)
                changed[floats + (CONTEXT + other) * WIDTH + 1] =
                    (float)rm_rng_below(&rng, CODES_OF_QUERIES);
        const struct rm_net_input again = {.x = changed, .batch = 3};
        const float *out = rm_net_forward(w, params, &again);
        assert_memory_equal(out + outputs + q * OUTPUTS, was + outputs + q * OUTPUTS,
                            OUTPUTS * sizeof *out);
        changed[floats + q * WIDTH + RM_HISTORY_FEATURES] += 1; /* the last row that it sees */
        changed[floats + q * WIDTH] = RM_HISTORY_TRANSITION;
        out = rm_net_forward(w, params, &again);
        assert_memory_not_equal(out + outputs + q * OUTPUTS, was + outputs + q * OUTPUTS,
                                OUTPUTS * sizeof *out);
        free(changed);
    }
    free(x);
    free(was);
    rm_net_workspace_destroy(w);
    free(params);
    rm_net_destroy(net);
}

struct draws {
    float *grads, *out;
    double sum;
};

static void half_squares(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                         double sums[RM_NET_SUMS])
{
    const size_t outputs = REGION * OUTPUTS;
    float *copy = *(float **)self;
    for (size_t i = 0; i < rows * outputs; i++) {
        copy[first * outputs + i] = out[i];
        d_out[i] = out[i];
        sums[0] += 0.5 * (double)out[i] * (double)out[i];
    }
}

static void learn(struct level_state *level, uint32_t threads, uint64_t seed, uint64_t update,
                  const float *x, uint32_t batch, struct draws *d)
{
    struct rm_backend *b;
    struct rm_error error;
    struct rm_net *net = compile(CONTEXT, REGION);
    float *params = parameters(net);
    assert_int_equal(rm_backend_cpu_create(&b, threads, level->isa, &error), 0);
    struct rm_net_workspace *w = workspace(net, b, batch, RM_NET_TRAIN, params);
    d->grads = malloc(rm_net_param_count(net) * sizeof(float));
    d->out = malloc((size_t)batch * REGION * OUTPUTS * sizeof(float));
    const struct rm_net_loss loss = {half_squares, &d->out};
    const struct rm_net_input input = {
        .x = x, .batch = batch, .dropout_seed = seed, .dropout_update = update};
    double sums[RM_NET_SUMS];
    rm_net_learn(w, params, &input, &loss, d->grads, sums);
    d->sum = sums[0];
    rm_net_workspace_destroy(w);
    rm_backend_destroy(b);
    free(params);
    rm_net_destroy(net);
}

static void discard(struct draws *d)
{
    free(d->grads);
    free(d->out);
}

/* Dropout draws by seed, update and place: the same for any number of threads, others in the next
 * update and for another seed; and samples with equal rows have draws of their own. */
static void the_same_draws(void **state)
{
    struct level_state *level = *state;
    enum { BATCH = 3 };
    struct rm_rng rng = rm_rng_at(7, RM_STREAM_TEST, 0, 0);
    const size_t floats = (CONTEXT + REGION) * WIDTH, outputs = REGION * OUTPUTS;
    float *x = malloc(BATCH * floats * sizeof *x);
    put_sample(&rng, true, x);
    put_sample(&rng, false, x + floats);
    for (size_t i = 0; i < floats; i++)
        x[2 * floats + i] = x[floats + i];
    struct draws one, three, next, other, off;
    learn(level, 1, 5, 9, x, BATCH, &one);
    learn(level, 3, 5, 9, x, BATCH, &three);
    learn(level, 1, 5, 10, x, BATCH, &next);
    learn(level, 1, 6, 9, x, BATCH, &other);
    learn(level, 1, 5, 0, x, BATCH, &off);
    assert_memory_equal(one.grads, three.grads, 227656 * sizeof(float));
    assert_memory_equal(one.out, three.out, BATCH * outputs * sizeof(float));
    assert_true(one.sum == three.sum);
    assert_memory_not_equal(one.out, next.out, BATCH * outputs * sizeof(float));
    assert_memory_not_equal(one.out, other.out, BATCH * outputs * sizeof(float));
    assert_memory_not_equal(one.out + outputs, one.out + 2 * outputs, outputs * sizeof(float));
    assert_memory_equal(off.out + outputs, off.out + 2 * outputs, outputs * sizeof(float));
    discard(&one);
    discard(&three);
    discard(&next);
    discard(&other);
    discard(&off);
    free(x);
}

/* A damaged sample has fewer rows than queries: numbers without meaning, nothing else. */
static void too_few_rows(void **state)
{
    struct level_state *level = *state;
    const size_t floats = (CONTEXT + REGION) * WIDTH;
    float *x = calloc(2 * floats, sizeof *x);
    struct draws d;
    for (uint32_t i = 0; i < 7; i++)
        x[floats + (CONTEXT + i) * WIDTH] = 1e30f * (float)i;
    learn(level, 1, 5, 9, x, 2, &d);
    assert_true(isfinite(d.sum));
    discard(&d);
    free(x);
}

/* Operations of a region of 242 rows, 80 of them queries, of which those that are no queries have
 * only keys and values in the last block. */
static void counted_operations(void **state)
{
    (void)state;
    struct rm_net *net = compile(CONTEXT, REGION);
    const double rows = CONTEXT + REGION, blocks = 3, width = 64;
    const double block = 2 * width * (3 * width + width + 2 * 4 * width); /* of a row */
    const double context = CONTEXT * (CONTEXT + 1.0) / 2, asked = REGION * (83 + 79 / 2.0 + 1);
    const double last = REGION * block + CONTEXT * 2 * width * 2 * width + 4 * asked * width;
    const double ends = rows * 2 * FEATURES * width + REGION * 2 * width * OUTPUTS;
    const double want = blocks * (rows * block + 4 * (context + asked) * width) + last + ends;
    const double got = rm_net_forward_flops(net, 1, 0);
    if (!(fabs(got - want) < 1))
        fail_msg("%.0f operations, expected %.0f", got, want);
    rm_net_destroy(net);
}

struct refusal {
    struct rm_network_config config;
    struct rm_net_shape shape;
    const char *what;
};

static void refusals(void **state)
{
    (void)state;
    static const struct refusal of[] = {
        {{.layer_count = 1, .layers = {HISTORY(8, 20)}},
         TOKENS(9, 6, 2, RM_HEAD_LOGITS),
         "network.layers[0]: history: takes packed histories, and algorithm.name makes none"},
        {{.layer_count = 2, .layers = {HISTORY(8, 20), ATTENTION(2, 0, false)}},
         HISTORIES(9, 4, 3, 5, 4, 3),
         "network.layers[1]: attention: over a history it must be causal"},
        {{.layer_count = 2, .layers = {HISTORY(8, 20), POSITION(0)}},
         HISTORIES(9, 4, 3, 5, 4, 3),
         "network.layers[1]: position: a history has positions already"},
        {{.layer_count = 1, .layers = {HISTORY(8, 8)}},
         HISTORIES(9, 4, 3, 5, 4, 3),
         "network.layers[0]: history: a table of 8 codes has no row for the last of 10 positions"},
        {{.layer_count = 2, .layers = {HISTORY(8, 20), MEAN_POOL}},
         HISTORIES(9, 4, 3, 5, 4, 3),
         "network.layers: the input is packed histories; the first layer must be a history, and no "
         "layer may put its tokens together"},
        {{.layer_count = 1, .layers = {LINEAR(8)}},
         HISTORIES(9, 4, 3, 5, 4, 3),
         "network.layers: the input is packed histories; the first layer must be a history, and no "
         "layer may put its tokens together"},
        {{.layer_count = 2, .layers = {LINEAR(8), HISTORY(8, 20)}},
         HISTORIES(9, 4, 3, 5, 4, 3),
         "network.layers[1]: history: must be the first layer of network.layers"},
    };
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        struct rm_net *net;
        struct rm_error error;
        assert_int_equal(rm_net_compile(&net, &of[i].config, &of[i].shape, &error), -EINVAL);
        assert_string_equal(error.text, of[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(size_of_the_network),
        cmocka_unit_test(initial_parameters),
        cmocka_unit_test(packed_equals_one_at_a_time),
        cmocka_unit_test(nothing_leaks),
        cmocka_unit_test(the_same_draws),
        cmocka_unit_test(too_few_rows),
        cmocka_unit_test(counted_operations),
        cmocka_unit_test(refusals),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
