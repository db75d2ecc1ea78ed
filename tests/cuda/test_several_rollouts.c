/* One actor-critic learner on several devices, on the emulation: replicas equal to the bit, updates
 * those of one device, and what becomes of all when one fails. */
#include "learner/algo/actor_critic_private.h"
#include "learner/algo/guard.h"
#include "shm/base/state.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/rollout_learner.h"
#include "tests/support/several.h"
#include "tests/support/states.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PLAIN           RM_TEST_CORRIDOR_LAYERS
#define RECURRENT(cell) RM_TEST_CORRIDOR_RECURRENT(cell)

enum { DEVICES = 4 };

static struct rm_test_corridor t;
static struct rm_backend *device[DEVICES];

/* --- equal ----------------------------------------------------------------------------------- */

/* Parameters, moments, steps, value head and states of all are the first one's, to the bit. */
static void assert_same_bits(struct rm_test_learner *l, uint32_t count)
{
    struct rm_state *first = rm_test_learner_state(l);
    for (uint32_t i = 1; i < count; i++) {
        struct rm_actor_critic *ac = rm_actor_critic_replica(l->ac, i);
        struct rm_state *other = rm_test_actor_critic_state(ac);
        const struct rm_update_figures *f = rm_optimizer_figures(ac->u.optimizer);
        struct rm_update_figures figures[2];
        device[i]->ops->download(device[i], (float *)(void *)&figures[1],
                                 (const float *)(const void *)f, sizeof *f / sizeof(float));
        f = rm_optimizer_figures(l->ac->u.optimizer);
        device[0]->ops->download(device[0], (float *)(void *)&figures[0],
                                 (const float *)(const void *)f, sizeof *f / sizeof(float));
        for (size_t k = 0; k < rm_state_count(first); k++) {
            const struct rm_state_part *x = rm_state_at(first, k), *y = rm_state_at(other, k);
            /* What the host keeps is the first one's alone. */
            const bool there = strstr(x->name, "params") || strstr(x->name, "optimizer") ||
                               strstr(x->name, "value_state");
            if (there && (x->bytes != y->bytes || memcmp(x->data, y->data, x->bytes) != 0))
                fail_msg("%s of device %u differs", x->name, i);
        }
        assert_true(figures[0].steps == figures[1].steps);
        assert_memory_equal(figures[0].now_sums, figures[1].now_sums, sizeof figures[0].now_sums);
        assert_true(figures[0].last_loss == figures[1].last_loss ||
                    (isnan(figures[0].last_loss) && isnan(figures[1].last_loss)));
        rm_state_destroy(other);
    }
    rm_state_destroy(first);
}

/* `rollouts` of the same numbers on `count` devices and on one; at least `least` updates. */
static void learn_alike(uint32_t count, const char *algorithm, const char *network,
                        uint32_t rollouts, uint64_t least)
{
    struct rm_test_learner d, one;
    rm_test_several_join(device, count);
    rm_test_corridor_open(&t, algorithm, network);
    rm_test_learner_open(&d, &t, device[0]);
    rm_test_learner_open(&one, &t, rm_test_alone);
    float *before = rm_test_learner_params(&one);
    for (uint32_t i = 0; i < rm_test_effort(rollouts, 1); i++) {
        rm_test_learner_draw(&d, i);
        rm_test_learner_draw(&one, i);
        rm_test_learner_learn(&d, i);
        rm_test_learner_learn(&one, i);
        rm_test_learner_compare(&d, &one);
        assert_same_bits(&d, count);
    }
    rm_test_device_fine(device[0]);
    const size_t n = rm_net_param_count(rm_actor_critic_net(d.ac));
    float *x = rm_test_learner_params(&d), *y = rm_test_learner_params(&one);
    assert_true(rm_test_updates_apart(x, before, n) > 1e-3);
    if (!(rm_test_updates_apart(x, y, n) < 1e-4))
        fail_msg("%s, %u devices: %g apart after %llu updates", algorithm, count,
                 rm_test_updates_apart(x, y, n), (unsigned long long)d.made);
    assert_true(rm_test_effort(d.made >= least, d.made > 0));
    free(before);
    free(x);
    free(y);
    rm_test_learner_close(&d);
    rm_test_learner_close(&one);
    rm_test_corridor_close(&t);
    rm_test_several_close(device, count);
}

