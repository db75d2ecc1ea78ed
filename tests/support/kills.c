#include "tests/support/kills.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#define STILL_S 240 /* a run that makes no step for so long is stuck */

json_t *rm_test_status(int fd)
{
    json_t *reply = rm_test_ask(fd, "status", NULL);
    json_t *value = json_incref(json_object_get(reply, "return"));
    json_decref(reply);
    return value;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void rm_test_kill_worker(int fd, unsigned index)
{
    char path[48];
    json_t *before = rm_test_status(fd);
    snprintf(path, sizeof path, "workers.%u.pid", index);
    pid_t pid = (pid_t)json_integer_value(rm_test_path(before, path));
    snprintf(path, sizeof path, "workers.%u.generation", index);
    double generation = json_number_value(rm_test_path(before, path));
    const double done = json_number_value(rm_test_path(before, "progress.fraction"));
    assert_true(done < 1);
    json_decref(before);
    assert_true(pid > 0);
    double start = now_s();
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_true(rm_test_until_at_least(fd, path, generation + 1));
    snprintf(path, sizeof path, "workers.%u.supervisor", index);
    assert_true(rm_test_until_text(fd, path, "up"));
    print_message("worker %u: killed at %.2f of the run, back after %.3f s\n", index, done,
                  now_s() - start);
    assert_false(rm_test_process_there(pid));
}

int rm_test_until_end(struct rm_test_daemon *d, int fd)
{
    double before = -1;
    for (;;) {
        int code = rm_test_daemon_wait(d, STILL_S);
        json_t *s = code < 0 ? rm_test_status(fd) : NULL;
        if (!s)
            return code < 0 ? rm_test_daemon_wait(d, STILL_S) : code; /* ended just now */
        double steps = json_number_value(rm_test_path(s, "progress.steps"));
        json_decref(s);
        if (steps <= before)
            return -1;
        before = steps;
    }
}
