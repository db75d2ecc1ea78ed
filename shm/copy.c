#include "shm/copy.h"

#include "shm/atomic.h"

#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__)
#define WATCHED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WATCHED 1
#endif
#endif
#ifndef WATCHED
#define WATCHED 0
#endif

#if defined(__x86_64__)

/* Vector moves, not the string instruction, which measured about half as fast for data that another
 * core holds or has just written. From this size on the wide moves are worth the check for AVX. */
#define WIDE_BYTES 256

static inline size_t copy_wide(unsigned char *t, const unsigned char *f, size_t bytes)
{
    size_t done = 0;
    for (; bytes - done >= 128; done += 128)
        __asm__ volatile("vmovdqu (%1), %%ymm0\n\t"
                         "vmovdqu 32(%1), %%ymm1\n\t"
                         "vmovdqu 64(%1), %%ymm2\n\t"
                         "vmovdqu 96(%1), %%ymm3\n\t"
                         "vmovdqu %%ymm0, (%0)\n\t"
                         "vmovdqu %%ymm1, 32(%0)\n\t"
                         "vmovdqu %%ymm2, 64(%0)\n\t"
                         "vmovdqu %%ymm3, 96(%0)"
                         :
                         : "r"(t + done), "r"(f + done)
                         : "memory", "xmm0", "xmm1", "xmm2", "xmm3");
    /* The surrounding code is not compiled for AVX and would be slowed by dirty upper halves. */
    __asm__ volatile("vzeroupper" : : : "memory");
    return done;
}

static inline void copy_opaque(void *to, const void *from, size_t bytes)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if (bytes >= WIDE_BYTES && __builtin_cpu_supports("avx")) {
        size_t done = copy_wide(t, f, bytes);
        t += done, f += done, bytes -= done;
    }
    while (bytes >= 64) {
        __asm__ volatile("movdqu (%1), %%xmm0\n\t"
                         "movdqu 16(%1), %%xmm1\n\t"
                         "movdqu 32(%1), %%xmm2\n\t"
                         "movdqu 48(%1), %%xmm3\n\t"
                         "movdqu %%xmm0, (%0)\n\t"
                         "movdqu %%xmm1, 16(%0)\n\t"
                         "movdqu %%xmm2, 32(%0)\n\t"
                         "movdqu %%xmm3, 48(%0)"
                         :
                         : "r"(t), "r"(f)
                         : "memory", "xmm0", "xmm1", "xmm2", "xmm3");
        t += 64, f += 64, bytes -= 64;
    }
    while (bytes >= 8) {
        uint64_t word;
        __asm__ volatile("movq (%2), %0\n\tmovq %0, (%1)"
                         : "=&r"(word)
                         : "r"(t), "r"(f)
                         : "memory");
        t += 8, f += 8, bytes -= 8;
    }
    while (bytes > 0) {
        uint32_t byte;
        __asm__ volatile("movzbl (%2), %0\n\tmovb %b0, (%1)"
                         : "=&q"(byte)
                         : "r"(t), "r"(f)
                         : "memory");
        t++, f++, bytes--;
    }
}

void rm_copy_row_out(void *to, const void *row, size_t bytes)
{
    copy_opaque(to, row, bytes);
}

#else

__attribute__((no_sanitize("thread"), noinline)) void rm_copy_row_out(void *to, const void *row,
                                                                      size_t bytes)
{
    unsigned char *t = to;
    const volatile unsigned char *f = row;
    for (; bytes >= 8 && ((uintptr_t)f & 7) == 0; t += 8, f += 8, bytes -= 8) {
        uint64_t word = *(const volatile uint64_t *)f;
        __builtin_memcpy(t, &word, 8);
    }
    for (; bytes > 0; bytes--)
        *t++ = *f++;
}

#endif

#if defined(__x86_64__) && !WATCHED

void rm_copy_to_shared(void *shared, const void *from, size_t bytes)
{
    copy_opaque(shared, from, bytes);
}

void rm_copy_from_shared(void *to, const void *shared, size_t bytes)
{
    copy_opaque(to, shared, bytes);
}

#else

void rm_copy_to_shared(void *shared, const void *from, size_t bytes)
{
    _Atomic uint64_t *words = shared;
    const unsigned char *f = from;
    for (; bytes >= 8; bytes -= 8, f += 8) {
        uint64_t word;
        memcpy(&word, f, 8);
        RM_POKE(words++, word);
    }
    _Atomic unsigned char *tail = (_Atomic unsigned char *)words;
    for (; bytes > 0; bytes--)
        RM_POKE(tail++, *f++);
}

void rm_copy_from_shared(void *to, const void *shared, size_t bytes)
{
    const _Atomic uint64_t *words = shared;
    unsigned char *t = to;
    for (; bytes >= 8; bytes -= 8, t += 8) {
        uint64_t word = RM_PEEK(words++);
        memcpy(t, &word, 8);
    }
    const _Atomic unsigned char *tail = (const _Atomic unsigned char *)words;
    for (; bytes > 0; bytes--)
        *t++ = RM_PEEK(tail++);
}

#endif
