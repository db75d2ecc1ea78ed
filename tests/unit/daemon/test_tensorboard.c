/* Event files read back byte by byte: framing, checksums, fields. */
#include "daemon/tensorboard.h"
#include "shm/base/file.h"
#include "tests/support/daemon.h"

#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct rm_run_directory directory;
static uint8_t file[1 << 20];
static size_t file_bytes;

static int setup(void **state)
{
    (void)state;
    snprintf(directory.path, sizeof directory.path, "/tmp/rm-events-XXXXXX");
    return mkdtemp(directory.path) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    rm_file_remove_all(directory.path);
    return 0;
}

/* Reads the one event file into `file`. */
static void slurp(void)
{
    char pattern[sizeof directory.path + 32];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/events.out.tfevents.*", directory.path);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    FILE *in = fopen(found.gl_pathv[0], "r");
    globfree(&found);
    assert_non_null(in);
    file_bytes = fread(file, 1, sizeof file, in);
    fclose(in);
}

static uint32_t u32(const uint8_t *at)
{
    uint32_t v;
    memcpy(&v, at, 4);
    return v;
}

/* The record at `at`: checks both checksums, gives its data. Returns where the next begins. */
static size_t record(size_t at, const uint8_t **data, size_t *bytes)
{
    uint64_t length;
    assert_true(at + 12 <= file_bytes);
    memcpy(&length, file + at, 8);
    assert_int_equal(u32(file + at + 8), rm_crc32c_masked(file + at, 8));
    assert_true(at + 12 + length + 4 <= file_bytes);
    *data = file + at + 12;
    *bytes = length;
    assert_int_equal(u32(*data + length), rm_crc32c_masked(*data, length));
    return at + 12 + length + 4;
}

/* A reader of protocol buffers of its own: one field at a time. */
struct field {
    unsigned number, wire;
    uint64_t varint;      /* wire 0 */
    const uint8_t *bytes; /* wire 1, 2, 5 */
    size_t size;
};

static uint64_t varint(const uint8_t **at, const uint8_t *end)
{
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(*at < end && shift < 64);
        uint8_t byte = *(*at)++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
}

static bool next(const uint8_t **at, const uint8_t *end, struct field *f)
{
    if (*at == end)
        return false;
    uint64_t tag = varint(at, end);
    f->number = (unsigned)(tag >> 3);
    f->wire = tag & 7;
    switch (f->wire) {
    case 0:
        f->varint = varint(at, end);
        return true;
    case 1:
        f->size = 8;
        break;
    case 2:
        f->size = varint(at, end);
        break;
    case 5:
        f->size = 4;
        break;
    default:
        fail_msg("wire type %u", f->wire);
    }
    f->bytes = *at;
    *at += f->size;
    assert_true(*at <= end);
    return true;
}

static void checksums_are_those_of_the_standard(void **state)
{
    (void)state;
    /* RFC 3720, B.4 */
    uint8_t zeros[32] = {0}, ones[32], up[32];
    memset(ones, 0xff, sizeof ones);
    for (int i = 0; i < 32; i++)
        up[i] = (uint8_t)i;
    assert_int_equal(rm_crc32c(zeros, 32), 0x8a9136aa);
    assert_int_equal(rm_crc32c(ones, 32), 0x62a8ab43);
    assert_int_equal(rm_crc32c(up, 32), 0x46dd794e);
    assert_int_equal(rm_crc32c("123456789", 9), 0xe3069283);
}

static void a_file_begins_with_its_version(void **state)
{
    (void)state;
    struct rm_tensorboard board;
    const uint8_t *data;
    size_t bytes;
    assert_int_equal(rm_tensorboard_open(&board, &directory, NULL), 0);
    rm_tensorboard_close(&board);
    slurp();
    assert_int_equal(record(0, &data, &bytes), file_bytes);
    const uint8_t *end = data + bytes;
    struct field f = {0};
    assert_true(next(&data, end, &f));
    assert_int_equal(f.number, 1); /* wall_time */
    assert_true(next(&data, end, &f));
    assert_int_equal(f.number, 3); /* file_version */
    assert_int_equal(f.size, 13);
    assert_memory_equal(f.bytes, "brain.Event:2", 13);
    assert_false(next(&data, end, &f));
}

