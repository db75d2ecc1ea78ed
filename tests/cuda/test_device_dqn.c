/* Whole updates of the value-based algorithms on a device: a hundred of them beside the CPU's, and
 * what they promise: no allocation, no waiting, no bit by the order of threads. */
#include "tests/support/backends.h"
#include "tests/support/beside.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UPDATES = 100 };

/* --- the same as on the CPU ------------------------------------------------------------------ */

static void assert_close(const char *what, double x, double y, double within)
{
    if (!(fabs(x - y) <= within * (1e-3 + fabs(y))))
        fail_msg("%s: %.9g on the device, %.9g on the CPU", what, x, y);
}

static void compare_runs(const struct rm_experiment *e)
{
    static struct rm_test_beside p;
    struct rm_test_updates u;
    rm_test_beside_open(&p, rm_test_updates_trainer_spec(e, NULL));
    const size_t n = rm_net_param_count(rm_trainer_net(p.here));
    const float *params = rm_trainer_params(p.here), *target = p.here->all[0]->target;
    float *before = rm_test_updates_copy(p.here, rm_test_cpu, params);
    for (uint64_t number = 1; number <= rm_test_effort(UPDATES, 12); number++) {
        rm_test_updates_draw(&u, e, number);
        rm_test_beside_update(&p, &u.batch, number);
    }
    rm_test_beside_end(&p, e->priority.kind == RM_PRIORITY_PROPORTIONAL);
    assert_true(rm_test_updates_apart(params, before, n) > 1e-3); /* it has learned something */
    assert_true(rm_test_updates_apart(target, before, n) > 1e-3);
    rm_test_beside_compare(&p, "params", rm_trainer_params(p.there), params);
    rm_test_beside_compare(&p, "target", p.there->all[0]->target, target);
    free(before);
    rm_test_beside_close(&p);
}

static void updates_are_the_cpus(void **state)
{
    (void)state;
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++)
        for (int plain = 0; plain < 2; plain++) {
            struct rm_experiment e = rm_test_updates_experiment((enum rm_algorithm)name, plain);
            e.algorithm.target.tau = 0.1;
            compare_runs(&e);
        }
}

static void prioritised_updates_are_the_cpus(void **state)
{
    (void)state;
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++) {
        struct rm_experiment e = rm_test_updates_experiment((enum rm_algorithm)name, false);
        e.priority.kind = RM_PRIORITY_PROPORTIONAL;
        e.algorithm.target.update = RM_TARGET_HARD;
        e.algorithm.target.interval = 7;
        compare_runs(&e);
    }
}

static void other_forms_are_the_cpus(void **state)
{
    (void)state;
    struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_IQN, false);
    e.algorithm.form = RM_FORM_SORREL_MP;
    e.algorithm.double_q = false;
    e.optimizer.grad_clip = 0;
    e.algorithm.target.tau = 0.05;
    compare_runs(&e);
    e = rm_test_updates_experiment(RM_ALGORITHM_QR_DQN, true);
    e.algorithm.form = RM_FORM_SORREL_SEQ;
    e.algorithm.target.interval = 5;
    e.optimizer.name = RM_OPTIMIZER_RMSPROP;
    e.optimizer.epsilon = 1e-3;
    e.optimizer.beta2 = 0.95;
    compare_runs(&e);
    e = rm_test_updates_experiment(RM_ALGORITHM_DQN, true);
    e.algorithm.target.tau = 0.1;
    e.optimizer.name = RM_OPTIMIZER_MUON;
    e.optimizer.momentum = 0.9;
    compare_runs(&e);
}

/* Moments of observations are the host's, and the target network follows them too. */
static void normalised_observations_are_the_cpus(void **state)
{
    (void)state;
    for (int hard = 0; hard < 2; hard++) {
        struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_DQN, false);
        e.network.normalize_observations = true;
        e.network.observation_clip = 5;
        e.algorithm.target.tau = 0.1;
        e.algorithm.target.update = hard ? RM_TARGET_HARD : RM_TARGET_SOFT;
        e.algorithm.target.interval = hard ? 5 : 0;
        compare_runs(&e);
    }
}

static void watched_updates_are_the_cpus(void **state)
{
    (void)state;
    struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_IQN, false);
    e.debug.check_finite = RM_CHECK_FINITE_ALWAYS;
    e.debug.check_every = 1;
    e.algorithm.target.tau = 0.1;
    compare_runs(&e);
}

/* --- promises -------------------------------------------------------------------------------- */

static void train(struct rm_trainer *t, const struct rm_experiment *e, uint64_t from, uint64_t to)
{
    struct rm_test_updates u;
    for (uint64_t number = from; number <= to; number++) {
        rm_test_updates_draw(&u, e, number);
        rm_trainer_batch(t);
        while (rm_trainer_learned(t))
            ;
        rm_trainer_update(t, &u.batch, number, NULL);
    }
}

static void updates_allocate_nothing_and_wait_for_nothing(void **state)
{
    struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_IQN, false);
    struct rm_device_counts before, after;
    struct rm_test_updates u;
    (void)state;
    e.priority.kind = RM_PRIORITY_PROPORTIONAL;
    struct rm_trainer *t = rm_test_updates_trainer(&e, rm_test_device);
    for (uint64_t number = 1; number <= 20; number++) {
        rm_test_updates_draw(&u, &e, number);
        rm_trainer_batch(t); /* this is where it may wait: three are under way */
        rm_test_device->device->counts(rm_test_device, &before);
        rm_trainer_update(t, &u.batch, number, NULL);
        rm_test_device->device->counts(rm_test_device, &after);
        assert_int_equal(after.allocations, before.allocations);
        assert_int_equal(after.synchronizations, before.synchronizations);
        assert_int_equal(after.launches, before.launches);
        assert_int_equal(after.graph_launches, before.graph_launches + 1);
        assert_true(after.bytes_in >= before.bytes_in + sizeof u.obs + sizeof u.next_obs);
    }
    rm_test_device_fine(rm_test_device);
    rm_trainer_destroy(t);
}

