/* Choices, targets and losses of the value-based algorithms on a device, against the CPU's. */
#include "learner/algo/learning.h"
#include "learner/algo/loss.h"
#include "learner/backend/value_ops.h"
#include "shm/base/rng.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct rm_backend *device;

static int open_device(void **state)
{
    (void)state;
    device = rm_test_device_open();
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    return 0;
}

struct shape {
    enum rm_algorithm name;
    uint32_t batch, actions, quantiles, targets;
};

static const struct shape shapes[] = {
    {RM_ALGORITHM_DQN, 1, 2, 1, 1},        {RM_ALGORITHM_DQN, 64, 5, 1, 1},
    {RM_ALGORITHM_DQN, 33, 70, 1, 1},      {RM_ALGORITHM_QR_DQN, 16, 4, 51, 51},
    {RM_ALGORITHM_QR_DQN, 3, 2, 300, 300}, {RM_ALGORITHM_IQN, 40, 4, 12, 12},
    {RM_ALGORITHM_IQN, 7, 33, 8, 70},      {RM_ALGORITHM_IQN, 300, 3, 5, 6},
};
#define SHAPES (sizeof shapes / sizeof *shapes)

static void *on_device(const void *from, size_t bytes)
{
    const size_t words = bytes / 4 + 1;
    float *padded = calloc(words, sizeof *padded);
    void *to = device->ops->alloc_bytes(device, words * 4, NULL);
    assert_true(padded && to);
    if (from)
        memcpy(padded, from, bytes);
    device->ops->upload(device, to, padded, words);
    free(padded);
    return to;
}

static float *normals(struct rm_rng *rng, size_t n, float size)
{
    float *x = malloc(n * sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n; i++)
        x[i] = size * (rm_rng_float(rng) + rm_rng_float(rng) - 1.0f);
    return x;
}

static void assert_near(const float *x, const float *y, size_t n, double relative)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)x[i] - (double)y[i]) <= relative * (1e-3 + fabs((double)x[i]))))
            fail_msg("element %zu: %.9g, on the device %.9g", i, (double)x[i], (double)y[i]);
}

/* --- targets --------------------------------------------------------------------------------- */

/* Whole numbers, so that there are equals, and now and then nothing is legal. */
static void draw_masks(struct rm_rng *rng, float *q, size_t n, uint8_t *mask, size_t masks)
{
    for (size_t i = 0; i < n; i++)
        q[i] = roundf(q[i]);
    for (size_t i = 0; i < masks; i++)
        mask[i] = rm_rng_below(rng, 3) == 0;
}

static void check_targets(const struct shape *s, bool masked, bool other_chooses)
{
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, s->batch, masked);
    const struct rm_value_layout layout = rm_algo_of(s->name)->layout(s->actions, s->targets);
    const size_t rows = s->batch, n = rows * layout.sample, m = rows * s->targets;
    float *choose = normals(&rng, n, 3), *value = normals(&rng, n, 1);
    float *ret = normals(&rng, rows, 1), *discount = normals(&rng, rows, 1);
    float *y = calloc(m, sizeof *y), *seen = calloc(m, sizeof *seen);
    uint8_t *mask = calloc(rows, s->actions);
    int32_t *best = calloc(rows, sizeof *best), *seen_best = calloc(rows, sizeof *best);
    assert_true(y && seen && mask && best && seen_best);
    draw_masks(&rng, choose, n, mask, rows * s->actions);
    for (size_t i = 0; i < rows; i += 3)
        discount[i] = 0;
    rm_algo_greedy(other_chooses ? choose : value, &layout, s->batch, masked ? mask : NULL, best);
    rm_algo_targets(value, &layout, s->batch, best, ret, discount, y);

    void *in[] = {on_device(choose, n * 4),           on_device(value, n * 4),
                  on_device(ret, rows * 4),           on_device(discount, rows * 4),
                  on_device(mask, rows * s->actions), on_device(NULL, m * 4),
                  on_device(NULL, rows * 4)};
    const struct rm_value_targets t = {
        .batch = s->batch,
        .layout = layout,
        .choose = in[other_chooses ? 0 : 1],
        .value = in[1],
        .ret = in[2],
        .discount = in[3],
        .mask = masked ? in[4] : NULL,
        .y = in[5],
        .best = in[6],
    };
    device->device->values->targets(device, &t);
    device->ops->download(device, seen, t.y, m);
    device->ops->download(device, (float *)(void *)seen_best, (float *)(void *)t.best, rows);
    rm_test_device_fine(device);
    assert_memory_equal(best, seen_best, rows * sizeof *best);
    assert_near(y, seen, m, 1e-6);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        device->ops->release(device, in[i]);
    void *host[] = {choose, value, ret, discount, y, seen, mask, best, seen_best};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

