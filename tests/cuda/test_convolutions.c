/* Convolutions by tensor cores, in 16 bits, against the CPU's: over shapes drawn at random and
 * those of known networks; the same to the bit whatever the order of threads; against the plain way
 * too. */
#include "learner/backend/device.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/net_parity.h"
#include "tests/support/op_cases.h"
#include "tests/support/unit.h"

#include <string.h>

#define MOST  8000u /* elements of an array */
#define DRAWS rm_test_effort(16, 3)

static const char *const orders[] = {"forward", "reverse", "random:5"};
#define ORDERS (sizeof orders / sizeof *orders)

static struct rm_backend *cpu;

static int open_cpu(void **state)
{
    struct rm_error error;
    (void)state;
    return rm_backend_cpu_create(&cpu, 1, "auto", &error);
}

static int close_cpu(void **state)
{
    (void)state;
    rm_backend_destroy(cpu);
    return 0;
}

static bool check(const struct op_case *c, struct rm_backend *device, enum rm_compute compute)
{
    uint64_t bits = 0;
    bool fine = true;
    for (size_t k = 0; k < ORDERS; k += rm_test_effort(1, ORDERS)) {
        rm_test_emulated_order(orders[k]);
        const struct op_result r = op_check(c, cpu, device, DRAWS, MOST, 77);
        const bool same = k == 0 || r.bits == bits;
        bits = r.bits;
        rm_test_device_fine(device);
        if (!r.failed && same && r.deviation <= op_tolerance(c, compute))
            continue;
        print_error("%s, way %d of computing, threads %s: deviates by %g%s%s\n", c->name, compute,
                    orders[k], r.deviation, same ? "" : ", other bits than before",
                    r.failed ? ", failed" : "");
        fine = false;
    }
    rm_test_emulated_order("forward");
    return fine;
}

static void drawn_shapes(void **state)
{
    static const enum rm_compute computes[] = {RM_COMPUTE_BF16, RM_COMPUTE_FP16};
    size_t wrong = 0, checked = 0;
    (void)state;
    for (size_t k = 0; k < sizeof computes / sizeof *computes; k++) {
        struct rm_backend *device = rm_test_device_open_for(computes[k]);
        for (size_t i = 0; i < op_case_count; i++)
            if (strncmp(op_cases[i].name, "conv2d", 6) == 0) {
                wrong += !check(&op_cases[i], device, computes[k]);
                checked++;
            }
        rm_backend_destroy(device);
    }
    assert_true(checked >= 6);
    assert_int_equal(wrong, 0);
}

#define CONV(n, k, s, p)                                                                           \
    {                                                                                              \
        .type = RM_LAYER_CONV2D, .units = (n), .kernel = (k), .stride = (s), .padding = (p)        \
    }
#define PLAIN(t)                                                                                   \
    {                                                                                              \
        .type = RM_LAYER_##t                                                                       \
    }
#define LINEAR(n)                                                                                  \
    {                                                                                              \
        .type = RM_LAYER_LINEAR, .units = (n)                                                      \
    }
#define IMAGE(c, h, w, n)                                                                          \
    {                                                                                              \
        .inputs = (c) * (h) * (w), .actions = (n), .outputs_per_action = 1,                        \
        .head = RM_HEAD_ACTOR_CRITIC, .dims = 3, .dim = {                                          \
            (c),                                                                                   \
            (h),                                                                                   \
            (w)                                                                                    \
        }                                                                                          \
    }

/* The Goodhart grid's network; one of larger images and strides; one whose results between
 * convolutions several layers read. */
static const struct named_net nets[] = {
    {"goodhart",
     {.layer_count = 8,
      .layers = {CONV(32, 3, 1, 1), PLAIN(RELU), CONV(64, 3, 1, 1), PLAIN(RELU), CONV(64, 3, 1, 1),
                 PLAIN(RELU), LINEAR(64), PLAIN(RELU)},
      .trunk = RM_TRUNK_SHARED},
     IMAGE(6, 11, 11, 8),
     3,
     0,
     false},
    {"strides",
     {.layer_count = 7,
      .layers = {CONV(16, 8, 4, 0), PLAIN(TANH), CONV(32, 4, 2, 0), PLAIN(SILU), CONV(40, 3, 1, 0),
                 PLAIN(ELU), LINEAR(20)},
      .trunk = RM_TRUNK_SHARED},
     IMAGE(4, 36, 36, 4),
     4,
     0,
     false},
    {"read twice",
     {.layer_count = 8,
      .layers = {CONV(16, 3, 1, 1),
                 PLAIN(RELU),
                 CONV(16, 3, 1, 1),
                 PLAIN(GELU),
                 CONV(16, 3, 1, 1),
                 {.type = RM_LAYER_RESIDUAL, .span = 3},
                 CONV(8, 2, 1, 1),
                 LINEAR(9)},
      .trunk = RM_TRUNK_SHARED},
     IMAGE(8, 6, 5, 3),
     5,
     0,
     false},
    {"atari",
     {.layer_count = 8,
      .layers = {CONV(32, 8, 4, 0), PLAIN(RELU), CONV(64, 4, 2, 0), PLAIN(RELU), CONV(64, 3, 1, 0),
                 PLAIN(RELU), LINEAR(128), PLAIN(RELU)},
      .trunk = RM_TRUNK_SHARED},
     IMAGE(4, 84, 84, 6),
     2,
     0,
     false},
};
#define IMAGES_MANY 1100u /* more than there are blocks, of any device and kernel */

