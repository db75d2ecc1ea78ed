/* effort: how often a test repeats what it repeats. Less often where each step takes tens of times
 * as long: in a build with a sanitizer, and under valgrind, whose caller sets RM_TEST_LITTLE. Of
 * repetitions with other numbers some are left out there; of cases, layers, algorithms, kinds of
 * input none is. */
#ifndef RM_TESTS_SUPPORT_EFFORT_H
#define RM_TESTS_SUPPORT_EFFORT_H

#include <stdint.h>

uint32_t rm_test_effort(uint32_t whole, uint32_t little);

#endif
