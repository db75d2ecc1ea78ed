/* Where control sockets are. */
#include "daemon/socket_path.h"
#include "shm/board.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void names_are_safe_directories(void **state)
{
    (void)state;
    static const char *const good[] = {"a", "treasurehunt", "x-1.2_b", "7"};
    static const char *const bad[] = {"",    ".",    "..",       ".hidden", "a/b", "-rf",
                                      "a b", "a\nb", "\xc3\xa4", "a:b",     "_a"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(rm_name_valid(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(rm_name_valid(bad[i]));
    char name[64];
    memset(name, 'a', sizeof name);
    name[47] = '\0';
    assert_true(rm_name_valid(name));
    name[47] = 'a';
    name[48] = '\0';
    assert_false(rm_name_valid(name));
}

static void the_environment_decides(void **state)
{
    char path[RM_SOCKET_PATH_MAX];
    struct rm_error error = {""};
    (void)state;
    setenv("RINGMASTER_RUNTIME_DIR", "/tmp/here", 1);
    assert_int_equal(rm_socket_path(path, "one", &error), 0);
    assert_string_equal(path, "/tmp/here/one/control.sock");
    struct rm_socket_directories directories;
    rm_socket_directories(&directories);
    assert_int_equal(directories.count, 1);

    /* Relative: another place for every process, so not taken. */
    setenv("RINGMASTER_RUNTIME_DIR", "here", 1);
    assert_int_equal(rm_socket_path(path, "one", &error), 0);
    assert_null(strstr(path, "here"));

    unsetenv("RINGMASTER_RUNTIME_DIR");
    if (geteuid() == 0) {
        assert_int_equal(rm_socket_path(path, "one", &error), 0);
        assert_string_equal(path, "/run/ringmaster/one/control.sock");
    }
}

static void other_users_have_their_own(void **state)
{
    char path[RM_SOCKET_PATH_MAX];
    struct rm_socket_directories directories;
    (void)state;
    if (geteuid() == 0 && seteuid(12345) != 0)
        skip();
    unsetenv("RINGMASTER_RUNTIME_DIR");
    setenv("XDG_RUNTIME_DIR", "/run/user/12345", 1);
    int rc = rm_socket_path(path, "one", NULL);
    rm_socket_directories(&directories);
    assert_int_equal(rc, 0);
    assert_string_equal(path, "/run/user/12345/ringmaster/one/control.sock");
    assert_int_equal(directories.count, 3);
    assert_string_equal(directories.path[2], "/run/ringmaster");
    unsetenv("XDG_RUNTIME_DIR");
    char expected[64];
    snprintf(expected, sizeof expected, "/tmp/ringmaster-%u/one/control.sock", (unsigned)geteuid());
    assert_int_equal(rm_socket_path(path, "one", NULL), 0);
    assert_string_equal(path, expected);
    if (getuid() == 0)
        assert_int_equal(seteuid(0), 0);
}

static void what_does_not_fit_is_refused(void **state)
{
    char path[RM_SOCKET_PATH_MAX], directory[128];
    struct rm_error error = {""};
    (void)state;
    assert_int_equal(rm_socket_path_in(path, "/x", "a/b", &error), -EINVAL);
    assert_non_null(strstr(error.text, "\"a/b\""));
    memset(directory, 'd', sizeof directory);
    directory[0] = '/';
    directory[100] = '\0';
    assert_int_equal(rm_socket_path_in(path, directory, "one", &error), -ENAMETOOLONG);
    assert_non_null(strstr(error.text, "107 bytes"));
    /* The longest that fits, and one more: 108 bytes with the NUL. */
    directory[RM_SOCKET_PATH_MAX - 1 - strlen("/one/control.sock")] = '\0';
    assert_int_equal(rm_socket_path_in(path, directory, "one", &error), 0);
    assert_int_equal(strlen(path), RM_SOCKET_PATH_MAX - 1);
    assert_int_equal(rm_socket_path_in(path, directory, "ones", &error), -ENAMETOOLONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_safe_directories),
        cmocka_unit_test(the_environment_decides),
        cmocka_unit_test(other_users_have_their_own),
        cmocka_unit_test(what_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