static void known_networks(void **state)
{
    size_t wrong = 0;
    struct rm_backend *device = rm_test_device_open_for(RM_COMPUTE_BF16);
    (void)state;
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) {
        uint64_t bits = 0;
        struct named_net net = nets[i];
        if (!rm_test_emulated())
            net.batch = IMAGES_MANY;
        /* Threads in other orders are the emulation's; they say no more of the largest. */
        for (size_t k = 0; k < (net.shape.inputs > 20000 ? 1 : ORDERS);
             k += rm_test_effort(1, ORDERS)) {
            rm_test_emulated_order(orders[k]);
            const struct net_parity r = net_check(&net, cpu, device, RM_COMPUTE_BF16, i);
            const bool same = k == 0 || r.bits == bits;
            bits = r.bits;
            rm_test_device_fine(device);
            if (!r.failed && same && r.captured && r.result <= r.result_allowed &&
                r.gradient <= r.gradient_allowed)
                continue;
            print_error(
                "%s, threads %s: results deviate by %g of %g, gradients by %g of %g%s%s%s\n",
                nets[i].name, orders[k], r.result, r.result_allowed, r.gradient, r.gradient_allowed,
                same ? "" : ", other bits than before",
                r.captured ? "" : ", other bits when captured", r.failed ? ", failed" : "");
            wrong++;
        }
    }
    rm_test_emulated_order("forward");
    rm_backend_destroy(device);
    assert_int_equal(wrong, 0);
}

/* A device as it is: with all the blocks that it may have. */
static struct rm_backend *open_large(bool plain)
{
    const struct rm_device_spec spec = {.compute = RM_COMPUTE_BF16, .threads = 1, .plain = plain};
    const struct rm_backend_plugin *plugin;
    struct rm_backend *device;
    struct rm_error error;
    rm_backend_destroy(rm_test_device_open()); /* finds the plugin, or skips */
    assert_int_equal(rm_plugin_open(&plugin, &error), 0);
    assert_int_equal(plugin->create(&device, &spec, &error), 0);
    return device;
}

/* Gradients of weights have RM_PARTS_MOST (images.h) parts, of an image at a time here: every part
 * takes a second image, as blocks do for results, where the emulated device has four of them. With
 * fewer, what is lost is less than rounding may change. */
static const struct named_net many = {
    "many",
    {.layer_count = 5,
     .layers = {CONV(8, 2, 1, 1), PLAIN(RELU), CONV(8, 2, 1, 0), PLAIN(RELU), LINEAR(4)},
     .trunk = RM_TRUNK_SHARED},
    IMAGE(8, 12, 12, 3),
    257,
    0,
    false};

static void blocks_take_a_second_image(void **state)
{
    struct rm_backend *device = open_large(false);
    (void)state;
    struct named_net net = many;
    net.batch = rm_test_effort(many.batch, 132); /* a second image for some */
    const struct net_parity r = net_check(&net, cpu, device, RM_COMPUTE_BF16, 3);
    rm_test_device_fine(device);
    rm_backend_destroy(device);
    if (r.failed || !r.captured || r.result > r.result_allowed || r.gradient > r.gradient_allowed)
        fail_msg("results deviate by %g of %g, gradients by %g of %g%s", r.result, r.result_allowed,
                 r.gradient, r.gradient_allowed, r.captured ? "" : ", other bits when captured");
}

/* --- which way ---------------------------------------------------------------------------------
 */

