/* Steps of every optimizer on a device beside the CPU's: norm, clipping, decay, moments, what is
 * not trained, the target network that follows, and steps that are skipped. */
#include "learner/algo/optimizer.h"
#include "learner/backend/device_optimizer.h"
#include "shm/base/rng.h"
#include "tests/support/backends.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/optimizer_step.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 30, TABLE_ROWS = 23 };

/* One optimizer and what it moves. */
struct side {
    struct rm_backend *backend;
    struct rm_optimizer *optimizer;
    float *params, *grads, *target;
    struct rm_update_knobs *knobs; /* on a device */
};

struct pair {
    struct rm_experiment experiment;
    struct rm_net *net;
    size_t n;
    float *grads, *scratch; /* (n) host memory */
    struct side cpu, device;
};

static void open_side(struct pair *p, struct side *s, struct rm_backend *backend,
                      const float *params)
{
    struct rm_error error = {""};
    s->backend = backend;
    if (rm_optimizer_create(&s->optimizer, backend, &p->experiment, p->net, &error))
        fail_msg("%s", error.text);
    s->params = backend->ops->alloc(backend, p->n);
    s->grads = backend->ops->alloc(backend, p->n);
    s->target = backend->ops->alloc(backend, p->n);
    backend->ops->upload(backend, s->params, params, p->n);
    if (backend->device)
        s->knobs = backend->ops->alloc_bytes(backend, sizeof *s->knobs, &error);
}

static void close_side(struct side *s)
{
    float *buffers[] = {s->params, s->grads, s->target, (float *)(void *)s->knobs};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i])
            s->backend->ops->release(s->backend, buffers[i]);
    rm_optimizer_destroy(s->optimizer);
}

/* Matrices wide and tall, vectors, more than a chunk of both, and tensors that are not trained. */
static struct rm_experiment experiment_of(enum rm_optimizer_kind name)
{
    struct rm_experiment e;
    memset(&e, 0, sizeof e);
    e.optimizer.name = name;
    e.optimizer.learning_rate = 3e-3;
    e.optimizer.beta1 = 0.9;
    e.optimizer.beta2 = 0.99;
    e.optimizer.epsilon = 1e-6;
    e.optimizer.weight_decay = 0.1;
    e.optimizer.momentum = 0.8;
    e.optimizer.grad_clip = 5;
    e.network.normalize_observations = true;
    e.network.observation_clip = 5;
    e.network.layer_count = 3;
    e.network.layers[0] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = 70};
    e.network.layers[1] = (struct rm_layer_config){.type = RM_LAYER_LAYER_NORM};
    e.network.layers[2] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = 40};
    return e;
}

static void open_pair(struct pair *p, struct rm_experiment e)
{
    struct rm_error error = {""};
    const struct rm_net_shape shape = {
        .inputs = 31,
        .actions = 3,
        .outputs_per_action = 1,
        .head = e.optimizer.clip_apart ? RM_HEAD_ACTOR_CRITIC : RM_HEAD_VALUES,
    };
    memset(p, 0, sizeof *p);
    p->experiment = e;
    if (rm_net_compile(&p->net, &p->experiment.network, &shape, &error))
        fail_msg("%s", error.text);
    p->n = rm_net_param_count(p->net);
    p->grads = calloc(p->n, sizeof *p->grads);
    p->scratch = calloc(p->n, sizeof *p->scratch);
    assert_true(p->grads && p->scratch);
    rm_net_init(p->net, p->scratch, rm_rng_at(5, RM_STREAM_INIT, 0, 0));
    open_side(p, &p->cpu, rm_test_cpu, p->scratch);
    open_side(p, &p->device, rm_test_device, p->scratch);
}

static void close_pair(struct pair *p)
{
    close_side(&p->cpu);
    close_side(&p->device);
    rm_net_destroy(p->net);
    free(p->grads);
    free(p->scratch);
}

static void draw_gradient(struct pair *p, uint64_t step)
{
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_TEST, 1, step);
    const float size = step % 3 ? 1.0f : 0.01f; /* clipped, and not */
    for (size_t i = 0; i < p->n; i++)
        p->grads[i] = (rm_rng_float(&rng) - 0.4f) * (i % 7 == 0 ? 1e-4f : size);
}

static struct rm_update_figures figures_of(const struct side *s)
{
    struct rm_update_figures f;
    s->backend->ops->download(s->backend, (float *)(void *)&f,
                              (float *)(void *)rm_optimizer_figures(s->optimizer),
                              sizeof f / sizeof(float));
    return f;
}

