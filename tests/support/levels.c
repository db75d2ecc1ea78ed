#include "tests/support/levels.h"

#include <stdio.h>
#include <string.h>

#define TESTS_MAX 32

int run_on_levels(const struct CMUnitTest *tests, size_t count)
{
    static const char *const levels[] = {"x86-64-v2", "x86-64-v3", "x86-64-v4"};
    int failed = 0;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        struct level_state state = {.isa = levels[i]};
        struct rm_error error;
        if (rm_backend_cpu_create(&state.backend, 1, levels[i], &error)) {
            printf("%s: skipped: %s\n", levels[i], error.text);
            continue;
        }
        struct CMUnitTest copy[TESTS_MAX];
        memcpy(copy, tests, count * sizeof *tests);
        for (size_t t = 0; t < count; t++)
            copy[t].initial_state = &state;
        failed += _cmocka_run_group_tests(levels[i], copy, count, NULL, NULL);
        rm_backend_destroy(state.backend);
    }
    return failed;
}
