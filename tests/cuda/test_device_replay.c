/* Whole updates from a replay on a device, drawn, weighed and learned there: a hundred of them
 * beside the CPU's sampler and trainer on the same rows, and what they promise: each row crosses
 * once, nothing is allocated, nothing waits, no bit depends on the order of threads. */
#include "learner/priority_tree.h"
#include "tests/support/backends.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/sides.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- the same as on the CPU ------------------------------------------------------------------ */

static void compare_arenas(const char *what, const struct rm_test_side *there, const float *x_at,
                           const struct rm_test_side *here, const float *y_at, const float *before,
                           double within)
{
    const size_t n = rm_net_param_count(rm_trainer_net(here->trainer));
    float *x = rm_test_updates_copy(there->trainer, rm_test_device, x_at);
    float *y = rm_test_updates_copy(here->trainer, rm_test_cpu, y_at);
    assert_true(rm_test_updates_apart(y, before, n) > 1e-3); /* it has learned something */
    const double apart = rm_test_updates_apart(x, y, n);
    if (!(apart < within))
        fail_msg("%s: %g apart", what, apart);
    free(x);
    free(y);
}

/* What the device has written through, beside the host's own. */
static void compare_leaves(const struct rm_test_side *there, const struct rm_test_side *here)
{
    for (uint64_t i = 0; i < RM_SIDES_SLOTS * RM_SIDES_LANES; i++) {
        const double x = rm_priority_at(&there->tree, i), y = rm_priority_at(&here->tree, i);
        if (!(fabs(x - y) <= 1e-3 * (0.05 + y)))
            fail_msg("leaf %llu: %g on the device, %g on the CPU", (unsigned long long)i, x, y);
    }
    assert_true(fabs(rm_sampler_largest(there->sampler) - rm_sampler_largest(here->sampler)) <
                1e-3);
}

static void assert_close(double x, double y)
{
    assert_true(fabs(x - y) <= 1e-3 * (1e-3 + fabs(y)));
}

/* Whether all items so far were the same. */
static bool same_items(const struct rm_test_side *there, const struct rm_test_side *here)
{
    return there->ages[there->report.through] == here->ages[there->report.through];
}

static void open_both(struct rm_test_scene *s, struct rm_test_side *there,
                      struct rm_test_side *here)
{
    const struct rm_trainer_settings settings = {
        .learning_rate = 1e-3, .grad_clip = 1, .target_tau = 0.1, .report = 1};
    rm_test_side_open(here, s, false);
    rm_test_side_open(there, s, true);
    rm_trainer_set(here->trainer, &settings);
    rm_trainer_set(there->trainer, &settings);
}

/* Up to `most` updates of both, as long as the items are the same. Returns the last one's number.
 */
static uint64_t update_both(struct rm_test_scene *s, struct rm_test_side *there,
                            struct rm_test_side *here, uint64_t most)
{
    uint64_t number = 0;
    while (number < most && same_items(there, here)) {
        rm_test_sides_write(&s->ring, rm_test_sides_rows_before(++number));
        rm_test_side_update_there(there, number);
        rm_test_side_update_here(here, number);
    }
    rm_test_side_poll(there, true);
    return number;
}

/* The last update of which it is known that all items were the same up to it. */
static uint64_t last_same(const struct rm_test_side *there, const struct rm_test_side *here)
{
    uint64_t last = 0;
    for (uint64_t i = 1; i <= RM_SIDES_UPDATES; i++) {
        if (there->ages[i] && there->ages[i] != here->ages[i])
            break;
        if (there->ages[i])
            last = i;
    }
    return last;
}

/* The scene from its start. */
static void begin_again(struct rm_test_scene *s)
{
    const struct rm_ring_spec spec = s->ring.spec;
    struct rm_error error = {""};
    rm_ring_close(&s->ring);
    if (rm_ring_create(&s->ring, &spec, &error))
        fail_msg("%s", error.text);
    rm_ring_writer_open(&s->ring);
}

