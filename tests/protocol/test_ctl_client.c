/* ringctl's side of the protocol against servers that misbehave. */
#include "daemon/ctl/client.h"
#include "daemon/ctl/exit_code.h"
#include "shm/base/clock.h"
#include "tests/support/fake_experiment.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENT (240 * RM_NS_PER_S) /* for what must come: no test waits this long */
#define BRIEF   (50 * RM_NS_PER_MS) /* for what never comes */

/* Connects to a server with this greeting; returns the result, the message in `error`. */
static int greeted(const char *greeting, uint64_t timeout_ns, struct rm_error *error)
{
    struct rm_fake fake;
    struct rm_ctl_client client;
    assert_int_equal(rm_fake_start(&fake, "x", greeting, NULL), 0);
    int rc = rm_ctl_client_open(&client, fake.socket, timeout_ns, error);
    if (rc == 0)
        rm_ctl_client_close(&client);
    rm_fake_stop(&fake);
    return rc;
}

static void greetings_are_checked(void **state)
{
    struct rm_error error = {""};
    (void)state;
    assert_int_equal(greeted(NULL, PATIENT, &error), 0);
    assert_int_equal(
        greeted("{\"ringmaster\":{\"version\":\"7.1\",\"protocol\":2}}\n", PATIENT, &error),
        -EPROTO);
    assert_non_null(
        strstr(error.text, "speaks protocol 2 (version 7.1), but this ringctl speaks 1"));
    assert_int_equal(greeted("{\"QMP\":{}}\n", PATIENT, &error), -EPROTO);
    assert_non_null(strstr(error.text, "no greeting of Ringmaster"));
    assert_int_equal(greeted("SSH-2.0-x\n", PATIENT, &error), -EPROTO);
    assert_int_equal(greeted("[]\n", PATIENT, &error), -EPROTO);
    assert_int_equal(greeted("", BRIEF, &error), -ETIMEDOUT);
    assert_int_equal(greeted("{\"ringmaster\":{\"protocol\":1}", BRIEF, &error), -ETIMEDOUT);
}

static void endless_lines_are_refused(void **state)
{
    struct rm_error error = {""};
    (void)state;
    char *flood = malloc(RM_CTL_CLIENT_LINE_MAX + 2);
    assert_non_null(flood);
    memset(flood, 'x', RM_CTL_CLIENT_LINE_MAX + 1);
    flood[RM_CTL_CLIENT_LINE_MAX + 1] = '\0';
    assert_int_equal(greeted(flood, PATIENT, &error), -EPROTO);
    assert_non_null(strstr(error.text, "longer than"));
    free(flood);
}

static void no_daemon_is_reported(void **state)
{
    struct rm_ctl_client client;
    struct rm_error error = {""};
    (void)state;
    assert_int_equal(rm_ctl_client_open(&client, "/nonexistent/control.sock", PATIENT, &error),
                     -ENOENT);
    assert_int_equal(rm_ctl_client_exit_code(-ENOENT), RM_CTL_NO_EXPERIMENT);
    char longest[200];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(rm_ctl_client_open(&client, longest, PATIENT, &error), -ENAMETOOLONG);
}

/* One call to a server that answers `text`. */
static int called(const char *text, bool hang_up, uint64_t timeout_ns, json_t **reply,
                  struct rm_error *error)
{
    const struct rm_fake_rule rules[] = {{"status", text, hang_up}, {NULL, NULL, false}};
    struct rm_fake fake;
    struct rm_ctl_client client;
    assert_int_equal(rm_fake_start(&fake, "x", NULL, rules), 0);
    assert_int_equal(rm_ctl_client_open(&client, fake.socket, timeout_ns, error), 0);
    int rc = rm_ctl_client_call(&client, "status", NULL, reply, error);
    rm_ctl_client_close(&client);
    rm_fake_stop(&fake);
    return rc;
}

/* A daemon of another user may send what a terminal obeys. */
static void what_a_terminal_would_obey_is_replaced(void **state)
{
    struct rm_error error = {""};
    json_t *reply = NULL;
    (void)state;
    assert_int_equal(
        called("{\"return\":{\"a\\u001b\":\"\\u001B[2J\\u0007\\b \\u009b2J\302\2332J \\u007f|"
               "\\\\u001b \\n\\t\303\251 \\u00e9\"},\"id\":$id}\n",
               false, PATIENT, &reply, &error),
        0);
    assert_string_equal(json_string_value(json_object_get(reply, "a?")),
                        "?[2J??? ?2J??2J ?|\\u001b \n\t\303\251 \303\251");
    json_decref(reply);
    assert_int_equal(
        called("{\"error\":{\"class\":\"x\",\"desc\":\"\\u001b]0;mine\"},\"id\":$id}\n", false,
               PATIENT, &reply, &error),
        -EREMOTEIO);
    assert_string_equal(error.text, "x: ?]0;mine");
    assert_int_equal(called("{\033[2J\n", false, PATIENT, &reply, &error), -EPROTO);
    assert_null(strchr(error.text, '\033'));
}

