/* Batches that a device draws for itself, beside those that the host's sampler draws of the same
 * rows: the same items to the bit, uniformly and by priority, over ends of episodes, over the end
 * of a ring and by rows that are gone; and the tree with its copy in shared memory. */
#include "learner/feed.h"
#include "learner/priority_tree.h"
#include "learner/sampler_source.h"
#include "shm/base/rng.h"
#include "shm/layout.h"
#include "tests/support/emulated.h"
#include "tests/support/rows.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORLDS = 4, RINGS = 2, RING_ROWS = 64, SLOTS = 40, BATCH = 48, ROUNDS = 30 };

#define ALPHA   0.6
#define EPSILON 1e-3

static struct rm_error failure;
static struct rm_backend *device;
static struct rm_test_rows rows;
static struct rm_env_agent agent;

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

static void *on_device(size_t bytes)
{
    void *p = device->device->alloc(device, bytes, &failure);
    if (!p)
        fail_msg("%s", failure.text);
    return p;
}

static void send(void *to, const void *from, size_t bytes)
{
    assert_int_equal(bytes % 4, 0);
    device->ops->upload(device, to, from, bytes / 4);
}

static void fetch(void *to, const void *from, size_t bytes)
{
    assert_int_equal(bytes % 4, 0);
    device->ops->download(device, to, from, bytes / 4);
}

/* --- two samplers of the same rings ---------------------------------------------------------- */

struct side {
    struct rm_priorities tree;
    struct rm_sampler *sampler;
};

struct bench {
    bool by_priority;
    uint32_t stack;
    struct rm_ring rings[RINGS];
    struct rm_sampler_source sources[RINGS];
    struct side host, there;
    struct rm_feed *feed;
    struct rm_device_sampler draw;
    float *error; /* on the device */
    uint32_t written;
};

static struct rm_sampler_spec spec_of(struct bench *b, struct side *side)
{
    return (struct rm_sampler_spec){
        .sources = b->sources,
        .source_count = RINGS,
        .agents = 1,
        .agent = &agent,
        .batch = BATCH,
        .n_step = 3,
        .frame_stack = b->stack,
        .gamma = 0.9,
        .capacity = SLOTS * WORLDS,
        .seed = 5,
        .policy = 2,
        .priorities = b->by_priority ? &side->tree : NULL,
        .alpha = ALPHA,
        .epsilon = EPSILON,
    };
}

static void make_side(struct bench *b, struct side *side)
{
    const struct rm_priorities_spec tree = {.slots = SLOTS, .lanes = WORLDS, .sources = RINGS};
    if (rm_priorities_create(&side->tree, &tree, &failure))
        fail_msg("%s", failure.text);
    const struct rm_sampler_spec spec = spec_of(b, side);
    if (rm_sampler_create(&side->sampler, &spec, &failure))
        fail_msg("%s", failure.text);
}

static void make_feed(struct bench *b)
{
    const struct rm_sampler_spec spec = spec_of(b, &b->there);
    const struct rm_feed_spec feed = {
        .backend = device, .sampler = &spec, .kind = RM_FEED_RESIDENT, .name = "policy"};
    if (rm_feed_create(&b->feed, &feed, &failure))
        fail_msg("%s", failure.text);
    assert_non_null(rm_feed_draw(b->feed));
    rm_sampler_elsewhere(b->there.sampler, true);
    b->draw = *rm_feed_draw(b->feed);
    b->draw.knobs = on_device(sizeof *b->draw.knobs);
    b->draw.turn = on_device(rm_device_turn_bytes(RINGS));
    b->draw.figures = on_device(sizeof *b->draw.figures);
    b->draw.told = on_device(sizeof *b->draw.told);
    b->draw.picks = on_device(BATCH * sizeof *b->draw.picks);
    b->draw.action = on_device(BATCH * sizeof *b->draw.action);
    b->draw.ret = on_device(BATCH * sizeof *b->draw.ret);
    b->draw.discount = on_device(BATCH * sizeof *b->draw.discount);
    b->draw.weight = on_device(BATCH * sizeof *b->draw.weight);
    b->draw.leaf = on_device(BATCH * sizeof *b->draw.leaf);
    b->error = on_device(BATCH * sizeof *b->error);
}

