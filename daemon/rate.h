/* rate: how fast a counter grows, over the last few seconds. Samples come about once a second.
 * Plain data; the caller gives the time. */
#ifndef RM_DAEMON_RATE_H
#define RM_DAEMON_RATE_H

#include <stdint.h>

#define RM_RATE_SAMPLES 8

struct rm_rate {
    uint64_t time_ns[RM_RATE_SAMPLES], value[RM_RATE_SAMPLES];
    uint32_t count; /* samples taken; the latest is at (count - 1) % RM_RATE_SAMPLES */
};

/* Samples closer than half a second to the one before replace it. */
void rm_rate_add(struct rm_rate *rate, uint64_t now_ns, uint64_t value);

/* Per second, over the window; 0 with fewer than two samples. */
double rm_rate_per_s(const struct rm_rate *rate);

/* Forgets the window: after a pause. */
void rm_rate_reset(struct rm_rate *rate);

#endif
