/* Programs that the event loop starts: with which signals, with which descriptors, and how their
 * end is reported. */
#include "daemon/child.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uv_loop_t loop;
static struct {
    int64_t status;
    int signal, exec_errno;
    bool ended, closed;
} came;

static void on_exit_(struct rm_child *child, int64_t status, int signal, int exec_errno)
{
    (void)child;
    came.status = status;
    came.signal = signal;
    came.exec_errno = exec_errno;
    came.ended = true;
}

static void on_closed(struct rm_child *child)
{
    (void)child;
    came.closed = true;
}

static int setup(void **state)
{
    (void)state;
    memset(&came, 0, sizeof came);
    return uv_loop_init(&loop);
}

static int teardown(void **state)
{
    (void)state;
    return uv_loop_close(&loop);
}

/* Runs `script` to its end; `out`: its standard output, -1: none. */
static void run(const char *script, bool holds_stop, int out)
{
    struct rm_child child = {.holds_stop = holds_stop, .on_exit = on_exit_, .on_closed = on_closed};
    char *arguments[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    int fds[] = {-1, out, -1};
    struct rm_error error = {""};
    assert_int_equal(rm_child_start(&child, &loop, "/bin/sh", arguments, fds, 3, &error), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(came.ended && came.closed);
    assert_int_equal(came.exec_errno, 0);
}

static void an_exit_code_is_reported(void **state)
{
    (void)state;
    run("exit 7", false, -1);
    assert_int_equal(came.status, 7);
    assert_int_equal(came.signal, 0);
}

static void a_stop_ends_a_program(void **state)
{
    (void)state;
    run("kill -TERM $$; exit 7", false, -1);
    assert_int_equal(came.signal, SIGTERM);
}

/* One that comes before the program has a handler waits for it. */
static void a_stop_is_held_where_that_is_asked_for(void **state)
{
    (void)state;
    run("kill -TERM $$; exit 7", true, -1);
    assert_int_equal(came.signal, 0);
    assert_int_equal(came.status, 7);
}

/* A job's signals go to all of its processes. */
static void what_is_the_daemons_is_ignored(void **state)
{
    (void)state;
    run("kill -INT $$; kill -HUP $$; kill -USR1 $$; exit 7", false, -1);
    assert_int_equal(came.signal, 0);
    assert_int_equal(came.status, 7);
}

static void it_has_the_descriptors_it_was_given_and_no_other(void **state)
{
    char text[256] = "";
    int out[2], more[2];
    (void)state;
    assert_int_equal(pipe(out), 0);
    assert_int_equal(pipe(more), 0); /* not closed on exec, as other code may do it */
    run("i=0; while [ $i -lt 100 ]; do [ -e /proc/$$/fd/$i ] && printf \"$i \"; i=$((i+1)); done",
        false, out[1]);
    close(out[1]);
    assert_true(read(out[0], text, sizeof text - 1) > 0);
    assert_string_equal(text, "0 1 2 ");
    close(out[0]);
    close(more[0]);
    close(more[1]);
}

static void what_cannot_be_executed_is_said(void **state)
{
    struct rm_child child = {.on_exit = on_exit_, .on_closed = on_closed};
    char *arguments[] = {(char *)"x", NULL};
    int fds[] = {-1, -1, -1};
    struct rm_error error = {""};
    char path[] = "/tmp/rm-child-XXXXXX";
    (void)state;
    assert_int_equal(rm_child_start(&child, &loop, "/nowhere/x", arguments, fds, 3, &error),
                     -ENOENT);
    assert_non_null(strstr(error.text, "/nowhere/x"));
    assert_false(came.ended);

    const int fd = mkstemp(path);
    assert_true(fd >= 0 && fchmod(fd, 0700) == 0 &&
                write(fd,
                      "\x7f"
                      "ELF",
                      4) == 4);
    close(fd);
    assert_int_equal(rm_child_start(&child, &loop, path, arguments, fds, 3, &error), 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    unlink(path);
    assert_true(came.ended && came.closed);
    assert_int_equal(came.exec_errno, ENOEXEC);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(an_exit_code_is_reported),
        T(a_stop_ends_a_program),
        T(a_stop_is_held_where_that_is_asked_for),
        T(what_is_the_daemons_is_ignored),
        T(it_has_the_descriptors_it_was_given_and_no_other),
        T(what_cannot_be_executed_is_said),
    };
    alarm(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