static void set_up(struct bench *b, bool by_priority, uint32_t stack)
{
    static const uint32_t lengths[] = {7, 10, 5, 13};
    static const uint8_t ends[] = {RM_FLAG_TERMINATED, RM_FLAG_TRUNCATED,
                                   RM_FLAG_TRUNCATED | RM_FLAG_VOID, RM_FLAG_TERMINATED};
    memset(b, 0, sizeof *b);
    b->by_priority = by_priority;
    b->stack = stack;
    agent = rm_test_rows_agent(true);
    rm_test_rows_fill(&rows, WORLDS, RM_TEST_ROWS, lengths, ends);
    for (uint32_t i = 0; i < RINGS; i++) { /* one world, and three */
        const uint32_t worlds = i ? 3 : 1;
        assert_int_equal(rm_test_rows_ring(&b->rings[i], RING_ROWS, worlds, true), 0);
        b->sources[i] = (struct rm_sampler_source){&b->rings[i], i ? 1 : 0, worlds};
    }
    make_side(b, &b->host);
    make_side(b, &b->there);
    make_feed(b);
}

static void tear_down(struct bench *b)
{
    const void *made[] = {b->draw.knobs,  b->draw.turn,   b->draw.figures, b->draw.told,
                          b->draw.picks,  b->draw.action, b->draw.ret,     b->draw.discount,
                          b->draw.weight, b->draw.leaf,   b->error};
    struct side *sides[] = {&b->host, &b->there};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        device->ops->release(device, (float *)(uintptr_t)made[i]);
    rm_feed_destroy(b->feed);
    for (int i = 0; i < 2; i++) {
        rm_sampler_destroy(sides[i]->sampler);
        rm_priorities_close(&sides[i]->tree);
    }
    for (uint32_t i = 0; i < RINGS; i++)
        rm_ring_close(&b->rings[i]);
}

static void write_rows(struct bench *b, uint32_t count)
{
    for (uint32_t i = 0; i < RINGS; i++)
        rm_test_rows_write(&rows, &b->rings[i], i ? 1 : 0, b->written, b->written + count);
    b->written += count;
    rm_sampler_window_free(b->host.sampler);
    rm_sampler_window_free(b->there.sampler);
}

/* --- draws ----------------------------------------------------------------------------------- */

struct drawn {
    struct rm_device_pick picks[BATCH];
    int32_t action[BATCH];
    float ret[BATCH], discount[BATCH], weight[BATCH];
    uint64_t leaf[BATCH];
    struct rm_device_figures figures;
    struct rm_device_drawn told;
};

static void draw_there(struct bench *b, uint64_t update, double beta, struct drawn *d)
{
    const struct rm_device_knobs knobs = {.before = update - 1};
    _Alignas(8) uint8_t turn[sizeof(struct rm_device_turn) + RINGS * sizeof(struct rm_row_span)];
    rm_feed_bring(b->feed, b->there.sampler);
    rm_feed_turn(b->feed, b->there.sampler, beta, (void *)turn);
    send((void *)(uintptr_t)b->draw.knobs, &knobs, sizeof knobs);
    send((void *)(uintptr_t)b->draw.turn, turn, sizeof turn);
    device->device->finish(device); /* rows have arrived */
    device->device->feed->draw(device, &b->draw);
    fetch(d->picks, b->draw.picks, sizeof d->picks);
    fetch(d->action, b->draw.action, sizeof d->action);
    fetch(d->ret, b->draw.ret, sizeof d->ret);
    fetch(d->discount, b->draw.discount, sizeof d->discount);
    fetch(d->weight, b->draw.weight, sizeof d->weight);
    fetch(d->leaf, b->draw.leaf, sizeof d->leaf);
    fetch(&d->figures, b->draw.figures, sizeof d->figures);
    fetch(&d->told, b->draw.told, sizeof d->told);
    rm_test_device_fine(device);
}