/* Priorities are made of errors that are rounded otherwise on a device: a draw that falls between
 * two leaves by less than that finds the other one. It is rare, and not to be taken for a mistake;
 * from then on the two learn from other items. So what both have learned until then is compared, in
 * a second run that ends there. */
static void compare_runs(struct rm_test_scene *s)
{
    static struct rm_test_side here, there;
    const bool by_priority = s->experiment.priority.kind != RM_PRIORITY_UNIFORM;
    open_both(s, &there, &here);
    float *before =
        rm_test_updates_copy(here.trainer, rm_test_cpu, rm_trainer_params(here.trainer));
    uint64_t updates = update_both(s, &there, &here, rm_test_effort(RM_SIDES_UPDATES, 52));
    if (!same_items(&there, &here)) {
        const uint64_t last = last_same(&there, &here);
        print_message("  other items after update %llu\n", (unsigned long long)last);
        assert_true(by_priority && last > 10);
        rm_test_side_close(&here);
        rm_test_side_close(&there);
        begin_again(s);
        open_both(s, &there, &here);
        updates = update_both(s, &there, &here, last);
        assert_int_equal(updates, last);
    }
    rm_test_device_fine(rm_test_device);
    assert_true(same_items(&there, &here));
    assert_int_equal(there.report.made, updates);
    assert_int_equal(there.report.drawn.age_count, updates * s->experiment.sample.batch);
    compare_arenas("params", &there, rm_trainer_params(there.trainer), &here,
                   rm_trainer_params(here.trainer), before, 1e-4);
    compare_arenas("target", &there, there.trainer->all[0]->target, &here,
                   here.trainer->all[0]->target, before, 1e-4);
    assert_int_equal(there.report.drawn.rejected, rm_sampler_counts(here.sampler).rejected);
    assert_close(there.report.mean.loss, here.report.mean.loss);
    assert_close(there.report.mean.q_mean, here.report.mean.q_mean);
    if (by_priority)
        compare_leaves(&there, &here);
    free(before);
    rm_test_side_close(&here);
    rm_test_side_close(&there);
}

static void updates_are_the_cpus(void **state)
{
    (void)state;
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++)
        for (int by_priority = 0; by_priority < 2; by_priority++) {
            struct rm_test_scene s;
            rm_test_scene_open(&s, (enum rm_algorithm)name, true, by_priority);
            compare_runs(&s);
            rm_ring_close(&s.ring);
        }
}

/* Everything at once (Hessel 2018): double, dueling, noisy, quantiles, three steps, by priority. */
static void rainbow_updates_are_the_cpus(void **state)
{
    struct rm_test_scene s;
    (void)state;
    rm_test_scene_open(&s, RM_ALGORITHM_QR_DQN, false, true);
    s.experiment.algorithm.target.update = RM_TARGET_HARD;
    s.experiment.algorithm.target.interval = 7;
    compare_runs(&s);
    rm_ring_close(&s.ring);
}

static void watched_updates_are_the_cpus(void **state)
{
    struct rm_test_scene s;
    (void)state;
    rm_test_scene_open(&s, RM_ALGORITHM_IQN, true, true);
    s.experiment.debug.check_finite = RM_CHECK_FINITE_ALWAYS;
    s.experiment.debug.check_every = 1;
    compare_runs(&s);
    rm_ring_close(&s.ring);
}

/* --- promises -------------------------------------------------------------------------------- */

static struct rm_device_counts counts_now(void)
{
    struct rm_device_counts c;
    rm_test_device->device->counts(rm_test_device, &c);
    return c;
}

