#include "daemon/log.h"

#include "config/utf8.h"
#include "shm/base/clock.h"
#include "shm/base/plural.h"

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

#define LINE_MAX_BYTES  3072
#define FIELDS_MAX      16
#define FIELD_MAX_BYTES 640

static const char *const level_names[] = {[RM_LOG_ERROR] = "error",
                                          [RM_LOG_WARNING] = "warning",
                                          [RM_LOG_NOTICE] = "notice",
                                          [RM_LOG_INFO] = "info"};

bool rm_log_stderr_is_journal(void)
{
#ifndef RM_HAVE_SYSTEMD
    return false; /* nothing here could send it fields */
#endif
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    char own[64];
    if (!stream || fstat(STDERR_FILENO, &st) < 0)
        return false;
    snprintf(own, sizeof own, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, own) == 0;
}

/* A log that cannot be written cannot report that. */
static void write_text(struct rm_writer *writer, rm_write_fn how, int fd, const char *text,
                       size_t bytes)
{
    if (writer)
        (void)rm_writer_put(writer, how, fd, text, bytes, NULL);
    else
        (void)how(fd, text, bytes);
}

/* --- the system's journal -------------------------------------------------------------------- */

#ifdef RM_HAVE_SYSTEMD

/* An entry as it waits for its thread: fields, each behind its length. */
struct entry {
    size_t used;
    char bytes[FIELDS_MAX * (FIELD_MAX_BYTES + sizeof(uint32_t)) + LINE_MAX_BYTES];
};

__attribute__((format(printf, 3, 4))) static void add_text(struct entry *e, size_t most,
                                                           const char *format, ...)
{
    char *at = e->bytes + e->used;
    va_list list;
    if (e->used + sizeof(uint32_t) + most > sizeof e->bytes)
        return;
    va_start(list, format);
    const int n = vsnprintf(at + sizeof(uint32_t), most, format, list);
    va_end(list);
    const uint32_t bytes = n < (int)most ? (uint32_t)n : (uint32_t)most - 1;
    memcpy(at, &bytes, sizeof bytes);
    e->used += sizeof bytes + bytes;
}

static void add_field(struct entry *e, const char *name, const char *value)
{
    if (value && value[0])
        add_text(e, FIELD_MAX_BYTES, "%s=%s", name, value);
}

static void add_number(struct entry *e, const char *name, int64_t value)
{
    if (value >= 0)
        add_text(e, FIELD_MAX_BYTES, "%s=%" PRId64, name, value);
}

static const char *value_of(const struct iovec *part, const char *name, int *bytes)
{
    const size_t length = strlen(name);
    if (part->iov_len < length || memcmp(part->iov_base, name, length) != 0)
        return NULL;
    *bytes = (int)(part->iov_len - length);
    return (const char *)part->iov_base + length;
}

