/* The compat forms against a replay buffer that is what the original's is: arrays of frames,
 * actions and rewards that are copied into, with a write index that jumps. */
#include "actor/worlds/sorrel_slots.h"
#include "learner/sampler.h"
#include "tests/support/rows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SLOTS 1024
#define EPOCH 50
#define STACK 5
#define BATCH 64

/* The original, by copying. */
struct buffer {
    float frame[SLOTS][RM_TEST_FEATURES];
    int32_t action[SLOTS];
    float reward[SLOTS];
    uint32_t index, size;
};

static struct buffer original;
static struct rm_test_rows rows;
static struct rm_env_agent agent;

static void original_jump(uint32_t by)
{
    original.index = (original.index + by) % SLOTS;
}

static void original_add(uint32_t row)
{
    const struct rm_test_cell *c = &rows.cell[0][row];
    const float frame[RM_TEST_FEATURES] = {0, (float)row, (float)c->episode, (float)c->step};
    memcpy(original.frame[original.index], frame, sizeof frame);
    original.action[original.index] = c->action;
    original.reward[original.index] = rows.cell[0][row + 1].reward;
    original.index = (original.index + 1) % SLOTS;
    original.size += original.size < SLOTS;
}

static void play(struct rm_ring *ring, uint32_t epoch, uint32_t jump)
{
    const uint32_t from = epoch * (EPOCH + 1);
    rm_test_rows_write(&rows, ring, 0, from, from + EPOCH + 1);
    original_jump(jump);
    for (uint32_t t = 0; t < EPOCH; t++)
        original_add(from + t);
}

