/* Networks over tokens: padding, in whatever company; what a pointer and its like refuse. Results
 * and gradients are held against double precision in test_net_gradients.c. */
#include "tests/support/levels.h"
#include "tests/support/optimizer_step.h"

#include "learner/net/net.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOKENS = 6, NUMBERS = 6, INPUTS = TOKENS * NUMBERS, STATES = 300, ACTIONS = TOKENS - 1 };

/* A prover's policy in small: sets of triples, a residual trunk, a pointer; the value apart. */
static const struct rm_network_config prover = {
    .layer_count = 8,
    .layers = {{.type = RM_LAYER_EMBEDDING,
                .units = 40,
                .codes = 50,
                .columns = 3,
                .first_codes = 7,
                .difference = true},
               {.type = RM_LAYER_LINEAR, .units = 150},
               {.type = RM_LAYER_RELU},
               {.type = RM_LAYER_ATTENTION, .heads = 3},
               {.type = RM_LAYER_LINEAR, .units = 150},
               {.type = RM_LAYER_LAYER_NORM},
               {.type = RM_LAYER_RESIDUAL, .span = 2},
               {.type = RM_LAYER_POINTER, .units = 32}},
    .trunk = RM_TRUNK_SEPARATE,
    .value_layer_count = 2,
    .value_layers = {{.type = RM_LAYER_LINEAR, .units = 20}, {.type = RM_LAYER_TANH}},
};
static const struct rm_net_shape shape = {.inputs = INPUTS,
                                          .actions = ACTIONS,
                                          .outputs_per_action = 1,
                                          .head = RM_HEAD_ACTOR_CRITIC,
                                          .dims = 3,
                                          .dim = {TOKENS, NUMBERS / 3, 3},
                                          .high = 49};

struct fixture {
    struct rm_backend *b;
    struct rm_net *net;
    float *params;
    int32_t x[STATES][TOKENS][NUMBERS];
};

/* Any token may be padding, and the second triple of any; of state 7 all are. */
static void make(struct fixture *f, struct rm_backend *b)
{
    struct rm_error error;
    struct rm_rng rng = rm_rng_at(9, RM_STREAM_TEST, 0, 0);
    f->b = b;
    if (rm_net_compile(&f->net, &prover, &shape, &error))
        fail_msg("%s", error.text);
    f->params = b->ops->alloc(b, rm_net_param_count(f->net));
    rm_net_init(f->net, f->params, rm_rng_at(9, RM_STREAM_INIT, 0, 0));
    memset(f->x, 0, sizeof f->x);
    for (uint32_t s = 0; s < STATES; s++)
        for (uint32_t t = 0; t < TOKENS; t++) {
            uint32_t n = s == 7 ? 0 : 3 * rm_rng_below(&rng, 3);
            for (uint32_t i = 0; i < n; i++)
                f->x[s][t][i] = (int32_t)(1 + rm_rng_below(&rng, i % 3 ? 49 : 6));
        }
}

static void unmake(struct fixture *f)
{
    f->b->ops->release(f->b, f->params);
    rm_net_destroy(f->net);
}

static struct rm_net_workspace *workspace(const struct fixture *f, enum rm_net_use use)
{
    struct rm_net_workspace *w;
    struct rm_error error;
    if (rm_net_workspace_create(&w, f->net, f->b, STATES, 1, use, &error))
        fail_msg("%s", error.text);
    rm_net_prepare(w, f->params);
    return w;
}

static void states_do_not_meet(void **state)
{
    static float want[STATES][ACTIONS + 1];
    static const uint32_t counts[] = {1, 2, 31, 32, 100, 299};
    struct fixture f;
    make(&f, ((struct level_state *)*state)->backend);
    struct rm_net_workspace *train = workspace(&f, RM_NET_TRAIN), *infer = workspace(&f, 0);
    struct rm_net_input input = {.x = f.x, .batch = STATES};
    memcpy(want, rm_net_forward(train, f.params, &input), sizeof want);
    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++)
        for (uint32_t at = 0; at + counts[k] <= STATES; at += 37) {
            input = (struct rm_net_input){.x = f.x[at], .batch = counts[k]};
            const float *got = rm_net_forward(infer, f.params, &input);
            if (memcmp(got, want[at], counts[k] * sizeof want[0]) != 0)
                fail_msg("states %u to %u differ from the same among %d", at, at + counts[k],
                         STATES);
        }
    rm_net_workspace_destroy(train);
    rm_net_workspace_destroy(infer);
    unmake(&f);
}

