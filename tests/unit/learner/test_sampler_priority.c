/* Replay by priority: what enters and leaves, how draws and weights follow priorities, and that
 * neither the actors nor a learner's death change any of it. */
#include "learner/priority_tree.h"
#include "learner/sampler.h"
#include "shm/layout.h"
#include "tests/support/rows.h"
#include "tests/support/unit.h"

#include <math.h>
#include <string.h>

#define GAMMA   0.9
#define BATCH   32
#define ALPHA   0.6
#define EPSILON 1e-3

static struct rm_error failure;
static struct rm_test_rows rows;
static struct rm_env_agent agent;
static const uint32_t lengths[] = {7, 10, 5, 13};
static const uint8_t ends[] = {RM_FLAG_TERMINATED, RM_FLAG_TRUNCATED,
                               RM_FLAG_TRUNCATED | RM_FLAG_VOID, RM_FLAG_TERMINATED};

static void open_tree(struct rm_priorities *tree, uint64_t slots, uint32_t sources)
{
    const struct rm_priorities_spec spec = {.slots = slots, .lanes = 4, .sources = sources};
    if (rm_priorities_create(tree, &spec, &failure))
        fail_msg("%s", failure.text);
}

static struct rm_sampler *make(const struct rm_sampler_source *sources, uint32_t count, uint32_t n,
                               struct rm_priorities *tree)
{
    struct rm_sampler *s;
    const struct rm_sampler_spec spec = {
        .sources = sources,
        .source_count = count,
        .agents = 1,
        .agent = &agent,
        .batch = BATCH,
        .n_step = n,
        .frame_stack = 2,
        .gamma = GAMMA,
        .capacity = tree->spec.slots * 4,
        .seed = 5,
        .priorities = tree,
        .alpha = ALPHA,
        .epsilon = EPSILON,
    };
    if (rm_sampler_create(&s, &spec, &failure))
        fail_msg("%s", failure.text);
    return s;
}

static uint64_t leaf_of(const struct rm_priorities *tree, uint32_t w, uint32_t row)
{
    return row % tree->spec.slots * 4 + w;
}

/* What may be drawn when `end` rows are written: valid, with its n rows after it, not too old. */
static bool there(const struct rm_priorities *tree, uint32_t w, uint32_t row, uint32_t end,
                  uint32_t n)
{
    return row + n < end && row + tree->spec.slots >= end &&
           rm_test_rows_expect(&rows, w, row, end, n, GAMMA).valid;
}

/* Rows come in one by one, far beyond the capacity. */
static void rows_enter_and_leave(void **state)
{
    (void)state;
    static const uint32_t steps[] = {1, 3, 12};
    agent = rm_test_rows_agent(true);
    rm_test_rows_fill(&rows, 4, 200, lengths, ends);
    for (size_t c = 0; c < sizeof steps / sizeof *steps; c++)
        for (uint32_t stride = 1; stride <= 61; stride += 20) {
            const uint32_t n = steps[c];
            struct rm_priorities tree;
            struct rm_ring ring;
            open_tree(&tree, 40, 1);
            assert_int_equal(rm_test_rows_ring(&ring, 64, 4, true), 0);
            const struct rm_sampler_source source = {&ring, 0, 4};
            struct rm_sampler *s = make(&source, 1, n, &tree);
            for (uint32_t from = 0; from < 200; from += stride) {
                const uint32_t end = from + stride < 200 ? from + stride : 200;
                uint32_t items = 0;
                rm_test_rows_write(&rows, &ring, 0, from, end);
                rm_sampler_window_free(s);
                for (uint32_t w = 0; w < 4; w++)
                    for (uint32_t i = end > 40 ? end - 40 : 0; i < end; i++) {
                        const bool in = there(&tree, w, i, end, n);
                        assert_true(rm_priority_at(&tree, leaf_of(&tree, w, i)) == (in ? 1 : 0));
                        items += in;
                    }
                assert_int_equal(rm_priority_count(&tree), items);
                assert_true(rm_priority_total(&tree) == items);
            }
            rm_sampler_destroy(s);
            rm_ring_close(&ring);
            rm_priorities_close(&tree);
        }
}

/* World and row of draw k. */
static void which(const struct rm_batch *b, uint32_t k, uint32_t *w, uint32_t *row)
{
    const float *newest = b->obs + k * b->inputs + RM_TEST_FEATURES;
    *w = (uint32_t)newest[0];
    *row = (uint32_t)newest[1];
}

/* The error that a transition is made to have. */
static float error_of(uint32_t w, uint32_t row)
{
    return (float)((w * 31 + row * 17) % 23) / 4;
}

static double priority_of(uint32_t w, uint32_t row)
{
    return pow((double)error_of(w, row) + EPSILON, ALPHA);
}

static void learn(struct rm_sampler *s, struct rm_batch *b)
{
    for (uint32_t k = 0; k < BATCH; k++) {
        uint32_t w, row;
        which(b, k, &w, &row);
        b->error[k] = error_of(w, row);
    }
    rm_sampler_learned(s, b);
}

