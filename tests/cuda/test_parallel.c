/* One agent on several devices, on the emulation: replicas equal to the bit, updates those of one
 * device, errors of samples in their order, and what becomes of all when one fails. */
#include "learner/algo/parallel.h"
#include "shm/base/state.h"
#include "tests/support/batch.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/several.h"
#include "tests/support/states.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES = 4, UPDATES = 50 };

static struct rm_backend *device[DEVICES];

/* --- equal ----------------------------------------------------------------------------------- */

static void assert_same_bits(struct rm_trainer *t, uint32_t count)
{
    const size_t bytes = rm_net_param_count(rm_trainer_net(t)) * sizeof(float);
    float *params = rm_test_updates_copy(t, device[0], rm_trainer_params(t));
    float *target = rm_test_updates_copy(t, device[0], t->all[0]->target);
    for (uint32_t i = 1; i < count; i++) {
        struct rm_trainer *r = &t->all[i]->trainer;
        float *x = rm_test_updates_copy(r, device[i], rm_trainer_params(r));
        float *y = rm_test_updates_copy(r, device[i], r->all[0]->target);
        assert_memory_equal(x, params, bytes);
        assert_memory_equal(y, target, bytes);
        free(x);
        free(y);
    }
    free(params);
    free(target);
}

static void assert_close_to_one(struct rm_trainer *t, struct rm_trainer *one)
{
    const size_t n = rm_net_param_count(rm_trainer_net(t));
    float *x = rm_test_updates_copy(t, device[0], rm_trainer_params(t));
    float *y = rm_test_updates_copy(one, rm_test_alone, rm_trainer_params(one));
    const double apart = rm_test_updates_apart(x, y, n);
    if (!(apart < 1e-4))
        fail_msg("%g apart from one device's", apart);
    free(x);
    free(y);
}

/* Compares the errors that both trainers have reported, batch by batch. */
static uint64_t compare_errors(struct rm_trainer *t, struct rm_trainer *one)
{
    uint64_t batches = 0;
    for (struct rm_batch *x; (x = rm_trainer_learned(t)); batches++) {
        const struct rm_batch *y = rm_trainer_learned(one);
        assert_non_null(y);
        for (uint32_t i = 0; i < x->size; i++)
            if (!(fabsf(x->error[i] - y->error[i]) <= 2e-3f * (0.1f + y->error[i])))
                fail_msg("row %u: error %g, one device's is %g", i, (double)x->error[i],
                         (double)y->error[i]);
    }
    assert_null(rm_trainer_learned(one));
    return batches;
}

static void run_beside_one(const struct rm_experiment *e, uint32_t count)
{
    rm_test_several_join(device, count);
    struct rm_trainer *t = rm_test_updates_trainer(e, device[0]);
    struct rm_trainer *one = rm_test_updates_trainer(e, rm_test_alone);
    struct rm_trainer_report x = {0}, y = {0};
    uint64_t batches = 0;
    for (uint64_t number = 1; number <= rm_test_effort(UPDATES, 10); number++) {
        struct rm_test_updates u;
        rm_trainer_batch(t);
        rm_trainer_batch(one);
        batches += compare_errors(t, one);
        rm_test_updates_draw(&u, e, number);
        assert_true(rm_trainer_update(t, &u.batch, number, NULL).late);
        rm_trainer_update(one, &u.batch, number, NULL);
    }
    assert_true(rm_trainer_report(t, true, &x) && rm_trainer_report(one, true, &y));
    batches += compare_errors(t, one);
    assert_int_equal(
        batches, e->priority.kind == RM_PRIORITY_PROPORTIONAL ? rm_test_effort(UPDATES, 10) : 0);
    assert_int_equal(x.made, y.made);
    assert_float_equal(x.mean.loss, y.mean.loss, 1e-3 * fabs(y.mean.loss));
    assert_float_equal(x.mean.q_mean, y.mean.q_mean, 1e-3 * (0.1 + fabs(y.mean.q_mean)));
    assert_float_equal(x.mean.grad_norm, y.mean.grad_norm, 1e-3 * y.mean.grad_norm);
    assert_same_bits(t, count);
    assert_close_to_one(t, one);
    rm_test_device_fine(device[0]);
    rm_trainer_destroy(t);
    rm_trainer_destroy(one);
    rm_test_several_close(device, count);
}

/* Noise, dropout and fractions are those of the whole batch: all of them are one device's. */
static void updates_are_one_devices(void **state)
{
    (void)state;
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++)
        for (uint32_t count = 2; count <= DEVICES; count += 2) {
            struct rm_experiment e = rm_test_updates_experiment((enum rm_algorithm)name, false);
            e.algorithm.target.tau = 0.1;
            if (count == 2 || name == RM_ALGORITHM_IQN)
                run_beside_one(&e, count);
        }
}

