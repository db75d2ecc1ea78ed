/* The thread that writes: what is handed over stands in the files in that order, what has no room
 * is counted, ends are reported, and nothing is allocated. A write that takes long is one that
 * waits for the test. */
#include "daemon/writer.h"
#include "tests/support/allocations.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static uv_loop_t loop;
static struct rm_writer writer;
static unsigned failures_reported;

static void on_failure(void *user)
{
    assert_ptr_equal(user, &loop);
    failures_reported++;
}

static void open_writer(size_t capacity)
{
    struct rm_error error = {""};
    assert_int_equal(rm_writer_open(&writer, &loop, capacity, on_failure, &loop, &error), 0);
    assert_string_equal(error.text, "");
}

static int setup(void **state)
{
    (void)state;
    failures_reported = 0;
    return uv_loop_init(&loop);
}

static int teardown(void **state)
{
    (void)state;
    rm_writer_close(&writer);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static int scratch(void)
{
    char path[] = "/tmp/rm-writer-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    unlink(path);
    return fd;
}

/* Everything in the file. To be freed. */
static char *contents(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
    return text;
}

static void holds(int fd, const char *expected)
{
    char *text = contents(fd);
    assert_string_equal(text, expected);
    free(text);
}

/* --- a write that waits ----------------------------------------------------------------------- */

static int gate[2];

/* Appends once the test has let one through. */
static int append_when_let(int fd, const void *data, size_t bytes)
{
    char let;
    return read(gate[0], &let, 1) == 1 ? rm_write_append(fd, data, bytes) : -EIO;
}

static void let_through(int n)
{
    for (int i = 0; i < n; i++)
        assert_int_equal(write(gate[1], "x", 1), 1);
}

static int put(rm_write_fn how, int fd, const char *text)
{
    return rm_writer_put(&writer, how, fd, text, strlen(text), NULL);
}

/* --- tests ------------------------------------------------------------------------------------ */

/* Through a queue that is wound round many times, two files at once. */
static void order_is_kept_per_file(void **state)
{
    static char expected[2][1 << 20];
    size_t used[2] = {0, 0};
    const int fd[2] = {scratch(), scratch()};
    uint64_t refused = 0;
    (void)state;
    open_writer(4096);
    for (unsigned i = 0; i < 3000; i++) {
        char piece[700];
        const unsigned bytes = 1 + i * 7919 % 600, to = i * 31 % 3 == 0;
        for (unsigned b = 0; b < bytes; b++)
            piece[b] = (char)('a' + (i + b) % 26);
        while (rm_writer_put(&writer, rm_write_append, fd[to], piece, bytes, NULL) < 0) {
            refused++;
            rm_writer_flush(&writer);
        }
        memcpy(expected[to] + used[to], piece, bytes);
        used[to] += bytes;
    }
    rm_writer_flush(&writer);
    const struct rm_writer_counts counts = rm_writer_counts(&writer);
    assert_int_equal(counts.written, 3000);
    assert_int_equal(counts.lost, refused);
    assert_int_equal(counts.queued_bytes, 0);
    assert_int_equal(counts.failed, 0);
    for (int i = 0; i < 2; i++) {
        holds(fd[i], expected[i]);
        close(fd[i]);
    }
}

static void what_has_no_room_is_left_out_and_counted(void **state)
{
    static char expected[1 << 16];
    size_t used = 0;
    const int fd = scratch();
    int taken = 0;
    char piece[64];
    (void)state;
    assert_int_equal(pipe(gate), 0);
    open_writer(4096);
    for (;; taken++) {
        snprintf(piece, sizeof piece, "piece %d of those that find room\n", taken);
        if (put(append_when_let, fd, piece) != RM_WRITER_QUEUED)
            break;
        used += (size_t)snprintf(expected + used, sizeof expected - used, "%s", piece);
        assert_true(taken < 1000);
    }
    assert_true(taken > 10);
    struct rm_writer_counts counts = rm_writer_counts(&writer);
    assert_int_equal(counts.lost, 1);
    assert_true(counts.queued_bytes <= 4096 && counts.queued_bytes > 2048);
    assert_int_equal(put(append_when_let, fd, piece), -ENOBUFS);
    holds(fd, ""); /* and all that time nobody waited */

    let_through(taken);
    rm_writer_flush(&writer);
    holds(fd, expected);
    counts = rm_writer_counts(&writer);
    assert_int_equal(counts.lost, 2);
    assert_int_equal(counts.written, taken);
    let_through(1);
    assert_int_equal(put(append_when_let, fd, "and again\n"), RM_WRITER_QUEUED);
    rm_writer_flush(&writer);
    snprintf(expected + used, sizeof expected - used, "and again\n");
    holds(fd, expected);
    close(gate[0]);
    close(gate[1]);
    close(fd);
}

static void what_is_larger_than_the_queue_is_left_out(void **state)
{
    static char large[8192];
    const int fd = scratch();
    (void)state;
    open_writer(4096);
    memset(large, 'x', sizeof large);
    assert_int_equal(rm_writer_put(&writer, rm_write_append, fd, large, sizeof large, NULL),
                     -ENOBUFS);
    assert_int_equal(rm_writer_put(&writer, rm_write_append, fd, large, 4096, NULL), -ENOBUFS);
    assert_int_equal(rm_writer_counts(&writer).lost, 2);
    assert_int_equal(put(rm_write_append, fd, "fits"), RM_WRITER_QUEUED);
    rm_writer_flush(&writer);
    holds(fd, "fits");
    close(fd);
}

struct end {
    struct rm_write write;
    int rc, order;
};
static int ends_so_far;

static void done(struct rm_write *write, int rc)
{
    struct end *end = write->user;
    end->rc = rc;
    end->order = ++ends_so_far;
}

static void ends_are_reported_in_order(void **state)
{
    const int fd = scratch(), nowhere = open("/dev/full", O_WRONLY | O_CLOEXEC);
    struct end ends[3];
    (void)state;
    ends_so_far = 0;
    open_writer(4096);
    for (int i = 0; i < 3; i++) {
        ends[i] = (struct end){.write = {.done = done, .user = &ends[i]}, .rc = 1};
        assert_int_equal(rm_writer_put(&writer, rm_write_durably, i == 1 ? nowhere : fd, "abc", 3,
                                       &ends[i].write),
                         RM_WRITER_QUEUED);
    }
    uv_ref((uv_handle_t *)&writer.ended);
    while (ends_so_far < 3)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(ends[0].rc, 0);
    assert_int_equal(ends[1].rc, -ENOSPC);
    assert_int_equal(ends[2].rc, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ends[i].order, i + 1);
    holds(fd, "abcabc");
    while (failures_reported == 0)
        uv_run(&loop, UV_RUN_ONCE);
    const struct rm_writer_counts counts = rm_writer_counts(&writer);
    assert_int_equal(counts.failed, 1);
    assert_int_equal(counts.failure, -ENOSPC);
    assert_int_equal(counts.failure_fd, nowhere);
    close(nowhere);
    close(fd);
}

static void and_one_more(struct rm_write *write, int rc)
{
    assert_int_equal(rc, 0);
    assert_int_equal(put(rm_write_append, *(int *)write->user, "the last"), RM_WRITER_QUEUED);
}

static void closing_writes_everything(void **state)
{
    int fd = scratch();
    struct rm_write write = {.done = and_one_more, .user = &fd};
    (void)state;
    open_writer(4096);
    for (int i = 0; i < 20; i++)
        assert_int_equal(put(rm_write_append, fd, "."), RM_WRITER_QUEUED);
    assert_int_equal(rm_writer_put(&writer, rm_write_append, fd, "!", 1, &write), RM_WRITER_QUEUED);
    rm_writer_close(&writer);
    holds(fd, "....................!the last");
    /* From here on it writes at once. */
    assert_int_equal(put(rm_write_append, fd, "?"), 0);
    holds(fd, "....................!the last?");
    assert_int_equal(rm_writer_counts(&writer).written, 23);
    close(fd);
}

static void without_a_thread_it_writes_at_once(void **state)
{
    const int fd = scratch();
    (void)state;
    memset(&writer, 0, sizeof writer);
    assert_int_equal(put(rm_write_append, fd, "now"), 0);
    holds(fd, "now");
    close(fd);
    assert_int_equal(put(rm_write_append, fd, "gone"), -EBADF);
    assert_int_equal(rm_writer_counts(&writer).failed, 1);
    assert_int_equal(rm_writer_counts(&writer).failure, -EBADF);
    rm_writer_flush(&writer);
}

/* Of a piece that does not fit on the disk nothing stays. */
static void a_piece_is_there_whole_or_not_at_all(void **state)
{
    const int fd = scratch();
    struct rlimit before, tight;
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(rm_write_append(fd, "0123456789", 10), 0);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 15;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    const int rc = rm_write_append(fd, "0123456789", 10);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(rc, -EFBIG);
    holds(fd, "0123456789");
    close(fd);
}

/* More than a pipe holds, into one that somebody made not to block. */
static void a_pipe_gets_all_of_it(void **state)
{
    static char text[300000], got[sizeof text];
    int ends[2];
    size_t used = 0;
    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('a' + i % 23);
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, 0), 0);
    open_writer(sizeof text + 4096);
    assert_int_equal(rm_writer_put(&writer, rm_write_through, ends[1], text, sizeof text, NULL),
                     RM_WRITER_QUEUED);
    while (used < sizeof text) {
        const ssize_t n = read(ends[0], got + used, sizeof got - used);
        assert_true(n > 0);
        used += (size_t)n;
    }
    rm_writer_flush(&writer);
    assert_memory_equal(text, got, sizeof text);
    close(ends[0]);
    close(ends[1]);
}

