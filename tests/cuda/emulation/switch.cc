#include "switch.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define RM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RM_ASAN 1
#endif
#endif

#ifdef RM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define STACK_BYTES (512u << 10)
#else
#define STACK_BYTES (128u << 10)
#endif

/* From one stack to the next. valgrind takes a step of more than two megabytes for a change of
 * stacks; a list of stacks that it is given it would go through at each change. */
#define APART (4u << 20)

#ifndef __x86_64__
#error "the emulation switches contexts on x86-64 only"
#endif

/* Saves what the ABI has a call keep, changes stacks, and returns there. */
extern "C" void rm_emulated_switch(void **from, void *to);
__asm__(".text\n"
        ".hidden rm_emulated_switch\n"
        ".globl rm_emulated_switch\n"
        ".type rm_emulated_switch,@function\n"
        "rm_emulated_switch:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
        ".size rm_emulated_switch,.-rm_emulated_switch\n");

namespace rm_emulated
{
int make_stack(context *c)
{
    void *p = mmap(nullptr, APART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memset(c, 0, sizeof *c);
    if (p == MAP_FAILED)
        return -ENOMEM;
    c->stack = static_cast<char *>(p) + APART - STACK_BYTES;
    c->stack_bytes = STACK_BYTES;
    return mprotect(c->stack, STACK_BYTES, PROT_READ | PROT_WRITE) ? -ENOMEM : 0;
}

void prepare(context *c, void (*entry)())
{
#ifdef RM_ASAN
    __asan_unpoison_memory_region(c->stack, c->stack_bytes);
    c->fake = nullptr;
#endif
    /* As after a call: the address of entry() for `ret`, above it one that it never returns to. */
    void **top = reinterpret_cast<void **>(c->stack + c->stack_bytes) - 2;
    top[1] = nullptr;
    top[0] = reinterpret_cast<void *>(entry);
    top -= 6;
    memset(top, 0, 6 * sizeof *top);
    c->stack_pointer = top;
}

#ifdef RM_ASAN
/* Called by the context that continues, or begins, after a switch from `left`. Only this context
 * learns the stack of `left` if that is the host thread's. */
static void finished(void *fake, context *left)
{
    const void *bottom = nullptr;
    size_t bytes = 0;
    __sanitizer_finish_switch_fiber(fake, &bottom, &bytes);
    if (!left->stack_bytes) {
        left->stack = static_cast<char *>(const_cast<void *>(bottom));
        left->stack_bytes = bytes;
    }
}
#endif

void switch_to(context *from, context *to)
{
#ifdef RM_ASAN
    __sanitizer_start_switch_fiber(&from->fake, to->stack, to->stack_bytes);
#endif
    rm_emulated_switch(&from->stack_pointer, to->stack_pointer);
#ifdef RM_ASAN
    finished(from->fake, to);
#endif
}

void arrived(context *from)
{
#ifdef RM_ASAN
    finished(nullptr, from);
#else
    (void)from;
#endif
}
} // namespace rm_emulated