/* Kernels and products of a convolution's results for 3 images. */
static uint64_t launches_of(struct rm_backend *b, const struct rm_conv *c)
{
    const size_t in = (size_t)3 * c->channels * c->height * c->width;
    const size_t out = (size_t)3 * c->out_channels * c->out_height * c->out_width;
    const size_t weights = (size_t)c->out_channels * c->channels * c->kernel * c->kernel;
    struct rm_device_counts before, after;
    float *x = b->ops->alloc(b, in), *y = b->ops->alloc(b, out), *w = b->ops->alloc(b, weights);
    float *bias = b->ops->alloc(b, c->out_channels);
    const size_t floats = b->ops->conv2d_packed_floats(b, c);
    float *packed = b->ops->alloc(b, floats ? floats : 1);
    assert_true(x && y && w && bias && packed);
    assert_int_equal(b->ops->conv2d_reserve(b, c, 3, false), 0);
    b->ops->conv2d_pack(b, c, w, packed);
    b->device->counts(b, &before);
    b->ops->conv2d(b, c, x, floats ? packed : w, bias, 3, RM_ACT_RELU, y, NULL);
    b->ops->finish(b);
    b->device->counts(b, &after);
    rm_test_device_fine(b);
    float *all[] = {x, y, w, bias, packed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        b->ops->release(b, all[i]);
    return after.launches - before.launches;
}

static void chosen_by_shape(void **state)
{
    const struct rm_conv first = {6, 11, 11, 3, 1, 1, 32, 11, 11, false, true};
    const struct rm_conv third = {64, 11, 11, 3, 1, 1, 64, 11, 11, true, true};
    const struct rm_conv odd = {6, 11, 11, 3, 1, 1, 9, 11, 11, false, true};
    const struct rm_conv stride = {8, 11, 11, 3, 2, 1, 8, 6, 6, true, true};
    const struct rm_conv large = {8, 200, 200, 3, 1, 1, 8, 200, 200, true, true};
    struct rm_conv floats = third;
    struct rm_backend *device = rm_test_device_open_for(RM_COMPUTE_BF16), *plain = open_large(true);
    struct rm_backend *exact = rm_test_device_open();
    (void)state;
    assert_true(device->ops->conv2d_compact(device, &first));
    assert_true(device->ops->conv2d_compact(device, &third));
    assert_false(device->ops->conv2d_compact(device, &odd)); /* 9 channels in 16 bits */
    assert_false(device->ops->conv2d_compact(device, &stride));
    assert_false(device->ops->conv2d_compact(device, &large));
    assert_false(plain->ops->conv2d_compact(plain, &third));
    assert_false(exact->ops->conv2d_compact(exact, &third));
    floats.x_compact = floats.y_compact = false;
    assert_int_equal(launches_of(device, &floats), 1);
    assert_true(launches_of(plain, &floats) > 1);
    rm_backend_destroy(exact);
    rm_backend_destroy(plain);
    rm_backend_destroy(device);
}

/* --- graphs --- */

struct part {
    const struct rm_conv *conv;
    float *x, *w, *bias, *y;
    uint32_t images;
};

static struct part make_part(struct rm_backend *b, const struct rm_conv *c, uint32_t images)
{
    const size_t in = (size_t)images * c->channels * c->height * c->width;
    const size_t out = (size_t)images * c->out_channels * c->out_height * c->out_width;
    const struct part p = {c,
                           b->ops->alloc(b, in),
                           b->ops->alloc(b, b->ops->conv2d_packed_floats(b, c)),
                           b->ops->alloc(b, c->out_channels),
                           b->ops->alloc(b, out),
                           images};
    assert_true(p.x && p.w && p.bias && p.y);
    assert_int_equal(b->ops->conv2d_reserve(b, c, images, false), 0);
    b->ops->fill(b, 1.5f, in, p.x);
    b->ops->fill(b, 2.0f, c->out_channels, p.bias);
    return p;
}

static struct rm_device_graph *graph_of(struct rm_backend *b, const struct part *p)
{
    struct rm_device_graph *graph;
    struct rm_error error;
    b->ops->conv2d(b, p->conv, p->x, p->w, p->bias, p->images, RM_ACT_NONE, p->y, NULL);
    b->ops->fill(b, 0.0f, 1, p->y);
    assert_int_equal(b->device->capture(b, &error), 0);
    b->ops->conv2d(b, p->conv, p->x, p->w, p->bias, p->images, RM_ACT_NONE, p->y, NULL);
    assert_int_equal(b->device->captured(b, &graph, &error), 0);
    assert_int_equal(b->device->instantiate(b, graph, &error), 0);
    return graph;
}

/* Of a kernel that a smaller layer uses too: what that needs of shared memory is not all that the
 * larger one's graph may have. */
static void graphs_of_several_layers_stand_beside_each_other(void **state)
{
    const struct rm_conv large = {64, 11, 11, 3, 1, 1, 64, 11, 11, false, false};
    const struct rm_conv small = {8, 4, 4, 3, 1, 1, 64, 4, 4, false, false};
    struct rm_backend *b = rm_test_device_open_for(RM_COMPUTE_BF16);
    const struct part parts[] = {make_part(b, &large, 3), make_part(b, &small, 3)};
    struct rm_device_graph *graphs[2];
    (void)state;
    for (size_t i = 0; i < 2; i++)
        graphs[i] = graph_of(b, &parts[i]);
    for (size_t i = 0; i < 2; i++) {
        float y = 0;
        b->device->launch(b, graphs[i]);
        b->ops->download(b, &y, parts[i].y, 1);
        rm_test_device_fine(b);
        assert_true(y == 2.0f); /* weights are zero, biases are not */
    }
    for (size_t i = 0; i < 2; i++) {
        b->device->graph_destroy(b, graphs[i]);
        b->ops->release(b, parts[i].x);
        b->ops->release(b, parts[i].w);
        b->ops->release(b, parts[i].bias);
        b->ops->release(b, parts[i].y);
    }
    rm_backend_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_shapes),
        cmocka_unit_test(known_networks),
        cmocka_unit_test(blocks_take_a_second_image),
        cmocka_unit_test(chosen_by_shape),
        cmocka_unit_test(graphs_of_several_layers_stand_beside_each_other),
    };
    return cmocka_run_group_tests(tests, open_cpu, close_cpu);
}