/* After enough updates every transition has its own priority; then draws are in proportion to these
 * and weights are what the paper says, with N and P written out. */
static void draws_and_weights_follow_errors(void **state)
{
    (void)state;
    static uint32_t drawn[4][64];
    struct rm_priorities tree;
    struct rm_ring ring;
    agent = rm_test_rows_agent(true);
    rm_test_rows_fill(&rows, 4, 60, lengths, ends);
    open_tree(&tree, 64, 1);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 4, true), 0);
    rm_test_rows_write(&rows, &ring, 0, 0, 60);
    const struct rm_sampler_source source = {&ring, 0, 4};
    struct rm_sampler *s = make(&source, 1, 3, &tree);
    struct rm_batch *b = rm_sampler_batch(s);
    rm_sampler_window_free(s);
    uint64_t u = 1;
    for (; u <= 2000; u++) { /* those of error 0 are rarely drawn, and keep what they came with */
        assert_int_equal(rm_sampler_draw(s, u, b), 1);
        learn(s, b);
    }
    double total = 0, items = 0, largest = 1;
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t i = 0; i < 60; i++) {
            if (!there(&tree, w, i, 60, 3))
                continue;
            assert_true(fabs(rm_priority_at(&tree, leaf_of(&tree, w, i)) - priority_of(w, i)) <
                        1e-12);
            total += priority_of(w, i);
            items++;
            largest = fmax(largest, priority_of(w, i));
        }
    assert_true(fabs(rm_sampler_largest(s) - largest) < 1e-12);
    rm_sampler_set_beta(s, 0.5);
    const uint32_t batches = 3000;
    for (uint32_t k = 0; k < batches; k++, u++) {
        double most = 0;
        uint32_t w, i;
        assert_int_equal(rm_sampler_draw(s, u, b), 1);
        for (uint32_t d = 0; d < BATCH; d++) {
            which(b, d, &w, &i);
            drawn[w][i]++;
            assert_true(there(&tree, w, i, 60, 3));
            assert_int_equal(b->action[d], rows.cell[w][i].action);
            most = fmax(most, pow(items * priority_of(w, i) / total, -0.5));
        }
        for (uint32_t d = 0; d < BATCH; d++) {
            which(b, d, &w, &i);
            const double want = pow(items * priority_of(w, i) / total, -0.5) / most;
            assert_true(fabs((double)b->weight[d] - want) < 1e-6);
        }
    }
    /* Stratified draws scatter less than independent ones, never more. */
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t i = 0; i < 60; i++) {
            const double mean =
                there(&tree, w, i, 60, 3) ? batches * BATCH * priority_of(w, i) / total : 0;
            assert_true(fabs(drawn[w][i] - mean) <= 5 * sqrt(mean));
        }
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
    rm_priorities_close(&tree);
}

static void new_rows_enter_with_the_largest(void **state)
{
    (void)state;
    struct rm_priorities tree;
    struct rm_ring ring;
    agent = rm_test_rows_agent(true);
    rm_test_rows_fill(&rows, 4, 60, lengths, ends);
    open_tree(&tree, 64, 1);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 4, true), 0);
    rm_test_rows_write(&rows, &ring, 0, 0, 30);
    const struct rm_sampler_source source = {&ring, 0, 4};
    struct rm_sampler *s = make(&source, 1, 1, &tree);
    struct rm_batch *b = rm_sampler_batch(s);
    rm_sampler_window_free(s);
    assert_int_equal(rm_sampler_draw(s, 1, b), 1);
    for (uint32_t k = 0; k < BATCH; k++)
        b->error[k] = k == 3 ? 50 : NAN; /* what is no number leaves the largest */
    rm_sampler_learned(s, b);
    const double largest = pow(50 + EPSILON, ALPHA);
    assert_true(fabs(rm_sampler_largest(s) - largest) < 1e-12);
    rm_test_rows_write(&rows, &ring, 0, 30, 60);
    rm_sampler_window_free(s);
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t i = 30; i < 59; i++)
            if (there(&tree, w, i, 60, 1))
                assert_true(rm_priority_at(&tree, leaf_of(&tree, w, i)) == rm_sampler_largest(s));
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
    rm_priorities_close(&tree);
}

static void same_batch(const struct rm_batch *x, const struct rm_batch *y)
{
    assert_memory_equal(x->obs, y->obs, BATCH * x->inputs * sizeof(float));
    assert_memory_equal(x->next_obs, y->next_obs, BATCH * x->inputs * sizeof(float));
    assert_memory_equal(x->mask, y->mask, BATCH * x->actions);
    assert_memory_equal(x->next_mask, y->next_mask, BATCH * x->actions);
    assert_memory_equal(x->ret, y->ret, BATCH * sizeof(float));
    assert_memory_equal(x->weight, y->weight, BATCH * sizeof(float));
}

