/* The CUDA plugin in the test's own process: the emulated one (tests/cuda/emulation), or where
 * RINGMASTER_CUDA_PLUGIN names another, that. Helpers assert; they are called inside a cmocka test.
 */
#ifndef RM_TESTS_SUPPORT_EMULATED_H
#define RM_TESTS_SUPPORT_EMULATED_H

#include "learner/backend/backend.h"
#include "learner/backend/device.h"
#include "learner/backend/plugin.h"

#include <stdbool.h>

/* A backend on device 0, computing in float32, convolutions in small pieces. Skips the test where a
 * plugin of another kind has no device. Destroyed with rm_backend_destroy(). */
struct rm_backend *rm_test_device_open(void);
/* With products computed otherwise. */
struct rm_backend *rm_test_device_open_for(enum rm_compute compute);

/* Lets whoever is created from now on find the plugin, here and in processes started from here. */
void rm_test_device_use(void);

/* A symbol of the emulation; NULL where the plugin is another, or nobody has opened it yet. */
void *rm_test_emulated_symbol(const char *name);

/* Whether the plugin is the emulated one: the functions below do nothing else. */
bool rm_test_emulated(void);

/* tests/cuda/emulation/control.h: the order of threads ("forward", "reverse", "random:7"), errors
 * to give, what the device found wrong. */
void rm_test_emulated_order(const char *order);
void rm_test_emulated_fault(const char *faults);
const char *rm_test_emulated_complaint(void);

/* Operations on streams, of any backend, that have not run yet; 0 where it is not emulated. */
uint64_t rm_test_emulated_waiting(void);

/* Fails the test where the device was given an error, or where its emulation has a complaint. */
void rm_test_device_fine(struct rm_backend *backend);

#endif
