/* The optimizers against the same algorithms in double, and what all of them promise: one norm,
 * tensors left alone, skipped steps that change nothing, state that can be carried over. */
#include "learner/algo/optimizer.h"
#include "tests/support/levels.h"
#include "tests/support/optimizer_step.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 11, WIDE = 24, ACTIONS = 3, STEPS = 150 };

static struct rm_backend *backend_of(void **state)
{
    return ((struct level_state *)*state)->backend;
}

static struct rm_experiment experiment_of(enum rm_optimizer_kind name)
{
    static struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.optimizer.name = name;
    e.optimizer.learning_rate = 3e-3;
    e.optimizer.beta1 = 0.9;
    e.optimizer.beta2 = 0.99;
    e.optimizer.epsilon = 1e-6;
    e.network.layer_count = 3;
    e.network.layers[0] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = WIDE};
    e.network.layers[1] = (struct rm_layer_config){.type = RM_LAYER_RELU};
    e.network.layers[2] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = 40};
    return e;
}

/* An optimizer of a small network, its arena, and the same arena in double. */
struct bench {
    struct rm_backend *backend;
    struct rm_experiment experiment;
    struct rm_net *net;
    struct rm_optimizer *optimizer;
    size_t n;
    float *params, *grads;
    double *p, *m, *v;
    const struct rm_net_tensor *tensors;
    size_t tensor_count;
};

static void gradient(struct bench *b, uint64_t step)
{
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 1, step);
    for (size_t i = 0; i < b->n; i++)
        b->grads[i] = (rm_rng_float(&rng) - 0.4f) * (i % 7 == 0 ? 1e-4f : 1.0f);
}

static void set_up(struct bench *b, void **state, struct rm_experiment e)
{
    struct rm_error error = {""};
    const struct rm_net_shape shape = {.inputs = INPUTS,
                                       .actions = ACTIONS,
                                       .outputs_per_action = 1,
                                       .head = e.optimizer.clip_apart ? RM_HEAD_ACTOR_CRITIC
                                                                      : RM_HEAD_VALUES};
    memset(b, 0, sizeof *b);
    b->backend = backend_of(state);
    b->experiment = e;
    if (rm_net_compile(&b->net, &b->experiment.network, &shape, &error) ||
        rm_optimizer_create(&b->optimizer, b->backend, &b->experiment, b->net, &error))
        fail_msg("%s", error.text);
    b->n = rm_net_param_count(b->net);
    b->tensor_count = rm_net_tensors(b->net, &b->tensors);
    b->params = b->backend->ops->alloc(b->backend, b->n);
    b->grads = b->backend->ops->alloc(b->backend, b->n);
    b->p = calloc(b->n, sizeof *b->p);
    b->m = calloc(b->n, sizeof *b->m);
    b->v = calloc(b->n, sizeof *b->v);
    rm_net_init(b->net, b->params, rm_rng_at(5, RM_STREAM_INIT, 0, 0));
    for (size_t i = 0; i < b->n; i++)
        b->p[i] = b->params[i];
}

static void tear_down(struct bench *b)
{
    rm_optimizer_destroy(b->optimizer);
    rm_net_destroy(b->net);
    b->backend->ops->release(b->backend, b->params);
    b->backend->ops->release(b->backend, b->grads);
    free(b->p);
    free(b->m);
    free(b->v);
}

static struct rm_test_stepped step(struct bench *b, uint64_t number)
{
    const struct rm_test_step input = {
        .params = b->params, .grads = b->grads, .loss = 1, .update = number};
    return rm_test_optimizer_step(b->optimizer, &input);
}

static size_t size_of(const struct rm_net_tensor *t)
{
    size_t n = t->shape[0];
    for (uint32_t d = 1; d < t->dims; d++)
        n *= t->shape[d];
    return n;
}

static double distance(const struct bench *b)
{
    double apart = 0, size = 0;
    for (size_t i = 0; i < b->n; i++) {
        apart += (b->params[i] - b->p[i]) * (b->params[i] - b->p[i]);
        size += b->p[i] * b->p[i];
    }
    return sqrt(apart / size);
}

