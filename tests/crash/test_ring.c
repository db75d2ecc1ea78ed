/* kill -9 of a ring's writer, and of its consumer, at every named site and at random moments: no
 * torn row is ever read, the other side goes on, the next process takes over in a new generation.
 */
#include "tests/crash/fault_build.h"
#include "tests/crash/victim.h"
#include "tests/support/crew.h"
#include "tests/support/unit.h"

#include "shm/base/rng.h"

#define ROWS 8u

static struct rm_error failure;

struct scene {
    struct rm_ring ring;
    struct rm_wake_word words[2];
    struct rm_wake writer, consumer;
    _Atomic uint64_t stop_at; /* the writer ends when this many rows are committed */
    _Atomic uint32_t stop_readers;
    _Atomic uint64_t lost;
    _Atomic uint64_t newest_generation; /* seen by the reader */
    _Atomic uint64_t checked;
    struct rm_wake *awaited; /* whose sleeper the other side waits for, before each of its first
                                rows: that one then sleeps, and this one signals. NULL: nobody's */
};

#define DAWDLED_ROWS 24u

static void dawdle(const struct scene *s, const struct rm_wake *other, uint64_t rows)
{
    while (s->awaited == other && rows < DAWDLED_ROWS && rows < RM_PEEK(&s->stop_at) &&
           !(RM_PEEK(&other->word->sleeping) & 1))
        usleep(20);
}

static struct scene *begin(enum rm_ring_mode mode)
{
    struct scene *s = rm_crew_memory(sizeof *s);
    struct rm_ring_spec spec = {.mode = mode,
                                .rows = ROWS,
                                .lanes = 2,
                                .obs_bytes = 333,
                                .action_words = 1,
                                .columns = RM_COLUMN_VALUE,
                                .first_index = UINT64_MAX - 20};
    if (rm_ring_create(&s->ring, &spec, &failure) || !s->ring.shared) {
        fail_msg("%s", failure.text);
        abort(); /* cmocka does not say that it never comes here */
    }
    s->writer = (struct rm_wake){&s->words[0], rm_wake_create_fd(&failure)};
    s->consumer = (struct rm_wake){&s->words[1], rm_wake_create_fd(&failure)};
    return s;
}

static void end(struct scene *s)
{
    rm_ring_close(&s->ring);
    close(s->writer.fd);
    close(s->consumer.fd);
}

static uint64_t rows_done(const struct scene *s)
{
    return rm_ring_committed(&s->ring) - s->ring.spec.first_index;
}

static int writer(void *arg)
{
    struct scene *s = arg;
    RM_ADD(&s->lost, rm_ring_writer_open(&s->ring));
    /* The dead one may have owed a signal: whoever takes over gives it. */
    rm_wake_signal(&s->consumer);
    while (rows_done(s) < RM_PEEK(&s->stop_at)) {
        struct rm_row row;
        if (!rm_ring_reserve(&s->ring, &row)) {
            rm_wake_prepare(&s->writer);
            if (rm_ring_committed(&s->ring) - rm_atomic_ring_credit(&s->ring.shared->consumed) <
                ROWS)
                rm_wake_cancel(&s->writer);
            else
                rm_wake_wait(&s->writer, 0);
            continue;
        }
        rm_pattern_row(&s->ring, &row);
        dawdle(s, &s->consumer, rows_done(s));
        rm_ring_offer(&s->ring);
        rm_ring_commit(&s->ring);
        rm_wake_signal(&s->consumer);
    }
    return 0;
}

/* Reads all rows, as a learner does, until it is stopped. */
static int replay_reader(void *arg)
{
    struct scene *s = arg;
    struct rm_rng rng = rm_rng_at(1, RM_STREAM_TEST, 0, 0);
    uint64_t newest = 0;
    while (!RM_SEE(&s->stop_readers)) {
        uint64_t first, behind, generation;
        bool whole;
        rm_ring_window(&s->ring, &first, &behind);
        if (first == behind)
            continue;
        uint64_t index = first + rm_rng_below(&rng, (uint32_t)(behind - first));
        if (!rm_pattern_check(&s->ring, index, &whole, &generation))
            continue;
        if (!whole)
            return 1;
        if (generation > newest)
            RM_RAISE(&s->newest_generation, newest = generation);
        RM_ADD(&s->checked, 1);
    }
    return 0;
}