/* The host's draw of the same update, as picks. */
struct chosen {
    struct rm_batch batch;
    struct rm_device_pick picks[BATCH];
    float error[BATCH];
};

static bool draw_here(struct bench *b, uint64_t update, double beta, struct chosen *c)
{
    c->batch = *rm_sampler_batch(b->host.sampler);
    c->batch.picks = c->picks;
    rm_sampler_set_beta(b->host.sampler, beta);
    return rm_sampler_draw(b->host.sampler, update, &c->batch);
}

static void compare_draws(const struct bench *b, const struct drawn *d, const struct chosen *c)
{
    assert_int_equal(d->figures.stop, 0);
    for (uint32_t i = 0; i < BATCH; i++) {
        assert_memory_equal(&d->picks[i], &c->picks[i], sizeof c->picks[i]);
        assert_int_equal(d->action[i], c->batch.action[i]);
        assert_true(d->ret[i] == c->batch.ret[i]);
        assert_true(d->discount[i] == c->batch.discount[i]);
        if (b->by_priority) /* powers are rounded as they are */
            assert_true(fabsf(d->weight[i] - c->batch.weight[i]) <= 1e-6f);
    }
    const struct rm_sampler_counts counts = rm_sampler_counts(b->host.sampler);
    assert_int_equal(d->told.rejected, counts.rejected);
    assert_int_equal(d->told.age_sum, counts.age_sum);
    assert_int_equal(d->told.age_count, counts.age_count);
    assert_int_equal(d->told.dry, 0);
}

static void learn(struct bench *b, struct chosen *c, struct rm_rng *rng)
{
    for (uint32_t i = 0; i < BATCH; i++)
        c->error[i] = rm_rng_below(rng, 5) ? 3 * rm_rng_float(rng) : 0;
    memcpy(c->batch.error, c->error, sizeof c->error);
    rm_sampler_learned(b->host.sampler, &c->batch);
    send(b->error, c->error, sizeof c->error);
    device->device->feed->learned(device, &b->draw, b->error);
}

static void near_doubles(const double *x, const double *y, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        if (!(fabs(x[i] - y[i]) <= (rm_test_emulated() ? 0 : 1e-12 * fabs(y[i]))))
            fail_msg("%llu: %.17g, the host has %.17g", (unsigned long long)i, x[i], y[i]);
}

/* All levels, and what stands in shared memory. */
static void compare_trees(struct bench *b)
{
    const struct rm_priorities *host = &b->host.tree, *kept = &b->there.tree;
    uint64_t entered[RINGS];
    double largest;
    device->device->finish(device);
    for (uint32_t l = 0; l < host->levels; l++) {
        double *level = malloc(host->nodes[l] * sizeof *level);
        assert_non_null(level);
        fetch(level, b->draw.tree.level[l], host->nodes[l] * sizeof *level);
        near_doubles(level, host->level[l], host->nodes[l]);
        if (l == 0)
            assert_memory_equal(level, kept->level[0], SLOTS * WORLDS * sizeof *level);
        free(level);
    }
    fetch(entered, b->draw.tree.entered, sizeof entered);
    fetch(&largest, b->draw.tree.largest, sizeof largest);
    near_doubles(&largest, (const double *)(const void *)&host->shared->largest, 1);
    assert_true(largest == RM_PEEK(&kept->shared->largest));
    for (uint32_t i = 0; i < RINGS; i++) {
        assert_int_equal(entered[i], RM_PEEK(&host->entered[i]));
        assert_int_equal(entered[i], RM_PEEK(&kept->entered[i]));
    }
}

/* --- the tests ------------------------------------------------------------------------------- */

/* Rows come a few at a time, none, or more than a ring holds. */
static uint32_t rows_of_round(uint32_t round)
{
    static const uint32_t counts[] = {9, 1, 0, 3, 7, 2, 90, 1, 40, 0};
    return round == 0 ? 12 : counts[round % 10];
}