/* --- the algorithms in double ---------------------------------------------------------------- */

static void reference_adam(struct bench *b, const struct rm_net_tensor *t, double scale,
                           double rate, int k, double decay)
{
    const double b1 = b->experiment.optimizer.beta1, b2 = b->experiment.optimizer.beta2;
    for (size_t i = t->offset; i < t->offset + size_of(t); i++) {
        const double g = scale * b->grads[i];
        b->p[i] *= 1 - rate * decay;
        b->m[i] = b1 * b->m[i] + (1 - b1) * g;
        b->v[i] = b2 * b->v[i] + (1 - b2) * g * g;
        b->p[i] -= rate * (b->m[i] / (1 - pow(b1, k))) /
                   (sqrt(b->v[i] / (1 - pow(b2, k))) + b->experiment.optimizer.epsilon);
    }
}

static void reference_rmsprop(struct bench *b, const struct rm_net_tensor *t, double scale,
                              double rate)
{
    const double alpha = b->experiment.optimizer.beta2;
    for (size_t i = t->offset; i < t->offset + size_of(t); i++) {
        const double g = scale * b->grads[i];
        b->v[i] = alpha * b->v[i] + (1 - alpha) * g * g;
        const double d = g / (sqrt(b->v[i]) + b->experiment.optimizer.epsilon);
        b->m[i] = b->experiment.optimizer.momentum * b->m[i] + d;
        b->p[i] -= rate * b->m[i];
    }
}

/* x <- 3.4445 x - 4.7750 (x x^T) x + 2.0315 (x x^T)^2 x, written out element by element. */
static void newton_schulz(double *x, size_t rows, size_t columns)
{
    double *a = calloc(rows * rows, sizeof *a), *c = calloc(rows * rows, sizeof *c);
    double *y = calloc(rows * columns, sizeof *y);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < rows; j++)
            for (size_t k = 0; k < columns; k++)
                a[i * rows + j] += x[i * columns + k] * x[j * columns + k];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < rows; j++) {
            c[i * rows + j] = -4.7750 * a[i * rows + j];
            for (size_t k = 0; k < rows; k++)
                c[i * rows + j] += 2.0315 * a[i * rows + k] * a[k * rows + j];
        }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) {
            y[i * columns + j] = 3.4445 * x[i * columns + j];
            for (size_t k = 0; k < rows; k++)
                y[i * columns + j] += c[i * rows + k] * x[k * columns + j];
        }
    memcpy(x, y, rows * columns * sizeof *x);
    free(a);
    free(c);
    free(y);
}

static void reference_muon(struct bench *b, const struct rm_net_tensor *t, double scale,
                           double rate)
{
    const double mu = b->experiment.optimizer.momentum;
    const size_t n = size_of(t), rows = t->shape[0], columns = n / rows;
    double *x = calloc(n, sizeof *x), norm = 0;
    for (size_t i = 0; i < n; i++) {
        const double g = (1 - mu) * scale * b->grads[t->offset + i];
        b->m[t->offset + i] = mu * b->m[t->offset + i] + g;
        x[i] = mu * b->m[t->offset + i] + g;
        norm += x[i] * x[i];
    }
    for (size_t i = 0; i < n; i++)
        x[i] /= sqrt(norm) + 1e-7;
    for (int k = 0; k < 5; k++)
        newton_schulz(x, rows, columns);
    const double reach = rate * 0.2 * sqrt((double)(rows > columns ? rows : columns));
    for (size_t i = 0; i < n; i++) {
        double *p = &b->p[t->offset + i];
        *p = (1 - rate * b->experiment.optimizer.weight_decay) * *p - reach * x[i];
    }
    free(x);
}

