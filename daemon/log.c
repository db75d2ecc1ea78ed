#include "daemon/log.h"

#include "shm/base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifdef RM_HAVE_SYSTEMD
#include <systemd/sd-journal.h>
#endif

#define LINE_MAX_BYTES  2048
#define FIELDS_MAX      16
#define FIELD_MAX_BYTES 640

const char *rm_log_level_name(enum rm_log_level level)
{
    static const char *const names[] = {[RM_LOG_ERROR] = "error",
                                        [RM_LOG_WARNING] = "warning",
                                        [RM_LOG_NOTICE] = "notice",
                                        [RM_LOG_INFO] = "info"};
    return level >= RM_LOG_ERROR && level <= RM_LOG_INFO ? names[level] : "?";
}

bool rm_log_stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char own[64];
    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, own) == 0;
}

/* --- the system's journal -------------------------------------------------------------------- */

#ifdef RM_HAVE_SYSTEMD

struct entry {
    char text[FIELDS_MAX][FIELD_MAX_BYTES];
    struct iovec part[FIELDS_MAX + 1];
    int count;
    char message[LINE_MAX_BYTES];
};

static void add_field(struct entry *e, const char *name, const char *value)
{
    if (!value || !value[0] || e->count == FIELDS_MAX)
        return;
    char *text = e->text[e->count];
    int n = snprintf(text, FIELD_MAX_BYTES, "%s=%s", name, value);
    size_t bytes = n < FIELD_MAX_BYTES ? (size_t)n : FIELD_MAX_BYTES - 1;
    e->part[e->count++] = (struct iovec){.iov_base = text, .iov_len = bytes};
}

static void add_number(struct entry *e, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    if (value >= 0)
        add_field(e, name, text);
}

static bool send_to_journal(const struct rm_log *log, enum rm_log_level level,
                            enum rm_message message, const struct rm_log_fields *f,
                            const char *text)
{
    static struct entry e; /* one thread; too large for a stack that may be a signal's */
    e.count = 0;
    add_number(&e, "PRIORITY", level);
    add_field(&e, "SYSLOG_IDENTIFIER", "ringmasterd");
    add_field(&e, "MESSAGE_ID", rm_messages[message].id);
    add_field(&e, "RUN", log->run);
    add_field(&e, "WORKER", f->worker);
    add_field(&e, "AGENT", f->agent);
    add_number(&e, "STEP", f->step);
    add_field(&e, "ERROR", f->error);
    add_field(&e, "KEY", f->key);
    add_field(&e, "BEFORE", f->before);
    add_field(&e, "AFTER", f->after);
    add_number(&e, "USER", f->user);
    int n = snprintf(e.message, sizeof e.message, "MESSAGE=%s", text);
    e.part[e.count++] = (struct iovec){
        .iov_base = e.message, .iov_len = n < LINE_MAX_BYTES ? (size_t)n : LINE_MAX_BYTES - 1};
    return sd_journal_sendv(e.part, e.count) == 0;
}

#else

static bool send_to_journal(const struct rm_log *log, enum rm_log_level level,
                            enum rm_message message, const struct rm_log_fields *f,
                            const char *text)
{
    (void)log, (void)level, (void)message, (void)f, (void)text;
    return false;
}

#endif

/* --- lines ----------------------------------------------------------------------------------- */

/* A log that cannot be written has nobody to tell. */
static void put(int fd, const char *text, int bytes)
{
    ssize_t ignored = write(fd, text, (size_t)bytes);
    (void)ignored;
}

static void write_line(struct rm_log *log, enum rm_log_level level, enum rm_message message,
                       const struct rm_log_fields *fields, const char *text)
{
    char line[LINE_MAX_BYTES];
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
    if (log->echo_fd < 0 || level > log->echo)
        return;
    if (log->journal && send_to_journal(log, level, message, fields, text))
        return;
    if (log->before_echo)
        log->before_echo(log->user);
    int n = log->prefix ? snprintf(line, sizeof line, "<%d>%s\n", level, text)
                        : snprintf(line, sizeof line, "ringmasterd: %s\n", text);
    put(log->echo_fd, line, n);
}

/* Whether an entry of this kind may be written now; says how many were not when it may again. */
static bool may_write(struct rm_log *log, enum rm_message message)
{
    const uint64_t now = rm_now_ns();
    if (log->pace[message].since_ns == 0 || now - log->pace[message].since_ns >= RM_LOG_WINDOW_NS) {
        const uint32_t left_out = log->pace[message].left_out;
        log->pace[message].since_ns = now;
        log->pace[message].count = log->pace[message].left_out = 0;
        if (left_out) {
            char text[128];
            snprintf(text, sizeof text, "%u entries of kind %s came too fast and were left out",
                     left_out, rm_messages[message].name);
            write_line(log, RM_LOG_WARNING, RM_MESSAGE_SUPPRESSED, &RM_LOG_NO_FIELDS, text);
        }
    }
    if (log->pace[message].count >= RM_LOG_BURST) {
        log->pace[message].left_out++;
        return false;
    }
    log->pace[message].count++;
    return true;
}

__attribute__((format(printf, 5, 0))) static void
log_list(struct rm_log *log, enum rm_log_level level, enum rm_message message,
         const struct rm_log_fields *fields, const char *format, va_list list)
{
    char text[LINE_MAX_BYTES - 64];
    if (!may_write(log, message))
        return;
    vsnprintf(text, sizeof text, format, list);
    for (char *c = text; *c; c++) /* one entry is one line, whatever a worker or a client sent */
        if (*c == '\n')
            *c = ';';
        else if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    write_line(log, level, message, fields, text);
}

void rm_log(struct rm_log *log, enum rm_log_level level, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    log_list(log, level, RM_MESSAGE_OTHER, &RM_LOG_NO_FIELDS, format, list);
    va_end(list);
}

void rm_log_message(struct rm_log *log, enum rm_log_level level, enum rm_message message,
                    const struct rm_log_fields *fields, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    log_list(log, level, message, fields, format, list);
    va_end(list);
}