static void draw_side_by_side(bool by_priority, uint32_t stack)
{
    struct bench b;
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, stack, by_priority);
    set_up(&b, by_priority, stack);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        static struct drawn d;
        static struct chosen c;
        const double beta = 0.4 + 0.02 * round;
        write_rows(&b, rows_of_round(round));
        assert_true(draw_here(&b, round + 1, beta, &c));
        draw_there(&b, round + 1, beta, &d);
        compare_draws(&b, &d, &c);
        if (!by_priority)
            continue;
        learn(&b, &c, &rng);
        compare_trees(&b);
    }
    tear_down(&b);
}

static void in_every_order(void (*run)(void))
{
    static const char *const orders[] = {"forward", "reverse", "random:7"};
    for (int i = 0; i < (rm_test_emulated() ? 3 : 1); i++) {
        rm_test_emulated_order(orders[i]);
        run();
    }
    rm_test_emulated_order(NULL);
}

static void uniformly(void)
{
    draw_side_by_side(false, 1);
    draw_side_by_side(false, 4);
}

static void by_priority(void)
{
    draw_side_by_side(true, 1);
    draw_side_by_side(true, 4);
}

static void uniform_draws_are_the_hosts(void **state)
{
    (void)state;
    in_every_order(uniformly);
}

static void draws_by_priority_are_the_hosts(void **state)
{
    (void)state;
    in_every_order(by_priority);
}

/* Leaves of what is not there any more: as after rows that nobody saw coming. */
static void what_is_gone_is_drawn_again(void **state)
{
    struct bench b;
    static struct drawn d;
    static struct chosen c;
    (void)state;
    set_up(&b, true, 2);
    write_rows(&b, 60);
    assert_true(draw_here(&b, 1, 1, &c));
    draw_there(&b, 1, 1, &d);
    /* Rows that end an episode, or are the newest, begin nothing. */
    struct rm_priorities *host = &b.host.tree;
    uint32_t added = 0;
    for (uint64_t leaf = 0; leaf < SLOTS * WORLDS; leaf++) {
        const double much = 3 + (double)(leaf % 5);
        if (rm_priority_at(host, leaf) > 0)
            continue;
        rm_priority_set(host, &leaf, &much, 1);
        added++;
    }
    assert_true(added > 10);
    send(b.draw.tree.level[0], host->level[0], host->nodes[0] * sizeof(double));
    memcpy(b.there.tree.level[0], host->level[0], SLOTS * WORLDS * sizeof(double));
    device->device->feed->add_up(device, &b.draw);
    /* The host counts what there is when it begins. */
    const struct rm_sampler_counts before = rm_sampler_counts(b.host.sampler);
    for (uint64_t u = 2; u < 8; u++) {
        assert_true(draw_here(&b, u, 1, &c));
        draw_there(&b, u, 1, &d);
        compare_draws(&b, &d, &c);
        compare_trees(&b);
    }
    assert_true(d.told.rejected > before.rejected + 10);
    tear_down(&b);
}

/* --- words that are drawn again -------------------------------------------------------------- */

