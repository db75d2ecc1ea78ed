/* shared: a block's shared memory: the thread-local segment of this object, where __shared__
 * variables stand, and the dynamic part that a launch asks for, between red zones. */
#ifndef RM_TESTS_CUDA_EMULATION_SHARED_H
#define RM_TESTS_CUDA_EMULATION_SHARED_H

#include <stddef.h>

namespace rm_emulated
{
#define RM_SHARED_MOST (227u << 10) /* dynamic, of a block, where a kernel was allowed to */

/* Fills it with the poison, as it is before a block starts. */
void poison_shared(size_t dynamic_bytes);
/* Whether nothing was written into the red zones since. */
bool shared_is_whole();
} // namespace rm_emulated

#endif
