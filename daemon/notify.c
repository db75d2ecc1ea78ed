#include "daemon/notify.h"

#include "shm/base/clock.h"

#include <stdarg.h>
#include <stdio.h>

#ifdef RM_HAVE_SYSTEMD
#include <systemd/sd-daemon.h>

void rm_notify(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    sd_notify(0, text);
}

bool rm_notify_watched(void)
{
    return sd_watchdog_enabled(0, NULL) > 0;
}

#else

void rm_notify(const char *format, ...)
{
    (void)format;
}

bool rm_notify_watched(void)
{
    return false;
}

#endif

/* For what comes after workers have gone: the summary, the last rows of metrics. */
#define LAST_NS (15 * RM_NS_PER_S)

void rm_notify_more_time(uint64_t ns)
{
    rm_notify("EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)((ns + LAST_NS) / 1000));
}
