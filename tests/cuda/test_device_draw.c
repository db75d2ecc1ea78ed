/* Batches that a device draws for itself, beside those that the host's sampler draws of the same
 * rows: the same items to the bit, uniformly and by priority, over ends of episodes, over the end
 * of a ring and by rows that are gone; and the tree with its copy in shared memory. */
#include "learner/priority_tree.h"
#include "learner/sampler_source.h"
#include "tests/support/draws.h"
#include "tests/support/effort.h"
#include "tests/support/emulated.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROUNDS = 30 };

static struct rm_error failure;

/* Rows come a few at a time, none, or more than a ring holds. */
static uint32_t rows_of_round(uint32_t round)
{
    static const uint32_t counts[] = {9, 1, 0, 3, 7, 2, 90, 1, 40, 0};
    return round == 0 ? 12 : counts[round % 10];
}

static void draw_side_by_side(bool by_priority, uint32_t stack)
{
    struct rm_test_draws b;
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, stack, by_priority);
    rm_test_draws_open(&b, by_priority, stack);
    for (uint32_t round = 0; round < rm_test_effort(ROUNDS, 8); round++) {
        static struct rm_test_drawn d;
        static struct rm_test_chosen c;
        const double beta = 0.4 + 0.02 * round;
        rm_test_draws_write(&b, rows_of_round(round));
        assert_true(rm_test_draws_here(&b, round + 1, beta, &c));
        rm_test_draws_there(&b, round + 1, beta, &d);
        rm_test_draws_same(&b, &d, &c);
        if (!by_priority)
            continue;
        rm_test_draws_learn(&b, &c, &rng);
        rm_test_draws_same_trees(&b);
    }
    rm_test_draws_close(&b);
}

