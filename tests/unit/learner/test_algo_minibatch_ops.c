/* The CPU's operations of a minibatch, worked out by hand: which rows it has, whole lanes of
 * recurrent networks and single samples of others; how many count; and when passes end. */
#include "learner/algo/learning.h"
#include "shm/layout.h"
#include "tests/support/unit.h"

#include <math.h>

enum { STEPS = 4, LANES = 3, ROWS = STEPS * LANES };

static struct rm_backend *backend;

static int open_backend(void **state)
{
    struct rm_error error;
    (void)state;
    return rm_backend_cpu_create(&backend, 1, "auto", &error);
}

static int close_backend(void **state)
{
    (void)state;
    rm_backend_destroy(backend);
    return 0;
}

/* Two minibatches of a pass, whose updates have numbers from 8 on. */
static const struct rm_update_knobs knobs_of[] = {{.before = 7}, {.before = 8}};

static void a_minibatch_is_some_lanes_whole(void **state)
{
    /* lane 1 ends an episode in row 1 and begins one in row 2 */
    const uint8_t flags[ROWS] = {[1 * LANES + 1] = RM_FLAG_LAST, [2 * LANES + 1] = RM_FLAG_FIRST};
    const uint32_t order[LANES] = {2, 1, 0}, rows[] = {2, 1, 5, 4, 8, 7, 11, 10};
    const uint8_t restart[] = {0, 0, 0, 0, 0, 1, 0, 0};
    float valid[ROWS], advantage[ROWS];
    uint32_t index[2 * STEPS], entry[2];
    uint8_t restarts[2 * STEPS];
    struct rm_update_knobs knobs;
    struct rm_rollout_passes passes = {.entries = 3, .parts = 2, .epochs = 1, .part = 1};
    (void)state;
    memset(restarts, 0xff, sizeof restarts); /* what the operation has to overwrite */
    for (uint32_t i = 0; i < ROWS; i++) {
        valid[i] = !(flags[i] & RM_FLAG_LAST);
        advantage[i] = (float)i;
    }
    const struct rm_next_minibatch next = {
        .order = order,
        .stride = LANES,
        .steps = STEPS,
        .lanes = LANES,
        .valid = valid,
        .flags = flags,
        .first_flag = RM_FLAG_FIRST,
        .advantage = advantage,
        .normalise = true,
        .knobs_of = knobs_of,
        .knobs_stride = 2,
        .index = index,
        .entry = entry,
        .restart = restarts,
        .knobs = &knobs,
        .passes = &passes,
    };
    const struct rm_policy_ops *ops = rm_policy_ops_of(backend);
    assert_int_equal(ops->minibatch(backend, &next), 2 * STEPS); /* lanes 1 and 0: n part / parts */
    assert_int_equal(entry[0], 1);
    assert_int_equal(knobs.before, 8);
    passes.part = 0;
    passes.entries = 2; /* lane 2, then lane 1 */
    passes.parts = 1;
    assert_int_equal(ops->minibatch(backend, &next), 2 * STEPS);
    assert_memory_equal(index, rows, sizeof rows);
    assert_int_equal(passes.batch, 7); /* row 4 is an episode's last */
    for (uint32_t i = 0; i < 2 * STEPS; i++)
        assert_int_equal(restarts[i] != 0, restart[i]);
    assert_int_equal(entry[0], 2);
    assert_int_equal(entry[1], 1);
    assert_int_equal(knobs.before, 7);
    /* Of 2 1 5 8 7 11 10: mean 44 / 7, sum of squares about it 612 / 7. */
    assert_true(fabs((double)passes.mean - 44.0 / 7) < 1e-6);
    assert_true(fabs((double)passes.scale - 1 / sqrt(612.0 / 7 / 6)) < 1e-6);
}

static void a_minibatch_is_a_part_of_the_order(void **state)
{
    const uint32_t order[2 * 5] = {9, 8, 7, 6, 5, 0, 3, 1, 4, 2};
    const float valid[10] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, advantage[10] = {0};
    uint32_t index[5];
    struct rm_update_knobs knobs;
    struct rm_rollout_passes passes = {.entries = 5,
                                       .parts = 2,
                                       .epochs = 2,
                                       .pass = 1,
                                       .part = 1,
                                       .whole_mean = 3,
                                       .whole_scale = 2};
    const struct rm_update_knobs all[] = {{0}, {0}, {0}, {.before = 41}};
    const struct rm_next_minibatch next = {
        .order = order,
        .stride = 5,
        .steps = 1,
        .lanes = 1,
        .valid = valid,
        .advantage = advantage,
        .knobs_of = all,
        .knobs_stride = 2,
        .index = index,
        .knobs = &knobs,
        .passes = &passes,
    };
    (void)state;
    assert_int_equal(rm_policy_ops_of(backend)->minibatch(backend, &next), 3);
    assert_int_equal(index[0], 1);
    assert_int_equal(index[1], 4);
    assert_int_equal(index[2], 2);
    assert_int_equal(passes.batch, 3);
    assert_int_equal(knobs.before, 41);
    assert_true(passes.mean == 3 && passes.scale == 2); /* the rollout's */
}

/* A skipped minibatch counts as seen, and its KL for nothing. */
static void passes_end(void **state)
{
    const struct rm_policy_ops *ops = rm_policy_ops_of(backend);
    struct rm_rollout_passes p = {.parts = 2, .epochs = 3, .batch = 4};
    struct rm_update_figures f = {.now_sums = {[RM_SUM_KL] = 1}};
    (void)state;
    ops->book(backend, 0.5, &p, &f);
    assert_true(p.part == 1 && p.pass == 0 && p.seen == 4);
    f.skip = 1;
    f.now_sums[RM_SUM_KL] = NAN;
    ops->book(backend, 0.5, &p, &f);
    assert_true(p.part == 0 && p.pass == 1 && p.seen == 8 && p.kl == 0.25 && !f.stop);
    f.skip = 0;
    f.now_sums[RM_SUM_KL] = 2.5;
    ops->book(backend, 0.5, &p, &f);
    ops->book(backend, 0.5, &p, &f);
    assert_true(p.pass == 2 && p.kl == 0.625 && f.stop); /* too far */
    ops->book(backend, 0.5, &p, &f);
    assert_true(p.seen == 16); /* nothing any more */
    f.stop = 0;
    ops->book(backend, 0, &p, &f);
    assert_true(!f.stop);
    ops->book(backend, 0, &p, &f);
    assert_true(p.pass == 3 && f.stop); /* the last */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minibatch_is_some_lanes_whole),
        cmocka_unit_test(a_minibatch_is_a_part_of_the_order),
        cmocka_unit_test(passes_end),
    };
    return cmocka_run_group_tests(tests, open_backend, close_backend);
}