/* Minibatches of 14 and 15 rows or so: shares that are not even, of any number of devices. */
static void a_hundred_updates_are_one_devices(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= rm_test_effort(3, 2); count++)
        learn_alike(count,
                    "\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4, \"value_clip\": 0.2",
                    PLAIN, 7, 100);
    learn_alike(2, "\"name\": \"appo\", \"epochs\": 5, \"minibatches\": 4", PLAIN, 5, 100);
    learn_alike(3, "\"name\": \"vtrace\", \"minibatches\": 5", PLAIN, 20, 100);
}

static void what_is_of_all_rows_is_one_devices(void **state)
{
    (void)state;
    learn_alike(3,
                "\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4,"
                " \"normalize_advantages\": \"batch\"",
                PLAIN ", \"trunk\": \"separate\"", 4, 50);
    learn_alike(2,
                "\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2, \"value_head\": \"popart\"",
                PLAIN, 5, 20);
    learn_alike(2,
                "\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2, \"normalize_rewards\": true",
                PLAIN ", \"normalize_observations\": true", 5, 20);
}

static void kl_stops_all(void **state)
{
    (void)state;
    learn_alike(2, "\"name\": \"ppo\", \"epochs\": 10, \"minibatches\": 2, \"target_kl\": 0.002",
                PLAIN, 5, 10);
    learn_alike(3, "\"name\": \"ppo\", \"epochs\": 10, \"minibatches\": 2, \"target_kl\": 1e-9",
                PLAIN, 5, 10);
}

/* Lanes are shared, each whole. */
static void sequences_are_one_devices(void **state)
{
    (void)state;
    learn_alike(2, "\"name\": \"ppo\", \"epochs\": 3, \"minibatches\": 2",
                RECURRENT("gru") "\"shared\"", 4, 20);
    learn_alike(3, "\"name\": \"appo\", \"epochs\": 2, \"minibatches\": 3",
                RECURRENT("lstm") "\"separate\"", 4, 20);
}

/* Fewer samples than devices: some have none in a minibatch, and follow the others. */
static void a_device_may_be_without_a_row(void **state)
{
    struct rm_test_learner d;
    (void)state;
    rm_test_several_join(device, 4);
    rm_test_corridor_open(&t, "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2", PLAIN);
    rm_test_learner_open(&d, &t, device[0]);
    for (uint64_t number = 0; number < 3; number++) {
        const uint32_t few[] = {60, 5, 1};
        rm_test_learner_draw(&d, number);
        struct rm_rollout *r = &d.rows;
        r->samples = r->samples < few[number] ? r->samples : few[number];
        for (size_t i = r->sample[r->samples - 1] + 1; i < (size_t)r->steps * r->lanes; i++)
            r->valid[i] = 0;
        rm_test_learner_learn(&d, number);
        assert_same_bits(&d, 4);
    }
    assert_int_equal(d.made, 4 + 4 + 2);
    assert_int_equal(d.skipped, 0);
    rm_test_device_fine(device[0]);
    rm_test_learner_close(&d);
    rm_test_corridor_close(&t);
    rm_test_several_close(device, 4);
}