/* Neither padding nor a value that nobody asks for is counted as work. */
static void operations_are_those_that_are_made(void **state)
{
    struct fixture f;
    uint32_t tokens = 0;
    make(&f, ((struct level_state *)*state)->backend);
    for (uint32_t s = 0; s < STATES; s++)
        for (uint32_t t = 0; t < TOKENS; t++)
            tokens += t == 0 || f.x[s][t][0] != 0;
    const double share = (double)tokens / (STATES * TOKENS);
    struct rm_net_workspace *all = workspace(&f, RM_NET_INFER), *act = workspace(&f, RM_NET_ACT);
    const struct rm_net_input input = {.x = f.x, .batch = STATES};
    assert_true(rm_net_workspace_row_flops(all, 0) == rm_net_forward_flops(f.net, 1, 0));
    rm_net_forward(all, f.params, &input);
    rm_net_forward(act, f.params, &input);
    const double whole = rm_net_workspace_row_flops(all, 0),
                 most = rm_net_forward_flops(f.net, 1, 0);
    assert_true(whole > share * share * most && whole < most);
    const double value = 2.0 * 40 * 20 + 2.0 * 20; /* of the state: its layer and its head */
    assert_float_equal(rm_net_workspace_row_flops(act, 0), whole - value, 1e-3);
    rm_net_workspace_destroy(all);
    rm_net_workspace_destroy(act);
    unmake(&f);
}

/* Candidates at other places score the same there; where there is none, 0. */
static void places_do_not_matter(void **state)
{
    struct fixture f;
    float before[ACTIONS + 1], after[ACTIONS + 1];
    static const uint32_t to[ACTIONS] = {3, 0, 4, 1, 2};
    make(&f, ((struct level_state *)*state)->backend);
    struct rm_net_workspace *w = workspace(&f, RM_NET_INFER);
    for (uint32_t s = 0; s < 40; s++) {
        int32_t moved[TOKENS][NUMBERS];
        memcpy(moved[0], f.x[s][0], sizeof moved[0]);
        for (uint32_t i = 0; i < ACTIONS; i++)
            memcpy(moved[to[i] + 1], f.x[s][i + 1], sizeof moved[0]);
        struct rm_net_input input = {.x = f.x[s], .batch = 1};
        memcpy(before, rm_net_forward(w, f.params, &input), sizeof before);
        input.x = moved;
        memcpy(after, rm_net_forward(w, f.params, &input), sizeof after);
        for (uint32_t i = 0; i < ACTIONS; i++) {
            /* attention adds in another order */
            assert_float_equal(after[to[i]], before[i], 1e-5f);
            bool padding = f.x[s][i + 1][0] == 0;
            assert_int_equal(before[i] == 0, padding);
        }
        assert_true(after[ACTIONS] == before[ACTIONS]);
    }
    rm_net_workspace_destroy(w);
    unmake(&f);
}

/* Gradients of rows that are known beforehand. */
static void given_rows(void *self, uint32_t first, uint32_t rows, const float *out, float *d_out,
                       double sums[RM_NET_SUMS])
{
    const float *given = self;
    (void)out;
    memcpy(d_out, given + (size_t)first * (ACTIONS + 1), rows * (ACTIONS + 1) * sizeof *d_out);
    sums[1] += rows;
}

struct learned {
    float *backward, *learn; /* gradients */
    size_t n;
};

static struct learned learn_with(const char *isa, uint32_t threads)
{
    struct rm_error error;
    struct rm_backend *b;
    struct fixture f;
    double sums[RM_NET_SUMS];
    if (rm_backend_cpu_create(&b, threads, isa, &error))
        fail_msg("%s", error.text);
    make(&f, b);
    struct rm_net_workspace *train = workspace(&f, RM_NET_TRAIN),
                            *tiles = workspace(&f, RM_NET_TRAIN);
    const struct rm_net_input input = {.x = f.x, .batch = STATES};
    float *d_out = b->ops->alloc(b, STATES * (ACTIONS + 1));
    b->ops->normals(b, 9, RM_STREAM_TEST, 1, 0, STATES * (ACTIONS + 1), d_out);
    struct learned l = {.n = rm_net_param_count(f.net)};
    l.backward = malloc(l.n * sizeof *l.backward);
    l.learn = malloc(l.n * sizeof *l.learn);
    const float *out = rm_net_forward(train, f.params, &input);
    rm_net_backward(train, f.params, &input, d_out, l.backward);
    rm_net_learn(tiles, f.params, &input, &(struct rm_net_loss){given_rows, d_out}, l.learn, sums);
    assert_true(sums[1] == STATES);
    assert_memory_equal(out, rm_net_infer(tiles, f.params, &input),
                        STATES * (ACTIONS + 1) * sizeof *out);
    assert_true(rm_net_workspace_row_flops(tiles, 0) == rm_net_workspace_row_flops(train, 0));
    b->ops->release(b, d_out);
    rm_net_workspace_destroy(train);
    rm_net_workspace_destroy(tiles);
    unmake(&f);
    rm_backend_destroy(b);
    return l;
}