static void reference_step(struct bench *b, int k)
{
    const struct rm_experiment *e = &b->experiment;
    double squares[2] = {0}; /* the value's own apart */
    for (size_t i = 0; i < b->tensor_count; i++) {
        const struct rm_net_tensor *t = &b->tensors[i];
        const bool apart = e->optimizer.clip_apart && strncmp(t->name, "value_", 6) == 0;
        for (size_t j = t->offset; j < t->offset + size_of(t); j++)
            squares[apart] += (double)b->grads[j] * b->grads[j];
    }
    for (size_t i = 0; i < b->tensor_count; i++) {
        const struct rm_net_tensor *t = &b->tensors[i];
        const bool apart = e->optimizer.clip_apart && strncmp(t->name, "value_", 6) == 0;
        const double norm = sqrt(squares[apart]);
        const double scale = e->optimizer.grad_clip > 0 && norm > e->optimizer.grad_clip
                                 ? e->optimizer.grad_clip / norm
                                 : 1;
        const double rate = e->optimizer.learning_rate;
        if (e->optimizer.name == RM_OPTIMIZER_RMSPROP)
            reference_rmsprop(b, t, scale, rate);
        else if (e->optimizer.name == RM_OPTIMIZER_MUON && (t->flags & RM_TENSOR_MATRIX))
            reference_muon(b, t, scale, rate);
        else
            reference_adam(b, t, scale, rate, k,
                           e->optimizer.name == RM_OPTIMIZER_ADAMW &&
                                   (e->optimizer.decay_all || t->flags & RM_TENSOR_MATRIX)
                               ? e->optimizer.weight_decay
                               : 0);
    }
}

static void against_double(void **state, const struct rm_experiment *e, double allowed)
{
    struct bench b;
    set_up(&b, state, *e);
    for (int k = 1; k <= STEPS; k++) {
        gradient(&b, (uint64_t)k);
        assert_false(step(&b, (uint64_t)k).skipped);
        reference_step(&b, k);
    }
    if (!(distance(&b) < allowed))
        fail_msg("%g apart after %d steps, allowed is %g", distance(&b), STEPS, allowed);
    tear_down(&b);
}

/* The state value's head by a norm of its own: also where the other group is far above the limit
 * and this one is not. */
static void clipped_apart(void **state)
{
    static const double limits[] = {0.5, 5};
    for (int kind = 0; kind < RM_OPTIMIZER_COUNT; kind++)
        for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
            struct rm_experiment e = experiment_of((enum rm_optimizer_kind)kind);
            e.optimizer.clip_apart = true;
            e.optimizer.grad_clip = limits[i];
            e.optimizer.momentum = 0.9;
            against_double(state, &e, 2e-4);
        }
}

static void adam(void **state)
{
    struct rm_experiment e = experiment_of(RM_OPTIMIZER_ADAM);
    e.optimizer.weight_decay = 0.3; /* not adam's */
    against_double(state, &e, 1e-6);
    e.optimizer.grad_clip = 0.5;
    against_double(state, &e, 1e-6);
}

static void adamw(void **state)
{
    struct rm_experiment e = experiment_of(RM_OPTIMIZER_ADAMW);
    against_double(state, &e, 1e-6);
    e.optimizer.weight_decay = 0.3;
    e.optimizer.grad_clip = 0.5;
    against_double(state, &e, 1e-6);
    e.optimizer.decay_all = true;
    against_double(state, &e, 1e-6);
}

static void rmsprop(void **state)
{
    struct rm_experiment e = experiment_of(RM_OPTIMIZER_RMSPROP);
    against_double(state, &e, 2e-6);
    e.optimizer.momentum = 0.9;
    e.optimizer.grad_clip = 0.5;
    against_double(state, &e, 2e-6);
}

static void muon(void **state)
{
    struct rm_experiment e = experiment_of(RM_OPTIMIZER_MUON);
    against_double(state, &e, 3e-6);
    e.optimizer.momentum = 0.95;
    e.optimizer.weight_decay = 0.1;
    e.optimizer.grad_clip = 0.5;
    against_double(state, &e, 3e-6);
}

/* A step's singular values are about 1: its Gram matrix is nearly the identity, whatever the
 * gradient was, which no step of the other optimizers gives. */