/* Consumes every row in order until `stop_at` are consumed. */
static int consumer(void *arg)
{
    struct scene *s = arg;
    uint64_t next = rm_ring_consumed(&s->ring), newest = 0;
    rm_wake_signal(&s->writer);
    while (next - s->ring.spec.first_index < RM_PEEK(&s->stop_at)) {
        if (rm_ring_committed(&s->ring) == next) {
            rm_wake_prepare(&s->consumer);
            if (rm_ring_committed(&s->ring) != next)
                rm_wake_cancel(&s->consumer);
            else
                rm_wake_wait(&s->consumer, 0);
            continue;
        }
        uint64_t generation;
        bool whole;
        if (!rm_pattern_check(&s->ring, next, &whole, &generation) || !whole)
            return 1;
        if (generation < newest)
            return 2;
        RM_RAISE(&s->newest_generation, newest = generation);
        if (rows_done(s) < RM_PEEK(&s->stop_at))
            dawdle(s, &s->writer, next - s->ring.spec.first_index);
        rm_ring_consume(&s->ring, ++next);
        rm_wake_signal(&s->writer);
        RM_ADD(&s->checked, 1);
    }
    return 0;
}

static const struct {
    const char *name;
    unsigned lost; /* rows that dying here abandons */
} ring_sites[] = {
    {"ring.reserve.before", 0}, {"ring.reserve.reserved", 1}, {"ring.reserve.after", 1},
    {"ring.offer.before", 1},   {"ring.offer.after", 1},      {"ring.commit.before", 1},
    {"ring.commit.after", 0},
};
#define SITES (sizeof ring_sites / sizeof ring_sites[0])

static void replay_writer_dies_at_every_site(void **state)
{
    (void)state;
    struct scene *s = begin(RM_RING_REPLAY);
    pid_t reader = victim_start(replay_reader, s, NULL, 0);
    uint64_t generation = 0, lost = 0;
    static const unsigned passes[] = {1, 3, ROWS + 1, 5 * ROWS};
    for (size_t i = 0; i < SITES; i++)
        for (size_t n = 0; n < sizeof passes / sizeof passes[0]; n++) {
            uint64_t before = rows_done(s);
            s->stop_at = before + 1000;
            pid_t pid = victim_start(writer, s, ring_sites[i].name, passes[n]);
            assert_int_equal(victim_wait(pid), VICTIM_KILLED);
            generation++;
            assert_int_equal(s->ring.shared->generation, generation);
            uint64_t after = rows_done(s);
            unsigned done = passes[n] - (strcmp(ring_sites[i].name, "ring.commit.after") != 0);
            assert_int_equal(after - before, done);
            /* What it left behind is abandoned by the next, and counted once. */
            assert_int_equal(s->ring.shared->reserved - s->ring.shared->committed,
                             ring_sites[i].lost);
            lost += ring_sites[i].lost;
        }
    /* The last one lives, and what it writes is seen. */
    s->stop_at = rows_done(s) + 3 * ROWS;
    assert_int_equal(victim_wait(victim_start(writer, s, NULL, 0)), 0);
    assert_int_equal(s->lost, lost);
    while (RM_SEE(&s->newest_generation) < generation + 1 && kill(reader, 0) == 0 &&
           waitpid(reader, NULL, WNOHANG) == 0)
        usleep(1000);
    RM_RAISE(&s->stop_readers, 1);
    assert_int_equal(victim_wait(reader), 0);
    assert_int_equal(s->newest_generation, generation + 1);
    end(s);
}

static void writer_dies_while_taking_over(void **state)
{
    (void)state;
    struct scene *s = begin(RM_RING_REPLAY);
    s->stop_at = 1000;
    victim_wait(victim_start(writer, s, "ring.commit.before", ROWS + 4));
    uint64_t reserved = s->ring.shared->reserved;
    assert_int_equal(victim_wait(victim_start(writer, s, "ring.open.before", 1)), VICTIM_KILLED);
    assert_int_equal(s->ring.shared->generation, 1);
    assert_int_equal(victim_wait(victim_start(writer, s, "ring.open.after", 1)), VICTIM_KILLED);
    assert_int_equal(s->ring.shared->generation, 2);
    assert_int_equal(victim_wait(victim_start(writer, s, "ring.reserve.before", 1)), VICTIM_KILLED);
    assert_int_equal(s->ring.shared->generation, 3);
    assert_int_equal(s->ring.shared->reserved, reserved);
    /* The row that the first one spoiled is not offered; all that are, are whole. */
    uint64_t first, behind, generation;
    rm_ring_window(&s->ring, &first, &behind);
    assert_int_equal(behind - first, ROWS - 1);
    for (uint64_t i = first; i != behind; i++) {
        bool whole = false;
        assert_true(rm_pattern_check(&s->ring, i, &whole, &generation));
        assert_true(whole);
    }
    assert_false(rm_ring_intact(&s->ring, first - 1));
    assert_int_equal(victim_wait(victim_start(writer, s, NULL, 0)), 0);
    assert_int_equal(rows_done(s), 1000);
    /* One row, counted by each process that came upon it. */
    assert_int_equal(s->lost, 2);
    end(s);
}

