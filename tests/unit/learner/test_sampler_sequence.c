/* Sequences out of synthetic rings, against a slow reading of every cell. */
#include "learner/sampler.h"
#include "tests/support/rows.h"
#include "tests/support/unit.h"

#include <math.h>
#include <string.h>

#define GAMMA 0.9
enum { BATCH = 16, STATES = 3, WORLDS = 4, CAPACITY_ROWS = 60 };

static struct rm_error failure;
static struct rm_test_rows rows;
static struct rm_env_agent agent;

struct shape {
    uint32_t trace, burn_in, period, n;
};

static void open_ring(struct rm_ring *ring, uint32_t worlds)
{
    const struct rm_ring_spec spec = {
        .rows = 128,
        .lanes = worlds,
        .obs_bytes = RM_TEST_FEATURES * sizeof(int32_t),
        .mask_bytes = RM_TEST_ACTIONS,
        .action_words = 1,
        .columns = RM_COLUMN_MASK | RM_COLUMN_STATE,
        .state_floats = STATES,
        .first_index = UINT64_MAX - 20,
    };
    if (rm_ring_create(ring, &spec, &failure))
        fail_msg("%s", failure.text);
    rm_ring_writer_open(ring);
}

static struct rm_sampler *make(const struct rm_sampler_source *sources, uint32_t count,
                               const struct shape *shape)
{
    struct rm_sampler *s;
    const struct rm_sampler_spec spec = {
        .sources = sources,
        .source_count = count,
        .agents = 1,
        .agent = &agent,
        .batch = BATCH,
        .n_step = shape->n,
        .frame_stack = 1,
        .gamma = GAMMA,
        .capacity = CAPACITY_ROWS * WORLDS,
        .seed = 5,
        .sequence = {shape->trace, shape->burn_in, shape->period, STATES},
    };
    if (rm_sampler_create(&s, &spec, &failure))
        fail_msg("%s", failure.text);
    return s;
}

/* Does a sequence begin in row i, when rows below `end` are written? */
static bool begins(const struct shape *shape, uint32_t w, uint32_t i, uint32_t end)
{
    return i + CAPACITY_ROWS >= end && i + shape->trace - 1 + shape->n < end &&
           (uint32_t)rows.cell[w][i].step % shape->period == 0 &&
           rm_test_rows_expect(&rows, w, i, end, shape->n, GAMMA).valid;
}

/* Lane k of the batch is the sequence of row i of world w, and nothing else. */
static void check_lane(const struct shape *shape, const struct rm_batch *b, uint32_t k, uint32_t w,
                       uint32_t i, uint32_t end)
{
    const struct rm_test_cell *c = rows.cell[w];
    const uint32_t age = (uint32_t)c[i].step;
    const uint32_t before = age < shape->burn_in ? age : shape->burn_in;
    const uint32_t first = shape->burn_in - before;
    uint32_t last = 0; /* row of the trace or tail that is looked at last */
    bool within = true;
    for (uint32_t t = 0; t < shape->trace; t++) {
        const struct rm_test_transition x =
            rm_test_rows_expect(&rows, w, i + t, end, shape->n, GAMMA);
        const size_t at = (size_t)t * BATCH + k;
        within = within && x.valid && c[i + t].episode == c[i].episode &&
                 c[i + t].generation == c[i].generation;
        assert_int_equal(b->valid[at] != 0, within);
        assert_int_equal(b->action[at], within ? c[i + t].action : 0);
        assert_int_equal(b->ahead[at], within ? x.steps : 0);
        assert_true(fabs((double)b->ret[at] - (within ? x.ret : 0)) < 1e-5);
        assert_true(fabs((double)b->discount[at] - (within ? x.discount : 0)) < 1e-6);
        if (within)
            last = t + x.steps;
    }
    for (uint32_t at = 0; at < rm_batch_rows(b); at++) {
        const bool in = at >= first && at <= shape->burn_in + last;
        const uint32_t j = i - shape->burn_in + at;
        const float *x = b->obs + ((size_t)at * BATCH + k) * RM_TEST_FEATURES;
        const uint8_t *mask = b->mask + ((size_t)at * BATCH + k) * RM_TEST_ACTIONS;
        const float want[] = {(float)w, (float)j, in ? (float)c[j].episode : 0,
                              in ? (float)c[j].step : 0};
        for (uint32_t f = 0; f < RM_TEST_FEATURES; f++)
            assert_true(x[f] == (in ? want[f] : 0));
        for (uint32_t a = 0; a < RM_TEST_ACTIONS; a++) {
            const uint32_t lowest = (j + w) % RM_TEST_ACTIONS;
            const bool legal = a == lowest || a == (lowest + 1) % RM_TEST_ACTIONS;
            assert_int_equal(mask[a], in && legal);
        }
        assert_int_equal(b->restart[(size_t)at * BATCH + k], first > 0 && at == first);
    }
    for (uint32_t f = 0; f < STATES; f++)
        assert_true(b->state[k * STATES + f] ==
                    (first > 0 ? 0 : rm_test_rows_state(w, i - shape->burn_in, f)));
}

