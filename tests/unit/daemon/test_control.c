/* daemon/control: what becomes of clients that do not read, on a clock of the test's own: who is
 * kept and who is given up, when to the nanosecond, and what each of them loses. Server and clients
 * are in one thread, so nothing here depends on how fast the host is. */
#include "tests/support/unit.h"

#include "daemon/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define BEGIN  (1000 * SECOND) /* of the test's time */

enum { BIG = 60000, TURNS = 64, LINE_MAX_BYTES = 1 << 17 };

/* A client's end, and what it has read of a line. */
struct end {
    int fd;
    bool closed; /* by the server */
    size_t used;
    char in[LINE_MAX_BYTES];
};

static uv_loop_t loop;
static struct rm_control *control;
static struct sockaddr_un address;
static socklen_t address_bytes;
static char big_text[BIG];

/* "events" subscribes; "big" is answered with many bytes, everything else with few. */
static enum rm_refusal execute(void *user, struct rm_connection *client,
                               const struct rm_request *request, json_t **reply,
                               struct rm_error *error)
{
    (void)user, (void)error;
    if (strcmp(request->execute, "events") == 0)
        rm_connection_subscribe(client, true);
    *reply = json_stringn(big_text, strcmp(request->execute, "big") == 0 ? BIG : 1);
    return RM_REFUSED_NOT;
}

