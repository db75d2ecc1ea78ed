/* backends: a device and the CPU, for tests of one beside the other. Helpers assert; they are
 * called inside a cmocka test. */
#ifndef RM_TESTS_SUPPORT_BACKENDS_H
#define RM_TESTS_SUPPORT_BACKENDS_H

#include "learner/backend/backend.h"

/* Between the two functions below; both compute in float32. */
extern struct rm_backend *rm_test_device, *rm_test_cpu;

/* Before and after each test: skips it where there is no device (emulated.h). */
int rm_test_backends_open(void **state);
int rm_test_backends_close(void **state);

/* A copy of `bytes` in the device's memory, of zeros if `from` is NULL; and back from there, where
 * the size is a multiple of 4. */
void *rm_test_to_device(const void *from, size_t bytes);
void rm_test_from_device(void *to, const void *from, size_t bytes);
/* Releases all copies. */
void rm_test_device_release(void);

/* The CPU's numbers and the device's, within 1e-5 of each. */
void rm_test_assert_near(const char *what, const float *here, const float *there, size_t n);

#endif
