/* allocations: counts calls of malloc and its kin in a test program that asks for it. The program
 * must be linked with this file for that (it is, when it calls one of these). */
#ifndef RM_TESTS_SUPPORT_ALLOCATIONS_H
#define RM_TESTS_SUPPORT_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Calls so far, by any thread. */
uint64_t rm_test_allocations(void);

/* Sanitizers have an allocator of their own: then nothing is counted. */
bool rm_test_allocations_counted(void);

#endif