static int start(void **state)
{
    static const struct rm_control_ops ops = {.execute = execute};
    struct rm_error error = {.text = ""};
    (void)state;
    memset(big_text, 'x', sizeof big_text);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    address.sun_family = AF_UNIX;
    if (bind(fd, (struct sockaddr *)&address, sizeof address.sun_family)) { /* a name of its own */
        close(fd);
        return -1;
    }
    address_bytes = sizeof address;
    if (getsockname(fd, (struct sockaddr *)&address, &address_bytes) || uv_loop_init(&loop) ||
        rm_control_open(&control, &loop, fd, &ops, NULL, &error)) {
        print_error("%s\n", error.text);
        return -1;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    rm_control_close(control);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

static struct rm_control_counts counts(void)
{
    return rm_control_counts(control);
}

/* Turns of the loop until it answers nothing more. */
static void settle(void)
{
    for (int quiet = 0; quiet < TURNS; quiet++) {
        const uint64_t before = counts().requests;
        uv_run(&loop, UV_RUN_NOWAIT);
        if (counts().requests != before)
            quiet = 0;
    }
}

/* A look at all clients at a time of the test's. */
static void look(uint64_t now_ns)
{
    settle();
    rm_control_expire(control, now_ns);
    settle();
}

/* The next line that is there, NULL where there is none or the server has closed. Nothing is read
 * beyond it than what it came with. */
static json_t *next(struct end *e)
{
    for (int i = 0; i < TURNS; i++) {
        char *newline = memchr(e->in, '\n', e->used);
        if (newline) {
            json_t *value = json_loadb(e->in, (size_t)(newline - e->in), 0, NULL);
            assert_non_null(value);
            e->used -= (size_t)(newline + 1 - e->in);
            memmove(e->in, newline + 1, e->used);
            return value;
        }
        assert_true(e->used < sizeof e->in);
        const ssize_t n = recv(e->fd, e->in + e->used, sizeof e->in - e->used, MSG_DONTWAIT);
        if (n > 0) {
            e->used += (size_t)n;
            continue;
        }
        e->closed |= n == 0 || errno != EAGAIN;
        if (e->closed)
            return NULL;
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    return NULL;
}

/* Reads all there is. How many lines; what they say to be lost is added to *lost. */
static unsigned read_all(struct end *e, json_int_t *lost)
{
    unsigned n = 0;
    for (json_t *line; (line = next(e)) != NULL; n++) {
        if (lost)
            *lost += json_integer_value(json_object_get(line, "lost"));
        json_decref(line);
    }
    return n;
}

static void ask(struct end *e, const char *what, unsigned times)
{
    char line[64];
    const int bytes = snprintf(line, sizeof line, "{\"execute\":\"%s\"}\n", what);
    for (unsigned i = 0; i < times; i++)
        assert_int_equal(send(e->fd, line, (size_t)bytes, MSG_NOSIGNAL), bytes);
}

static struct end *client(void)
{
    struct end *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(e->fd, (struct sockaddr *)&address, address_bytes), 0);
    settle();
    assert_int_equal(read_all(e, NULL), 1); /* the greeting */
    return e;
}

static void leave(struct end *e)
{
    close(e->fd);
    free(e);
    settle();
}

static bool is_answered(struct end *e)
{
    ask(e, "something", 1);
    return read_all(e, NULL) == 1;
}

/* One reads nothing, one reads once a second, one has nothing to read. */
static void who_reads_nothing_is_given_up_when_patience_is_over(void **state)
{
    (void)state;
    struct end *deaf = client(), *slow = client(), *quiet = client();
    ask(deaf, "big", 100);
    ask(slow, "big", 100);
    look(BEGIN);
    for (unsigned s = 1; s <= 10; s++) {
        for (int i = 0; i < 10; i++) {
            json_t *reply = next(slow);
            assert_non_null(reply);
            json_decref(reply);
        }
        look(BEGIN + s * SECOND);
        assert_int_equal(counts().slow_closed, 0);
    }
    assert_int_equal(read_all(slow, NULL), 0);
    ask(slow, "big", 100); /* and now it reads nothing either */
    look(BEGIN + RM_CONTROL_PATIENCE_NS + 1);
    assert_int_equal(counts().slow_closed, 1);
    assert_int_equal(counts().clients, 2);
    assert_true(read_all(deaf, NULL) > 0); /* what the socket had taken */
    assert_true(deaf->closed);
    look(BEGIN + 2 * RM_CONTROL_PATIENCE_NS + 1);
    assert_int_equal(counts().slow_closed, 1);
    look(BEGIN + 2 * RM_CONTROL_PATIENCE_NS + 2);
    assert_int_equal(counts().slow_closed, 2);
    assert_true(read_all(slow, NULL) < 100);
    assert_true(slow->closed);
    look(BEGIN + 1000 * RM_CONTROL_PATIENCE_NS);
    assert_true(is_answered(quiet));
    leave(deaf);
    leave(slow);
    leave(quiet);
    assert_int_equal(counts().slow_closed, 2);
    assert_int_equal(counts().clients, 0);
}

static void time_that_the_daemon_was_away_does_not_count(void **state)
{
    (void)state;
    const uint64_t before = counts().slow_closed;
    struct end *deaf = client();
    ask(deaf, "big", 100);
    look(BEGIN);
    rm_control_away(control, 60 * SECOND);
    look(BEGIN + 60 * SECOND + RM_CONTROL_PATIENCE_NS);
    assert_int_equal(counts().slow_closed, before);
    look(BEGIN + 60 * SECOND + RM_CONTROL_PATIENCE_NS + 1);
    assert_int_equal(counts().slow_closed, before + 1);
    leave(deaf);
}

/* Its requests are left in the socket once enough answers stand; all are answered when it reads. */
static void who_does_not_read_is_not_read_from(void **state)
{
    (void)state;
    const uint64_t before = counts().requests;
    struct end *e = client();
    json_int_t asked = 0;
    for (int quiet = 0; quiet < TURNS;) {
        char line[1200];
        const int bytes =
            snprintf(line, sizeof line, "{\"execute\":\"big\",\"id\":%1000lld}\n", asked);
        const ssize_t n = send(e->fd, line, (size_t)bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            assert_int_equal(errno, EAGAIN);
        quiet = n < 0 ? quiet + 1 : 0;
        asked += n > 0;
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_true(asked < 10000); /* it never stopped */
    }
    int taken = 0; /* by the socket itself */
    socklen_t size = sizeof taken;
    assert_int_equal(getsockopt(e->fd, SOL_SOCKET, SO_SNDBUF, &taken, &size), 0);
    assert_true(counts().requests - before <= (RM_CONTROL_OUTPUT_HIGH + (unsigned)taken) / BIG + 2);
    for (json_int_t i = 0; i < asked; i++) {
        json_t *reply = next(e);
        assert_int_equal(json_integer_value(json_object_get(reply, "id")), i);
        json_decref(reply);
    }
    leave(e);
}

/* Forty subscribers who do not read. Half of them read in time: each gets the number of events that
 * it lost. The others are given up, and nobody else. */
static void lost_events_are_counted_and_reported(void **state)
{
    (void)state;
    enum { SLOW = 40, LOST = 50 };
    const struct rm_control_counts before = counts();
    struct end *slow[SLOW], *good = client();
    json_t *data = json_pack("{s:o}", "value", json_stringn(big_text, 1000));
    for (int i = 0; i < SLOW; i++) {
        slow[i] = client();
        ask(slow[i], "events", 1);
        settle();
        assert_int_equal(read_all(slow[i], NULL), 1);
    }
    ask(good, "events", 1);
    settle();
    assert_int_equal(read_all(good, NULL), 1);
    unsigned sent = 0;
    while (counts().events_lost < before.events_lost + SLOW * LOST) {
        rm_control_event(control, "set", data);
        uv_run(&loop, UV_RUN_NOWAIT);
        sent++;
        assert_int_equal(read_all(good, NULL), 1);
    }
    assert_int_equal(counts().events_lost,
                     before.events_lost + SLOW * LOST); /* all lose the same */
    look(BEGIN);
    for (int i = 0; i < SLOW; i += 2)
        assert_int_equal(read_all(slow[i], NULL), sent - LOST);
    look(BEGIN + RM_CONTROL_PATIENCE_NS);
    assert_int_equal(counts().slow_closed, before.slow_closed);
    look(BEGIN + RM_CONTROL_PATIENCE_NS + 1);
    assert_int_equal(counts().slow_closed, before.slow_closed + SLOW / 2);
    rm_control_event(control, "set", data);
    settle();
    json_int_t said = 0;
    assert_int_equal(read_all(good, &said), 1);
    assert_int_equal(said, 0);
    for (int i = 0; i < SLOW; i++) {
        said = 0;
        const unsigned lines = read_all(slow[i], &said);
        assert_int_equal(slow[i]->closed, i % 2);
        if (i % 2 == 0) {
            assert_int_equal(lines, 1);
            assert_int_equal(said, LOST);
            assert_true(is_answered(slow[i]));
        }
        leave(slow[i]);
    }
    assert_int_equal(counts().events_lost, before.events_lost + SLOW * LOST);
    leave(good);
    json_decref(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_reads_nothing_is_given_up_when_patience_is_over),
        cmocka_unit_test(time_that_the_daemon_was_away_does_not_count),
        cmocka_unit_test(who_does_not_read_is_not_read_from),
        cmocka_unit_test(lost_events_are_counted_and_reported),
    };
    return cmocka_run_group_tests(tests, start, end);
}