/* Policy, critics, their target networks, all moments and the temperature. */
static void states_are_the_firsts(struct rm_trainer *t, uint32_t count)
{
    struct rm_state *s[2];
    struct rm_error error = {""};
    for (uint32_t i = 1; i < count; i++) {
        for (uint32_t k = 0; k < 2; k++) {
            assert_int_equal(rm_state_create(&s[k], &error), 0);
            rm_trainer_state(&t->all[k * i]->trainer, s[k]);
            assert_int_equal(rm_state_end(s[k], &error), 0);
        }
        rm_test_states_same(s[0], s[1]);
        rm_state_destroy(s[0]);
        rm_state_destroy(s[1]);
    }
}

static struct rm_trainer *sac_of(const struct rm_experiment *e, struct rm_backend *b)
{
    const struct rm_trainer_spec spec = {
        .experiment = e,
        .backend = b,
        .shape = {.inputs = RM_UPDATES_INPUTS,
                  .actions = RM_UPDATES_ACTIONS,
                  .outputs_per_action = 1,
                  .head = RM_HEAD_LOGITS},
        .name = "policy",
        .masks = true,
    };
    return rm_test_updates_make(&spec);
}

/* Legal actions of both states are those of each device's rows. */
static void sac_is_one_devices(void **state)
{
    struct rm_experiment e = rm_test_updates_settings(RM_ALGORITHM_SAC);
    struct rm_trainer_report x = {0}, y = {0};
    (void)state;
    e.algorithm.target.tau = 0.1;
    e.algorithm.temperature = 0.2;
    e.algorithm.tune_temperature = true;
    e.algorithm.target_entropy_ratio = 0.7;
    e.optimizer.grad_clip = 0.5;
    rm_test_updates_layer(&e, RM_LAYER_LINEAR, 16, 0);
    rm_test_updates_layer(&e, RM_LAYER_TANH, 0, 0);
    rm_test_updates_layer(&e, RM_LAYER_DROPOUT, 0, 0);
    rm_test_several_join(device, 2);
    struct rm_trainer *t = sac_of(&e, device[0]), *one = sac_of(&e, rm_test_alone);
    for (uint64_t number = 1; number <= rm_test_effort(UPDATES, 10); number++) {
        struct rm_test_updates u;
        uint8_t mask[sizeof u.next_mask];
        rm_test_updates_draw(&u, &e, number);
        for (size_t i = 0; i < sizeof mask; i++)
            mask[i] = u.next_mask[sizeof mask - 1 - i];
        u.batch.mask = mask;
        rm_trainer_batch(t);
        rm_trainer_batch(one);
        rm_trainer_update(t, &u.batch, number, NULL);
        rm_trainer_update(one, &u.batch, number, NULL);
    }
    assert_true(rm_trainer_report(t, true, &x) && rm_trainer_report(one, true, &y));
    assert_int_equal(x.made, y.made);
    assert_float_equal(x.mean.loss, y.mean.loss, 1e-3 * (0.1 + fabs(y.mean.loss)));
    assert_float_equal(x.mean.entropy, y.mean.entropy, 1e-4);
    assert_float_equal(x.mean.temperature, y.mean.temperature, 1e-5);
    states_are_the_firsts(t, 2);
    assert_close_to_one(t, one);
    rm_test_device_fine(device[0]);
    rm_trainer_destroy(t);
    rm_trainer_destroy(one);
    rm_test_several_close(device, 2);
}

static void errors_of_samples_come_in_order(void **state)
{
    (void)state;
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++) {
        struct rm_experiment e = rm_test_updates_experiment((enum rm_algorithm)name, true);
        e.priority.kind = RM_PRIORITY_PROPORTIONAL;
        e.algorithm.target.update = RM_TARGET_HARD;
        e.algorithm.target.interval = 7;
        run_beside_one(&e, 2);
    }
}

