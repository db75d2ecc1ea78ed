/* log: the journal of a run. Every line goes to log.txt of the run directory with calendar time,
 * and to standard error: all of it when run as a service (with the priority prefix that journald
 * knows), only notices and worse beside the console. One per process; the event loop's thread only.
 */
#ifndef RM_DAEMON_LOG_H
#define RM_DAEMON_LOG_H

#include <stdarg.h>
#include <stdbool.h>

/* Values are those of syslog, which journald reads. */
enum rm_log_level { RM_LOG_ERROR = 3, RM_LOG_WARNING = 4, RM_LOG_NOTICE = 5, RM_LOG_INFO = 6 };

struct rm_log {
    int fd;                          /* log.txt, -1 = none */
    int echo_fd;                     /* standard error, -1 = none */
    enum rm_log_level echo;          /* echo this and worse */
    bool prefix;                     /* write <N> before each echoed line */
    void (*before_echo)(void *user); /* clears a line being redrawn; may be NULL */
    void *user;
};

void rm_log(struct rm_log *log, enum rm_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

const char *rm_log_level_name(enum rm_log_level level);

#endif