static void replies_are_matched_to_requests(void **state)
{
    struct rm_error error = {""};
    json_t *reply = NULL;
    (void)state;
    assert_int_equal(called("{\"return\":{\"a\":1},\"id\":$id}\n", false, PATIENT, &reply, &error),
                     0);
    assert_int_equal(json_integer_value(json_object_get(reply, "a")), 1);
    json_decref(reply);
    assert_int_equal(called("{\"error\":{\"class\":\"not-now\",\"desc\":\"it is over\"},"
                            "\"id\":$id}\n",
                            false, PATIENT, &reply, &error),
                     -EREMOTEIO);
    assert_string_equal(error.text, "not-now: it is over");
    assert_int_equal(called("{\"id\":$id}\n", false, PATIENT, &reply, &error), -EPROTO);
    assert_int_equal(called("{\"return\":{\n", false, PATIENT, &reply, &error), -EPROTO);
    /* Hung up in the middle of a line, and before it. */
    assert_int_equal(called("{\"return\":{\"a\"", true, PATIENT, &reply, &error), -ECONNRESET);
    assert_non_null(strstr(error.text, "in the middle"));
    assert_int_equal(called(NULL, true, PATIENT, &reply, &error), -ECONNRESET);
    assert_int_equal(rm_ctl_client_exit_code(-ECONNRESET), RM_CTL_PROTOCOL);
    /* Never answered. */
    assert_int_equal(called(NULL, false, BRIEF, &reply, &error), -ETIMEDOUT);
    assert_int_equal(rm_ctl_client_exit_code(-ETIMEDOUT), RM_CTL_TIMED_OUT);
    assert_null(reply);
}

/* A line without an id: the daemon closes the connection. The request is sent once more, by another
 * one; who waits for events would miss some, so it gets the daemon's words. */
static void who_makes_room_connects_again(void **state)
{
    static const char words[] = "{\"error\":{\"class\":\"not-now\",\"desc\":\"no room\"}}\n";
    static const struct rm_fake_rule rules[] = {
        {"status", words, true},
        {"events", "{\"return\":{},\"id\":$id}\n", false},
        {"stop",
         "{\"return\":{},\"id\":$id}\n{\"error\":{\"class\":\"not-now\",\"desc\":\"room\"}}\n",
         true},
        {"get", "{\"error\":{\"class\":\"bad-request\",\"desc\":\"no JSON\"}}\n", false},
        {NULL, NULL, false}};
    struct rm_fake fake;
    struct rm_ctl_client client;
    struct rm_error error = {""};
    json_t *reply = NULL, *event = NULL;
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "x", NULL, rules), 0);
    assert_int_equal(rm_ctl_client_open(&client, fake.socket, PATIENT, &error), 0);
    assert_int_equal(rm_ctl_client_call(&client, "get", NULL, &reply, &error), -EREMOTEIO);
    assert_int_equal(fake.clients, 1); /* only "not-now" closes a connection */
    assert_int_equal(rm_ctl_client_call(&client, "status", NULL, &reply, &error), -EREMOTEIO);
    assert_string_equal(error.text, "not-now: no room");
    assert_int_equal(fake.clients, 2);
    assert_int_equal(rm_ctl_client_event(&client, PATIENT, &event, &error), -ECONNRESET);
    assert_int_equal(rm_ctl_client_call(&client, "events", NULL, &reply, &error), 0);
    json_decref(reply);
    assert_int_equal(rm_ctl_client_call(&client, "stop", NULL, &reply, &error), 0);
    json_decref(reply);
    assert_int_equal(rm_ctl_client_event(&client, PATIENT, &event, &error), -EREMOTEIO);
    assert_string_equal(error.text, "not-now: room");
    assert_int_equal(rm_ctl_client_event(&client, PATIENT, &event, &error), -ECONNRESET);
    assert_int_equal(fake.clients, 3);
    rm_fake_stop(&fake);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(rm_ctl_client_again(&client, &error), -ECONNRESET);
        assert_string_equal(error.text, "the experiment has ended");
        assert_int_equal(rm_ctl_client_call(&client, "get", NULL, &reply, &error), -ECONNRESET);
        assert_string_equal(error.text, "the experiment has ended");
    }
    rm_ctl_client_close(&client);
}

/* As another daemon may, on the same path. */
static void another_process_is_not_the_experiment(void **state)
{
    struct rm_fake fake;
    struct rm_ctl_client client;
    struct rm_error error = {""};
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "x", NULL, NULL), 0);
    assert_int_equal(rm_ctl_client_open(&client, fake.socket, PATIENT, &error), 0);
    assert_int_equal(client.daemon, getpid());
    client.daemon++;
    assert_int_equal(rm_ctl_client_again(&client, &error), -ECONNRESET);
    assert_non_null(strstr(error.text, "another one listens there"));
    rm_ctl_client_close(&client);
    rm_fake_stop(&fake);
}

