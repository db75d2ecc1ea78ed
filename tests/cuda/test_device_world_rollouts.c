/* Rollouts made by worlds on a device: linked and ordered as they should be, without a wait or an
 * allocation; and what a checkpoint has of such worlds. */
#include "learner/rollout_rows.h"
#include "shm/layout.h"
#include "tests/support/emulated.h"
#include "tests/support/states.h"
#include "tests/support/unit.h"
#include "tests/support/world_learner.h"

#include <stdlib.h>
#include <string.h>

static struct rm_backend *device;
static struct rm_session session;

static int open_device(void **state)
{
    (void)state;
    device = rm_test_device_open();
    return 0;
}

static int close_device(void **state)
{
    (void)state;
    rm_backend_destroy(device);
    return 0;
}

/* --- rollouts -------------------------------------------------------------------------------- */

/* Samples, discounts and counts by rollout_rows.h's rules; orders that are permutations of the
 * samples, of which no two are alike. */
static void rollouts_are_linked_and_ordered(void **state)
{
    struct rm_test_world_learner r;
    (void)state;
    rm_test_world_session(&session, "cartpole", "\"max_steps\": 30", 19, 50);
    rm_test_world_learner_open(&r, &session, device);
    uint32_t *before = NULL;
    for (int turn = 0; turn < 3; turn++) {
        const struct rm_rollout *rows = r.worlds.rows[0];
        const size_t n = (size_t)rows->steps * rows->lanes;
        rm_native_worlds_make(&r.worlds);
        uint8_t *flags = rm_test_device_fetch(device, rows->flags, n + rows->lanes);
        float *valid = rm_test_device_fetch(device, rows->valid, n * 4),
              *discount = rm_test_device_fetch(device, rows->discount, n * 4);
        uint32_t *sample = rm_test_device_fetch(device, rows->sample, n * 4);
        uint32_t *order = rm_test_device_fetch(device, r.worlds.part[0].orders.order, 2 * n * 4);
        struct rm_rollout_passes *passes =
            rm_test_device_fetch(device, r.worlds.part[0].orders.passes, sizeof *passes);
        uint32_t samples = 0, answers = 0;
        for (size_t i = 0; i < n; i++) {
            const uint8_t now = flags[i], next = flags[i + rows->lanes];
            const bool ends = now & (RM_FLAG_TERMINATED | RM_FLAG_TRUNCATED);
            const bool is = !ends && !(next & RM_FLAG_FIRST);
            answers += !ends;
            assert_true(valid[i] == (is ? 1.0f : 0.0f));
            assert_true(discount[i] == (is && !(next & RM_FLAG_TERMINATED) ? rows->gamma : 0.0f));
            if (is)
                assert_int_equal(sample[samples++], i);
        }
        assert_true(samples > 0 && samples < n);
        assert_int_equal(r.worlds.part[0].results->samples, samples);
        assert_int_equal(r.worlds.part[0].results->answers, answers);
        assert_int_equal(passes->samples, samples);
        assert_int_equal(passes->entries, samples);
        assert_int_equal(passes->parts, 3);
        for (int pass = 0; pass < 2; pass++) {
            uint8_t *met = calloc(n ? n : 1, 1);
            uint32_t moved = 0;
            for (uint32_t i = 0; i < samples; i++) {
                const uint32_t row = order[pass * n + i];
                assert_true(row < n && valid[row] > 0 && !met[row]);
                met[row] = 1;
                moved += row != sample[i];
            }
            assert_true(moved > samples * 9 / 10);
            free(met);
        }
        assert_memory_not_equal(order, order + n, samples * 4);
        if (before)
            assert_memory_not_equal(order, before, samples * 4);
        free(before);
        before = order;
        free(flags);
        free(valid);
        free(discount);
        free(sample);
        free(passes);
    }
    free(before);
    rm_test_device_fine(device);
    rm_test_world_learner_close(&r);
    rm_session_close(&session);
}

/* Fewer samples than minibatches: each is one, and what is launched beyond them changes nothing. */
static void few_samples_are_minibatches_each(void **state)
{
    struct rm_test_world_learner r;
    struct rm_actor_critic_update u;
    (void)state;
    rm_test_world_session(&session, "cartpole", "\"max_steps\": 1", 2,
                          2); /* every other row is an episode's last */
    rm_test_world_learner_open(&r, &session, device);
    rm_native_worlds_make(&r.worlds);
    rm_actor_critic_begin(r.ac, 0, NULL);
    uint32_t launched = 0;
    for (; rm_actor_critic_due(r.ac); launched++)
        rm_actor_critic_step(r.ac, 1, 0, NULL);
    u = rm_actor_critic_collect(r.ac, NULL);
    assert_int_equal(r.worlds.part[0].results->samples, 2);
    assert_int_equal(launched, 6);
    assert_int_equal(u.made, 4);
    assert_int_equal(u.samples, 4);
    rm_test_device_fine(device);
    rm_test_world_learner_close(&r);
    rm_session_close(&session);
}