static void rollout_goes_on_whoever_dies(void **state)
{
    (void)state;
    static const char *const writer_sites[] = {
        "ring.reserve.before", "ring.reserve.reserved", "ring.reserve.after",  "ring.offer.before",
        "ring.offer.after",    "ring.commit.before",    "ring.commit.after",   "wake.signal.before",
        "wake.signal.seen",    "wake.signal.written",   "wake.prepare.before", "wake.prepare.after",
        "wake.wait.before",    "wake.wait.woken",
    };
    static const char *const consumer_sites[] = {
        "ring.consume.before", "ring.consume.after",  "wake.signal.before",
        "wake.signal.seen",    "wake.signal.written", "wake.prepare.before",
        "wake.prepare.after",  "wake.wait.before",    "wake.wait.woken",
    };
    const size_t writers = sizeof writer_sites / sizeof writer_sites[0];
    const size_t consumers = sizeof consumer_sites / sizeof consumer_sites[0];
    for (size_t i = 0; i < writers + consumers; i++)
        for (unsigned nth = 1; nth <= 4; nth += 3) {
            struct scene *s = begin(RM_RING_ROLLOUT);
            const uint64_t total = 3000;
            s->stop_at = total;
            const bool writer_dies = i < writers;
            const char *site = writer_dies ? writer_sites[i] : consumer_sites[i - writers];
            /* Who is to die while going to sleep or getting up has to sleep, the other one while it
             * signals has to find somebody asleep. */
            const bool sleeps =
                strncmp(site, "wake.prepare", 12) == 0 || strncmp(site, "wake.wait", 9) == 0;
            s->awaited = writer_dies == sleeps ? &s->writer : &s->consumer;
            /* Both sides run with nobody else to wake them; the killed one is started anew. */
            pid_t w = victim_start(writer, s, writer_dies ? site : NULL, nth);
            pid_t c = victim_start(consumer, s, writer_dies ? NULL : site, nth);
            const int rc = victim_wait(writer_dies ? w : c);
            if (rc != VICTIM_KILLED)
                fail_msg("%s, pass %u: %d, nobody stopped there", site, nth, rc);
            pid_t heir = victim_start(writer_dies ? writer : consumer, s, NULL, 0);
            *(writer_dies ? &w : &c) = heir;
            assert_int_equal(victim_wait(heir), 0);
            assert_int_equal(victim_wait(writer_dies ? c : w), 0);
            assert_int_equal(rows_done(s), total);
            assert_int_equal(rm_ring_consumed(&s->ring), rm_ring_committed(&s->ring));
            /* Every row checked once; a consumer that died between reading and giving credit reads
             * that one again. */
            assert_true(s->checked >= total - 1 && s->checked <= total + 1);
            end(s);
        }
}

static void random_kills(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(2, RM_STREAM_TEST, 0, 0);
    struct scene *s = begin(RM_RING_REPLAY);
    pid_t readers[2] = {victim_start(replay_reader, s, NULL, 0),
                        victim_start(replay_reader, s, NULL, 0)};
    s->stop_at = UINT64_MAX;
    const unsigned kills = (unsigned)(40 * rm_torture_seconds(1.0));
    for (unsigned i = 0; i < kills; i++) {
        uint64_t before = rows_done(s), generation = s->ring.shared->generation;
        pid_t pid = victim_start(writer, s, NULL, 0);
        while (rows_done(s) == before)
            usleep(100);
        usleep(rm_rng_below(&rng, 5000));
        kill(pid, SIGKILL);
        assert_int_equal(victim_wait(pid), VICTIM_KILLED);
        assert_int_equal(s->ring.shared->generation, generation + 1);
    }
    RM_RAISE(&s->stop_readers, 1);
    assert_int_equal(victim_wait(readers[0]), 0);
    assert_int_equal(victim_wait(readers[1]), 0);
    printf("  %u kills, %llu rows, %llu lost, %llu copies checked\n", kills,
           (unsigned long long)rows_done(s), (unsigned long long)s->lost,
           (unsigned long long)s->checked);
    assert_true(s->checked > 0);
    end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replay_writer_dies_at_every_site),
        cmocka_unit_test(writer_dies_while_taking_over),
        cmocka_unit_test(rollout_goes_on_whoever_dies),
        cmocka_unit_test(random_kills),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
