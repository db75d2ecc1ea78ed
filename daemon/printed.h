/* printed: the output of a worker, and of code that is linked or loaded into it, on standard output
 * and error. The daemon reads it from a pipe: a line becomes an entry of the journal, with time,
 * level (shm/base/severity.h) and worker. A worker never waits for a disk when it prints, and
 * cannot fill one: in RM_LOG_WINDOW_NS at most RM_LOG_BURST lines of it are written, as many again
 * that are errors, and the rest are counted. After a worker dies, the daemon reads the rest of the
 * pipe before it reports the death. The event loop's thread only. */
#ifndef RM_DAEMON_PRINTED_H
#define RM_DAEMON_PRINTED_H

#include "daemon/log.h"
#include "shm/session/session.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define RM_PRINTED_LINE   2560             /* kept bytes of a line */
#define RM_PRINTED_READER RM_BOARD_WORKERS /* the number of metrics.exec among workers */

/* Where output goes, and the counts of each worker over all its processes. */
struct rm_printer {
    const struct rm_session *session;
    struct rm_log *log;
    uv_loop_t *loop;
    struct {
        struct rm_log_pace errors, others;
    } pace[RM_BOARD_WORKERS + 1];
};

/* The pipe of one process. */
struct rm_printed {
    uv_poll_t poll;
    int fd; /* -1 = none */
    struct rm_printer *printer;
    uint32_t worker;
    void *user; /* the caller's */
    void (*on_closed)(struct rm_printed *printed);
    bool in_rest; /* in the rest of too long a line */
    size_t used;
    char line[RM_PRINTED_LINE];
};

/* Makes the pipe of worker `worker`, or of RM_PRINTED_READER. Returns the end for the process,
 * close-on-exec; the caller closes it once the process has it. Or returns negative errno; then
 * rm_printed_end() must not be called. */
int rm_printed_open(struct rm_printed *printed, struct rm_printer *printer, uint32_t worker,
                    struct rm_error *error);

/* After the process has ended, or was not made: reads the rest and closes the pipe. *printed may be
 * freed once on_closed was called. */
void rm_printed_end(struct rm_printed *printed);

#endif