static void first_three_batches_need_no_waiting(void **state)
{
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_DQN, false);
    struct rm_trainer *t = rm_test_updates_trainer(&e, rm_test_device);
    struct rm_device_counts before, after;
    struct rm_batch *batches[RM_TRAINER_DEPTH];
    (void)state;
    rm_test_device->device->counts(rm_test_device, &before);
    for (uint64_t i = 0; i < RM_TRAINER_DEPTH; i++) {
        struct rm_test_updates u;
        batches[i] = rm_trainer_batch(t);
        for (uint64_t j = 0; j < i; j++)
            assert_ptr_not_equal(batches[i]->obs, batches[j]->obs);
        rm_test_updates_draw(&u, &e, i + 1);
        rm_trainer_update(t, &u.batch, i + 1, NULL);
    }
    rm_test_device->device->counts(rm_test_device, &after);
    assert_int_equal(after.synchronizations, before.synchronizations);
    assert_ptr_equal(rm_trainer_batch(t), batches[0]);
    rm_trainer_destroy(t);
}

/* Created, it is what it is on the CPU, to the bit: running an update to warm up left no trace. */
static void warming_up_leaves_no_trace(void **state)
{
    (void)state;
    for (int name = RM_ALGORITHM_DQN; name <= RM_ALGORITHM_IQN; name++) {
        const struct rm_experiment e = rm_test_updates_experiment((enum rm_algorithm)name, false);
        struct rm_trainer *t = rm_test_updates_trainer(&e, rm_test_device);
        struct rm_trainer *reference = rm_test_updates_trainer(&e, rm_test_cpu);
        const size_t bytes = rm_net_param_count(rm_trainer_net(t)) * sizeof(float);
        struct rm_trainer_report report;
        float *x = rm_test_updates_copy(t, rm_test_device, rm_trainer_params(t));
        float *target = rm_test_updates_copy(t, rm_test_device, t->all[0]->target);
        assert_memory_equal(x, rm_trainer_params(reference), bytes);
        assert_memory_equal(target, reference->all[0]->target, bytes);
        assert_false(rm_trainer_report(t, true, &report));
        free(x);
        free(target);
        rm_trainer_destroy(t);
        rm_trainer_destroy(reference);
    }
}

static void order_of_threads_does_not_matter(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:3"};
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_IQN, false);
    float *params[3];
    size_t bytes = 0;
    (void)state;
    if (!rm_test_emulated())
        skip();
    for (int i = 0; i < 3; i++) {
        rm_test_emulated_order(orders[i]);
        struct rm_trainer *t = rm_test_updates_trainer(&e, rm_test_device);
        train(t, &e, 1, 10);
        bytes = rm_net_param_count(rm_trainer_net(t)) * sizeof(float);
        params[i] = rm_test_updates_copy(t, rm_test_device, rm_trainer_params(t));
        rm_trainer_destroy(t);
        assert_memory_equal(params[i], params[0], bytes);
    }
    rm_test_emulated_order(NULL);
    for (int i = 0; i < 3; i++)
        free(params[i]);
}

/* The gradient alone changes nothing, and is the CPU's. */
static void gradients_are_the_cpus(void **state)
{
    const struct rm_experiment e = rm_test_updates_experiment(RM_ALGORITHM_IQN, false);
    struct rm_trainer *t = rm_test_updates_trainer(&e, rm_test_device);
    struct rm_trainer *reference = rm_test_updates_trainer(&e, rm_test_cpu);
    const size_t n = rm_net_param_count(rm_trainer_net(t));
    struct rm_test_updates u;
    (void)state;
    rm_test_updates_draw(&u, &e, 5);
    const struct rm_trainer_result x = rm_trainer_gradient(t, &u.batch, 5, NULL);
    const struct rm_trainer_result y = rm_trainer_gradient(reference, &u.batch, 5, NULL);
    float *grads = rm_test_updates_copy(t, rm_test_device, t->all[0]->grads);
    float *params = rm_test_updates_copy(t, rm_test_device, rm_trainer_params(t));
    assert_close("loss", x.loss, y.loss, 1e-5);
    assert_close("norm", x.grad_norm, y.grad_norm, 1e-5);
    assert_close("q", x.q_mean, y.q_mean, 1e-4);
    assert_true(rm_test_updates_apart(grads, reference->all[0]->grads, n) < 1e-5);
    assert_memory_equal(params, rm_trainer_params(reference), n * sizeof *params);
    free(grads);
    free(params);
    rm_trainer_destroy(t);
    rm_trainer_destroy(reference);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, rm_test_backends_open, rm_test_backends_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gradients_are_the_cpus),
        TEST(warming_up_leaves_no_trace),
        TEST(updates_are_the_cpus),
        TEST(prioritised_updates_are_the_cpus),
        TEST(other_forms_are_the_cpus),
        TEST(normalised_observations_are_the_cpus),
        TEST(watched_updates_are_the_cpus),
        TEST(updates_allocate_nothing_and_wait_for_nothing),
        TEST(first_three_batches_need_no_waiting),
        TEST(order_of_threads_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