static void order_of_threads_changes_nothing(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:3"};
    float *first = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i += rm_test_effort(1, 2)) {
        struct rm_test_learner d;
        rm_test_emulated_order(orders[i]);
        rm_test_several_join(device, 3);
        rm_test_corridor_open(&t,
                              "\"name\": \"appo\", \"epochs\": 2, \"minibatches\": 3,"
                              " \"value_head\": \"popart\"",
                              PLAIN);
        rm_test_learner_open(&d, &t, device[0]);
        for (uint64_t number = 0; number < 3; number++) {
            rm_test_learner_draw(&d, number);
            rm_test_learner_learn(&d, number);
            assert_same_bits(&d, 3);
        }
        float *now = rm_test_learner_params(&d);
        if (first)
            assert_memory_equal(now, first,
                                rm_net_param_count(rm_actor_critic_net(d.ac)) * sizeof *now);
        else
            first = now;
        if (now != first)
            free(now);
        rm_test_learner_close(&d);
        rm_test_corridor_close(&t);
        rm_test_several_close(device, 3);
    }
    free(first);
}

/* --- promises -------------------------------------------------------------------------------- */

static void nobody_waits_and_nothing_is_allocated(void **state)
{
    struct rm_test_learner d;
    struct rm_device_counts before[2], after;
    struct rm_actor_critic_update u;
    (void)state;
    rm_test_several_join(device, 2);
    rm_test_corridor_open(&t, "\"name\": \"ppo\", \"epochs\": 4, \"minibatches\": 4", PLAIN);
    rm_test_learner_open(&d, &t, device[0]);
    rm_test_learner_draw(&d, 0);
    rm_test_learner_learn(&d, 0);
    rm_test_learner_draw(&d, 1);
    for (int i = 0; i < 2; i++)
        device[i]->device->counts(device[i], &before[i]);
    rm_actor_critic_begin(d.ac, 1, NULL);
    while (rm_actor_critic_due(d.ac))
        rm_actor_critic_step(d.ac, d.attempts + 1, 0, NULL);
    for (int i = 0; i < 2; i++) {
        device[i]->device->counts(device[i], &after);
        assert_int_equal(after.allocations, before[i].allocations);
        assert_int_equal(after.synchronizations, before[i].synchronizations);
        assert_int_equal(after.launches, before[i].launches);
        assert_int_equal(after.graph_launches, before[i].graph_launches + 2 + 16);
        assert_int_equal(after.bytes_out, before[i].bytes_out);
    }
    u = rm_actor_critic_collect(d.ac, NULL);
    for (int i = 0; i < 2; i++) {
        device[i]->device->counts(device[i], &after);
        assert_int_equal(after.synchronizations, before[i].synchronizations + 1);
    }
    assert_int_equal(u.made, 16);
    rm_test_device_fine(device[0]);
    rm_test_learner_close(&d);
    rm_test_corridor_close(&t);
    rm_test_several_close(device, 2);
}

/* A reward that is not finite in one device's rows alone: no device makes an update. */
static void all_skip_what_one_would(void **state)
{
    struct rm_test_learner d;
    (void)state;
    rm_test_several_join(device, 2);
    rm_test_corridor_open(&t,
                          "\"name\": \"ppo\", \"epochs\": 1, \"minibatches\": 1,"
                          " \"normalize_advantages\": \"off\", \"gae_lambda\": 0",
                          PLAIN);
    rm_test_learner_open(&d, &t, device[0]);
    rm_test_learner_draw(&d, 0);
    rm_test_learner_learn(&d, 0);
    struct rm_state *before = rm_test_learner_state(&d);
    rm_test_learner_draw(&d, 1);
    d.rows.reward[d.rows.sample[3] + d.rows.lanes] = INFINITY;
    rm_test_learner_learn(&d, 1);
    assert_int_equal(d.made, 1);
    assert_int_equal(d.skipped, 1);
    struct rm_state *after = rm_test_learner_state(&d);
    rm_test_states_same(before, after);
    rm_state_destroy(before);
    rm_state_destroy(after);
    assert_same_bits(&d, 2);
    rm_test_learner_draw(&d, 2);
    rm_test_learner_learn(&d, 2);
    assert_int_equal(d.made, 2);
    assert_same_bits(&d, 2);
    rm_test_learner_close(&d);
    rm_test_corridor_close(&t);
    rm_test_several_close(device, 2);
}

