/* The sampler against a slow reading of what a transition is, over every row of synthetic rings. */
#include "learner/sampler.h"
#include "tests/support/rows.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define GAMMA 0.9
#define BATCH 32

static struct rm_test_rows rows;
static struct rm_env_agent agent;

static struct rm_test_transition expect(uint32_t w, uint32_t i, uint32_t end, uint32_t n)
{
    return rm_test_rows_expect(&rows, w, i, end, n, GAMMA);
}

static void expect_stack(uint32_t w, int newest, uint32_t stack, const float *got)
{
    const struct rm_test_cell *c = rows.cell[w];
    for (uint32_t s = 0; s < stack; s++, got += RM_TEST_FEATURES) {
        const int i = newest - (int)(stack - 1) + (int)s;
        const bool in =
            i >= 0 && c[i].episode == c[newest].episode && c[i].generation == c[newest].generation;
        const float want[RM_TEST_FEATURES] = {(float)w, (float)i, in ? (float)c[i].episode : 0,
                                              in ? (float)c[i].step : 0};
        for (uint32_t f = 0; f < RM_TEST_FEATURES; f++)
            assert_true(got[f] == (in ? want[f] : 0));
    }
}

static struct rm_sampler *make(const struct rm_sampler_source *sources, uint32_t count, uint32_t n,
                               uint32_t stack, uint64_t capacity)
{
    struct rm_error error = {""};
    struct rm_sampler *s;
    const struct rm_sampler_spec spec = {
        .sources = sources,
        .source_count = count,
        .agents = 1,
        .agent = &agent,
        .batch = BATCH,
        .n_step = n,
        .frame_stack = stack,
        .gamma = GAMMA,
        .capacity = capacity,
        .seed = 5,
    };
    if (rm_sampler_create(&s, &spec, &error))
        fail_msg("%s", error.text);
    return s;
}

/* Draws `batches`, checks every transition, and counts draws per (world, row). oldest, end: the
 * rows that may be touched; starts: the oldest row a transition may start in. */
static void draw_and_check(struct rm_sampler *s, uint32_t n, uint32_t stack, uint32_t starts,
                           uint32_t end, uint32_t batches, uint32_t (*drawn)[RM_TEST_ROWS])
{
    struct rm_batch *b = rm_sampler_batch(s);
    for (uint32_t u = 1; u <= batches; u++) {
        assert_int_equal(rm_sampler_draw(s, u, b), 1);
        for (uint32_t k = 0; k < b->size; k++) {
            const float *newest = b->obs + k * b->inputs + (stack - 1) * RM_TEST_FEATURES;
            const uint32_t w = (uint32_t)newest[0], i = (uint32_t)newest[1];
            const struct rm_test_transition x = expect(w, i, end, n);
            assert_true(x.valid && i >= starts && i < end);
            assert_int_equal(b->action[k], rows.cell[w][i].action);
            assert_true(fabs((double)b->ret[k] - x.ret) < 1e-5);
            assert_true(fabs((double)b->discount[k] - x.discount) < 1e-6);
            expect_stack(w, (int)i, stack, b->obs + k * b->inputs);
            expect_stack(w, (int)(i + x.steps), stack, b->next_obs + k * b->inputs);
            for (uint32_t a = 0; b->next_mask && a < RM_TEST_ACTIONS; a++) {
                const uint32_t lowest = (i + x.steps + w) % RM_TEST_ACTIONS;
                const bool legal = a == lowest || a == (lowest + 1) % RM_TEST_ACTIONS;
                assert_int_equal(b->next_mask[k * RM_TEST_ACTIONS + a], legal);
            }
            drawn[w][i]++;
        }
    }
}

/* Every valid transition equally often: chi-square within 5 standard deviations, and each one seen.
 */
static void check_uniform(uint32_t worlds, uint32_t n, uint32_t starts, uint32_t end,
                          uint32_t draws, uint32_t (*drawn)[RM_TEST_ROWS])
{
    uint32_t valid = 0;
    double chi = 0;
    for (uint32_t w = 0; w < worlds; w++)
        for (uint32_t i = starts; i < end; i++)
            valid += expect(w, i, end, n).valid;
    const double mean = (double)draws / valid;
    assert_true(mean > 50);
    for (uint32_t w = 0; w < worlds; w++)
        for (uint32_t i = starts; i < end; i++)
            if (expect(w, i, end, n).valid) {
                assert_true(drawn[w][i] > 0);
                chi += (drawn[w][i] - mean) * (drawn[w][i] - mean) / mean;
            }
    assert_true(fabs(chi - (valid - 1)) < 5 * sqrt(2.0 * (valid - 1)));
}

