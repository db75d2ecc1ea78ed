/* several: backends of several emulated devices, joined (device_collective.h), in a test's own
 * process. Whatever fails ends the test. */
#ifndef RM_TESTS_SUPPORT_SEVERAL_H
#define RM_TESTS_SUPPORT_SEVERAL_H

#include "learner/backend/backend.h"
#include "learner/backend/device_collective.h"

#include <stdint.h>

/* For main(): emulated devices, and the double of NCCL. */
void rm_test_several_use(uint32_t devices);

struct rm_backend *rm_test_several_open(uint32_t index);

void rm_test_several_join(struct rm_backend *device[], uint32_t count);
void rm_test_several_close(struct rm_backend *device[], uint32_t count);

/* Before and after each test: skips it where the plugin is not the emulated one, unless
 * RM_TEST_SEVERAL is set (scripts/gpu-check: real devices and NCCL); no errors, threads forward. */
int rm_test_several_begin(void **state);
int rm_test_several_end(void **state);
/* For tests that give errors: skips them with real devices. */
void rm_test_several_need_emulation(void);

/* In between: a backend of device 0 by itself, to compare with. */
extern struct rm_backend *rm_test_alone;

#endif