static struct rm_test_stepped step_cpu(struct pair *p, uint64_t number, float tau)
{
    struct side *s = &p->cpu;
    memcpy(s->grads, p->grads, p->n * sizeof *s->grads);
    const struct rm_test_step input = {
        .params = s->params, .grads = s->grads, .loss = 0.5, .update = number};
    const struct rm_test_stepped result = rm_test_optimizer_step(s->optimizer, &input);
    if (!result.skipped)
        rm_test_cpu->ops->lerp(rm_test_cpu, tau, s->params, p->n, s->target);
    return result;
}

static void set_figures(const struct side *s, double loss)
{
    struct rm_update_figures f = figures_of(s);
    f.last_loss = loss;
    f.now_sums[3] = 7;
    f.now_samples = 2;
    rm_test_device->ops->upload(rm_test_device, (float *)(void *)rm_optimizer_figures(s->optimizer),
                                (float *)(void *)&f, sizeof f / sizeof(float));
}

static struct rm_update_figures step_device(struct pair *p, uint64_t number, float tau)
{
    struct side *s = &p->device;
    struct rm_update_knobs knobs = {.target_tau = tau};
    rm_optimizer_knobs(s->optimizer, number, 0, &knobs);
    rm_test_device->ops->upload(rm_test_device, (float *)(void *)s->knobs, (float *)(void *)&knobs,
                                sizeof knobs / sizeof(float));
    rm_test_device->ops->upload(rm_test_device, s->grads, p->grads, p->n);
    set_figures(s, 0.5);
    rm_optimizer_put(s->optimizer,
                     &(struct rm_optimizer_put){s->params, s->grads, s->target, s->knobs, NULL});
    return figures_of(s);
}

/* How far apart, relatively. */
static double apart(struct pair *p, const float *on_device, const float *on_cpu)
{
    rm_test_device->ops->download(rm_test_device, p->scratch, on_device, p->n);
    return rm_test_updates_apart(p->scratch, on_cpu, p->n);
}

static void assert_pair_near(struct pair *p, double within)
{
    struct rm_optimizer_arena x[RM_OPTIMIZER_ARENAS], y[RM_OPTIMIZER_ARENAS];
    const size_t arenas = rm_optimizer_arenas(p->cpu.optimizer, x);
    assert_int_equal(rm_optimizer_arenas(p->device.optimizer, y), arenas);
    const double a[] = {apart(p, p->device.params, p->cpu.params),
                        apart(p, p->device.target, p->cpu.target)};
    if (!(a[0] < within && a[1] < within))
        fail_msg("optimizer %d: %g and %g apart", p->experiment.optimizer.name, a[0], a[1]);
    for (size_t i = 0; i < arenas; i++)
        assert_true(apart(p, y[i].data, x[i].data) < within);
    assert_int_equal(rm_optimizer_steps(p->device.optimizer), rm_optimizer_steps(p->cpu.optimizer));
}

static void compare(struct rm_experiment e, double within)
{
    struct pair p;
    open_pair(&p, e);
    for (uint64_t number = 1; number <= rm_test_effort(STEPS, 6); number++) {
        draw_gradient(&p, number);
        const struct rm_test_stepped r = step_cpu(&p, number, 0.1f);
        const struct rm_update_figures f = step_device(&p, number, 0.1f);
        assert_true(fabs(f.last_grad_norm - r.grad_norm) < 1e-6 * r.grad_norm);
        if (!e.optimizer.clip_apart)
            assert_true(fabsf(f.scale[0] - r.scale) < 1e-6f * r.scale);
        assert_int_equal(f.made, number);
        assert_true(f.sums[3] == 7.0 * (double)number && f.samples == 2.0 * (double)number);
    }
    rm_test_device_fine(rm_test_device);
    assert_pair_near(&p, within);
    close_pair(&p);
}

static void every_optimizer_is_the_cpus(void **state)
{
    (void)state;
    for (int name = 0; name < RM_OPTIMIZER_COUNT; name++)
        compare(experiment_of((enum rm_optimizer_kind)name), 2e-6);
    struct rm_experiment e = experiment_of(RM_OPTIMIZER_RMSPROP);
    e.optimizer.momentum = 0; /* and no memory for it */
    e.optimizer.grad_clip = 0;
    compare(e, 2e-6);
    e = experiment_of(RM_OPTIMIZER_MUON);
    e.optimizer.weight_decay = 0;
    e.optimizer.schedule.warmup = 10;
    compare(e, 2e-6);
}

