/* One writer and its readers in processes of their own, over the index wrap, for
 * RM_TORTURE_SECONDS: a row that was called intact is whole, and a rollout row arrives once and in
 * order. */
#include "tests/support/crew.h"
#include "tests/support/unit.h"

#include "shm/atomic.h"
#include "shm/base/clock.h"
#include "shm/base/rng.h"
#include "shm/wake.h"

#include <stdio.h>
#include <unistd.h>

static struct rm_error error;

struct course {
    struct rm_ring ring;
    struct rm_wake_word writer_word, reader_word;
    struct rm_wake writer, reader;
    _Atomic uint32_t done;
    _Atomic uint32_t met; /* readers that have a good copy, or have failed */
    _Atomic uint64_t written, good, spoiled, sleeps;
    uint64_t end_ns;
};

static struct course *begin(enum rm_ring_mode mode, uint32_t rows, uint32_t obs_bytes)
{
    struct course *c = rm_crew_memory(sizeof *c);
    struct rm_ring_spec spec = {.mode = mode,
                                .rows = rows,
                                .lanes = 3,
                                .obs_bytes = obs_bytes,
                                .mask_bytes = 5,
                                .action_words = 1,
                                .columns = RM_COLUMN_MASK | RM_COLUMN_LOGP,
                                .first_index = UINT64_MAX - 100};
    if (rm_ring_create(&c->ring, &spec, &error))
        fail_msg("%s", error.text);
    c->writer = (struct rm_wake){&c->writer_word, rm_wake_create_fd(&error)};
    c->reader = (struct rm_wake){&c->reader_word, rm_wake_create_fd(&error)};
    c->end_ns = rm_now_ns() + (uint64_t)(rm_torture_seconds(1.0) * 1e9);
    return c;
}

static void end(struct course *c)
{
    printf("  rows written %llu, copies good %llu, spoiled %llu, sleeps %llu\n",
           (unsigned long long)c->written, (unsigned long long)c->good,
           (unsigned long long)c->spoiled, (unsigned long long)c->sleeps);
    rm_ring_close(&c->ring);
    close(c->writer.fd);
    close(c->reader.fd);
}

/* --- replay ---------------------------------------------------------------------------------- */

#define READERS 2

/* Time is up, and everybody has had enough of it: on a busy host that takes longer. */
static bool is_over(struct course *c, uint32_t readers)
{
    return rm_now_ns() >= c->end_ns && RM_PEEK(&c->written) > 200 && RM_PEEK(&c->met) >= readers;
}

static int replay_writer(void *arg, uint32_t who)
{
    struct course *c = arg;
    (void)who;
    rm_ring_writer_open(&c->ring);
    while (!is_over(c, READERS)) {
        for (int i = 0; i < 64; i++) {
            struct rm_row row;
            if (rm_ring_reserve(&c->ring, &row) != 1)
                return 1;
            rm_pattern_row(&c->ring, &row);
            rm_ring_commit(&c->ring);
        }
        RM_ADD(&c->written, 64);
    }
    RM_RAISE(&c->done, 1);
    return 0;
}

static int read_on(struct course *c, uint32_t who)
{
    struct rm_rng rng = rm_rng_at(who, RM_STREAM_TEST, 0, 0);
    uint64_t good = 0, spoiled = 0, last_end = c->ring.spec.first_index;
    while (!RM_SEE(&c->done)) {
        uint64_t first, behind;
        rm_ring_window(&c->ring, &first, &behind);
        if (behind - first > c->ring.spec.rows)
            return 2;
        if ((int64_t)(behind - last_end) < 0)
            return 3; /* committed went backwards */
        last_end = behind;
        if (first == behind)
            continue;
        /* Mostly the oldest rows, which the writer is about to overwrite. */
        uint32_t span = (uint32_t)(behind - first);
        uint32_t at = rm_rng_below(&rng, 4) ? rm_rng_below(&rng, span < 3 ? span : 3)
                                            : rm_rng_below(&rng, span);
        bool whole;
        uint64_t generation;
        if (!rm_pattern_check(&c->ring, first + at, &whole, &generation)) {
            spoiled++;
            continue;
        }
        if (!whole || generation != 1)
            return 4;
        if (good++ == 0)
            RM_ADD(&c->met, 1);
    }
    RM_ADD(&c->good, good);
    RM_ADD(&c->spoiled, spoiled);
    return 0;
}

