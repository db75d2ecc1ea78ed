/* learner/net: initial parameters by each initialiser's name: the range or the deviation that its
 * paper gives, gains where they belong, biases. */
#include "shm/base/isa.h"
#include "learner/net/init_kernels.h"
#include "learner/net/net.h"
#include "learner/net/orthogonal.h"
#include "tests/support/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IN = 40, OUT = 60, CHANNELS = 6, KERNEL = 3, MAPS = 30 };

static const double gain = 1.3, policy_gain = 0.02, value_gain = 0.7;

struct network {
    struct rm_net *net;
    float *params;
};

static struct network make(enum rm_init init, bool image)
{
    struct rm_network_config config = {.layer_count = 1,
                                       .init = init,
                                       .gain = gain,
                                       .policy_gain = policy_gain,
                                       .value_gain = value_gain,
                                       .trunk = RM_TRUNK_SHARED};
    struct rm_net_shape shape = {
        .inputs = IN, .actions = 20, .outputs_per_action = 1, .head = RM_HEAD_ACTOR_CRITIC};
    config.layers[0] = (struct rm_layer_config){.type = RM_LAYER_LINEAR, .units = OUT};
    if (image) {
        shape.inputs = CHANNELS * 8 * 8;
        shape.dims = 3;
        shape.dim[0] = CHANNELS;
        shape.dim[1] = shape.dim[2] = 8;
        config.layers[0] = (struct rm_layer_config){
            .type = RM_LAYER_CONV2D, .units = MAPS, .kernel = KERNEL, .stride = 1};
    }
    struct network n;
    struct rm_error error;
    if (rm_net_compile(&n.net, &config, &shape, &error))
        fail_msg("%s", error.text);
    n.params = malloc(rm_net_param_count(n.net) * sizeof *n.params);
    rm_net_init(n.net, n.params, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
    return n;
}

static void unmake(struct network *n)
{
    free(n->params);
    rm_net_destroy(n->net);
}

struct moments {
    double most, deviation;
};

static struct moments of(const struct network *n, const char *name)
{
    const struct rm_net_tensor *t;
    size_t count = rm_net_tensors(n->net, &t), i = 0;
    while (i < count && strcmp(t[i].name, name) != 0)
        i++;
    assert_true(i < count);
    size_t floats = (size_t)t[i].shape[0] * t[i].shape[1] * t[i].shape[2] * t[i].shape[3];
    struct moments m = {0, 0};
    for (size_t k = 0; k < floats; k++) {
        double v = n->params[t[i].offset + k];
        m.most = fabs(v) > m.most ? fabs(v) : m.most;
        m.deviation += v * v / (double)floats;
    }
    m.deviation = sqrt(m.deviation);
    return m;
}

/* Over a thousand numbers, the deviation is within some percent. */
static void expect(const struct network *n, const char *name, double deviation, bool uniform)
{
    struct moments m = of(n, name);
    if (!(fabs(m.deviation / deviation - 1) < 0.08))
        fail_msg("%s: deviation %g, not %g", name, m.deviation, deviation);
    if (uniform != (m.most <= deviation * sqrt(3.0) * (1 + 1e-6)))
        fail_msg("%s: up to %g, deviation %g", name, m.most, deviation);
}

static void by_name(void **state)
{
    (void)state;
    const struct {
        enum rm_init init;
        double layer, conv, head; /* deviations */
        bool uniform;
    } cases[] = {
        {RM_INIT_XAVIER_UNIFORM, gain * sqrt(2.0 / (IN + OUT)),
         gain * sqrt(2.0 / (9 * CHANNELS + 9 * MAPS)), policy_gain * sqrt(2.0 / (OUT + 20)), true},
        {RM_INIT_XAVIER_NORMAL, gain * sqrt(2.0 / (IN + OUT)),
         gain * sqrt(2.0 / (9 * CHANNELS + 9 * MAPS)), policy_gain * sqrt(2.0 / (OUT + 20)), false},
        {RM_INIT_KAIMING_UNIFORM, gain / sqrt(IN), gain / sqrt(9 * CHANNELS),
         policy_gain / sqrt(OUT), true},
        {RM_INIT_KAIMING_NORMAL, gain / sqrt(IN), gain / sqrt(9 * CHANNELS),
         policy_gain / sqrt(OUT), false},
        {RM_INIT_DEFAULT, 1 / sqrt(3.0 * IN), 1 / sqrt(3.0 * 9 * CHANNELS), 1 / sqrt(3.0 * OUT),
         true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct network n = make(cases[i].init, false), image = make(cases[i].init, true);
        expect(&n, "layers.0.weight", cases[i].layer, cases[i].uniform);
        expect(&n, "head.weight", cases[i].head, cases[i].uniform);
        expect(&image, "layers.0.weight", cases[i].conv, cases[i].uniform);
        bool zero = cases[i].init != RM_INIT_DEFAULT;
        assert_true((of(&n, "layers.0.bias").most == 0) == zero);
        assert_true((of(&n, "value_head.bias").most == 0) == zero);
        assert_true((of(&image, "layers.0.bias").most == 0) == zero);
        unmake(&n);
        unmake(&image);
    }
}

/* Rows of length `gain` each in the layers, of the policy's and the value's own in the heads. */
/* Rows of tables are normal, whatever network.init says; both tables of a token. */
static void embeddings(void **state)
{
    static const struct {
        double set, is;
    } cases[] = {{0, 1}, {1, 1}, {0.1, 0.1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rm_network_config config = {.layer_count = 1,
                                                 .layers = {{.type = RM_LAYER_EMBEDDING,
                                                             .units = OUT,
                                                             .codes = 100,
                                                             .columns = 3,
                                                             .first_codes = 50,
                                                             .deviation = cases[i].set}},
                                                 .trunk = RM_TRUNK_SHARED};
        const struct rm_net_shape shape = {.inputs = 12,
                                           .dims = 3,
                                           .dim = {2, 2, 3},
                                           .high = 99,
                                           .actions = 20,
                                           .outputs_per_action = 1,
                                           .head = RM_HEAD_ACTOR_CRITIC};
        struct network n;
        struct rm_error error;
        if (rm_net_compile(&n.net, &config, &shape, &error))
            fail_msg("%s", error.text);
        n.params = malloc(rm_net_param_count(n.net) * sizeof *n.params);
        rm_net_init(n.net, n.params, rm_rng_at(3, RM_STREAM_INIT, 0, 0));
        expect(&n, "layers.0.weight", cases[i].is, false);
        expect(&n, "layers.0.first", cases[i].is, false);
        unmake(&n);
    }
}

static void orthogonal_gains(void **state)
{
    (void)state;
    struct network n = make(RM_INIT_ORTHOGONAL, false), image = make(RM_INIT_ORTHOGONAL, true);
    const struct {
        const struct network *of;
        const char *name;
        double deviation; /* of a row of unit length: 1 / sqrt(its numbers) */
    } cases[] = {
        {&n, "layers.0.weight", gain / sqrt(OUT)}, /* columns, which are fewer than rows */
        {&n, "head.weight", policy_gain / sqrt(OUT)},
        {&n, "value_head.weight", value_gain / sqrt(OUT)},
        {&image, "layers.0.weight", gain / sqrt(9 * CHANNELS)},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double deviation = of(cases[i].of, cases[i].name).deviation;
        if (!(fabs(deviation / cases[i].deviation - 1) < 1e-6))
            fail_msg("%s: deviation %g, not %g", cases[i].name, deviation, cases[i].deviation);
    }
    unmake(&n);
    unmake(&image);
}

/* Blocks of rows, incomplete ones, and as many rows as columns, of which little is left. */
static void orthogonal_shapes(void **state)
{
    (void)state;
    static const uint32_t shapes[][2] = {{1, 7},   {7, 1},    {3, 3},     {31, 200},  {32, 33},
                                         {97, 64}, {70, 600}, {130, 130}, {512, 513}, {1100, 35}};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const uint32_t rows = shapes[i][0], cols = shapes[i][1];
        const uint32_t count = rows < cols ? rows : cols, length = rows < cols ? cols : rows;
        const size_t next = rows < cols ? cols : 1, step = rows < cols ? 1 : cols;
        float *p = malloc((size_t)rows * cols * sizeof *p);
        struct rm_rng rng = rm_rng_at(5, RM_STREAM_INIT, (uint32_t)i, 0);
        assert_int_equal(rm_orthogonal(p, rows, cols, 2.0, &rng), 0);
        for (uint32_t a = 0; a < count; a++)
            for (uint32_t b = 0; b <= a; b++) {
                double dot = 0;
                for (uint32_t k = 0; k < length; k++)
                    dot += (double)p[a * next + k * step] * (double)p[b * next + k * step];
                if (!(fabs(dot - (a == b ? 4.0 : 0.0)) < 1e-6))
                    fail_msg("%u x %u: %u and %u: %g", rows, cols, a, b, dot);
            }
        free(p);
    }
}

enum { NORMALS = 1000, LENGTH = 1112, STRIDE = LENGTH + 8, ROWS = 8, EARLIER = 12 };

struct made {
    double normal[NORMALS], x[ROWS * STRIDE], one[LENGTH], square;
};

static void make_by(const struct rm_init_kernels *k, struct made *m)
{
    static uint32_t words[4 * EARLIER * STRIDE];
    static double q[EARLIER * STRIDE], scratch[ROWS * EARLIER];
    struct rm_rng rng = rm_rng_at(11, RM_STREAM_INIT, 0, 0);
    rm_rng_fill_u32(&rng, words, sizeof words / sizeof words[0]);
    memset(words, 0, 4 * sizeof words[0]); /* a logarithm of 1 */
    memset(words + 4, 0xff, 4 * sizeof words[0]);
    k->normals(words, NORMALS, m->normal);
    k->normals(words, EARLIER * STRIDE, q);
    for (size_t i = 0; i < sizeof q / sizeof q[0]; i++)
        q[i] *= 0.01;
    k->normals(words + 400, ROWS * STRIDE, m->x);
    memcpy(m->one, m->x, sizeof m->one);
    k->project(m->x, ROWS, q, EARLIER, LENGTH, STRIDE, scratch);
    k->project_one(m->one, q, LENGTH);
    m->square = k->square(m->x, LENGTH);
}

/* A seed gives the same network on every host: each level's kernels give the same bits; and they
 * are what they should be, by the C library's logarithm and cosine. */
static void levels_agree(void **state)
{
    (void)state;
    static const struct rm_init_kernels *const of[] = {&rm_isa_v2_init, &rm_isa_v3_init,
                                                       &rm_isa_v4_init};
    static struct made first, other;
    struct rm_rng rng = rm_rng_at(11, RM_STREAM_INIT, 0, 0);
    make_by(of[0], &first);
    for (int level = 1; level <= (int)rm_isa_level(); level++) {
        make_by(of[level], &other);
        assert_memory_equal(&first, &other, sizeof first);
    }
    for (int i = 0; i < NORMALS; i++) {
        double u = 1 - rm_rng_double(&rng), v = rm_rng_double(&rng);
        if (i == 0)
            u = 1, v = 0;
        else if (i == 1)
            u = 0x1p-53, v = 1 - 0x1p-53;
        const double expected = sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
        assert_true(fabs(first.normal[i] - expected) < 1e-14);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_name),          cmocka_unit_test(embeddings),
        cmocka_unit_test(orthogonal_gains), cmocka_unit_test(orthogonal_shapes),
        cmocka_unit_test(levels_agree),
    };
    return cmocka_run_group_tests_name("net init", tests, NULL, NULL);
}
