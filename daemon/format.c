#include "daemon/format.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>

static struct rm_text unknown(void)
{
    return (struct rm_text){"-"};
}

/* Scales by steps of `base`; below one step a value is printed whole. */
static struct rm_text scaled(double value, double base, const char *const *units, int unit_count)
{
    struct rm_text text;
    int unit = 0;
    /* 999.6k would print as 1000k: the step is taken where the rounded value reaches it. */
    while (unit + 1 < unit_count && fabs(value) >= (unit ? base - 0.5 : base)) {
        value /= base;
        unit++;
    }
    int digits = unit == 0 ? 0 : fabs(value) < 9.995 ? 2 : fabs(value) < 99.95 ? 1 : 0;
    snprintf(text.s, sizeof text.s, "%.*f%s", digits, value, units[unit]);
    return text;
}

struct rm_text rm_format_count(double value)
{
    static const char *const units[] = {"", "k", "M", "G", "T", "P"};
    return isfinite(value) ? scaled(value, 1000, units, 6) : unknown();
}

struct rm_text rm_format_bytes(double value)
{
    static const char *const units[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
    return isfinite(value) ? scaled(value, 1024, units, 6) : unknown();
}

struct rm_text rm_format_number(double value)
{
    struct rm_text text;
    if (!isfinite(value))
        return unknown();
    snprintf(text.s, sizeof text.s, "%.4g", value);
    return text;
}

struct rm_text rm_format_measure(double value)
{
    struct rm_text text;
    double size = fabs(value);
    if (!isfinite(value) || value == 0 || size < 0.001 || size >= 99995)
        return rm_format_number(value);
    int digits = size < 0.99995 ? 4 : size < 9.9995 ? 3 : size < 99.995 ? 2 : size < 999.95 ? 1 : 0;
    snprintf(text.s, sizeof text.s, "%.*f", digits, value);
    return text;
}

struct rm_text rm_format_percent(double share)
{
    struct rm_text text;
    if (!isfinite(share))
        return unknown();
    snprintf(text.s, sizeof text.s, "%.1f%%", 100 * share);
    return text;
}

#define DAY 86400u

struct rm_text rm_format_duration(double value)
{
    struct rm_text text;
    if (!isfinite(value) || value < 0 || value > 1e10)
        return unknown();
    uint64_t s = (uint64_t)(value + 0.5);
    unsigned hours = (unsigned)(s % DAY / 3600), minutes = (unsigned)(s / 60 % 60),
             seconds = (unsigned)(s % 60);
    if (s >= DAY)
        snprintf(text.s, sizeof text.s, "%ud %02u:%02u", (unsigned)(s / DAY), hours, minutes);
    else if (hours)
        snprintf(text.s, sizeof text.s, "%u:%02u:%02u", hours, minutes, seconds);
    else
        snprintf(text.s, sizeof text.s, "%u:%02u", minutes, seconds);
    return text;
}
