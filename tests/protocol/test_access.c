/* Who may do what on the control socket: root and the daemon's own user all, members of its group
 * operate, whether that is their first group or one that they were added to; whoever else can
 * connect sees. Clients of other users are processes that give up being root. */
#include "daemon/ctl/exit_code.h"
#include "daemon/ctl/find.h"
#include "daemon/place.h"
#include "tests/support/daemon.h"
#include "tests/support/fake_worker.h"
#include "tests/support/unit.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRANGER = 65534, MANY = 200 };

static struct rm_test_daemon d;

static int start(void **state)
{
    (void)state;
    static const char config[] =
        "{\"name\":\"x\",\"run\":{\"steps\":0},\"world\":{\"name\":\"count\"},"
        "\"network\":{\"layers\":[{\"type\":\"linear\",\"units\":8}]}}";
    if (rm_test_daemon_home(&d, "access", config) < 0 ||
        rm_test_daemon_start(&d, NULL, true, 0) < 0)
        return -1;
    const int fd = rm_test_connect(&d);
    if (fd < 0)
        return -1;
    close(fd);
    /* Everybody comes as far as the socket. */
    char path[128];
    snprintf(path, sizeof path, "%s/sockets", d.home);
    return chmod(d.home, 0755) < 0 || chmod(path, 0755) < 0 || chmod(d.socket, 0666) < 0 ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    rm_test_daemon_end(&d);
    return 0;
}

static bool allowed(int fd, const char *command, const char *arguments)
{
    json_t *reply = rm_test_ask(fd, command, arguments);
    const bool refused = strcmp(rm_test_error(reply), "access-denied") == 0;
    const bool done = json_object_get(reply, "return") != NULL;
    json_decref(reply);
    if (refused == done)
        _exit(9); /* neither, or both */
    return done;
}

/* As a process of that user and those groups: how many of the three levels it has; -1: none. */
static int levels(uid_t user, gid_t group, const gid_t *more, size_t count)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (setgroups(count, more) < 0 || setgid(group) < 0 || setuid(user) < 0)
            _exit(8);
        const int fd = rm_test_connect(&d);
        if (fd < 0)
            _exit(7);
        const bool sees = allowed(fd, "status", NULL), operates = allowed(fd, "resume", NULL);
        const bool administers = allowed(fd, "set", "{\"key\":\"publish.interval\",\"value\":20}");
        _exit(administers && operates && sees     ? 3
              : !administers && operates && sees  ? 2
              : !administers && !operates && sees ? 1
                                                  : 6);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void root_administers(void **state)
{
    (void)state;
    assert_int_equal(levels(0, 0, NULL, 0), 3);
    assert_int_equal(levels(0, STRANGER, NULL, 0), 3);
}

static void members_operate(void **state)
{
    (void)state;
    const gid_t own = getegid(), others[] = {STRANGER - 1, own, STRANGER};
    gid_t many[MANY];
    for (gid_t i = 0; i < MANY; i++)
        many[i] = 100000 + i;
    many[MANY - 1] = own;
    assert_int_equal(levels(STRANGER, own, NULL, 0), 2);
    assert_int_equal(levels(STRANGER, STRANGER, others, 3), 2);
    assert_int_equal(levels(STRANGER, STRANGER, many, MANY), 2);
}

static void others_see(void **state)
{
    (void)state;
    gid_t many[MANY];
    for (gid_t i = 0; i < MANY; i++)
        many[i] = 100000 + i;
    assert_int_equal(levels(STRANGER, STRANGER, NULL, 0), 1);
    assert_int_equal(levels(STRANGER, STRANGER, many, MANY), 1);
}

