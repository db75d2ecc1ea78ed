/* Whole updates from a replay on a device, drawn, weighed and learned there: a hundred of them
 * beside the CPU's sampler and trainer on the same rows, and what they promise: each row crosses
 * once, nothing is allocated, nothing waits, no bit depends on the order of threads. */
#include "learner/algo/algo.h"
#include "learner/feed.h"
#include "learner/priority_tree.h"
#include "shm/base/rng.h"
#include "shm/layout.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UPDATES = 100, LANES = 4, FEATURES = 5, ACTIONS = 3, RING_ROWS = 64, SLOTS = 50, STACK = 2 };

static struct rm_error failure;
static struct rm_backend *device, *cpu;
static const struct rm_env_agent agent = {
    .dtype = RM_ENV_F32, .dims = 1, .shape = {FEATURES}, .actions = ACTIONS, .has_mask = 1};

static int open_backends(void **state)
{
    (void)state;
    device = rm_test_device_open();
    return rm_backend_cpu_create(&cpu, 1, "auto", &failure);
}

static int close_backends(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    rm_backend_destroy(cpu);
    return 0;
}

/* --- rows ------------------------------------------------------------------------------------ */

static void open_ring(struct rm_ring *ring)
{
    const struct rm_ring_spec spec = {
        .rows = RING_ROWS,
        .lanes = LANES,
        .obs_bytes = FEATURES * sizeof(float),
        .mask_bytes = ACTIONS,
        .action_words = 1,
        .columns = RM_COLUMN_MASK,
        .first_index = UINT64_MAX - 40,
    };
    if (rm_ring_create(ring, &spec, &failure))
        fail_msg("%s", failure.text);
    rm_ring_writer_open(ring);
}

/* Episodes of 5 to 8 steps, by lane, that end both ways; row `at` is drawn by its number alone. */
static void fill_row(struct rm_row *row, uint64_t at)
{
    struct rm_rng rng = rm_rng_at(21, RM_STREAM_TEST, 7, at);
    float *obs = (float *)(void *)row->obs;
    for (uint32_t i = 0; i < LANES * FEATURES; i++)
        obs[i] = 2 * rm_rng_float(&rng) - 1;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint64_t step = at % (6 + lane);
        row->flags[lane] = 0;
        if (step == 0)
            row->flags[lane] = RM_FLAG_FIRST;
        if (step == 5 + lane)
            row->flags[lane] = at / (6 + lane) % 2 ? RM_FLAG_TERMINATED : RM_FLAG_TRUNCATED;
        row->reward[lane] = 2 * rm_rng_float(&rng) - 1;
        row->action[lane] = (int32_t)rm_rng_below(&rng, ACTIONS);
        for (uint32_t a = 0; a < ACTIONS; a++)
            row->mask[lane * ACTIONS + a] = rm_rng_below(&rng, 3) > 0;
    }
    *row->generation = 1;
}

static void write_rows(struct rm_ring *ring, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct rm_row row;
        rm_ring_reserve(ring, &row);
        fill_row(&row, rm_ring_committed(ring) - ring->spec.first_index);
        rm_ring_commit(ring);
    }
}

static void write_dead(struct rm_ring *ring, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct rm_row row;
        rm_ring_reserve(ring, &row);
        fill_row(&row, 0);
        memset(row.flags, RM_FLAG_DEAD, LANES);
        rm_ring_commit(ring);
    }
}

/* --- who learns from them -------------------------------------------------------------------- */

struct side {
    struct rm_priorities tree;
    struct rm_sampler *sampler;
    struct rm_feed *feed; /* the device's; NULL: the CPU's */
    struct rm_trainer *trainer;
    struct rm_trainer_report told; /* sums over `made` */
    uint64_t ages[UPDATES + 1]; /* of all items up to each update; the device's: as far as told */
};

struct scene {
    struct rm_experiment experiment;
    struct rm_ring ring;
    struct rm_sampler_source source;
};

