/* What bad clients get: an error, or to be closed; never a daemon that is harmed or stuck. */
#include "tests/support/daemon.h"
#include "tests/support/fake_worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE_MAX_BYTES 65536
#define CLIENTS_MAX    256

static struct rm_test_daemon d;

static int start(void **state)
{
    (void)state;
    static const char config[] =
        "{\"name\":\"x\",\"run\":{\"steps\":0},\"world\":{\"name\":\"count\"},"
        "\"algorithm\":{\"name\":\"dqn\"},"
        "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"relu\"}]}}";
    if (rm_test_daemon_home(&d, "abuse", config) < 0 || rm_test_daemon_start(&d, NULL, true, 0) < 0)
        return -1;
    int fd = rm_test_connect(&d);
    if (fd < 0) {
        printf("%s\n", rm_test_daemon_output(&d));
        return -1;
    }
    close(fd);
    return 0;
}

static int end(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

/* After each abuse: still there, still answering somebody new. */
static void unharmed(void)
{
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    json_t *reply = rm_test_ask(fd, "status", NULL);
    assert_non_null(rm_test_path(reply, "return.state"));
    json_decref(reply);
    close(fd);
}

static int client(void)
{
    int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    return fd;
}

/* Sends a line and expects an error of that class, on a connection that goes on working. */
static void refused(const char *line, size_t bytes, const char *class)
{
    int fd = client();
    assert_int_equal(rm_test_send(fd, line, bytes), 0);
    json_t *reply = rm_test_read(fd);
    if (strcmp(rm_test_error(reply), class) != 0)
        print_error("%.60s: %s\n", line, json_dumps(reply, 0));
    assert_string_equal(rm_test_error(reply), class);
    json_decref(reply);
    reply = rm_test_ask(fd, "get", "{\"key\":\"seed\"}");
    assert_non_null(rm_test_path(reply, "return.value"));
    json_decref(reply);
    close(fd);
}

static void garbage_is_answered(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "hello\n",
        "{\n",
        "}\n",
        "[]\n",
        "null\n",
        "42\n",
        "\"status\"\n",
        "{}\n",
        "{\"execute\":5}\n",
        "{\"execute\":null}\n",
        "{\"execute\":\"status\",\"arguments\":[]}\n",
        "{\"execute\":\"status\",\"argument\":{}}\n",
        "{\"execute\":\"status\",\"execute\":\"stop\"}\n",
        "{\"execute\":\"status\"} {\"execute\":\"stop\"}\n",
        "{\"execute\":\"status\"\n",
        "{'execute':'status'}\n",
        "\xff\xfe\n",
        "{\"execute\":\"\xc3\x28\"}\n",
        "{\"execute\":\"status\",\"id\":1e999}\n",
        "{\"execute\":\"\\u0000\",\"id\":99999999999999999999999}\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        refused(lines[i], strlen(lines[i]), "bad-request");
    static const char zeros[64] = {[63] = '\n'};
    refused(zeros, sizeof zeros, "bad-request");
    static const char hidden[] = "{\"execute\":\"stop\\u0000x\"}\n";
    refused(hidden, sizeof hidden - 1, "bad-request"); /* the parser refuses NUL in strings */
    unharmed();
}

static void ids_of_any_type_come_back(void **state)
{
    (void)state;
    int fd = client();
    static const char *const ids[] = {"1", "\"a\"", "null", "[1,{\"b\":2}]", "1.5", "true"};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        char line[128];
        int n = snprintf(line, sizeof line, "{\"execute\":\"%s\",\"id\":%s}\n",
                         i % 2 ? "get" : "nonsense", ids[i]);
        assert_int_equal(rm_test_send(fd, line, (size_t)n), 0);
        json_t *reply = rm_test_read(fd), *id = json_loads(ids[i], JSON_DECODE_ANY, NULL);
        assert_true(json_equal(json_object_get(reply, "id"), id));
        assert_true((json_object_get(reply, "return") != NULL) == (i % 2 == 1));
        json_decref(reply);
        json_decref(id);
    }
    close(fd);
}

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    static char line[LINE_MAX_BYTES];
    for (int kind = 0; kind < 2; kind++) {
        size_t n = 0, deep = 30000;
        if (kind)
            n = (size_t)sprintf(line, "{\"execute\":\"status\",\"id\":");
        memset(line + n, '[', deep);
        memset(line + n + deep, ']', deep);
        n += 2 * deep;
        if (kind)
            line[n++] = '}';
        line[n++] = '\n';
        refused(line, n, "bad-request");
    }
    /* Brackets within a string are no nesting. */
    int fd = client();
    static const char fine[] =
        "{\"execute\":\"get\",\"id\":\"[[[[[[[[[[[[[[[[[[[[[[[{{{{\\\"[[\"}\n";
    assert_int_equal(rm_test_send(fd, fine, sizeof fine - 1), 0);
    json_t *reply = rm_test_read(fd);
    assert_non_null(json_object_get(reply, "return"));
    json_decref(reply);
    close(fd);
    unharmed();
}