/* As a service has it: the directory with the socket is the group's. */
static void those_of_others_are_found_all_the_same(void **state)
{
    (void)state;
    char sockets[128], own[192];
    int status;
    snprintf(sockets, sizeof sockets, "%s/sockets", d.home);
    snprintf(own, sizeof own, "%s/%s", sockets, d.name);
    assert_int_equal(chmod(own, 0750), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rm_found *found = NULL;
        struct rm_error error = {""};
        if (setenv("RINGMASTER_RUNTIME_DIR", sockets, 1) < 0 || setgroups(0, NULL) < 0 ||
            setgid(STRANGER) < 0 || setuid(STRANGER) < 0)
            _exit(8);
        const int count = rm_find_sockets(&found, &error);
        _exit(count != 1 || strcmp(found[0].name, d.name) != 0 ? 1
              : !rm_find_alive(found[0].socket)                ? 2
                                                               : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(chmod(own, 0755), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ringctl, as that user with the experiment's sockets: its exit code, with what it says in `text`.
 */
static int asks(uid_t user, const char *name, char *text, size_t bytes)
{
    char sockets[128];
    int channel[2], status;
    assert_int_equal(pipe(channel), 0);
    snprintf(sockets, sizeof sockets, "%s/sockets", d.home);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char *line[] = {"ringctl", "status", (char *)name, NULL};
        if (setenv("RINGMASTER_RUNTIME_DIR", sockets, 1) < 0 || setgroups(0, NULL) < 0 ||
            setgid(user) < 0 || setuid(user) < 0 || dup2(channel[1], STDOUT_FILENO) < 0 ||
            dup2(channel[1], STDERR_FILENO) < 0)
            _exit(99);
        close(channel[0]);
        close(channel[1]);
        const int code = rm_ctl_main(name ? 3 : 2, line);
        _exit(fflush(NULL) ? 98 : code);
    }
    close(channel[1]);
    size_t used = 0;
    for (ssize_t n; (n = read(channel[0], text + used, bytes - 1 - used)) > 0;)
        used += (size_t)n;
    text[used] = '\0';
    close(channel[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Who may not ask is told what runs, for whom, and who may ask. */
static void those_of_others_are_named(void **state)
{
    (void)state;
    static const char who[] = "answers its user, members of its group, and root (sudo)";
    char own[192], text[16384], whose[512];
    snprintf(own, sizeof own, "%s/sockets/%s", d.home, d.name);
    snprintf(whose, sizeof whose, "%s (user root, group root)", d.name);
    assert_int_equal(chmod(own, 0750), 0);
    assert_int_equal(asks(STRANGER, NULL, text, sizeof text), RM_CTL_NO_EXPERIMENT);
    if (!strstr(text, "no experiment of yours is running") || !strstr(text, whose) ||
        !strstr(text, who))
        fail_msg("%s", text);
    assert_int_equal(asks(STRANGER, d.name, text, sizeof text), RM_CTL_NO_EXPERIMENT);
    if (!strstr(text, "(user root, group root)") || !strstr(text, who))
        fail_msg("%s", text);
    assert_int_equal(chmod(own, 0755), 0);
    assert_int_equal(asks(STRANGER, NULL, text, sizeof text), RM_CTL_OK);
}

/* Below /tmp anybody may have made the directory first: its owner, or root, must be trusted. */
static int takes_a_place_below(const char *path)
{
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct rm_place place;
        struct rm_error error = {""};
        char socket[160];
        snprintf(socket, sizeof socket, "%s/of-stranger/x/control.sock", path);
        if (setgroups(0, NULL) < 0 || setgid(STRANGER) < 0 || setuid(STRANGER) < 0)
            _exit(8);
        const int rc = rm_place_take(&place, socket, &error);
        if (rc == 0)
            rm_place_leave(&place);
        _exit(rc == 0 ? 0 : strstr(error.text, "is not a directory of user 65534 or root") ? 1 : 2);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void directories_of_root_are_trusted(void **state)
{
    (void)state;
    char path[160];
    snprintf(path, sizeof path, "%s/of-stranger", d.home);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(chown(path, STRANGER, STRANGER), 0);
    assert_int_equal(takes_a_place_below(d.home), 0);
    assert_int_equal(chown(d.home, STRANGER - 1, 0), 0);
    const int taken = takes_a_place_below(d.home);
    assert_int_equal(chown(d.home, 0, 0), 0);
    assert_int_equal(taken, 1);
}

int main(int argc, char **argv)
{
    const int worker = rm_test_fake_worker(argc, argv);
    if (worker >= 0)
        return worker;
    if (geteuid() != 0) {
        puts("SKIP: only root can become other users");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(root_administers),
        cmocka_unit_test(members_operate),
        cmocka_unit_test(others_see),
        cmocka_unit_test(those_of_others_are_found_all_the_same),
        cmocka_unit_test(those_of_others_are_named),
        cmocka_unit_test(directories_of_root_are_trusted),
    };
    return cmocka_run_group_tests(tests, start, end);
}
