#include "daemon/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

const char *rm_log_level_name(enum rm_log_level level)
{
    static const char *const names[] = {[RM_LOG_ERROR] = "error",
                                        [RM_LOG_WARNING] = "warning",
                                        [RM_LOG_NOTICE] = "notice",
                                        [RM_LOG_INFO] = "info"};
    return level >= RM_LOG_ERROR && level <= RM_LOG_INFO ? names[level] : "?";
}

/* A log that cannot be written has nobody to tell. */
static void put(int fd, const char *text, int bytes)
{
    ssize_t ignored = write(fd, text, (size_t)bytes);
    (void)ignored;
}

void rm_log(struct rm_log *log, enum rm_log_level level, const char *format, ...)
{
    char text[LINE_MAX_BYTES - 64], line[LINE_MAX_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (char *c = text; *c; c++) /* one entry is one line, whatever a worker or a client sent */
        if (*c == '\n')
            *c = ';';
        else if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';

    if (log->fd >= 0) {
        struct timespec now;
        struct tm utc;
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &utc);
        int n = snprintf(line, sizeof line, "%04d-%02d-%02dT%02d:%02d:%02d.%03ldZ %-7s %s\n",
                         utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                         utc.tm_sec, now.tv_nsec / 1000000, rm_log_level_name(level), text);
        put(log->fd, line, n < (int)sizeof line ? n : (int)sizeof line - 1);
    }
    if (log->echo_fd >= 0 && level <= log->echo) {
        if (log->before_echo)
            log->before_echo(log->user);
        int n = log->prefix ? snprintf(line, sizeof line, "<%d>%s\n", level, text)
                            : snprintf(line, sizeof line, "ringmasterd: %s\n", text);
        put(log->echo_fd, line, n);
    }
}