static void long_lines_are_refused_once(void **state)
{
    (void)state;
    size_t bytes = 1 << 20;
    char *line = malloc(bytes);
    assert_non_null(line);
    memset(line, 'x', bytes);
    line[bytes - 1] = '\n';
    refused(line, bytes, "too-long");
    /* The longest that fits is read, and found to be no JSON. */
    line[LINE_MAX_BYTES - 1] = '\n';
    refused(line, LINE_MAX_BYTES, "bad-request");
    line[LINE_MAX_BYTES - 1] = 'x';
    line[LINE_MAX_BYTES] = '\n';
    refused(line, LINE_MAX_BYTES + 1, "too-long");
    free(line);
    unharmed();
}

static void half_lines_wait(void **state)
{
    (void)state;
    int fd = client();
    static const char line[] = "  {\"execute\" : \"get\", \"id\":3}\r\n";
    for (size_t i = 0; i < sizeof line - 1; i++) {
        assert_int_equal(rm_test_send(fd, line + i, 1), 0);
        usleep(1000);
    }
    json_t *reply = rm_test_read(fd);
    assert_int_equal(json_integer_value(json_object_get(reply, "id")), 3);
    json_decref(reply);
    /* A line that never ends, and then nobody. */
    assert_int_equal(rm_test_send(fd, "{\"execute\":\"stop\"}", 18), 0);
    close(fd);
    usleep(20000);
    unharmed();
}

static void a_truncated_line_is_an_error(void **state)
{
    (void)state;
    static const char *const lines[] = {"{\"execute\":\"stop\"", "{\"execute\":\"stop\"}", "x"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int fd = client();
        assert_int_equal(rm_test_send(fd, lines[i], strlen(lines[i])), 0);
        assert_int_equal(shutdown(fd, SHUT_WR), 0);
        json_t *reply = rm_test_read(fd);
        assert_string_equal(rm_test_error(reply), "bad-request");
        json_decref(reply);
        assert_null(rm_test_read(fd)); /* closed */
        close(fd);
    }
    unharmed(); /* it was not stopped */
}

static void empty_lines_are_skipped(void **state)
{
    (void)state;
    int fd = client();
    static const char lines[] = "\n\n \r\n{\"execute\":\"get\",\"id\":1}\n\n";
    assert_int_equal(rm_test_send(fd, lines, sizeof lines - 1), 0);
    json_t *reply = rm_test_read(fd);
    assert_int_equal(json_integer_value(json_object_get(reply, "id")), 1);
    json_decref(reply);
    close(fd);
}

