/* pace: how fast a counter grows, over the last few seconds. Samples come about once a second.
 * Plain data; the caller gives the time. */
#ifndef RM_DAEMON_PACE_H
#define RM_DAEMON_PACE_H

#include <stdint.h>

#define RM_PACE_SAMPLES 8

struct rm_pace {
    uint64_t time_ns[RM_PACE_SAMPLES], value[RM_PACE_SAMPLES];
    uint32_t count; /* samples taken; the latest is at (count - 1) % RM_PACE_SAMPLES */
};

/* Samples closer than half a second to the one before replace it. */
void rm_pace_add(struct rm_pace *pace, uint64_t now_ns, uint64_t value);

/* Per second, over the window; 0 with fewer than two samples. */
double rm_pace_rate(const struct rm_pace *pace);

/* Forgets the window: after a pause. */
void rm_pace_reset(struct rm_pace *pace);

#endif
