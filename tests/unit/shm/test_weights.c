/* shm/weights: versions, stamps, rounds, and takeover from a writer that died. */
#include "tests/support/unit.h"

#include "shm/layout.h"
#include "shm/weights.h"

#include <errno.h>
#include <string.h>

#define COUNT 1003u /* not a multiple of anything */

static struct rm_error error;
static float params[COUNT], got[COUNT];

static uint64_t publish(struct rm_weights *w, float value, uint64_t round)
{
    for (unsigned i = 0; i < COUNT; i++)
        params[i] = value + (float)i;
    return rm_weights_publish(w, params,
                              (struct rm_weights_stamp){.updates = 10 * round, .round = round});
}

static void expect_params(float value, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_true(got[i] == value + (float)i);
}

static void nothing_before_the_first(void **state)
{
    (void)state;
    struct rm_weights w;
    struct rm_weights_stamp stamp = {.version = 99};
    assert_int_equal(rm_weights_create(&w, 0, COUNT, 1000, &error), 0);
    assert_int_equal(rm_weights_read(&w, got, COUNT, &stamp, NULL), 0);
    assert_int_equal(stamp.version, 0);
    assert_int_equal(rm_weights_latest(&w).version, 0);
    assert_int_equal(rm_weights_read_before(&w, 5, got, COUNT, &stamp), 0);
    rm_weights_close(&w);
}

static void versions_count_without_gaps(void **state)
{
    (void)state;
    struct rm_weights w, reader;
    struct rm_weights_stamp stamp;
    uint64_t retries = 0;
    assert_int_equal(rm_weights_create(&w, 3, COUNT, 1000, &error), 0);
    assert_int_equal(rm_weights_attach(&reader, w.region.fd, false, &error), RM_ATTACH_OK);
    assert_int_equal(reader.count, COUNT);
    assert_int_equal(reader.act_count, 1000);
    for (uint64_t v = 1; v <= 10; v++) {
        assert_int_equal(publish(&w, (float)v, v), v);
        assert_int_equal(rm_weights_read(&reader, got, COUNT, &stamp, &retries), 1);
        assert_int_equal(stamp.version, v);
        assert_int_equal(stamp.updates, 10 * v);
        assert_int_equal(stamp.round, v);
        assert_true(stamp.time_ns > 0);
        expect_params((float)v, COUNT);
        assert_int_equal(rm_weights_latest(&reader).updates, 10 * v);
    }
    assert_int_equal(retries, 0);

    memset(got, 0, sizeof got); /* only as many as asked for */
    assert_int_equal(rm_weights_read(&reader, got, 5, &stamp, NULL), 1);
    expect_params(10, 5);
    assert_true(got[5] == 0);
    rm_weights_close(&reader);
    rm_weights_close(&w);
}

static void reads_what_was_published_before_a_round(void **state)
{
    (void)state;
    struct rm_weights w;
    struct rm_weights_stamp stamp;
    assert_int_equal(rm_weights_create(&w, 0, COUNT, COUNT, &error), 0);
    publish(&w, 1, 0);
    assert_int_equal(rm_weights_read_before(&w, 0, got, COUNT, &stamp), 0);
    assert_int_equal(stamp.version, 0);
    assert_int_equal(rm_weights_read_before(&w, 1, got, COUNT, &stamp), 1);
    assert_int_equal(stamp.version, 1);
    publish(&w, 2, 1);
    publish(&w, 3, 4);
    static const struct {
        uint64_t round, version;
    } expected[] = {{1, 1}, {2, 2}, {3, 2}, {4, 2}, {5, 3}, {99, 3}};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_int_equal(rm_weights_read_before(&w, expected[i].round, got, COUNT, &stamp), 1);
        assert_int_equal(stamp.version, expected[i].version);
        expect_params((float)expected[i].version, COUNT);
    }
    publish(&w, 4, 5); /* version 1 is gone now */
    assert_int_equal(rm_weights_read_before(&w, 1, got, COUNT, &stamp), 0);
    assert_int_equal(rm_weights_read_before(&w, 2, got, COUNT, &stamp), 1);
    assert_int_equal(stamp.version, 2);
    rm_weights_close(&w);
}

