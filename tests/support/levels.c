#include "tests/support/levels.h"

#include <stdio.h>
#include <string.h>

#define TESTS_MAX 32

static const struct {
    const char *name, *isa;
    enum rm_compute compute;
} levels[] = {{"x86-64-v2", "x86-64-v2", RM_COMPUTE_FP32},
              {"x86-64-v3", "x86-64-v3", RM_COMPUTE_FP32},
              {"x86-64-v4", "x86-64-v4", RM_COMPUTE_FP32},
              {"bf16", "auto", RM_COMPUTE_BF16}};
#define LEVELS (sizeof levels / sizeof levels[0])

static int run_on(size_t level_count, const struct CMUnitTest *tests, size_t count)
{
    int failed = 0;
    for (size_t i = 0; i < level_count; i++) {
        struct level_state state = {.isa = levels[i].isa, .compute = levels[i].compute};
        struct rm_error error;
        if (state.compute == RM_COMPUTE_BF16 && !rm_backend_cpu_has_bf16(state.isa)) {
            printf("bf16: skipped: there is no AVX512_BF16 here\n");
            continue;
        }
        if (rm_backend_cpu_create_for(&state.backend, 1, state.isa, state.compute, &error)) {
            printf("%s: skipped: %s\n", levels[i].name, error.text);
            continue;
        }
        struct CMUnitTest copy[TESTS_MAX];
        memcpy(copy, tests, count * sizeof *tests);
        for (size_t t = 0; t < count; t++)
            copy[t].initial_state = &state;
        failed += _cmocka_run_group_tests(levels[i].name, copy, count, NULL, NULL);
        rm_backend_destroy(state.backend);
    }
    return failed;
}

int run_on_levels(const struct CMUnitTest *tests, size_t count)
{
    return run_on(LEVELS - 1, tests, count);
}

int run_on_levels_and_bf16(const struct CMUnitTest *tests, size_t count)
{
    return run_on(LEVELS, tests, count);
}