static void muon_steps_are_orthogonal(void **state)
{
    struct bench b;
    set_up(&b, state, experiment_of(RM_OPTIMIZER_MUON));
    gradient(&b, 1);
    step(&b, 1);
    for (size_t i = 0; i < b.tensor_count; i++) {
        const struct rm_net_tensor *t = &b.tensors[i];
        if (!(t->flags & RM_TENSOR_MATRIX))
            continue;
        const size_t rows = t->shape[0], columns = t->shape[1];
        const double reach = 3e-3 * 0.2 * sqrt((double)(rows > columns ? rows : columns));
        const size_t k = rows < columns ? rows : columns;
        double trace = 0;
        for (size_t j = 0; j < rows * columns; j++) {
            const double d = (b.params[t->offset + j] - b.p[t->offset + j]) / reach;
            trace += d * d;
        }
        assert_true(trace > 0.49 * (double)k && trace < 1.44 * (double)k);
    }
    tear_down(&b);
}

/* --- what all of them promise ---------------------------------------------------------------- */

static void each_kind(void **state, void (*check)(struct bench *b))
{
    for (int kind = 0; kind < RM_OPTIMIZER_COUNT; kind++) {
        struct bench b;
        struct rm_experiment e = experiment_of((enum rm_optimizer_kind)kind);
        e.optimizer.momentum = 0.9;
        e.optimizer.weight_decay = 0.1;
        set_up(&b, state, e);
        check(&b);
        tear_down(&b);
    }
}

static void check_skip(struct bench *b)
{
    struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS];
    float *before = calloc(b->n * 3, sizeof *before);
    gradient(b, 1);
    assert_false(step(b, 1).skipped);
    const size_t n = rm_optimizer_arenas(b->optimizer, arenas);
    memcpy(before, b->params, b->n * sizeof *before);
    for (size_t i = 0; i < n; i++)
        memcpy(before + (i + 1) * b->n, arenas[i].data, b->n * sizeof *before);
    for (int how = 0; how < 3; how++) {
        gradient(b, 2);
        if (how < 2)
            b->grads[b->n - 1] = how ? INFINITY : NAN;
        const struct rm_test_step input = {
            .params = b->params, .grads = b->grads, .loss = how == 2 ? NAN : 1, .update = 2};
        assert_true(rm_test_optimizer_step(b->optimizer, &input).skipped);
        assert_memory_equal(before, b->params, b->n * sizeof *before);
        for (size_t i = 0; i < n; i++)
            assert_memory_equal(before + (i + 1) * b->n, arenas[i].data, b->n * sizeof *before);
        assert_int_equal(rm_optimizer_steps(b->optimizer), 1);
    }
    free(before);
}

static void skipped_steps_change_nothing(void **state)
{
    each_kind(state, check_skip);
}

static void check_state(struct bench *b)
{
    struct rm_optimizer *other;
    struct rm_error error;
    struct rm_optimizer_arena from[RM_OPTIMIZER_ARENAS], to[RM_OPTIMIZER_ARENAS];
    float *params = calloc(b->n, sizeof *params);
    for (uint64_t k = 1; k <= 5; k++) {
        gradient(b, k);
        step(b, k);
    }
    assert_int_equal(rm_optimizer_create(&other, b->backend, &b->experiment, b->net, &error), 0);
    const size_t n = rm_optimizer_arenas(b->optimizer, from);
    assert_int_equal(rm_optimizer_arenas(other, to), n);
    assert_true(n >= 1);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(from[i].name, to[i].name);
        assert_int_equal(from[i].count, b->n);
        memcpy(to[i].data, from[i].data, b->n * sizeof *params);
    }
    rm_optimizer_resume(other, rm_optimizer_steps(b->optimizer));
    memcpy(params, b->params, b->n * sizeof *params);
    for (uint64_t k = 6; k <= 10; k++) {
        gradient(b, k);
        step(b, k);
        const struct rm_test_step input = {
            .params = params, .grads = b->grads, .loss = 1, .update = k};
        rm_test_optimizer_step(other, &input);
    }
    assert_memory_equal(params, b->params, b->n * sizeof *params);
    free(params);
    rm_optimizer_destroy(other);
}

/* Bit for bit. */
static void state_that_is_carried_over_goes_on(void **state)
{
    each_kind(state, check_state);
}

