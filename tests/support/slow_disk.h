/* slow_disk: a disk that a test holds up or breaks (tests/crash/slow_disk.h), for every program
 * that is started from a group's set-up to its end. */
#ifndef RM_TESTS_SUPPORT_SLOW_DISK_H
#define RM_TESTS_SUPPORT_SLOW_DISK_H

#include "tests/crash/slow_disk.h"

extern struct slow_disk *rm_test_disk;

/* A group's set-up and its end. */
int rm_test_disk_make(void **state);
int rm_test_disk_remove(void **state);

#endif
