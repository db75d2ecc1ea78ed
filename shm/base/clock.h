/* Monotonic time. Ringmaster never measures or waits by the wall clock, so a jump of that clock has
 * no effect. Only file names and the journal have calendar time. */
#ifndef RM_SHM_BASE_CLOCK_H
#define RM_SHM_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define RM_NS_PER_S  1000000000ull
#define RM_NS_PER_MS 1000000ull

/* Nanoseconds on any clock; 0: it cannot be read. */
static inline uint64_t rm_clock_ns(clockid_t clock)
{
    struct timespec t = {0, 0};
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * RM_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Nanoseconds on CLOCK_MONOTONIC: comparable between processes of one host. */
static inline uint64_t rm_now_ns(void)
{
    return rm_clock_ns(CLOCK_MONOTONIC);
}

/* A time after a gap in which the process did not run: moved by the gap, at most to `latest`. It
 * may have been noted after the gap. */
static inline uint64_t rm_moved_ns(uint64_t at_ns, uint64_t gap_ns, uint64_t latest_ns)
{
    return at_ns + gap_ns < latest_ns ? at_ns + gap_ns : latest_ns;
}

#endif