static void nothing_is_allocated(void **state)
{
    const int fd = scratch();
    struct end end = {.write = {.done = done, .user = &end}};
    (void)state;
    if (!rm_test_allocations_counted())
        skip();
    open_writer(4096);
    put(rm_write_append, fd, "what the first call makes\n");
    rm_writer_flush(&writer);
    const uint64_t before = rm_test_allocations();
    for (int i = 0; i < 500; i++) {
        put(rm_write_append, fd, "a line of a journal\n");
        if (i % 50 == 0) {
            assert_int_equal(rm_writer_put(&writer, rm_write_append, fd, "tail\n", 5, &end.write),
                             RM_WRITER_QUEUED);
            rm_writer_flush(&writer);
        }
    }
    rm_writer_flush(&writer);
    assert_int_equal(rm_test_allocations() - before, 0);
    close(fd);
}

static void no_more_descriptors_is_said(void **state)
{
    struct rm_error error = {""};
    struct rlimit before, none;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const int rc = rm_writer_open(&writer, &loop, 4096, NULL, NULL, &error);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(rc, -EMFILE);
    assert_non_null(strstr(error.text, "cannot create the thread that writes files: "));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(order_is_kept_per_file),
        T(what_has_no_room_is_left_out_and_counted),
        T(what_is_larger_than_the_queue_is_left_out),
        T(ends_are_reported_in_order),
        T(closing_writes_everything),
        T(without_a_thread_it_writes_at_once),
        T(a_piece_is_there_whole_or_not_at_all),
        T(a_pipe_gets_all_of_it),
        T(nothing_is_allocated),
        T(no_more_descriptors_is_said),
    };
    alarm(120); /* one that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
