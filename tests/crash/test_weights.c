/* kill -9 of a learner while it publishes, at every named site and at random moments: readers
 * always find the last whole version, and the next learner goes on from it without a gap. */
#include "tests/crash/fault_build.h"
#include "tests/crash/victim.h"
#include "tests/support/crew.h"
#include "tests/support/unit.h"

#include "shm/base/rng.h"

#define COUNT 5003u

static struct rm_error failure;

struct scene {
    struct rm_weights weights;
    _Atomic uint64_t life; /* which learner: part of what it publishes */
    _Atomic uint32_t stop;
    _Atomic uint64_t checked, newest;
};

static float value_at(uint64_t version, uint64_t life, uint64_t i)
{
    return (float)((version * 7919 + life * 104729 + i) & 0xffffff);
}

static struct scene *begin(void)
{
    struct scene *s = rm_crew_memory(sizeof *s);
    if (rm_weights_create(&s->weights, 0, COUNT, COUNT, &failure))
        fail_msg("%s", failure.text);
    return s;
}

static int learner(void *arg)
{
    struct scene *s = arg;
    static float params[COUNT];
    uint64_t life = RM_PEEK(&s->life);
    while (!RM_SEE(&s->stop)) {
        uint64_t version = rm_weights_latest(&s->weights).version + 1;
        for (uint64_t i = 0; i < COUNT; i++)
            params[i] = value_at(version, life, i);
        struct rm_weights_stamp stamp = {.updates = life, .round = version + life};
        if (rm_weights_publish(&s->weights, params, stamp) != version)
            return 1;
    }
    return 0;
}

/* 0 when the latest version is whole, or nothing is published. */
static int check(struct scene *s, uint64_t *version)
{
    static float params[COUNT];
    struct rm_weights_stamp stamp;
    *version = 0;
    if (!rm_weights_read(&s->weights, params, COUNT, &stamp, NULL))
        return 0;
    *version = stamp.version;
    if (stamp.round != stamp.version + stamp.updates)
        return 1;
    for (uint64_t i = 0; i < COUNT; i++)
        if (params[i] != value_at(stamp.version, stamp.updates, i))
            return 2;
    return 0;
}

static int reader(void *arg)
{
    struct scene *s = arg;
    uint64_t last = 0, version;
    while (!RM_SEE(&s->stop)) {
        int rc = check(s, &version);
        if (rc)
            return rc;
        if (version < last)
            return 3;
        last = version;
        if (version)
            RM_ADD(&s->checked, 1);
        rm_atomic_max(&s->newest, version);
    }
    return 0;
}

static void learner_dies_at_every_site(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned published; /* does the version being published count? */
    } sites[] = {
        {"weights.publish.before", 0},  {"weights.publish.begun", 0},
        {"weights.publish.stamped", 0}, {"weights.publish.half", 0},
        {"weights.publish.filled", 0},  {"weights.publish.sealed", 0},
        {"weights.publish.after", 1},
    };
    struct scene *s = begin();
    pid_t readers[2] = {victim_start(reader, s, NULL, 0), victim_start(reader, s, NULL, 0)};
    uint64_t expected = 0, version;
    for (size_t i = 0; i < sizeof sites / sizeof sites[0]; i++)
        for (unsigned nth = 1; nth <= 5; nth += 2)
            for (int again = 0; again < 2; again++) { /* die twice over the same slot */
                s->life++;
                pid_t pid = victim_start(learner, s, sites[i].name, nth);
                assert_int_equal(victim_wait(pid), VICTIM_KILLED);
                expected += nth - 1 + sites[i].published;
                assert_int_equal(check(s, &version), 0);
                assert_int_equal(version, expected);
                assert_int_equal(rm_weights_latest(&s->weights).version, expected);
            }
    RM_RAISE(&s->stop, 1);
    assert_int_equal(victim_wait(readers[0]), 0);
    assert_int_equal(victim_wait(readers[1]), 0);
    assert_true(s->checked > 0);
    rm_weights_close(&s->weights);
}

static void random_kills(void **state)
{
    (void)state;
    struct rm_rng rng = rm_rng_at(3, RM_STREAM_TEST, 0, 0);
    struct scene *s = begin();
    pid_t readers[2] = {victim_start(reader, s, NULL, 0), victim_start(reader, s, NULL, 0)};
    uint64_t version = 0;
    const unsigned kills = (unsigned)(40 * rm_torture_seconds(1.0));
    for (unsigned i = 0; i < kills; i++) {
        uint64_t before = version;
        s->life++;
        pid_t pid = victim_start(learner, s, NULL, 0);
        while (rm_weights_latest(&s->weights).version == before)
            usleep(100);
        usleep(rm_rng_below(&rng, 5000));
        kill(pid, SIGKILL);
        assert_int_equal(victim_wait(pid), VICTIM_KILLED);
        assert_int_equal(check(s, &version), 0);
        assert_true(version > before);
    }
    /* A new version still reaches the readers. */
    while (RM_PEEK(&s->newest) < version && waitpid(readers[0], NULL, WNOHANG) == 0)
        usleep(1000);
    RM_RAISE(&s->stop, 1);
    assert_int_equal(victim_wait(readers[0]), 0);
    assert_int_equal(victim_wait(readers[1]), 0);
    printf("  %u kills, %llu versions, %llu copies checked\n", kills, (unsigned long long)version,
           (unsigned long long)s->checked);
    rm_weights_close(&s->weights);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learner_dies_at_every_site),
        cmocka_unit_test(random_kills),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
