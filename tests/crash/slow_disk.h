/* slow_disk: what a test and the shared object that it has loaded into the programs under test have
 * in common: a page of the file that RM_TEST_SLOW_DISK names. */
#ifndef RM_TESTS_CRASH_SLOW_DISK_H
#define RM_TESTS_CRASH_SLOW_DISK_H

#include <stdatomic.h>

#define SLOW_DISK_VARIABLE "RM_TEST_SLOW_DISK"

struct slow_disk {
    atomic_int held;        /* fsync does not return before this is 0 again */
    atomic_int only;        /* the one process whose fsync that is, or 0: everybody's */
    atomic_int waiting;     /* how many do not */
    atomic_int all_held;    /* nor does whatever changes a file or a folder, or a process's fsync */
    atomic_int all_held_in; /* calls that do not */
    atomic_int broken;      /* an errno: what changes a file fails with it; 0: it does not */
    atomic_int fsync_ms;    /* how much longer fsync takes than it would */
};

#endif
