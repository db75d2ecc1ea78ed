#include "daemon/pace.h"

#include <string.h>

#define SPACING_NS 500000000ull

void rm_pace_add(struct rm_pace *pace, uint64_t now_ns, uint64_t value)
{
    if (pace->count >= 2) {
        uint32_t last = (pace->count - 1) % RM_PACE_SAMPLES;
        uint32_t previous = (pace->count - 2) % RM_PACE_SAMPLES;
        if (pace->time_ns[last] - pace->time_ns[previous] < SPACING_NS) {
            pace->time_ns[last] = now_ns;
            pace->value[last] = value;
            return;
        }
    }
    pace->time_ns[pace->count % RM_PACE_SAMPLES] = now_ns;
    pace->value[pace->count % RM_PACE_SAMPLES] = value;
    pace->count++;
    if (pace->count == 4 * RM_PACE_SAMPLES) /* keeps it from ever wrapping */
        pace->count = 3 * RM_PACE_SAMPLES;
}

double rm_pace_rate(const struct rm_pace *pace)
{
    if (pace->count < 2)
        return 0;
    uint32_t kept = pace->count < RM_PACE_SAMPLES ? pace->count : RM_PACE_SAMPLES;
    uint32_t last = (pace->count - 1) % RM_PACE_SAMPLES;
    uint32_t first = (pace->count - kept) % RM_PACE_SAMPLES;
    if (pace->time_ns[last] <= pace->time_ns[first])
        return 0;
    return (double)(pace->value[last] - pace->value[first]) * 1e9 /
           (double)(pace->time_ns[last] - pace->time_ns[first]);
}

void rm_pace_reset(struct rm_pace *pace)
{
    memset(pace, 0, sizeof *pace);
}
