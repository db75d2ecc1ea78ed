/* shm/ring: rows, windows, credit and takeover, with indices that wrap at 2^64 on the way. */
#include "tests/support/unit.h"

#include "shm/layout.h"
#include "shm/ring.h"

#include <errno.h>
#include <string.h>

#define ROWS      8u
#define NEAR_WRAP (UINT64_MAX - 2)

static struct rm_error error;

static struct rm_ring_spec spec_of(enum rm_ring_mode mode)
{
    return (struct rm_ring_spec){
        .mode = mode,
        .rows = ROWS,
        .lanes = 3,
        .obs_bytes = 7,
        .mask_bytes = 5,
        .action_words = 2,
        .columns = RM_COLUMN_MASK | RM_COLUMN_LOGP | RM_COLUMN_VALUE,
        .actor = 1,
        .policy = 2,
        .first_index = NEAR_WRAP,
    };
}

static void make(struct rm_ring *ring, enum rm_ring_mode mode)
{
    struct rm_ring_spec spec = spec_of(mode);
    assert_int_equal(rm_ring_create(ring, &spec, &error), 0);
    assert_int_equal(rm_ring_writer_open(ring), 0);
}

static void write_row(struct rm_ring *ring, uint64_t number)
{
    struct rm_row row;
    assert_int_equal(rm_ring_reserve(ring, &row), 1);
    memset(row.obs, (int)(number & 0xff), 3 * 7);
    row.reward[2] = (float)number;
    row.action[5] = (int32_t)number;
    rm_ring_commit(ring);
}

static void columns_stand_apart(void **state)
{
    (void)state;
    struct rm_ring ring, other;
    make(&ring, RM_RING_REPLAY);
    assert_int_equal(rm_ring_attach(&other, ring.region.fd, false, &error), RM_ATTACH_OK);
    assert_memory_equal(&other.spec, &ring.spec, sizeof ring.spec);
    assert_int_equal(rm_ring_bytes(&ring.spec), ring.region.bytes);
    assert_int_equal(ring.row_bytes % 64, 0);

    /* Every column gets bytes of its own value; no write may reach another's. */
    for (unsigned r = 0; r < ROWS; r++) {
        struct rm_row row;
        assert_int_equal(rm_ring_reserve(&ring, &row), 1);
        assert_int_equal(row.index, NEAR_WRAP + r);
        memset(row.obs, 1, 3 * 7);
        memset(row.mask, 2, 3 * 5);
        memset(row.reward, 3, 3 * 4);
        memset(row.flags, 4, 3);
        memset(row.action, 5, 3 * 2 * 4);
        memset(row.logp, 6, 3 * 4);
        memset(row.value, 7, 3 * 4);
        *row.policy_version = r;
        rm_ring_commit(&ring);
    }
    for (unsigned r = 0; r < ROWS; r++) {
        struct rm_row row = rm_ring_row(&other, NEAR_WRAP + r);
        const struct {
            const void *at;
            size_t bytes;
        } columns[] = {{row.obs, 21},    {row.mask, 15}, {row.reward, 12}, {row.flags, 3},
                       {row.action, 24}, {row.logp, 12}, {row.value, 12}};
        for (unsigned c = 0; c < sizeof columns / sizeof columns[0]; c++) {
            assert_int_equal((uintptr_t)columns[c].at % 64, 0);
            for (size_t i = 0; i < columns[c].bytes; i++)
                assert_int_equal(((const uint8_t *)columns[c].at)[i], c + 1);
        }
        assert_int_equal(*row.policy_version, r);
        assert_int_equal(*row.generation, 1);
    }
    rm_ring_close(&other);
    rm_ring_close(&ring);
}