/* As a writer leaves a slot that dies while filling it. */
static void leave_torn(struct rm_weights *w, uint64_t version)
{
    struct rm_weights_slot *slot = &w->shared->slot[version % RM_WEIGHTS_SLOTS];
    rm_atomic_weights_begin(&slot->sequence);
    RM_POKE(&slot->version, version);
    memset((char *)w->region.base + w->shared->data_at +
               (version % RM_WEIGHTS_SLOTS) * w->shared->slot_bytes,
           0xff, COUNT * 2);
}

static void a_torn_slot_is_never_read(void **state)
{
    (void)state;
    struct rm_weights w, heir;
    struct rm_weights_stamp stamp;
    assert_int_equal(rm_weights_create(&w, 0, COUNT, COUNT, &error), 0);
    for (uint64_t v = 1; v <= 4; v++)
        publish(&w, (float)v, v);
    for (int deaths = 0; deaths < 3; deaths++) {
        leave_torn(&w, 5);
        assert_int_equal(rm_weights_read(&w, got, COUNT, &stamp, NULL), 1);
        assert_int_equal(stamp.version, 4);
        expect_params(4, COUNT);
        /* Version 2 stood where 5 was begun: not to be had, and not waited for either. */
        assert_int_equal(rm_weights_read_before(&w, 3, got, COUNT, &stamp), 0);
        assert_int_equal(rm_weights_read_before(&w, 4, got, COUNT, &stamp), 1);
        assert_int_equal(stamp.version, 3);
    }
    assert_int_equal(rm_weights_attach(&heir, w.region.fd, true, &error), 0);
    assert_int_equal(publish(&heir, 5, 5), 5);
    assert_int_equal(rm_weights_read(&w, got, COUNT, &stamp, NULL), 1);
    assert_int_equal(stamp.version, 5);
    expect_params(5, COUNT);
    rm_weights_close(&heir);
    rm_weights_close(&w);
}

static void refusals(void **state)
{
    (void)state;
    struct rm_weights w, other;
    assert_int_equal(rm_weights_create(&w, 0, 0, 0, &error), -EINVAL);
    assert_int_equal(rm_weights_create(&w, 0, 10, 11, &error), -EINVAL);
    assert_int_equal(rm_weights_create(&w, 0, COUNT, 10, &error), 0);
    w.shared->count = 3 * COUNT;
    assert_int_equal(rm_weights_attach(&other, w.region.fd, false, &error), -EPROTO);
    assert_non_null(strstr(error.text, "3009 floats"));
    assert_null(other.region.base);
    w.shared->count = COUNT;
    for (unsigned v = 1; v <= 4; v++)
        publish(&w, (float)v, v);
    assert_int_equal(rm_weights_attach(&other, w.region.fd, false, &error), RM_ATTACH_OK);
    rm_weights_close(&other);
    RM_POKE(&w.shared->latest, 7); /* whose slot holds version 4: readers would wait for ever */
    assert_int_equal(rm_weights_attach(&other, w.region.fd, false, &error), -EPROTO);
    assert_non_null(strstr(error.text, "version 7"));
    RM_POKE(&w.shared->latest, 4);
    RM_ADD(&w.shared->slot[3 % RM_WEIGHTS_SLOTS].sequence, 1);
    assert_int_equal(rm_weights_attach(&other, w.region.fd, false, &error), -EPROTO);
    rm_weights_close(&w);

    struct rm_region small;
    assert_int_equal(rm_region_create(&small, RM_REGION_WEIGHTS, "small", 256, &error), 0);
    rm_region_publish(&small);
    assert_int_equal(rm_weights_attach(&other, small.fd, false, &error), -EPROTO);
    rm_region_close(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_before_the_first),
        cmocka_unit_test(versions_count_without_gaps),
        cmocka_unit_test(reads_what_was_published_before_a_round),
        cmocka_unit_test(a_torn_slot_is_never_read),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