static void the_value_is_clipped_apart_as_on_the_cpu(void **state)
{
    (void)state;
    for (int name = 0; name < RM_OPTIMIZER_COUNT; name++) {
        struct rm_experiment e = experiment_of((enum rm_optimizer_kind)name);
        e.optimizer.clip_apart = true;
        e.network.trunk = RM_TRUNK_SEPARATE; /* matrices of the value's own */
        compare(e, 2e-6);
    }
}

/* Rows of a table without a gradient stay; rows of more than a chunk are in pieces. */
static void rows_without_a_gradient_stay_as_on_the_cpu(void **state)
{
    (void)state;
    for (uint32_t units = 20; units <= 1500; units += 1480) {
        struct rm_experiment e = experiment_of(RM_OPTIMIZER_ADAMW);
        struct pair p;
        e.optimizer.sparse = true;
        e.network.normalize_observations = false;
        e.network.layers[0] = (struct rm_layer_config){
            .type = RM_LAYER_EMBEDDING, .units = units, .codes = TABLE_ROWS};
        open_pair(&p, e);
        const struct rm_net_tensor *table;
        rm_net_tensors(p.net, &table);
        while (strcmp(table->name, "layers.0.weight") != 0)
            table++;
        float *first = calloc(p.n, sizeof *first);
        assert_non_null(first);
        for (uint64_t number = 1; number <= 6; number++) {
            draw_gradient(&p, number);
            for (uint32_t row = 0; row < TABLE_ROWS; row++)
                if (row == 5 || (row + number) % 4)
                    memset(p.grads + table->offset + (size_t)row * units, 0,
                           units * sizeof *p.grads);
            if (number == 1)
                memcpy(first, p.cpu.params, p.n * sizeof *first);
            step_cpu(&p, number, 0.1f);
            step_device(&p, number, 0.1f);
        }
        rm_test_device_fine(rm_test_device);
        assert_pair_near(&p, 2e-6);
        /* Row 5 has never had one. */
        const size_t at = table->offset + (size_t)5 * units;
        rm_test_device->ops->download(rm_test_device, p.scratch, p.device.params, p.n);
        assert_memory_equal(p.scratch + at, first + at, units * sizeof *first);
        assert_memory_not_equal(p.scratch + at + units, first + at + units, units * sizeof *first);
        free(first);
        close_pair(&p);
    }
}

static void steps_that_are_not_finite_change_nothing(void **state)
{
    (void)state;
    for (int name = 0; name < RM_OPTIMIZER_COUNT; name++) {
        struct pair p;
        open_pair(&p, experiment_of((enum rm_optimizer_kind)name));
        for (uint64_t number = 1; number <= 6; number++) {
            draw_gradient(&p, number);
            if (number == 3 || number == 4)
                p.grads[p.n - 2] = number == 3 ? NAN : INFINITY;
            step_cpu(&p, number, 0.1f);
            const struct rm_update_figures f = step_device(&p, number, 0.1f);
            assert_int_equal(f.skipped_in_row, number == 3 ? 1 : number == 4 ? 2 : 0);
            assert_int_equal(f.skipped, number < 3 ? 0 : number == 3 ? 1 : 2);
        }
        assert_pair_near(&p, 2e-6);
        close_pair(&p);
    }
}

static void a_target_becomes_a_copy_or_stays(void **state)
{
    struct pair p;
    (void)state;
    open_pair(&p, experiment_of(RM_OPTIMIZER_ADAMW));
    float *params = calloc(p.n, sizeof *params);
    assert_non_null(params);
    draw_gradient(&p, 1);
    step_device(&p, 1, 1.0f);
    rm_test_device->ops->download(rm_test_device, params, p.device.params, p.n);
    for (uint64_t number = 2; number <= 3; number++) {
        rm_test_device->ops->download(rm_test_device, p.scratch, p.device.target, p.n);
        assert_memory_equal(p.scratch, params, p.n * sizeof *params);
        step_device(&p, number, 0.0f);
    }
    assert_true(apart(&p, p.device.params, params) > 1e-3);
    free(params);
    close_pair(&p);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, rm_test_backends_open, rm_test_backends_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_optimizer_is_the_cpus),
        TEST(the_value_is_clipped_apart_as_on_the_cpu),
        TEST(rows_without_a_gradient_stay_as_on_the_cpu),
        TEST(steps_that_are_not_finite_change_nothing),
        TEST(a_target_becomes_a_copy_or_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
