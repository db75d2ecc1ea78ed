/* Worlds that several devices share, on the emulation: transitions equal the CPU's to the bit on
 * any device, replicas stay equal, and several devices learn the same from all rows as one device.
 */
#include "learner/algo/actor_critic.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/rollout_learner.h"
#include "tests/support/several.h"
#include "tests/support/states.h"
#include "tests/support/unit.h"
#include "tests/support/updates.h"
#include "tests/support/world_learner.h"
#include "tests/support/world_twin.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICES = 3 };

static struct rm_session session;
static struct rm_backend *device[DEVICES];

static float *params_of(const struct rm_actor_critic *ac, struct rm_backend *b)
{
    return rm_test_device_fetch(b, rm_actor_critic_params(ac),
                                session.plan.policy[0].param_count * sizeof(float));
}

/* Parameters, moments and steps of all. */
static void assert_same_bits(struct rm_test_world_learner *r)
{
    struct rm_state *first = rm_test_actor_critic_state(r->ac);
    for (uint32_t i = 1; i < r->worlds.count; i++) {
        struct rm_state *other = rm_test_actor_critic_state(rm_actor_critic_replica(r->ac, i));
        for (size_t k = 0; k < rm_state_count(first); k++) {
            const struct rm_state_part *x = rm_state_at(first, k), *y = rm_state_at(other, k);
            if ((strstr(x->name, "params") || strstr(x->name, "optimizer")) &&
                memcmp(x->data, y->data, x->bytes) != 0)
                fail_msg("%s of device %u differs", x->name, i);
        }
        rm_state_destroy(other);
    }
    rm_state_destroy(first);
}

/* A column of a rollout on one device against the same worlds' columns of another. */
static void same_column(const struct rm_native_part *part, const struct rm_native_part *whole,
                        const void *x, const void *y, size_t each, uint32_t rows, const char *name)
{
    const size_t lanes = part->on.worlds, all = whole->on.worlds, first = part->on.first_world;
    char *own = rm_test_device_fetch(part->backend, x, rows * lanes * each);
    char *theirs = rm_test_device_fetch(whole->backend, y, rows * all * each);
    for (uint32_t t = 0; t < rows; t++)
        if (memcmp(own + t * lanes * each, theirs + (t * all + first) * each, lanes * each) != 0)
            fail_msg("row %u: %s of worlds from %zu on differ", t, name, first);
    free(own);
    free(theirs);
}

static void same_rollout(const struct rm_native_part *part, const struct rm_native_part *whole)
{
    const struct rm_rollout *x = &part->rows, *y = &whole->rows;
    same_column(part, whole, x->x, y->x, x->inputs * sizeof(float), x->steps + 1, "observations");
    same_column(part, whole, x->action, y->action, sizeof(int32_t), x->steps, "actions");
    same_column(part, whole, x->logp, y->logp, sizeof(float), x->steps, "probabilities");
    same_column(part, whole, x->reward, y->reward, sizeof(float), x->steps + 1, "rewards");
    same_column(part, whole, x->flags, y->flags, 1, x->steps + 1, "flags");
}

/* The same weights act alike in a world whichever device steps it, and shares need not be even. */
static void a_rollout_is_one_devices(void **state)
{
    static const char *const worlds[] = {"cartpole", "goodhart"};
    (void)state;
    for (size_t w = 0; w < 2; w++) {
        struct rm_test_world_learner r, one;
        rm_test_several_join(device, DEVICES);
        rm_test_world_session(&session, worlds[w], "\"max_steps\": 15", 10, 40);
        rm_test_world_learner_open(&r, &session, device[0]);
        rm_test_world_learner_open(&one, &session, rm_test_alone);
        assert_int_equal(r.worlds.count, DEVICES);
        rm_native_worlds_make(&r.worlds);
        rm_native_worlds_make(&one.worlds);
        for (uint32_t i = 0; i < DEVICES; i++) {
            assert_true(r.worlds.part[i].on.worlds == (i == 2 ? 4 : 3));
            same_rollout(&r.worlds.part[i], &one.worlds.part[0]);
        }
        rm_test_device_fine(device[0]);
        rm_test_world_learner_close(&r);
        rm_test_world_learner_close(&one);
        rm_session_close(&session);
        rm_test_several_close(device, DEVICES);
    }
}

