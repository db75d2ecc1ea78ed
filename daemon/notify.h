/* notify: reports readiness, status and signs of life to the service manager (NOTIFY_SOCKET).
 * Without a service manager these functions do nothing. Any thread. */
#ifndef RM_DAEMON_NOTIFY_H
#define RM_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

/* Sends a message of sd_notify(3). */
void rm_notify(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether the service manager expects signs of life. */
bool rm_notify_watched(void);

/* Requests `ns` for stopping, even if that is more than the unit's TimeoutStopSec=. */
void rm_notify_more_time(uint64_t ns);

#endif