static bool equal(const float *a, const float *b)
{
    for (uint32_t i = 0; i < STACK * RM_TEST_FEATURES; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* The start slot that a drawn transition must come from: frames, action and reward all agree. */
static int find_start(const struct rm_batch *b, uint32_t k)
{
    for (uint32_t i = 0; i + STACK + 1 < original.size; i++) {
        if (equal(b->obs + k * b->inputs, original.frame[i]) &&
            equal(b->next_obs + k * b->inputs, original.frame[i + 1]) &&
            b->action[k] == original.action[i + STACK - 1] &&
            b->ret[k] == original.reward[i + STACK - 1])
            return (int)i;
    }
    return -1;
}

static void compare(enum rm_form form, uint32_t jump)
{
    static const uint32_t length[] = {EPOCH};
    static const uint8_t end[] = {RM_FLAG_TRUNCATED | RM_FLAG_VOID};
    struct rm_error error = {""};
    struct rm_ring ring;
    struct rm_sampler *s;
    uint32_t seen[SLOTS] = {0}, epochs = 78;
    memset(&original, 0, sizeof original);
    agent = rm_test_rows_agent(false);
    rm_test_rows_fill(&rows, 1, RM_TEST_ROWS, length, end);
    assert_int_equal(rm_test_rows_ring(&ring, 4096, 1, false), 0);
    const struct rm_sampler_source source = {&ring, 0, 1};
    const struct rm_sampler_spec spec = {
        .sources = &source,
        .source_count = 1,
        .agents = 1,
        .agent = &agent,
        .batch = BATCH,
        .n_step = 3,
        .frame_stack = STACK,
        .gamma = 0.99,
        .capacity = SLOTS,
        .form = form,
        .seed = 1,
    };
    if (rm_sampler_create(&s, &spec, &error))
        fail_msg("%s", error.text);
    struct rm_batch *b = rm_sampler_batch(s);
    for (uint32_t epoch = 0; epoch < epochs; epoch++) {
        play(&ring, epoch, jump);
        rm_sampler_window_round(s, epoch + 2, EPOCH + 1);
        assert_int_equal(rm_sampler_held(s), original.size);
        const int drew = rm_sampler_draw(s, epoch + 1, b);
        assert_int_equal(drew, original.size >= BATCH + STACK + 1);
        int starts[BATCH];
        for (uint32_t k = 0; drew && k < BATCH; k++) {
            starts[k] = find_start(b, k);
            assert_true(starts[k] >= 0);
            assert_true(fabs((double)b->discount[k] - 0.970299) < 1e-6);
            seen[starts[k]]++;
            /* Distinct, where the original can tell them apart: not in the zeros of the first lap.
             */
            for (uint32_t j = 0; epoch > 60 && j < k; j++)
                assert_int_not_equal(starts[j], starts[k]);
        }
    }
    /* Once the buffer is full every start slot is drawn sooner or later, the last one included. */
    for (uint32_t u = 1000; u < 1200; u++) {
        assert_int_equal(rm_sampler_draw(s, u, b), 1);
        for (uint32_t k = 0; k < BATCH; k++)
            seen[find_start(b, k)]++;
    }
    for (uint32_t i = 0; i < SLOTS - STACK - 1; i++)
        assert_true(seen[i] > 0);
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

static void sequential_form_is_the_original(void **state)
{
    (void)state;
    compare(RM_FORM_SORREL_SEQ, 4);
}

static void parallel_form_is_the_original(void **state)
{
    (void)state;
    compare(RM_FORM_SORREL_MP, 0);
}

/* Acting: the frames before the current one are the slots before the write index. */
static void acting_stacks_are_the_original(void **state)
{
    (void)state;
    static const uint32_t length[] = {EPOCH};
    static const uint8_t end[] = {RM_FLAG_TRUNCATED | RM_FLAG_VOID};
    struct rm_error error = {""};
    struct rm_sorrel_slots slots;
    uint32_t zeros = 0, stale = 0;
    memset(&original, 0, sizeof original);
    rm_test_rows_fill(&rows, 1, RM_TEST_ROWS, length, end);
    assert_int_equal(rm_sorrel_slots_create(&slots, SLOTS, 4, &error), 0);
    for (uint32_t i = 0; i < 78 * (EPOCH + 1); i++) {
        const struct rm_test_cell *c = &rows.cell[0][i];
        if (c->step < EPOCH) {
            if (c->step == 0)
                original_jump(4);
            for (uint32_t back = 1; back < STACK; back++) {
                const float *want = original.frame[(original.index + SLOTS - back) % SLOTS];
                const uint64_t row = rm_sorrel_slots_back(&slots, back, c->flags);
                zeros += row == RM_SORREL_NEVER;
                if (row == RM_SORREL_NEVER) {
                    /* Row 0's frame differs from a zero frame only by its place. */
                    assert_true(want[1] == 0 && want[2] == 0 && want[3] == 0);
                } else {
                    assert_true(want[1] == (float)row);
                    stale += rows.cell[0][row].episode != c->episode;
                }
            }
            original_add(i);
        }
        rm_sorrel_slots_push(&slots, i, c->flags);
    }
    /* Turns 1 to 4 of an epoch need 4 + 3 + 2 + 1 older frames. */
    assert_int_equal(zeros + stale, 78 * 10);
    assert_true(zeros >= 18 * 10 && stale > 40 * 10);
    rm_sorrel_slots_destroy(&slots);
}

static void what_the_original_has_not_is_refused(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct rm_ring ring;
    struct rm_sampler *s;
    agent = rm_test_rows_agent(false);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 2, false), 0);
    const struct rm_sampler_source source = {&ring, 0, 2};
    struct rm_sampler_spec spec = {
        .sources = &source,
        .source_count = 1,
        .agents = 1,
        .agent = &agent,
        .batch = 8,
        .n_step = 3,
        .frame_stack = STACK,
        .gamma = 0.99,
        .capacity = 32,
        .form = RM_FORM_SORREL_SEQ,
    };
    assert_true(rm_sampler_create(&s, &spec, &error) < 0);
    assert_non_null(strstr(error.text, "2 lanes"));
    rm_ring_close(&ring);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 1, false), 0);
    const struct rm_sampler_source single = {&ring, 0, 1};
    spec.sources = &single;
    assert_true(rm_sampler_create(&s, &spec, &error) < 0);
    assert_non_null(strstr(error.text, "ring of 64 rows"));
    rm_ring_close(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequential_form_is_the_original),
        cmocka_unit_test(parallel_form_is_the_original),
        cmocka_unit_test(acting_stacks_are_the_original),
        cmocka_unit_test(what_the_original_has_not_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
