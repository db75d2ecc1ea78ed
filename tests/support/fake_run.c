#include "tests/support/fake_run.h"

#include "tests/support/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int rm_test_run_home(struct rm_test_daemon *d, const char *name, unsigned steps, const char *more)
{
    char config[1024];
    snprintf(config, sizeof config,
             "{\"name\":\"x\",\"run\":{\"steps\":%u},\"world\":{\"name\":\"count\"},"
             "\"actor\":{\"count\":2,\"worlds\":4},\"algorithm\":{\"name\":\"dqn\"},"
             "\"metrics\":{\"interval_s\":0.1},"
             "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":16},{\"type\":\"relu\"}]}%s}",
             steps, more);
    unsetenv("RM_FAKE");
    return rm_test_daemon_home(d, name, config);
}

void rm_test_run_start(struct rm_test_daemon *d, const char *const *arguments)
{
    assert_int_equal(rm_test_daemon_start(d, arguments, true, 0), 0);
}

void rm_test_run_ends(struct rm_test_daemon *d, int code)
{
    int rc = rm_test_daemon_wait(d, RM_TEST_PATIENCE_S);
    if (rc != code)
        print_error("exit code %d, not %d:\n%s\n%s\n", rc, code, rm_test_daemon_output(d),
                    rm_test_daemon_file(d, "log.txt"));
    assert_int_equal(rc, code);
    assert_int_not_equal(access(d->socket, F_OK), 0);
}

void rm_test_run_says(struct rm_test_daemon *d, const char *text)
{
    if (!strstr(rm_test_daemon_output(d), text))
        print_error("no \"%s\" in:\n%s\n", text, rm_test_daemon_output(d));
    assert_non_null(strstr(rm_test_daemon_output(d), text));
}

pid_t rm_test_run_pid(int fd, const char *path)
{
    json_t *status = rm_test_ask(fd, "status", NULL);
    pid_t pid = (pid_t)json_integer_value(rm_test_path(json_object_get(status, "return"), path));
    json_decref(status);
    return pid;
}

void rm_test_run_all_gone(const pid_t *pids, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (int wait = 0; wait < 6000 && rm_test_process_there(pids[i]); wait++)
            usleep(10000);
        assert_false(rm_test_process_there(pids[i]));
    }
}

void rm_test_run_remove(struct rm_test_daemon *d)
{
    rm_test_daemon_end(d);
    unsetenv("RM_FAKE");
}