static const uint32_t lengths[] = {7, 10, 5, 13};
static const uint8_t ends[] = {RM_FLAG_TERMINATED, RM_FLAG_TRUNCATED,
                               RM_FLAG_TRUNCATED | RM_FLAG_VOID, RM_FLAG_TERMINATED};

static void every_valid_transition_is_drawn_equally(void **state)
{
    (void)state;
    static const struct {
        uint32_t n, stack;
    } cases[] = {{1, 1}, {3, 1}, {3, 4}, {12, 2}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const uint32_t n = cases[c].n, stack = cases[c].stack;
        static uint32_t drawn[RM_TEST_WORLDS][RM_TEST_ROWS];
        struct rm_ring ring;
        memset(drawn, 0, sizeof drawn);
        agent = rm_test_rows_agent(true);
        rm_test_rows_fill(&rows, 4, 60, lengths, ends);
        assert_int_equal(rm_test_rows_ring(&ring, 64, 4, true), 0);
        rm_test_rows_write(&rows, &ring, 0, 0, 60);
        const struct rm_sampler_source source = {&ring, 0, 4};
        struct rm_sampler *s = make(&source, 1, n, stack, 1000);
        rm_sampler_window_free(s);
        draw_and_check(s, n, stack, 0, 60, 1000, drawn);
        check_uniform(4, n, 0, 60, 1000 * BATCH, drawn);
        assert_int_equal(rm_sampler_counts(s).age_count, 1000 * BATCH);
        rm_sampler_destroy(s);
        rm_ring_close(&ring);
    }
}

/* A lapped ring: the window is what the ring still holds, and no more than the capacity. */
static void capacity_and_ring_bound_the_window(void **state)
{
    (void)state;
    static uint32_t drawn[RM_TEST_WORLDS][RM_TEST_ROWS];
    struct rm_ring ring;
    memset(drawn, 0, sizeof drawn);
    agent = rm_test_rows_agent(false);
    rm_test_rows_fill(&rows, 4, 150, lengths, ends);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 4, false), 0);
    rm_test_rows_write(&rows, &ring, 0, 0, 150);
    const struct rm_sampler_source source = {&ring, 0, 4};
    /* 40 rows of 4 lanes; stacks may look back beyond, where the ring holds the rows. */
    struct rm_sampler *s = make(&source, 1, 2, 3, 163);
    rm_sampler_window_free(s);
    assert_int_equal(rm_sampler_held(s), 160);
    assert_int_equal(rm_sampler_capacity(s), 160);
    draw_and_check(s, 2, 3, 110, 150, 1000, drawn);
    check_uniform(4, 2, 110, 150, 1000 * BATCH, drawn);
    rm_sampler_destroy(s);

    s = make(&source, 1, 2, 1, 100000);
    memset(drawn, 0, sizeof drawn);
    rm_sampler_window_free(s);
    assert_int_equal(rm_sampler_held(s), 64 * 4);
    draw_and_check(s, 2, 1, 86, 150, 1000, drawn);
    check_uniform(4, 2, 86, 150, 1000 * BATCH, drawn);
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

/* Stacks whose older frames the ring has lost are not drawn. */
static void lost_frames_make_a_stack_invalid(void **state)
{
    (void)state;
    static const uint32_t one_length[] = {200};
    static const uint8_t one_end[] = {RM_FLAG_TERMINATED};
    static uint32_t drawn[RM_TEST_WORLDS][RM_TEST_ROWS];
    struct rm_ring ring;
    memset(drawn, 0, sizeof drawn);
    agent = rm_test_rows_agent(false);
    rm_test_rows_fill(&rows, 1, 100, one_length, one_end);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 1, false), 0);
    rm_test_rows_write(&rows, &ring, 0, 0, 100);
    const struct rm_sampler_source source = {&ring, 0, 1};
    struct rm_sampler *s = make(&source, 1, 1, 4, 1000);
    rm_sampler_window_free(s);
    draw_and_check(s, 1, 4, 36 + 3, 100, 300, drawn);
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

