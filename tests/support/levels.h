/* levels: runs a group of tests once per instruction set that this host has, and once more with
 * products in bf16 if that is asked for and the host has them. */
#ifndef RM_TESTS_SUPPORT_LEVELS_H
#define RM_TESTS_SUPPORT_LEVELS_H

#include "learner/backend/backend.h"
#include "tests/support/unit.h"

/* Each test's state is a struct level_state. Returns the number of failed tests. */
struct level_state {
    const char *isa;
    enum rm_compute compute;
    struct rm_backend *backend; /* one thread */
};

int run_on_levels(const struct CMUnitTest *tests, size_t count);
int run_on_levels_and_bf16(const struct CMUnitTest *tests, size_t count);

#endif
