/* switch: contexts of threads, each on its own stack. The stacks are announced to AddressSanitizer
 * and at a distance that valgrind takes for another stack; ThreadSanitizer sees nothing that runs
 * on one (scripts/make/cuda.mk). */
#ifndef RM_TESTS_CUDA_EMULATION_SWITCH_H
#define RM_TESTS_CUDA_EMULATION_SWITCH_H

#include <stddef.h>

namespace rm_emulated
{
struct context {
    void *stack_pointer;
    char *stack; /* lowest byte; null for the host thread's own */
    size_t stack_bytes;
    void *fake; /* of AddressSanitizer */
};

/* A stack for it, once. 0 or -ENOMEM. */
int make_stack(context *c);
/* The next switch to it calls entry(), which must never return. */
void prepare(context *c, void (*entry)());
/* Leaves `from` (the context that runs) and goes on with `to`. */
void switch_to(context *from, context *to);
/* First thing in entry(). */
void arrived(context *from);
} // namespace rm_emulated

#endif