static void gradients_are_one_devices(void **state)
{
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_IQN, false);
    struct rm_test_updates u;
    (void)state;
    rm_test_several_join(device, 2);
    struct rm_trainer *t = rm_test_updates_trainer(&e, device[0]);
    struct rm_trainer *one = rm_test_updates_trainer(&e, rm_test_alone);
    rm_test_updates_draw(&u, &e, 5);
    const struct rm_trainer_result x = rm_trainer_gradient(t, &u.batch, 5, NULL);
    const struct rm_trainer_result y = rm_trainer_gradient(one, &u.batch, 5, NULL);
    assert_float_equal(x.loss, y.loss, 1e-5 * fabs(y.loss));
    assert_float_equal(x.grad_norm, y.grad_norm, 1e-5 * y.grad_norm);
    assert_float_equal(x.q_mean, y.q_mean, 1e-5);
    rm_trainer_destroy(t);
    rm_trainer_destroy(one);
    rm_test_several_close(device, 2);
}

/* --- promises -------------------------------------------------------------------------------- */

static void updates_allocate_nothing_and_wait_for_nothing(void **state)
{
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_IQN, false);
    struct rm_device_counts before[2], after;
    (void)state;
    rm_test_several_join(device, 2);
    struct rm_trainer *t = rm_test_updates_trainer(&e, device[0]);
    for (uint64_t number = 1; number <= 12; number++) {
        struct rm_test_updates u;
        rm_test_updates_draw(&u, &e, number);
        rm_trainer_batch(t); /* this is where it may wait */
        for (int i = 0; i < 2; i++)
            device[i]->device->counts(device[i], &before[i]);
        rm_trainer_update(t, &u.batch, number, NULL);
        for (int i = 0; i < 2; i++) {
            device[i]->device->counts(device[i], &after);
            assert_int_equal(after.allocations, before[i].allocations);
            assert_int_equal(after.synchronizations, before[i].synchronizations);
            assert_int_equal(after.launches, before[i].launches);
            assert_int_equal(after.graph_launches, before[i].graph_launches + 1);
        }
    }
    rm_test_device_fine(device[0]);
    rm_trainer_destroy(t);
    rm_test_several_close(device, 2);
}

/* A loss that is infinite in one device's rows alone leaves finite gradients (they are clipped by
 * Huber's threshold): all skip that update all the same. */
static void all_skip_what_one_would(void **state)
{
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_DQN, true);
    struct rm_trainer_report report;
    (void)state;
    rm_test_several_join(device, 2);
    struct rm_trainer *t = rm_test_updates_trainer(&e, device[0]);
    for (uint64_t number = 1; number <= 6; number++) {
        struct rm_test_updates u;
        rm_test_updates_draw(&u, &e, number);
        if (number % 2 == 0)
            u.ret[number < 4 ? 0 : RM_UPDATES_BATCH - 1] = INFINITY;
        rm_trainer_batch(t);
        rm_trainer_update(t, &u.batch, number, NULL);
    }
    assert_true(rm_trainer_report(t, true, &report));
    assert_int_equal(report.made, 3);
    assert_int_equal(report.skipped, 3);
    assert_int_equal(report.skipped_in_row, 1);
    assert_same_bits(t, 2);
    rm_trainer_destroy(t);
    rm_test_several_close(device, 2);
}

static void what_is_put_back_is_put_back_on_all(void **state)
{
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_DQN, false);
    struct rm_test_updates u;
    (void)state;
    rm_test_several_join(device, 2);
    struct rm_trainer *t = rm_test_updates_trainer(&e, device[0]);
    struct rm_trainer *first = &t->all[0]->trainer;
    const size_t n = rm_net_param_count(rm_trainer_net(t));
    float *other = calloc(n, sizeof *other);
    assert_non_null(other);
    for (size_t i = 0; i < n; i++)
        other[i] = 0.01f * (float)(i % 17);
    rm_trainer_load(first, other); /* as the guard changes the first one's alone */
    rm_trainer_restored(t);
    assert_same_bits(t, 2);
    for (uint64_t number = 1; number <= 5; number++) {
        rm_test_updates_draw(&u, &e, number);
        rm_trainer_update(t, &u.batch, number, NULL);
    }
    assert_same_bits(t, 2);
    rm_trainer_load(t, other);
    assert_same_bits(t, 2);
    free(other);
    rm_trainer_destroy(t);
    rm_test_several_close(device, 2);
}

static void order_of_threads_does_not_matter(void **state)
{
    static const char *const orders[] = {"forward", "reverse"};
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_IQN, false);
    float *params[2];
    size_t n = 0;
    (void)state;
    for (int o = 0; o < 2; o++) {
        rm_test_emulated_order(orders[o]);
        rm_test_several_join(device, 2);
        struct rm_trainer *t = rm_test_updates_trainer(&e, device[0]);
        for (uint64_t number = 1; number <= 5; number++) {
            struct rm_test_updates u;
            rm_test_updates_draw(&u, &e, number);
            rm_trainer_update(t, &u.batch, number, NULL);
        }
        params[o] = rm_test_updates_copy(t, device[0], rm_trainer_params(t));
        n = rm_net_param_count(rm_trainer_net(t));
        rm_trainer_destroy(t);
        rm_test_several_close(device, 2);
    }
    rm_test_emulated_order("forward");
    assert_memory_equal(params[0], params[1], n * sizeof(float));
    free(params[0]);
    free(params[1]);
}