/* The same worlds in one ring or in two: the same batches, weights and tree, to the bit. */
static void draws_do_not_depend_on_the_split(void **state)
{
    (void)state;
    struct rm_ring whole, left, right;
    struct rm_priorities tree, other;
    agent = rm_test_rows_agent(true);
    rm_test_rows_fill(&rows, 4, 120, lengths, ends);
    assert_int_equal(rm_test_rows_ring(&whole, 64, 4, true), 0);
    assert_int_equal(rm_test_rows_ring(&left, 64, 1, true), 0);
    assert_int_equal(rm_test_rows_ring(&right, 64, 3, true), 0);
    const struct rm_sampler_source one = {&whole, 0, 4};
    const struct rm_sampler_source two[] = {{&left, 0, 1}, {&right, 1, 3}};
    open_tree(&tree, 40, 1);
    open_tree(&other, 40, 2);
    struct rm_sampler *a = make(&one, 1, 3, &tree), *b = make(two, 2, 3, &other);
    rm_sampler_set_beta(a, 0.7);
    rm_sampler_set_beta(b, 0.7);
    for (uint64_t u = 1; u <= 60; u++) {
        const uint32_t from = (uint32_t)(u - 1) * 2, end = (uint32_t)u * 2;
        rm_test_rows_write(&rows, &whole, 0, from, end);
        rm_test_rows_write(&rows, &left, 0, from, end);
        rm_test_rows_write(&rows, &right, 1, from, end);
        rm_sampler_window_free(a);
        rm_sampler_window_free(b);
        const int drawn = rm_sampler_draw(a, u, rm_sampler_batch(a));
        assert_int_equal(rm_sampler_draw(b, u, rm_sampler_batch(b)), drawn);
        assert_true(drawn || end <= 4);
        if (!drawn)
            continue;
        same_batch(rm_sampler_batch(a), rm_sampler_batch(b));
        learn(a, rm_sampler_batch(a));
        learn(b, rm_sampler_batch(b));
        assert_memory_equal(tree.level[0], other.level[0], tree.nodes[0] * sizeof(double));
    }
    rm_sampler_destroy(a);
    rm_sampler_destroy(b);
    rm_ring_close(&whole);
    rm_ring_close(&left);
    rm_ring_close(&right);
    rm_priorities_close(&tree);
    rm_priorities_close(&other);
}

/* A sampler that takes over a tree draws what its predecessor would have drawn, though the sums
 * were left in disorder. */
static void a_successor_goes_on(void **state)
{
    (void)state;
    struct rm_priorities tree, kept;
    struct rm_ring ring;
    agent = rm_test_rows_agent(true);
    rm_test_rows_fill(&rows, 4, 60, lengths, ends);
    open_tree(&tree, 40, 1);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 4, true), 0);
    rm_test_rows_write(&rows, &ring, 0, 0, 60);
    const struct rm_sampler_source source = {&ring, 0, 4};
    struct rm_sampler *a = make(&source, 1, 3, &tree);
    rm_sampler_window_free(a);
    for (uint64_t u = 1; u <= 20; u++) {
        assert_int_equal(rm_sampler_draw(a, u, rm_sampler_batch(a)), 1);
        learn(a, rm_sampler_batch(a));
    }
    assert_int_equal(rm_priorities_attach(&kept, tree.region.fd, true, &failure), RM_ATTACH_OK);
    assert_int_equal(rm_sampler_draw(a, 21, rm_sampler_batch(a)), 1);
    memset(kept.level[1], 0, 5 * sizeof(double));
    struct rm_sampler *b = make(&source, 1, 3, &kept);
    rm_sampler_window_free(b);
    assert_int_equal(rm_sampler_draw(b, 21, rm_sampler_batch(b)), 1);
    same_batch(rm_sampler_batch(a), rm_sampler_batch(b));
    rm_sampler_destroy(a);
    rm_sampler_destroy(b);
    rm_ring_close(&ring);
    rm_priorities_close(&kept);
    rm_priorities_close(&tree);
}

static void another_shape_is_refused(void **state)
{
    (void)state;
    struct rm_priorities tree;
    struct rm_ring ring;
    struct rm_sampler *s;
    agent = rm_test_rows_agent(false);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 4, false), 0);
    open_tree(&tree, 40, 1);
    const struct rm_sampler_source source = {&ring, 0, 4};
    const struct rm_sampler_spec spec = {
        .sources = &source,
        .source_count = 1,
        .agents = 1,
        .agent = &agent,
        .batch = BATCH,
        .n_step = 1,
        .frame_stack = 1,
        .capacity = 41 * 4,
        .priorities = &tree,
    };
    assert_true(rm_sampler_create(&s, &spec, &failure) < 0);
    assert_non_null(strstr(failure.text, "priorities have 40 rows"));
    rm_ring_close(&ring);
    rm_priorities_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_enter_and_leave),
        cmocka_unit_test(draws_and_weights_follow_errors),
        cmocka_unit_test(new_rows_enter_with_the_largest),
        cmocka_unit_test(draws_do_not_depend_on_the_split),
        cmocka_unit_test(a_successor_goes_on),
        cmocka_unit_test(another_shape_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
