/* Every fault site in the sources is visited: a process of this folder's crash tests, which are run
 * once more, has ended there. No name stands in two places, and there are as many as promised. */
#include "tests/support/unit.h"

#include <errno.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITES_MAX 512
#define PROMISED  40

struct sites {
    char name[SITES_MAX][64];
    size_t n;
};

static struct sites placed;
static char *visited; /* a site a line, each as often as a process ended there */
static const char *own_path;

static char *slurp(const char *path)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void collect(const char *text)
{
    static const char mark[] = "RM_FAULT(\"";
    for (const char *at = strstr(text, mark); at; at = strstr(at + 1, mark)) {
        const char *name = at + sizeof mark - 1;
        const size_t length = strcspn(name, "\"");
        assert_true(length < sizeof placed.name[0] && placed.n < SITES_MAX);
        memcpy(placed.name[placed.n++], name, length);
    }
}

/* The program beside this one that was made of this source; what it says is said when it runs by
 * itself. */
static bool run_one(const char *source)
{
    char program[512];
    const char *name = strrchr(source, '/') + 1;
    snprintf(program, sizeof program, "%.*s/%.*s", (int)(strrchr(own_path, '/') - own_path),
             own_path, (int)(strlen(name) - 2), name);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr))
            _exit(126);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (status)
        print_error("%s: ended with %d\n", program, status);
    return status == 0;
}

static int run_crash_tests(void)
{
    char log[] = "/tmp/rm-sites-XXXXXX";
    glob_t found;
    int failed = 0;
    const int fd = mkstemp(log);
    if (fd < 0 || write(fd, "\n", 1) != 1 || glob("tests/crash/test_*.c", 0, NULL, &found) != 0)
        return -1;
    close(fd);
    setenv("RM_FAULT_LOG", log, 1);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = slurp(found.gl_pathv[i]);
        if (!strstr(found.gl_pathv[i], "/test_sites.c") &&
            (strstr(text, "\"tests/crash/fault_build.h\"") ||
             strstr(text, "define RM_FAULT_SITES")))
            failed += !run_one(found.gl_pathv[i]);
        free(text);
    }
    globfree(&found);
    visited = slurp(log);
    unlink(log);
    return failed ? -1 : 0;
}

static int read_all(void **state)
{
    static const char *const rooms[] = {"shm/*.c",       "shm/*/*.c", "config/*.c", "learner/*.c",
                                        "learner/*/*.c", "actor/*.c", "daemon/*.c", "daemon/*/*.c"};
    glob_t found;
    (void)state;
    for (size_t r = 0; r < sizeof rooms / sizeof rooms[0]; r++)
        if (glob(rooms[r], r ? GLOB_APPEND : 0, NULL, &found) != 0 && r == 0)
            return -1; /* not run where the sources are */
    for (size_t i = 0; i < found.gl_pathc; i++) {
        char *text = slurp(found.gl_pathv[i]);
        collect(text);
        free(text);
    }
    globfree(&found);
    return run_crash_tests();
}

static void every_site_is_visited(void **state)
{
    (void)state;
    size_t missed = 0;
    for (size_t i = 0; i < placed.n; i++) {
        char line[80];
        snprintf(line, sizeof line, "\n%s\n", placed.name[i]);
        if (!strstr(visited, line)) {
            print_error("%s: no crash test dies there\n", placed.name[i]);
            missed++;
        }
    }
    printf("  %zu sites\n", placed.n);
    assert_int_equal(missed, 0);
    assert_true(placed.n >= PROMISED);
}

static void names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < placed.n; i++)
        for (size_t j = i + 1; j < placed.n; j++)
            if (strcmp(placed.name[i], placed.name[j]) == 0)
                fail_msg("%s stands in two places", placed.name[i]);
}

int main(int argc, char **argv)
{
    (void)argc;
    own_path = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_site_is_visited),
        cmocka_unit_test(names_are_unique),
    };
    return cmocka_run_group_tests(tests, read_all, NULL);
}