static void in_every_order(void (*run)(void))
{
    static const char *const orders[] = {"forward", "reverse", "random:7"};
    for (int i = 0; i < (rm_test_emulated() ? 3 : 1); i += (int)rm_test_effort(1, 2)) {
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

/* Leaves of rows that have been overwritten, as after rows that the device has not seen. */
static void what_is_gone_is_drawn_again(void **state)
{
    struct rm_test_draws b;
    static struct rm_test_drawn d;
    static struct rm_test_chosen c;
    (void)state;
    rm_test_draws_open(&b, true, 2);
    rm_test_draws_write(&b, 60);
    assert_true(rm_test_draws_here(&b, 1, 1, &c));
    rm_test_draws_there(&b, 1, 1, &d);
    /* Rows that end an episode, or are the newest, begin nothing. */
    struct rm_priorities *host = &b.host.tree;
    uint32_t added = 0;
    for (uint64_t leaf = 0; leaf < RM_DRAWS_SLOTS * RM_DRAWS_WORLDS; leaf++) {
        const double much = 3 + (double)(leaf % 5);
        if (rm_priority_at(host, leaf) > 0)
            continue;
        rm_priority_set(host, &leaf, &much, 1);
        added++;
    }
    assert_true(added > 10);
    rm_test_draws_send(b.draw.tree.level[0], host->level[0], host->nodes[0] * sizeof(double));
    memcpy(b.there.tree.level[0], host->level[0],
           RM_DRAWS_SLOTS * RM_DRAWS_WORLDS * sizeof(double));
    rm_test_draws_device->device->feed->add_up(rm_test_draws_device, &b.draw);
    /* The host counts what there is when it begins. */
    const struct rm_sampler_counts before = rm_sampler_counts(b.host.sampler);
    for (uint64_t u = 2; u < 8; u++) {
        assert_true(rm_test_draws_here(&b, u, 1, &c));
        rm_test_draws_there(&b, u, 1, &d);
        rm_test_draws_same(&b, &d, &c);
        rm_test_draws_same_trees(&b);
    }
    assert_true(d.drawn.rejected > before.rejected + 10);
    rm_test_draws_close(&b);
}

/* --- words that are drawn again -------------------------------------------------------------- */

/* More rows than there are stand for each other, so that a quarter of all words is drawn again. */
static void words_that_are_drawn_again_move_the_others(void **state)
{
    enum { LONGEST = 3u << 30 };
    struct rm_test_draws b;
    static struct rm_test_drawn d;
    (void)state;
    rm_test_draws_open(&b, false, 1);
    rm_test_draws_write(&b, RM_DRAWS_RING_ROWS);
    rm_test_draws_there(&b, 1, 1, &d);
    const struct rm_update_knobs knobs = {.before = 6};
    struct {
        struct rm_device_turn turn;
        struct rm_row_span spans[RM_DRAWS_RINGS];
    } asked = {.turn.longest = LONGEST};
    for (uint32_t i = 0; i < RM_DRAWS_RINGS; i++)
        asked.spans[i] = (struct rm_row_span){rm_ring_committed(&b.rings[i]), LONGEST, LONGEST};
    rm_test_draws_send((void *)b.draw.knobs, &knobs, sizeof knobs);
    rm_test_draws_send((void *)b.draw.turn, &asked, sizeof asked);
    rm_test_draws_device->device->feed->draw(rm_test_draws_device, &b.draw);
    rm_test_draws_fetch(d.picks, b.draw.picks, sizeof d.picks);
    struct rm_rng rng = rm_rng_at(5, RM_STREAM_SAMPLE, 2, 7);
    const struct rm_transition_rule rule = {3, 1, 0.9};
    for (uint32_t i = 0; i < RM_DRAWS_BATCH;) {
        struct rm_transition_found found;
        const uint64_t distance = 1 + (uint64_t)rm_rng_below(&rng, LONGEST);
        const uint32_t world = rm_rng_below(&rng, RM_DRAWS_WORLDS), source = world > 0;
        const struct rm_row_view view = rm_rows_of(&b.rings[source], UINT32_MAX);
        if (!rm_view_look(&view, &asked.spans[source], distance, world - source, &rule, &found))
            continue;
        assert_true(d.picks[i].row == asked.spans[source].end - distance);
        assert_int_equal(d.picks[i].source, source);
        assert_int_equal(d.picks[i].lane, world - source);
        assert_int_equal(d.picks[i++].steps, found.steps);
    }
    assert_true(rng.counter[0] * 4 > RM_DRAWS_BATCH * 2 * 5 / 4);
    rm_test_draws_close(&b);
}

/* --- too little ------------------------------------------------------------------------------ */

static void nothing_to_draw_stops_updates(bool by_priority)
{
    struct rm_test_draws b;
    static struct rm_test_drawn d;
    static struct rm_test_chosen c;
    rm_test_draws_open(&b, by_priority, 1);
    rm_test_draws_write_dead(&b, 20);
    for (uint64_t u = 1; u < 4; u++) {
        assert_false(rm_test_draws_here(&b, 1, 1, &c));
        rm_test_draws_there(&b, 1, 1, &d);
        assert_int_equal(d.figures.stop, 1);
        assert_int_equal(d.drawn.dry, u);
        assert_int_equal(d.drawn.age_count, 0);
    }
    /* Rows have arrived; nothing is drawn before the host has polled them. */
    rm_test_draws_write(&b, 30);
    rm_test_draws_there(&b, 1, 1, &d);
    assert_int_equal(d.drawn.dry, 4);
    rm_test_draws_device->ops->clear(rm_test_draws_device, &b.draw.figures->stop, sizeof(uint32_t));
    rm_test_draws_there(&b, 1, 1, &d);
    assert_true(rm_test_draws_here(&b, 1, 1, &c));
    assert_int_equal(d.figures.stop, 0);
    assert_int_equal(d.drawn.dry, 4);
    rm_test_draws_same_items(&b, &d, &c);
    rm_test_draws_close(&b);
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
    struct rm_test_draws b;
    static struct rm_test_drawn d;
    static struct rm_test_chosen c;
    uint32_t old = 0;
    (void)state;
    rm_test_draws_open(&b, false, 2);
    rm_test_draws_write(&b, 60);
    rm_test_draws_write_unseen(&b, 40);
    assert_true(rm_test_draws_here(&b, 1, 1, &c));
    rm_test_draws_there(&b, 1, 1, &d);
    rm_test_draws_same_items(&b, &d, &c);
    for (uint32_t i = 0; i < RM_DRAWS_BATCH; i++) {
        const uint64_t first = b.rings[d.picks[i].source].spec.first_index;
        assert_true(d.picks[i].row - d.picks[i].before - first >= 100 - RM_DRAWS_RING_ROWS);
        old += d.picks[i].row - first < 45;
    }
    assert_true(old > 0);
    rm_test_draws_close(&b);
}

/* A skipped update teaches nothing. */
static void skipped_updates_leave_priorities(void **state)
{
    struct rm_test_draws b;
    static struct rm_test_drawn d;
    static struct rm_test_chosen c;
    float error[RM_DRAWS_BATCH];
    const uint32_t skip = 1;
    (void)state;
    rm_test_draws_open(&b, true, 1);
    rm_test_draws_write(&b, 40);
    assert_true(rm_test_draws_here(&b, 1, 1, &c));
    rm_test_draws_there(&b, 1, 1, &d);
    for (uint32_t i = 0; i < RM_DRAWS_BATCH; i++)
        error[i] = NAN;
    rm_test_draws_send(b.error, error, sizeof error);
    rm_test_draws_send(&b.draw.figures->skip, &skip, sizeof skip);
    rm_test_draws_device->device->feed->learned(rm_test_draws_device, &b.draw, b.error);
    rm_test_draws_same_trees(&b);
    rm_test_draws_close(&b);
}

/* Another feed of the same shared memory: rows are copied again, priorities are unchanged. */
static void a_successor_finds_the_same_tree(void **state)
{
    struct rm_test_draws b;
    static struct rm_test_drawn d;
    static struct rm_test_chosen c;
    struct rm_rng rng = rm_rng_at(8, RM_STREAM_TEST, 3, 3);
    (void)state;
    rm_test_draws_open(&b, true, 2);
    for (uint32_t u = 1; u < 14; u++) {
        rm_test_draws_write(&b, u == 1 ? 20 : 5);
        if (u == 8) {
            rm_test_draws_leave(&b);
            rm_test_draws_feed(&b);
        }
        assert_true(rm_test_draws_here(&b, u, 0.7, &c));
        rm_test_draws_there(&b, u, 0.7, &d);
        rm_test_draws_same_items(&b, &d, &c);
        rm_test_draws_learn(&b, &c, &rng);
        rm_test_draws_same_trees(&b);
    }
    rm_test_draws_close(&b);
}

static void a_replay_that_does_not_fit_is_refused(void **state)
{
    struct rm_test_draws b;
    struct rm_feed *feed;
    (void)state;
    if (!rm_test_emulated())
        skip();
    rm_test_draws_open(&b, true, 1);
    const struct rm_sampler_spec spec = rm_test_draws_spec(&b, &b.there);
    const struct rm_feed_spec asked = {.backend = rm_test_draws_device,
                                       .sampler = &spec,
                                       .kind = RM_FEED_RESIDENT,
                                       .name = "policy"};
    for (unsigned nth = 1; nth <= 5; nth++) {
        char fault[32];
        snprintf(fault, sizeof fault, "cudaMalloc:2@%u", nth);
        rm_test_emulated_fault(fault);
        assert_int_equal(rm_feed_create(&feed, &asked, &failure), -ENOMEM);
        assert_non_null(strstr(failure.text, "bytes asked for"));
        if (nth > 1) /* the first is the table of any feed */
            assert_non_null(strstr(failure.text, "learner.feed \"resident\""));
    }
    rm_test_draws_leave(&b); /* two cannot have the same priorities */
    rm_test_emulated_fault("cudaHostRegister:801@1+");
    assert_int_equal(rm_feed_create(&feed, &asked, &failure), -ENOTSUP);
    assert_non_null(strstr(failure.text, "priorities"));
    rm_test_emulated_fault(NULL);
    rm_test_draws_close(&b);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rm_test_draws_begin, rm_test_draws_end)

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
