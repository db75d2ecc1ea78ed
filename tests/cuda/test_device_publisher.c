/* Publishing from a device: copies begun behind updates, written when they arrive, the latest wins,
 * what has exploded is kept back. And the guard, whose copies stay on the device. */
#include "learner/algo/guard.h"
#include "learner/publisher.h"
#include "shm/atomic.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 1000 };

struct bench {
    struct rm_backend *device;
    struct rm_weights weights;
    struct rm_board_policy counters;
    struct rm_publisher publisher;
    float *params;  /* the device's */
    uint64_t *made; /* the device's */
    float *staged;  /* pinned: what goes to params and made without waiting */
    size_t used;    /* of these, in update() */
    float seen[COUNT];
    struct rm_weights_stamp stamp;
};

/* On COMPUTE, in turn: all parameters become x. */
static void become(struct bench *b, float x)
{
    for (size_t i = 0; i < COUNT; i++)
        b->staged[i] = x;
    b->device->ops->upload(b->device, b->params, b->staged, COUNT);
}

/* As updates do, without waiting: they become x, and `made` of them are counted. */
static void update(struct bench *b, float x, uint64_t made)
{
    b->device->ops->fill(b->device, x, COUNT, b->params);
    float *at = b->staged + b->used;
    memcpy(at, &made, sizeof made);
    b->device->ops->copy_in(b->device, RM_QUEUE_COMPUTE, b->made, at, sizeof made);
    b->used += sizeof made / sizeof(float);
}

static int open_bench_on(struct rm_backend *backend, void **state)
{
    static struct bench b;
    struct rm_error error = {""};
    memset(&b, 0, sizeof b);
    b.device = backend;
    b.params = b.device->ops->alloc(b.device, COUNT);
    b.made = b.device->ops->alloc_bytes(b.device, sizeof *b.made, &error);
    b.staged = b.device->ops->alloc_host(b.device, COUNT * sizeof(float), &error);
    assert_true(b.params && b.made && b.staged);
    assert_int_equal(rm_weights_create(&b.weights, 0, COUNT, COUNT, &error), 0);
    if (rm_publisher_open(&b.publisher, &b.weights, b.device, &b.counters, &error))
        fail_msg("%s", error.text);
    rm_publisher_go_late(&b.publisher, b.made, 100);
    b.publisher.interval = 10;
    become(&b, 1);
    rm_publisher_publish(&b.publisher, b.params, 100, 0);
    *state = &b;
    return 0;
}

static int open_bench(void **state)
{
    return open_bench_on(rm_test_device_open(), state);
}

static int open_bench_on_cpu(void **state)
{
    struct rm_backend *cpu;
    struct rm_error error;
    assert_int_equal(rm_backend_cpu_create(&cpu, 1, "auto", &error), 0);
    return open_bench_on(cpu, state);
}

static int close_bench(void **state)
{
    struct bench *b = *state;
    rm_test_device_fine(b->device);
    rm_publisher_close(&b->publisher);
    b->device->ops->release(b->device, b->params);
    b->device->ops->release(b->device, b->made);
    b->device->ops->release_host(b->device, b->staged);
    rm_weights_close(&b->weights);
    rm_backend_destroy(b->device);
    return 0;
}

static void assert_published(struct bench *b, uint64_t version, uint64_t updates, float x)
{
    assert_int_equal(rm_weights_read(&b->weights, b->seen, COUNT, &b->stamp, NULL), 1);
    assert_int_equal(b->stamp.version, version);
    assert_int_equal(b->stamp.updates, updates);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(b->seen[i] == x);
}

static void an_offer_is_written_when_it_arrives(void **state)
{
    struct bench *b = *state;
    struct rm_device_counts before, after;
    assert_published(b, 1, 100, 1);
    update(b, 2, 10);
    b->device->device->counts(b->device, &before);
    assert_true(rm_publisher_offer(&b->publisher, b->params, 110, 0));
    b->device->device->counts(b->device, &after);
    assert_int_equal(after.synchronizations, before.synchronizations);
    assert_int_equal(after.allocations, before.allocations);
    assert_published(b, 1, 100, 1); /* on its way */
    update(b, 3, 11);               /* which does not change it */
    b->device->ops->finish(b->device);
    assert_false(rm_publisher_poll(&b->publisher));
    assert_published(b, 2, 110, 2);
    assert_true(fabs(RM_PEEK(&b->counters.publish_change) - 1) < 1e-6);
    assert_false(rm_publisher_offer(&b->publisher, b->params, 119, 0)); /* not due */
}

/* Offers that come while a copy is under way are one: the last of them. */
static void the_latest_wins(void **state)
{
    struct bench *b = *state;
    uint64_t begun = 0;
    bool waits = false;
    for (uint64_t i = 1; i <= 6; i++) {
        update(b, (float)(i + 1), 10 * i);
        waits = !rm_publisher_offer(&b->publisher, b->params, 100 + 10 * i, 0);
        begun += !waits;
        assert_true(i > 1 || !waits);
    }
    assert_true(begun < 6 || !rm_test_emulated());
    rm_publisher_end(&b->publisher);
    assert_int_equal(b->counters.published, 1 + begun + waits);
    assert_published(b, 1 + begun + waits, 160, 7);
    rm_publisher_end(&b->publisher); /* nothing is left */
    assert_int_equal(b->counters.published, 1 + begun + waits);
}