static void events_between_replies_are_kept_in_order(void **state)
{
    static const struct rm_fake_rule rules[] = {
        {"events",
         "{\"event\":\"a\"}\n{\"event\":\"b\",\"lost\":7}\n{\"return\":{},\"id\":$id}\n"
         "{\"event\":\"c\"}\n",
         false},
        {"status", "{\"return\":\"late\",\"id\":0}\n{\"return\":\"mine\",\"id\":$id}\n", true},
        {NULL, NULL, false}};
    static const char *const names[] = {"a", "b", "c"};
    struct rm_fake fake;
    struct rm_ctl_client client;
    struct rm_error error = {""};
    json_t *reply = NULL, *event = NULL;
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "x", NULL, rules), 0);
    assert_int_equal(rm_ctl_client_open(&client, fake.socket, PATIENT, &error), 0);
    assert_int_equal(rm_ctl_client_call(&client, "events", NULL, &reply, &error), 0);
    json_decref(reply);
    /* A reply to an older request is passed over. */
    assert_int_equal(rm_ctl_client_call(&client, "status", NULL, &reply, &error), 0);
    assert_string_equal(json_string_value(reply), "mine");
    json_decref(reply);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rm_ctl_client_event(&client, PATIENT, &event, &error), 0);
        assert_string_equal(json_string_value(json_object_get(event, "event")), names[i]);
        assert_int_equal(json_integer_value(json_object_get(event, "lost")), i == 1 ? 7 : 0);
        json_decref(event);
    }
    assert_int_equal(rm_ctl_client_event(&client, PATIENT, &event, &error), -ECONNRESET);
    rm_ctl_client_close(&client);
    rm_fake_stop(&fake);
}

static void too_many_events_are_dropped_and_counted(void **state)
{
    enum { SENT = RM_CTL_CLIENT_EVENTS_MAX + 10 };
    char *text = NULL;
    size_t bytes = 0;
    (void)state;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    for (int i = 0; i < SENT; i++)
        fputs("{\"event\":\"tick\"}\n", out);
    fputs("{\"return\":{},\"id\":$id}\n", out);
    fclose(out);
    const struct rm_fake_rule rules[] = {{"status", text, false}, {NULL, NULL, false}};
    struct rm_fake fake;
    struct rm_ctl_client client;
    struct rm_error error = {""};
    json_t *reply = NULL;
    assert_int_equal(rm_fake_start(&fake, "x", NULL, rules), 0);
    assert_int_equal(rm_ctl_client_open(&client, fake.socket, PATIENT, &error), 0);
    assert_int_equal(rm_ctl_client_call(&client, "status", NULL, &reply, &error), 0);
    assert_int_equal(client.dropped, SENT - RM_CTL_CLIENT_EVENTS_MAX);
    json_decref(reply);
    rm_ctl_client_close(&client);
    rm_fake_stop(&fake);
    free(text);
}

static void requests_have_the_documented_form(void **state)
{
    static const struct rm_fake_rule rules[] = {{"set", "{\"return\":{},\"id\":$id}\n", false},
                                                {NULL, NULL, false}};
    struct rm_fake fake;
    struct rm_ctl_client client;
    struct rm_error error = {""};
    json_t *reply = NULL;
    char sent[256];
    (void)state;
    assert_int_equal(rm_fake_start(&fake, "x", NULL, rules), 0);
    assert_int_equal(rm_ctl_client_open(&client, fake.socket, PATIENT, &error), 0);
    assert_int_equal(
        rm_ctl_client_call(&client, "set", json_pack("{s:s}", "key", "a.b"), &reply, &error), 0);
    rm_fake_request(&fake, sent, sizeof sent);
    assert_string_equal(sent, "{\"execute\":\"set\",\"id\":1,\"arguments\":{\"key\":\"a.b\"}}");
    json_decref(reply);
    /* One byte over the limit of the protocol is not even sent. */
    char *big = malloc(RM_CTL_CLIENT_REQUEST_MAX);
    memset(big, 'x', RM_CTL_CLIENT_REQUEST_MAX - 1);
    big[RM_CTL_CLIENT_REQUEST_MAX - 1] = '\0';
    assert_int_equal(
        rm_ctl_client_call(&client, "set", json_pack("{s:s}", "key", big), &reply, &error),
        -EINVAL);
    free(big);
    rm_ctl_client_close(&client);
    rm_fake_stop(&fake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greetings_are_checked),
        cmocka_unit_test(endless_lines_are_refused),
        cmocka_unit_test(no_daemon_is_reported),
        cmocka_unit_test(what_a_terminal_would_obey_is_replaced),
        cmocka_unit_test(replies_are_matched_to_requests),
        cmocka_unit_test(who_makes_room_connects_again),
        cmocka_unit_test(another_process_is_not_the_experiment),
        cmocka_unit_test(events_between_replies_are_kept_in_order),
        cmocka_unit_test(too_many_events_are_dropped_and_counted),
        cmocka_unit_test(requests_have_the_documented_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