static void nobody_waits_and_nothing_is_allocated(void **state)
{
    struct rm_test_world_learner r;
    struct rm_device_counts before, after;
    (void)state;
    rm_test_world_session(&session, "goodhart", "", 6, 16);
    rm_test_world_learner_open(&r, &session, device);
    rm_test_world_learner_turn(&r);
    device->device->counts(device, &before);
    rm_native_worlds_make(&r.worlds);
    rm_actor_critic_begin(r.ac, r.number++, NULL);
    while (rm_actor_critic_due(r.ac))
        rm_actor_critic_step(r.ac, r.attempts + 1, 0, NULL);
    device->device->counts(device, &after);
    assert_int_equal(after.synchronizations, before.synchronizations);
    assert_int_equal(after.allocations, before.allocations);
    assert_true(after.bytes_in - before.bytes_in < 2000); /* rates of the updates */
    assert_int_equal(after.bytes_out - before.bytes_out, sizeof(struct rm_device_stage));
    assert_int_equal(after.graph_launches - before.graph_launches, 16 + 2 + 6);
    rm_test_device_fine(device);
    rm_test_world_learner_close(&r);
    rm_session_close(&session);
}

/* --- state ----------------------------------------------------------------------------------- */

static void same_states(struct rm_test_world_learner *a, struct rm_test_world_learner *b)
{
    struct rm_state *x = rm_test_world_learner_state(a), *y = rm_test_world_learner_state(b);
    rm_test_states_same(x, y);
    rm_state_destroy(x);
    rm_state_destroy(y);
}

/* Loaded into another, it goes on as if it had never gone. */
static void resumes_to_the_bit(void **state)
{
    static const char *const worlds[] = {"cartpole", "goodhart"};
    (void)state;
    for (size_t w = 0; w < 2; w++) {
        struct rm_test_world_learner a, b;
        struct rm_error error = {""};
        rm_test_world_session(&session, worlds[w], "\"max_steps\": 20", 7, 24);
        rm_test_world_learner_open(&a, &session, device);
        rm_test_world_learner_turn(&a);
        rm_test_world_learner_turn(&a);
        struct rm_state *s = rm_test_world_learner_state(&a);
        rm_test_world_learner_open(&b, &session, device);
        rm_state_load(s);
        rm_native_worlds_state(&b.worlds, s);
        rm_actor_critic_state(b.ac, s);
        if (rm_state_end(s, &error))
            fail_msg("%s", error.text);
        rm_state_destroy(s);
        b.attempts = a.attempts;
        b.number = a.number;
        same_states(&a, &b);
        for (int i = 0; i < 2; i++) {
            rm_test_world_learner_turn(&a);
            rm_test_world_learner_turn(&b);
            same_states(&a, &b);
        }
        rm_test_device_fine(device);
        rm_test_world_learner_close(&a);
        rm_test_world_learner_close(&b);
        rm_session_close(&session);
    }
}

/* Leaves `byte` in memory that small parts of a state are made of. */
static void litter(int byte)
{
    void *made[256];
    void *(*volatile fill)(void *, int, size_t) = memset; /* before a free(): not left out */
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        made[i] = malloc(20);
        assert_non_null(made[i]);
        fill(made[i], byte, 20);
    }
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        free(made[i]);
}

/* Unwritten memory differs between two runs, and a state with unwritten memory would too. */
static void what_is_saved_was_written(void **state)
{
    struct rm_test_world_learner a;
    struct rm_state *saved[2];
    (void)state;
    rm_test_world_session(&session, "cartpole", "", 19, 5); /* flags of 19 bytes: no whole words */
    rm_test_world_learner_open(&a, &session, device);
    rm_test_world_learner_turn(&a);
    for (int i = 0; i < 2; i++) {
        litter(i ? 0x11 : 0xe7);
        saved[i] = rm_test_world_learner_state(&a);
    }
    rm_test_states_same(saved[0], saved[1]);
    for (int i = 0; i < 2; i++)
        rm_state_destroy(saved[i]);
    rm_test_world_learner_close(&a);
    rm_session_close(&session);
}

/* What no world can be in is refused. */
static void damaged_states_are_refused(void **state)
{
    struct rm_test_world_learner a;
    struct rm_error error = {""};
    (void)state;
    rm_test_world_session(&session, "goodhart", "", 3, 8);
    rm_test_world_learner_open(&a, &session, device);
    struct rm_state *s = rm_test_world_learner_state(&a);
    for (size_t i = 0; i < rm_state_count(s); i++) {
        const struct rm_state_part *p = rm_state_at(s, i);
        if (strcmp(p->name, "worlds.worlds") == 0)
            memset(p->data, 0xee, 64);
    }
    rm_state_load(s);
    rm_native_worlds_state(&a.worlds, s);
    assert_true(rm_state_end(s, &error) < 0);
    assert_non_null(strstr(error.text, "world 0"));
    rm_state_destroy(s);
    rm_test_world_learner_close(&a);
    rm_session_close(&session);
}

static void order_of_threads_changes_nothing(void **state)
{
    static const char *const orders[] = {"forward", "reverse", "random:5"};
    struct rm_test_world_learner runs[sizeof orders / sizeof *orders];
    (void)state;
    rm_test_world_session(&session, "goodhart", "\"max_steps\": 12", 9, 20);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        rm_test_emulated_order(orders[i]);
        rm_test_world_learner_open(&runs[i], &session, device);
        rm_test_world_learner_turn(&runs[i]);
        rm_test_world_learner_turn(&runs[i]);
        same_states(&runs[0], &runs[i]);
    }
    rm_test_emulated_order("forward");
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        rm_test_world_learner_close(&runs[i]);
    rm_test_device_fine(device);
    rm_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rollouts_are_linked_and_ordered),
        cmocka_unit_test(few_samples_are_minibatches_each),
        cmocka_unit_test(nobody_waits_and_nothing_is_allocated),
        cmocka_unit_test(resumes_to_the_bit),
        cmocka_unit_test(what_is_saved_was_written),
        cmocka_unit_test(damaged_states_are_refused),
        cmocka_unit_test(order_of_threads_changes_nothing),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