/* The same worlds in one ring, or in two of different sizes, give the same batches. */
static void draws_do_not_depend_on_the_split(void **state)
{
    (void)state;
    struct rm_ring whole, left, right;
    agent = rm_test_rows_agent(false);
    rm_test_rows_fill(&rows, 4, 60, lengths, ends);
    assert_int_equal(rm_test_rows_ring(&whole, 64, 4, false), 0);
    assert_int_equal(rm_test_rows_ring(&left, 64, 1, false), 0);
    assert_int_equal(rm_test_rows_ring(&right, 64, 3, false), 0);
    rm_test_rows_write(&rows, &whole, 0, 0, 60);
    rm_test_rows_write(&rows, &left, 0, 0, 60);
    rm_test_rows_write(&rows, &right, 1, 0, 60);
    const struct rm_sampler_source one = {&whole, 0, 4};
    const struct rm_sampler_source two[] = {{&left, 0, 1}, {&right, 1, 3}};
    struct rm_sampler *a = make(&one, 1, 3, 2, 1000), *b = make(two, 2, 3, 2, 1000);
    rm_sampler_window_free(a);
    rm_sampler_window_free(b);
    const struct rm_batch *x = rm_sampler_batch(a), *y = rm_sampler_batch(b);
    for (uint64_t u = 1; u <= 50; u++) {
        assert_int_equal(rm_sampler_draw(a, u, rm_sampler_batch(a)), 1);
        assert_int_equal(rm_sampler_draw(b, u, rm_sampler_batch(b)), 1);
        assert_memory_equal(x->obs, y->obs, BATCH * x->inputs * sizeof(float));
        assert_memory_equal(x->next_obs, y->next_obs, BATCH * x->inputs * sizeof(float));
        assert_memory_equal(x->ret, y->ret, BATCH * sizeof(float));
        assert_memory_equal(x->action, y->action, BATCH * sizeof(int32_t));
    }
    assert_int_equal(rm_sampler_counts(a).rejected, rm_sampler_counts(b).rejected);
    rm_sampler_destroy(a);
    rm_sampler_destroy(b);
    rm_ring_close(&whole);
    rm_ring_close(&left);
    rm_ring_close(&right);
}

/* A writer that died in row 30 and whose successor began anew; an agent that leaves play in row 20
 * and comes back in row 25. */
static void generations_and_dead_lanes_part_rows(void **state)
{
    (void)state;
    static const uint32_t long_lengths[] = {500, 500};
    static const uint8_t long_ends[] = {RM_FLAG_TERMINATED, RM_FLAG_TERMINATED};
    static uint32_t drawn[RM_TEST_WORLDS][RM_TEST_ROWS];
    struct rm_ring ring;
    memset(drawn, 0, sizeof drawn);
    agent = rm_test_rows_agent(false);
    rm_test_rows_fill(&rows, 2, 60, long_lengths, long_ends);
    for (uint32_t w = 0; w < 2; w++)
        for (uint32_t i = 30; i < 60; i++)
            rows.cell[w][i].generation = 2;
    rows.cell[0][30].flags = RM_FLAG_FIRST;
    for (uint32_t i = 20; i < 25; i++)
        rows.cell[1][i].flags = RM_FLAG_DEAD;
    for (uint32_t i = 20; i < 60; i++)
        rows.cell[1][i].episode = i < 25 ? 1 : 2;
    rows.cell[1][25].flags = RM_FLAG_FIRST;
    assert_int_equal(rm_test_rows_ring(&ring, 64, 2, false), 0);
    rm_test_rows_write(&rows, &ring, 0, 0, 60);
    const struct rm_sampler_source source = {&ring, 0, 2};
    struct rm_sampler *s = make(&source, 1, 3, 3, 1000);
    rm_sampler_window_free(s);
    draw_and_check(s, 3, 3, 0, 60, 1000, drawn);
    check_uniform(2, 3, 0, 60, 1000 * BATCH, drawn);
    assert_int_equal(drawn[0][29], 0); /* nothing follows it */
    assert_true(drawn[0][28] > 0);     /* a step shorter than three */
    assert_int_equal(drawn[1][22], 0);
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

/* In round r the learner sees rows before it, less those that the writer may claim in it. */
static void a_round_sees_what_was_there_before_it(void **state)
{
    (void)state;
    static uint32_t drawn[RM_TEST_WORLDS][RM_TEST_ROWS];
    struct rm_ring ring;
    agent = rm_test_rows_agent(false);
    rm_test_rows_fill(&rows, 4, 200, lengths, ends);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 4, false), 0);
    const struct rm_sampler_source source = {&ring, 0, 4};
    struct rm_sampler *s = make(&source, 1, 1, 1, 100000);
    uint32_t counted = 0;
    for (uint32_t r = 1; r <= 12; r++) {
        uint32_t steps = 0;
        /* The actor is ahead by half a round. */
        rm_test_rows_write(&rows, &ring, 0, r == 1 ? 0 : (r - 1) * 16 - 8, r * 16 - 8);
        rm_sampler_window_round(s, r, 16);
        counted += (uint32_t)rm_sampler_count_new(s);
        for (uint32_t w = 0; w < 4; w++)
            for (uint32_t i = 0; i < (r - 1) * 16; i++)
                steps += !(rows.cell[w][i].flags & RM_FLAG_LAST);
        assert_int_equal(counted, steps);
        if (r == 1) {
            assert_int_equal(rm_sampler_draw(s, 1, rm_sampler_batch(s)), 0);
            continue;
        }
        const uint32_t end = (r - 1) * 16, starts = end > 48 ? end - 48 : 0;
        assert_int_equal(rm_sampler_held(s), (end - starts) * 4);
        memset(drawn, 0, sizeof drawn);
        draw_and_check(s, 1, 1, starts, end, 600, drawn);
        check_uniform(4, 1, starts, end, 600 * BATCH, drawn);
    }
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