static void transitions_are_the_cpus(void **state)
{
    struct rm_test_world_learner r;
    struct rm_test_twin twins[DEVICES];
    uint32_t ended = 0;
    (void)state;
    rm_test_several_join(device, DEVICES);
    rm_test_world_session(&session, "goodhart", "\"max_steps\": 20", 11, 48);
    rm_test_world_learner_open(&r, &session, device[0]);
    for (uint32_t i = 0; i < DEVICES; i++)
        rm_test_twin_open(&twins[i], &session, (uint32_t)r.worlds.part[i].on.first_world,
                          r.worlds.part[i].on.worlds);
    for (int turn = 0; turn < 3; turn++) {
        rm_test_world_learner_turn(&r);
        for (uint32_t i = 0; i < DEVICES; i++)
            ended += rm_test_twin_follow(&twins[i], &r.worlds.part[i]);
        assert_same_bits(&r);
    }
    assert_true(ended > 60);
    for (uint32_t i = 0; i < DEVICES; i++)
        rm_test_twin_close(&twins[i]);
    rm_test_device_fine(device[0]);
    rm_test_world_learner_close(&r);
    rm_session_close(&session);
    rm_test_several_close(device, DEVICES);
}

/* Where all rows are one minibatch it is one device's, and so are its moments and the returns'. */
static void learning_of_all_rows_is_one_devices(void **state)
{
    static const char *const algorithms[] = {
        "\"epochs\": 3, \"minibatches\": 1",
        "\"epochs\": 3, \"minibatches\": 1, \"value_head\": \"popart\"",
        ("\"epochs\": 2, \"minibatches\": 1, \"value_head\": \"popart\","
         " \"popart_deviation\": \"averaged\", \"normalize_advantages\": \"batch\""),
        "\"epochs\": 8, \"minibatches\": 1, \"normalize_advantages\": \"off\"",
    };
    (void)state;
    for (size_t k = 0; k < sizeof algorithms / sizeof *algorithms; k++) {
        struct rm_test_world_learner r, one;
        rm_test_several_join(device, DEVICES);
        rm_test_world_session_by(&session, algorithms[k], "cartpole", "\"max_steps\": 9", 10, 24);
        rm_test_world_learner_open(&r, &session, device[0]);
        rm_test_world_learner_open(&one, &session, rm_test_alone);
        const size_t n = session.plan.policy[0].param_count;
        float *before = params_of(one.ac, rm_test_alone);
        for (int turn = 0; turn < (int)rm_test_effort(4, 2); turn++) {
            rm_test_world_learner_turn(&r);
            rm_test_world_learner_turn(&one);
            assert_same_bits(&r);
            const struct rm_actor_critic_figures f = rm_actor_critic_figures(r.ac),
                                                 g = rm_actor_critic_figures(one.ac);
            assert_float_equal(f.policy_loss, g.policy_loss, 1e-5);
            assert_float_equal(f.value_loss, g.value_loss, 1e-5 * (1 + g.value_loss));
            assert_float_equal(f.entropy, g.entropy, 1e-5);
            assert_float_equal(f.explained_variance, g.explained_variance, 1e-4);
            assert_float_equal(f.value_mean, g.value_mean, 1e-5 * (1 + g.value_mean));
            assert_float_equal(f.value_deviation, g.value_deviation, 1e-5 * g.value_deviation);
        }
        float *x = params_of(r.ac, device[0]), *y = params_of(one.ac, rm_test_alone);
        assert_true(rm_test_updates_apart(x, before, n) > 1e-3);
        if (!(rm_test_updates_apart(x, y, n) < 1e-4))
            fail_msg("%s: %g apart", algorithms[k], rm_test_updates_apart(x, y, n));
        free(before);
        free(x);
        free(y);
        rm_test_device_fine(device[0]);
        rm_test_world_learner_close(&r);
        rm_test_world_learner_close(&one);
        rm_session_close(&session);
        rm_test_several_close(device, DEVICES);
    }
}

/* As many minibatches as the device with the fewest samples has samples. */
static void few_samples_are_shared(void **state)
{
    struct rm_test_world_learner r;
    struct rm_actor_critic_update u;
    (void)state;
    rm_test_several_join(device, 2);
    /* Every other row is an episode's last: 1 and 2 worlds have 2 and 4 samples in 4 rows. */
    rm_test_world_session_by(&session, "\"epochs\": 2, \"minibatches\": 3", "cartpole",
                             "\"max_steps\": 1", 3, 4);
    rm_test_world_learner_open(&r, &session, device[0]);
    rm_native_worlds_make(&r.worlds);
    rm_actor_critic_begin(r.ac, 0, NULL);
    while (rm_actor_critic_due(r.ac))
        rm_actor_critic_step(r.ac, 1, 0, NULL);
    u = rm_actor_critic_collect(r.ac, NULL);
    assert_int_equal(u.made, 2 * 2);
    assert_int_equal(u.skipped, 0);
    assert_int_equal(u.samples, 2 * 6);
    assert_same_bits(&r);
    rm_test_device_fine(device[0]);
    rm_test_world_learner_close(&r);
    rm_session_close(&session);
    rm_test_several_close(device, 2);
}

