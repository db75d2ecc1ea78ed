/* notify: tells the service manager how the daemon goes: readiness, status, watchdog, where there
 * is one (NOTIFY_SOCKET); otherwise nothing. Any thread. */
#ifndef RM_DAEMON_NOTIFY_H
#define RM_DAEMON_NOTIFY_H

#include <stdint.h>

/* A message of sd_notify(3). */
void rm_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Interval at which the service manager expects a sign of life; 0 = never. */
uint64_t rm_notify_watchdog_ns(void);

/* Stopping may take so long, whatever the unit says (TimeoutStopSec= bounds it otherwise). */
void rm_notify_more_time(uint64_t ns);

#endif