static void many_requests_at_once_are_all_answered_in_order(void **state)
{
    (void)state;
    enum { REQUESTS = 3000 };
    int fd = client();
    char *lines = malloc(REQUESTS * 48);
    size_t n = 0;
    assert_non_null(lines);
    for (int i = 0; i < REQUESTS; i++)
        n += (size_t)sprintf(lines + n, "{\"execute\":\"nosuch\",\"id\":%d}\n", i);
    assert_int_equal(rm_test_send(fd, lines, n), 0);
    for (int i = 0; i < REQUESTS; i++) {
        json_t *reply = rm_test_read(fd);
        assert_int_equal(json_integer_value(json_object_get(reply, "id")), i);
        json_decref(reply);
    }
    free(lines);
    close(fd);
}

static void many_clients_are_served_and_too_many_are_refused(void **state)
{
    (void)state;
    int fds[CLIENTS_MAX];
    for (int i = 0; i < CLIENTS_MAX; i++) {
        fds[i] = client();
        json_t *reply = rm_test_ask(fds[i], "get", "{\"key\":\"seed\"}");
        assert_non_null(json_object_get(reply, "return"));
        json_decref(reply);
    }
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", d.socket);
    int extra = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(extra, (struct sockaddr *)&address, sizeof address), 0);
    json_t *line = rm_test_read(extra);
    assert_string_equal(rm_test_error(line), "not-now");
    json_decref(line);
    assert_null(rm_test_read(extra)); /* closed */
    close(extra);
    for (int i = 0; i < CLIENTS_MAX; i++)
        close(fds[i]);
    unharmed();
}

static void leaving_in_the_middle_of_a_reply_harms_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        int fd = client();
        static const char lines[] = "{\"execute\":\"status\"}\n{\"execute\":\"query-schema\"}\n"
                                    "{\"execute\":\"metrics\"}\n{\"execute\":\"sta";
        assert_int_equal(rm_test_send(fd, lines, sizeof lines - 1), 0);
        if (i % 3 == 1) {
            char some[100];
            assert_true(read(fd, some, sizeof some) > 0);
        }
        if (i % 3 == 2)
            shutdown(fd, SHUT_RD);
        close(fd);
    }
    unharmed();
}

static void a_closed_sending_side_still_gets_its_answers(void **state)
{
    (void)state;
    int fd = client();
    static const char lines[] =
        "{\"execute\":\"status\",\"id\":1}\n{\"execute\":\"status\",\"id\":2}\n";
    assert_int_equal(rm_test_send(fd, lines, sizeof lines - 1), 0);
    shutdown(fd, SHUT_WR);
    for (int i = 1; i <= 2; i++) {
        json_t *reply = rm_test_read(fd);
        assert_int_equal(json_integer_value(json_object_get(reply, "id")), i);
        json_decref(reply);
    }
    assert_null(rm_test_read(fd));
    close(fd);
}

static void nothing_is_left_open(void **state)
{
    (void)state;
    int fd = client();
    /* All the clients above are gone; their closing may still be on its way. */
    bool alone = false;
    for (int i = 0; i < 20000 && !alone; i++) {
        json_t *reply = rm_test_ask(fd, "status", NULL);
        alone = json_integer_value(rm_test_path(reply, "return.control.clients")) == 1;
        json_decref(reply);
        usleep(10000);
    }
    assert_true(alone);
    close(fd);
}

int main(int argc, char **argv)
{
    int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_is_answered),
        cmocka_unit_test(ids_of_any_type_come_back),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(long_lines_are_refused_once),
        cmocka_unit_test(half_lines_wait),
        cmocka_unit_test(a_truncated_line_is_an_error),
        cmocka_unit_test(empty_lines_are_skipped),
        cmocka_unit_test(many_requests_at_once_are_all_answered_in_order),
        cmocka_unit_test(many_clients_are_served_and_too_many_are_refused),
        cmocka_unit_test(leaving_in_the_middle_of_a_reply_harms_nobody),
        cmocka_unit_test(a_closed_sending_side_still_gets_its_answers),
        cmocka_unit_test(nothing_is_left_open),
    };
    return cmocka_run_group_tests(tests, start, end);
}
