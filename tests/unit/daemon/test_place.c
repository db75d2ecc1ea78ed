/* The place of an experiment: one holds it; who is about to let go of it is waited for, in turns
 * that a test counts instead of sleeping. */
#include "daemon/holder.h"
#include "daemon/place.h"
#include "tests/support/program.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static char home[64], folder[96], socket_path[128], lock_path[144];

static int setup(void **state)
{
    (void)state;
    strcpy(home, "/tmp/rm-place-XXXXXX");
    if (!mkdtemp(home))
        return -1;
    snprintf(folder, sizeof folder, "%s/run", home);
    snprintf(socket_path, sizeof socket_path, "%s/c.sock", folder);
    snprintf(lock_path, sizeof lock_path, "%s.lock", socket_path);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    unlink(socket_path);
    unlink(lock_path);
    rmdir(folder);
    return rmdir(home);
}

/* Somebody else's lock, with this written into it. */
static int hold(const char *text)
{
    mkdir(folder, 0755);
    const int fd = open(lock_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return fd;
}

struct waiting {
    unsigned paused, let_go; /* at which pause; 0: never */
    int fd;
    bool removes; /* the lock and its directory, as who leaves does */
};

static void count(void *user)
{
    struct waiting *w = user;
    if (++w->paused != w->let_go)
        return;
    if (w->removes) {
        unlink(lock_path);
        rmdir(folder);
    }
    close(w->fd);
}

static int await_turns(struct rm_place *place, struct waiting *w, unsigned turns,
                       struct rm_error *error)
{
    const struct rm_place_patience patience = {turns, count, w};
    return rm_place_await(place, socket_path, &patience, error);
}

static void who_runs_is_not_waited_for(void **state)
{
    struct rm_place first, second;
    struct rm_error error = {""};
    struct waiting w = {0};
    char mention[64];
    (void)state;
    assert_int_equal(rm_place_take(&first, socket_path, &error), 0);
    assert_int_equal(await_turns(&second, &w, 5, &error), -EEXIST);
    assert_int_equal(w.paused, 0);
    snprintf(mention, sizeof mention, "already running: process %d ", (int)getpid());
    assert_non_null(strstr(error.text, mention));
    rm_place_leave(&first);
    assert_int_equal(access(folder, F_OK), -1);
    assert_int_equal(await_turns(&second, &w, 5, &error), 0);
    rm_place_leave(&second);
}

static void who_has_not_written_its_number_is_waited_for(void **state)
{
    struct rm_place place;
    struct rm_error error = {""};
    struct waiting w = {.fd = hold(""), .let_go = 3};
    (void)state;
    assert_int_equal(await_turns(&place, &w, 5, &error), 0);
    assert_int_equal(w.paused, 3);
    rm_place_leave(&place);
}

static void a_place_given_back_meanwhile_is_made_anew(void **state)
{
    struct rm_place place;
    struct rm_error error = {""};
    struct waiting w = {.fd = hold(""), .let_go = 1, .removes = true};
    (void)state;
    assert_int_equal(await_turns(&place, &w, 5, &error), 0);
    assert_int_equal(w.paused, 1);
    assert_int_equal(rm_place_listen(&place, &error), 0);
    rm_place_leave(&place);
}

static void waiting_has_an_end(void **state)
{
    struct rm_place place;
    struct rm_error error = {""};
    struct waiting w = {.fd = hold("")};
    (void)state;
    assert_int_equal(await_turns(&place, &w, 4, &error), -EAGAIN);
    assert_int_equal(w.paused, 4);
    assert_null(strchr(error.text, '?'));
    assert_non_null(strstr(error.text, "try again in a moment"));
    close(w.fd);
}

static pid_t child_that_waits(void)
{
    const pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    assert_true(child > 0);
    return child;
}

/* Whose lock it was has died, or is dead and nobody has asked how. */
static void who_was_killed_is_waited_for(void **state)
{
    struct rm_place place;
    struct rm_error error = {""};
    siginfo_t how;
    char text[24];
    (void)state;
    const pid_t child = child_that_waits();
    assert_int_equal(rm_holder_of(child), RM_HOLDER_STAYS);
    kill(child, SIGKILL);
    assert_int_equal(rm_holder_of(child), RM_HOLDER_ENDS); /* whether it has begun to or not */
    assert_int_equal(waitid(P_PID, (id_t)child, &how, WEXITED | WNOWAIT), 0);
    assert_int_equal(rm_holder_of(child), RM_HOLDER_ENDS);
    snprintf(text, sizeof text, "%d\n", (int)child);
    struct waiting w = {.fd = hold(text), .let_go = 2};
    assert_int_equal(await_turns(&place, &w, 1, &error), -EAGAIN);
    assert_non_null(strstr(error.text, "which is ending"));
    assert_int_equal(await_turns(&place, &w, 1, &error), 0);
    rm_place_leave(&place);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(rm_holder_of(child), RM_HOLDER_ENDS);
}

/* One that waits for its daemon's end, as it does while that runs. */
static pid_t start_sweeper(int *daemons_end)
{
    char program[PATH_MAX], name[] = "ringmasterd", option[] = "--sweep";
    char *arguments[] = {name, option, socket_path, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t child;
    rm_program_path(program, sizeof program, "ringmasterd");
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO);
    assert_int_equal(posix_spawn(&child, program, &actions, NULL, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[0]);
    *daemons_end = ends[1];
    /* The kernel is a moment between a program's start and its command line. */
    for (int wait = 0; wait < 6000 && rm_holder_of(child) != RM_HOLDER_SWEEPS; wait++)
        usleep(10000);
    return child;
}

static void a_sweeper_is_waited_for(void **state)
{
    struct rm_place place;
    struct rm_error error = {""};
    char text[24];
    int daemons_end;
    (void)state;
    const pid_t child = start_sweeper(&daemons_end);
    assert_int_equal(rm_holder_of(child), RM_HOLDER_SWEEPS);
    snprintf(text, sizeof text, "%d\n", (int)child);
    struct waiting w = {.fd = hold(text), .let_go = 2, .removes = true};
    assert_int_equal(await_turns(&place, &w, 1, &error), -EAGAIN);
    assert_non_null(strstr(error.text, "removes what a killed daemon left"));
    assert_int_equal(await_turns(&place, &w, 1, &error), 0);
    rm_place_leave(&place);
    kill(child, SIGKILL);
    close(daemons_end);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_place_behind_the_link_of_another_user_is_refused(void **state)
{
    struct rm_place place;
    struct rm_error error = {""};
    char target[128];
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can make a link somebody else's */
    snprintf(target, sizeof target, "%s/target", home);
    assert_int_equal(mkdir(target, 0755), 0);
    assert_int_equal(symlink(target, folder), 0);
    assert_int_equal(rm_place_take(&place, socket_path, &error), 0);
    rm_place_leave(&place);
    assert_int_equal(lchown(folder, 65534, 65534), 0);
    assert_int_equal(rm_place_take(&place, socket_path, &error), -EPERM);
    assert_non_null(strstr(error.text, "control.socket: "));
    assert_non_null(strstr(error.text, "run is a link of user 65534"));
    assert_int_equal(rmdir(target), 0); /* nothing is in it */
    assert_int_equal(unlink(folder), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_runs_is_not_waited_for),
        T(who_has_not_written_its_number_is_waited_for),
        T(a_place_given_back_meanwhile_is_made_anew),
        T(waiting_has_an_end),
        T(who_was_killed_is_waited_for),
        T(a_sweeper_is_waited_for),
        T(a_place_behind_the_link_of_another_user_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