static void check_reset(struct bench *b)
{
    gradient(b, 1);
    step(b, 1);
    float *once = calloc(b->n, sizeof *once);
    memcpy(once, b->params, b->n * sizeof *once);
    rm_optimizer_reset(b->optimizer);
    for (size_t i = 0; i < b->n; i++)
        b->params[i] = (float)b->p[i];
    step(b, 1);
    assert_memory_equal(once, b->params, b->n * sizeof *once);
    free(once);
}

static void reset_is_a_fresh_start(void **state)
{
    each_kind(state, check_reset);
}

static void norm_and_clip(void **state)
{
    struct bench b;
    struct rm_experiment e = experiment_of(RM_OPTIMIZER_ADAM);
    e.optimizer.grad_clip = 2;
    set_up(&b, state, e);
    memset(b.grads, 0, b.n * sizeof *b.grads);
    b.grads[0] = 3;
    b.grads[b.n - 1] = -4;
    struct rm_test_stepped r = step(&b, 1);
    assert_true(fabs(r.grad_norm - 5) < 1e-12);
    assert_true(r.scale == 0.4f);
    rm_optimizer_set(b.optimizer, 3e-3, 0);
    r = step(&b, 2);
    assert_true(r.scale == 1.0f);
    rm_optimizer_set(b.optimizer, 3e-3, 5.5);
    r = step(&b, 3);
    assert_true(r.scale == 1.0f);
    rm_optimizer_set(b.optimizer, 1e-2, 5.5);
    assert_true(fabs(step(&b, 4).learning_rate - 1e-2) < 1e-15);
    tear_down(&b);
}

/* A table of CODES rows, which begins the arena's tensors, and a layer above. */
enum { CODES = 30 };

static struct rm_experiment tabled(enum rm_optimizer_kind name, uint32_t units, bool sparse)
{
    struct rm_experiment e = experiment_of(name);
    e.optimizer.sparse = sparse;
    e.optimizer.weight_decay = 0.1;
    e.network.layers[0] =
        (struct rm_layer_config){.type = RM_LAYER_EMBEDDING, .units = units, .codes = CODES};
    return e;
}

static void same_arenas(const struct bench *a, const struct bench *b)
{
    struct rm_optimizer_arena x[RM_OPTIMIZER_ARENAS], y[RM_OPTIMIZER_ARENAS];
    assert_memory_equal(a->params, b->params, a->n * sizeof *a->params);
    assert_int_equal(rm_optimizer_arenas(a->optimizer, x), RM_OPTIMIZER_ARENAS);
    assert_int_equal(rm_optimizer_arenas(b->optimizer, y), RM_OPTIMIZER_ARENAS);
    for (int i = 0; i < RM_OPTIMIZER_ARENAS; i++)
        assert_memory_equal(x[i].data, y[i].data, a->n * sizeof *x[i].data);
}

static size_t table_at(const struct bench *b)
{
    const struct rm_net_tensor *table = b->tensors;
    while (strcmp(table->name, "layers.0.weight") != 0)
        table++;
    return table->offset;
}

/* Whether a step has no gradient for a row: other rows in each step, some of them neighbours. */
static bool row_stays(size_t row, uint64_t step)
{
    return (row / 3 + step) % 3 != 0;
}

/* Where every row has a gradient, all is as without optimizer.sparse, bit by bit; else rows without
 * one stay, with their moments, and the others move as they would in steps of their own. Rows of
 * 1,500 floats are two pieces. */