/* As nvidia-smi numbers them, so that "cuda:1" means the same to both. */
static void devices_are_numbered_by_their_bus(void **state)
{
    const struct rm_backend_plugin *plugin;
    struct rm_device_info info[DEVICES];
    struct rm_error error = {""};
    uint32_t n = 0;
    (void)state;
    rm_test_several_need_emulation();
    assert_int_equal(rm_plugin_open(&plugin, &error), 0);
    assert_int_equal(plugin->devices(info, DEVICES, &n, &error), 0);
    assert_int_equal(n, DEVICES);
    for (uint32_t i = 0; i < DEVICES; i++) {
        char end[4];
        snprintf(end, sizeof end, "%02x", i);
        assert_string_equal(info[i].uuid + strlen(info[i].uuid) - 2, end);
    }
}

/* --- what goes wrong ------------------------------------------------------------------------- */

static void a_missing_library_is_said(void **state)
{
    struct rm_error error = {""};
    (void)state;
    rm_test_several_need_emulation();
    for (uint32_t i = 0; i < 2; i++)
        device[i] = rm_test_several_open(i);
    setenv("RINGMASTER_NCCL", "/nowhere/libnccl.so.2", 1);
    assert_int_equal(device[0]->device->collective->join(device, 2, &error), -ELIBACC);
    assert_non_null(strstr(error.text, "learner.devices"));
    assert_non_null(strstr(error.text, "/nowhere/libnccl.so.2"));
    setenv("RINGMASTER_NCCL", rm_test_build_path("lib/emulated/ringmaster-cuda.so"), 1);
    assert_int_equal(device[0]->device->collective->join(device, 2, &error), -EPROTO);
    assert_non_null(strstr(error.text, "not NCCL, or too old"));
    setenv("RINGMASTER_NCCL", rm_test_build_path("lib/emulated/libnccl.so.2"), 1);
    assert_int_equal(device[0]->device->collective->join(device, 1, &error), -EINVAL);
    assert_false(device[0]->ops->failed(device[0], &error));
    rm_test_several_close(device, 2);
}

static void errors_of_making_are_said(void **state)
{
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_DQN, true);
    const struct rm_trainer_spec spec = {
        .experiment = &e,
        .shape = {.inputs = RM_UPDATES_INPUTS,
                  .actions = RM_UPDATES_ACTIONS,
                  .outputs_per_action = 1},
        .name = "policy",
        .masks = true,
    };
    static const char *const faults[] = {"ncclAllReduce:5@1", "ncclAllReduce:5@4",
                                         "ncclGroupEnd:1@1", "ncclGroupEnd:1@2"};
    (void)state;
    rm_test_several_need_emulation();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct rm_trainer_spec s = spec;
        struct rm_trainer *t;
        struct rm_error error = {""};
        rm_test_several_join(device, 2);
        rm_test_emulated_fault(faults[i]);
        s.backend = device[0];
        assert_int_equal(rm_trainer_create(&t, &s, &error), -EIO);
        assert_non_null(strstr(error.text, strchr(faults[i], ':')[1] == '5'
                                               ? "NCCL error 5, invalid usage"
                                               : "NCCL error 1, unhandled cuda error"));
        assert_non_null(strstr(error.text, "GPU-"));
        assert_true(device[1]->ops->failed(device[1], NULL));
        rm_test_emulated_fault("");
        assert_string_equal(rm_test_emulated_complaint(), "");
        rm_test_several_close(device, 2);
    }
    struct rm_error error = {""};
    rm_test_emulated_fault("ncclCommInitAll:2@1");
    for (uint32_t i = 0; i < 2; i++)
        device[i] = rm_test_several_open(i);
    assert_int_equal(device[0]->device->collective->join(device, 2, &error), -EIO);
    assert_non_null(strstr(error.text, "NCCL error 2"));
    assert_non_null(strstr(error.text, "ncclCommInitAll"));
    rm_test_several_close(device, 2);
}

/* A query that says "not ready", of any member's stream or of an event, leaves that as the
 * runtime's last error. The next launch does not report it. */