/* More rows than there are stand for each other, so that a quarter of all words is drawn again. */
static void words_that_are_drawn_again_move_the_others(void **state)
{
    enum { LONGEST = 3u << 30 };
    struct bench b;
    static struct drawn d;
    (void)state;
    set_up(&b, false, 1);
    write_rows(&b, RING_ROWS);
    draw_there(&b, 1, 1, &d);
    const struct rm_device_knobs knobs = {.before = 6};
    struct {
        struct rm_device_turn turn;
        struct rm_row_span spans[RINGS];
    } asked = {.turn.longest = LONGEST};
    for (uint32_t i = 0; i < RINGS; i++)
        asked.spans[i] = (struct rm_row_span){rm_ring_committed(&b.rings[i]), LONGEST, LONGEST};
    send((void *)(uintptr_t)b.draw.knobs, &knobs, sizeof knobs);
    send((void *)(uintptr_t)b.draw.turn, &asked, sizeof asked);
    device->device->feed->draw(device, &b.draw);
    fetch(d.picks, b.draw.picks, sizeof d.picks);
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_SAMPLE, 2, 7);
    const struct rm_transition_rule rule = {3, 1, 0.9};
    for (uint32_t i = 0; i < BATCH;) {
        struct rm_transition_found found;
        const uint64_t distance = 1 + (uint64_t)rm_rng_below(&rng, LONGEST);
        const uint32_t world = rm_rng_below(&rng, WORLDS), source = world > 0;
        const struct rm_row_view view = rm_rows_of(&b.rings[source]);
        if (!rm_view_look(&view, &asked.spans[source], distance, world - source, &rule, &found))
            continue;
        assert_true(d.picks[i].row == asked.spans[source].end - distance);
        assert_int_equal(d.picks[i].source, source);
        assert_int_equal(d.picks[i].lane, world - source);
        assert_int_equal(d.picks[i++].steps, found.steps);
    }
    assert_true(rng.counter[0] * 4 > BATCH * 2 * 5 / 4);
    tear_down(&b);
}

/* --- too little ------------------------------------------------------------------------------ */

static void dead_rows(struct bench *b, uint32_t count)
{
    for (uint32_t w = 0; w < WORLDS; w++)
        for (uint32_t i = 0; i < count; i++)
            rows.cell[w][b->written + i].flags = RM_FLAG_DEAD;
    write_rows(b, count);
}

static void nothing_to_draw_stops_updates(bool by_priority)
{
    struct bench b;
    static struct drawn d;
    static struct chosen c;
    set_up(&b, by_priority, 1);
    dead_rows(&b, 20);
    for (uint64_t u = 1; u < 4; u++) {
        assert_false(draw_here(&b, 1, 1, &c));
        draw_there(&b, 1, 1, &d);
        assert_int_equal(d.figures.stop, 1);
        assert_int_equal(d.told.dry, u);
        assert_int_equal(d.told.age_count, 0);
    }
    /* Rows have come, and still nothing is drawn before the host has heard of it. */
    write_rows(&b, 30);
    draw_there(&b, 1, 1, &d);
    assert_int_equal(d.told.dry, 4);
    device->device->clear(device, RM_STREAM_COMPUTE, &b.draw.figures->stop, sizeof(uint32_t));
    draw_there(&b, 1, 1, &d);
    assert_true(draw_here(&b, 1, 1, &c));
    assert_int_equal(d.figures.stop, 0);
    assert_int_equal(d.told.dry, 4);
    assert_memory_equal(d.picks, c.picks, sizeof d.picks);
    tear_down(&b);
}

static void draws_that_find_nothing_stop_updates(void **state)
{
    (void)state;
    nothing_to_draw_stops_updates(false);
    nothing_to_draw_stops_updates(true);
}

/* Rows that their writer has taken back by the time they are copied are left out, as on the host.
 */
static void rows_overtaken_by_their_writer_are_left_out(void **state)
{
    struct bench b;
    static struct drawn d;
    static struct chosen c;
    uint32_t old = 0;
    (void)state;
    set_up(&b, false, 2);
    write_rows(&b, 60);
    for (uint32_t i = 0; i < RINGS; i++)
        rm_test_rows_write(&rows, &b.rings[i], i ? 1 : 0, 60, 100);
    assert_true(draw_here(&b, 1, 1, &c));
    draw_there(&b, 1, 1, &d);
    assert_memory_equal(d.picks, c.picks, sizeof d.picks);
    for (uint32_t i = 0; i < BATCH; i++) {
        const uint64_t first = b.rings[d.picks[i].source].spec.first_index;
        assert_true(d.picks[i].row - d.picks[i].before - first >= 100 - RING_ROWS);
        old += d.picks[i].row - first < 45;
    }
    assert_true(old > 0);
    tear_down(&b);
}