static void targets_are_the_cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (int kind = 0; kind < 4; kind++)
            check_targets(&shapes[i], kind & 1, kind & 2);
}

/* --- losses ---------------------------------------------------------------------------------- */

struct drawn {
    float *q, *target, *tau, *weight;
    int32_t *action;
};

static struct drawn draw(const struct shape *s, struct rm_rng *rng)
{
    const size_t rows = s->batch;
    struct drawn d = {
        .q = normals(rng, rows * s->actions * s->quantiles, 3),
        .target = normals(rng, rows * s->targets, 3),
        .tau = normals(rng, rows * s->quantiles, 1),
        .weight = normals(rng, rows, 1),
        .action = calloc(rows, sizeof *d.action),
    };
    assert_non_null(d.action);
    for (size_t i = 0; i < rows * s->quantiles; i++)
        d.tau[i] = fabsf(d.tau[i]);
    for (size_t i = 0; i < rows; i++) {
        d.weight[i] = fabsf(d.weight[i]);
        d.action[i] = (int32_t)rm_rng_below(rng, s->actions);
    }
    return d;
}

static void release(struct drawn *d)
{
    free(d->q);
    free(d->target);
    free(d->tau);
    free(d->weight);
    free(d->action);
}

struct seen {
    float *d_q, *error;
    struct rm_update_figures figures;
};

static struct seen lose(const struct shape *s, const struct drawn *d,
                        const struct rm_value_loss *in, size_t n)
{
    const size_t rows = s->batch;
    void *buffers[] = {on_device(d->q, n * 4),
                       on_device(d->action, rows * 4),
                       on_device(d->target, rows * s->targets * 4),
                       on_device(d->tau, rows * s->quantiles * 4),
                       on_device(d->weight, rows * 4),
                       on_device(NULL, rows * 4),
                       on_device(NULL, n * 4),
                       on_device(NULL, 2 * rows * sizeof(double)),
                       on_device(NULL, sizeof(struct rm_update_figures)),
                       on_device(in->mask, in->mask ? rows * s->actions : 4)};
    const struct rm_value_loss loss = {
        .kind = s->name == RM_ALGORITHM_DQN ? RM_LOSS_HUBER : RM_LOSS_QUANTILE_HUBER,
        .batch = s->batch,
        .layout = in->layout,
        .q = buffers[0],
        .action = buffers[1],
        .target = buffers[2],
        .targets = s->targets,
        .tau = buffers[3],
        .kappa = in->kappa,
        .cql = in->cql,
        .mask = in->mask ? buffers[9] : NULL,
        .mean_over_quantiles = in->mean_over_quantiles,
        .weight = in->weight ? buffers[4] : NULL,
        .error = in->error ? buffers[5] : NULL,
        .d_q = buffers[6],
        .partials = buffers[7],
        .figures = buffers[8],
    };
    struct seen seen = {.d_q = calloc(n, sizeof(float)), .error = calloc(rows, sizeof(float))};
    assert_true(seen.d_q && seen.error);
    device->device->values->loss(device, &loss, NULL);
    device->ops->download(device, seen.d_q, loss.d_q, n);
    device->ops->download(device, seen.error, buffers[5], rows);
    device->ops->download(device, (float *)(void *)&seen.figures, buffers[8],
                          sizeof seen.figures / sizeof(float));
    rm_test_device_fine(device);
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        device->ops->release(device, buffers[i]);
    return seen;
}

