/* recording: what was written is read again, damage is refused with its place, whole chunks survive
 * whatever was cut off, and gaps and rows that were made again are found. */
#include "learner/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

enum { LANES = 3, ROWS = 50 };

static char folder[64], path[96];
static struct rm_recording_stream streams[2];
static struct rm_error error;

static const char *file(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void describe(struct rm_recording_stream *stream, const char *name, uint32_t width)
{
    memset(stream, 0, sizeof *stream);
    snprintf(stream->name, sizeof stream->name, "%s", name);
    snprintf(stream->policy, sizeof stream->policy, "p");
    stream->agents = 1;
    stream->worlds = stream->lanes = LANES;
    rm_recording_add_column(stream, "obs", RM_RECORDED_F32, true, 1, &width);
    rm_recording_add_column(stream, "flags", RM_RECORDED_U8, true, 0, NULL);
    rm_recording_add_column(stream, "version", RM_RECORDED_U64, false, 0, NULL);
}

static int begin(void **unused)
{
    (void)unused;
    snprintf(folder, sizeof folder, "/dev/shm/rm-recording-XXXXXX");
    describe(&streams[0], "a", 2);
    describe(&streams[1], "b", 1);
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **unused)
{
    static const char *const names[] = {"recording.json", "chunks", "index"};
    (void)unused;
    for (int i = 0; i < 3; i++)
        remove(file(names[i]));
    return rmdir(folder);
}

static int try_open(struct rm_recording_writer **writer, const char *run)
{
    json_t *experiment = json_pack("{s:{s:s}}", "world", "name", "w");
    const int rc = rm_recording_writer_open(writer, folder, run, RM_RECORD_STEP, experiment,
                                            streams, 2, &error);
    json_decref(experiment);
    return rc;
}

static struct rm_recording_writer *open_writer(void)
{
    struct rm_recording_writer *writer = NULL;
    if (try_open(&writer, "r") != 0)
        fail_msg("%s", error.text);
    return writer;
}

/* Value i of column c of a chunk's `kind`: 0 few distinct ones, 1 no two the same, 2 all the same.
 */
static float value_of(int kind, uint64_t first, uint32_t i)
{
    return kind == 0   ? (float)((first + i * 7) % 5)
           : kind == 1 ? (float)(first * 1000 + i) * 0.25f
                       : 3;
}

static int put(struct rm_recording_writer *writer, uint32_t stream, uint64_t first, uint32_t rows,
               int kind)
{
    float obs[ROWS * LANES * 2];
    uint8_t flags[ROWS * LANES];
    uint64_t version[ROWS];
    for (uint32_t i = 0; i < rows * LANES * 2; i++)
        obs[i] = value_of(kind, first, i);
    for (uint32_t i = 0; i < rows * LANES; i++)
        flags[i] = (uint8_t)(i % 9 == 0);
    for (uint32_t i = 0; i < rows; i++)
        version[i] = first;
    return rm_recording_write(writer, stream, first, rows, rows,
                              (const void *const[]){obs, flags, version}, &error);
}

static void holds(struct rm_recording *r, uint64_t number, int kind)
{
    void *columns[RM_RECORDING_COLUMNS];
    if (rm_recording_read(r, number, columns, &error) != 0)
        fail_msg("%s", error.text);
    const struct rm_recording_chunk *chunk = &r->chunk[number];
    const uint32_t width = chunk->stream ? 1 : 2;
    for (uint32_t i = 0; i < chunk->rows * LANES * width; i++)
        assert_true(((float *)columns[0])[i] == value_of(kind, chunk->first, i));
    for (uint32_t i = 0; i < chunk->rows * LANES; i++)
        assert_int_equal(((uint8_t *)columns[1])[i], i % 9 == 0);
    for (uint32_t i = 0; i < chunk->rows; i++)
        assert_int_equal(((uint64_t *)columns[2])[i], chunk->first);
    for (uint32_t c = 0; c < 3; c++)
        free(columns[c]);
}

static void write_some(uint32_t chunks)
{
    struct rm_recording_writer *writer = open_writer();
    for (uint32_t k = 0; k < chunks; k++)
        assert_int_equal(put(writer, k % 2, k / 2 * ROWS, ROWS, (int)(k % 3)), 0);
    rm_recording_writer_close(writer);
}

static void open_reader(struct rm_recording *r)
{
    if (rm_recording_open(r, folder, &error) != 0)
        fail_msg("%s", error.text);
}

static void what_was_written_is_read(void **unused)
{
    (void)unused;
    struct rm_recording r;
    write_some(12);
    open_reader(&r);
    assert_int_equal(r.chunks, 12);
    assert_int_equal(r.streams, 2);
    assert_int_equal(r.tail, 0);
    assert_string_equal(r.world, "w");
    assert_string_equal(r.stream[1].name, "b");
    assert_int_equal(r.stream[0].column[0].shape[0], 2);
    for (uint64_t c = 0; c < r.chunks; c++)
        holds(&r, c, (int)(c % 3));
    rm_recording_close(&r);
}

static off_t size_of(const char *name)
{
    struct stat about;
    assert_int_equal(stat(file(name), &about), 0);
    return about.st_size;
}

/* Any byte of the chunks, one at a time: exactly the chunk that it is in is refused. */
static void damage_is_refused_with_its_place(void **unused)
{
    (void)unused;
    write_some(5);
    const off_t size = size_of("chunks");
    const int fd = open(file("chunks"), O_RDWR);
    for (off_t at = 0; at < size; at++) {
        struct rm_recording r;
        uint8_t byte, other;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        other = byte ^ 0x10;
        assert_int_equal(pwrite(fd, &other, 1, at), 1);
        open_reader(&r);
        assert_int_equal(r.chunks, 5);
        for (uint64_t c = 0; c < r.chunks; c++) {
            const off_t from = (off_t)r.chunk[c].offset;
            const off_t to = c + 1 < r.chunks ? (off_t)r.chunk[c + 1].offset : size;
            void *columns[RM_RECORDING_COLUMNS];
            char place[64];
            if (at < from || at >= to) {
                holds(&r, c, (int)(c % 3));
                continue;
            }
            assert_int_equal(rm_recording_read(&r, c, columns, &error), -EBADMSG);
            snprintf(place, sizeof place, "chunk %d (byte %d of", (int)c, (int)from);
            assert_non_null(strstr(error.text, place));
        }
        rm_recording_close(&r);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    close(fd);
}

/* Whatever is cut off the end of either file, the chunks that are whole are read, and a new writer
 * goes on behind them. */
static void whole_chunks_survive(void **unused)
{
    (void)unused;
    off_t ends[7] = {0};
    for (uint32_t k = 0; k <= 6; k++) {
        if (k)
            write_some(k);
        ends[k] = k ? size_of("chunks") : 0;
        end(NULL);
        begin(NULL);
    }
    for (off_t cut = 0; cut <= ends[6]; cut += 11) {
        for (int without = 0; without < 2; without++) { /* an index, which is behind or not there */
            struct rm_recording r;
            uint64_t whole = 0;
            write_some(6);
            assert_int_equal(truncate(file("chunks"), cut), 0);
            if (without)
                assert_int_equal(remove(file("index")), 0);
            while (whole < 6 && ends[whole + 1] <= cut)
                whole++;
            open_reader(&r);
            assert_int_equal(r.chunks, whole);
            assert_int_equal(r.bytes + r.tail, cut);
            assert_int_equal(r.bytes, ends[whole]);
            rm_recording_close(&r);
            struct rm_recording_writer *writer = open_writer();
            for (uint32_t s = 0; s < 2; s++)
                assert_int_equal(rm_recording_writer_end(writer, s), ROWS * ((whole + 1 - s) / 2));
            assert_int_equal(put(writer, 1, 1000, 4, 1), 0);
            rm_recording_writer_close(writer);
            open_reader(&r);
            assert_int_equal(r.chunks, whole + 1);
            assert_int_equal(r.tail, 0);
            for (uint64_t c = 0; c <= whole; c++)
                holds(&r, c, c == whole ? 1 : (int)(c % 3));
            rm_recording_close(&r);
            end(NULL);
            begin(NULL);
        }
    }
}

/* Rows that were made again replace those before; rows that are missing are counted. */
static void spans_follow_each_other(void **unused)
{
    (void)unused;
    static const struct {
        uint64_t first;
        uint32_t rows;
    } chunks[] = {{0, 10}, {10, 10}, {20, 10}, {15, 10}, {30, 5}, {33, 4}, {40, 2}};
    static const struct rm_recording_span expected[] = {
        {.chunk = 0, .first = 0, .rows = 10},  {.chunk = 1, .first = 10, .rows = 5},
        {.chunk = 3, .first = 15, .rows = 10}, {.chunk = 4, .first = 30, .rows = 3},
        {.chunk = 5, .first = 33, .rows = 4},  {.chunk = 6, .first = 40, .rows = 2}};
    struct rm_recording_span *spans;
    struct rm_recording r;
    uint64_t lost;
    struct rm_recording_writer *writer = open_writer();
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++)
        assert_int_equal(put(writer, 0, chunks[i].first, chunks[i].rows, 0), 0);
    rm_recording_writer_close(writer);
    open_reader(&r);
    assert_int_equal(rm_recording_spans(&r, 0, &spans, &lost), 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(spans[i].chunk, expected[i].chunk);
        assert_int_equal(spans[i].first, expected[i].first);
        assert_int_equal(spans[i].rows, expected[i].rows);
    }
    assert_int_equal(lost, 5 + 3);
    free(spans);
    assert_int_equal(rm_recording_spans(&r, 1, &spans, &lost), 0);
    assert_int_equal(lost, 0);
    free(spans);
    rm_recording_close(&r);
}

static void others_are_refused(void **unused)
{
    (void)unused;
    struct rm_recording_writer *writer;
    write_some(2);
    assert_int_equal(try_open(&writer, "s"), -EINVAL);
    assert_non_null(strstr(error.text, "has the recording of run r, but this is run s"));
    describe(&streams[1], "b", 7);
    assert_int_equal(try_open(&writer, "r"), -EINVAL);
    assert_non_null(strstr(error.text, "other columns or lanes"));
}

/* A write that fails leaves what was there, and a later one may succeed. */
static void a_full_disk_is_survived(void **unused)
{
    (void)unused;
    struct rm_recording r;
    struct rlimit before, little;
    struct rm_recording_writer *writer = open_writer();
    assert_int_equal(put(writer, 0, 0, ROWS, 1), 0);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    little = before;
    little.rlim_cur = (rlim_t)size_of("chunks") + 60;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    assert_true(put(writer, 0, ROWS, ROWS, 1) < 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rm_recording_writer_end(writer, 0), ROWS);
    assert_int_equal(size_of("chunks"), little.rlim_cur - 60);
    assert_int_equal(put(writer, 0, 2 * ROWS, ROWS, 0), 0);
    rm_recording_writer_close(writer);
    open_reader(&r);
    assert_int_equal(r.chunks, 2);
    holds(&r, 0, 1);
    holds(&r, 1, 0);
    rm_recording_close(&r);
}

/* What lies beside no recording.json is of no recording. */
static void chunks_of_none_are_removed(void **unused)
{
    (void)unused;
    struct rm_recording r;
    write_some(4);
    assert_int_equal(remove(file("recording.json")), 0);
    write_some(1);
    open_reader(&r);
    assert_int_equal(r.chunks, 1);
    assert_int_equal(r.tail, 0);
    holds(&r, 0, 0);
    rm_recording_close(&r);
}

/* A pipe cannot be synced. */
static void what_is_not_synced_is_told(void **unused)
{
    (void)unused;
    static const char *const names[] = {"chunks", "index"};
    for (int i = 0; i < 2; i++) {
        struct rm_recording_writer *writer = open_writer();
        char link[32], target[96] = "";
        int ends[2], fd = 2;
        while (strcmp(target, file(names[i])) != 0) {
            snprintf(link, sizeof link, "/proc/self/fd/%d", ++fd);
            const ssize_t n = readlink(link, target, sizeof target - 1);
            target[n > 0 ? n : 0] = '\0';
            assert_true(fd < 64);
        }
        assert_int_equal(pipe(ends), 0);
        assert_int_equal(dup2(ends[1], fd), fd);
        assert_int_equal(rm_recording_writer_close(writer), -EINVAL);
        close(ends[0]);
        close(ends[1]);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read),   TEST(damage_is_refused_with_its_place),
        TEST(whole_chunks_survive),       TEST(spans_follow_each_other),
        TEST(others_are_refused),         TEST(a_full_disk_is_survived),
        TEST(chunks_of_none_are_removed), TEST(what_is_not_synced_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