/* Of every third row, behind the rows; more of them than any rows in the ring can begin with. */
static void some_rows_have_a_state(void **state)
{
    enum { EVERY = 3, FLOATS = 5, LANES = 3, STATE = LANES * FLOATS };
    struct rm_ring_spec spec = spec_of(RM_RING_REPLAY);
    struct rm_ring ring, other;
    (void)state;
    spec.columns |= RM_COLUMN_STATE;
    spec.state_floats = FLOATS;
    spec.state_every = EVERY;
    assert_int_equal(rm_ring_create(&ring, &spec, &error), 0);
    assert_int_equal(rm_ring_attach(&other, ring.region.fd, false, &error), RM_ATTACH_OK);
    assert_int_equal(rm_ring_bytes(&spec), ring.region.bytes);
    rm_ring_writer_open(&ring);
    for (uint64_t i = 0; i < 5 * ROWS; i++) {
        struct rm_row row;
        assert_int_equal(rm_ring_reserve(&ring, &row), 1);
        memset(row.obs, 0, 3 * 7);
        assert_true((row.state != NULL) == (i % EVERY == 0));
        for (uint32_t k = 0; row.state && k < STATE; k++)
            row.state[k] = (float)(i * 100 + k);
        if (row.state) {
            assert_true((uint8_t *)row.state >= ring.data + ROWS * ring.row_bytes);
            assert_true((uint8_t *)(row.state + STATE) <=
                        (uint8_t *)ring.region.base + ring.region.bytes);
        }
        rm_ring_commit(&ring);
        for (uint64_t j = i + 1 > ROWS ? i + 1 - ROWS : 0; j <= i; j++) {
            const float *kept = rm_ring_row(&other, spec.first_index + j).state;
            for (uint32_t k = 0; kept && k < STATE; k++)
                assert_true(kept[k] == (float)(j * 100 + k));
        }
    }
    rm_ring_close(&other);
    rm_ring_close(&ring);
    /* What would not fit anywhere is not made, nor what another version might mean. */
    spec.lanes = spec.state_floats = 1u << 22;
    spec.rows = 1u << 20;
    assert_int_equal(rm_ring_bytes(&spec), 0);
    spec = spec_of(RM_RING_REPLAY);
    spec.record_wait = 2;
    assert_int_equal(rm_ring_create(&ring, &spec, &error), -EINVAL);
}

static void optional_columns_are_null(void **state)
{
    (void)state;
    struct rm_ring_spec spec = spec_of(RM_RING_REPLAY);
    spec.columns = 0;
    spec.mask_bytes = 0;
    struct rm_ring ring;
    assert_int_equal(rm_ring_create(&ring, &spec, &error), 0);
    struct rm_row row = rm_ring_row(&ring, 0);
    assert_null(row.mask);
    assert_null(row.logp);
    assert_null(row.value);
    assert_non_null(row.obs);
    rm_ring_close(&ring);
}

static void refuses_bad_specs(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint32_t value;
        const char *words;
    } bad[] = {
        {offsetof(struct rm_ring_spec, mode), 7, "neither replay nor rollout"},
        {offsetof(struct rm_ring_spec, rows), 0, "power of two"},
        {offsetof(struct rm_ring_spec, rows), 2, "power of two"},
        {offsetof(struct rm_ring_spec, rows), 12, "power of two"},
        {offsetof(struct rm_ring_spec, rows), 1u << 31, "power of two"},
        {offsetof(struct rm_ring_spec, lanes), 0, "one lane"},
        {offsetof(struct rm_ring_spec, obs_bytes), 0, "have a size"},
        {offsetof(struct rm_ring_spec, action_words), 0, "have a size"},
        {offsetof(struct rm_ring_spec, mask_bytes), 0, "mask column"},
        {offsetof(struct rm_ring_spec, columns), 0, "mask column"},
        {offsetof(struct rm_ring_spec, columns), 9, "state column"},
        {offsetof(struct rm_ring_spec, state_floats), 9, "state column"},
        {offsetof(struct rm_ring_spec, columns), 17, "does not exist"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct rm_ring_spec spec = spec_of(RM_RING_REPLAY);
        memcpy((char *)&spec + bad[i].at, &bad[i].value, 4);
        struct rm_ring ring;
        assert_int_equal(rm_ring_bytes(&spec), 0);
        assert_int_equal(rm_ring_create(&ring, &spec, &error), -EINVAL);
        if (!strstr(error.text, bad[i].words))
            fail_msg("'%s' lacks '%s'", error.text, bad[i].words);
    }
    struct rm_ring_spec spec = spec_of(RM_RING_REPLAY);
    spec.rows = 1u << 30; /* products that do not fit 64 bits */
    spec.lanes = spec.obs_bytes = spec.action_words = UINT32_MAX;
    assert_int_equal(rm_ring_bytes(&spec), 0);
}

