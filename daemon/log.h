/* log: the journal of a run. Every line goes to log.txt of the run directory with calendar time,
 * and to standard error: every line of a service; beside the console only notices, warnings and
 * errors. If standard error is the system's journal, entries have fields that programs can query:
 * MESSAGE_ID, RUN, WORKER, AGENT, STEP, ERROR and others (docs/journal.md).
 *
 * Threads write files, standard error and the journal (writer.h), so that the event loop does not
 * wait; without threads they are written at once.
 *
 * If more than RM_LOG_BURST entries of one kind come in RM_LOG_WINDOW_NS, the others are left out,
 * and their number is logged at the end of the window.
 *
 * One per process; the event loop's thread only. */
#ifndef RM_DAEMON_LOG_H
#define RM_DAEMON_LOG_H

#include "daemon/messages.h"
#include "daemon/writer.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

/* Values are those of syslog, which journald reads. */
enum rm_log_level { RM_LOG_ERROR = 3, RM_LOG_WARNING = 4, RM_LOG_NOTICE = 5, RM_LOG_INFO = 6 };

#define RM_LOG_BURST     200
#define RM_LOG_WINDOW_NS (30 * UINT64_C(1000000000))

/* The rate of entries of one kind. */
struct rm_log_pace {
    uint64_t since_ns;
    uint32_t count, left_out;
};

struct rm_log {
    struct rm_writer *files;         /* of log.txt; NULL = no thread */
    struct rm_writer *echoes;        /* of standard error and the journal; NULL = no thread */
    int fd;                          /* log.txt, -1 = none */
    int echo_fd;                     /* standard error, -1 = none */
    enum rm_log_level echo;          /* echo this and worse */
    bool prefix;                     /* write <N> before each echoed line */
    bool journal;                    /* standard error is the system's journal: send fields there */
    const char *run;                 /* name of the experiment, for RUN; NULL = not known yet */
    void (*before_echo)(void *user); /* clears a line being redrawn; may be NULL */
    void *user;
    struct rm_log_pace pace[RM_MESSAGE_COUNT];
};

/* Fields of an entry, for programs. NULL or negative: absent. */
struct rm_log_fields {
    const char *worker, *agent, *error;
    const char *key, *before, *after;
    int64_t step, user;
};
#define RM_LOG_NO_FIELDS                                                                           \
    (struct rm_log_fields)                                                                         \
    {                                                                                              \
        .step = -1, .user = -1                                                                     \
    }

void rm_log(struct rm_log *log, enum rm_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

void rm_log_message(struct rm_log *log, enum rm_log_level level, enum rm_message message,
                    const struct rm_log_fields *fields, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The same with the caller's own pace instead of the kind's, for the output of another process,
 * which may be long. rm_log_pace_end() logs how many lines were left out, if any; call it when no
 * more lines can come. These lines begin with `who`. */
void rm_log_paced(struct rm_log *log, struct rm_log_pace *pace, enum rm_log_level level,
                  enum rm_message message, const struct rm_log_fields *fields, const char *who,
                  const char *text);
void rm_log_pace_end(struct rm_log *log, struct rm_log_pace *pace, enum rm_message message,
                     const struct rm_log_fields *fields, const char *who);

/* Is standard error the journal (JOURNAL_STREAM of the service manager)? */
bool rm_log_stderr_is_journal(void);

#endif
