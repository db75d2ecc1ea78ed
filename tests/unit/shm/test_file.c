/* On the way to a file every folder is held open, and links are followed only if they are this
 * user's own or root's. */
#include "shm/base/file.h"
#include "tests/support/daemon.h"
#include "tests/support/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOBODY 65534

static char root[PATH_MAX];

static int make_root(void **state)
{
    char path[] = "/tmp/rm-file-XXXXXX";
    (void)state;
    return mkdtemp(path) && realpath(path, root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    rm_file_remove_all(root);
    return 0;
}

static const char *below(const char *name)
{
    static char paths[4][PATH_MAX + 64];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", root, name);
    return path;
}

/* What the folder is called without links, or the error. */
static int real_of(const char *path, bool make, char real[PATH_MAX], struct rm_error *error)
{
    error->text[0] = '\0';
    const int folder = rm_file_folder(path, make, real, error);
    if (folder >= 0)
        close(folder);
    return folder < 0 ? folder : 0;
}

static void folders_have_one_path(void **state)
{
    static const struct {
        const char *path, *real; /* NULL: it is not there */
    } cases[] = {
        {"a/b", "a/b"},      {"a//b/./", "a/b"},        {"a/b/../..", ""}, {"link", "a/b"},
        {"link/c", "a/b/c"}, {"a/absolute/c", "a/b/c"}, {"a/up/a", "a"},   {"loop", NULL},
        {"nothing", NULL},   {"a/file/b", NULL},
    };
    char real[PATH_MAX];
    struct rm_error error;
    (void)state;
    assert_int_equal(real_of(below("a/b/c"), true, real, &error), 0);
    assert_string_equal(real, below("a/b/c"));
    assert_int_equal(symlink("a/b", below("link")), 0);
    assert_int_equal(symlink(below("link"), below("a/absolute")), 0);
    assert_int_equal(symlink("..", below("a/up")), 0);
    assert_int_equal(symlink("loop", below("loop")), 0);
    close(rm_file_open(below("a/file"), O_WRONLY | O_CREAT, 0644, NULL));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int rc = real_of(below(cases[i].path), false, real, &error);
        if (!cases[i].real
                ? rc >= 0 || !error.text[0]
                : rc < 0 || strncmp(real, root, strlen(root)) != 0 ||
                      strcmp(real + strlen(root) + (cases[i].real[0] != '\0'), cases[i].real) != 0)
            fail_msg("%s: %d, %s; %s", cases[i].path, rc, real, error.text);
    }
    assert_int_equal(chdir(below("a")), 0);
    assert_int_equal(real_of("b/c", false, real, &error), 0);
    assert_string_equal(real, below("a/b/c"));
    assert_int_equal(real_of("/", false, real, &error), 0);
    assert_string_equal(real, "/");
}

static void a_folder_that_moves_is_still_the_same(void **state)
{
    struct stat was, is;
    (void)state;
    const int folder = rm_file_folder(below("moves/here"), true, NULL, NULL);
    assert_true(folder >= 0);
    assert_int_equal(fstat(folder, &was), 0);
    assert_int_equal(rename(below("moves"), below("moved")), 0);
    assert_int_equal(symlink("/", below("moves")), 0);
    assert_int_equal(mkdirat(folder, "inside", 0755), 0);
    assert_int_equal(stat(below("moved/here"), &is), 0);
    assert_true(was.st_ino == is.st_ino);
    assert_int_equal(access(below("moved/here/inside"), F_OK), 0);
    close(folder);
}

