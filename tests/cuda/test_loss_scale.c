/* fp16: losses multiply their gradients by a scale that the optimizer divides by again, that is
 * halved when a gradient is infinite for its sake and doubled after many good ones. */
#include "config/config.h"
#include "learner/algo/optimizer.h"
#include "learner/backend/device.h"
#include "learner/net/net.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* An optimizer on the device, its arena and what it reads. */
struct side {
    struct rm_experiment experiment;
    struct rm_net *net;
    struct rm_optimizer *optimizer;
    struct rm_update_knobs *knobs;
    float *params, *grads;
    size_t count;
};

static struct rm_backend *b;

static void open_side(struct side *s, enum rm_compute compute)
{
    struct rm_error error = {""};
    memset(s, 0, sizeof *s);
    assert_int_equal(rm_config_defaults(&s->experiment), 0);
    s->experiment.learner.compute = compute;
    s->experiment.optimizer.grad_clip = 1;
    s->experiment.network.layer_count = 1;
    s->experiment.network.layers[0] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = 8};
    const struct rm_net_shape shape = {.inputs = 4, .actions = 2, .outputs_per_action = 1};
    if (rm_net_compile(&s->net, &s->experiment.network, &shape, &error) ||
        rm_optimizer_create(&s->optimizer, b, &s->experiment, s->net, &error))
        fail_msg("%s", error.text);
    s->count = rm_net_param_count(s->net);
    s->params = b->ops->alloc(b, s->count);
    s->grads = b->ops->alloc(b, s->count);
    s->knobs = b->ops->alloc_bytes(b, sizeof *s->knobs, &error);
    assert_true(s->params && s->grads && s->knobs);
    const struct rm_update_knobs knobs = {.learning_rate = 0.01, .grad_clip = 1};
    b->ops->upload(b, (float *)(void *)s->knobs, (const float *)(const void *)&knobs,
                   sizeof knobs / sizeof(float));
}

static void close_side(struct side *s)
{
    b->ops->release(b, s->params);
    b->ops->release(b, s->grads);
    b->ops->release(b, s->knobs);
    rm_optimizer_destroy(s->optimizer);
    rm_net_destroy(s->net);
}

/* An update whose loss left gradients of `size` times `scale`. */
static struct rm_update_figures update(struct side *s, float size, float scale)
{
    struct rm_update_figures figures;
    float grads[256];
    assert_true(s->count <= sizeof grads / sizeof *grads);
    for (size_t i = 0; i < s->count; i++)
        grads[i] = size * scale * (float)(1 + i % 7) * (i % 2 ? -1.0f : 1.0f);
    b->ops->upload(b, s->grads, grads, s->count);
    rm_optimizer_put(s->optimizer, &(struct rm_optimizer_put){
                                       .params = s->params, .grads = s->grads, .knobs = s->knobs});
    b->ops->download(b, (float *)(void *)&figures,
                     (const float *)(const void *)rm_optimizer_figures(s->optimizer),
                     sizeof figures / sizeof(float));
    return figures;
}

static int setup(void **state)
{
    (void)state;
    b = rm_test_device_open();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rm_test_device_fine(b);
    rm_backend_destroy(b);
    return 0;
}

static void a_scaled_step_is_the_same_step(void **state)
{
    struct side plain, scaled;
    float a[256], c[256];
    (void)state;
    open_side(&plain, RM_COMPUTE_FP32);
    open_side(&scaled, RM_COMPUTE_FP16);
    assert_false(rm_optimizer_scales(plain.optimizer));
    assert_true(rm_optimizer_scales(scaled.optimizer));
    for (int i = 1; i <= 5; i++) {
        const float size = i % 2 ? 0.01f : 3.0f; /* below and above the clip */
        const struct rm_update_figures one = update(&plain, size, 1);
        const struct rm_update_figures two = update(&scaled, size, RM_DEVICE_SCALE_FIRST);
        assert_int_equal(two.made, i);
        assert_float_equal(two.last_grad_norm, one.last_grad_norm, 1e-6 * one.last_grad_norm);
    }
    b->ops->download(b, a, plain.params, plain.count);
    b->ops->download(b, c, scaled.params, scaled.count);
    for (size_t i = 0; i < plain.count; i++)
        assert_float_equal(a[i], c[i], 1e-6);
    close_side(&plain);
    close_side(&scaled);
}

static void an_infinite_gradient_halves_the_scale(void **state)
{
    struct side s;
    float before[256], after[256];
    (void)state;
    open_side(&s, RM_COMPUTE_FP16);
    update(&s, 0.01f, RM_DEVICE_SCALE_FIRST);
    b->ops->download(b, before, s.params, s.count);
    const struct rm_update_figures f = update(&s, INFINITY, 1);
    assert_float_equal(f.loss_scale, RM_DEVICE_SCALE_FIRST / 2, 0);
    assert_int_equal(f.made, 1);
    assert_int_equal(f.skipped, 1);
    assert_int_equal(f.skipped_in_row, 0); /* no rollback follows */
    assert_int_equal(f.steps, 1);
    b->ops->download(b, after, s.params, s.count);
    assert_memory_equal(before, after, s.count * sizeof *after);
    close_side(&s);
}

static void it_ends_at_one(void **state)
{
    struct side s;
    (void)state;
    open_side(&s, RM_COMPUTE_FP16);
    rm_optimizer_set_loss_scale(s.optimizer, (struct rm_loss_scale){1, 0});
    const struct rm_update_figures f = update(&s, INFINITY, 1);
    assert_float_equal(f.loss_scale, 1, 0);
    assert_int_equal(f.skipped_in_row, 1); /* the gradient itself is at fault */
    close_side(&s);
}

static void many_good_ones_double_it(void **state)
{
    struct side s;
    (void)state;
    open_side(&s, RM_COMPUTE_FP16);
    rm_optimizer_set_loss_scale(s.optimizer,
                                (struct rm_loss_scale){1024, RM_DEVICE_SCALE_PATIENCE - 2});
    assert_float_equal(update(&s, 0.01f, 1024).loss_scale, 1024, 0);
    assert_float_equal(update(&s, 0.01f, 1024).loss_scale, 2048, 0);
    const struct rm_loss_scale now = rm_optimizer_loss_scale(s.optimizer);
    assert_float_equal(now.scale, 2048, 0);
    assert_int_equal(now.good, 0);
    rm_optimizer_set_loss_scale(
        s.optimizer, (struct rm_loss_scale){RM_DEVICE_SCALE_MOST, RM_DEVICE_SCALE_PATIENCE});
    assert_float_equal(update(&s, 0.01f, 1024).loss_scale, RM_DEVICE_SCALE_MOST, 0);
    close_side(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_scaled_step_is_the_same_step, setup, teardown),
        cmocka_unit_test_setup_teardown(an_infinite_gradient_halves_the_scale, setup, teardown),
        cmocka_unit_test_setup_teardown(it_ends_at_one, setup, teardown),
        cmocka_unit_test_setup_teardown(many_good_ones_double_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