static void refuses_a_spec_that_does_not_match_the_region(void **state)
{
    (void)state;
    struct rm_ring ring, other;
    make(&ring, RM_RING_REPLAY);
    ring.shared->spec.rows = 2 * ROWS;
    assert_int_equal(rm_ring_attach(&other, ring.region.fd, false, &error), -EPROTO);
    ring.shared->spec.rows = 3;
    assert_int_equal(rm_ring_attach(&other, ring.region.fd, false, &error), -EPROTO);
    assert_non_null(strstr(error.text, "power of two"));
    assert_null(other.region.base);
    rm_ring_close(&ring);

    struct rm_region small; /* a region of the right kind, but no ring */
    assert_int_equal(rm_region_create(&small, RM_REGION_RING, "small", 256, &error), 0);
    rm_region_publish(&small);
    assert_int_equal(rm_ring_attach(&other, small.fd, false, &error), -EPROTO);
    rm_region_close(&small);
}

/* What no writer or consumer leaves behind, wherever it dies. */
static void refuses_indices_that_do_not_fit(void **state)
{
    (void)state;
    struct rm_ring ring, other;
    make(&ring, RM_RING_ROLLOUT);
    write_row(&ring, 0);
    RM_ADD(&ring.shared->reserved, 2);
    assert_int_equal(rm_ring_attach(&other, ring.region.fd, true, &error), -EPROTO);
    assert_non_null(strstr(error.text, "contradict each other"));
    assert_null(other.region.base);
    RM_ADD(&ring.shared->reserved, -2);
    assert_int_equal(rm_ring_attach(&other, ring.region.fd, true, &error), RM_ATTACH_OK);
    rm_ring_close(&other);
    RM_ADD(&ring.shared->consumed, 2);
    assert_int_equal(rm_ring_attach(&other, ring.region.fd, true, &error), -EPROTO);
    RM_ADD(&ring.shared->consumed, -10);
    assert_int_equal(rm_ring_attach(&other, ring.region.fd, true, &error), -EPROTO);
    rm_ring_close(&ring);
    /* A row whose actions alone are 2^64 bytes is not one of none. */
    struct rm_ring_spec wide = spec_of(RM_RING_REPLAY);
    wide.lanes = wide.action_words = 1u << 31;
    assert_int_equal(rm_ring_bytes(&wide), 0);
}

static void replay_window_slides_over_the_wrap(void **state)
{
    (void)state;
    struct rm_ring ring;
    make(&ring, RM_RING_REPLAY);
    uint64_t first, end;
    for (uint64_t n = 0; n < 5 * ROWS; n++) {
        rm_ring_window(&ring, &first, &end);
        assert_int_equal(end, NEAR_WRAP + n);
        assert_int_equal(end - first, n < ROWS ? n : ROWS);
        for (uint64_t i = first; i != end; i++) {
            struct rm_row row = rm_ring_row(&ring, i);
            assert_int_equal(row.action[5], (int32_t)(i - NEAR_WRAP));
            assert_true(rm_ring_intact(&ring, i));
        }
        write_row(&ring, n);
    }
    rm_ring_close(&ring);
}

static void reserving_takes_the_oldest_row_away(void **state)
{
    (void)state;
    struct rm_ring ring;
    make(&ring, RM_RING_REPLAY);
    for (uint64_t n = 0; n < ROWS; n++)
        write_row(&ring, n);
    uint64_t first, end;
    assert_true(rm_ring_intact(&ring, NEAR_WRAP));
    struct rm_row row;
    assert_int_equal(rm_ring_reserve(&ring, &row), 1);
    assert_false(rm_ring_intact(&ring, NEAR_WRAP));
    assert_true(rm_ring_intact(&ring, NEAR_WRAP + 1));
    rm_ring_window(&ring, &first, &end);
    assert_int_equal(first, NEAR_WRAP + 1);
    assert_int_equal(end, NEAR_WRAP + ROWS);
    assert_int_equal(rm_ring_committed(&ring), NEAR_WRAP + ROWS);
    rm_ring_close(&ring);
}