/* By the thread. A journal that does not take it gets the line alone. */
static int deliver_entry(int fd, const void *data, size_t size)
{
    struct iovec part[FIELDS_MAX + 1];
    const char *at = data, *level = "", *text = "", *found;
    char line[LINE_MAX_BYTES];
    int count = 0, level_bytes = 0, text_bytes = 0, bytes;
    uint32_t length;
    for (const char *end = at + size; at < end && count <= FIELDS_MAX; at += length) {
        memcpy(&length, at, sizeof length);
        at += sizeof length;
        part[count] = (struct iovec){.iov_base = (char *)at, .iov_len = length};
        if ((found = value_of(&part[count], "PRIORITY=", &bytes)))
            level = found, level_bytes = bytes;
        else if ((found = value_of(&part[count], "MESSAGE=", &bytes)))
            text = found, text_bytes = bytes;
        count++;
    }
    if (sd_journal_sendv(part, count) == 0)
        return 0;
    const int n = snprintf(line, sizeof line, "<%.*s>%.*s\n", level_bytes, level, text_bytes, text);
    return rm_write_through(fd, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
}

static void send_to_journal(const struct rm_log *log, enum rm_log_level level,
                            enum rm_message message, const struct rm_log_fields *f,
                            const char *text)
{
    static struct entry e; /* one thread; too large for a stack that may be a signal's */
    e.used = 0;
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
    add_text(&e, LINE_MAX_BYTES - sizeof(uint32_t), "MESSAGE=%s", text);
    write_text(log->echoes, deliver_entry, log->echo_fd, e.bytes, e.used);
}

#else

static void send_to_journal(const struct rm_log *log, enum rm_log_level level,
                            enum rm_message message, const struct rm_log_fields *f,
                            const char *text)
{
    (void)log, (void)level, (void)message, (void)f, (void)text;
}

#endif

/* --- lines ----------------------------------------------------------------------------------- */

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
                         utc.tm_sec, now.tv_nsec / 1000000, level_names[level], text);
        write_text(log->files, rm_write_append, log->fd, line,
                   n < (int)sizeof line ? (size_t)n : sizeof line - 1);
    }
    if (log->echo_fd < 0 || level > log->echo)
        return;
    if (log->journal) {
        send_to_journal(log, level, message, fields, text);
        return;
    }
    if (log->before_echo)
        log->before_echo(log->user);
    int n = log->prefix ? snprintf(line, sizeof line, "<%d>%s\n", level, text)
                        : snprintf(line, sizeof line, "ringmasterd: %s\n", text);
    write_text(log->echoes, rm_write_through, log->echo_fd, line, (size_t)n);
}

static void say_left_out(struct rm_log *log, struct rm_log_pace *pace, enum rm_message message,
                         const struct rm_log_fields *fields, const char *who)
{
    char text[192];
    if (!pace->left_out)
        return;
    snprintf(text, sizeof text, "%.100s%s%u %s of kind %s came too fast and were dropped", who,
             who[0] ? ": " : "", pace->left_out, rm_plural(pace->left_out, "entry", "entries"),
             rm_messages[message].name);
    pace->left_out = 0;
    write_line(log, RM_LOG_WARNING, RM_MESSAGE_SUPPRESSED, fields, text);
}

/* Whether an entry may be written now; says how many were not when it may again. */
static bool may_write(struct rm_log *log, struct rm_log_pace *pace, enum rm_message message,
                      const struct rm_log_fields *fields, const char *who)
{
    const uint64_t now = rm_now_ns();
    if (pace->since_ns == 0 || now - pace->since_ns >= RM_LOG_WINDOW_NS) {
        pace->since_ns = now;
        pace->count = 0;
        say_left_out(log, pace, message, fields, who);
    }
    if (pace->count >= RM_LOG_BURST) {
        pace->left_out++;
        return false;
    }
    pace->count++;
    return true;
}

__attribute__((format(printf, 5, 0))) static void
log_list(struct rm_log *log, enum rm_log_level level, enum rm_message message,
         const struct rm_log_fields *fields, const char *format, va_list list)
{
    char text[LINE_MAX_BYTES - 64];
    if (!may_write(log, &log->pace[message], message, &RM_LOG_NO_FIELDS, ""))
        return;
    vsnprintf(text, sizeof text, format, list);
    rm_utf8_line(text);
    write_line(log, level, message, fields, text);
}

void rm_log_paced(struct rm_log *log, struct rm_log_pace *pace, enum rm_log_level level,
                  enum rm_message message, const struct rm_log_fields *fields, const char *who,
                  const char *said)
{
    char text[LINE_MAX_BYTES - 64];
    if (!may_write(log, pace, message, fields, who))
        return;
    snprintf(text, sizeof text, "%s: %s", who, said);
    rm_utf8_line(text);
    write_line(log, level, message, fields, text);
}

void rm_log_pace_end(struct rm_log *log, struct rm_log_pace *pace, enum rm_message message,
                     const struct rm_log_fields *fields, const char *who)
{
    say_left_out(log, pace, message, fields, who);
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