static void too_few_rows_draw_nothing(void **state)
{
    (void)state;
    struct rm_ring ring;
    agent = rm_test_rows_agent(false);
    rm_test_rows_fill(&rows, 4, 60, lengths, ends);
    assert_int_equal(rm_test_rows_ring(&ring, 64, 4, false), 0);
    const struct rm_sampler_source source = {&ring, 0, 4};
    struct rm_sampler *s = make(&source, 1, 3, 1, 1000);
    for (uint32_t i = 0; i < 3; i++) {
        rm_sampler_window_free(s);
        assert_int_equal(rm_sampler_draw(s, 1, rm_sampler_batch(s)), 0);
        rm_test_rows_write(&rows, &ring, 0, i, i + 1);
    }
    rm_test_rows_write(&rows, &ring, 0, 3, 4);
    rm_sampler_window_free(s);
    assert_int_equal(rm_sampler_draw(s, 1, rm_sampler_batch(s)), 1);
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

static void a_ring_of_another_world_is_refused(void **state)
{
    (void)state;
    struct rm_error error = {""};
    struct rm_ring ring;
    struct rm_sampler *s;
    agent = rm_test_rows_agent(false);
    agent.shape[0] = 3;
    assert_int_equal(rm_test_rows_ring(&ring, 64, 4, false), 0);
    const struct rm_sampler_source source = {&ring, 0, 4};
    struct rm_sampler_spec spec = {
        .sources = &source,
        .source_count = 1,
        .agents = 1,
        .agent = &agent,
        .batch = 4,
        .n_step = 1,
        .frame_stack = 1,
        .capacity = 100,
    };
    assert_true(rm_sampler_create(&s, &spec, &error) < 0);
    assert_non_null(strstr(error.text, "16 bytes"));
    agent.shape[0] = RM_TEST_FEATURES;
    spec.agents = 2;
    assert_true(rm_sampler_create(&s, &spec, &error) < 0);
    assert_non_null(strstr(error.text, "4 lanes"));
    rm_ring_close(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_valid_transition_is_drawn_equally),
        cmocka_unit_test(capacity_and_ring_bound_the_window),
        cmocka_unit_test(lost_frames_make_a_stack_invalid),
        cmocka_unit_test(draws_do_not_depend_on_the_split),
        cmocka_unit_test(generations_and_dead_lanes_part_rows),
        cmocka_unit_test(a_round_sees_what_was_there_before_it),
        cmocka_unit_test(too_few_rows_draw_nothing),
        cmocka_unit_test(a_ring_of_another_world_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