static void what_changed_too_little_or_too_much_stays(void **state)
{
    struct bench *b = *state;
    b->publisher.min_change = 0.1;
    update(b, 1.05f, 10);
    rm_publisher_offer(&b->publisher, b->params, 110, 0);
    rm_publisher_end(&b->publisher);
    assert_int_equal(b->counters.publish_skipped, 1);
    assert_published(b, 1, 100, 1);
    update(b, 1.2f, 20);
    rm_publisher_offer(&b->publisher, b->params, 120, 0);
    rm_publisher_end(&b->publisher);
    assert_published(b, 2, 120, 1.2f);
    update(b, NAN, 30);
    rm_publisher_offer(&b->publisher, b->params, 130, 0);
    rm_publisher_end(&b->publisher);
    update(b, 1e30f, 40);
    rm_publisher_offer(&b->publisher, b->params, 140, 0);
    rm_publisher_end(&b->publisher);
    assert_int_equal(b->counters.publish_skipped, 3);
    assert_published(b, 2, 120, 1.2f);
    update(b, 1.5f, 50);
    rm_publisher_publish(&b->publisher, b->params, 150, 7); /* at once, in a round */
    assert_published(b, 3, 150, 1.5f);
    assert_int_equal(b->stamp.round, 7);
}

/* --- the guard ------------------------------------------------------------------------------- */

struct judged {
    struct rm_trainer *trainer;
    struct rm_guard *guard;
    struct rm_board_policy counters;
    uint64_t updates;
    struct rm_error error;
};

static int judge(struct judged *j, uint64_t launched)
{
    struct rm_trainer_report r;
    if (!rm_trainer_report(j->trainer, true, &r))
        return RM_GUARD_GOOD;
    const struct rm_guard_report report = {
        .made = r.made,
        .skipped = r.skipped,
        .skipped_in_row = r.skipped_in_row,
        .through = r.through,
        .launched = launched,
        .updates = j->updates += r.made,
        .loss = r.last_loss,
        .grad_norm = r.last_grad_norm,
    };
    const int verdict = rm_guard_judge_late(j->guard, &report, &j->error);
    if (verdict == RM_GUARD_BACK)
        rm_trainer_restored(j->trainer);
    return verdict;
}

static int train(struct judged *j, const struct rm_experiment *e, uint64_t number, bool poisoned)
{
    struct rm_test_updates u;
    rm_test_updates_draw(&u, e, number);
    for (uint32_t i = 0; poisoned && i < RM_UPDATES_BATCH; i++)
        u.ret[i] = NAN;
    rm_trainer_update(j->trainer, &u.batch, number, NULL);
    return judge(j, number);
}

/* Parameters and target as they are now, for the caller to free. */
static float *both(const struct judged *j, struct rm_backend *device, size_t n)
{
    float *copy = malloc(2 * n * sizeof *copy);
    assert_non_null(copy);
    device->ops->download(device, copy, rm_trainer_params(j->trainer), n);
    device->ops->download(device, copy + n, j->trainer->all[0]->target, n);
    return copy;
}

static void the_guard_goes_back_on_the_device(void **state)
{
    struct bench *b = *state;
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_DQN, true);
    struct judged j = {.trainer = rm_test_updates_trainer(&e, b->device)};
    const size_t n = rm_net_param_count(rm_trainer_net(j.trainer));
    uint64_t number = 1;
    assert_int_equal(rm_guard_create(&j.guard, &e, b->device, &j.counters, "a", &j.error), 0);
    rm_trainer_guarded(j.trainer, j.guard);
    assert_int_equal(rm_guard_ready(j.guard, &j.error), 0);
    for (; number <= RM_GUARD_INTERVAL; number++)
        assert_int_equal(train(&j, &e, number, false), RM_GUARD_GOOD);
    float *good = both(&j, b->device, n);
    for (; number <= RM_GUARD_INTERVAL + 5; number++)
        assert_int_equal(train(&j, &e, number, false), RM_GUARD_GOOD);
    for (uint32_t i = 1; i < e.debug.finite_patience; i++) {
        float *before = both(&j, b->device, n);
        assert_int_equal(train(&j, &e, number++, true), RM_GUARD_SKIPPED);
        float *after = both(&j, b->device, n);
        assert_memory_equal(after, before, 2 * n * sizeof *after);
        free(before);
        free(after);
    }
    assert_int_equal(train(&j, &e, number++, true), RM_GUARD_BACK);
    float *back = both(&j, b->device, n);
    assert_memory_equal(back, good, 2 * n * sizeof *back);
    assert_int_equal(j.counters.updates_skipped, e.debug.finite_patience);
    assert_int_equal(j.counters.rollbacks, 1);
    assert_int_equal(train(&j, &e, number++, false), RM_GUARD_GOOD);
    for (uint32_t times = 0; times < 2 * e.debug.finite_patience; times++)
        train(&j, &e, number++, true);
    assert_non_null(strstr(j.error.text, "debug.check_finite")); /* it gives up */
    free(good);
    free(back);
    rm_trainer_destroy(j.trainer);
    rm_guard_destroy(j.guard);
}

#define ON_CPU(name)                                                                               \
    {                                                                                              \
#name "_on_the_cpu", name, open_bench_on_cpu, close_bench, NULL                            \
    }
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_offer_is_written_when_it_arrives),
        TEST(the_latest_wins),
        TEST(what_changed_too_little_or_too_much_stays),
        ON_CPU(what_changed_too_little_or_too_much_stays),
        TEST(the_guard_goes_back_on_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
