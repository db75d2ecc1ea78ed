#include "tests/support/allocations.h"

#include "shm/atomic.h"

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

static _Atomic uint64_t calls;

uint64_t rm_test_allocations(void)
{
    return RM_PEEK(&calls);
}

#ifdef SANITIZED
bool rm_test_allocations_counted(void)
{
    return false;
}
#else
bool rm_test_allocations_counted(void)
{
    return true;
}

/* glibc's own, under the names it keeps for programs that put theirs in front. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

#define COUNTED(name, parameters, call)                                                            \
    __attribute__((visibility("default"))) void *name parameters;                                  \
    void *name parameters                                                                          \
    {                                                                                              \
        RM_ADD(&calls, 1);                                                                         \
        return call;                                                                               \
    }

COUNTED(malloc, (size_t bytes), __libc_malloc(bytes))
COUNTED(calloc, (size_t n, size_t bytes), __libc_calloc(n, bytes))
COUNTED(realloc, (void *p, size_t bytes), __libc_realloc(p, bytes))
COUNTED(aligned_alloc, (size_t alignment, size_t bytes), __libc_memalign(alignment, bytes))
#endif