static void begin(struct scene *s, enum rm_algorithm name, bool plain, bool by_priority)
{
    memset(s, 0, sizeof *s);
    s->experiment = rm_test_updates_experiment(name, plain);
    s->experiment.sample.n_step = 3;
    s->experiment.sample.frame_stack = STACK;
    s->experiment.algorithm.target.tau = 0.1;
    s->experiment.priority.kind = by_priority ? RM_PRIORITY_PROPORTIONAL : RM_PRIORITY_UNIFORM;
    open_ring(&s->ring);
    s->source = (struct rm_sampler_source){&s->ring, 0, LANES};
}

static void open_trainer(struct side *side, const struct rm_experiment *e)
{
    const bool fixed = rm_algo_of(e->algorithm.name)->fixed_fractions;
    const struct rm_trainer_spec spec = {
        .experiment = e,
        .backend = side->feed ? device : cpu,
        .policy = 2,
        .shape = {.inputs = FEATURES * STACK,
                  .actions = ACTIONS,
                  .outputs_per_action = fixed ? rm_algo_quantiles(e) : 1},
        .name = "policy",
        .masks = true,
        .gather = side->feed ? rm_feed_gather(side->feed) : NULL,
        .draw = side->feed ? rm_feed_draw(side->feed) : NULL,
    };
    if (rm_trainer_create(&side->trainer, &spec, &failure))
        fail_msg("%s", failure.text);
}

static void open_side(struct side *side, const struct scene *s, bool on_device)
{
    const struct rm_experiment *e = &s->experiment;
    const struct rm_priorities_spec tree = {.slots = SLOTS, .lanes = LANES, .sources = 1};
    memset(side, 0, sizeof *side);
    if (rm_priorities_create(&side->tree, &tree, &failure))
        fail_msg("%s", failure.text);
    const struct rm_sampler_spec sampler = {
        .sources = &s->source,
        .source_count = 1,
        .agents = 1,
        .agent = &agent,
        .batch = e->sample.batch,
        .n_step = e->sample.n_step,
        .frame_stack = STACK,
        .gamma = 0.95,
        .capacity = SLOTS * LANES,
        .seed = e->seed,
        .policy = 2,
        .priorities = e->priority.kind == RM_PRIORITY_UNIFORM ? NULL : &side->tree,
        .alpha = 0.6,
        .epsilon = 1e-3,
    };
    const struct rm_feed_spec feed = {
        .backend = device, .sampler = &sampler, .kind = RM_FEED_RESIDENT, .name = "policy"};
    if (rm_sampler_create(&side->sampler, &sampler, &failure) ||
        (on_device && rm_feed_create(&side->feed, &feed, &failure)))
        fail_msg("%s", failure.text);
    rm_sampler_elsewhere(side->sampler, on_device);
    open_trainer(side, e);
}

static void close_side(struct side *side)
{
    rm_trainer_destroy(side->trainer);
    rm_feed_destroy(side->feed);
    rm_sampler_destroy(side->sampler);
    rm_priorities_close(&side->tree);
}

static double beta_of(uint64_t number)
{
    return 0.4 + 0.006 * (double)number;
}

static void update_here(struct side *side, uint64_t number)
{
    struct rm_batch *b = rm_sampler_batch(side->sampler);
    rm_sampler_window_free(side->sampler);
    rm_sampler_set_beta(side->sampler, beta_of(number));
    assert_true(rm_sampler_draw(side->sampler, number, b));
    const struct rm_trainer_result r = rm_trainer_update(side->trainer, b, number, NULL);
    assert_false(r.skipped);
    rm_sampler_learned(side->sampler, b);
    side->ages[number] = rm_sampler_counts(side->sampler).age_sum;
    side->told.made++;
    side->told.mean.loss += r.loss;
    side->told.mean.q_mean += r.q_mean;
}

static void hear(struct side *side, bool wait)
{
    struct rm_trainer_report r, *t = &side->told;
    assert_null(rm_trainer_learned(side->trainer)); /* nothing comes back of samples */
    if (!rm_trainer_report(side->trainer, wait, &r))
        return;
    t->made += r.made;
    t->skipped += r.skipped;
    t->mean.loss += (double)r.made * r.mean.loss;
    t->mean.q_mean += (double)r.made * r.mean.q_mean;
    t->drawn.rejected += r.drawn.rejected;
    t->drawn.age_sum += r.drawn.age_sum;
    t->drawn.age_count += r.drawn.age_count;
    t->drawn.dry += r.drawn.dry;
    t->through = r.through;
    if (r.through <= UPDATES)
        side->ages[r.through] = t->drawn.age_sum;
}

