/* The shared-memory protocols compiled once more, with their fault sites, into the test that
 * includes this: so the kill sites are tested by `make test` of the usual build. */
#ifndef RM_TESTS_CRASH_FAULT_BUILD_H
#define RM_TESTS_CRASH_FAULT_BUILD_H

#ifndef RM_FAULT_SITES
#define RM_FAULT_SITES
#endif

#include "shm/base/fault.c"
#include "shm/region.c"

#include "shm/copy.c"
#include "shm/ring.c"
#include "shm/weights.c"
#include "shm/wake.c"

#endif
