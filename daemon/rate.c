#include "daemon/rate.h"

#include <string.h>

#define SPACING_NS 500000000ull

void rm_rate_add(struct rm_rate *rate, uint64_t now_ns, uint64_t value)
{
    if (rate->count >= 2) {
        uint32_t last = (rate->count - 1) % RM_RATE_SAMPLES;
        uint32_t previous = (rate->count - 2) % RM_RATE_SAMPLES;
        if (rate->time_ns[last] - rate->time_ns[previous] < SPACING_NS) {
            rate->time_ns[last] = now_ns;
            rate->value[last] = value;
            return;
        }
    }
    rate->time_ns[rate->count % RM_RATE_SAMPLES] = now_ns;
    rate->value[rate->count % RM_RATE_SAMPLES] = value;
    rate->count++;
    if (rate->count == 4 * RM_RATE_SAMPLES) /* keeps it from ever wrapping */
        rate->count = 3 * RM_RATE_SAMPLES;
}

double rm_rate_per_s(const struct rm_rate *rate)
{
    if (rate->count < 2)
        return 0;
    uint32_t kept = rate->count < RM_RATE_SAMPLES ? rate->count : RM_RATE_SAMPLES;
    uint32_t last = (rate->count - 1) % RM_RATE_SAMPLES;
    uint32_t first = (rate->count - kept) % RM_RATE_SAMPLES;
    if (rate->time_ns[last] <= rate->time_ns[first])
        return 0;
    return (double)(rate->value[last] - rate->value[first]) * 1e9 /
           (double)(rate->time_ns[last] - rate->time_ns[first]);
}

void rm_rate_reset(struct rm_rate *rate)
{
    memset(rate, 0, sizeof *rate);
}