static void launch_there(struct side *side, struct rm_batch *b, uint64_t number)
{
    rm_sampler_window_free(side->sampler);
    rm_feed_bring(side->feed, side->sampler);
    assert_true(rm_feed_turn(side->feed, side->sampler, beta_of(number), b->turn));
    assert_true(rm_trainer_update(side->trainer, b, number, NULL).late);
}

static void update_there(struct side *side, uint64_t number)
{
    struct rm_batch *b = rm_trainer_batch(side->trainer);
    hear(side, false);
    launch_there(side, b, number);
}

/* Rows between updates: some, none, and once more than replay holds. */
static uint64_t rows_before(uint64_t number)
{
    return number == 1 ? 20 : number == 50 ? 70 : number % 4;
}

/* --- the same as on the CPU ------------------------------------------------------------------ */

static void compare_arenas(const char *what, const struct side *there, const float *x_at,
                           const struct side *here, const float *y_at, const float *before,
                           double within)
{
    const size_t n = rm_net_param_count(rm_trainer_net(here->trainer));
    float *x = rm_test_updates_copy(there->trainer, device, x_at);
    float *y = rm_test_updates_copy(here->trainer, cpu, y_at);
    assert_true(rm_test_updates_apart(y, before, n) > 1e-3); /* it has learned something */
    const double apart = rm_test_updates_apart(x, y, n);
    if (!(apart < within))
        fail_msg("%s: %g apart", what, apart);
    free(x);
    free(y);
}