static void rows_without_a_gradient_stay(void **state)
{
    for (int name = RM_OPTIMIZER_ADAM; name <= RM_OPTIMIZER_ADAMW; name++)
        for (uint32_t units = 20; units <= 1500; units += 1480) {
            struct bench dense, sparse;
            set_up(&dense, state, tabled((enum rm_optimizer_kind)name, units, false));
            set_up(&sparse, state, tabled((enum rm_optimizer_kind)name, units, true));
            for (uint64_t k = 1; k <= 12; k++) {
                gradient(&dense, k);
                gradient(&sparse, k);
                step(&dense, k);
                step(&sparse, k);
                same_arenas(&dense, &sparse);
            }
            struct rm_optimizer_arena arenas[RM_OPTIMIZER_ARENAS];
            rm_optimizer_arenas(sparse.optimizer, arenas);
            float *before[3], *now[3] = {sparse.params, arenas[0].data, arenas[1].data};
            for (int i = 0; i < 3; i++)
                before[i] = malloc(sparse.n * sizeof *before[i]);
            for (uint64_t k = 13; k <= 18; k++) {
                for (int i = 0; i < 3; i++)
                    memcpy(before[i], now[i], sparse.n * sizeof *before[i]);
                /* The dense one goes on from here, and then gets back what should have stayed. */
                struct rm_optimizer_arena other[RM_OPTIMIZER_ARENAS];
                rm_optimizer_arenas(dense.optimizer, other);
                memcpy(dense.params, before[0], sparse.n * sizeof *before[0]);
                memcpy(other[0].data, before[1], sparse.n * sizeof *before[0]);
                memcpy(other[1].data, before[2], sparse.n * sizeof *before[0]);
                gradient(&sparse, k);
                for (size_t row = 0; row < CODES; row++)
                    if (row_stays(row, k))
                        memset(sparse.grads + table_at(&sparse) + row * units, 0,
                               units * sizeof *sparse.grads);
                memcpy(dense.grads, sparse.grads, sparse.n * sizeof *sparse.grads);
                step(&sparse, k);
                step(&dense, k);
                size_t stayed = 0, moved = 0;
                for (size_t j = 0; j < (size_t)CODES * units; j++) {
                    const size_t i = table_at(&sparse) + j;
                    if (!row_stays(j / units, k))
                        continue;
                    stayed++;
                    moved += dense.params[i] != before[0][i]; /* by its momentum */
                    dense.params[i] = before[0][i];
                    other[0].data[i] = before[1][i];
                    other[1].data[i] = before[2][i];
                }
                assert_true(moved > stayed / 2 && stayed > (size_t)CODES * units / 2);
                same_arenas(&dense, &sparse);
            }
            for (int i = 0; i < 3; i++)
                free(before[i]);
            tear_down(&dense);
            tear_down(&sparse);
        }
}

/* The same bits from any number of threads. */
static void threads_do_not_matter(void **state)
{
    const struct level_state *level = *state;
    for (int kind = 0; kind < RM_OPTIMIZER_COUNT; kind++) {
        struct rm_experiment e = experiment_of((enum rm_optimizer_kind)kind);
        struct bench one, three;
        struct level_state other = {.isa = level->isa};
        struct rm_error error;
        void *others = &other;
        e.optimizer.momentum = 0.9;
        e.network.layers[0].units = 300;
        e.network.layers[2].units = 200;
        assert_int_equal(rm_backend_cpu_create(&other.backend, 3, level->isa, &error), 0);
        set_up(&one, state, e);
        set_up(&three, &others, e);
        for (uint64_t k = 1; k <= 3; k++) {
            gradient(&one, k);
            gradient(&three, k);
            assert_true(step(&one, k).grad_norm == step(&three, k).grad_norm);
        }
        assert_memory_equal(one.params, three.params, one.n * sizeof *one.params);
        tear_down(&one);
        tear_down(&three);
        rm_backend_destroy(other.backend);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adam),
        cmocka_unit_test(adamw),
        cmocka_unit_test(rmsprop),
        cmocka_unit_test(muon),
        cmocka_unit_test(muon_steps_are_orthogonal),
        cmocka_unit_test(skipped_steps_change_nothing),
        cmocka_unit_test(state_that_is_carried_over_goes_on),
        cmocka_unit_test(reset_is_a_fresh_start),
        cmocka_unit_test(norm_and_clip),
        cmocka_unit_test(clipped_apart),
        cmocka_unit_test(rows_without_a_gradient_stay),
        cmocka_unit_test(threads_do_not_matter),
    };
    return run_on_levels(tests, sizeof tests / sizeof *tests);
}
