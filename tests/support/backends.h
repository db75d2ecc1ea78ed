/* backends: a device and the CPU, for tests of one beside the other. */
#ifndef RM_TESTS_SUPPORT_BACKENDS_H
#define RM_TESTS_SUPPORT_BACKENDS_H

#include "learner/backend/backend.h"

/* Between the two functions below; both compute in float32. */
extern struct rm_backend *rm_test_device, *rm_test_cpu;

/* Before and after each test: skips it where there is no device (emulated.h). */
int rm_test_backends_open(void **state);
int rm_test_backends_close(void **state);

#endif