/* What the device has written through, beside the host's own. */
static void compare_leaves(const struct side *there, const struct side *here)
{
    for (uint64_t i = 0; i < SLOTS * LANES; i++) {
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
static bool same_items(const struct side *there, const struct side *here)
{
    return there->ages[there->told.through] == here->ages[there->told.through];
}

/* Priorities are made of errors that are rounded otherwise on a device: a draw that falls between
 * two leaves by less than that finds the other one. It is rare, and not to be taken for a mistake;
 * from then on the two learn from other items. Returns the number of the last update. */
static uint64_t update_both(struct scene *s, struct side *there, struct side *here)
{
    uint64_t number = 0;
    while (number < UPDATES && same_items(there, here)) {
        write_rows(&s->ring, rows_before(++number));
        update_there(there, number);
        update_here(here, number);
    }
    hear(there, true);
    assert_true(same_items(there, here) || number > 10);
    return number;
}

static void compare_runs(struct scene *s)
{
    static struct side here, there;
    const bool by_priority = s->experiment.priority.kind != RM_PRIORITY_UNIFORM;
    const struct rm_trainer_settings settings = {
        .learning_rate = 1e-3, .grad_clip = 1, .target_tau = 0.1, .report = 1};
    open_side(&here, s, false);
    open_side(&there, s, true);
    rm_trainer_set(here.trainer, &settings);
    rm_trainer_set(there.trainer, &settings);
    float *before = rm_test_updates_copy(here.trainer, cpu, rm_trainer_params(here.trainer));
    const uint64_t updates = update_both(s, &there, &here);
    const bool same = same_items(&there, &here);
    rm_test_device_fine(device);
    assert_true(same || by_priority);
    assert_int_equal(there.told.made, updates);
    assert_int_equal(there.told.drawn.age_count, updates * s->experiment.sample.batch);
    const double within = same ? 1e-4 : 3e-2;
    compare_arenas("params", &there, rm_trainer_params(there.trainer), &here,
                   rm_trainer_params(here.trainer), before, within);
    compare_arenas("target", &there, rm_trainer_target(there.trainer), &here,
                   rm_trainer_target(here.trainer), before, within);
    if (same) {
        assert_int_equal(there.told.drawn.rejected, rm_sampler_counts(here.sampler).rejected);
        assert_close(there.told.mean.loss, here.told.mean.loss);
        assert_close(there.told.mean.q_mean, here.told.mean.q_mean);
    }
    if (same && by_priority)
        compare_leaves(&there, &here);
    if (!same)
        print_message("  other items from update %llu on\n", (unsigned long long)updates);
    free(before);
    close_side(&here);
    close_side(&there);
}

static void updates_are_the_cpus(void **state)
{
    (void)state;
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++)
        for (int by_priority = 0; by_priority < 2; by_priority++) {
            struct scene s;
            begin(&s, (enum rm_algorithm)name, true, by_priority);
            compare_runs(&s);
            rm_ring_close(&s.ring);
        }
}

/* Everything at once (Hessel 2018): double, dueling, noisy, quantiles, three steps, by priority. */
static void rainbow_updates_are_the_cpus(void **state)
{
    struct scene s;
    (void)state;
    begin(&s, RM_ALGORITHM_QR_DQN, false, true);
    s.experiment.algorithm.target.update = RM_TARGET_HARD;
    s.experiment.algorithm.target.interval = 7;
    compare_runs(&s);
    rm_ring_close(&s.ring);
}

static void watched_updates_are_the_cpus(void **state)
{
    struct scene s;
    (void)state;
    begin(&s, RM_ALGORITHM_IQN, true, true);
    s.experiment.debug.check_finite = RM_CHECK_FINITE_ALWAYS;
    s.experiment.debug.check_every = 1;
    compare_runs(&s);
    rm_ring_close(&s.ring);
}

/* --- promises -------------------------------------------------------------------------------- */

static struct rm_device_counts counts_now(void)
{
    struct rm_device_counts c;
    device->device->counts(device, &c);
    return c;
}

static void rows_cross_once_and_updates_wait_for_nothing(bool by_priority)
{
    struct scene s;
    struct side there;
    uint64_t told_of = 0;
    begin(&s, RM_ALGORITHM_IQN, false, by_priority);
    open_side(&there, &s, true);
    const struct rm_trainer_settings settings = {
        .learning_rate = 1e-3, .grad_clip = 1, .target_tau = 0.1, .report = 16};
    rm_trainer_set(there.trainer, &settings);
    for (uint64_t number = 1; number <= 48; number++) {
        const uint64_t rows = rows_before(number);
        struct rm_batch *b = rm_trainer_batch(there.trainer); /* where it may wait */
        hear(&there, false);
        write_rows(&s.ring, rows);
        const struct rm_device_counts before = counts_now();
        launch_there(&there, b, number);
        const struct rm_device_counts after = counts_now();
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(after.synchronizations, before.synchronizations);
        assert_int_equal(after.launches, before.launches);
        assert_int_equal(after.graph_launches, before.graph_launches + 1);
        /* Knobs and turn, each at a place of its own, and every row for the first time. */
        assert_int_equal(after.bytes_in - before.bytes_in, 2 * 256 + rows * s.ring.row_bytes);
        told_of += after.bytes_out > before.bytes_out;
    }
    assert_int_equal(told_of, 48 / 16);
    rm_test_device_fine(device);
    close_side(&there);
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
    struct scene s;
    struct side there;
    begin(&s, name, false, true);
    open_side(&there, &s, true);
    if (dry) {
        write_dead(&s.ring, 30);
        for (uint64_t number = 1; number <= dry; number++)
            update_there(&there, number);
        hear(&there, true);
        assert_int_equal(there.told.drawn.dry, dry);
        assert_int_equal(there.told.made + there.told.skipped, 0);
    } else {
        write_dead(&s.ring, 30);
    }
    for (uint64_t number = 1; number <= count; number++) {
        write_rows(&s.ring, rows_before(number));
        update_there(&there, number);
    }
    hear(&there, true);
    assert_int_equal(there.told.made, count);
    assert_int_equal(there.told.drawn.dry, dry);
    rm_test_device_fine(device);
    *bytes = rm_net_param_count(rm_trainer_net(there.trainer)) * sizeof(float);
    float *params = rm_test_updates_copy(there.trainer, device, rm_trainer_params(there.trainer));
    close_side(&there);
    rm_ring_close(&s.ring);
    return params;
}

static void order_of_threads_does_not_matter(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:3"};
    float *params[3];
    size_t bytes;
    (void)state;
    if (!rm_test_emulated())
        skip();
    for (int i = 0; i < 3; i++) {
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_backends, close_backends)

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