static void rollout_needs_credit(void **state)
{
    (void)state;
    struct rm_ring ring, consumer;
    make(&ring, RM_RING_ROLLOUT);
    assert_int_equal(rm_ring_attach(&consumer, ring.region.fd, true, &error), 0);
    struct rm_row row;
    uint64_t written = 0;
    for (unsigned turn = 0; turn < 10; turn++) {
        while (rm_ring_reserve(&ring, &row)) {
            row.action[5] = (int32_t)written++;
            rm_ring_commit(&ring);
        }
        uint64_t consumed = rm_ring_consumed(&consumer);
        assert_int_equal(rm_ring_committed(&consumer) - consumed, ROWS);
        assert_int_equal(rm_ring_committed(&consumer), NEAR_WRAP + written);
        for (unsigned i = 0; i <= turn % ROWS; i++, consumed++)
            assert_int_equal(rm_ring_row(&consumer, consumed).action[5],
                             (int32_t)(consumed - NEAR_WRAP));
        rm_ring_consume(&consumer, consumed);
    }
    rm_ring_close(&consumer);
    rm_ring_close(&ring);
}

static void takeover_abandons_what_was_reserved(void **state)
{
    (void)state;
    for (int mode = RM_RING_REPLAY; mode <= RM_RING_ROLLOUT; mode++) {
        struct rm_ring ring, heir;
        make(&ring, (enum rm_ring_mode)mode);
        for (uint64_t n = 0; n < ROWS - 1; n++)
            write_row(&ring, n);
        rm_ring_consume(&ring, NEAR_WRAP + 3);
        write_row(&ring, ROWS - 1);
        struct rm_row row;
        assert_int_equal(rm_ring_reserve(&ring, &row), 1);
        memset(row.obs, 0xee, 21); /* and dies here */

        assert_int_equal(rm_ring_attach(&heir, ring.region.fd, true, &error), 0);
        uint64_t first, end;
        assert_int_equal(rm_ring_writer_open(&heir), 1);
        rm_ring_window(&heir, &first, &end);
        assert_int_equal(end, NEAR_WRAP + ROWS);
        assert_int_equal(first, NEAR_WRAP + 1); /* the row it touched stays out */
        assert_false(rm_ring_intact(&heir, NEAR_WRAP));

        assert_int_equal(rm_ring_reserve(&heir, &row), 1);
        assert_int_equal(row.index, NEAR_WRAP + ROWS);
        assert_int_equal(*row.generation, 2);
        rm_ring_commit(&heir);
        assert_int_equal(*rm_ring_row(&heir, NEAR_WRAP + ROWS - 1).generation, 1);
        assert_int_equal(rm_ring_writer_open(&heir), 0); /* nothing pending now */
        rm_ring_close(&heir);
        rm_ring_close(&ring);
    }
}

static void copying_out_copies(void **state)
{
    (void)state;
    static uint8_t from[9000], to[9000 + 16];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (uint8_t)(i * 131 + (i >> 8));
    for (size_t bytes = 0; bytes < 9000 - 16; bytes += bytes < 300 ? 1 : 811)
        for (size_t shift = 0; shift < 16; shift += 5) {
            memset(to, 0x5a, sizeof to);
            rm_ring_copy_out(to + 3, from + shift, bytes);
            assert_memory_equal(to + 3, from + shift, bytes);
            assert_int_equal(to[2], 0x5a);
            assert_int_equal(to[3 + bytes], 0x5a);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_stand_apart),
        cmocka_unit_test(some_rows_have_a_state),
        cmocka_unit_test(optional_columns_are_null),
        cmocka_unit_test(refuses_bad_specs),
        cmocka_unit_test(refuses_a_spec_that_does_not_match_the_region),
        cmocka_unit_test(refuses_indices_that_do_not_fit),
        cmocka_unit_test(replay_window_slides_over_the_wrap),
        cmocka_unit_test(reserving_takes_the_oldest_row_away),
        cmocka_unit_test(rollout_needs_credit),
        cmocka_unit_test(takeover_abandons_what_was_reserved),
        cmocka_unit_test(copying_out_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
