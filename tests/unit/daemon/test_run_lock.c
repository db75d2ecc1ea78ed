/* The lock of a run directory: one process holds it, the former holder is named, and a link is
 * refused. */
#include "daemon/run_lock.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char home[64], path[96];

static int setup(void **state)
{
    (void)state;
    strcpy(home, "/tmp/rm-run-lock-XXXXXX");
    if (!mkdtemp(home))
        return -1;
    snprintf(path, sizeof path, "%s/" RM_RUN_LOCK_FILE, home);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(home);
}

static void left_by(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void holders_are_distinguished(void **state)
{
    const struct rm_run_holder self = {7, "here", "b-1"};
    struct rm_run_holder holder;
    static const struct {
        const char *text;
        enum rm_run_holding holding;
    } cases[] = {
        {"process 5 host here boot b-1\n", RM_HELD_HERE},
        {"process 5 host container boot b-1\n", RM_HELD_HERE},
        {"process 5 host here boot b-0\n", RM_HELD_BEFORE},
        {"process 5 host there boot b-9\n", RM_HELD_ON_OTHER_HOST},
        {"", RM_HELD_BY_NONE},
        {"process -5 host here boot b-1\n", RM_HELD_BY_NONE},
        {"process 5 host here", RM_HELD_BY_NONE},
        {"\x7f\x45LF", RM_HELD_BY_NONE},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(rm_run_holding_of(cases[i].text, &self, &holder), cases[i].holding);
}

/* Held by another open file, as another process's or another host's is. */
static void one_holds_it(void **state)
{
    struct rm_run_lock mine = {.fd = -1}, other = {.fd = -1};
    struct rm_error error = {""};
    char mention[32];
    (void)state;
    assert_int_equal(rm_run_lock_take(&mine, home, &error), 0);
    assert_int_equal(rm_run_lock_take(&mine, home, &error), 0); /* it has it */
    assert_int_equal(rm_run_lock_take(&other, home, &error), -EEXIST);
    snprintf(mention, sizeof mention, "process %d on host", (int)getpid());
    assert_non_null(strstr(error.text, mention));
    rm_run_lock_leave(&mine);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(rm_run_lock_take(&other, home, &error), 0);
    assert_string_equal(other.left, "");
    rm_run_lock_leave(&other);
    rm_run_lock_leave(&other);
}

static void children_do_not_keep_it(void **state)
{
    struct rm_run_lock lock = {.fd = -1};
    struct rm_error error = {""};
    (void)state;
    const pid_t child = fork();
    if (child == 0) /* killed, as far as its lock goes */
        _exit(rm_run_lock_take(&lock, home, &error) < 0 ? 1 : 0);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(rm_run_lock_take(&lock, home, &error), 0);
    assert_non_null(strstr(lock.left, ", which was killed"));
    rm_run_lock_leave(&lock);
}

/* By `rm`, say. */
static void one_that_is_removed_is_made_again(void **state)
{
    struct rm_run_lock mine = {.fd = -1}, other = {.fd = -1};
    struct rm_run_holder self;
    struct rm_error error = {""};
    char text[256];
    (void)state;
    assert_int_equal(rm_run_lock_take(&mine, home, &error), 0);
    assert_int_equal(rm_run_lock_keep(&mine, &error), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rm_run_lock_keep(&mine, &error), 0);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(rm_run_lock_take(&other, home, &error), -EEXIST);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rm_run_lock_take(&other, home, &error), 0);
    assert_int_equal(rm_run_lock_keep(&mine, &error), 0); /* its own, by the file's words */
    rm_run_holder_self(&self);
    snprintf(text, sizeof text, "process %d host %s boot %s\n", (int)getppid(), self.host,
             self.boot);
    left_by(text);
    assert_int_equal(rm_run_lock_keep(&mine, &error), -EEXIST);
    rm_run_lock_leave(&mine); /* and leaves the other one's */
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(rm_run_lock_keep(&other, &error), 0);
    rm_run_lock_leave(&other);
    assert_int_equal(access(path, F_OK), -1);
}

static void one_that_is_ending_is_waited_for(void **state)
{
    struct rm_run_holder self;
    struct rm_run_lock lock = {.fd = -1};
    struct rm_error error = {""};
    char text[256];
    (void)state;
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    rm_run_holder_self(&self);
    snprintf(text, sizeof text, "process %d host %s boot %s\n", (int)child, self.host, self.boot);
    left_by(text);
    siginfo_t ended;
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &all), 0);
    assert_int_equal(rm_run_lock_take(&lock, home, &error), -EAGAIN);
    close(fd);
    assert_int_equal(rm_run_lock_take(&lock, home, &error), 0);
    rm_run_lock_leave(&lock);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(holders_are_distinguished, setup, teardown),
        cmocka_unit_test_setup_teardown(one_holds_it, setup, teardown),
        cmocka_unit_test_setup_teardown(children_do_not_keep_it, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_removed_is_made_again, setup, teardown),
        cmocka_unit_test_setup_teardown(one_that_is_ending_is_waited_for, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
