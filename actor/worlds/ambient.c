#include "actor/worlds/ambient.h"

#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define APART_NS 1000000 /* least time between checks with system calls, after steps */

static struct {
    bool noted, confined;
    sigset_t blocked;
    mode_t umask;
    int directory; /* an open descriptor of it, or -1 */
    int64_t looked_ns;
#ifdef __x86_64__
    uint32_t mxcsr;
    uint16_t x87;
#else
    fenv_t floats;
#endif
} was;

#ifdef __x86_64__

#define MXCSR_CONTROL 0xffc0u                                 /* not the flags of what happened */
#define FLAGS         (UINT64_C(1) << 10 | UINT64_C(1) << 18) /* direction, alignment check */

static void note_numbers(void)
{
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(was.mxcsr), "=m"(was.x87));
}

static void restore_numbers(void)
{
    uint32_t mxcsr;
    uint16_t x87;
    uint64_t flags;
    /* Without the red zone, which this function's leaf frame may use: 128 bytes below. */
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "pushfq\n\t"
                     "popq %0\n\t"
                     "lea 128(%%rsp), %%rsp\n\t"
                     "emms\n\t"
                     "stmxcsr %1\n\t"
                     "fnstcw %2"
                     : "=r"(flags), "=m"(mxcsr), "=m"(x87));
    if ((mxcsr ^ was.mxcsr) & MXCSR_CONTROL)
        __asm__ volatile("ldmxcsr %0" : : "m"(was.mxcsr));
    if (x87 != was.x87)
        __asm__ volatile("fninit\n\tfldcw %0" : : "m"(was.x87));
    if (flags & FLAGS) {
        flags &= ~FLAGS;
        __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                         "pushq %0\n\t"
                         "popfq\n\t"
                         "lea 128(%%rsp), %%rsp"
                         :
                         : "r"(flags)
                         : "cc");
    }
}

#else

static void note_numbers(void)
{
    fegetenv(&was.floats);
}

static void restore_numbers(void)
{
    fesetenv(&was.floats);
}

#endif

/* All numbers are read and written in the "C" locale; no program of Ringmaster sets another. */
static void restore_locale(void)
{
    if (uselocale((locale_t)0) != LC_GLOBAL_LOCALE)
        uselocale(LC_GLOBAL_LOCALE);
    if (strcmp(setlocale(LC_ALL, NULL), "C") != 0)
        setlocale(LC_ALL, "C");
}

static void note_place(void)
{
    was.umask = umask(0);
    umask(was.umask);
    if (!was.noted) /* this program never changes it */
        was.directory = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void restore_place(void)
{
    umask(was.umask);
    if (was.directory >= 0 && fchdir(was.directory) < 0)
        was.directory = -1; /* the directory cannot be entered any more, so it cannot be left
                             * either */
}

static int64_t coarse_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

void rm_ambient_note(void)
{
    note_numbers();
    sigprocmask(SIG_SETMASK, NULL, &was.blocked);
    if (!was.confined)
        note_place();
    was.noted = true;
}

void rm_ambient_restore(bool step)
{
    if (!was.noted)
        return;
    restore_numbers();
    restore_locale();
    if (step) {
        const int64_t now = coarse_ns();
        if (now - was.looked_ns < APART_NS)
            return;
        was.looked_ns = now;
    }
    sigprocmask(SIG_SETMASK, &was.blocked, NULL);
    if (!was.confined)
        restore_place();
}

void rm_ambient_confined(void)
{
    was.confined = true;
}