static int replay_reader(void *arg, uint32_t who)
{
    struct course *c = arg;
    const int reason = read_on(c, who);
    if (reason)
        RM_ADD(&c->met, 1);
    return reason;
}

static void replay_is_never_torn(void **state)
{
    (void)state;
    struct course *c = begin(RM_RING_REPLAY, 16, 700);
    struct rm_crew crew = {0};
    rm_crew_start(&crew, replay_writer, c);
    for (int i = 0; i < READERS; i++)
        rm_crew_start(&crew, replay_reader, c);
    assert_int_equal(rm_crew_join(&crew), 0);
    assert_true(c->good >= READERS && c->written > 200); /* over the wrap and many times round */
    end(c);
}

/* --- rollout --------------------------------------------------------------------------------- */

static int rollout_writer(void *arg, uint32_t who)
{
    struct course *c = arg;
    (void)who;
    rm_ring_writer_open(&c->ring);
    while (!is_over(c, 0)) {
        struct rm_row row;
        if (!rm_ring_reserve(&c->ring, &row)) {
            rm_wake_prepare(&c->writer);
            if (rm_ring_reserve(&c->ring, &row)) {
                rm_wake_cancel(&c->writer);
            } else {
                RM_ADD(&c->sleeps, 1);
                rm_wake_wait(&c->writer, 0);
                continue;
            }
        }
        rm_pattern_row(&c->ring, &row);
        rm_ring_commit(&c->ring);
        RM_ADD(&c->written, 1);
        rm_wake_signal(&c->reader);
    }
    RM_RAISE(&c->done, 1);
    rm_wake_signal(&c->reader);
    return 0;
}

static int rollout_reader(void *arg, uint32_t who)
{
    struct course *c = arg;
    (void)who;
    uint64_t next = rm_ring_consumed(&c->ring);
    if (next != c->ring.spec.first_index)
        return 2;
    for (;;) {
        uint32_t done = RM_SEE(&c->done);
        uint64_t committed = rm_ring_committed(&c->ring);
        if (committed - next > c->ring.spec.rows)
            return 3;
        if (committed == next) {
            if (done)
                return 0;
            rm_wake_prepare(&c->reader);
            if (rm_ring_committed(&c->ring) != next || RM_SEE(&c->done)) {
                rm_wake_cancel(&c->reader);
            } else {
                RM_ADD(&c->sleeps, 1);
                rm_wake_wait(&c->reader, 0);
            }
            continue;
        }
        bool whole;
        uint64_t generation;
        if (!rm_pattern_check(&c->ring, next, &whole, &generation) || !whole)
            return 4;
        rm_ring_consume(&c->ring, ++next);
        rm_wake_signal(&c->writer);
        RM_ADD(&c->good, 1);
    }
}

static void rollout_arrives_once_and_in_order(void **state)
{
    (void)state;
    for (uint32_t rows = 4; rows <= 256; rows *= 64) {
        struct course *c = begin(RM_RING_ROLLOUT, rows, 100);
        struct rm_crew crew = {0};
        rm_crew_start(&crew, rollout_writer, c);
        rm_crew_start(&crew, rollout_reader, c);
        assert_int_equal(rm_crew_join(&crew), 0);
        assert_int_equal(c->good, c->written);
        assert_true(c->written > 200);
        end(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_is_never_torn),
        cmocka_unit_test(rollout_arrives_once_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
