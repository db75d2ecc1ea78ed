/* failing: memory that runs out in the test program that includes this. malloc and its kin stand in
 * front of the C library's, so libraries are affected as well. It runs out for the thread that says
 * so alone: a sanitizer takes memory of its own for every other, and cannot do without. */
#ifndef RM_TESTS_MEMORY_FAILING_H
#define RM_TESTS_MEMORY_FAILING_H

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint64_t left; /* allocations until the one that fails; 0: none will */
static bool failed;
static pthread_t whose;
static int64_t allocated;

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

/* What stands behind: the sanitizer's, or the C library's under the names it keeps for this. */
#ifdef SANITIZED
#define BEHIND(name) __interceptor_##name
#else
#define BEHIND(name) __libc_##name
#endif
extern void *BEHIND(malloc)(size_t bytes);
extern void *BEHIND(calloc)(size_t n, size_t bytes);
extern void *BEHIND(realloc)(void *p, size_t bytes);
extern void *BEHIND(memalign)(size_t alignment, size_t bytes);
extern void BEHIND(free)(void *p);

/* From now on the n-th allocation (from 1) fails, once; 0: none. */
static inline void rm_test_fail_allocation(uint64_t n)
{
    whose = pthread_self();
    left = n;
    failed = false;
}

/* Whether it came to that; nothing fails after this call. */
static inline bool rm_test_allocation_failed(void)
{
    left = 0;
    return failed;
}

/* Pieces of memory allocated and not freed yet. */
static inline int64_t rm_test_memory_held(void)
{
    return __atomic_load_n(&allocated, __ATOMIC_RELAXED);
}

/* Called before a sanitizer has begun: what it would put in here is not ready then. */
#define AS_WRITTEN __attribute__((no_sanitize("thread")))

/* True: this one fails. */
AS_WRITTEN static bool runs_out(void)
{
    if (left == 0 || !pthread_equal(pthread_self(), whose) || --left > 0)
        return false;
    failed = true;
    errno = ENOMEM;
    return true;
}

AS_WRITTEN static void *counted(void *p)
{
    __atomic_fetch_add(&allocated, p != NULL, __ATOMIC_RELAXED);
    return p;
}

#define IN_FRONT AS_WRITTEN __attribute__((visibility("default")))
IN_FRONT void *malloc(size_t bytes);
IN_FRONT void *calloc(size_t n, size_t bytes);
IN_FRONT void *realloc(void *p, size_t bytes);
IN_FRONT void *aligned_alloc(size_t alignment, size_t bytes);
IN_FRONT int posix_memalign(void **p, size_t alignment, size_t bytes);
IN_FRONT void free(void *p);
/* A sanitizer has its own of these, which would go past malloc. */
IN_FRONT char *strdup(const char *text);
IN_FRONT char *strndup(const char *text, size_t most);
#ifdef SANITIZED
extern char *BEHIND(realpath)(const char *path, char *resolved);
IN_FRONT char *realpath(const char *path, char *resolved);
#endif

void *malloc(size_t bytes)
{
    return runs_out() ? NULL : counted(BEHIND(malloc)(bytes));
}

void *calloc(size_t n, size_t bytes)
{
    return runs_out() ? NULL : counted(BEHIND(calloc)(n, bytes));
}

void *realloc(void *p, size_t bytes)
{
    if (runs_out())
        return NULL;
    void *moved = BEHIND(realloc)(p, bytes);
    __atomic_fetch_add(&allocated, (p == NULL && moved) - (p && !moved && bytes == 0),
                       __ATOMIC_RELAXED);
    return moved;
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return runs_out() ? NULL : counted(BEHIND(memalign)(alignment, bytes));
}

int posix_memalign(void **p, size_t alignment, size_t bytes)
{
    void *got = aligned_alloc(alignment, bytes);
    if (!got)
        return ENOMEM;
    *p = got;
    return 0;
}

void free(void *p)
{
    __atomic_fetch_sub(&allocated, p != NULL, __ATOMIC_RELAXED);
    BEHIND(free)(p);
}

char *strndup(const char *text, size_t most)
{
    const size_t length = strnlen(text, most);
    char *copy = malloc(length + 1);
    if (!copy)
        return NULL;
    copy[length] = '\0';
    return memcpy(copy, text, length);
}

char *strdup(const char *text)
{
    return strndup(text, strlen(text));
}

#ifdef SANITIZED
char *realpath(const char *path, char *resolved)
{
    char place[PATH_MAX];
    if (resolved)
        return BEHIND(realpath)(path, resolved);
    return BEHIND(realpath)(path, place) ? strdup(place) : NULL;
}
#endif

#endif