static void check_loss(const struct shape *s, bool weighted, bool mean, float cql)
{
    struct rm_rng rng = rm_rng_at(4, RM_STREAM_TEST, s->batch, weighted);
    const struct rm_algo *algo = rm_algo_of(s->name);
    struct drawn d = draw(s, &rng);
    const size_t rows = s->batch, n = rows * s->actions * s->quantiles;
    float *d_q = calloc(n, sizeof *d_q), *error = calloc(rows, sizeof *error);
    uint8_t *mask = calloc(rows, s->actions);
    assert_true(d_q && error && mask);
    for (size_t i = 0; i < rows * s->actions; i++)
        mask[i] = rm_rng_below(&rng, 3) == 0;
    const struct rm_value_loss in = {
        .kind = algo->loss,
        .batch = s->batch,
        .q = d.q,
        .layout = algo->layout(s->actions, s->quantiles),
        .action = d.action,
        .target = d.target,
        .targets = s->targets,
        .tau = d.tau,
        .kappa = 0.7f,
        .cql = cql,
        .mask = weighted ? mask : NULL,
        .mean_over_quantiles = mean,
        .weight = weighted ? d.weight : NULL,
        .error = weighted ? error : NULL,
    };
    const double loss = rm_loss_rows(&in, d_q);
    const double q_sum = rows * rm_algo_mean_q(d.q, &in.layout, s->batch, d.action);
    struct seen seen = lose(s, &d, &in, n);
    assert_near(d_q, seen.d_q, n, 1e-5);
    assert_near(error, seen.error, rows, 1e-5);
    assert_true(fabs(loss - seen.figures.last_loss) <= 1e-6 * fabs(loss));
    assert_true(fabs(q_sum - seen.figures.now_sums[RM_SUM_OF_Q]) <= 1e-5 * (1 + fabs(q_sum)));
    assert_true(seen.figures.now_samples == (double)s->batch);
    free(seen.d_q);
    free(seen.error);
    free(d_q);
    free(error);
    free(mask);
    release(&d);
}

static void losses_are_the_cpus(void **state)
{
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        for (int kind = 0; kind < 4; kind++)
            for (int cql = 0; cql < 2; cql++)
                check_loss(&shapes[i], kind & 1, kind & 2, 0.6f * (float)cql);
}

/* Of histories: with a gradient and without one, for fewer queries than threads and for more. */
static void check_classes(uint32_t samples, uint32_t queries, float scale)
{
    struct rm_rng rng = rm_rng_at(6, RM_STREAM_TEST, samples, queries);
    const uint32_t rows = samples * queries;
    struct rm_update_figures figures = {.loss_scale = scale};
    float *out = normals(&rng, rows * 8, 4), *d_out = calloc(rows * 8, sizeof *d_out),
          *seen = calloc(rows * 8, sizeof *seen);
    int32_t *action = calloc(rows, sizeof *action);
    double sums[RM_NET_SUMS] = {0};
    if (!d_out || !seen || !action)
        abort(); /* out of memory */
    for (uint32_t i = 0; i < rows; i++)
        action[i] = (int32_t)rm_rng_below(&rng, 5);
    struct rm_class_loss loss = {.out = out,
                                 .d_out = d_out,
                                 .action = action,
                                 .samples = samples,
                                 .queries = queries,
                                 .actions = 5,
                                 .types = 3,
                                 .part = 1.0 / rows,
                                 .type_weight = 0.1,
                                 .figures = &figures};
    struct rm_backend *cpu;
    struct rm_error error;
    assert_int_equal(rm_backend_cpu_create(&cpu, 1, "auto", &error), 0);
    rm_value_ops_of(cpu)->class_loss(cpu, &loss, sums);
    rm_backend_destroy(cpu);
    void *in[] = {on_device(out, rows * 32), on_device(NULL, rows * 32),
                  on_device(action, rows * 4), on_device(&figures, sizeof figures)};
    loss.out = in[0];
    loss.action = in[2];
    loss.figures = in[3];
    for (int gradient = 0; gradient < 2; gradient++) {
        loss.d_out = gradient ? in[1] : NULL;
        device->device->values->class_loss(device, &loss, NULL);
        device->ops->download(device, seen, in[1], rows * 8);
        for (uint32_t i = 0; !gradient && i < rows * 8; i++)
            assert_true(seen[i] == 0);
    }
    device->ops->download(device, (float *)(void *)&figures, in[3], sizeof figures / sizeof(float));
    rm_test_device_fine(device);
    assert_near(d_out, seen, rows * 8, 1e-6);
    for (uint32_t q = 0; q < rows; q++) { /* p - 1, times part and scale */
        const float *of = out + q * 8;
        double sum = 0, own = of[action[q]];
        for (int a = 0; a < 5; a++)
            sum += exp((double)of[a] - own);
        const double d = (1 / sum - 1) * (scale > 0 ? (double)scale : 1) / rows;
        assert_true(fabs(seen[q * 8 + (uint32_t)action[q]] - d) <= 1e-5 * fabs(d) + 1e-9);
    }
    assert_true(fabs(sums[0] - figures.last_loss) <= 1e-12 * sums[0]);
    assert_true(figures.now_samples == (double)rows);
    for (int k = 0; k < RM_NET_SUMS - 1; k++)
        assert_true(fabs(sums[1 + k] - figures.now_sums[k]) <= 1e-12 * fabs(sums[1 + k]));
    assert_true(sums[1 + RM_SUM_OF_ENTROPY] > 0 && sums[1 + RM_SUM_OF_TYPES] > 0);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        device->ops->release(device, in[i]);
    void *host[] = {out, d_out, seen, action};
    for (size_t i = 0; i < sizeof host / sizeof *host; i++)
        free(host[i]);
}

