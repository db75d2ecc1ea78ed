/* Every fault site in the sources is visited by a crash test of this folder, no name stands in two
 * places, and there are as many as promised. */
#include "tests/support/unit.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SITES_MAX 512
#define PROMISED  40

struct sites {
    char name[SITES_MAX][64];
    size_t n;
};

static struct sites placed;
static char *crash_tests; /* all their text */

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

static int read_all(void **state)
{
    static const char *const rooms[] = {"shm/*.c",     "shm/base/*.c",  "config/*.c",
                                        "learner/*.c", "learner/*/*.c", "actor/*.c",
                                        "daemon/*.c",  "daemon/*/*.c"};
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
    crash_tests = calloc(1, 1 << 22);
    if (!crash_tests || glob("tests/crash/test_*.c", 0, NULL, &found) != 0)
        return -1;
    for (size_t i = 0, used = 0; i < found.gl_pathc; i++) {
        char *text = slurp(found.gl_pathv[i]);
        used += (size_t)sprintf(crash_tests + used, "%s", text);
        free(text);
    }
    globfree(&found);
    return 0;
}

static void every_site_is_visited(void **state)
{
    (void)state;
    size_t missed = 0;
    for (size_t i = 0; i < placed.n; i++) {
        char quoted[80];
        snprintf(quoted, sizeof quoted, "\"%s\"", placed.name[i]);
        if (!strstr(crash_tests, quoted)) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_site_is_visited),
        cmocka_unit_test(names_are_unique),
    };
    return cmocka_run_group_tests(tests, read_all, NULL);
}