static void nobody_waits_and_nothing_is_allocated(void **state)
{
    struct rm_test_world_learner r;
    struct rm_device_counts before[2], after;
    (void)state;
    rm_test_several_join(device, 2);
    rm_test_world_session(&session, "goodhart", "", 6, 16);
    rm_test_world_learner_open(&r, &session, device[0]);
    rm_test_world_learner_turn(&r);
    for (uint32_t i = 0; i < 2; i++)
        device[i]->device->counts(device[i], &before[i]);
    rm_native_worlds_make(&r.worlds);
    rm_actor_critic_begin(r.ac, r.number++, NULL);
    while (rm_actor_critic_due(r.ac))
        rm_actor_critic_step(r.ac, r.attempts + 1, 0, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        device[i]->device->counts(device[i], &after);
        assert_int_equal(after.synchronizations, before[i].synchronizations);
        assert_int_equal(after.allocations, before[i].allocations);
        assert_true(after.bytes_in - before[i].bytes_in < 2000);
        assert_int_equal(after.bytes_out - before[i].bytes_out, sizeof(struct rm_device_stage));
        assert_int_equal(after.graph_launches - before[i].graph_launches, 16 + 2 + 6);
    }
    rm_test_device_fine(device[0]);
    rm_test_world_learner_close(&r);
    rm_session_close(&session);
    rm_test_several_close(device, 2);
}

static void load(struct rm_test_world_learner *to, struct rm_state *s,
                 const struct rm_test_world_learner *from)
{
    struct rm_error error = {""};
    rm_state_load(s);
    rm_native_worlds_state(&to->worlds, s);
    rm_actor_critic_state(to->ac, s);
    if (rm_state_end(s, &error))
        fail_msg("%s", error.text);
    to->attempts = from->attempts;
    to->number = from->number;
}

static void same_states(struct rm_test_world_learner *a, struct rm_test_world_learner *b)
{
    struct rm_state *x = rm_test_world_learner_state(a), *y = rm_test_world_learner_state(b);
    rm_test_states_same(x, y);
    rm_state_destroy(x);
    rm_state_destroy(y);
}

/* On as many devices it goes on to the bit; on one, in the same worlds. */
static void a_checkpoint_goes_on_on_any_number(void **state)
{
    struct rm_test_world_learner a, b, one;
    (void)state;
    rm_test_several_join(device, DEVICES);
    rm_test_world_session(&session, "goodhart", "\"max_steps\": 20", 7, 24);
    rm_test_world_learner_open(&a, &session, device[0]);
    rm_test_world_learner_turn(&a);
    rm_test_world_learner_turn(&a);
    struct rm_state *s = rm_test_world_learner_state(&a);
    rm_test_world_learner_open(&b, &session, device[0]);
    rm_test_world_learner_open(&one, &session, rm_test_alone);
    load(&b, s, &a);
    load(&one, s, &a);
    rm_state_destroy(s);
    assert_same_bits(&b);
    same_states(&a, &b);
    same_states(&a, &one);
    rm_test_world_learner_turn(&a);
    rm_test_world_learner_turn(&b);
    rm_native_worlds_make(&one.worlds);
    for (uint32_t i = 0; i < DEVICES; i++)
        same_rollout(&a.worlds.part[i], &one.worlds.part[0]);
    same_states(&a, &b);
    rm_test_device_fine(device[0]);
    rm_test_world_learner_close(&a);
    rm_test_world_learner_close(&b);
    rm_test_world_learner_close(&one);
    rm_session_close(&session);
    rm_test_several_close(device, DEVICES);
}

static void order_of_threads_changes_nothing(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:5"};
    struct rm_state *first = NULL;
    (void)state;
    rm_test_world_session(&session, "cartpole", "\"max_steps\": 12", 8, 20);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i += rm_test_effort(1, 2)) {
        struct rm_test_world_learner r;
        rm_test_emulated_order(orders[i]);
        rm_test_several_join(device, 2);
        rm_test_world_learner_open(&r, &session, device[0]);
        rm_test_world_learner_turn(&r);
        rm_test_world_learner_turn(&r);
        struct rm_state *now = rm_test_world_learner_state(&r);
        if (first)
            rm_test_states_same(first, now);
        else
            first = now;
        if (now != first)
            rm_state_destroy(now);
        rm_test_world_learner_close(&r);
        rm_test_several_close(device, 2);
    }
    rm_state_destroy(first);
    rm_session_close(&session);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rm_test_several_begin, rm_test_several_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_rollout_is_one_devices),
        TEST(transitions_are_the_cpus),
        TEST(learning_of_all_rows_is_one_devices),
        TEST(few_samples_are_shared),
        TEST(nobody_waits_and_nothing_is_allocated),
        TEST(a_checkpoint_goes_on_on_any_number),
        TEST(order_of_threads_changes_nothing),
    };
    rm_test_several_use(DEVICES);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