/* A checkpoint of two devices goes on on two to the bit, and on one like there. */
static void resumes(void **state)
{
    struct rm_test_learner d, same, one;
    struct rm_error error = {""};
    (void)state;
    rm_test_several_join(device, 2);
    rm_test_corridor_open(&t,
                          "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 3,"
                          " \"value_head\": \"popart\", \"normalize_rewards\": true",
                          PLAIN ", \"normalize_observations\": true");
    rm_test_learner_open(&d, &t, device[0]);
    for (uint64_t number = 0; number < 3; number++) {
        rm_test_learner_draw(&d, number);
        rm_test_learner_learn(&d, number);
    }
    struct rm_state *s = rm_test_learner_state(&d);
    rm_state_load(s);
    rm_test_learner_open(&same, &t, device[0]);
    rm_actor_critic_state(same.ac, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    rm_state_load(s);
    rm_test_learner_open(&one, &t, rm_test_alone);
    rm_actor_critic_state(one.ac, s);
    assert_int_equal(rm_state_end(s, &error), 0);
    rm_state_destroy(s);
    assert_same_bits(&same, 2);
    same.attempts = one.attempts = d.attempts;
    for (uint64_t number = 3; number < 5; number++) {
        struct rm_test_learner *all[] = {&d, &same, &one};
        for (size_t i = 0; i < 3; i++) {
            rm_test_learner_draw(all[i], number);
            rm_test_learner_learn(all[i], number);
        }
    }
    struct rm_state *x = rm_test_learner_state(&d), *y = rm_test_learner_state(&same);
    rm_test_states_same(x, y);
    rm_state_destroy(x);
    rm_state_destroy(y);
    assert_same_bits(&same, 2);
    float *p = rm_test_learner_params(&d), *q = rm_test_learner_params(&one);
    assert_true(rm_test_updates_apart(p, q, rm_net_param_count(rm_actor_critic_net(d.ac))) < 1e-4);
    free(p);
    free(q);
    rm_test_learner_close(&d);
    rm_test_learner_close(&same);
    rm_test_learner_close(&one);
    rm_test_corridor_close(&t);
    rm_test_several_close(device, 2);
}

/* What the guard changes on the first is then on all; and so are weights from outside. */
static void what_is_put_back_is_put_back_on_all(void **state)
{
    struct rm_test_learner d;
    struct rm_guard *guard;
    struct rm_error error = {""};
    int verdict = RM_GUARD_SKIPPED;
    (void)state;
    rm_test_several_join(device, 3);
    rm_test_corridor_open(&t,
                          "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2,"
                          " \"value_head\": \"popart\"",
                          PLAIN);
    rm_test_learner_open(&d, &t, device[0]);
    assert_int_equal(rm_guard_create(&guard, &t.session.experiment, device[0], NULL, "a", &error),
                     0);
    rm_actor_critic_guarded(d.ac, guard);
    assert_int_equal(rm_guard_ready(guard, &error), 0);
    struct rm_state *before = rm_test_learner_state(&d);
    float *first = rm_test_learner_params(&d);
    rm_test_learner_draw(&d, 0);
    rm_test_learner_learn(&d, 0);
    for (int i = 0; i < 1000 && verdict == RM_GUARD_SKIPPED; i++)
        verdict = rm_guard_judge(guard, false, NAN, NAN, 0, &error);
    assert_int_equal(verdict, RM_GUARD_BACK);
    rm_actor_critic_restored(d.ac);
    struct rm_state *after = rm_test_learner_state(&d);
    rm_test_states_same(before, after);
    assert_same_bits(&d, 3);
    rm_test_learner_draw(&d, 1);
    rm_test_learner_learn(&d, 1);
    assert_same_bits(&d, 3);
    rm_actor_critic_load(d.ac, first);
    assert_same_bits(&d, 3);
    free(first);
    rm_state_destroy(before);
    rm_state_destroy(after);
    rm_guard_destroy(guard);
    rm_test_learner_close(&d);
    rm_test_corridor_close(&t);
    rm_test_several_close(device, 3);
}

/* --- what goes wrong ------------------------------------------------------------------------- */

static void errors_of_making_are_said(void **state)
{
    static const char *const faults[] = {"ncclAllReduce:5@1", "ncclAllReduce:5@7",
                                         "ncclGroupEnd:1@1", "ncclGroupEnd:1@8"};
    (void)state;
    rm_test_several_need_emulation();
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct rm_error error = {""};
        struct rm_rollout rows;
        struct rm_actor_critic *ac;
        rm_test_several_join(device, 2);
        rm_test_corridor_open(&t, "\"name\": \"appo\"", PLAIN);
        const struct rm_rollout_spec spec = {.session = &t.session,
                                             .agent = &t.world.ops->describe(t.env)->agent[0],
                                             .backend = device[0]};
        assert_int_equal(rm_rollout_create(&rows, &spec, &error), 0);
        const struct rm_trainer_spec learner = {.experiment = &t.session.experiment,
                                                .backend = device[0],
                                                .rollout = &rows,
                                                .shape = t.session.plan.policy[0].shape,
                                                .name = "a"};
        rm_test_emulated_fault(faults[i]);
        assert_int_equal(rm_actor_critic_create(&ac, &learner, &error), -EIO);
        assert_non_null(strstr(error.text, strchr(faults[i], ':')[1] == '5'
                                               ? "NCCL error 5, invalid usage"
                                               : "NCCL error 1, unhandled cuda error"));
        assert_true(device[1]->ops->failed(device[1], NULL));
        rm_test_emulated_fault("");
        rm_rollout_destroy(&rows);
        rm_test_corridor_close(&t);
        rm_test_several_close(device, 2);
    }
}