/* A skipped update teaches nothing. */
static void skipped_updates_leave_priorities(void **state)
{
    struct bench b;
    static struct drawn d;
    static struct chosen c;
    float error[BATCH];
    const uint32_t skip = 1;
    (void)state;
    set_up(&b, true, 1);
    write_rows(&b, 40);
    assert_true(draw_here(&b, 1, 1, &c));
    draw_there(&b, 1, 1, &d);
    for (uint32_t i = 0; i < BATCH; i++)
        error[i] = NAN;
    send(b.error, error, sizeof error);
    send(&b.draw.figures->skip, &skip, sizeof skip);
    device->device->feed->learned(device, &b.draw, b.error);
    compare_trees(&b);
    tear_down(&b);
}

/* Another feed of the same shared memory: rows cross anew, priorities are what they were. */
static void a_successor_finds_the_same_tree(void **state)
{
    struct bench b;
    static struct drawn d;
    static struct chosen c;
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, 3, 3);
    (void)state;
    set_up(&b, true, 2);
    for (uint32_t round = 0; round < 8; round++) {
        write_rows(&b, round ? 5 : 20);
        assert_true(draw_here(&b, round + 1, 1, &c));
        draw_there(&b, round + 1, 1, &d);
        compare_draws(&b, &d, &c);
        learn(&b, &c, &rng);
    }
    struct bench other = b;
    device->device->finish(device);
    rm_feed_destroy(b.feed);
    make_feed(&other);
    write_rows(&other, 6);
    for (uint64_t u = 9; u < 14; u++) {
        assert_true(draw_here(&other, u, 0.7, &c));
        draw_there(&other, u, 0.7, &d);
        assert_memory_equal(d.picks, c.picks, sizeof d.picks);
        learn(&other, &c, &rng);
        compare_trees(&other);
    }
    tear_down(&other);
    b.feed = NULL;
    const void *made[] = {b.draw.knobs,  b.draw.turn, b.draw.figures,  b.draw.told,
                          b.draw.picks,  b.draw.ret,  b.draw.discount, b.draw.action,
                          b.draw.weight, b.draw.leaf, b.error};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        device->ops->release(device, (float *)(uintptr_t)made[i]);
}

static void a_replay_that_does_not_fit_is_refused(void **state)
{
    struct bench b;
    struct rm_feed *feed;
    (void)state;
    if (!rm_test_emulated())
        skip();
    set_up(&b, true, 1);
    const struct rm_sampler_spec spec = spec_of(&b, &b.there);
    const struct rm_feed_spec asked = {
        .backend = device, .sampler = &spec, .kind = RM_FEED_RESIDENT, .name = "policy"};
    for (unsigned nth = 1; nth <= 5; nth++) {
        char fault[32];
        snprintf(fault, sizeof fault, "cudaMalloc:2@%u", nth);
        rm_test_emulated_fault(fault);
        assert_int_equal(rm_feed_create(&feed, &asked, &failure), -ENOMEM);
        assert_non_null(strstr(failure.text, "bytes asked for"));
        if (nth > 1) /* the first is the table of any feed */
            assert_non_null(strstr(failure.text, "learner.feed \"resident\""));
    }
    rm_feed_destroy(b.feed); /* two cannot have the same priorities */
    b.feed = NULL;
    rm_test_emulated_fault("cudaHostRegister:801@1+");
    assert_int_equal(rm_feed_create(&feed, &asked, &failure), -ENOTSUP);
    assert_non_null(strstr(failure.text, "priorities"));
    rm_test_emulated_fault(NULL);
    tear_down(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_device, close_device)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(uniform_draws_are_the_hosts),
        TEST(draws_by_priority_are_the_hosts),
        TEST(what_is_gone_is_drawn_again),
        TEST(words_that_are_drawn_again_move_the_others),
        TEST(draws_that_find_nothing_stop_updates),
        TEST(rows_overtaken_by_their_writer_are_left_out),
        TEST(skipped_updates_leave_priorities),
        TEST(a_successor_finds_the_same_tree),
        TEST(a_replay_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