static void waiting_leaves_no_error(void **state)
{
    enum { N = 64 };
    struct rm_error error = {""};
    struct rm_queue_mark *mark;
    float *x[2], host[N] = {0};
    (void)state;
    rm_test_several_need_emulation();
    rm_test_several_join(device, 2);
    for (size_t i = 0; i < 2; i++)
        assert_non_null(x[i] = device[i]->ops->alloc(device[i], N));
    const struct rm_backend_ops *d = device[0]->ops;
    assert_int_equal(d->mark_create(device[0], &mark, &error), 0);
    for (int round = 0; round < 3; round++) {
        if (round == 0) { /* the event alone is not ready */
            d->copy_in(device[0], RM_QUEUE_IN, x[0], host, sizeof host);
            d->mark(device[0], RM_QUEUE_IN, mark);
            d->wait(device[0], mark);
        } else { /* the other member's stream is not, or both are not */
            for (int i = 0; i < round; i++)
                device[1 - i]->ops->fill(device[1 - i], 1.0f, N, x[1 - i]);
            d->copy_in(device[0], RM_QUEUE_IN, x[0], host, sizeof host);
            d->finish(device[0]);
        }
        device[0]->ops->fill(device[0], 2.0f, N, x[0]);
        rm_test_device_fine(device[0]);
    }
    d->mark_destroy(device[0], mark);
    for (size_t i = 0; i < 2; i++)
        device[i]->ops->release(device[i], x[i]);
    rm_test_several_close(device, 2);
}

/* One that NCCL tells later ends everybody's work: nothing is waited for any more. */
static void one_that_fails_ends_all(void **state)
{
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_DQN, true);
    struct rm_test_updates u;
    struct rm_trainer_report report;
    struct rm_error error = {""};
    struct rm_device_counts before, after;
    (void)state;
    rm_test_several_need_emulation();
    rm_test_several_join(device, 2);
    struct rm_trainer *t = rm_test_updates_trainer(&e, device[0]);
    rm_test_updates_draw(&u, &e, 1);
    rm_trainer_update(t, &u.batch, 1, NULL);
    assert_false(device[0]->ops->failed(device[0], &error));
    assert_same_bits(t, 2);                              /* collectives ran: the graphs have them */
    rm_test_emulated_fault("ncclCommGetAsyncError:6@2"); /* the second device's */
    assert_true(device[0]->ops->failed(device[0], &error));
    assert_int_equal(device[0]->device->collective->failing_device(device[0]), 1);
    assert_non_null(strstr(error.text, "NCCL error 6"));
    assert_non_null(strstr(error.text, "cuda:1"));
    device[0]->device->counts(device[0], &before);
    for (uint64_t number = 2; number <= 8; number++)
        rm_trainer_update(t, &u.batch, number, NULL);
    rm_trainer_report(t, true, &report);
    device[0]->device->counts(device[0], &after);
    assert_int_equal(after.graph_launches, before.graph_launches);
    rm_trainer_destroy(t);
    assert_string_equal(rm_test_emulated_complaint(), ""); /* graphs were let go before */
    rm_test_several_close(device, 2);
}

static void batches_that_cannot_be_divided_are_refused(void **state)
{
    struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_DQN, true);
    const struct rm_trainer_spec spec = {.experiment = &e,
                                         .shape = {.inputs = RM_UPDATES_INPUTS,
                                                   .actions = RM_UPDATES_ACTIONS,
                                                   .outputs_per_action = 1},
                                         .name = "policy"};
    struct rm_trainer_spec s = spec;
    struct rm_trainer *t;
    struct rm_error error = {""};
    (void)state;
    rm_test_several_join(device, 3);
    s.backend = device[0];
    assert_int_equal(rm_trainer_create(&t, &s, &error), -EINVAL);
    assert_non_null(strstr(error.text, "not a multiple of 3 devices"));
    rm_test_several_close(device, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rm_test_several_begin, rm_test_several_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_missing_library_is_said), /* before it is there, which lasts */
        TEST(devices_are_numbered_by_their_bus),
        TEST(updates_are_one_devices),
        TEST(sac_is_one_devices),
        TEST(errors_of_samples_come_in_order),
        TEST(gradients_are_one_devices),
        TEST(updates_allocate_nothing_and_wait_for_nothing),
        TEST(all_skip_what_one_would),
        TEST(what_is_put_back_is_put_back_on_all),
        TEST(order_of_threads_does_not_matter),
        TEST(batches_that_cannot_be_divided_are_refused),
        TEST(errors_of_making_are_said),
        TEST(waiting_leaves_no_error),
        TEST(one_that_fails_ends_all),
    };
    rm_test_several_use(DEVICES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
