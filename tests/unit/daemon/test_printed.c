/* What workers print: a line is an entry of the journal, with time, level and worker, however it
 * comes; one who prints without end is read all the same, and costs no more than so many lines. */
#include "daemon/printed.h"
#include "shm/base/clock.h"
#include "tests/support/effort.h"
#include "tests/support/session.h"
#include "tests/support/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct rm_session session;
static struct rm_log journal;
static uv_loop_t loop;
static struct rm_printer printer;
static struct rm_printed printed;
static int out;

static int scratch(void)
{
    char path[] = "/tmp/rm-printed-XXXXXX";
    const int fd = mkstemp(path);
    unlink(path);
    return fd;
}

static int setup(void **state)
{
    struct rm_error error = {""};
    (void)state;
    printer = (struct rm_printer){.session = &session, .log = &journal, .loop = &loop};
    if (rm_test_session(&session,
                        "{\"name\":\"x\",\"world\":{\"name\":\"count\"},\"actor\":{\"count\":2},"
                        "\"algorithm\":{\"name\":\"dqn\"},"
                        "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":4}]}}") < 0)
        return -1;
    uv_loop_init(&loop);
    journal = (struct rm_log){.fd = scratch(), .echo_fd = scratch(), .echo = RM_LOG_NOTICE};
    out = rm_printed_open(&printed, &printer, 1, &error);
    return out >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    close(journal.fd);
    close(journal.echo_fd);
    rm_session_close(&session);
    return 0;
}

static void print(const char *text)
{
    assert_int_equal(write(out, text, strlen(text)), strlen(text));
    uv_run(&loop, UV_RUN_NOWAIT);
}

static void end(void)
{
    close(out);
    rm_printed_end(&printed);
}

static char *contents(int fd)
{
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
    return text;
}

static unsigned count(const char *text, const char *words)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, words)); at++)
        n++;
    return n;
}

static void a_line_is_an_entry(void **state)
{
    (void)state;
    print("plain\n<4>a warn");
    char *log = contents(journal.fd);
    assert_int_equal(count(log, "Z info    actor-1: plain\n"), 1);
    assert_null(strstr(log, "a warn"));
    free(log);
    print("ing\n\n<3>an error\n<7>detail\n<9>odd\n<5>notice\n");
    print("its last words");
    end();
    log = contents(journal.fd);
    char *echo = contents(journal.echo_fd);
    assert_int_equal(count(log, "\n"), 7);
    assert_int_equal(count(log, "Z warning actor-1: a warning\n"), 1);
    assert_int_equal(count(log, "Z error   actor-1: an error\n"), 1);
    assert_int_equal(count(log, "Z info    actor-1: detail\n"), 1);
    assert_int_equal(count(log, "Z info    actor-1: <9>odd\n"), 1);
    assert_int_equal(count(log, "Z notice  actor-1: notice\n"), 1);
    assert_int_equal(count(log, "Z info    actor-1: its last words\n"), 1);
    assert_string_equal(echo, "ringmasterd: actor-1: a warning\nringmasterd: actor-1: an error\n"
                              "ringmasterd: actor-1: notice\n");
    free(log);
    free(echo);
}

/* Cut where it is too long, and the rest of it is no line of its own. */
static void a_long_line_is_cut(void **state)
{
    static char line[3 * RM_PRINTED_LINE];
    (void)state;
    memset(line, 'x', sizeof line - 1);
    for (size_t i = 0; i < 6; i++) {
        line[i] = "begin "[i];
        line[sizeof line - 8 + i] = "theend"[i];
    }
    line[sizeof line - 2] = '\n';
    print(line);
    print("next\n");
    end();
    char *log = contents(journal.fd);
    assert_int_equal(count(log, "\n"), 2);
    assert_int_equal(count(log, "actor-1: begin xxx"), 1);
    assert_int_equal(count(log, "theend"), 0);
    assert_int_equal(count(log, "actor-1: next\n"), 1);
    free(log);
}

/* It is never held up, errors come through, and what was left out is counted. */
static void a_flood_is_read_and_left_out(void **state)
{
    char line[64];
    const uint32_t lines = rm_test_effort(20000, 2000);
    (void)state;
    for (uint32_t i = 0; i < lines; i++) {
        printer.pace[1].others.since_ns = rm_now_ns(); /* one window, however long it takes */
        snprintf(line, sizeof line, "line %u of a world that means harm\n", i);
        print(line);
    }
    print("<3>what it died of\n");
    end();
    char *log = contents(journal.fd);
    assert_int_equal(count(log, "that means harm"), RM_LOG_BURST);
    assert_int_equal(count(log, "error   actor-1: what it died of\n"), 1);
    snprintf(line, sizeof line, "actor-1: %u entries of kind printed came too fast",
             lines - RM_LOG_BURST);
    assert_int_equal(count(log, line), 1);
    free(log);
}

/* Nobody has the other end any more, but the process goes on: the loop has nothing to do with it.
 */
static void a_closed_end_keeps_nobody_busy(void **state)
{
    (void)state;
    print("bye\n");
    close(out);
    uv_run(&loop, UV_RUN_NOWAIT);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_false(uv_is_active((uv_handle_t *)&printed.poll));
    rm_printed_end(&printed);
    char *log = contents(journal.fd);
    assert_int_equal(count(log, "actor-1: bye\n"), 1);
    free(log);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_line_is_an_entry),
        T(a_long_line_is_cut),
        T(a_flood_is_read_and_left_out),
        T(a_closed_end_keeps_nobody_busy),
    };
    alarm(600);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