/* Tags of all lengths up to some 300 bytes. */
static void name(char *tag, size_t size, int r, int s)
{
    int n = snprintf(tag, size, "policy/%d/%d/", r, s);
    assert_true(n > 0 && (size_t)n + (size_t)s < size);
    memset(tag + n, 'x', (size_t)s);
    tag[n + s] = '\0';
}

static void scalars_come_back(void **state)
{
    (void)state;
    enum { RECORDS = 5, SCALARS = 300 };
    struct rm_tensorboard board;
    char tag[512], expected[512];
    assert_int_equal(rm_tensorboard_open(&board, &directory, NULL), 0);
    for (int r = 0; r < RECORDS; r++) {
        rm_tensorboard_begin(&board, 1000.5 + r, (uint64_t)r << (8 * r));
        for (int s = 0; s < (r == 3 ? 0 : SCALARS); s++) {
            name(tag, sizeof tag, r, s);
            rm_tensorboard_scalar(&board, tag, (float)(s - 100) * 0.5f);
        }
        assert_int_equal(rm_tensorboard_end(&board), 0);
    }
    rm_tensorboard_close(&board);
    slurp();
    const uint8_t *data;
    size_t bytes, at = record(0, &data, &bytes);
    for (int r = 0; r < RECORDS; r++) {
        at = record(at, &data, &bytes);
        const uint8_t *end = data + bytes;
        struct field f = {0};
        double time;
        assert_true(next(&data, end, &f) && f.number == 1 && f.wire == 1);
        memcpy(&time, f.bytes, 8);
        assert_true(time == 1000.5 + r);
        assert_true(next(&data, end, &f) && f.number == 2 && f.wire == 0);
        assert_int_equal(f.varint, (uint64_t)r << (8 * r));
        if (r == 3) {
            assert_false(next(&data, end, &f));
            continue;
        }
        assert_true(next(&data, end, &f) && f.number == 5 && f.wire == 2);
        const uint8_t *value = f.bytes, *values_end = f.bytes + f.size;
        assert_false(next(&data, end, &f)); /* one summary */
        for (int s = 0; s < SCALARS; s++) {
            struct field one = {0}, part = {0};
            float number;
            assert_true(next(&value, values_end, &one) && one.number == 1 && one.wire == 2);
            const uint8_t *inner = one.bytes, *inner_end = one.bytes + one.size;
            name(expected, sizeof expected, r, s);
            assert_true(next(&inner, inner_end, &part) && part.number == 1);
            assert_int_equal(part.size, strlen(expected));
            assert_memory_equal(part.bytes, expected, part.size);
            assert_true(next(&inner, inner_end, &part) && part.number == 2 && part.wire == 5);
            memcpy(&number, part.bytes, 4);
            assert_true(number == (float)(s - 100) * 0.5f);
            assert_false(next(&inner, inner_end, &part));
        }
        assert_true(value == values_end);
    }
    assert_int_equal(at, file_bytes);
}

static void a_full_disk_is_an_error_not_a_crash(void **state)
{
    (void)state;
    struct rm_tensorboard board;
    assert_int_equal(rm_tensorboard_open(&board, &directory, NULL), 0);
    close(board.fd);
    FILE *full = fopen("/dev/full", "w");
    if (!full)
        skip();
    board.fd = dup(fileno(full));
    fclose(full);
    rm_tensorboard_begin(&board, 0, 1);
    rm_tensorboard_scalar(&board, "x", 1);
    assert_int_equal(rm_tensorboard_end(&board), -ENOSPC);
    rm_tensorboard_close(&board);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(checksums_are_those_of_the_standard),
        T(a_file_begins_with_its_version),
        T(scalars_come_back),
        T(a_full_disk_is_an_error_not_a_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