static void check_all(struct rm_sampler *s, const struct shape *shape, uint32_t end,
                      uint32_t batches, uint64_t *update)
{
    static uint32_t drawn[WORLDS][RM_TEST_ROWS];
    struct rm_batch *b = rm_sampler_batch(s);
    uint32_t there = 0;
    memset(drawn, 0, sizeof drawn);
    for (uint32_t u = 0; u < batches; u++) {
        assert_int_equal(rm_sampler_draw(s, ++*update, b), 1);
        for (uint32_t k = 0; k < BATCH; k++) {
            const float *x = b->obs + ((size_t)shape->burn_in * BATCH + k) * RM_TEST_FEATURES;
            const uint32_t w = (uint32_t)x[0], i = (uint32_t)x[1];
            assert_true(begins(shape, w, i, end));
            check_lane(shape, b, k, w, i, end);
            drawn[w][i]++;
        }
    }
    for (uint32_t w = 0; w < WORLDS; w++)
        for (uint32_t i = 0; i < end; i++)
            there += begins(shape, w, i, end);
    const double mean = (double)batches * BATCH / there;
    for (uint32_t w = 0; w < WORLDS; w++)
        for (uint32_t i = 0; i < end; i++)
            if (begins(shape, w, i, end))
                assert_true(fabs(drawn[w][i] - mean) < 6 * sqrt(mean));
}

static void fill_rows(uint32_t count)
{
    static const uint32_t lengths[] = {7, 25, 2, 40};
    static const uint8_t ends[] = {RM_FLAG_TERMINATED, RM_FLAG_TRUNCATED,
                                   RM_FLAG_TRUNCATED | RM_FLAG_VOID, RM_FLAG_TERMINATED};
    agent = rm_test_rows_agent(true);
    rm_test_rows_fill(&rows, WORLDS, count, lengths, ends);
}

static const struct shape shapes[] = {
    {8, 4, 4, 3}, {8, 0, 8, 1}, {5, 10, 2, 5}, {1, 3, 1, 1}, {30, 6, 15, 5}};

static void every_sequence_is_drawn_and_is_what_stands_there(void **state)
{
    (void)state;
    for (size_t c = 0; c < sizeof shapes / sizeof *shapes; c++) {
        struct rm_ring ring;
        uint64_t update = 0;
        fill_rows(300);
        open_ring(&ring, WORLDS);
        const struct rm_sampler_source source = {&ring, 0, WORLDS};
        struct rm_sampler *s = make(&source, 1, &shapes[c]);
        for (uint32_t end = 0; end < 300; end += 50) {
            rm_test_rows_write(&rows, &ring, 0, end, end + 50);
            rm_sampler_window_free(s);
            check_all(s, &shapes[c], end + 50, 150, &update);
        }
        rm_sampler_destroy(s);
        rm_ring_close(&ring);
    }
}