/* Tiles of states, some incomplete, make the gradients of a pass of all, also of the tables. */
static void tiles_add_up(void **state)
{
    const struct learned l = learn_with(((struct level_state *)*state)->isa, 2);
    double error = 0, large = 0;
    for (size_t i = 0; i < l.n; i++) {
        error = fmax(error, fabs((double)l.learn[i] - (double)l.backward[i]));
        large = fmax(large, fabs((double)l.backward[i]));
    }
    assert_true(large > 0 && error <= 1e-5 * large);
    free(l.backward);
    free(l.learn);
}

static void threads_do_not_matter(void **state)
{
    const struct level_state *level = *state;
    const struct learned one = learn_with(level->isa, 1), three = learn_with(level->isa, 3);
    assert_memory_equal(one.backward, three.backward, one.n * sizeof *one.backward);
    assert_memory_equal(one.learn, three.learn, one.n * sizeof *one.learn);
    free(one.backward);
    free(one.learn);
    free(three.backward);
    free(three.learn);
}

#define LINEAR(n)                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_LINEAR, .units = (n)                                                      \
    }
#define LAYER(t, n)                                                                                \
    {                                                                                              \
        .type = RM_LAYER_##t, .units = (n)                                                         \
    }

static void refusals(void **state)
{
    (void)state;
    static const struct {
        struct rm_network_config config;
        uint32_t actions, dims;
        const char *says;
    } cases[] = {
        {{.layer_count = 1, .layers = {{.type = RM_LAYER_MEAN_POOL}}}, 2, 1, "needs tokens"},
        {{.layer_count = 1, .layers = {LAYER(POINTER, 4)}}, 3, 1, "needs tokens"},
        {{.layer_count = 2, .layers = {{.type = RM_LAYER_MEAN_POOL}, LAYER(POINTER, 4)}},
         3,
         2,
         "layers[1]: pointer: needs tokens"},
        {{.layer_count = 2, .layers = {LAYER(POINTER, 4), LINEAR(3)}},
         3,
         2,
         "must be the last layer"},
        {{.layer_count = 1, .layers = {LAYER(POINTER, 4)}}, 5, 2, "4 tokens for 5 actions"},
        {{.layer_count = 1, .layers = {LAYER(POINTER, 0)}}, 3, 2, "units must be from 1"},
        {{.layer_count = 1, .layers = {LAYER(POINTER, 4)}, .dueling = true},
         3,
         2,
         "a pointer scores actions itself"},
        {{.layer_count = 1, .layers = {{.type = RM_LAYER_ATTENTION, .heads = 2}}},
         3,
         2,
         "2 heads do not divide a width of 3"},
        {{.layer_count = 1, .layers = {{.type = RM_LAYER_ATTENTION, .heads = 1, .units = 300}}},
         3,
         2,
         "300 units a head; at most 256"},
        {{.layer_count = 2, .layers = {{.type = RM_LAYER_ATTENTION, .heads = 1}, LAYER(GRU, 4)}},
         3,
         2,
         "gru: needs one row of features"},
        {{.layer_count = 1, .layers = {{.type = RM_LAYER_POSITION, .codes = 3}}},
         3,
         2,
         "position: a table of 3 codes is too small for 4 tokens"},
        {{.layer_count = 2, .layers = {{.type = RM_LAYER_MEAN_POOL}, {.type = RM_LAYER_POSITION}}},
         3,
         2,
         "position: needs tokens"},
        {{.layer_count = 1, .layers = {LAYER(LSTM, 0)}}, 3, 1, "lstm: units must be from 1"},
        {{.layer_count = 1, .layers = {{.type = RM_LAYER_EMBEDDING, .units = 4, .columns = 5}}},
         3,
         2,
         "12 numbers cannot be divided into groups of 5"},
        {{.layer_count = 1,
          .layers = {{.type = RM_LAYER_EMBEDDING, .units = 4, .difference = true}}},
         3,
         2,
         "first_codes and difference are for groups"},
        {{.layer_count = 1,
          .layers = {{.type = RM_LAYER_EMBEDDING,
                      .units = 4,
                      .columns = 3,
                      .codes = 9,
                      .first_codes = 9}}},
         3,
         2,
         "the world's numbers go from 0 to 9; a table of 9 codes is too small"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rm_net *net;
        struct rm_error error;
        const struct rm_net_shape of = {.inputs = 12,
                                        .actions = cases[i].actions,
                                        .outputs_per_action = 1,
                                        .dims = cases[i].dims,
                                        .dim = {cases[i].dims == 1 ? 12 : 4, 3},
                                        .high = 9};
        assert_int_equal(rm_net_compile(&net, &cases[i].config, &of, &error), -EINVAL);
        if (!strstr(error.text, cases[i].says))
            fail_msg("case %zu says \"%s\", not \"%s\"", i, error.text, cases[i].says);
    }
}

/* The largest number may be of the first column, which has a table of its own. */
static void the_first_column_may_be_the_largest(void **state)
{
    const struct rm_net_shape of = {
        .inputs = 12, .actions = 3, .outputs_per_action = 1, .dims = 2, .dim = {4, 3}, .high = 9};
    const struct rm_network_config config = {
        .layer_count = 2,
        .layers = {
            {.type = RM_LAYER_EMBEDDING, .units = 4, .columns = 3, .codes = 4, .first_codes = 10},
            {.type = RM_LAYER_MEAN_POOL}}};
    struct rm_error error = {""};
    struct rm_net *net;
    (void)state;
    if (rm_net_compile(&net, &config, &of, &error) < 0)
        fail_msg("%s", error.text);
    rm_net_destroy(net);
}

static void twice_the_result(void *self, uint32_t first, uint32_t rows, const float *out,
                             float *d_out, double sums[RM_NET_SUMS])
{
    (void)self;
    (void)first;
    (void)sums;
    for (uint32_t i = 0; i < rows * (ACTIONS + 1); i++)
        d_out[i] = 2 * out[i];
}

static void learn(const struct fixture *f, struct rm_net_workspace *w, uint32_t batch, float *grads)
{
    const struct rm_net_input input = {.x = f->x[batch * 40], .batch = 3};
    const struct rm_net_loss loss = {.rows = twice_the_result};
    double sums[RM_NET_SUMS];
    rm_net_prepare(w, f->params);
    rm_net_learn(w, f->params, &input, &loss, grads, sums);
}

/* The list has every row with a gradient, and rows that are not in it are zeros. */
static void expect_listed(const struct rm_touched *t, const float *tables)
{
    uint32_t listed = 0;
    for (uint32_t row = 0; row < t->total; row++) {
        listed += t->has[row];
        for (uint32_t i = 0; i < t->units; i++)
            assert_true(t->has[row] || tables[row * t->units + i] == 0.0f);
    }
    assert_int_equal(listed, t->count);
    assert_true(t->count > 5 && t->count < t->total - 5);
}

/* Only rows that were touched are cleared before the next gradient, and only those that are touched
 * now are moved: with the results of looking at all rows. */
static void touched_rows_suffice(void **state)
{
    struct fixture f;
    struct rm_error error;
    struct rm_experiment e = {.network = prover,
                              .optimizer = {.name = RM_OPTIMIZER_ADAM,
                                            .sparse = true,
                                            .learning_rate = 1e-2,
                                            .beta1 = 0.9,
                                            .beta2 = 0.99,
                                            .epsilon = 1e-8}};
    make(&f, ((struct level_state *)*state)->backend);
    const size_t n = rm_net_param_count(f.net);
    float *grads = f.b->ops->alloc(f.b, n), *want = f.b->ops->alloc(f.b, n),
          *other = f.b->ops->alloc(f.b, n), *params = f.b->ops->alloc(f.b, n);
    struct rm_net_workspace *w = workspace(&f, RM_NET_LEARN), *whole = workspace(&f, RM_NET_LEARN);
    struct rm_optimizer *follows, *looks;
    assert_int_equal(rm_optimizer_create(&follows, f.b, &e, f.net, &error), 0);
    assert_int_equal(rm_optimizer_create(&looks, f.b, &e, f.net, &error), 0);
    rm_optimizer_follow(follows, w);
    assert_int_equal(rm_net_track_touched(w, &error), 0);
    memcpy(params, f.params, n * sizeof *params);
    for (uint32_t k = 0; k < 6; k++) {
        size_t at;
        learn(&f, whole, k, want); /* clears all rows */
        if (k == 3)
            learn(&f, w, 0, other); /* other gradients: the next time it clears all rows, too */
        learn(&f, w, k, grads);
        assert_memory_equal(grads, want, n * sizeof *grads);
        const struct rm_touched *t = rm_net_touched(w, grads, &at);
        assert_non_null(t);
        assert_null(rm_net_touched(w, want, &at));
        expect_listed(t, grads + at);
        rm_test_optimizer_step(looks, &(struct rm_test_step){params, want, 0, k + 1});
        rm_test_optimizer_step(follows, &(struct rm_test_step){f.params, grads, 0, k + 1});
        assert_memory_equal(f.params, params, n * sizeof *params);
    }
    rm_optimizer_destroy(follows);
    rm_optimizer_destroy(looks);
    rm_net_workspace_destroy(w);
    rm_net_workspace_destroy(whole);
    f.b->ops->release(f.b, grads);
    f.b->ops->release(f.b, want);
    f.b->ops->release(f.b, other);
    f.b->ops->release(f.b, params);
    unmake(&f);
}

/* A recurrent network goes in tiles of lanes, which write to all rows, if the number of lanes lets
 * it: 16 do, 17 do not. */
static void touched_rows_of_sequences(void **state)
{
    enum { STEPS = 4, MOST = 17 };
    static const struct rm_network_config config = {
        .layer_count = 2,
        .layers = {{.type = RM_LAYER_EMBEDDING, .units = 8, .columns = 3, .codes = 200},
                   {.type = RM_LAYER_GRU, .units = 8}}};
    static const struct rm_net_shape of = {.inputs = 3,
                                           .actions = ACTIONS,
                                           .outputs_per_action = 1,
                                           .head = RM_HEAD_ACTOR_CRITIC,
                                           .dims = 1,
                                           .dim = {3},
                                           .high = 199};
    static const uint32_t lanes[] = {17, 16, 17, 16, 16, 17};
    static int32_t x[STEPS * MOST][3];
    struct rm_backend *b = ((struct level_state *)*state)->backend;
    struct rm_net_workspace *w[2];
    struct rm_net *net;
    struct rm_error error = {""};
    if (rm_net_compile(&net, &config, &of, &error))
        fail_msg("%s", error.text);
    const size_t n = rm_net_param_count(net);
    float *params = b->ops->alloc(b, n), *grads[2];
    rm_net_init(net, params, rm_rng_at(9, RM_STREAM_INIT, 0, 0));
    for (int i = 0; i < 2; i++) {
        grads[i] = b->ops->alloc(b, n);
        assert_int_equal(
            rm_net_workspace_create(&w[i], net, b, STEPS * MOST, 1, RM_NET_LEARN, &error), 0);
    }
    assert_int_equal(rm_net_track_touched(w[1], &error), 0);
    for (uint32_t k = 0; k < sizeof lanes / sizeof *lanes; k++) {
        struct rm_rng rng = rm_rng_at(9, RM_STREAM_TEST, 2, k);
        const struct rm_net_input input = {.x = x, .batch = STEPS * lanes[k], .steps = STEPS};
        const struct rm_net_loss loss = {.rows = twice_the_result};
        double sums[RM_NET_SUMS];
        size_t at;
        for (uint32_t i = 0; i < STEPS * MOST * 3; i++)
            x[i / 3][i % 3] = (int32_t)rm_rng_below(&rng, 200);
        for (int i = 0; i < 2; i++) {
            rm_net_prepare(w[i], params);
            rm_net_learn(w[i], params, &input, &loss, grads[i], sums);
        }
        assert_memory_equal(grads[0], grads[1], n * sizeof *params);
        const struct rm_touched *t = rm_net_touched(w[1], grads[1], &at);
        assert_true((t != NULL) == (lanes[k] == 17));
        if (t)
            expect_listed(t, grads[1] + at);
    }
    for (int i = 0; i < 2; i++) {
        rm_net_workspace_destroy(w[i]);
        b->ops->release(b, grads[i]);
    }
    b->ops->release(b, params);
    rm_net_destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_do_not_meet),
        cmocka_unit_test(operations_are_those_that_are_made),
        cmocka_unit_test(places_do_not_matter),
        cmocka_unit_test(tiles_add_up),
        cmocka_unit_test(threads_do_not_matter),
        cmocka_unit_test(touched_rows_suffice),
        cmocka_unit_test(touched_rows_of_sequences),
        cmocka_unit_test(refusals),
        cmocka_unit_test(the_first_column_may_be_the_largest),
    };
    return run_on_levels(tests, sizeof tests / sizeof tests[0]);
}