static void classes_are_the_cpus(void **state)
{
    (void)state;
    check_classes(1, 1, 0);
    check_classes(7, 9, 0);
    check_classes(70, 80, 1024);
}

/* The same to the bit whatever order threads and blocks run in. */
static void order_does_not_matter(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:5"};
    const struct shape *s = &shapes[5];
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 0, 0);
    struct drawn d = draw(s, &rng);
    const size_t rows = s->batch, n = rows * s->actions * s->quantiles;
    float error[512];
    const struct rm_value_loss in = {
        .layout = rm_algo_of(s->name)->layout(s->actions, s->quantiles),
        .kappa = 1,
        .weight = d.weight,
        .error = error,
    };
    struct seen seen[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        rm_test_emulated_order(orders[i]);
        seen[i] = lose(s, &d, &in, n);
        assert_memory_equal(seen[i].d_q, seen[0].d_q, n * sizeof(float));
        assert_memory_equal(seen[i].error, seen[0].error, rows * sizeof(float));
        assert_memory_equal(&seen[i].figures, &seen[0].figures, sizeof seen[i].figures);
    }
    rm_test_emulated_order(NULL);
    for (int i = 0; i < 3; i++) {
        free(seen[i].d_q);
        free(seen[i].error);
    }
    release(&d);
}

static void what_is_not_finite_shows(void **state)
{
    const struct shape s = {RM_ALGORITHM_IQN, 4, 2, 5, 5};
    struct rm_rng rng = rm_rng_at(6, RM_STREAM_TEST, 0, 0);
    struct drawn d = draw(&s, &rng);
    const struct rm_value_loss in = {.layout = rm_algo_of(s.name)->layout(s.actions, s.quantiles),
                                     .kappa = 1};
    (void)state;
    d.target[7] = NAN;
    struct seen seen = lose(&s, &d, &in, 4 * 2 * 5);
    assert_false(isfinite(seen.figures.last_loss));
    free(seen.d_q);
    free(seen.error);
    release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(targets_are_the_cpus, open_device, close_device),
        cmocka_unit_test_setup_teardown(losses_are_the_cpus, open_device, close_device),
        cmocka_unit_test_setup_teardown(classes_are_the_cpus, open_device, close_device),
        cmocka_unit_test_setup_teardown(order_does_not_matter, open_device, close_device),
        cmocka_unit_test_setup_teardown(what_is_not_finite_shows, open_device, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