static void too_few_rows_draw_nothing(void **state)
{
    (void)state;
    struct rm_ring ring;
    const struct shape shape = {8, 4, 4, 3};
    fill_rows(60);
    open_ring(&ring, WORLDS);
    const struct rm_sampler_source source = {&ring, 0, WORLDS};
    struct rm_sampler *s = make(&source, 1, &shape);
    for (uint32_t i = 0; i < 14; i++) {
        rm_sampler_window_free(s);
        assert_int_equal(rm_sampler_draw(s, 1, rm_sampler_batch(s)), i >= 11);
        rm_test_rows_write(&rows, &ring, 0, i, i + 1);
    }
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

/* A writer that died in row 100; an agent out of play from row 80 to 85. */
static void generations_and_dead_lanes_part_sequences(void **state)
{
    (void)state;
    struct rm_ring ring;
    uint64_t update = 0;
    const struct shape shape = {8, 6, 4, 3};
    fill_rows(140);
    for (uint32_t i = 100; i < 140; i++)
        for (uint32_t w = 0; w < WORLDS; w++) {
            rows.cell[w][i].generation = 2;
            rows.cell[w][i].episode = 1000 + (int32_t)(i >= 120);
            rows.cell[w][i].step = (int32_t)((i - 100) % 20);
            rows.cell[w][i].flags = (i - 100) % 20 ? 0 : RM_FLAG_FIRST;
            if (i == 119)
                rows.cell[w][i].flags = RM_FLAG_TERMINATED;
        }
    for (uint32_t i = 80; i < 100; i++) {
        rows.cell[1][i].episode = i < 85 ? 2000 : 2001;
        rows.cell[1][i].step = i < 85 ? 0 : (int32_t)i - 85;
        rows.cell[1][i].flags = i < 85 ? RM_FLAG_DEAD : i == 85 ? RM_FLAG_FIRST : 0;
    }
    open_ring(&ring, WORLDS);
    rm_test_rows_write(&rows, &ring, 0, 0, 140);
    const struct rm_sampler_source source = {&ring, 0, WORLDS};
    struct rm_sampler *s = make(&source, 1, &shape);
    rm_sampler_window_free(s);
    check_all(s, &shape, 140, 300, &update);
    rm_sampler_destroy(s);
    rm_ring_close(&ring);
}

static void draws_do_not_depend_on_the_split(void **state)
{
    (void)state;
    struct rm_ring whole, left, right;
    const struct shape shape = {8, 4, 4, 3};
    fill_rows(100);
    open_ring(&whole, 4);
    open_ring(&left, 1);
    open_ring(&right, 3);
    rm_test_rows_write(&rows, &whole, 0, 0, 100);
    rm_test_rows_write(&rows, &left, 0, 0, 100);
    rm_test_rows_write(&rows, &right, 1, 0, 100);
    const struct rm_sampler_source one = {&whole, 0, 4};
    const struct rm_sampler_source two[] = {{&left, 0, 1}, {&right, 1, 3}};
    struct rm_sampler *a = make(&one, 1, &shape), *b = make(two, 2, &shape);
    rm_sampler_window_free(a);
    rm_sampler_window_free(b);
    const struct rm_batch *x = rm_sampler_batch(a), *y = rm_sampler_batch(b);
    for (uint64_t u = 1; u <= 30; u++) {
        assert_int_equal(rm_sampler_draw(a, u, rm_sampler_batch(a)), 1);
        assert_int_equal(rm_sampler_draw(b, u, rm_sampler_batch(b)), 1);
        assert_memory_equal(x->obs, y->obs,
                            (size_t)rm_batch_rows(x) * BATCH * x->inputs * sizeof(float));
        assert_memory_equal(x->state, y->state, BATCH * STATES * sizeof(float));
        assert_memory_equal(x->valid, y->valid, (size_t)x->trace * BATCH * sizeof *x->valid);
    }
    rm_sampler_destroy(a);
    rm_sampler_destroy(b);
    rm_ring_close(&whole);
    rm_ring_close(&left);
    rm_ring_close(&right);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sequence_is_drawn_and_is_what_stands_there),
        cmocka_unit_test(too_few_rows_draw_nothing),
        cmocka_unit_test(generations_and_dead_lanes_part_sequences),
        cmocka_unit_test(draws_do_not_depend_on_the_split),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