/* Whatever it is that is wanted there. */
static void links_of_others_lead_nowhere(void **state)
{
    char real[PATH_MAX];
    struct rm_error error;
    DIR *names;
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can make a link somebody else's */
    assert_int_equal(real_of(below("victim/run"), true, real, &error), 0);
    close(rm_file_open(below("victim/run/file"), O_WRONLY | O_CREAT, 0644, NULL));
    assert_int_equal(symlink("victim", below("theirs")), 0);
    assert_int_equal(lchown(below("theirs"), NOBODY, NOBODY), 0);
    assert_int_equal(real_of(below("theirs/run"), true, real, &error), -EPERM);
    assert_non_null(strstr(error.text, "theirs is a link of user 65534"));
    assert_int_equal(real_of(below("theirs"), false, real, &error), -EPERM);
    assert_int_equal(real_of(below("theirs/fresh"), true, real, &error), -EPERM);
    assert_int_equal(rm_file_open(below("theirs/run/file"), O_RDONLY, 0, &error), -EPERM);
    assert_int_equal(rm_file_open(below("theirs/run/f"), O_WRONLY | O_CREAT, 0644, NULL), -EPERM);
    assert_int_equal(rm_file_make_folder(below("theirs/run/g"), &error), -EPERM);
    assert_int_equal(rm_file_rename(below("theirs/run/file"), below("theirs/run/h")), -EPERM);
    assert_int_equal(rm_file_remove(below("theirs/run/file")), -EPERM);
    assert_int_equal(rm_file_list(below("theirs/run"), &names, &error), -EPERM);
    assert_null(names);
    assert_int_equal(rm_file_sync_folder(below("theirs/run"), &error), -EPERM);
    assert_int_equal(rm_file_remove(below("victim/run/file")), 0);
    assert_int_equal(rm_file_remove(below("victim/run")), 0);
    assert_int_equal(rm_file_remove(below("theirs")), 0); /* the link itself */
    assert_int_equal(rm_file_remove(below("victim")), 0);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static off_t size_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_size;
}

/* A file of another user, and any file of root's by a second name in a folder of his. */
static void what_is_refused_is_not_truncated(void **state)
{
    struct rm_error error = {""};
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can give a file to another user */
    put(below("own"), "mine");
    put(below("of-another"), "his");
    assert_int_equal(chown(below("of-another"), NOBODY, NOBODY), 0);
    assert_int_equal(rm_file_open(below("of-another"), O_WRONLY | O_TRUNC, 0, &error), -EPERM);
    assert_int_equal(size_of(below("of-another")), 3);
    assert_int_equal(mkdir(below("his"), 0755), 0);
    assert_int_equal(chown(below("his"), NOBODY, NOBODY), 0);
    assert_int_equal(link(below("own"), below("his/name")), 0);
    assert_int_equal(rm_file_open(below("his/name"), O_WRONLY | O_TRUNC, 0, &error), -EPERM);
    assert_non_null(strstr(error.text, "is a hard link in a folder of user 65534"));
    assert_int_equal(size_of(below("own")), 4);
    const int fd = rm_file_open(below("own"), O_WRONLY | O_TRUNC, 0, &error); /* two names, here */
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(size_of(below("own")), 0);
}

/* However long it is, up to the limit; nothing but a regular file of this user's. */
static void a_file_is_read_whole(void **state)
{
    static char many[100000];
    const size_t sizes[] = {0, 1, 4096, sizeof many};
    struct rm_error error = {""};
    char *text;
    size_t bytes;
    (void)state;
    for (size_t i = 0; i < sizeof many; i++)
        many[i] = (char)(i * 7);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int fd = rm_file_open(below("read"), O_WRONLY | O_CREAT | O_TRUNC, 0600, &error);
        assert_int_equal(rm_file_write_all(fd, many, sizes[i]), 0);
        close(fd);
        if (rm_file_read(below("read"), sizes[i], &text, &bytes, &error))
            fail_msg("%s", error.text);
        assert_int_equal(bytes, sizes[i]);
        assert_memory_equal(text, many, bytes);
        free(text);
    }
    assert_int_equal(rm_file_read(below("read"), sizeof many - 1, &text, &bytes, &error), -EFBIG);
    assert_non_null(strstr(error.text, "/read: "));
    assert_int_equal(rm_file_read(below("none"), 1, &text, &bytes, &error), -ENOENT);
    assert_int_equal(rm_file_read(root, 1, &text, &bytes, &error), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_have_one_path),
        cmocka_unit_test(a_folder_that_moves_is_still_the_same),
        cmocka_unit_test(links_of_others_lead_nowhere),
        cmocka_unit_test(what_is_refused_is_not_truncated),
        cmocka_unit_test(a_file_is_read_whole),
    };
    return cmocka_run_group_tests(tests, make_root, remove_root);
}
