/* Archives come back as they were written, and no changed byte goes unnoticed. */
#include "shm/base/archive.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LONG (RM_ARCHIVE_BLOCK * 2 + 1000)

static struct rm_error error;
static uint8_t *noise; /* [LONG]: half of it compresses */
static char path[] = "/tmp/ringmaster-archive-XXXXXX";

static int make_noise(void **state)
{
    uint32_t x = 1;
    (void)state;
    int fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    noise = malloc(LONG);
    for (size_t i = 0; noise && i < LONG; i++) {
        x = x * 1664525u + 1013904223u;
        noise[i] = i < LONG / 2 ? (uint8_t)(i / 100) : (uint8_t)(x >> 24);
    }
    return noise ? 0 : 1;
}

static int drop_noise(void **state)
{
    (void)state;
    unlink(path);
    free(noise);
    return 0;
}

/* Three streams; `small` leaves out the long one. */
static uint64_t write_archive(bool small)
{
    struct rm_archive_writer *w;
    uint64_t bytes = 0;
    assert_int_equal(rm_archive_create(&w, path, &error), 0);
    rm_archive_begin(w, "first");
    rm_archive_put(w, "abc", 3);
    rm_archive_put(w, "defg", 4);
    rm_archive_end(w);
    rm_archive_begin(w, "empty");
    rm_archive_end(w);
    rm_archive_begin(w, "noise");
    rm_archive_put(w, noise, small ? 700 : LONG);
    rm_archive_end(w);
    assert_int_equal(rm_archive_close(w, &bytes, &error), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, bytes);
    return bytes;
}

/* 0 when everything is there as write_archive() wrote it, else the error. */
static int read_archive(bool small)
{
    static uint8_t got[LONG];
    struct rm_archive_reader *r;
    char name[RM_ARCHIVE_NAME_MAX];
    const size_t bytes = small ? 700 : LONG;
    int rc = rm_archive_open(&r, path, &error);
    if (rc)
        return rc;
    static const char *const names[] = {"first", "empty", "noise"};
    for (int i = 0; i < 3; i++) {
        rc = rm_archive_next(r, name, &error);
        if (rc != 1 || strcmp(name, names[i]) != 0)
            goto out;
        if (i == 0 && ((rc = rm_archive_get(r, got, 7, &error)) || memcmp(got, "abcdefg", 7) != 0))
            goto out;
        if (i == 2 &&
            ((rc = rm_archive_get(r, got, bytes, &error)) || memcmp(got, noise, bytes) != 0))
            goto out;
    }
    rc = rm_archive_next(r, name, &error);
out:
    rm_archive_reader_close(r);
    return rc;
}

static void comes_back(void **state)
{
    (void)state;
    uint64_t bytes = write_archive(false);
    assert_true(bytes < LONG);
    assert_int_equal(read_archive(false), 0);
}

static void streams_can_be_skipped_and_end(void **state)
{
    struct rm_archive_reader *r;
    char name[RM_ARCHIVE_NAME_MAX];
    uint8_t got[8];
    (void)state;
    write_archive(false);
    assert_int_equal(rm_archive_open(&r, path, &error), 0);
    assert_int_equal(rm_archive_next(r, name, &error), 1);
    assert_int_equal(rm_archive_get(r, got, 2, &error), 0);
    assert_int_equal(rm_archive_get(r, got, 6, &error), -ENODATA);
    assert_int_equal(rm_archive_next(r, name, &error), 1);
    assert_string_equal(name, "empty");
    assert_int_equal(rm_archive_get(r, got, 1, &error), -ENODATA);
    assert_int_equal(rm_archive_next(r, name, &error), 1);
    assert_int_equal(rm_archive_get(r, got, 8, &error), 0);
    assert_int_equal(rm_archive_next(r, name, &error), 0);
    rm_archive_reader_close(r);
}

static uint8_t *slurp(uint64_t bytes)
{
    uint8_t *all = malloc(bytes);
    FILE *in = fopen(path, "rb");
    assert_non_null(all);
    assert_non_null(in);
    assert_int_equal(fread(all, 1, bytes, in), bytes);
    fclose(in);
    return all;
}

static void spit(const uint8_t *all, uint64_t bytes)
{
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(all, 1, bytes, out), bytes);
    fclose(out);
}

static void every_changed_byte_is_noticed(void **state)
{
    (void)state;
    const uint64_t bytes = write_archive(true);
    uint8_t *all = slurp(bytes);
    for (uint64_t i = 0; i < bytes; i++) {
        all[i] ^= (uint8_t)(1u << i % 8);
        spit(all, bytes);
        if (read_archive(true) >= 0)
            fail_msg("byte %llu of %llu: not noticed", (unsigned long long)i,
                     (unsigned long long)bytes);
        all[i] ^= (uint8_t)(1u << i % 8);
    }
    spit(all, bytes);
    assert_int_equal(read_archive(true), 0);
    free(all);
}

static void every_cut_is_noticed(void **state)
{
    (void)state;
    const uint64_t bytes = write_archive(true);
    uint8_t *all = slurp(bytes + 0);
    for (uint64_t n = 0; n < bytes; n++) {
        spit(all, n);
        assert_true(read_archive(true) < 0);
    }
    free(all);
}

static void a_file_that_cannot_grow_is_said_at_the_end(void **state)
{
    struct rm_archive_writer *w;
    struct rlimit before;
    uint64_t bytes;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){1000, before.rlim_max}), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(rm_archive_create(&w, path, &error), 0);
    rm_archive_begin(w, "x");
    const int put = rm_archive_put(w, noise, LONG), closed = rm_archive_close(w, &bytes, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(put, -EFBIG);
    assert_int_equal(closed, -EFBIG);
    assert_non_null(strstr(error.text, path));
}

/* Archives are files, and their own: what is written to follows no link and is no device. */
static void what_is_no_file_is_refused(void **state)
{
    struct rm_archive_writer *w;
    (void)state;
    assert_int_equal(rm_archive_create(&w, "/nonexistent/x", &error), -ENOENT);
    assert_null(w);
    assert_int_equal(rm_archive_create(&w, "/dev/full", &error), -EINVAL);
    assert_null(w);
    assert_non_null(strstr(error.text, "/dev/full"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(streams_can_be_skipped_and_end),
        cmocka_unit_test(every_changed_byte_is_noticed),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(a_file_that_cannot_grow_is_said_at_the_end),
        cmocka_unit_test(what_is_no_file_is_refused),
    };
    return cmocka_run_group_tests(tests, make_noise, drop_noise);
}