/* One that NCCL tells of between minibatches ends everybody's work: nothing is waited for any more,
 * and it is known whose it was. */
static void one_that_fails_ends_all(void **state)
{
    struct rm_test_learner d;
    struct rm_device_counts before, after;
    struct rm_error error = {""};
    (void)state;
    rm_test_several_need_emulation();
    rm_test_several_join(device, 3);
    rm_test_corridor_open(&t, "\"name\": \"ppo\", \"epochs\": 2, \"minibatches\": 2", PLAIN);
    rm_test_learner_open(&d, &t, device[0]);
    rm_test_learner_draw(&d, 0);
    rm_actor_critic_begin(d.ac, 0, NULL);
    rm_actor_critic_step(d.ac, 1, 0, NULL);
    rm_test_emulated_fault("ncclCommGetAsyncError:6@3"); /* the third device's */
    assert_true(device[0]->ops->failed(device[0], &error));
    assert_int_equal(device[0]->device->collective->failing_device(device[0]), 2);
    assert_non_null(strstr(error.text, "NCCL error 6"));
    assert_non_null(strstr(error.text, "cuda:2"));
    device[1]->device->counts(device[1], &before);
    while (rm_actor_critic_due(d.ac))
        rm_actor_critic_step(d.ac, 2, 0, NULL);
    rm_actor_critic_collect(d.ac, NULL);
    device[1]->device->counts(device[1], &after);
    assert_int_equal(after.graph_launches, before.graph_launches);
    rm_test_learner_close(&d);
    rm_test_corridor_close(&t);
    rm_test_several_close(device, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rm_test_several_begin, rm_test_several_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_hundred_updates_are_one_devices),
        TEST(what_is_of_all_rows_is_one_devices),
        TEST(kl_stops_all),
        TEST(sequences_are_one_devices),
        TEST(a_device_may_be_without_a_row),
        TEST(order_of_threads_changes_nothing),
        TEST(nobody_waits_and_nothing_is_allocated),
        TEST(all_skip_what_one_would),
        TEST(resumes),
        TEST(what_is_put_back_is_put_back_on_all),
        TEST(errors_of_making_are_said),
        TEST(one_that_fails_ends_all),
    };
    rm_test_several_use(DEVICES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