static void rows_cross_once_and_updates_wait_for_nothing(bool by_priority)
{
    struct rm_test_scene s;
    struct rm_test_side there;
    uint64_t reports = 0;
    rm_test_scene_open(&s, RM_ALGORITHM_IQN, false, by_priority);
    rm_test_side_open(&there, &s, true);
    const struct rm_trainer_settings settings = {
        .learning_rate = 1e-3, .grad_clip = 1, .target_tau = 0.1, .report = 16};
    rm_trainer_set(there.trainer, &settings);
    for (uint64_t number = 1; number <= 48; number++) {
        const uint64_t rows = rm_test_sides_rows_before(number);
        struct rm_batch *b = rm_trainer_batch(there.trainer); /* where it may wait */
        rm_test_side_poll(&there, false);
        rm_test_sides_write(&s.ring, rows);
        const struct rm_device_counts before = counts_now();
        rm_test_side_launch(&there, b, number);
        const struct rm_device_counts after = counts_now();
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(after.synchronizations, before.synchronizations);
        assert_int_equal(after.launches, before.launches);
        assert_int_equal(after.graph_launches, before.graph_launches + 1);
        /* Knobs and turn, each at a place of its own, and every row for the first time. */
        assert_int_equal(after.bytes_in - before.bytes_in, 2 * 256 + rows * s.ring.row_bytes);
        reports += after.bytes_out > before.bytes_out;
    }
    assert_int_equal(reports, 48 / 16);
    rm_test_device_fine(rm_test_device);
    rm_test_side_close(&there);
    rm_ring_close(&s.ring);
}

static void rows_cross_once(void **state)
{
    (void)state;
    rows_cross_once_and_updates_wait_for_nothing(false);
    rows_cross_once_and_updates_wait_for_nothing(true);
}

/* The parameters after `count` updates. */
static float *train(enum rm_algorithm name, uint64_t count, uint64_t dry, size_t *bytes)
{
    struct rm_test_scene s;
    struct rm_test_side there;
    rm_test_scene_open(&s, name, false, true);
    rm_test_side_open(&there, &s, true);
    if (dry) {
        rm_test_sides_write_dead(&s.ring, 30);
        for (uint64_t number = 1; number <= dry; number++)
            rm_test_side_update_there(&there, number);
        rm_test_side_poll(&there, true);
        assert_int_equal(there.report.drawn.dry, dry);
        assert_int_equal(there.report.made + there.report.skipped, 0);
    } else {
        rm_test_sides_write_dead(&s.ring, 30);
    }
    for (uint64_t number = 1; number <= count; number++) {
        rm_test_sides_write(&s.ring, rm_test_sides_rows_before(number));
        rm_test_side_update_there(&there, number);
    }
    rm_test_side_poll(&there, true);
    assert_int_equal(there.report.made, count);
    assert_int_equal(there.report.drawn.dry, dry);
    rm_test_device_fine(rm_test_device);
    *bytes = rm_net_param_count(rm_trainer_net(there.trainer)) * sizeof(float);
    float *params =
        rm_test_updates_copy(there.trainer, rm_test_device, rm_trainer_params(there.trainer));
    rm_test_side_close(&there);
    rm_ring_close(&s.ring);
    return params;
}

static void order_of_threads_does_not_matter(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:3"};
    float *params[3] = {NULL};
    size_t bytes;
    (void)state;
    if (!rm_test_emulated())
        skip();
    for (int i = 0; i < 3; i += (int)rm_test_effort(1, 2)) {
        rm_test_emulated_order(orders[i]);
        params[i] = train(RM_ALGORITHM_IQN, 20, 0, &bytes);
        assert_memory_equal(params[i], params[0], bytes);
    }
    rm_test_emulated_order(NULL);
    for (int i = 0; i < 3; i++)
        free(params[i]);
}

/* Updates whose draws found nothing never were: what follows has their numbers, and their bits. */
static void dry_updates_are_taken_back(void **state)
{
    static const uint64_t dry[] = {1, 3, 20};
    size_t bytes;
    (void)state;
    float *expected = train(RM_ALGORITHM_DQN, 10, 0, &bytes);
    for (size_t i = 0; i < sizeof dry / sizeof *dry; i++) {
        float *params = train(RM_ALGORITHM_DQN, 10, dry[i], &bytes);
        assert_memory_equal(params, expected, bytes);
        free(params);
    }
    free(expected);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, rm_test_backends_open, rm_test_backends_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(updates_are_the_cpus),
        TEST(rainbow_updates_are_the_cpus),
        TEST(watched_updates_are_the_cpus),
        TEST(rows_cross_once),
        TEST(order_of_threads_does_not_matter),
        TEST(dry_updates_are_taken_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
