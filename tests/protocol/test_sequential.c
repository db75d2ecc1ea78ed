/* All duties in one process: status says of that process what its duties do together and what it
 * holds, and of the duties which process they are in. */
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct rm_test_daemon d;

static int end(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

static void the_process_is_what_its_duties_are(void **state)
{
    static const char config[] =
        "{\"name\":\"x\",\"seed\":3,\"mode\":\"sequential\",\"run\":{\"steps\":0},"
        "\"world\":{\"name\":\"count\"},\"actor\":{\"count\":2,\"worlds\":4},"
        "\"algorithm\":{\"name\":\"dqn\"},"
        "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":8}]}}";
    enum { SOLO = 4, WORKERS }; /* after two actors, a learner and the evaluator */
    (void)state;
    assert_int_equal(rm_test_daemon_home(&d, "sequential", config), 0);
    assert_int_equal(rm_test_daemon_start(&d, NULL, false, 0), 0);
    const int fd = rm_test_connect(&d);
    assert_true(fd >= 0);
    assert_true(rm_test_until_text(fd, "state", "running"));
    assert_true(rm_test_until_text(fd, "workers.4.name", "solo"));
    assert_true(rm_test_until_text(fd, "workers.4.state", "busy"));
    assert_true(rm_test_until_at_least(fd, "workers.4.rss_bytes", 100000));
    json_t *reply = rm_test_ask(fd, "status", NULL),
           *workers = rm_test_path(reply, "return.workers");
    assert_int_equal(json_array_size(workers), WORKERS);
    for (size_t w = 0; w < WORKERS; w++) {
        const json_t *worker = json_array_get(workers, w);
        assert_string_equal(json_string_value(json_object_get(worker, "supervisor")), "up");
        assert_int_equal(json_integer_value(json_object_get(worker, "generation")), 1);
        assert_int_equal(json_is_true(json_object_get(worker, "process")), w == SOLO);
        assert_int_equal(json_integer_value(json_object_get(worker, "pid")) > 0, w == SOLO);
        assert_int_equal(json_is_null(json_object_get(worker, "rss_bytes")), w != SOLO);
    }
    json_decref(reply);
    json_decref(rm_test_ask(fd, "pause", NULL));
    assert_true(rm_test_until_text(fd, "workers.4.state", "waiting"));
    json_decref(rm_test_ask(fd, "stop", NULL));
    close(fd);
    assert_int_equal(rm_test_daemon_wait(&d, RM_TEST_PATIENCE_S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_process_is_what_its_duties_are, end),
    };
    alarm(900); /* a test that hangs has failed */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
